//! A gRPC reply: frames, then trailers, which alone say whether it went well.
//!
//! The one message of a unary reply waits for the trailers, so that a reply which proves malformed
//! is answered as a whole; a stream's messages leave as they come.

use super::grpc::frame::{FrameFault, FrameReader, Framed, PREFIX};
use super::operation::{Operation, Version};
use super::reader::{Event, EventKind, Flaws, Piece};
use super::reply_errors::{code_of_grpc, code_of_reason, code_of_type};
use super::reply_proto::{fits, judge};
use super::reply_push::has_webhooks;
use super::reply_skim::Skim;
use super::strict_proto::Kind::{Bytes as Blob, Message as Nested, Text, Varint};
use super::strict_proto::table::{many, once, open};
use super::strict_proto::{Cursor, Message, ProtoFault, Unknown, Value};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::Bytes;
use http::HeaderMap;

/// The state of one reply; [`super::reader::Reader`] says what comes out when.
#[derive(Debug)]
pub(super) struct GrpcReply {
    operation: Operation,
    version: Version,
    frames: FrameReader,
    /// Whole messages.
    messages: u64,
    /// The message of a unary reply, until the trailers come.
    waiting: Option<Piece>,
    /// A message that is too large to be held.
    skim: Option<Skim>,
    /// Bytes that came and are in no frame yet.
    held: usize,
    /// With the guard off: what comes is no longer cut into frames.
    unframed: bool,
    status: Option<u32>,
}

impl GrpcReply {
    pub(super) fn new(operation: Operation, version: Version, max_message: usize) -> GrpcReply {
        GrpcReply {
            operation,
            version,
            frames: FrameReader::new(max_message),
            messages: 0,
            waiting: None,
            skim: None,
            held: 0,
            unframed: false,
            status: None,
        }
    }

    /// `grpc-status`, once it came.
    pub(super) fn status(&self) -> Option<u32> {
        self.status
    }

    pub(super) fn push(&mut self, chunk: Bytes, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        if self.unframed {
            out.push(Piece::Pass(chunk));
            return;
        }
        let mut framed = Vec::new();
        let read = self.frames.push(chunk.clone(), |frame| framed.push(frame));
        self.held += chunk.len();
        for frame in framed {
            self.held -= match &frame {
                Framed::Whole(bytes) | Framed::Part { bytes, .. } => bytes.len(),
            };
            self.frame(frame, flaws, out);
            if flaws.ended() {
                return;
            }
        }
        if let Err(fault) = read {
            self.broken(fault, flaws, out);
            if !flaws.ended() {
                // What was not framed: of chunks before, and of this one.
                out.extend(self.waiting.take());
                let before = self.frames.take_held();
                let of_this = (self.held - before.len()).min(chunk.len());
                let rest = [before, chunk.slice(chunk.len() - of_this..)];
                out.extend(rest.into_iter().filter(|b| !b.is_empty()).map(Piece::Pass));
                self.unframed = true;
            }
        }
    }

    /// The body has ended; trailers may follow.
    pub(super) fn finish(&mut self, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        if self.unframed {
            return;
        }
        if let Err(fault) = self.frames.finish() {
            if flaws.guards()
                && let Some(skim) = self.skim.take()
            {
                // A part of it is out, and the agent has what it named.
                let (Ok(event) | Err((_, event))) = skim.conclude();
                if event.task_id.is_some() || event.context_id.is_some() {
                    out.push(Piece::Unjudged(Bytes::new(), event));
                }
            }
            self.broken(fault, flaws, out);
            if flaws.ended() {
                return;
            }
            out.extend(self.waiting.take());
            let held = self.frames.take_held();
            if !held.is_empty() {
                out.push(Piece::Pass(held));
            }
        }
    }

    /// Judges the trailers, or the head of a reply that has nothing else.
    pub(super) fn trailers(
        &mut self,
        trailers: &HeaderMap,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) {
        let status = match status(trailers) {
            Ok(status) => status,
            Err(code) => {
                if !flaws.end(code, out) {
                    out.extend(self.waiting.take());
                }
                return;
            }
        };
        self.status = Some(status);
        // What the agent says of our own credentials is none of the caller's business.
        let code = match (status, self.operation.is_streaming(), self.messages) {
            (16, _, _) => Some("agent_unauthenticated"),
            (0, false, 0) => Some("no_message"),
            _ => None,
        };
        if let Some(code) = code
            && flaws.end(code, out)
        {
            return;
        }
        out.extend(self.waiting.take());
        if status != 0 {
            let code = self.error(status, trailers);
            out.push(Piece::Event(
                Bytes::new(),
                Event::of(EventKind::Error(code)),
            ));
        }
    }

    fn frame(&mut self, frame: Framed, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        let begins = !matches!(frame, Framed::Part { first: false, .. });
        if begins {
            self.messages += 1;
            if self.messages > 1 && !self.operation.is_streaming() {
                if flaws.end("second_message", out) {
                    return;
                }
                out.extend(self.waiting.take());
            }
        }
        match frame {
            Framed::Whole(bytes) => {
                let message = bytes.get(PREFIX..).unwrap_or_default();
                let piece = match judge(message, self.operation, self.version) {
                    Ok(event) => Piece::Event(bytes, event),
                    Err(code) if flaws.end(code, out) => return,
                    Err(_) => Piece::Pass(bytes),
                };
                match self.operation.is_streaming() {
                    true => out.push(piece),
                    false => self.waiting = Some(piece),
                }
            }
            Framed::Part { .. } => self.part(frame, flaws, out),
        }
    }

    /// A piece of a message that is too large to be held: all but the last leave at once.
    fn part(&mut self, frame: Framed, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        let Framed::Part { bytes, first, last } = &frame else {
            return;
        };
        if *first && has_webhooks(self.operation) && flaws.end("oversize_reply", out) {
            return;
        }
        if *first {
            let length = match bytes.get(1..PREFIX) {
                Some(&[a, b, c, d]) => u64::from(u32::from_be_bytes([a, b, c, d])),
                _ => 0,
            };
            self.skim = Some(Skim::new(self.operation, length));
        }
        let Some(skim) = &mut self.skim else {
            return;
        };
        skim.feed(frame.message());
        if !last {
            out.push(Piece::Part(bytes.clone()));
            return;
        }
        let judged = match self.skim.take().map(Skim::conclude) {
            Some(Ok(event)) => match fits(&event, self.operation) {
                Ok(()) => Ok(event),
                Err(code) => Err((code, event)),
            },
            Some(Err(flawed)) => Err(flawed),
            None => return,
        };
        match judged {
            Ok(event) => out.push(Piece::Unjudged(bytes.clone(), event)),
            Err((code, event)) => {
                let named = event.task_id.is_some() || event.context_id.is_some();
                if flaws.guards() {
                    if named {
                        out.push(Piece::Unjudged(Bytes::new(), event));
                    }
                    flaws.end(code, out);
                    return;
                }
                flaws.end(code, out);
                out.push(match named {
                    true => Piece::Unjudged(bytes.clone(), event),
                    false => Piece::Pass(bytes.clone()),
                });
            }
        }
    }

    fn broken(&mut self, fault: FrameFault, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        let code = match fault {
            FrameFault::Compressed => "compressed_message",
            FrameFault::Flag => "bad_frame",
            FrameFault::Length => "truncated",
        };
        flaws.end(code, out);
    }

    /// The JSON-RPC code of an error, from the most exact thing that it says.
    fn error(&self, status: u32, trailers: &HeaderMap) -> i64 {
        let details = trailers
            .get("grpc-status-details-bin")
            .and_then(|value| decode(value.as_bytes()));
        let message = trailers
            .get("grpc-message")
            .and_then(|value| value.to_str().ok());
        details
            .and_then(|details| reason(&details))
            // Servers of 0.3 send no details; their messages begin with the error's name.
            .or_else(|| code_of_type(message?.split(':').next()?))
            .unwrap_or_else(|| code_of_grpc(status, self.operation))
    }
}

/// The one status that there must be.
fn status(trailers: &HeaderMap) -> Result<u32, &'static str> {
    let mut values = trailers.get_all("grpc-status").iter();
    let Some(value) = values.next() else {
        return Err("no_grpc_status");
    };
    if values.next().is_some() {
        return Err("bad_grpc_status");
    }
    let digits = value.as_bytes();
    let numeric = !digits.is_empty() && digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit);
    numeric
        .then(|| value.to_str().ok()?.parse().ok())
        .flatten()
        .ok_or("bad_grpc_status")
}

/// Base64 with padding or without, as gRPC allows both.
fn decode(value: &[u8]) -> Option<Vec<u8>> {
    let decoded = match value.ends_with(b"=") {
        true => STANDARD.decode(value),
        false => STANDARD_NO_PAD.decode(value),
    };
    decoded.ok()
}

static STATUS: Message = open(
    "Status",
    &[
        once(1, "code", Varint),
        once(2, "message", Text),
        many(3, "details", Nested(&ANY)),
    ],
);

static ANY: Message = open("Any", &[once(1, "type_url", Text), once(2, "value", Blob)]);

static ERROR_INFO: Message = open("ErrorInfo", &[once(1, "reason", Text)]);

/// The code of the first reason that a `google.rpc.Status` names and we know.
fn reason(details: &[u8]) -> Option<i64> {
    let mut found = None;
    let mut cursor = Cursor::new(details, &STATUS, Unknown::Passed);
    while let Ok(Some(item)) = cursor.next() {
        if item.name() != "details" {
            continue;
        }
        let mut is_info = false;
        let mut value: &[u8] = &[];
        cursor
            .each(|_, field| {
                match field.value {
                    Value::Text(name) => is_info = name.ends_with("/google.rpc.ErrorInfo"),
                    Value::Bytes(bytes) => value = bytes,
                    Value::Varint(_) | Value::Double(_) | Value::Message(_) => {}
                }
                Ok::<(), ProtoFault>(())
            })
            .ok()?;
        if is_info && found.is_none() {
            let mut info = Cursor::new(value, &ERROR_INFO, Unknown::Passed);
            while let Ok(Some(field)) = info.next() {
                found = code_of_reason(field.text());
            }
        }
    }
    found
}
