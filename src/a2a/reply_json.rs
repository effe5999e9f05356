//! Reads one JSON-RPC response as its bytes come: what it names, and whether it is well-formed.
//!
//! Only the way to the ids, the state and the artifacts' descriptions is followed; everything
//! beside it is checked for syntax and forgotten. `task.history` and `status.message` carry ids
//! of their own, which bind nothing.

use super::json_scan::{Flaw, Scanner, Shape, Text, Token, Wish};
use super::operation::Operation;
use super::reader::{ArtifactNote, Event, TaskState};
use super::reply_facts::{ErrorFacts, ExpectedId, Facts, ReplyId, Tag, has_work};
use super::reply_names::{KEY_ROOM, Name, Payload, Place};

/// Longest task or context id that is bound.
const ID_ROOM: usize = 4096;
/// Longest word of a closed set, media type or artifact id that is kept.
const WORD_ROOM: usize = 256;
/// Characters of an artifact's name that are kept (each at most four bytes).
const NAME_LENGTH: usize = 64;
/// Artifacts noted per event, and media types per artifact.
const MAX_NOTES: usize = 32;
/// Levels on the longest way that is followed: root, envelope, result, task, artifacts, artifact,
/// parts, part, file.
const MAX_FRAMES: usize = 9;

/// One open object or array on the way.
#[derive(Debug, Clone, Copy)]
struct Frame {
    place: Place,
    name: Name,
    seen: u32,
}

const ROOT: Frame = Frame {
    place: Place::Root,
    name: Name::Other,
    seen: 0,
};

/// What the record calls bytes that are no document, by where they stood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codes {
    pub(super) not_json: &'static str,
    pub(super) cut_off: &'static str,
}

/// Reads one response after another; see the module.
#[derive(Debug)]
pub(super) struct Probe {
    scanner: Scanner,
    path: Path,
    codes: Codes,
    flaw: Option<&'static str>,
    read: u64,
}

impl Probe {
    /// A probe for responses to `operation` with the id `rpc_id`, given as its bytes stood.
    pub(super) fn new(operation: Operation, rpc_id: Option<&str>, codes: Codes) -> Probe {
        Probe {
            scanner: Scanner::new(),
            path: Path {
                operation,
                expected: ExpectedId::new(rpc_id),
                frames: [ROOT; MAX_FRAMES],
                depth: 0,
                skipped: 0,
                facts: Facts::new(),
                closed_at: None,
                artifact_start: 0,
                part_type: None,
                part_default: None,
            },
            codes,
            flaw: None,
            read: 0,
        }
    }

    /// Goes on to another response.
    pub(super) fn reset(&mut self) {
        self.scanner.reset();
        self.path.reset();
        self.flaw = None;
        self.read = 0;
    }

    /// Why this response is not well-formed, as far as is known.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        self.flaw
    }

    /// Where the response was complete; only white space may follow.
    pub(super) fn closed_at(&self) -> Option<u64> {
        self.path.closed_at
    }

    /// Bytes read, up to the flaw if there is one.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Reads on. After a flaw nothing more is read.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.flaw.is_some() {
            return;
        }
        let mut at = 0;
        loop {
            let taken = match self.scanner.next(bytes, &mut at, self.path.wish()) {
                Ok(None) => break,
                Ok(Some(token)) => self.path.take(token, self.read + at as u64),
                Err(Flaw::Syntax) => Err(self.codes.not_json),
                Err(Flaw::TooDeep) => Err("too_deep"),
            };
            if let Err(code) = taken {
                self.flaw = Some(code);
                break;
            }
        }
        self.read += at as u64;
    }

    /// Judges the response, which has ended.
    pub(super) fn conclude(&mut self) -> Result<Event, &'static str> {
        match self.flaw {
            Some(code) => Err(code),
            None if !self.scanner.closed() => Err(self.codes.cut_off),
            None => self
                .path
                .facts
                .judge(self.path.operation, &self.path.expected),
        }
    }

    /// What a response that is not well-formed named nevertheless; `None` if nothing.
    pub(super) fn partial(&mut self) -> Option<Event> {
        let event = self.path.facts.partial();
        (event.task_id.is_some() || event.context_id.is_some()).then_some(event)
    }
}

/// Where in the response the scanner is, and what was found on the way.
#[derive(Debug)]
struct Path {
    operation: Operation,
    expected: ExpectedId,
    frames: [Frame; MAX_FRAMES],
    depth: usize,
    /// Open levels below something that is not followed.
    skipped: usize,
    facts: Facts,
    closed_at: Option<u64>,
    artifact_start: u64,
    part_type: Option<Box<str>>,
    part_default: Option<&'static str>,
}

impl Path {
    fn reset(&mut self) {
        self.frames[0] = ROOT;
        (self.depth, self.skipped) = (0, 0);
        self.facts = Facts::new();
        self.closed_at = None;
        (self.part_type, self.part_default) = (None, None);
    }

    fn here(&self) -> (Place, Name) {
        let frame = &self.frames[self.depth];
        (frame.place, frame.name)
    }

    /// What is worth keeping of the next key and value.
    fn wish(&self) -> Wish {
        if self.skipped > 0 {
            return Wish::default();
        }
        let (place, name) = self.here();
        let value = match (place, name) {
            (Place::Envelope, Name::Id) => self.expected.room(),
            (Place::Error, Name::Code) => WORD_ROOM,
            (Place::Result | Place::Payload(_), Name::Id | Name::TaskId | Name::ContextId) => {
                ID_ROOM
            }
            (Place::Artifact, Name::Title) => NAME_LENGTH * 4,
            (_, Name::Other)
            | (Place::Error, Name::Message)
            | (Place::Part, Name::Text | Name::Data) => 0,
            _ => WORD_ROOM,
        };
        Wish {
            key: if place.has_names() { KEY_ROOM } else { 0 },
            value,
        }
    }

    /// `end` is the offset behind the token.
    fn take(&mut self, token: Token<'_>, end: u64) -> Result<(), &'static str> {
        if self.skipped > 0 {
            match token {
                Token::Open(_) => self.skipped += 1,
                Token::Close => self.skipped -= 1,
                _ => {}
            }
            return Ok(());
        }
        match token {
            Token::Open(shape) => match self.enter(shape)? {
                Some(place) if self.depth + 1 < MAX_FRAMES => {
                    if place == Place::Artifact {
                        self.artifact_start = end - 1;
                        self.facts.artifacts.push(ArtifactNote {
                            id: None,
                            name: None,
                            media_types: Vec::new(),
                            bytes: 0,
                        });
                    }
                    self.depth += 1;
                    self.frames[self.depth] = Frame { place, ..ROOT };
                    Ok(())
                }
                Some(_) | None => {
                    self.skipped = 1;
                    Ok(())
                }
            },
            Token::Close => {
                self.leave(end);
                Ok(())
            }
            Token::Key(key) => {
                let frame = &mut self.frames[self.depth];
                if frame.place.has_names() {
                    frame.name = frame.place.name(key, &mut frame.seen)?;
                }
                Ok(())
            }
            Token::Text(text) => self.text(text),
            Token::Number(number) => self.number(number),
            Token::Bool => self.other_scalar(),
            Token::Null => self.null(),
        }
    }

    /// Where an object or array that opens here leads; `None` when nobody looks inside.
    fn enter(&mut self, shape: Shape) -> Result<Option<Place>, &'static str> {
        let (place, name) = self.here();
        let object = shape == Shape::Object;
        Ok(match (place, name) {
            (Place::Root, _) if object => Some(Place::Envelope),
            (Place::Root, _) => return Err("not_object"),
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                match (has_work(self.operation), object) {
                    (false, _) => None,
                    (true, true) => Some(Place::Result),
                    (true, false) => return Err("bad_result"),
                }
            }
            (Place::Envelope, Name::Error) if object => {
                self.facts.error = Some(ErrorFacts {
                    is_object: true,
                    ..ErrorFacts::default()
                });
                Some(Place::Error)
            }
            (Place::Result, name) if wrapper(name).is_some() => {
                let payload = wrapper(name).filter(|_| object).ok_or("bad_result")?;
                if self.facts.wrapped.replace(payload).is_some() {
                    return Err("ambiguous");
                }
                Some(Place::Payload(payload))
            }
            (Place::Result | Place::Payload(_), Name::Status) if object => {
                self.facts.bare_status |= place == Place::Result;
                Some(Place::Status)
            }
            (Place::Result | Place::Payload(_), Name::Artifacts) if !object => {
                Some(Place::Artifacts)
            }
            (Place::Result | Place::Payload(_), Name::Artifact) if object => {
                self.facts.bare_artifact |= place == Place::Result;
                self.note()
            }
            (Place::Artifacts, _) if object => self.note(),
            (Place::Artifact, Name::Parts) if !object => Some(Place::Parts),
            (Place::Parts, _) if object => Some(Place::Part),
            (Place::Part, Name::File) if object => Some(Place::File),
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                None
            }
            _ => {
                self.other_scalar()?;
                None
            }
        })
    }

    fn note(&self) -> Option<Place> {
        (self.facts.artifacts.len() < MAX_NOTES).then_some(Place::Artifact)
    }

    fn leave(&mut self, end: u64) {
        let (place, _) = self.here();
        self.depth = self.depth.saturating_sub(1);
        if place == Place::Envelope {
            self.closed_at = Some(end);
        }
        let Some(note) = self.facts.artifacts.last_mut() else {
            return;
        };
        match place {
            Place::Artifact => note.bytes = end - self.artifact_start,
            Place::Part => {
                let default = self.part_default.take();
                let Some(media_type) = self.part_type.take().or(default.map(Box::from)) else {
                    return;
                };
                let known = note.media_types.contains(&media_type);
                if !known && note.media_types.len() < MAX_NOTES {
                    note.media_types.push(media_type);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: Text<'_>) -> Result<(), &'static str> {
        let (place, name) = self.here();
        match (place, name) {
            (Place::Root, _) => return Err("not_object"),
            (Place::Envelope, Name::JsonRpc) => self.facts.version_ok = text.bytes == b"2.0",
            (Place::Envelope, Name::Id) => {
                let same = match &self.expected {
                    ExpectedId::Any => true,
                    ExpectedId::Text(sent) => text.whole && sent.as_bytes() == text.bytes,
                    ExpectedId::Number(_) | ExpectedId::None => false,
                };
                self.reply_id(same);
            }
            (Place::Error, Name::Message) => {
                if let Some(error) = &mut self.facts.error {
                    error.has_message = true;
                }
            }
            (Place::Result, Name::Kind) => {
                self.facts.tag = Some(match text.bytes {
                    b"task" => Tag::Payload(Payload::Task),
                    b"message" => Tag::Payload(Payload::Message),
                    b"status-update" => Tag::Payload(Payload::StatusUpdate),
                    b"artifact-update" => Tag::Payload(Payload::ArtifactUpdate),
                    _ => Tag::Unknown,
                });
            }
            (Place::Result | Place::Payload(_), Name::Id | Name::TaskId | Name::ContextId) => {
                let id = id(text)?;
                let facts = &mut self.facts;
                match (place, name) {
                    (Place::Result, Name::Id) => facts.bare_id = id,
                    (Place::Result, Name::TaskId) => facts.bare_task_id = id,
                    (Place::Result, _) => facts.bare_context_id = id,
                    (_, Name::ContextId) => facts.context_id = id,
                    _ => facts.task_id = id,
                }
            }
            (Place::Status, Name::State) => {
                self.facts.state = Some(TaskState::parse(text.prefix()));
            }
            (Place::Artifact, Name::ArtifactId) => {
                if let Some(note) = self.facts.artifacts.last_mut() {
                    note.id = Some(text.prefix().into());
                }
            }
            (Place::Artifact, Name::Title) => {
                if let Some(note) = self.facts.artifacts.last_mut() {
                    note.name = Some(text.prefix().chars().take(NAME_LENGTH).collect());
                }
            }
            (Place::Part, Name::MediaType) | (Place::File, Name::MimeType)
                if !text.bytes.is_empty() =>
            {
                self.part_type = Some(text.prefix().into());
            }
            (Place::Part, Name::Text) => self.part_default = Some("text/plain"),
            (Place::Part, Name::Data) => self.part_default = Some("application/json"),
            (Place::Artifact | Place::Part | Place::File, _) => {}
            _ => return self.other_scalar(),
        }
        Ok(())
    }

    fn number(&mut self, number: Text<'_>) -> Result<(), &'static str> {
        match self.here() {
            (Place::Envelope, Name::Id) => {
                let same = matches!(self.expected, ExpectedId::Any)
                    || number.whole && self.expected.is_number(number.prefix());
                self.reply_id(same);
                Ok(())
            }
            (Place::Error, Name::Code) => {
                if let Some(error) = &mut self.facts.error {
                    error.code = number.prefix().parse().ok();
                }
                Ok(())
            }
            _ => self.other_scalar(),
        }
    }

    /// `null` is an absent member, except where absence would be another fault.
    fn null(&mut self) -> Result<(), &'static str> {
        match self.here() {
            (Place::Envelope, Name::Id) => {
                self.facts.reply_id = ReplyId::Null;
                Ok(())
            }
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                Ok(())
            }
            (Place::Result | Place::Payload(_) | Place::Status, _) => Ok(()),
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                Ok(())
            }
            _ => self.other_scalar(),
        }
    }

    /// A value whose type is not the one that its place wants.
    fn other_scalar(&mut self) -> Result<(), &'static str> {
        match self.here() {
            (Place::Root, _) => Err("not_object"),
            (Place::Envelope, Name::JsonRpc) => Err("bad_jsonrpc"),
            (Place::Envelope, Name::Id) => {
                self.reply_id(false);
                Ok(())
            }
            (Place::Envelope, Name::Result) if has_work(self.operation) => Err("bad_result"),
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                Ok(())
            }
            (Place::Envelope, Name::Error) => {
                self.facts.error = Some(ErrorFacts::default());
                Ok(())
            }
            (Place::Result, name) if wrapper(name).is_some() => Err("bad_result"),
            (Place::Result, Name::Kind) => Err("bad_result"),
            (Place::Result | Place::Payload(_), Name::Id | Name::TaskId | Name::ContextId) => {
                Err("bad_id")
            }
            (Place::Status, Name::State) => {
                self.facts.state = Some(TaskState::Unknown);
                Ok(())
            }
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn reply_id(&mut self, same: bool) {
        self.facts.reply_id = if same {
            ReplyId::Same
        } else {
            ReplyId::Different
        };
    }
}

/// The wrapped object that a member of a result holds.
fn wrapper(name: Name) -> Option<Payload> {
    match name {
        Name::Task => Some(Payload::Task),
        Name::Message => Some(Payload::Message),
        Name::StatusUpdate => Some(Payload::StatusUpdate),
        Name::ArtifactUpdate => Some(Payload::ArtifactUpdate),
        _ => None,
    }
}

/// An id to bind; empty is what some encoders write for absent. Text that parsers are known to
/// change (NUL, half a surrogate pair) or that is too long cannot be bound.
fn id(text: Text<'_>) -> Result<Option<Box<str>>, &'static str> {
    if !text.whole || text.bytes.contains(&0) {
        return Err("bad_id");
    }
    Ok((!text.bytes.is_empty()).then(|| text.prefix().into()))
}
