//! From a permit to the reply's last byte: connect, send, relay, conclude.

use super::app::{App, Failure};
use super::fields::upstream_fields;
use super::headers::{Added, upstream_head};
use super::peer::Peers;
use super::relay::{Plan, relay};
use super::relayed::Relayed;
use super::send::{Outbound, OutboundHead, Path, SendFailure, Timing, send};
use crate::a2a::grpc::timeout::{BadTimeout, declared};
use crate::a2a::reader::Expectation;
use crate::a2a::{Call, Dialect, Fault, Operation, Version};
use crate::audit::record::Ended;
use crate::config::snapshot::{Agent, Speaks};
use crate::pipeline::assertion::{Leaving, NoKey, assertion, forwards_token};
use crate::pipeline::relate::Related;
use crate::pipeline::{Binder, Observer, Permit, Recorder, Rejection, Rework};
use bytes::Bytes;
use pingora::protocols::http::ServerSession;
use std::sync::Arc;
use std::time::Duration;

/// How long a unary send is read on after its caller left, to bind its ids and know its end.
const AFTER_CALLER_LEFT: Duration = Duration::from_secs(30);
/// A unary reply up to this size is held until it is judged.
const MAX_HELD: usize = 1024 * 1024;
/// A page of a task list up to this size is read; a longer one is withheld.
const MAX_LIST: usize = 4 * 1024 * 1024;
/// An event up to this size is held until it is judged.
const MAX_EVENT: usize = 4 * 1024 * 1024;

/// A call that may go.
pub struct Order {
    /// The proof that it may.
    pub permit: Permit,
    /// The agent.
    pub agent: Arc<Agent>,
    /// Which of the agent's backends; see [`Agent::backend_of`].
    pub backend: usize,
    /// Path and query on the backend.
    pub target: Box<str>,
    /// The caller's bytes, as they were judged.
    pub body: Bytes,
    /// The version to declare to the agent.
    pub a2a_version: Option<Version>,
    /// The header that declares the caller's extensions, with its value.
    pub extensions: Option<(&'static str, Box<str>)>,
    /// What is made of the reply.
    pub rework: Option<Rework>,
    /// How often the agent was asked for this call.
    pub asked: u32,
}

/// Forwards one permitted call and concludes it in the recorder. With `related`, the ids of the
/// reply are bound to the caller before it sees them.
///
/// A reply that has to be put together is asked for as often as it takes; only reads are.
pub async fn forward(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
    mut order: Order,
    related: Option<&Related>,
) -> Result<(), Failure> {
    let call = recorder.call.as_ref();
    let answer = Answering {
        dialect: call.map(|c| c.dialect),
        rpc_id: call.and_then(|c| c.rpc_id.clone()),
    };
    let mut rework = order.rework.take();
    // The caller's own, for a reply that is asked for more than once.
    let own = rework
        .is_some()
        .then(|| (order.target.clone(), order.body.clone()));
    loop {
        if let (Some(rework), Some((target, body))) = (&mut rework, &own) {
            let asking = rework.asking(target, body);
            let unasked = || answer.ended(Ended::Other, Fault::Internal, "cannot_ask");
            (order.target, order.body) = asking.ok_or_else(unasked)?;
        }
        order.asked += 1;
        let relayed = exchange(
            app,
            session,
            recorder,
            &order,
            related,
            &answer,
            rework.as_mut(),
        )
        .await?;
        return match relayed.fault {
            Some(fault) => Err(Failure::Ended {
                ended: relayed.ended,
                whole: relayed.whole,
                answer: Some(answer.rejection(fault, relayed.ended.label())),
            }),
            None if relayed.clean && rework.as_ref().is_some_and(Rework::is_open) => continue,
            None if relayed.clean => {
                recorder.ended(relayed.ended, relayed.whole);
                Ok(())
            }
            None => Err(Failure::Ended {
                ended: relayed.ended,
                whole: relayed.whole,
                answer: None,
            }),
        };
    }
}

/// Asks the agent once and relays what it says.
async fn exchange(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
    order: &Order,
    related: Option<&Related>,
    answer: &Answering,
    rework: Option<&mut Rework>,
) -> Result<Relayed, Failure> {
    let limits = order.agent.limits;
    let call = recorder.call.as_ref();
    let streaming = call.is_some_and(|c| c.operation.is_streaming());
    let sends = call.is_some_and(|c| c.operation == Operation::SendMessage);
    let reads = call.is_some_and(|c| c.operation.is_read());
    let after_caller_left = sends.then_some(AFTER_CALLER_LEFT);
    let expectation = call.map(|c| expectation(c, order.agent.reply_guard || rework.is_some()));

    let clock = &*app.gate.clock;
    let no_peer = || answer.ended(Ended::Other, Fault::BadGateway, "unresolved");
    let peers = app
        .links
        .peers(&recorder.live, order.agent.index, order.backend)
        .ok_or_else(no_peer)?;
    // gRPC is HTTP/2, whatever the agent's other bindings speak.
    let needs_h2 = answer.dialect.is_some_and(|d| d.binding.needs_http2());
    let speaks = if needs_h2 { Speaks::H2 } else { peers.speaks() };
    let patience = match needs_h2 {
        true => declared(&session.req_header().headers),
        false => Ok(None),
    };
    // The reader of the call has refused a bad one.
    let patience = patience
        .map_err(|BadTimeout| answer.ended(Ended::Other, Fault::BadRequest, "grpc_timeout"))?;
    let gone_by = clock.monotonic().saturating_sub(recorder.started);
    let left = patience.map(|patience| patience.saturating_sub(gone_by));
    if left.is_some_and(|left| left.is_zero()) {
        return Err(answer.ended(Ended::Other, Fault::GatewayTimeout, "deadline_exceeded"));
    }
    let bounded = |bound: Duration| left.map_or(bound, |left| left.min(bound));
    let grpc = needs_h2.then_some(left);
    let leaving = Leaving {
        target: &order.target,
        body: &order.body,
        remade: rework.is_some(),
        part: order.asked,
    };
    let assertion = assertion(recorder, &leaving)
        .map_err(|NoKey| answer.ended(Ended::Other, Fault::Internal, "no_assertion_key"))?;
    let outbound = outbound(session, recorder, order, &peers, speaks, grpc, assertion)
        .map_err(|(fault, code)| answer.ended(Ended::Other, fault, code))?;
    let Ok(addresses) = peers.resolve(clock.monotonic()).await else {
        let backend = order.agent.backend_of(order.backend);
        let since_start = clock.monotonic().saturating_sub(recorder.started);
        let body = order.body.len() as u64;
        let attempts = &mut recorder.attempts;
        attempts.unresolved(&backend.authority, clock.monotonic(), since_start, body);
        return Err(no_peer());
    };
    let path = Path {
        pools: app.links.pools(),
        clock,
        addresses: &addresses,
        speaks,
        reads,
        timing: Timing {
            started: recorder.started,
            connect: bounded(limits.connect_timeout),
            send: bounded(limits.send_timeout),
            first_byte: bounded(limits.unary_timeout),
            after_caller_left,
        },
    };
    let sent = send(
        &path,
        session,
        &order.permit,
        outbound,
        &mut recorder.attempts,
    )
    .await;
    let upstream = sent.map_err(|failure| answer.unsent(failure))?;
    let _open = streaming.then(|| recorder.metrics().map(|m| m.stream_opened()));
    let longest = if streaming {
        limits.max_stream
    } else {
        limits.unary_timeout
    };
    let plan = Plan {
        expectation,
        request_id: recorder.request_id.as_str(),
        idle: if streaming {
            limits.idle_stream
        } else {
            limits.unary_timeout
        },
        deadline: recorder.started + patience.map_or(longest, |p| p.min(longest)),
        after_caller_left,
        clock,
        rework,
    };
    let binder = match (related, &recorder.verified, &recorder.call) {
        (Some(related), Some(verified), Some(call)) => {
            let skill = recorder.skill.as_ref().and_then(|skill| skill.id.clone());
            let store = &*app.gate.ownership;
            Some(Binder::new(
                store,
                &order.agent,
                &verified.owner,
                call,
                related,
                skill,
            ))
        }
        _ => None,
    };
    let mut observer = Observer::new(&mut recorder.reply, binder);
    Ok(relay(session, upstream, plan, &mut observer).await)
}

fn outbound(
    session: &ServerSession,
    recorder: &Recorder,
    order: &Order,
    peers: &Peers,
    speaks: Speaks,
    grpc: Option<Option<Duration>>,
    assertion: Option<String>,
) -> Result<Outbound, (Fault, &'static str)> {
    let head = session.req_header();
    let added = Added {
        secure: peers.is_secure(),
        authority: &order.agent.backend_of(order.backend).authority,
        request_id: recorder.request_id.as_str(),
        trace: &recorder.trace,
        a2a_version: order.a2a_version,
        extensions: order
            .extensions
            .as_ref()
            .map(|(name, value)| (*name, &**value)),
        content_length: (grpc.is_none()
            && (!order.body.is_empty() || head.method == http::Method::POST))
            .then_some(order.body.len()),
        assertion: assertion.as_deref(),
        credential: order.agent.identity.credential(),
        token: forwards_token(recorder, order.backend),
        grpc,
    };
    let (method, target, headers) = (&head.method, &order.target, &head.headers);
    let room = order.body.len().min(16 * 1024);
    let head = match speaks {
        Speaks::H1 => OutboundHead::Wire(upstream_head(method, target, headers, added, room)?),
        Speaks::H2 | Speaks::Agreed => {
            OutboundHead::Fields(upstream_fields(method, target, headers, added)?)
        }
    };
    Ok(Outbound {
        head,
        body: order.body.clone(),
    })
}

fn expectation(call: &Call, guard: bool) -> Expectation {
    Expectation {
        dialect: call.dialect,
        http_status: 0,
        operation: call.operation,
        rpc_id: call.rpc_id.clone(),
        event_stream: false,
        max_held: if call.operation == Operation::ListTasks {
            MAX_LIST
        } else {
            MAX_HELD
        },
        max_event: MAX_EVENT,
        guard,
    }
}

/// How a failure of this call is told.
struct Answering {
    dialect: Option<Dialect>,
    rpc_id: Option<Box<str>>,
}

impl Answering {
    fn rejection(&self, fault: Fault, code: &'static str) -> Rejection {
        let rejection = Rejection::plain(fault, code);
        match self.dialect {
            Some(dialect) => rejection.in_dialect(dialect, self.rpc_id.as_deref()),
            None => rejection,
        }
    }

    fn ended(&self, ended: Ended, fault: Fault, code: &'static str) -> Failure {
        Failure::Ended {
            ended,
            whole: false,
            answer: Some(self.rejection(fault, code)),
        }
    }

    fn unsent(&self, failure: SendFailure) -> Failure {
        match failure {
            SendFailure::Connect => self.ended(Ended::Other, Fault::BadGateway, "connect_failed"),
            SendFailure::Broken => {
                self.ended(Ended::AgentClosed, Fault::BadGateway, "agent_closed")
            }
            SendFailure::TooSlow => {
                self.ended(Ended::UnaryTimeout, Fault::GatewayTimeout, "agent_too_slow")
            }
            SendFailure::BadReply => self.ended(Ended::Malformed, Fault::BadGateway, "bad_reply"),
            SendFailure::CallerLeft => Failure::CallerLeft,
        }
    }
}
