//! What can be wrong with protobuf bytes.

use std::fmt;

/// Why bytes are not one clear protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtoFault {
    /// Ends inside a field, or a length reaches beyond the end of its message.
    Truncated,
    /// A varint of more than ten bytes or 64 bits; a tag or length not spelled in the fewest bytes.
    Varint,
    /// A field number of zero or beyond 2^29 - 1.
    FieldNumber,
    /// A group, a wire type that does not exist, or not the one of a known field.
    WireType,
    /// A field that may occur once occurs twice, or two members of one `oneof` occur: parsers
    /// merge them or take the last.
    DuplicateField,
    /// A field that the message does not have, where all fields must be known.
    UnknownField,
    /// A map has a key twice.
    DuplicateKey,
    /// A `string` is not UTF-8.
    BadUtf8,
    /// Nested deeper than the limit.
    TooDeep,
}

impl ProtoFault {
    /// The stable code for logs and records.
    pub fn code(self) -> &'static str {
        match self {
            ProtoFault::Truncated => "truncated",
            ProtoFault::Varint => "varint",
            ProtoFault::FieldNumber => "field_number",
            ProtoFault::WireType => "wire_type",
            ProtoFault::DuplicateField => "duplicate_field",
            ProtoFault::UnknownField => "unknown_field",
            ProtoFault::DuplicateKey => "duplicate_key",
            ProtoFault::BadUtf8 => "bad_utf8",
            ProtoFault::TooDeep => "too_deep",
        }
    }
}

impl fmt::Display for ProtoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::error::Error for ProtoFault {}
