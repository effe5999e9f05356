//! Protobuf and gRPC frames, as much as has to be read.

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
