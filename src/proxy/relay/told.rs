//! What the caller is told of a reply that goes wrong after its head has left.

use super::super::relayed::Relayed;
use super::super::released::Released;
use super::Relay;
use super::trailers::of_status;
use crate::a2a::{Fault, render, render_event};
use bytes::Bytes;
use http::HeaderMap;
use pingora::protocols::http::ServerSession;

impl Relay<'_> {
    /// A fault found while reading: told by an error answer, in a begun stream by an error event or
    /// trailers behind what was good before it, in any other begun reply by breaking off. Within an
    /// event an error event would complete what is withheld, so that is broken off too.
    pub(super) async fn say_so(
        &mut self,
        caller: &mut ServerSession,
        before: Released,
        relayed: Relayed,
    ) -> Relayed {
        let Some(fault) = relayed.fault else {
            return relayed;
        };
        if !self.header_sent {
            return relayed;
        }
        let sent = self.may_speak()
            && self
                .last_word(caller, before.into_bytes(), fault, true)
                .await;
        Relayed {
            fault: None,
            clean: sent,
            ..relayed
        }
    }

    /// The agent broke off. In a stream the caller is told before it is broken off too.
    pub(super) async fn cut_short(
        &mut self,
        caller: &mut ServerSession,
        relayed: Relayed,
    ) -> Relayed {
        if self.header_sent && self.may_speak() {
            // The connection is given up whether or not this arrives.
            self.last_word(caller, Bytes::new(), Fault::BadGateway, false)
                .await;
        }
        relayed
    }

    /// The agent was silent for too long, or the stream is over its time. A stream of gRPC ends with
    /// a status, between whole messages: a client takes the status for the whole truth about the
    /// call, where a reset could be anything. Event streams have no such end; those are broken off,
    /// so that no client takes the end for the stream's own.
    pub(super) async fn timed_out(
        &mut self,
        caller: &mut ServerSession,
        relayed: Relayed,
    ) -> Relayed {
        let speaks = self.header_sent && self.trailers_due && self.may_speak();
        let sent = speaks
            && self
                .last_word(caller, Bytes::new(), Fault::GatewayTimeout, true)
                .await;
        Relayed {
            clean: relayed.clean || sent,
            ..relayed
        }
    }

    fn may_speak(&self) -> bool {
        self.event_stream && self.caller_here && !self.amid_event
    }

    /// What is good, and the fault behind it. False when the caller is gone.
    async fn last_word(
        &mut self,
        caller: &mut ServerSession,
        before: Bytes,
        fault: Fault,
        end: bool,
    ) -> bool {
        let Some(expectation) = &self.plan.expectation else {
            return false;
        };
        let rpc_id = expectation.rpc_id.as_deref();
        if let Some(status) = render(fault, Some(expectation.dialect), rpc_id).grpc {
            return self.end_with(caller, before, of_status(&status)).await;
        }
        let mut released = Released::Nothing;
        released.add(before);
        released.add(render_event(fault, expectation.dialect, rpc_id));
        let bytes = released.into_bytes();
        caller.write_response_body(bytes, end).await.is_ok()
    }

    /// The last of the body, then trailers. False when the caller is gone.
    pub(super) async fn end_with(
        &mut self,
        caller: &mut ServerSession,
        bytes: Bytes,
        trailers: HeaderMap,
    ) -> bool {
        if !bytes.is_empty() && caller.write_response_body(bytes, false).await.is_err() {
            return false;
        }
        caller.write_response_trailers(trailers).await.is_ok()
    }
}
