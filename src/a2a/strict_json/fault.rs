//! What can be wrong with JSON text.

use std::fmt;

/// Why bytes are not one clear JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonFault {
    /// Not UTF-8.
    BadUtf8,
    /// Begins with a byte order mark.
    Bom,
    /// Longer than 4 GiB, which positions cannot count.
    TooLong,
    /// Ends inside a value, or holds none.
    Truncated,
    /// Not JSON.
    Syntax,
    /// A bare control character in a string.
    ControlCharacter,
    /// Something other than white space follows the value.
    TrailingData,
    /// Nested deeper than the limit.
    TooDeep,
    /// A member name occurs twice in one object.
    DuplicateKey,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that is not finite, or not spelled as JSON wants.
    Number,
}

impl JsonFault {
    /// The stable code for logs and records.
    pub fn code(self) -> &'static str {
        match self {
            JsonFault::BadUtf8 => "bad_utf8",
            JsonFault::Bom => "bom",
            JsonFault::TooLong => "too_long",
            JsonFault::Truncated => "truncated",
            JsonFault::Syntax => "syntax",
            JsonFault::ControlCharacter => "control_character",
            JsonFault::TrailingData => "trailing_data",
            JsonFault::TooDeep => "too_deep",
            JsonFault::DuplicateKey => "duplicate_key",
            JsonFault::LoneSurrogate => "lone_surrogate",
            JsonFault::Number => "number",
        }
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::error::Error for JsonFault {}
