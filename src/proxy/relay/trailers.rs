//! Trailers: the agent's, judged and passed on, or ours.

use super::super::headers::travels_to_caller;
use super::{Observer, Relay, Step};
use crate::a2a::{GrpcStatus, Reader};
use http::{HeaderMap, HeaderName, HeaderValue};
use pingora::http::ResponseHeader;
use pingora_timeout::timeout;

/// What says how a call went. It leaves in trailers, wherever the agent put it.
const STATUS: [&str; 3] = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

impl Relay<'_> {
    /// The body is over. Where trailers are due, those are read and judged: of a reply that is
    /// nothing but them, they stand in its head.
    pub(super) async fn ending(
        &mut self,
        reader: &mut Reader,
        observer: &mut Observer<'_>,
    ) -> Step {
        if !self.trailers_due {
            return Step::End;
        }
        let bound = self.bound();
        let trailers = match timeout(bound, self.upstream.link.read_trailers()).await {
            Ok(Ok(trailers)) => trailers,
            Ok(Err(_)) => return Step::AgentBroke,
            Err(_) => return Step::Silent,
        };
        let in_head = observer.note.bytes == 0;
        let head = self.upstream.link.head().filter(|_| in_head);
        let said = match (&trailers, head) {
            (Some(trailers), _) => trailers,
            (None, Some(head)) => &head.headers,
            (None, None) => &HeaderMap::new(),
        };
        reader.trailers(said, &mut self.pieces);
        observer.note.grpc_status = reader.grpc_status();
        self.trailers = Some(passing(said, trailers.is_some()));
        Step::End
    }
}

/// What of `said` passes on: of trailers everything that may travel, of a head only the status.
fn passing(said: &HeaderMap, are_trailers: bool) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(said.len());
    for (name, value) in said {
        let passes = match are_trailers {
            true => travels_to_caller(name.as_str()),
            false => STATUS.contains(&name.as_str()),
        };
        if passes {
            trailers.append(name.clone(), value.clone());
        }
    }
    trailers
}

/// Takes out of a head what its trailers will say.
pub(super) fn leave_to_trailers(head: &mut ResponseHeader) {
    for name in STATUS {
        head.remove_header(name);
    }
}

/// Trailers that say `status`.
pub(super) fn of_status(status: &GrpcStatus) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(STATUS.len());
    trailers.insert(
        HeaderName::from_static("grpc-status"),
        HeaderValue::from(u16::from(status.code)),
    );
    for (name, text) in [
        ("grpc-message", &status.message),
        ("grpc-status-details-bin", &status.details),
    ] {
        // Our own texts are field values; one that is not would only be left out.
        if let Ok(value) = HeaderValue::from_str(text)
            && !text.is_empty()
        {
            trailers.insert(HeaderName::from_static(name), value);
        }
    }
    trailers
}
