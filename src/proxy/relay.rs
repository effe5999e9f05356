//! The agent's reply on its way back: judged, noted, then released.

mod told;
mod trailers;

use super::headers::downstream_head;
use super::relayed::Relayed;
use super::released::Released;
use super::reply_head::{
    declared_length, ends_by_close, has_two_types, is_encoded, is_event_stream, is_unusable,
};
use super::reworked::{Reworked, make_private, reworked};
use super::send::{Upstream, gone};
use super::trailers::{is_bodiless, write_head};
use crate::a2a::Fault;
use crate::a2a::head::active_extensions;
use crate::a2a::reader::{Event, Expectation, Piece, Reader};
use crate::audit::record::Ended;
use crate::pipeline::{Observer, Rework, ports::Clock};
use bytes::Bytes;
use http::header;
use http::{HeaderMap, Method, StatusCode, Version};
use pingora::protocols::http::ServerSession;
use pingora_timeout::timeout;
use std::pin::pin;
use std::time::Duration;

/// How a reply is relayed.
pub struct Plan<'a> {
    /// What the reply is expected to be; `None` on the backend surface, whose bytes just pass.
    pub expectation: Option<Expectation>,
    /// For the header of the answer.
    pub request_id: &'a str,
    /// Longest silence.
    pub idle: Duration,
    /// When the reply must have ended, monotonic.
    pub deadline: Duration,
    /// How long a unary reply is read on after the caller left.
    pub after_caller_left: Option<Duration>,
    /// Time.
    pub clock: &'a dyn Clock,
    /// What is made of the reply, which must then be small enough to be held.
    pub rework: Option<&'a mut Rework>,
}

/// Relays one reply to its end.
pub async fn relay(
    caller: &mut ServerSession,
    upstream: Upstream,
    plan: Plan<'_>,
    observer: &mut Observer<'_>,
) -> Relayed {
    let mut relay = Relay {
        caller_here: !upstream.caller_left,
        upstream,
        plan,
        header_sent: false,
        header_ended: false,
        agent_done: false,
        event_stream: false,
        amid_event: false,
        until_deadline: false,
        instead: Fault::InvalidAgentResponse,
        trailers_due: false,
        trailers: None,
        pieces: Vec::new(),
    };
    let relayed = relay.run(caller, observer).await;
    relay.release().await;
    relayed
}

struct Relay<'a> {
    upstream: Upstream,
    plan: Plan<'a>,
    caller_here: bool,
    header_sent: bool,
    /// The header told an HTTP/2 caller that nothing follows it.
    header_ended: bool,
    agent_done: bool,
    event_stream: bool,
    /// A part of an event is out, and its end is not.
    amid_event: bool,
    /// The silence that is waited for now lasts to the end of the reply's time.
    until_deadline: bool,
    /// What the caller is told instead of something malformed.
    instead: Fault,
    /// Whether trailers say how the reply went.
    trailers_due: bool,
    /// What they say, to the caller.
    trailers: Option<HeaderMap>,
    pieces: Vec<Piece>,
}

enum Step {
    Chunk(Bytes),
    End,
    AgentBroke,
    Silent,
    CallerLeft,
}

impl Relay<'_> {
    async fn run(&mut self, caller: &mut ServerSession, observer: &mut Observer<'_>) -> Relayed {
        let Some(head) = self.upstream.link.head() else {
            return Relayed::refused(Ended::Other, false, Fault::BadGateway);
        };
        observer.header(head.status.as_u16(), self.plan.clock.monotonic());
        observer.note.extensions = active_extensions(&head.headers);
        if is_unusable(head) {
            return Relayed::refused(Ended::Other, false, Fault::BadGateway);
        }
        observer.note.ended_by_close = !self.upstream.link.is_h2() && ends_by_close(head);
        self.event_stream = is_event_stream(head);
        let Some(mut expectation) = self.plan.expectation.clone() else {
            return self.pass(caller, observer).await;
        };
        if has_two_types(head) {
            observer.note.malformed = Some("two_content_types");
            return Relayed::refused(Ended::Malformed, false, Fault::InvalidAgentResponse);
        }
        if is_encoded(head) {
            observer.note.malformed = Some("encoded_reply");
            return Relayed::refused(Ended::Malformed, false, Fault::InvalidAgentResponse);
        }
        if let Some(code) = expectation.take_head(head.status.as_u16(), &head.headers) {
            observer.note.malformed = Some(code);
            if expectation.guard {
                return Relayed::refused(Ended::Malformed, false, expectation.instead());
            }
        }
        self.event_stream = expectation.streams();
        self.trailers_due = expectation.ends_with_trailers();
        self.instead = expectation.instead();
        if self.event_stream && self.caller_here && self.send_header(caller, None).await.is_err() {
            return Relayed::broken(Ended::CallerLeft);
        }
        self.judged(caller, observer, Reader::new(expectation))
            .await
    }

    /// The agent surface: every piece is judged and its ids bound before it leaves.
    async fn judged(
        &mut self,
        caller: &mut ServerSession,
        observer: &mut Observer<'_>,
        mut reader: Reader,
    ) -> Relayed {
        loop {
            let mut step = self.step(caller).await;
            if let Step::Chunk(chunk) = step {
                observer.note.bytes += chunk.len() as u64;
                reader.push(chunk, &mut self.pieces);
                step = match self.upstream.link.is_done() {
                    true => Step::End,
                    false => Step::Chunk(Bytes::new()),
                };
            }
            if let Step::End = step {
                reader.finish(&mut self.pieces);
                step = self.ending(&mut reader, observer).await;
            }
            match step {
                Step::Chunk(_) => {}
                Step::End => self.agent_done = true,
                other => {
                    let agent_broke = matches!(other, Step::AgentBroke);
                    let silent = matches!(other, Step::Silent);
                    match self.interrupted(other) {
                        Some(relayed) if agent_broke => {
                            return self.cut_short(caller, relayed).await;
                        }
                        Some(relayed) if silent => return self.timed_out(caller, relayed).await,
                        Some(relayed) => return relayed,
                        None => continue,
                    }
                }
            }
            if let Some(code) = reader.malformed() {
                observer.note.malformed = Some(code);
            }
            let (released, fault) = self.bind(observer).await;
            if let Some(relayed) = fault {
                return self.say_so(caller, released, relayed).await;
            }
            if self.plan.rework.as_ref().is_some_and(|r| r.is_open()) {
                // Nothing leaves before the agent was asked once more.
                return self.complete();
            }
            if let Some(relayed) = self.deliver(caller, released).await {
                return relayed;
            }
            if self.agent_done {
                return self.complete();
            }
        }
    }

    /// How long the agent may be silent now.
    fn bound(&mut self) -> Duration {
        let left = self
            .plan
            .deadline
            .saturating_sub(self.plan.clock.monotonic());
        self.until_deadline = left <= self.plan.idle;
        left.min(self.plan.idle)
    }

    /// The agent's reply is whole.
    fn complete(&self) -> Relayed {
        let ended = if self.caller_here {
            Ended::Complete
        } else {
            Ended::CallerLeft
        };
        Relayed {
            ended,
            whole: true,
            fault: None,
            clean: self.caller_here,
        }
    }

    /// Binds what the new pieces name, and gives the bytes that may leave, up to a fault.
    async fn bind(&mut self, observer: &mut Observer<'_>) -> (Released, Option<Relayed>) {
        let mut released = Released::Nothing;
        let mut fault = None;
        for piece in self.pieces.drain(..) {
            let piece = match &mut self.plan.rework {
                Some(rework) => match reworked(rework, piece).await {
                    Reworked::Piece(piece) => piece,
                    Reworked::More => break,
                    Reworked::Lost(found) => {
                        fault = Some(found);
                        break;
                    }
                },
                None => piece,
            };
            match piece {
                Piece::Pass(bytes) => released.add(bytes),
                Piece::Part(bytes) => {
                    self.amid_event = true;
                    released.add(bytes);
                }
                Piece::Event(bytes, event) => match observe(observer, &event).await {
                    Ok(()) => {
                        self.amid_event = false;
                        released.add(bytes);
                    }
                    Err(found) => {
                        fault = Some(found);
                        break;
                    }
                },
                Piece::Unjudged(bytes, event) => {
                    observer.note.unjudged = true;
                    match observe(observer, &event).await {
                        Ok(()) => {
                            self.amid_event &= bytes.is_empty();
                            released.add(bytes);
                        }
                        Err(found) => {
                            fault = Some(found);
                            break;
                        }
                    }
                }
                Piece::Malformed(code) => {
                    observer.note.malformed = Some(code);
                    fault = Some((Ended::Malformed, self.instead));
                    break;
                }
            }
        }
        self.pieces.clear();
        let relayed = fault.map(|(ended, fault)| Relayed {
            ended,
            whole: self.agent_done,
            fault: Some(fault),
            clean: true,
        });
        (released, relayed)
    }

    async fn deliver(&mut self, caller: &mut ServerSession, released: Released) -> Option<Relayed> {
        if !self.caller_here {
            return None;
        }
        if !self.header_sent {
            if matches!(released, Released::Nothing) && !self.agent_done {
                return None;
            }
            let whole = self.agent_done && !self.trailers_due;
            let length = whole.then(|| released.len());
            if self.send_header(caller, length).await.is_err() {
                return self.interrupted(Step::CallerLeft);
            }
        }
        let last = self.agent_done;
        match released {
            Released::Nothing if !last => None,
            Released::Nothing => self.write(caller, Bytes::new(), true).await,
            Released::One(bytes) => self.write(caller, bytes, last).await,
            Released::Many(buffer) => self.write(caller, buffer.freeze(), last).await,
        }
    }

    async fn write(
        &mut self,
        caller: &mut ServerSession,
        bytes: Bytes,
        last: bool,
    ) -> Option<Relayed> {
        if self.header_ended {
            return None;
        }
        let sent = match self.trailers.take().filter(|_| last) {
            Some(trailers) => self.end_with(caller, bytes, trailers).await,
            None => caller.write_response_body(bytes, last).await.is_ok(),
        };
        match sent {
            true => None,
            false => self.interrupted(Step::CallerLeft),
        }
    }

    /// The backend surface: bytes pass as they come.
    async fn pass(&mut self, caller: &mut ServerSession, observer: &mut Observer<'_>) -> Relayed {
        let length = self.upstream.link.head().and_then(declared_length);
        if self.send_header(caller, length).await.is_err() {
            return Relayed::broken(Ended::CallerLeft);
        }
        if caller.req_header().method == Method::HEAD {
            // Its reply is its header, whatever length that tells. The connection to the agent
            // knows nothing of the method, and is given back only if no body was announced.
            self.agent_done = true;
            let ended = self.write(caller, Bytes::new(), true).await;
            return ended.unwrap_or_else(|| self.complete());
        }
        loop {
            match self.step(caller).await {
                Step::Chunk(chunk) => {
                    observer.note.bytes += chunk.len() as u64;
                    self.agent_done = self.upstream.link.is_done();
                    let last = self.agent_done;
                    if let Some(relayed) = self.write(caller, chunk, last).await {
                        return relayed;
                    }
                }
                Step::End => {
                    self.agent_done = true;
                    if let Some(relayed) = self.write(caller, Bytes::new(), true).await {
                        return relayed;
                    }
                }
                other => match self.interrupted(other) {
                    Some(relayed) => return relayed,
                    None => continue,
                },
            }
            if self.agent_done {
                return self.complete();
            }
        }
    }

    /// The next thing that happens on either side.
    async fn step(&mut self, caller: &mut ServerSession) -> Step {
        let bound = self.bound();
        let mut reading = pin!(timeout(bound, self.upstream.link.read_body()));
        let read = tokio::select! { biased;
            read = reading.as_mut() => read,
            () = gone(caller), if self.caller_here => return Step::CallerLeft,
        };
        match read {
            Ok(Ok(Some(chunk))) => Step::Chunk(chunk),
            Ok(Ok(None)) => Step::End,
            Ok(Err(_)) => Step::AgentBroke,
            Err(_) => Step::Silent,
        }
    }

    /// What an interruption means; `None` when we read on without the caller.
    fn interrupted(&mut self, step: Step) -> Option<Relayed> {
        match step {
            Step::CallerLeft => match self.plan.after_caller_left {
                Some(on) if self.caller_here && !self.event_stream && !self.agent_done => {
                    self.caller_here = false;
                    let until = self.plan.clock.monotonic() + on;
                    self.plan.deadline = self.plan.deadline.min(until);
                    None
                }
                _ => Some(Relayed {
                    ended: Ended::CallerLeft,
                    whole: self.agent_done,
                    fault: None,
                    clean: false,
                }),
            },
            Step::AgentBroke if self.header_sent => Some(Relayed::broken(Ended::AgentClosed)),
            Step::AgentBroke => Some(Relayed::refused(
                Ended::AgentClosed,
                false,
                Fault::BadGateway,
            )),
            Step::Silent => {
                // Not by the clock: a timer may be a little early.
                let ended = match (self.event_stream, self.until_deadline, self.caller_here) {
                    (_, _, false) => Ended::CallerLeft,
                    (true, true, true) => Ended::MaxStream,
                    (true, false, true) => Ended::IdleTimeout,
                    (false, _, true) => Ended::UnaryTimeout,
                };
                Some(if self.header_sent || !self.caller_here {
                    Relayed::broken(ended)
                } else {
                    Relayed::refused(ended, false, Fault::GatewayTimeout)
                })
            }
            Step::Chunk(_) | Step::End => None,
        }
    }

    async fn send_header(
        &mut self,
        caller: &mut ServerSession,
        length: Option<usize>,
    ) -> Result<(), Box<pingora::Error>> {
        let upstream = self.upstream.link.head().ok_or_else(|| {
            pingora::Error::explain(pingora::ErrorType::InternalError, "no reply header")
        })?;
        let events = self.event_stream && !self.trailers_due;
        let mut head = downstream_head(upstream, self.plan.request_id, events)?;
        if self.trailers_due {
            trailers::leave_to_trailers(&mut head);
        }
        if self.plan.rework.is_some() {
            make_private(&mut head)?;
        }
        let bodiless = matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        if let Some(length) = length.filter(|_| !bodiless) {
            head.insert_header(header::CONTENT_LENGTH, length)?;
        } else if !bodiless && caller.req_header().version == Version::HTTP_11 {
            head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        self.header_sent = true;
        let end = is_bodiless(&caller.req_header().method, head.status.as_u16());
        self.header_ended = write_head(caller, head, end).await?;
        Ok(())
    }

    /// Gives the agent's connection back to the pool, if nothing of this exchange is left on it.
    async fn release(self) {
        // Pingora looks at the reply side only; after an early reply the rest of our request would
        // be taken for the next one.
        let clean = self.agent_done && self.upstream.all_written;
        self.upstream.link.release(clean).await;
    }
}

async fn observe(observer: &mut Observer<'_>, event: &Event) -> Result<(), (Ended, Fault)> {
    observer.observe(event).await
}
