//! What the trailers of our answers say: status, message, and `google.rpc.Status` with an
//! `ErrorInfo`. All of it is constant, so the compiler puts it together.

use super::super::fault::{Entry, Fault};
use super::super::operation::Version;
use std::borrow::Cow;

/// The status of a gRPC answer, as its trailers say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStatus {
    /// `grpc-status`.
    pub code: u8,
    /// `grpc-message`, percent-encoded.
    pub message: Cow<'static, str>,
    /// `grpc-status-details-bin`: a `google.rpc.Status` in base64; empty for none.
    pub details: Cow<'static, str>,
}

/// The status that says `fault`. In 0.3 the message of an error of A2A starts with its name: that
/// is what clients of 0.3 tell it by.
pub(in crate::a2a) fn render(fault: Fault, version: Version) -> GrpcStatus {
    let entry = fault.entry();
    let named = version == Version::V0_3 && entry.domain == "a2a-protocol.org";
    let details = DETAILS.get(fault as usize).map(Text::as_str);
    GrpcStatus {
        code: entry.grpc_status,
        // Our texts need no percent-encoding.
        message: match named {
            true => Cow::Owned(format!("{}: {}", entry.error_type, entry.message)),
            false => Cow::Borrowed(entry.message),
        },
        details: Cow::Borrowed(details.unwrap_or_default()),
    }
}

/// Longest text of the table.
const ROOM: usize = 512;

/// A text that the compiler wrote.
#[derive(Clone, Copy)]
struct Text {
    bytes: [u8; ROOM],
    length: usize,
}

impl Text {
    const EMPTY: Text = Text {
        bytes: [0; ROOM],
        length: 0,
    };

    const fn push(mut self, byte: u8) -> Text {
        self.bytes[self.length] = byte;
        self.length += 1;
        self
    }

    const fn all(mut self, bytes: &[u8]) -> Text {
        let mut at = 0;
        while at < bytes.len() {
            self = self.push(bytes[at]);
            at += 1;
        }
        self
    }

    const fn varint(mut self, mut value: usize) -> Text {
        while value > 0x7f {
            self = self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8)
    }

    /// A length-delimited field.
    const fn field(self, number: u8, bytes: &[u8]) -> Text {
        self.push(number << 3 | 2).varint(bytes.len()).all(bytes)
    }

    const fn message(self, number: u8, message: &Text) -> Text {
        self.field(number, message.bytes.split_at(message.length).0)
    }

    /// In base64 without padding, as gRPC wants binary fields.
    const fn base64(&self) -> Text {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = Text::EMPTY;
        let mut at = 0;
        while at < self.length {
            let have = if self.length - at < 3 {
                self.length - at
            } else {
                3
            };
            let mut group = 0_usize;
            let mut i = 0;
            while i < 3 {
                group = group << 8
                    | if i < have {
                        self.bytes[at + i] as usize
                    } else {
                        0
                    };
                i += 1;
            }
            let mut digit = 0;
            while digit <= have {
                out = out.push(ALPHABET[group >> (18 - 6 * digit) & 63]);
                digit += 1;
            }
            at += 3;
        }
        out
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// `google.rpc.Status { code, message, details: [Any of ErrorInfo] }`.
const fn details(entry: &Entry) -> Text {
    let code = Text::EMPTY
        .field(1, b"code")
        .field(2, entry.public_reason.as_bytes());
    let info = Text::EMPTY
        .field(1, entry.reason.as_bytes())
        .field(2, entry.domain.as_bytes())
        .message(3, &code);
    let any = Text::EMPTY
        .field(1, b"type.googleapis.com/google.rpc.ErrorInfo")
        .message(2, &info);
    Text::EMPTY
        .push(1 << 3)
        .varint(entry.grpc_status as usize)
        .field(2, entry.message.as_bytes())
        .message(3, &any)
        .base64()
}

/// Of every fault, in the order of [`Fault::ALL`].
static DETAILS: [Text; Fault::ALL.len()] = {
    let mut table = [Text::EMPTY; Fault::ALL.len()];
    let mut at = 0;
    while at < table.len() {
        table[Fault::ALL[at] as usize] = details(Fault::ALL[at].entry());
        at += 1;
    }
    table
};
