#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn fault(text: &str) -> &'static str {
    parse_value(text.as_bytes(), 64).map_or_else(JsonFault::code, |_| "ok")
}

#[test]
fn refuses_what_parsers_read_differently() {
    let table = [
        ("", "truncated"),
        ("  ", "truncated"),
        ("{\"a\":", "truncated"),
        ("{}{}", "trailing_data"),
        ("{\"a\":1} x", "trailing_data"),
        ("\u{feff}{}", "bom"),
        ("{\"a\":1,\"a\":2}", "duplicate_key"),
        ("{\"a\":1,\"\\u0061\":2}", "duplicate_key"),
        ("[{\"b\":{\"a\":1,\"a\":null}}]", "duplicate_key"),
        ("\"\\ud800\"", "lone_surrogate"),
        ("\"\\udc00\"", "lone_surrogate"),
        ("\"\\ud800\\u0041\"", "lone_surrogate"),
        ("{\"\\ud800\":1}", "lone_surrogate"),
        ("\"\\ud83d\\ude00\"", "ok"),
        ("NaN", "syntax"),
        ("Infinity", "syntax"),
        ("-Infinity", "number"),
        ("1e999", "number"),
        ("01", "number"),
        ("1.", "truncated"),
        ("+1", "syntax"),
        ("[1,]", "syntax"),
        ("{\"a\":1,}", "syntax"),
        ("{,}", "syntax"),
        ("{\"a\" 1}", "syntax"),
        ("'a'", "syntax"),
        ("\"\t\"", "control_character"),
        ("\"\\x\"", "syntax"),
        ("/* */ 1", "syntax"),
        ("-0", "ok"),
        (" {\"a\":[1.5e3,true,false,null,\"x\"]}\r\n\t", "ok"),
    ];
    for (text, expected) in table {
        assert_eq!(fault(text), expected, "{text}");
        if let Ok(mut cursor) = Cursor::new(text.as_bytes(), 64) {
            let skipped = cursor.skip().and_then(|_| cursor.finish());
            assert_eq!(
                skipped.map_or_else(JsonFault::code, |()| "ok"),
                expected,
                "{text}"
            );
        }
    }
    assert_eq!(parse_value(b"\"\xff\"", 64), Err(JsonFault::BadUtf8));
    assert_eq!(parse_value(b"\xff\xfe{\0}\0", 64), Err(JsonFault::BadUtf8));
}

#[test]
fn counts_every_level() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(fault(&nested(64)), "ok");
    assert_eq!(fault(&nested(65)), "too_deep");
    assert_eq!(fault(&nested(100_000)), "too_deep");
    assert_eq!(fault(&"{\"a\":".repeat(100_000)), "too_deep");
}

#[test]
fn big_objects_are_checked_without_comparing_all_pairs() {
    let members: Vec<String> = (0..200_000).map(|n| format!("\"k\\u0030{n}\":0")).collect();
    let unique = format!("{{{}}}", members.join(","));
    assert_eq!(fault(&unique), "ok");
    let twice = format!("{{{},\"k01\":1}}", members.join(","));
    assert_eq!(fault(&twice), "duplicate_key");
}

#[test]
fn long_strings_end_where_they_end() {
    for length in 0..40 {
        for stop in ["\"", "\\\"\"", "\\u00e9\"", "\u{1f600}\""] {
            let text = format!("\"{}{stop}", "a".repeat(length));
            let expected: String = serde_json::from_str(&text).unwrap();
            assert_eq!(
                parse_value(text.as_bytes(), 1).unwrap().as_str(),
                Some(&*expected)
            );
        }
    }
}

#[test]
fn spans_are_the_bytes_that_stood_there() {
    let mut cursor = Cursor::new(
        b" {\"id\" : \"\\u0061\" ,\"n\":-1.0E+2 , \"x\":[ 1 , {} ] } ",
        8,
    )
    .unwrap();
    cursor.enter_object().unwrap();
    let mut found = Vec::new();
    while let Some(key) = cursor.next_key().unwrap() {
        found.push((key.into_owned(), cursor.skip().unwrap()));
    }
    cursor.finish().unwrap();
    let expected = [("id", "\"\\u0061\""), ("n", "-1.0E+2"), ("x", "[ 1 , {} ]")];
    assert!(found.iter().map(|(k, v)| (k.as_str(), *v)).eq(expected));
}

#[test]
fn rewinding_reads_the_value_again() {
    let mut cursor = Cursor::new(b"{\"a\":{\"b\":[1,{\"c\":2}]},\"d\":1}", 8).unwrap();
    cursor.enter_object().unwrap();
    assert_eq!(cursor.next_key().unwrap().as_deref(), Some("a"));
    let mark = cursor.mark();
    cursor.enter_object().unwrap();
    cursor.next_key().unwrap();
    cursor.enter_array().unwrap();
    assert!(cursor.string().is_err());
    cursor.rewind(mark);
    assert_eq!(cursor.skip().unwrap(), "{\"b\":[1,{\"c\":2}]}");
    assert_eq!(cursor.next_key().unwrap().as_deref(), Some("d"));
}

fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    match (ours, theirs) {
        (Value::Null, serde_json::Value::Null) => true,
        (Value::Bool(a), serde_json::Value::Bool(b)) => a == b,
        (Value::Number(a), serde_json::Value::Number(b)) => a.parse::<f64>().ok() == b.as_f64(),
        (Value::String(a), serde_json::Value::String(b)) => **a == **b,
        (Value::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(k, v)| b.get(&**k).is_some_and(|w| same(v, w)))
        }
        _ => false,
    }
}

/// Pieces that make near-JSON often enough to reach every branch.
fn near_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\"\\u0061\":", "\"b\":1",
            "1", "-", "0", "1.5", "e9", "1e400", "true", "false", "null", " ", "\n", "\\", "\\u",
            "\\ud800", "\\udc00", "\"\\ud83d\\ude00\"", "é", "\u{feff}", "nul",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn tree() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            prop::collection::vec((any::<String>(), inner), 0..20)
                .prop_map(|members| { serde_json::Value::Object(members.into_iter().collect()) }),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json(bytes in near_json()) {
        let theirs = serde_json::from_slice::<serde_json::Value>(&bytes);
        match parse_value(&bytes, 64) {
            Ok(ours) => prop_assert!(theirs.is_ok_and(|theirs| same(&ours, &theirs))),
            // The one thing that serde_json lets pass and we do not, at this depth.
            Err(fault) => prop_assert!(theirs.is_err() || fault == JsonFault::DuplicateKey),
        }
    }

    #[test]
    fn reads_back_what_serde_json_writes(tree in tree()) {
        let text = serde_json::to_vec_pretty(&tree).unwrap();
        let ours = parse_value(&text, 64).unwrap();
        prop_assert!(same(&ours, &tree));
        let mut cursor = Cursor::new(&text, 64).unwrap();
        prop_assert_eq!(cursor.skip().unwrap().as_bytes(), &text[..]);
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64), depth in 0_usize..4) {
        let _ = parse_value(&bytes, depth);
    }
}
