//! A reply that is one JSON document: held whole while it is small enough.

use super::reader::{Event, EventKind, Flaws, Hold, Piece};
use super::reply_json::Probe;
use bytes::Bytes;

/// White space behind a document that is still held.
const MAX_TAIL: u64 = 4096;

/// The state of one unary reply; [`super::reader::Reader`] says what comes out when.
#[derive(Debug)]
pub(super) struct Unary {
    max_held: u64,
    /// Whether no body at all is an answer.
    may_be_empty: bool,
    held: Hold,
    size: u64,
    /// With the guard off: whether the ids of an oversize malformed reply went out.
    announced: bool,
}

impl Unary {
    pub(super) fn new(max_held: usize, may_be_empty: bool) -> Unary {
        Unary {
            max_held: max_held as u64,
            may_be_empty,
            held: Hold::default(),
            size: 0,
            announced: false,
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: Bytes,
        probe: &mut Probe,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) {
        self.size += chunk.len() as u64;
        probe.feed(&chunk);
        let endless = probe
            .closed_at()
            .is_some_and(|closed| self.size - closed > self.max_held.max(MAX_TAIL));
        let within = probe.flaw().is_some() && probe.read() <= self.max_held;
        let flaw = if probe.is_only_whole() && self.size > self.max_held && !within {
            // Nothing of it is out, so that nothing has to be bound.
            Some(("oversize_reply", self.max_held))
        } else {
            let at = if endless { self.size } else { probe.read() };
            let code = probe.flaw().or(endless.then_some("not_json"));
            code.map(|code| (code, at))
        };
        if let Some((code, at)) = flaw {
            self.flawed(code, at, probe, flaws, out);
            if flaws.ended() {
                return;
            }
        }
        self.held.push(chunk);
        if self.size <= self.max_held {
            return;
        }
        if endless || probe.flaw().is_some() {
            self.release_flawed(probe, out);
        } else if probe.closed_at().is_none() {
            out.push(Piece::Part(self.held.take()));
        }
    }

    pub(super) fn finish(&mut self, probe: &mut Probe, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        if self.announced {
            return self.release_flawed(probe, out);
        }
        let judged = match (self.size, self.may_be_empty) {
            (0, true) => Ok(Event::of(EventKind::Other)),
            (0, false) => Err("empty"),
            _ => probe.conclude(),
        };
        match judged {
            Ok(event) if self.size > self.max_held => {
                out.push(Piece::Unjudged(self.held.take(), event));
            }
            Ok(event) => out.push(Piece::Event(self.held.take(), event)),
            Err(code) => {
                self.flawed(code, self.size, probe, flaws, out);
                if !flaws.ended() {
                    self.release_flawed(probe, out);
                }
            }
        }
    }

    /// A flaw at offset `at`. What an oversize reply named before is bound even if it breaks off,
    /// for a part of it is out, and the agent has the task.
    fn flawed(
        &mut self,
        code: &'static str,
        at: u64,
        probe: &mut Probe,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) {
        if at > self.max_held
            && flaws.guards()
            && let Some(event) = probe.partial()
        {
            out.push(Piece::Unjudged(Bytes::new(), event));
        }
        flaws.end(code, out);
    }

    /// With the guard off: everything held, with what it named if that was not said yet.
    fn release_flawed(&mut self, probe: &mut Probe, out: &mut Vec<Piece>) {
        let oversize = self.size > self.max_held;
        let event = if self.announced {
            None
        } else {
            probe.partial()
        };
        self.announced = true;
        let bytes = self.held.take();
        match event {
            Some(event) if oversize => out.push(Piece::Unjudged(bytes, event)),
            Some(event) => out.push(Piece::Event(bytes, event)),
            None if bytes.is_empty() => {}
            None => out.push(Piece::Pass(bytes)),
        }
    }
}
