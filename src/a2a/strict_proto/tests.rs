use super::super::proto_fields::{STRUCT, VALUE, v0_3, v1_0};
use super::*;

/// A small encoder of its own: tag, then bytes.
fn delimited(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn request(bytes: &[u8]) -> Result<(), ProtoFault> {
    check(bytes, &v1_0::SEND_MESSAGE_REQUEST, Unknown::Refused)
}

fn list_tasks(bytes: &[u8]) -> Result<(), ProtoFault> {
    check(bytes, &v1_0::LIST_TASKS_REQUEST, Unknown::Refused)
}

#[test]
fn fields_come_in_order_with_their_places() {
    let message = [delimited(1, b"m"), delimited(3, b"task")].concat();
    let bytes = [delimited(1, b"tenant"), delimited(2, &message)].concat();
    let mut cursor = Cursor::new(&bytes, &v1_0::SEND_MESSAGE_REQUEST, Unknown::Refused);
    let tenant = cursor.next().unwrap().unwrap();
    assert_eq!((tenant.name(), tenant.text()), ("tenant", "tenant"));
    assert_eq!((tenant.at.clone(), tenant.value_at()), (0..8, 2..8));
    let found = cursor.next().unwrap().unwrap();
    assert_eq!(found.value, Value::Message(&message));
    assert_eq!((found.at.clone(), found.value_at()), (8..19, 10..19));
    cursor.enter().unwrap();
    let id = cursor.next().unwrap().unwrap();
    assert_eq!(
        (id.name(), id.text(), id.at.clone()),
        ("message_id", "m", 10..13)
    );
    assert_eq!(&bytes[id.value_at()], b"m");
    assert_eq!(cursor.next().unwrap().unwrap().text(), "task");
    assert!(cursor.next().unwrap().is_none(), "leaves the message");
    assert!(cursor.next().unwrap().is_none(), "leaves the request");
    assert!(cursor.next().unwrap().is_none(), "and stays");
}

#[test]
fn what_is_not_entered_is_checked_all_the_same() {
    let twice = delimited(2, &[delimited(3, b"a"), delimited(3, b"b")].concat());
    assert_eq!(request(&twice), Err(ProtoFault::DuplicateField));
    let mut cursor = Cursor::new(&twice, &v1_0::SEND_MESSAGE_REQUEST, Unknown::Refused);
    cursor.next().unwrap();
    assert_eq!(cursor.skip(), Err(ProtoFault::DuplicateField));
}

#[test]
fn what_decoders_merge_is_refused() {
    let message = |id: &[u8]| delimited(2, &delimited(3, id));
    for (bytes, why) in [
        ([message(b"a"), message(b"b")].concat(), "messages merge"),
        (
            [delimited(1, b"a"), delimited(1, b"a")].concat(),
            "the last wins",
        ),
    ] {
        assert_eq!(request(&bytes), Err(ProtoFault::DuplicateField), "{why}");
    }
    // Two members of one oneof.
    let part = [delimited(1, b"text"), delimited(3, b"https://a")].concat();
    let bytes = delimited(2, &delimited(5, &part));
    assert_eq!(request(&bytes), Err(ProtoFault::DuplicateField));
    assert_eq!(
        list_tasks(&[0x18, 1, 0x18, 1]),
        Err(ProtoFault::DuplicateField)
    );
    // What is repeated may repeat.
    let references = [delimited(8, b"a"), delimited(8, b"b")].concat();
    assert_eq!(request(&delimited(2, &references)), Ok(()));
}

#[test]
fn keys_of_a_map_are_distinct() {
    let entry = |key: &[u8], value: &[u8]| {
        delimited(
            1,
            &[delimited(1, key), delimited(2, &delimited(3, value))].concat(),
        )
    };
    let check = |bytes: &[u8]| check(bytes, &STRUCT, Unknown::Refused);
    assert_eq!(
        check(&[entry(b"a", b"1"), entry(b"b", b"1")].concat()),
        Ok(())
    );
    assert_eq!(
        check(&[entry(b"a", b"1"), entry(b"b", b"1"), entry(b"a", b"2")].concat()),
        Err(ProtoFault::DuplicateKey)
    );
    // No key is the empty key.
    assert_eq!(
        check(&[delimited(1, b""), entry(b"", b"1")].concat()),
        Err(ProtoFault::DuplicateKey)
    );
    // The same key in an inner map is another key.
    let inner = delimited(2, &delimited(5, &entry(b"a", b"1")));
    let outer = delimited(1, &[delimited(1, b"a"), inner].concat());
    assert_eq!(check(&[entry(b"b", b"1"), outer.clone()].concat()), Ok(()));
    assert_eq!(
        check(&[outer.clone(), entry(b"a", b"1")].concat()),
        Err(ProtoFault::DuplicateKey)
    );
}

#[test]
fn tags_lengths_and_varints_are_bounded() {
    for (bytes, fault) in [
        (&b"\x0a"[..], ProtoFault::Truncated),
        (b"\x0a\x02a", ProtoFault::Truncated),
        (b"\x0a\xff\xff\xff\xff\x0f", ProtoFault::Truncated),
        (
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            ProtoFault::Truncated,
        ),
        (b"\x80", ProtoFault::Truncated),
        (b"\x8a\x00\x00", ProtoFault::Varint),
        (b"\x0a\x81\x00a", ProtoFault::Varint),
        (
            b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            ProtoFault::Varint,
        ),
        (
            b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            ProtoFault::Varint,
        ),
        (b"\x00\x00", ProtoFault::FieldNumber),
        (b"\x02\x00", ProtoFault::FieldNumber),
        (b"\x82\x80\x80\x80\x10\x00", ProtoFault::FieldNumber),
        (b"\x0a\x01\xff", ProtoFault::BadUtf8),
        (b"\x0a\x03\xed\xa0\x80", ProtoFault::BadUtf8),
        (b"\x09aaaaaaaa", ProtoFault::WireType),
        (b"\x08\x01", ProtoFault::WireType),
        (b"\x0b\x0c", ProtoFault::WireType),
        (b"\x0c", ProtoFault::WireType),
        (b"\x0f", ProtoFault::WireType),
        (b"\x1a\x01\x01", ProtoFault::WireType),
        (b"\x4a\x00", ProtoFault::UnknownField),
    ] {
        assert_eq!(list_tasks(bytes), Err(fault), "{bytes:x?}");
    }
    // A value that decoders cut to its type may be long.
    assert_eq!(
        list_tasks(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        Ok(())
    );
    assert_eq!(list_tasks(b"\x18\x81\x00"), Ok(()));
    assert_eq!(list_tasks(b""), Ok(()));
}

#[test]
fn a_length_cannot_reach_out_of_its_message() {
    // The inner id claims one byte more than its message has; the next field would be eaten.
    let bytes = [&b"\x12\x03\x1a\x02t"[..], b"\x0a\x01x"].concat();
    assert_eq!(request(&bytes), Err(ProtoFault::Truncated));
}

#[test]
fn unknown_fields_pass_only_where_nothing_is_decided() {
    let unknown: [&[u8]; 4] = [b"\x78\x01", b"\x79aaaaaaaa", b"\x7a\x01a", b"\x7daaaa"];
    for field in unknown {
        assert_eq!(request(field), Err(ProtoFault::UnknownField));
        let message = delimited(2, field);
        assert_eq!(request(&message), Err(ProtoFault::UnknownField));
        let part = delimited(2, &delimited(5, field));
        assert_eq!(request(&part), Ok(()));
        assert_eq!(check(field, &v1_0::TASK, Unknown::Refused), Ok(()));
        assert_eq!(check(field, &v1_0::MESSAGE, Unknown::Passed), Ok(()));
    }
    for group in [&b"\x7b\x7c"[..], b"\x7c", b"\x7e", b"\x7f"] {
        let part = delimited(2, &delimited(5, group));
        assert_eq!(request(&part), Err(ProtoFault::WireType), "{group:x?}");
    }
    for cut in [&b"\x79aaa"[..], b"\x7daaa", b"\x7a\x02a", b"\x78\x80"] {
        let part = delimited(2, &delimited(5, cut));
        assert_eq!(request(&part), Err(ProtoFault::Truncated), "{cut:x?}");
    }
}

#[test]
fn nesting_is_bounded() {
    // A list in a list: two messages a level, and the value itself.
    let nested = |levels: usize| {
        (0..levels).fold(Vec::new(), |inner, _| delimited(6, &delimited(1, &inner)))
    };
    let check = |levels| check(&nested(levels), &VALUE, Unknown::Refused);
    assert_eq!(check(31), Ok(()));
    assert_eq!(check(32), Err(ProtoFault::TooDeep));
    assert_eq!(check(2000), Err(ProtoFault::TooDeep));
}

#[test]
fn layouts_do_not_pass_for_one_another() {
    // A message of 1.0 read as 0.3, and the other way round.
    let message = [delimited(1, b"m"), delimited(3, b"task")].concat();
    let as_1_0 = [delimited(1, b"tenant"), delimited(2, &message)].concat();
    assert!(check(&as_1_0, &v0_3::SEND_MESSAGE_REQUEST, Unknown::Refused).is_err());
    let as_0_3 = delimited(1, &message);
    // Its message would be a tenant whose text has control characters; the payload refuses it.
    assert_eq!(request(&as_0_3), Ok(()));
}

#[test]
fn lengths_of_varints() {
    for (value, length) in [
        (0, 1),
        (127, 1),
        (128, 2),
        (16383, 2),
        (16384, 3),
        (u64::from(u32::MAX), 5),
        (u64::MAX >> 1, 9),
        (u64::MAX, 10),
    ] {
        assert_eq!(varint_length(value), length, "{value}");
    }
}
