//! What operators get: health and metrics for everybody who can reach the admin address, the admin
//! API for those who may.

use super::server::{reasons, show_issuer_keys};
use super::upkeep::Broken;
use crate::admin::api::{Api, Ask, Door, PREFIX};
use crate::admin::health::{AdminReply, HealthView, respond};
use crate::pipeline::Gate;
use crate::pipeline::cards::CardNoticeKind;
use crate::pipeline::revocations::seconds;
use crate::proxy::Stopping;
use crate::proxy::plain::{PlainReply, PlainRequest, Respond};
use http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// What their requests work on.
pub(super) struct Operators {
    pub(super) api: Api,
    pub(super) gate: Arc<Gate>,
    pub(super) stopping: Stopping,
    pub(super) broken: Broken,
}

/// Answers what comes by the admin address.
pub(super) fn by_address(operators: Arc<Operators>, loopback: bool) -> Arc<Respond> {
    let door = match loopback {
        true => Door::Loopback,
        false => Door::Network,
    };
    answers(operators, door)
}

/// Answers what comes by the Unix socket.
pub(super) fn by_socket(operators: Arc<Operators>) -> Arc<Respond> {
    answers(operators, Door::Socket)
}

fn answers(operators: Arc<Operators>, door: Door) -> Arc<Respond> {
    Arc::new(move |request| {
        let operators = operators.clone();
        Box::pin(async move { plain(operators.answer(&request, door).await) })
    })
}

impl Operators {
    async fn answer(&self, request: &PlainRequest, door: Door) -> AdminReply {
        let head = &request.head;
        let target = String::from_utf8_lossy(head.raw_path());
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*target, None),
        };
        if !path.starts_with(PREFIX) {
            return self.health(head.method.as_str(), path);
        }
        let ask = Ask {
            method: head.method.as_str(),
            path,
            query,
            headers: &head.headers,
            body: &request.body,
            door,
            peer: request.peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        self.api.respond(&ask).await
    }

    fn health(&self, method: &str, path: &str) -> AdminReply {
        let gate = &self.gate;
        let live = gate.live();
        gate.metrics
            .set_journal_trouble(gate.journal.trouble().is_some());
        let reasons = reasons(gate, &self.stopping, &self.broken);
        let metrics = || {
            for (agent, metrics) in live.snapshot.agents.iter().zip(&live.agents) {
                let notices = live.cards.notices_of(agent.index);
                for label in CardNoticeKind::LABELS {
                    let count = notices.iter().filter(|n| n.label() == label).count();
                    metrics.set_card_drift(label, count);
                }
            }
            show_issuer_keys(gate, &live);
            let expired = live.expired_shadows(gate.clock.now()).count();
            gate.metrics.set_shadow_rules_expired(expired);
            for (kind, count) in gate.revocations.counts(seconds(gate.clock.now())) {
                gate.metrics.set_denylist_entries(kind, count);
            }
            gate.metrics.render()
        };
        let view = HealthView {
            reasons: &reasons,
            generation: live.snapshot.generation,
            metrics: &metrics,
        };
        respond(path, method, &view)
    }
}

fn plain(reply: AdminReply) -> PlainReply {
    let mut headers = Vec::new();
    let text = |text: &str| HeaderValue::from_str(text).ok();
    headers.extend(reply.allow.and_then(text).map(|value| (ALLOW, value)));
    let challenge = reply.challenge.as_deref().and_then(text);
    headers.extend(challenge.map(|value| (WWW_AUTHENTICATE, value)));
    let retry_after = reply.retry_after.map(HeaderValue::from);
    headers.extend(retry_after.map(|value| (RETRY_AFTER, value)));
    PlainReply {
        status: reply.status,
        content_type: reply.content_type,
        headers,
        body: reply.body,
    }
}
