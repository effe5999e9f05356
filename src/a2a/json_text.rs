//! UTF-8 within JSON strings, byte by byte.

use super::byte_run::run_length;

/// How many bytes can stand in a string and mean only themselves.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    run_length(bytes, |byte| {
        (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte >= 0x80)
    })
}

/// Where within a character we are (RFC 3629 section 4: no overlong forms, no surrogates).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Character {
    /// Continuation bytes to come.
    left: u8,
    /// The range of the next one.
    low: u8,
    high: u8,
}

impl Character {
    /// Whether a continuation byte must come.
    pub(super) fn is_open(self) -> bool {
        self.left > 0
    }

    /// The state behind a first byte that is not ASCII; `None` if no character begins with it.
    pub(super) fn begin(byte: u8) -> Option<Character> {
        let (left, low, high) = match byte {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xE1..=0xEC | 0xEE..=0xEF => (2, 0x80, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => return None,
        };
        Some(Character { left, low, high })
    }

    /// The state behind a continuation byte; `None` if it cannot be one here.
    pub(super) fn go_on(self, byte: u8) -> Option<Character> {
        (self.low..=self.high).contains(&byte).then_some(Character {
            left: self.left.saturating_sub(1),
            low: 0x80,
            high: 0xBF,
        })
    }
}
