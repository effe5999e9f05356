//! A strict, bounded reader of JSON: what it accepts, every honest parser reads alike.
//!
//! Used for requests, tokens and cards. Rules (`a2a-protocol.md` i.4): UTF-8 without a byte order
//! mark, exactly one value, nothing but white space after it, a depth limit on every value
//! (skipped ones too), no member name twice in an object after unescaping, no lone surrogates,
//! finite numbers. It keeps its own stack, so input cannot overflow ours, and its cost is linear
//! but for sorting the keys of big objects.
//!
//! Two faces: [`Cursor`] pulls without building anything and borrows from the input;
//! [`parse_value`] builds a [`Value`].

mod fault;
mod keys;
mod place;
mod scan;
#[cfg(test)]
mod tests;
mod value;

pub use fault::JsonFault;
pub use value::{Value, parse_value};

use keys::{Keys, Seen};
use scan::{Text, plain_prefix, unescape};
use std::borrow::Cow;
use std::ops::Range;

/// Nesting that a request may have (`design.md` section 6).
pub const REQUEST_DEPTH: usize = 64;

/// What kind of value comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A digit or `-`.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
}

/// An open array or object.
#[derive(Debug, Clone, Copy)]
struct Frame {
    object: bool,
    first: bool,
    /// What was seen of outer objects' member names when this one was entered.
    outer: Seen,
}

/// A place to come back to; valid until the value that encloses it is left.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    at: usize,
    frames: usize,
    seen: Seen,
}

/// Pulls values from JSON text, in order, checking everything it passes.
///
/// After an error the cursor's position means nothing; [`Cursor::rewind`] makes it good again.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Where the text begins within that of which it is a part.
    base: usize,
    max_depth: usize,
    refuse_duplicates: bool,
    frames: Vec<Frame>,
    keys: Keys,
    last_key: Text,
    renames: Vec<Rename>,
}

/// A member name that is to be forwarded in another spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Where it stood in the text, without its quotes.
    pub place: Range<usize>,
    /// What takes its place.
    pub name: &'static str,
}

impl<'a> Cursor<'a> {
    /// A cursor over bytes that came from outside.
    ///
    /// # Errors
    /// [`JsonFault::BadUtf8`], [`JsonFault::Bom`] or [`JsonFault::TooLong`].
    pub fn new(bytes: &'a [u8], max_depth: usize) -> Result<Cursor<'a>, JsonFault> {
        let text = std::str::from_utf8(bytes).map_err(|_| JsonFault::BadUtf8)?;
        if text.starts_with('\u{feff}') {
            return Err(JsonFault::Bom);
        }
        if u32::try_from(text.len()).is_err() {
            return Err(JsonFault::TooLong);
        }
        Ok(Cursor::resume(text, max_depth))
    }

    /// A cursor over text that another cursor gave out as the raw text of a value.
    pub fn resume(text: &'a str, max_depth: usize) -> Cursor<'a> {
        Cursor {
            text,
            at: 0,
            base: 0,
            max_depth,
            refuse_duplicates: true,
            frames: Vec::with_capacity(8),
            keys: Keys::new(),
            last_key: Text::new(0, 0, false),
            renames: Vec::new(),
        }
    }

    /// The same cursor, letting duplicate names pass: to learn what a refused request looked like.
    #[must_use]
    pub fn allow_duplicates(mut self) -> Cursor<'a> {
        self.refuse_duplicates = false;
        self
    }

    /// The kind of the next value, which is not consumed.
    ///
    /// # Errors
    /// When no value can begin here.
    pub fn kind(&mut self) -> Result<Kind, JsonFault> {
        self.white_space();
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(JsonFault::Syntax),
            None => Err(JsonFault::Truncated),
        }
    }

    /// Enters an object; then call [`Cursor::next_key`] until it says `None`, consuming one value
    /// after each key.
    ///
    /// # Errors
    /// When the next value is no object, or too deep.
    pub fn enter_object(&mut self) -> Result<(), JsonFault> {
        self.enter(b'{', true)
    }

    /// Enters an array; then call [`Cursor::next_item`] until it says `false`, consuming one value
    /// after each `true`.
    ///
    /// # Errors
    /// When the next value is no array, or too deep.
    pub fn enter_array(&mut self) -> Result<(), JsonFault> {
        self.enter(b'[', false)
    }

    /// The next member's name, unescaped; `None` leaves the object.
    ///
    /// # Errors
    /// Any fault of the text up to the colon; [`JsonFault::DuplicateKey`] may come only when the
    /// object is left.
    pub fn next_key(&mut self) -> Result<Option<Cow<'a, str>>, JsonFault> {
        let Some(key) = self.next_key_text()? else {
            return Ok(None);
        };
        self.last_key = key;
        Ok(Some(key.decode(self.text)))
    }

    /// Notes that the name which [`Cursor::next_key`] gave last is to be forwarded as `name`.
    pub fn rename_key(&mut self, name: &'static str) {
        let place = self.last_key.place();
        self.renames.push(Rename { place, name });
    }

    /// What was noted, in the order of the text.
    pub fn take_renames(&mut self) -> Vec<Rename> {
        std::mem::take(&mut self.renames)
    }

    /// Whether the array has another item; `false` leaves the array.
    ///
    /// # Errors
    /// Any fault of the text up to the item.
    pub fn next_item(&mut self) -> Result<bool, JsonFault> {
        let frame = self.frames.last_mut().ok_or(JsonFault::Syntax)?;
        let first = std::mem::replace(&mut frame.first, false);
        self.white_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.frames.pop();
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// Consumes a string and unescapes it; borrowed when it held no escape.
    ///
    /// # Errors
    /// When the next value is no good string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, JsonFault> {
        self.white_space();
        Ok(self.string_text()?.decode(self.text))
    }

    /// Consumes a number and gives its text as it stood.
    ///
    /// # Errors
    /// When the next value is no good number.
    pub fn number(&mut self) -> Result<&'a str, JsonFault> {
        self.white_space();
        let start = self.at;
        self.number_text()?;
        Ok(&self.text[start..self.at])
    }

    /// Consumes `true` or `false`.
    ///
    /// # Errors
    /// When the next value is neither.
    pub fn boolean(&mut self) -> Result<bool, JsonFault> {
        match self.kind()? {
            Kind::Bool if self.peek() == Some(b't') => self.word("true").map(|()| true),
            Kind::Bool => self.word("false").map(|()| false),
            _ => Err(JsonFault::Syntax),
        }
    }

    /// Consumes `null` if it comes next, and says whether it did.
    ///
    /// # Errors
    /// When no value can begin here.
    pub fn null(&mut self) -> Result<bool, JsonFault> {
        if self.kind()? != Kind::Null {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// Consumes any value, checking all of it, and gives its text as it stood.
    ///
    /// # Errors
    /// Any fault within it.
    pub fn skip(&mut self) -> Result<&'a str, JsonFault> {
        self.white_space();
        let start = self.at;
        let base = self.frames.len();
        loop {
            match self.kind()? {
                Kind::Object => self.enter_object()?,
                Kind::Array => self.enter_array()?,
                Kind::String => {
                    self.string_text()?;
                }
                Kind::Number => self.number_text()?,
                Kind::Bool => {
                    self.boolean()?;
                }
                Kind::Null => self.word("null")?,
            }
            // A value is done or was just entered: go to the next one, leaving what ends here.
            loop {
                if self.frames.len() == base {
                    return Ok(&self.text[start..self.at]);
                }
                let more = match self.frames.last() {
                    Some(frame) if frame.object => self.next_key_text()?.is_some(),
                    _ => self.next_item()?,
                };
                if more {
                    break;
                }
            }
        }
    }

    /// Checks that nothing but white space is left.
    ///
    /// # Errors
    /// [`JsonFault::TrailingData`].
    pub fn finish(mut self) -> Result<(), JsonFault> {
        self.white_space();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(JsonFault::TrailingData)
        }
    }

    /// Remembers this place.
    pub fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            frames: self.frames.len(),
            seen: self.keys.seen(),
        }
    }

    /// Goes back to a place, also after an error; only from within the value that followed it.
    pub fn rewind(&mut self, mark: Mark) {
        self.at = mark.at;
        self.frames.truncate(mark.frames);
        self.keys.forget(mark.seen);
        let behind = |rename: &Rename| rename.place.start >= mark.at;
        while self.renames.last().is_some_and(behind) {
            self.renames.pop();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonFault> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(JsonFault::Syntax),
            None => Err(JsonFault::Truncated),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonFault> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else if word.as_bytes().starts_with(rest) {
            Err(JsonFault::Truncated)
        } else {
            Err(JsonFault::Syntax)
        }
    }

    fn enter(&mut self, open: u8, object: bool) -> Result<(), JsonFault> {
        self.white_space();
        self.expect(open)?;
        if self.frames.len() >= self.max_depth {
            return Err(JsonFault::TooDeep);
        }
        self.frames.push(Frame {
            object,
            first: true,
            outer: self.keys.seen(),
        });
        Ok(())
    }

    fn next_key_text(&mut self) -> Result<Option<Text>, JsonFault> {
        let frame = self.frames.last_mut().ok_or(JsonFault::Syntax)?;
        let first = std::mem::replace(&mut frame.first, false);
        let outer = frame.outer;
        self.white_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.frames.pop();
            return self.keys.leave(outer, self.text).map(|()| None);
        }
        if !first {
            self.expect(b',')?;
            self.white_space();
        }
        let key = self.string_text()?;
        if self.refuse_duplicates {
            self.keys.remember(key, outer, self.text)?;
        }
        self.white_space();
        self.expect(b':')?;
        Ok(Some(key))
    }

    fn string_text(&mut self) -> Result<Text, JsonFault> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_prefix(&self.text.as_bytes()[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::new(start, self.at - 1, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    let (_, length) = unescape(&self.text.as_bytes()[self.at..])?;
                    self.at += length;
                }
                Some(_) => return Err(JsonFault::ControlCharacter),
                None => return Err(JsonFault::Truncated),
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.peek() {
            _ if self.at > start => Ok(()),
            None => Err(JsonFault::Truncated),
            Some(_) => Err(JsonFault::Number),
        }
    }

    fn number_text(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        let mut huge = false;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(JsonFault::Number);
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            huge = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        // Only an exponent or more than 308 digits can leave the range of a double.
        if huge || self.at - start > 308 {
            match self.text[start..self.at].parse::<f64>() {
                Ok(number) if number.is_finite() => {}
                _ => return Err(JsonFault::Number),
            }
        }
        Ok(())
    }
}
