//! Reads the ids of a protobuf message that is too large to be held, as its bytes pass.
//!
//! Of the way to the ids everything is checked as for a message that is held; what lies beside it
//! passes.

use super::operation::Operation;
use super::reader::{Event, EventKind};
use super::reply_proto::{ID_ROOM, Shape, shape};

/// A message that passes.
#[derive(Debug)]
pub(super) struct Skim {
    /// How many members the choice has; they are numbered from 1.
    members: u64,
    event: Event,
    flaw: Option<&'static str>,
    /// Bytes still to come, of the message and of the object within it whose ids are read.
    left: [u64; 2],
    /// Whether the fields are those of that object.
    inside: bool,
    /// Whether a member of the choice was met.
    chosen: bool,
    reading: Reading,
}

#[derive(Debug)]
enum Reading {
    /// A tag, as far as it came.
    Tag(Varint),
    /// The length of a field with this number.
    Length(u64, Varint),
    /// A value that nobody wants: a varint, or so many bytes.
    Value(Varint),
    Skip(u64),
    /// An id: whether it is the task's, what came, and what is to come.
    Id(bool, Vec<u8>, u64),
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// Takes a byte; the value when it is whole.
    fn take(&mut self, byte: u8) -> Result<Option<u64>, &'static str> {
        if self.shift == 63 && byte > 1 {
            return Err("not_protobuf");
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        if byte < 0x80 {
            return match byte == 0 && self.shift > 0 {
                true => Err("not_protobuf"),
                false => Ok(Some(self.value)),
            };
        }
        self.shift += 7;
        Ok(None)
    }
}

impl Skim {
    /// Of a message with `length` bytes that answers `operation`.
    pub(super) fn new(operation: Operation, length: u64) -> Skim {
        let task = shape(operation) == Shape::Task;
        Skim {
            members: match (shape(operation), operation) {
                (Shape::Task | Shape::Webhooks | Shape::Other, _) => 0,
                (Shape::Choice, Operation::SendMessage) => 2,
                (Shape::Choice, _) => 4,
            },
            event: Event::of(match task {
                true => EventKind::Task,
                false => EventKind::Other,
            }),
            flaw: None,
            left: [length, if task { length } else { 0 }],
            inside: task,
            chosen: false,
            reading: Reading::Tag(Varint::default()),
        }
    }

    /// Reads on. After a flaw nothing more is read.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while self.flaw.is_none()
            && let Some((&byte, more)) = bytes.split_first()
        {
            let run = match &mut self.reading {
                Reading::Skip(left) => (*left).min(bytes.len() as u64),
                Reading::Id(_, text, left) => {
                    let run = (*left).min(bytes.len() as u64);
                    text.extend_from_slice(bytes.get(..run as usize).unwrap_or_default());
                    run
                }
                Reading::Tag(_) | Reading::Length(..) | Reading::Value(_) => 1,
            };
            bytes = if run == 1 {
                more
            } else {
                bytes.get(run as usize..).unwrap_or_default()
            };
            if let Err(code) = self.step(byte, run) {
                self.flaw = Some(code);
            }
        }
    }

    /// What it named, at its end.
    pub(super) fn conclude(self) -> Result<Event, (&'static str, Event)> {
        match (self.flaw, &self.reading) {
            (Some(code), _) => Err((code, self.event)),
            (None, Reading::Tag(Varint { shift: 0, .. })) if self.left[0] == 0 => Ok(self.event),
            (None, _) => Err(("not_protobuf", self.event)),
        }
    }

    /// Takes a byte that counts alone, or a run of them.
    fn step(&mut self, byte: u8, run: u64) -> Result<(), &'static str> {
        for left in self.left.iter_mut().take(1 + usize::from(self.inside)) {
            *left = left.checked_sub(run).ok_or("not_protobuf")?;
        }
        let next = match &mut self.reading {
            Reading::Tag(varint) => match varint.take(byte)? {
                Some(tag) => self.field(tag)?,
                None => return Ok(()),
            },
            Reading::Length(number, varint) => match varint.take(byte)? {
                Some(length) => {
                    let number = *number;
                    self.delimited(number, length)?
                }
                None => return Ok(()),
            },
            Reading::Value(varint) => {
                // A value may be spelled in more bytes than it needs.
                varint.shift += 7;
                match (byte >= 0x80, varint.shift >= 70) {
                    (true, true) => return Err("not_protobuf"),
                    (true, false) => return Ok(()),
                    (false, _) => {}
                }
                Reading::Tag(Varint::default())
            }
            Reading::Skip(left) => {
                *left -= run;
                match *left {
                    0 => Reading::Tag(Varint::default()),
                    _ => return Ok(()),
                }
            }
            Reading::Id(of_task, text, left) => {
                *left -= run;
                if *left > 0 {
                    return Ok(());
                }
                let (of_task, text) = (*of_task, std::mem::take(text));
                self.id(of_task, text)?;
                Reading::Tag(Varint::default())
            }
        };
        self.reading = next;
        if self.inside && self.left[1] == 0 && matches!(self.reading, Reading::Tag(_)) {
            self.inside = false;
        }
        Ok(())
    }

    fn field(&mut self, tag: u64) -> Result<Reading, &'static str> {
        let number = tag >> 3;
        if number == 0 {
            return Err("not_protobuf");
        }
        match tag & 7 {
            0 => Ok(Reading::Value(Varint::default())),
            1 => Ok(Reading::Skip(8)),
            2 => Ok(Reading::Length(number, Varint::default())),
            5 => Ok(Reading::Skip(4)),
            _ => Err("not_protobuf"),
        }
    }

    fn delimited(&mut self, number: u64, length: u64) -> Result<Reading, &'static str> {
        let room = self.left[usize::from(self.inside)];
        if length > room {
            return Err("not_protobuf");
        }
        let next = |length| match length {
            0 => Reading::Tag(Varint::default()),
            _ => Reading::Skip(length),
        };
        if self.inside {
            let of_task = match (self.event.kind, number) {
                // Task: id, context_id. Message: context_id, task_id. Updates: task_id, context_id.
                (EventKind::Message, 2) => false,
                (EventKind::Message, 3) => true,
                (EventKind::Message, _) => return Ok(next(length)),
                (_, 1) => true,
                (_, 2) => false,
                _ => return Ok(next(length)),
            };
            return match length {
                0 => Ok(next(0)),
                _ if length > ID_ROOM as u64 => Err("bad_id"),
                _ => Ok(Reading::Id(of_task, Vec::new(), length)),
            };
        }
        let kind = match number {
            _ if number > self.members => return Ok(next(length)),
            1 => EventKind::Task,
            2 => EventKind::Message,
            3 => EventKind::StatusUpdate,
            4 => EventKind::ArtifactUpdate,
            _ => return Ok(next(length)),
        };
        if std::mem::replace(&mut self.chosen, true) {
            return Err("ambiguous");
        }
        self.event.kind = kind;
        self.left[1] = length;
        self.inside = length > 0;
        Ok(Reading::Tag(Varint::default()))
    }

    fn id(&mut self, of_task: bool, text: Vec<u8>) -> Result<(), &'static str> {
        let text = String::from_utf8(text).map_err(|_| "not_protobuf")?;
        if text.contains('\0') {
            return Err("bad_id");
        }
        let slot = match of_task {
            true => &mut self.event.task_id,
            false => &mut self.event.context_id,
        };
        if slot.is_some() {
            return Err("ambiguous");
        }
        *slot = Some(text.into());
        Ok(())
    }
}
