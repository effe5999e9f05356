//! Bytes of a reply that may leave.

use bytes::{BufMut, Bytes, BytesMut};

/// Bytes that may leave, without a copy in the usual case of one piece.
pub(super) enum Released {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Released {
    pub(super) fn add(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        *self = match std::mem::replace(self, Released::Nothing) {
            Released::Nothing => Released::One(bytes),
            Released::One(first) => {
                let mut buffer = BytesMut::with_capacity(first.len() + bytes.len());
                buffer.put_slice(&first);
                buffer.put_slice(&bytes);
                Released::Many(buffer)
            }
            Released::Many(mut buffer) => {
                buffer.put_slice(&bytes);
                Released::Many(buffer)
            }
        };
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Released::Nothing => 0,
            Released::One(bytes) => bytes.len(),
            Released::Many(buffer) => buffer.len(),
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Released::Nothing => Bytes::new(),
            Released::One(bytes) => bytes,
            Released::Many(buffer) => buffer.freeze(),
        }
    }
}
