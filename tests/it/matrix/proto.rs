//! Protobuf and gRPC frames, as much as tests write and read.

/// A field of kind string.
pub fn text(number: u32, value: &str) -> Vec<u8> {
    bytes(number, value.as_bytes())
}

/// A field of kind bytes or message.
pub fn bytes(number: u32, value: &[u8]) -> Vec<u8> {
    let mut field = varint(u64::from(number << 3 | 2));
    field.extend(varint(value.len() as u64));
    field.extend_from_slice(value);
    field
}

/// A field of kind varint.
pub fn number(number: u32, value: u64) -> Vec<u8> {
    let mut field = varint(u64::from(number << 3));
    field.extend(varint(value));
    field
}

/// Fields one after another.
pub fn message(fields: &[Vec<u8>]) -> Vec<u8> {
    fields.concat()
}

/// One uncompressed gRPC message.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

/// The messages of a gRPC body.
pub fn frames(mut body: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let Some((head, rest)) = body.split_at_checked(5) {
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let (message, rest) = rest.split_at(length);
        messages.push(message);
        body = rest;
    }
    messages
}

/// The first field of this number that has bytes, if these are a message.
pub fn find(message: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut rest = message;
    while !rest.is_empty() {
        let key = read_varint(&mut rest)?;
        match key & 7 {
            0 => {
                read_varint(&mut rest)?;
            }
            2 => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                let (value, after) = rest.split_at_checked(length)?;
                rest = after;
                if key >> 3 == u64::from(wanted) {
                    return Some(value);
                }
            }
            _ => return None,
        }
    }
    None
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
