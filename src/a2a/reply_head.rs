//! What the head of a reply says about the rest, and whether it may be so in its dialect.

use super::fault::Fault;
use super::operation::{Binding, Operation};
use super::reader::Expectation;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// What a media type says that a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    EventStream,
    Grpc,
    Other,
}

impl Expectation {
    /// Takes in the reply's head: from then on it is known whether a stream comes.
    ///
    /// The code of what is wrong with it, if anything is: `bad_content_type` (not the dialect's,
    /// or none), `bad_status` (one that such a reply does not have), `unexpected_stream`,
    /// `not_a_stream`. What has an error status is judged by its body.
    pub fn take_head(&mut self, status: u16, headers: &HeaderMap) -> Option<&'static str> {
        let media = media(headers);
        self.http_status = status;
        self.event_stream = media == Media::EventStream;
        let success = status < 400;
        match self.dialect.binding {
            Binding::Grpc if media != Media::Grpc => Some("bad_content_type"),
            Binding::Grpc => (status != 200).then_some("bad_status"),
            Binding::JsonRpc | Binding::Rest if self.event_stream => {
                match self.operation.is_streaming() {
                    false => Some("unexpected_stream"),
                    true => (status != 200).then_some("bad_status"),
                }
            }
            Binding::Rest if success && !matches!(status, 200..=202 | 204) => Some("bad_status"),
            Binding::Rest if self.may_be_empty() => None,
            Binding::Rest | Binding::JsonRpc if media != Media::Json => Some("bad_content_type"),
            Binding::Rest if success && self.operation.is_streaming() => Some("not_a_stream"),
            Binding::Rest | Binding::JsonRpc => None,
        }
    }

    /// Whether a good reply comes piece by piece over time, so that its head leaves at once.
    pub fn streams(&self) -> bool {
        match self.dialect.binding {
            Binding::JsonRpc | Binding::Rest => self.event_stream,
            Binding::Grpc => self.operation.is_streaming(),
        }
    }

    /// Whether the reply ends with trailers, which say how it went.
    pub fn ends_with_trailers(&self) -> bool {
        match self.dialect.binding {
            Binding::JsonRpc | Binding::Rest => false,
            Binding::Grpc => true,
        }
    }

    /// What the caller is told instead of a malformed reply.
    ///
    /// The verb of a subscription is in dispute, and clients try the other one on a 405
    /// (`a2a-protocol.md` a.2), however badly the agent says it.
    pub fn instead(&self) -> Fault {
        let wrong_verb = self.dialect.binding == Binding::Rest
            && self.operation == Operation::SubscribeToTask
            && self.http_status == 405;
        match wrong_verb {
            true => Fault::MethodNotAllowed,
            false => Fault::InvalidAgentResponse,
        }
    }

    /// Whether no body at all is an answer: after a deletion in REST, where servers send 204, an
    /// empty 200 or `{}` (`a2a-protocol.md` a.3).
    pub(super) fn may_be_empty(&self) -> bool {
        self.dialect.binding == Binding::Rest
            && self.operation == Operation::DeleteTaskPushNotificationConfig
            && matches!(self.http_status, 200..=204)
    }
}

/// JSON in another charset than UTF-8 is something else to some readers and not to others.
fn media(headers: &HeaderMap) -> Media {
    let mut parts = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes())
        .split(|&byte| byte == b';');
    let kind = parts.next().unwrap_or_default().trim_ascii();
    let utf8 = parts.all(
        |parameter| match parameter.trim_ascii().split_at_checked(8) {
            Some((name, charset)) if name.eq_ignore_ascii_case(b"charset=") => {
                let names: [&[u8]; 3] = [b"utf-8", b"\"utf-8\"", b"utf8"];
                names
                    .iter()
                    .any(|name| charset.trim_ascii().eq_ignore_ascii_case(name))
            }
            _ => true,
        },
    );
    let is = |name: &str| kind.eq_ignore_ascii_case(name.as_bytes());
    let suffix = |name: &[u8]| {
        kind.len()
            .checked_sub(name.len())
            .and_then(|at| kind.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(name))
    };
    if !utf8 {
        Media::Other
    } else if is("application/json") || suffix(b"+json") {
        Media::Json
    } else if is("text/event-stream") {
        Media::EventStream
    } else if is("application/grpc") || is("application/grpc+proto") {
        Media::Grpc
    } else {
        Media::Other
    }
}
