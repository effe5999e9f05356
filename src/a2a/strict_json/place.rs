//! Where in the text a cursor is: for those who put something in.

use super::Cursor;

impl<'a> Cursor<'a> {
    /// The same cursor over text that begins at `base` of a longer one.
    #[must_use]
    pub fn based_at(mut self, base: usize) -> Cursor<'a> {
        self.base = base;
        self
    }

    /// The position behind what was consumed.
    pub fn offset(&self) -> usize {
        self.base + self.at
    }

    /// The position at which the next value, name or bracket begins.
    pub fn ahead(&mut self) -> usize {
        self.white_space();
        self.offset()
    }

    /// The position behind the brace of the object that comes next, and whether it has no member;
    /// `None` when no object comes next.
    pub fn object_ahead(&mut self) -> Option<(usize, bool)> {
        self.white_space();
        if self.peek() != Some(b'{') {
            return None;
        }
        let first = self.at + 1;
        let empty = self.white_space_from(first).1 == Some(b'}');
        Some((self.base + first, empty))
    }

    /// The position behind the comma that comes next, if one does.
    pub fn comma_ahead(&self) -> Option<usize> {
        match self.white_space_from(self.at) {
            (at, Some(b',')) => Some(self.base + at + 1),
            (_, _) => None,
        }
    }

    /// The first byte from `at` on that is no white space, and where it is.
    fn white_space_from(&self, at: usize) -> (usize, Option<u8>) {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        let length = length.unwrap_or(rest.len());
        (at + length, rest.get(length).copied())
    }
}
