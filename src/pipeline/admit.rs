//! May they: parse, relate, decide, record. Only here a [`Permit`] is made.

use super::authenticate::Verified;
use super::judge::{conclude_decision, judge, not_allowed, screened};
use super::locate::{Place, read_rules};
use super::metrics::Phase;
use super::one_time::{could_use, use_once};
use super::reach::{exists, reaches};
use super::relate::{Offered, Related, Unrelated, relate, release, unavailable};
use super::tenant::{TenantRefused, settle};
use super::{Permit, Recorder, Rejection, Rework};
use crate::a2a::card::Interface;
use crate::a2a::card::rewrite::sha256;
use crate::a2a::head::extensions_header;
use crate::a2a::splice::{self, Insertions, Stamp, Unspliced, splice};
use crate::a2a::{
    Binding, Call, Fault, Malformed, Reading, Request, Version, allowed_methods, parse,
};
use crate::config::snapshot::Agent;
use crate::identity::issuer::Grant;
use crate::policy::webhooks::shown_place;
use crate::policy::{Asked, AskedSkill, Decision, decide};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::time::Duration;

/// Seconds after which a caller may try again when we cannot serve.
const RETRY: u32 = 5;

/// A call that may go.
pub struct Admission {
    /// The proof.
    pub permit: Permit,
    /// The version to declare to the agent.
    pub a2a_version: Option<Version>,
    /// The header that declares the caller's extensions to the agent, with its value, which may be
    /// empty; `None` on the backend surface, where headers pass.
    pub extensions: Option<(&'static str, Box<str>)>,
    /// What follows the interface's path on the backend, with its query; empty in JSON-RPC and on
    /// the backend surface.
    pub path: Box<str>,
    /// The body to forward in the place of the caller's.
    pub body: Option<Bytes>,
    /// What is known of the ids that it names; `None` on the backend surface.
    pub related: Option<Related>,
    /// What is made of the reply; `None` when it passes as it is.
    pub rework: Option<Rework>,
}

/// Whether a verified caller may go to a place at all: existence, then grant. Comes before the
/// body is read, so the answers are constant (`design.md` sections 4 and 6).
pub fn enter(recorder: &Recorder, verified: &Verified, place: &Place) -> Result<(), Rejection> {
    let nowhere = || Rejection::plain(Fault::NoSuchPath, "no_such_path");
    let Some(agent) = place.agent() else {
        return Err(nowhere());
    };
    let policy = &recorder.live.snapshot.policy;
    exists(policy, &verified.principal, Some(&verified.memo), agent)?;
    if let Place::Unserved { dialect, .. } = place {
        return Err(nowhere().in_dialect(*dialect, None));
    }
    let needs = match place {
        Place::Interface {
            full_only: false, ..
        }
        | Place::NotReady(_) => Grant::Agent,
        Place::Interface {
            full_only: true, ..
        }
        | Place::Backend { .. } => Grant::Full,
        Place::Card(_)
        | Place::KeySet
        | Place::ResourceMetadata(_)
        | Place::NoCard
        | Place::Health(_)
        | Place::Unserved { .. }
        | Place::Nowhere => {
            return Err(nowhere());
        }
    };
    reaches(&verified.principal, needs)?;
    match place {
        Place::NotReady(_) => Err(Rejection::unavailable("interfaces_unknown", RETRY)),
        _ => could_use(recorder.gate(), &recorder.live, agent, verified),
    }
}

/// A request to an interface of an agent, its body read.
pub struct Asking<'a> {
    /// The agent.
    pub agent: &'a Arc<Agent>,
    /// Its interface.
    pub interface: &'a Interface,
    /// The canonical path below the interface's.
    pub path: &'a str,
    /// Who asks.
    pub verified: &'a Arc<Verified>,
    /// The HTTP method.
    pub method: &'a Method,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The query, without its question mark.
    pub query: Option<&'a str>,
    /// The body.
    pub body: &'a Bytes,
}

/// Judges a call on the agent surface and records its intent.
pub async fn admit(recorder: &mut Recorder, asking: Asking<'_>) -> Result<Admission, Rejection> {
    let began = recorder.elapsed();
    let Reading {
        call,
        a2a_version,
        extensions,
        path,
        body,
    } = read(&asking)?;
    let dialect = call.dialect;
    let rpc_id = call.rpc_id.clone();
    let rework = Rework::of(
        &call,
        recorder.gate(),
        &recorder.live,
        asking.agent,
        asking.verified,
    );
    recorder.webhook_hosts = call
        .push_urls
        .iter()
        .filter_map(|url| shown_place(url))
        .collect();
    let declared = (
        extensions_header(dialect.version),
        extensions.join(", ").into(),
    );
    recorder.extensions = extensions;
    recorder.call = Some(call);
    let began = recorder.phase(Phase::Parse, began);
    let Ok(rework) = rework else {
        return Err(Rejection::plain(Fault::InvalidParams, "foreign_page_token")
            .in_dialect(dialect, rpc_id.as_deref()));
    };
    admitted(recorder, &asking, Put { path, body }, began)
        .await
        .map(|admitted| Admission {
            permit: admitted.permit,
            a2a_version,
            extensions: Some(declared),
            path: admitted.path,
            body: admitted.body,
            related: Some(admitted.related),
            rework,
        })
        .map_err(|rejection| rejection.in_dialect(dialect, rpc_id.as_deref()))
}

fn read(asking: &Asking<'_>) -> Result<Reading, Rejection> {
    let binding = asking.interface.binding;
    parsed(asking, asking.path, asking.body).map_err(|m| {
        let wrong_method = m.fault == Fault::MethodNotAllowed;
        let allow = || {
            let rules = read_rules(asking.agent, asking.interface);
            allowed_methods(binding, asking.path, rules.versions, rules.tenants)
        };
        Rejection {
            allow: wrong_method.then(allow),
            ..malformed(m, binding)
        }
    })
}

fn parsed(asking: &Asking<'_>, path: &str, body: &Bytes) -> Result<Reading, Malformed> {
    let rules = read_rules(asking.agent, asking.interface);
    let request = Request {
        method: asking.method,
        path,
        query: asking.query,
        headers: asking.headers,
        body,
    };
    parse(asking.interface.binding, &request, &rules)
}

/// What leaves instead of the caller's own.
struct Put {
    path: Box<str>,
    body: Option<Bytes>,
}

/// Puts tenant and stamp into a call that is allowed, and notes what leaves.
fn put_in(recorder: &mut Recorder, asking: &Asking<'_>, put: Put) -> Result<Put, Rejection> {
    let agent = asking.agent;
    let failed = || Rejection::plain(Fault::Internal, "not_spliced");
    let call = recorder.call.as_ref().ok_or_else(failed)?;
    let skill = recorder.skill.as_ref();
    let insertions = Insertions {
        tenant: recorder.tenant.as_deref(),
        stamp: agent.stamp.then(|| Stamp {
            skill: skill.and_then(|skill| skill.id.as_deref()),
            request_id: recorder.request_id.as_str(),
        }),
    };
    let path = splice::with_tenant(call, put.path, insertions.tenant);
    let spliced = match (&put.body, insertions == Insertions::default()) {
        (_, true) => None,
        (None, false) => splice(call, asking.body, insertions).map_err(|Unspliced| failed())?,
        (Some(respelled), false) => {
            // The places that were found are the caller's.
            let reading = parsed(asking, asking.path, respelled).map_err(|_| failed())?;
            splice(&reading.call, respelled, insertions).map_err(|Unspliced| failed())?
        }
    };
    debug_assert!(spliced.as_ref().is_none_or(|body| reads_alike(
        asking,
        call,
        &path,
        body,
        insertions.tenant
    )));
    let body = spliced.or(put.body);
    recorder.forwarded = body
        .as_ref()
        .map(|body| (body.len() as u64, body_hash(body)));
    Ok(Put { path, body })
}

/// Whether what leaves is the call that was judged (I-4).
fn reads_alike(
    asking: &Asking<'_>,
    call: &Call,
    path: &str,
    body: &Bytes,
    tenant: Option<&str>,
) -> bool {
    parsed(asking, path, body).is_ok_and(|reading| {
        let judged = Call {
            tenant: tenant.map(Box::from).or_else(|| call.tenant.clone()),
            spots: None,
            ..call.clone()
        };
        let sent = Call {
            // Without parameters no part of a list was asked for, and none is now.
            list: call.list.as_ref().and(reading.call.list),
            spots: None,
            ..reading.call
        };
        judged == sent
    })
}

fn malformed(malformed: Malformed, binding: Binding) -> Rejection {
    Rejection {
        dialect: malformed.dialect(binding),
        rpc_id: malformed.rpc_id,
        ..Rejection::plain(malformed.fault, malformed.code)
    }
}

/// What [`admitted`] found.
struct Admitted {
    permit: Permit,
    related: Related,
    path: Box<str>,
    body: Option<Bytes>,
}

async fn admitted(
    recorder: &mut Recorder,
    asking: &Asking<'_>,
    put: Put,
    began: Duration,
) -> Result<Admitted, Rejection> {
    let agent = asking.agent;
    let gate = recorder.gate().clone();
    let Some(call) = recorder.call.as_ref() else {
        return Err(Rejection::plain(Fault::Internal, "no_call"));
    };
    let tenant = settle(agent, &asking.verified.principal, call);
    let offered = Offered {
        extended_card: recorder.live.cards.has_extended(agent.index),
        webhooks: recorder
            .live
            .snapshot
            .policy
            .webhooks()
            .any_for(agent.index),
    };
    if let Some((fault, code)) = unavailable(call, offered) {
        return Err(Rejection::plain(fault, code));
    }
    if recorder
        .live
        .cards
        .requires_more(agent.index, &recorder.extensions)
    {
        let fault = Fault::ExtensionSupportRequired;
        return Err(Rejection::plain(fault, "extension_not_declared"));
    }
    match tenant {
        Ok(tenant) => recorder.tenant = tenant.map(Box::from),
        Err(TenantRefused::NotFound(fault, code)) => return Err(Rejection::plain(fault, code)),
        Err(TenantRefused::NotAllowed(code)) => {
            recorder.decision = Some(Decision::deny(code));
            return Err(not_allowed(agent, code));
        }
    }
    let Some(call) = recorder.call.as_ref() else {
        return Err(Rejection::plain(Fault::Internal, "no_call"));
    };
    let owner = &asking.verified.owner;
    let related = relate(&*gate.ownership, agent, owner, call)
        .await
        .map_err(Unrelated::rejection)?;
    let began = recorder.phase(Phase::Relate, began);
    let judged = judge(recorder, asking, &related);
    recorder.phase(Phase::Decide, began);
    let judged = match judged {
        Ok(()) => screened(recorder, agent).await,
        refused => refused,
    };
    let judged = judged.and_then(|()| {
        let put = put_in(recorder, asking, put)?;
        Ok((
            put,
            use_once(&gate, &recorder.live, agent, asking.verified)?,
        ))
    });
    // Looking up a webhook's host is waiting, and none of our own work.
    let began = recorder.elapsed();
    let recorded = match judged {
        Ok((put, used)) => {
            let recorded = record(recorder).await;
            recorder.phase(Phase::Record, began);
            used.settle(&gate, recorded).map(|permit| (permit, put))
        }
        Err(rejection) => Err(rejection),
    };
    match recorded {
        Ok((permit, put)) => Ok(Admitted {
            permit,
            related,
            path: put.path,
            body: put.body,
        }),
        Err(rejection) => {
            // Nothing goes out, so a context that was claimed for this call is nobody's again.
            release(&*gate.ownership, agent, owner, &related).await;
            Err(rejection)
        }
    }
}

/// Judges a request on the backend surface; the full grant was checked before.
pub async fn admit_backend(
    recorder: &mut Recorder,
    agent: &Arc<Agent>,
    verified: &Verified,
) -> Result<Admission, Rejection> {
    let question = verified.asks(agent.index, Asked::Backend, AskedSkill::NotAMessage);
    let decision = decide(&recorder.live.snapshot.policy, &question);
    conclude_decision(recorder, agent, decision).map_err(|rejection| Rejection {
        status: None,
        ..rejection
    })?;
    let gate = recorder.gate().clone();
    let used = use_once(&gate, &recorder.live, agent, verified)?;
    let permit = used.settle(&gate, record(recorder).await)?;
    Ok(Admission {
        permit,
        a2a_version: None,
        extensions: None,
        path: Box::default(),
        body: None,
        related: None,
        rework: None,
    })
}

/// The intent, before any byte leaves (I-2), and the permit that it is worth.
async fn record(recorder: &mut Recorder) -> Result<Permit, Rejection> {
    let recorded = recorder
        .intend()
        .await
        .map_err(|error| Rejection::unavailable(error.code(), RETRY))?;
    recorder
        .decision
        .as_ref()
        .and_then(|decision| Permit::issue(decision, &recorded))
        .ok_or_else(|| Rejection::plain(Fault::Internal, "no_decision"))
}

/// SHA-256 of a body, for the record.
pub fn body_hash(body: &[u8]) -> [u8; 32] {
    sha256(body)
}
