//! The grammar of JSON numbers, byte by byte.

/// Where in a number we are (RFC 8259 section 6).
#[derive(Debug, Clone, Copy)]
pub(super) enum Digits {
    Sign,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

impl Digits {
    /// The state behind a first byte, which is a minus sign or a digit.
    pub(super) fn first(byte: u8) -> Digits {
        match byte {
            b'-' => Digits::Sign,
            b'0' => Digits::Zero,
            _ => Digits::Whole,
        }
    }

    /// The state behind `byte`; `None` when it does not go on with the number.
    pub(super) fn next(self, byte: u8) -> Option<Digits> {
        Some(match (self, byte) {
            (Digits::Sign, b'0') => Digits::Zero,
            (Digits::Sign | Digits::Whole, b'0'..=b'9') => Digits::Whole,
            (Digits::Zero | Digits::Whole, b'.') => Digits::Point,
            (Digits::Point | Digits::Fraction, b'0'..=b'9') => Digits::Fraction,
            (Digits::Zero | Digits::Whole | Digits::Fraction, b'e' | b'E') => Digits::Exponent,
            (Digits::Exponent, b'+' | b'-') => Digits::ExponentSign,
            (Digits::Exponent | Digits::ExponentSign | Digits::Power, b'0'..=b'9') => Digits::Power,
            _ => return None,
        })
    }

    /// Whether what was read is a whole number already.
    pub(super) fn may_end(self) -> bool {
        match self {
            Digits::Zero | Digits::Whole | Digits::Fraction | Digits::Power => true,
            Digits::Sign | Digits::Point | Digits::Exponent | Digits::ExponentSign => false,
        }
    }
}
