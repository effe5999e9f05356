//! An incremental JSON tokenizer: any chunks in, tokens out, bounded memory, no recursion.
//!
//! Strict RFC 8259 with valid UTF-8. It keeps no text that nobody asked for, and text that lies
//! within one chunk without escapes is lent, not copied.

use super::json_number::Digits;
use super::json_text::{Character, plain_length};

/// Deepest nesting that is read. Agents put free-form data into artifacts, so this is wider than
/// what we take from callers; one bit per level is kept.
const MAX_DEPTH: usize = 512;

/// Longest number that is kept when somebody wants it; more digits make it not whole.
const NUMBER_ROOM: usize = 40;

/// What opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
}

/// Text as far as it was wanted, escapes undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text<'a> {
    /// UTF-8, unless it was cut within a character.
    pub(super) bytes: &'a [u8],
    /// False when it was cut, or held half of a surrogate pair.
    pub(super) whole: bool,
}

impl<'a> Text<'a> {
    /// The longest prefix that is a string.
    pub(super) fn prefix(self) -> &'a str {
        match std::str::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or(""),
        }
    }
}

/// One step through a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open(Shape),
    Close,
    Key(Text<'a>),
    Text(Text<'a>),
    Number(Text<'a>),
    Bool,
    Null,
}

/// How many bytes of the next key and the next value are worth keeping; 0 keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wish {
    pub(super) key: usize,
    pub(super) value: usize,
}

/// Why a document is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Not JSON, or not UTF-8.
    Syntax,
    /// Deeper than [`MAX_DEPTH`].
    TooDeep,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Value,
    FirstItem,
    FirstKey,
    NextKey,
    Colon,
    After,
    Text,
    Escape,
    Hex,
    Number(Digits),
    Word(&'static [u8], Word),
    Done,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Bool,
    Null,
}

/// A finished token whose text is still to be looked up.
enum Step {
    More,
    Open(Shape),
    Close,
    Text(Option<(usize, usize)>),
    Number,
    Bool,
    Null,
}

/// The tokenizer; see the module.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// One bit per open level: set for an object.
    levels: [u64; MAX_DEPTH / 64],
    depth: usize,
    is_key: bool,
    /// Text that did not lie in one run.
    kept: Vec<u8>,
    room: usize,
    spilled: bool,
    whole: bool,
    character: Character,
    unit: u16,
    digits: u8,
    high: u16,
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        Scanner {
            state: State::Value,
            levels: [0; MAX_DEPTH / 64],
            depth: 0,
            is_key: false,
            kept: Vec::new(),
            room: 0,
            spilled: false,
            whole: true,
            character: Character::default(),
            unit: 0,
            digits: 0,
            high: 0,
        }
    }

    /// Starts a new document, keeping the allocation.
    pub(super) fn reset(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        *self = Scanner::new();
        self.kept = kept;
    }

    /// Whether the root value is complete.
    pub(super) fn closed(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The next token of `bytes` from `at` on; `None` when the chunk is used up.
    pub(super) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        at: &mut usize,
        wish: Wish,
    ) -> Result<Option<Token<'a>>, Flaw> {
        while let Some(&byte) = bytes.get(*at) {
            let step = match self.state {
                State::Text => self.text(bytes, at)?,
                State::Escape => self.escape(byte, at)?,
                State::Hex => self.hex(byte, at)?,
                State::Number(digits) => self.number(digits, byte, at)?,
                State::Word(rest, word) => self.word(rest, word, byte, at)?,
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {
                    *at += 1;
                    Step::More
                }
                _ => self.structure(byte, at, wish)?,
            };
            let room = self.room;
            return Ok(Some(match step {
                Step::More => continue,
                Step::Open(shape) => Token::Open(shape),
                Step::Close => Token::Close,
                Step::Bool => Token::Bool,
                Step::Null => Token::Null,
                Step::Number => Token::Number(Text {
                    bytes: &self.kept,
                    whole: self.whole,
                }),
                Step::Text(run) => {
                    let text = match run {
                        Some((from, to)) => Text {
                            bytes: &bytes[from..to.min(from.saturating_add(room))],
                            whole: to - from <= room,
                        },
                        None => Text {
                            bytes: &self.kept,
                            whole: self.whole,
                        },
                    };
                    if self.is_key {
                        Token::Key(text)
                    } else {
                        Token::Text(text)
                    }
                }
            }));
        }
        Ok(None)
    }

    fn structure(&mut self, byte: u8, at: &mut usize, wish: Wish) -> Result<Step, Flaw> {
        let step = match (self.state, byte) {
            (State::FirstItem, b']') | (State::FirstKey, b'}') => self.close(),
            (State::FirstKey | State::NextKey, b'"') => {
                self.begin_text(true, wish.key);
                Step::More
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Step::More
            }
            (State::After, b',') => {
                self.state = if self.in_object() {
                    State::NextKey
                } else {
                    State::Value
                };
                Step::More
            }
            (State::After, b'}') if self.in_object() => self.close(),
            (State::After, b']') if !self.in_object() => self.close(),
            (State::Value | State::FirstItem, _) => return self.value(byte, at, wish),
            _ => return Err(Flaw::Syntax),
        };
        *at += 1;
        Ok(step)
    }

    fn value(&mut self, byte: u8, at: &mut usize, wish: Wish) -> Result<Step, Flaw> {
        let step = match byte {
            b'{' => self.open(Shape::Object)?,
            b'[' => self.open(Shape::Array)?,
            b'"' => {
                self.begin_text(false, wish.value);
                Step::More
            }
            b't' => self.begin_word(b"rue", Word::Bool),
            b'f' => self.begin_word(b"alse", Word::Bool),
            b'n' => self.begin_word(b"ull", Word::Null),
            b'-' | b'0'..=b'9' => {
                self.begin_text(false, wish.value.min(NUMBER_ROOM));
                self.keep(&[byte]);
                self.state = State::Number(Digits::first(byte));
                Step::More
            }
            _ => return Err(Flaw::Syntax),
        };
        *at += 1;
        Ok(step)
    }

    fn open(&mut self, shape: Shape) -> Result<Step, Flaw> {
        if self.depth == MAX_DEPTH {
            return Err(Flaw::TooDeep);
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        match shape {
            Shape::Object => {
                self.levels[word] |= bit;
                self.state = State::FirstKey;
            }
            Shape::Array => {
                self.levels[word] &= !bit;
                self.state = State::FirstItem;
            }
        }
        self.depth += 1;
        Ok(Step::Open(shape))
    }

    fn close(&mut self) -> Step {
        self.depth = self.depth.saturating_sub(1);
        self.after_value();
        Step::Close
    }

    fn in_object(&self) -> bool {
        let Some(top) = self.depth.checked_sub(1) else {
            return false;
        };
        self.levels[top / 64] & (1 << (top % 64)) != 0
    }

    fn after_value(&mut self) {
        self.state = if self.depth == 0 {
            State::Done
        } else {
            State::After
        };
    }

    fn begin_word(&mut self, rest: &'static [u8], word: Word) -> Step {
        self.state = State::Word(rest, word);
        Step::More
    }

    fn word(
        &mut self,
        rest: &'static [u8],
        word: Word,
        byte: u8,
        at: &mut usize,
    ) -> Result<Step, Flaw> {
        match rest {
            [next, more @ ..] if *next == byte => {
                *at += 1;
                if !more.is_empty() {
                    self.state = State::Word(more, word);
                    return Ok(Step::More);
                }
                self.after_value();
                Ok(match word {
                    Word::Bool => Step::Bool,
                    Word::Null => Step::Null,
                })
            }
            _ => Err(Flaw::Syntax),
        }
    }

    fn number(&mut self, digits: Digits, byte: u8, at: &mut usize) -> Result<Step, Flaw> {
        match digits.next(byte) {
            Some(next) => {
                self.keep(&[byte]);
                self.state = State::Number(next);
                *at += 1;
                Ok(Step::More)
            }
            // The byte belongs to what follows; it is looked at again.
            None if digits.may_end() => {
                self.after_value();
                Ok(Step::Number)
            }
            None => Err(Flaw::Syntax),
        }
    }

    fn begin_text(&mut self, is_key: bool, room: usize) {
        self.is_key = is_key;
        self.room = room;
        self.kept.clear();
        self.spilled = false;
        self.whole = true;
        self.high = 0;
        self.state = State::Text;
    }

    fn keep(&mut self, run: &[u8]) {
        let free = self.room - self.kept.len();
        self.kept.extend_from_slice(&run[..run.len().min(free)]);
        self.whole &= run.len() <= free;
    }

    fn text(&mut self, bytes: &[u8], at: &mut usize) -> Result<Step, Flaw> {
        let from = *at;
        if self.high != 0 && bytes[from] != b'\\' {
            self.lone_surrogate();
        }
        while let Some(&byte) = bytes.get(*at) {
            if self.character.is_open() {
                self.character = self.character.go_on(byte).ok_or(Flaw::Syntax)?;
                *at += 1;
                continue;
            }
            match byte {
                b'"' => {
                    let to = *at;
                    *at += 1;
                    if self.is_key {
                        self.state = State::Colon;
                    } else {
                        self.after_value();
                    }
                    if !self.spilled {
                        return Ok(Step::Text(Some((from, to))));
                    }
                    self.keep(&bytes[from..to]);
                    return Ok(Step::Text(None));
                }
                b'\\' => {
                    self.spill(&bytes[from..*at]);
                    *at += 1;
                    self.state = State::Escape;
                    return Ok(Step::More);
                }
                0..0x20 => return Err(Flaw::Syntax),
                0x80.. => {
                    self.character = Character::begin(byte).ok_or(Flaw::Syntax)?;
                    *at += 1;
                }
                _ => *at += plain_length(&bytes[*at..]),
            }
        }
        self.spill(&bytes[from..]);
        Ok(Step::More)
    }

    fn spill(&mut self, run: &[u8]) {
        self.keep(run);
        self.spilled = true;
    }

    fn escape(&mut self, byte: u8, at: &mut usize) -> Result<Step, Flaw> {
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                (self.unit, self.digits) = (0, 0);
                self.state = State::Hex;
                *at += 1;
                return Ok(Step::More);
            }
            _ => return Err(Flaw::Syntax),
        };
        if self.high != 0 {
            self.lone_surrogate();
        }
        self.keep(&[plain]);
        self.state = State::Text;
        *at += 1;
        Ok(Step::More)
    }

    fn hex(&mut self, byte: u8, at: &mut usize) -> Result<Step, Flaw> {
        let digit = char::from(byte).to_digit(16).ok_or(Flaw::Syntax)?;
        self.unit = self.unit << 4 | digit as u16;
        self.digits += 1;
        *at += 1;
        if self.digits == 4 {
            self.state = State::Text;
            self.code_unit();
        }
        Ok(Step::More)
    }

    fn code_unit(&mut self) {
        let unit = self.unit;
        let code = match (self.high, unit) {
            (0, 0xD800..0xDC00) => {
                self.high = unit;
                return;
            }
            (0, _) => u32::from(unit),
            (high, 0xDC00..0xE000) => {
                self.high = 0;
                0x10000 + (u32::from(high - 0xD800) << 10) + u32::from(unit - 0xDC00)
            }
            (_, _) => {
                self.lone_surrogate();
                return self.code_unit();
            }
        };
        match char::from_u32(code) {
            Some(character) => self.keep(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.lone_surrogate(),
        }
    }

    fn lone_surrogate(&mut self) {
        self.high = 0;
        self.whole = false;
    }
}

#[cfg(test)]
mod tests;
