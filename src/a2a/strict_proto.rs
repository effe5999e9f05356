//! A strict, bounded reader of protobuf: what it accepts, every honest decoder reads alike.
//!
//! Rules (`a2a-protocol.md` i.3 and i.4): decoders take the last of two scalars and merge two
//! messages, so a field that may occur once occurs once; the same for the members of a `oneof` and
//! the keys of a map. A known field has its own wire type, there are no groups, tags and lengths
//! are spelled in the fewest bytes, strings are UTF-8, and messages are nested at most 64 deep.
//! Where all fields must be known, others are refused. The reader keeps its own stack, so input
//! cannot overflow ours; it copies nothing, and its cost is linear but for sorting the keys of maps.

mod fault;
pub mod table;
#[cfg(test)]
mod tests;

pub use fault::ProtoFault;
pub use table::{Field, Kind, Message, Occurs};

use std::ops::Range;

/// Nesting that a message may have (`design.md` section 6).
pub const MAX_DEPTH: usize = 64;

/// Nesting that an agent's message may have: where decoders stop. Free-form data takes three levels
/// of protobuf for one of JSON.
pub const MAX_REPLY_DEPTH: usize = 100;

/// Highest field number there is.
const MAX_NUMBER: u64 = (1 << 29) - 1;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// What happens to fields that a table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// They are refused in closed messages, and pass in open ones: requests.
    Refused,
    /// They pass: replies, which decide nothing by fields that we do not know.
    Passed,
}

/// The value of a known field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `string`.
    Text(&'a str),
    /// `bytes`.
    Bytes(&'a [u8]),
    /// `bool`, an enum, or an integer, before it is cut to its type.
    Varint(u64),
    /// `double`.
    Double(f64),
    /// A message, as its bytes; [`Cursor::enter`] reads it.
    Message(&'a [u8]),
}

/// A known field that was found.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    /// Which.
    pub field: &'static Field,
    /// Its value.
    pub value: Value<'a>,
    /// Where the whole field stands, tag included, in the bytes that the cursor was made of.
    pub at: Range<usize>,
}

impl Item<'_> {
    /// The field's name.
    pub fn name(&self) -> &'static str {
        self.field.name
    }
}

impl<'a> Item<'a> {
    /// The text of a `string`; empty for anything else, which a table rules out.
    pub fn text(&self) -> &'a str {
        match self.value {
            Value::Text(text) => text,
            Value::Bytes(_) | Value::Varint(_) | Value::Double(_) | Value::Message(_) => "",
        }
    }

    /// Where the value stands: what follows tag and length.
    pub fn value_at(&self) -> Range<usize> {
        let length = match self.value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) | Value::Message(bytes) => bytes.len(),
            Value::Double(_) => 8,
            Value::Varint(value) => varint_length(value).min(self.at.len()),
        };
        self.at.end.saturating_sub(length)..self.at.end
    }
}

/// The fewest bytes that spell `value`.
pub const fn varint_length(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// An open message.
#[derive(Debug)]
struct Frame<'a> {
    table: &'static Message,
    end: usize,
    /// Which fields of the table occurred, by position.
    seen: u64,
    /// Whether a member of the `oneof` occurred.
    chosen: bool,
    /// Of a map's entry: its key.
    key: &'a str,
    /// How many keys of outer maps there are.
    keys: usize,
}

/// Pulls the fields of a message, in order, checking everything it passes.
///
/// [`Cursor::next`] gives the fields of the innermost message that was entered; `None` leaves it.
/// A message that is not entered is checked like the rest. After an error the cursor's position
/// means nothing.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    unknown: Unknown,
    frames: Vec<Frame<'a>>,
    /// A message that was found and not yet entered; `at` is where it begins.
    pending: Option<(&'static Message, usize)>,
    keys: Vec<&'a str>,
}

impl<'a> Cursor<'a> {
    /// A cursor within a message that is all of `bytes`.
    pub fn new(bytes: &'a [u8], table: &'static Message, unknown: Unknown) -> Cursor<'a> {
        let mut frames = Vec::with_capacity(8);
        frames.push(Frame {
            table,
            end: bytes.len(),
            seen: 0,
            chosen: false,
            key: "",
            keys: 0,
        });
        Cursor {
            bytes,
            at: 0,
            unknown,
            frames,
            pending: None,
            keys: Vec::new(),
        }
    }

    /// The next known field of the innermost message; `None` leaves the message.
    ///
    /// # Errors
    /// Any fault up to the end of the field, and within a message that was passed over.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'a>>, ProtoFault> {
        if self.pending.is_some() {
            self.skip()?;
        }
        self.step()
    }

    /// Enters the message that was just found. Without one, nothing happens.
    ///
    /// # Errors
    /// [`ProtoFault::TooDeep`].
    pub fn enter(&mut self) -> Result<(), ProtoFault> {
        let Some((table, end)) = self.pending.take() else {
            return Ok(());
        };
        let deepest = match self.unknown {
            Unknown::Refused => MAX_DEPTH,
            Unknown::Passed => MAX_REPLY_DEPTH,
        };
        if self.frames.len() >= deepest {
            return Err(ProtoFault::TooDeep);
        }
        self.frames.push(Frame {
            table,
            end,
            seen: 0,
            chosen: false,
            key: "",
            keys: self.keys.len(),
        });
        Ok(())
    }

    /// Enters the message that was just found and gives each of its fields to `field`.
    ///
    /// # Errors
    /// Those of [`Cursor::next`], and whatever `field` returns.
    pub fn each<E: From<ProtoFault>>(
        &mut self,
        mut field: impl FnMut(&mut Cursor<'a>, &Item<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter()?;
        while let Some(item) = self.next()? {
            field(self, &item)?;
        }
        Ok(())
    }

    /// Checks the message that was just found without entering it. Without one, nothing happens.
    ///
    /// # Errors
    /// Any fault within it.
    pub fn skip(&mut self) -> Result<(), ProtoFault> {
        let base = self.frames.len();
        self.enter()?;
        while self.frames.len() > base {
            self.step()?;
            self.enter()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Item<'a>>, ProtoFault> {
        loop {
            let Some((table, end)) = self.frames.last().map(|frame| (frame.table, frame.end))
            else {
                return Ok(None);
            };
            if self.at >= end {
                return self.leave().map(|()| None);
            }
            let start = self.at;
            let (number, wire_type) = self.tag(end)?;
            let known = table
                .fields
                .iter()
                .position(|field| u64::from(field.number) == number)
                .and_then(|index| Some((index, table.fields.get(index)?)));
            match known {
                Some((index, field)) => {
                    self.note(index, field)?;
                    let value = self.value(field, wire_type, end)?;
                    return Ok(Some(Item {
                        field,
                        value,
                        at: start..self.pending.map_or(self.at, |(_, end)| end),
                    }));
                }
                None if table.closed && self.unknown == Unknown::Refused => {
                    return Err(ProtoFault::UnknownField);
                }
                None => self.pass(wire_type, end)?,
            }
        }
    }

    fn leave(&mut self) -> Result<(), ProtoFault> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        if let Some(keys) = self.keys.get_mut(frame.keys..) {
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair.first() == pair.last()) {
                return Err(ProtoFault::DuplicateKey);
            }
        }
        self.keys.truncate(frame.keys);
        if frame.table.map_entry {
            self.keys.push(frame.key);
        }
        Ok(())
    }

    /// Notes that a field occurred.
    fn note(&mut self, index: usize, field: &Field) -> Result<(), ProtoFault> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let bit = 1_u64.checked_shl(index as u32).unwrap_or(0);
        let again = match field.occurs {
            Occurs::Many => false,
            Occurs::Once => frame.seen & bit != 0,
            Occurs::OneOf => std::mem::replace(&mut frame.chosen, true),
        };
        frame.seen |= bit;
        if again {
            return Err(ProtoFault::DuplicateField);
        }
        Ok(())
    }

    fn value(
        &mut self,
        field: &Field,
        wire_type: u64,
        end: usize,
    ) -> Result<Value<'a>, ProtoFault> {
        let expected = match field.kind {
            Kind::Text | Kind::Bytes | Kind::Message(_) => DELIMITED,
            Kind::Varint => VARINT,
            Kind::Double => FIXED_64,
        };
        if wire_type != expected {
            return Err(ProtoFault::WireType);
        }
        match field.kind {
            Kind::Text => {
                let bytes = self.delimited(end)?;
                let text = std::str::from_utf8(bytes).map_err(|_| ProtoFault::BadUtf8)?;
                if let Some(frame) = self.frames.last_mut()
                    && frame.table.map_entry
                    && field.number == 1
                {
                    frame.key = text;
                }
                Ok(Value::Text(text))
            }
            Kind::Bytes => self.delimited(end).map(Value::Bytes),
            Kind::Varint => self.varint(end).map(Value::Varint),
            Kind::Double => {
                let bytes = self.take(8, end)?;
                let bits = bytes.try_into().map_err(|_| ProtoFault::Truncated)?;
                Ok(Value::Double(f64::from_le_bytes(bits)))
            }
            Kind::Message(table) => {
                let bytes = self.delimited(end)?;
                self.pending = Some((table, self.at));
                self.at -= bytes.len();
                Ok(Value::Message(bytes))
            }
        }
    }

    /// Passes over the value of a field that is not known.
    fn pass(&mut self, wire_type: u64, end: usize) -> Result<(), ProtoFault> {
        match wire_type {
            VARINT => self.varint(end).map(drop),
            FIXED_64 => self.take(8, end).map(drop),
            DELIMITED => self.delimited(end).map(drop),
            FIXED_32 => self.take(4, end).map(drop),
            _ => Err(ProtoFault::WireType),
        }
    }

    /// Field number and wire type.
    fn tag(&mut self, end: usize) -> Result<(u64, u64), ProtoFault> {
        let tag = self.minimal(end)?;
        let number = tag >> 3;
        if number == 0 || number > MAX_NUMBER {
            return Err(ProtoFault::FieldNumber);
        }
        Ok((number, tag & 7))
    }

    fn delimited(&mut self, end: usize) -> Result<&'a [u8], ProtoFault> {
        let length = self.minimal(end)?;
        self.take(
            usize::try_from(length).map_err(|_| ProtoFault::Truncated)?,
            end,
        )
    }

    /// A varint that says where things are: decoders differ in how many bytes they allow it.
    fn minimal(&mut self, end: usize) -> Result<u64, ProtoFault> {
        let start = self.at;
        let value = self.varint(end)?;
        if self.at - start != varint_length(value) {
            return Err(ProtoFault::Varint);
        }
        Ok(value)
    }

    fn varint(&mut self, end: usize) -> Result<u64, ProtoFault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = match self.take(1, end)? {
                [byte] => u64::from(*byte),
                _ => return Err(ProtoFault::Truncated),
            };
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                return Err(ProtoFault::Varint);
            }
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoFault::Varint)
    }

    fn take(&mut self, count: usize, end: usize) -> Result<&'a [u8], ProtoFault> {
        let to = self.at.checked_add(count).filter(|to| *to <= end);
        let to = to.ok_or(ProtoFault::Truncated)?;
        let bytes = self.bytes.get(self.at..to).ok_or(ProtoFault::Truncated)?;
        self.at = to;
        Ok(bytes)
    }
}

/// Checks a whole message.
///
/// # Errors
/// Its first fault.
pub fn check(bytes: &[u8], table: &'static Message, unknown: Unknown) -> Result<(), ProtoFault> {
    let mut cursor = Cursor::new(bytes, table, unknown);
    while cursor.next()?.is_some() {}
    Ok(())
}
