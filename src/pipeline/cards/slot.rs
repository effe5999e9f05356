//! [`Slot`]: one agent's card, from the bytes that came to the state that is served.

use super::outcome::{CardTrouble, FetchFailure, FetchFailureKind, FetchOutcome};
use super::signing::{CardSigner, NamedKeys, attested};
use super::state::{CardChange, CardNoticeKind, CardState, Current};
use super::{MESSAGES, OFFERED};
use crate::a2a::card::{
    CardFault, Interface, Promises, Publication, Published, SecuritySchemes, Signer, rewrite,
    rewrite_reply,
};
use crate::a2a::{Dialect, Operation, Version};
use crate::config::snapshot::{Agent, GrpcDoor, Interfaces, Listener, Tenant};
use crate::identity::SigningKey;
use crate::pipeline::ports::UnixMillis;
use crate::policy::{Asked, AskedSkill, PolicySet, could_allow, could_use};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;

/// The card of one agent of one generation.
pub(super) struct Slot {
    pub(super) agent: Arc<Agent>,
    policy: Arc<PolicySet>,
    promises: Promises,
    schemes: SecuritySchemes,
    signer: Option<CardSigner>,
    public_base: Box<str>,
    grpc_authority: Option<Box<str>>,
    /// What the operator listed; empty for `interfaces: auto`.
    listed: Arc<[Interface]>,
    pub(super) state: ArcSwap<CardState>,
    /// Attempts since the last good answer.
    pub(super) failures: AtomicU32,
    pub(super) refresh: Notify,
    /// What the agent's card may offer.
    offered: Vec<Dialect>,
}

/// What we proxy of an agent. Version 0.3 has no tenant, so an agent that has some is not offered
/// in it.
fn offered(agent: &Agent) -> Vec<Dialect> {
    let tells_tenants =
        |dialect: &&Dialect| agent.tenant == Tenant::None || dialect.version == Version::V1_0;
    OFFERED.iter().filter(tells_tenants).copied().collect()
}

impl Slot {
    pub(super) fn new(
        agent: &Arc<Agent>,
        policy: &Arc<PolicySet>,
        key: Option<&Arc<SigningKey>>,
        listeners: &[Arc<Listener>],
        now: UnixMillis,
    ) -> Slot {
        // Cards name the public URL of the first listener.
        let base = listeners
            .first()
            .map_or("", |listener| &listener.public_url);
        let listed = match &agent.interfaces {
            Interfaces::Auto => Arc::from([]),
            Interfaces::Listed(listed) => Arc::from(listed.as_slice()),
        };
        let key = key.filter(|_| agent.sign);
        Slot {
            grpc_authority: agent
                .grpc
                .as_ref()
                .and_then(|grpc| authority(&grpc.door, listeners)),
            public_base: format!("{base}{}", agent.route).into_boxed_str(),
            listed,
            state: ArcSwap::from_pointee(CardState::Absent {
                since: now,
                reason: CardTrouble::NotAsked,
            }),
            failures: AtomicU32::new(0),
            refresh: Notify::new(),
            promises: promises(policy, agent),
            schemes: schemes(policy, agent, listeners),
            offered: offered(agent),
            signer: key.map(|key| CardSigner::new(key, base)),
            policy: Arc::clone(policy),
            agent: Arc::clone(agent),
        }
    }

    /// The card for strangers: skills that nobody could ever be allowed are not shown.
    fn publish(&self, upstream: &[u8], named: &NamedKeys) -> Result<Published, CardTrouble> {
        let verify = self.agent.verify.as_ref();
        let attested = verify.map(|verify| attested(verify, named, upstream));
        if let (Some(verify), Some(attested)) = (verify, &attested)
            && verify.required
            && !attested.is_good()
        {
            return Err(CardTrouble::Signature(attested.clone()));
        }
        let public = self.agent.public_skills.as_ref();
        let shows = |id: Option<&str>| {
            let chosen = public.is_none_or(|shown| shown.iter().any(|s| id == Some(s)));
            chosen && self.could_send(id)
        };
        let published = self.with_publication(None, &shows, |p| rewrite(upstream, p));
        let mut published = published.map_err(CardTrouble::Fault)?;
        published.attested = attested;
        Ok(published)
    }

    /// The extended card in a reply, for one caller.
    pub(super) fn extended(
        &self,
        dialect: Dialect,
        reply: &[u8],
        shows: &dyn Fn(Option<&str>) -> bool,
    ) -> Result<Bytes, CardFault> {
        let reachable = self.interfaces();
        self.with_publication(Some(&reachable), shows, |publication| {
            rewrite_reply(dialect, reply, publication)
        })
    }

    fn could_send(&self, skill: Option<&str>) -> bool {
        let skill = skill.map_or(AskedSkill::Unknown, AskedSkill::Known);
        MESSAGES.into_iter().any(|operation| {
            let asked = Asked::Operation(operation);
            could_allow(&self.policy, self.agent.index, asked, skill)
        })
    }

    fn with_publication<T>(
        &self,
        reachable: Option<&[Interface]>,
        shows: &dyn Fn(Option<&str>) -> bool,
        run: impl FnOnce(&Publication<'_>) -> T,
    ) -> T {
        let backend = &self.agent.backend;
        let listed = match &self.agent.interfaces {
            Interfaces::Auto => None,
            Interfaces::Listed(listed) => Some(listed.as_slice()),
        };
        let signer = self.signer.as_ref();
        let sign = |message: &[u8]| signer.map(|s| s.sign(message)).unwrap_or_default();
        run(&Publication {
            public_base: &self.public_base,
            backend_host: &backend.host,
            backend_port: backend.port,
            backend_base_path: &backend.base_path,
            also_origins: &self.agent.also_origins,
            listed,
            grpc_authority: self.grpc_authority.as_deref(),
            schemes: &self.schemes,
            both_forms: false,
            offered: &self.offered,
            reachable,
            promises: self.promises,
            covered_only: self.agent.verify.as_ref().is_some_and(|v| v.required),
            signer: signer.map(|signer| Signer {
                protected: signer.protected(),
                sign: &sign,
            }),
            shows,
        })
    }

    pub(super) fn take_over(&self, old: &Slot, now: UnixMillis) {
        let state = old.state.load();
        if old.agent.backend != self.agent.backend {
            // The card may be kept only because it was asked for in the wrong way.
            self.refresh.notify_one();
        }
        if let CardState::Current(current) = &**state {
            match self.publish(&current.upstream, &current.named) {
                Ok(published) => {
                    let next = current.with(published, now);
                    self.state.store(Arc::new(CardState::Current(next)));
                }
                // The old form names what the new configuration may not: it is no last good card.
                Err(reason) => self
                    .state
                    .store(Arc::new(CardState::Withheld { since: now, reason })),
            }
        } else {
            self.state.store(Arc::clone(&state));
        }
    }

    pub(super) fn apply(
        &self,
        outcome: FetchOutcome,
        named: NamedKeys,
        now: UnixMillis,
    ) -> CardChange {
        let state = self.state.load_full();
        let (body, etag, path) = match outcome {
            FetchOutcome::Fetched { body, etag, path } => (body, etag, path),
            FetchOutcome::Failed(failure) => {
                return self.fail(&state, CardTrouble::Fetch(failure), now);
            }
            FetchOutcome::NotModified => {
                return match &*state {
                    CardState::Current(current) => {
                        self.failures.store(0, Ordering::Relaxed);
                        self.state.store(Arc::new(CardState::Current(Current {
                            fetched_at: now,
                            kept: None,
                            ..current.clone()
                        })));
                        CardChange::Unchanged
                    }
                    // Nobody was asked conditionally, so 304 is no answer.
                    CardState::Absent { .. } | CardState::Withheld { .. } => {
                        let failure = FetchFailure {
                            path: "".into(),
                            kind: FetchFailureKind::Status(304),
                        };
                        self.fail(&state, CardTrouble::Fetch(failure), now)
                    }
                };
            }
        };
        let published = match self.publish(&body, &named) {
            Ok(published) => published,
            Err(trouble) => return self.fail(&state, trouble, now),
        };
        self.failures.store(0, Ordering::Relaxed);
        let (mut next, change) = match &*state {
            CardState::Current(current) => {
                let next = current.with(published, now);
                let change = if Arc::ptr_eq(&next.published, &current.published) {
                    CardChange::Unchanged
                } else {
                    CardChange::Changed {
                        before: Arc::clone(&current.published),
                        after: Arc::clone(&next.published),
                    }
                };
                (next, change)
            }
            CardState::Absent { .. } | CardState::Withheld { .. } => {
                let next = Current::first(published, now);
                let change = CardChange::Installed(Arc::clone(&next.published));
                (next, change)
            }
        };
        next.fetched_at = now;
        next.kept = None;
        next.upstream = body;
        next.upstream_etag = etag;
        next.path = path;
        next.named = Arc::new(named);
        self.state.store(Arc::new(CardState::Current(next)));
        change
    }

    fn fail(&self, state: &CardState, reason: CardTrouble, now: UnixMillis) -> CardChange {
        let failures = self.failures.load(Ordering::Relaxed);
        self.failures
            .store(failures.saturating_add(1), Ordering::Relaxed);
        match state {
            CardState::Current(current) => {
                let since = current.kept.as_ref().map_or(now, |(since, _)| *since);
                self.state.store(Arc::new(CardState::Current(Current {
                    kept: Some((since, reason.clone())),
                    ..current.clone()
                })));
                CardChange::Kept(reason)
            }
            CardState::Absent { since, .. } | CardState::Withheld { since, .. } => {
                let (since, reason_kept) = (*since, reason.clone());
                if reason.withholds() {
                    self.state.store(Arc::new(CardState::Withheld {
                        since,
                        reason: reason_kept,
                    }));
                    CardChange::Withheld(reason)
                } else {
                    self.state.store(Arc::new(CardState::Absent {
                        since,
                        reason: reason_kept,
                    }));
                    CardChange::Absent(reason)
                }
            }
        }
    }

    pub(super) fn interfaces(&self) -> Arc<[Interface]> {
        if let Interfaces::Listed(_) = self.agent.interfaces {
            return Arc::clone(&self.listed);
        }
        match &**self.state.load() {
            CardState::Current(current) => Arc::clone(&current.interfaces),
            CardState::Absent { .. } | CardState::Withheld { .. } => Arc::clone(&self.listed),
        }
    }

    pub(super) fn notices(&self) -> Vec<CardNoticeKind> {
        let state = self.state.load();
        let current = match &**state {
            CardState::Absent { reason, .. } | CardState::Withheld { reason, .. } => {
                return vec![CardNoticeKind::NoCard(reason.clone())];
            }
            CardState::Current(current) => current,
        };
        let kept = current.kept.iter();
        let kept = kept.map(|(since, reason)| CardNoticeKind::LastGood(*since, reason.clone()));
        let (listed, published) = (&self.agent.skills, &current.published.skills);
        let unlisted = published.iter().filter(|skill| !listed.contains(skill));
        let vanished = listed.iter().filter(|skill| !published.contains(skill));
        let dropped = current.published.dropped.iter().cloned();
        let attested = current.published.attested.iter();
        let unproven = attested.filter(|attested| !attested.is_good()).cloned();
        kept.chain(unlisted.cloned().map(CardNoticeKind::SkillUnlisted))
            .chain(vanished.cloned().map(CardNoticeKind::SkillVanished))
            .chain(dropped.map(CardNoticeKind::InterfaceDropped))
            .chain(unproven.map(CardNoticeKind::Unproven))
            .collect()
    }
}

/// `host:port` of an agent's gRPC door, as callers outside see it.
fn authority(door: &GrpcDoor, listeners: &[Arc<Listener>]) -> Option<Box<str>> {
    match door {
        GrpcDoor::Host(host) => {
            let (_, port) = host_and_port(&listeners.first()?.public_url)?;
            Some(match host.rsplit_once(':') {
                Some((_, digits)) if digits.bytes().all(|b| b.is_ascii_digit()) => host.clone(),
                Some(_) | None => format!("{host}:{port}").into(),
            })
        }
        GrpcDoor::Listener(name) => {
            let listener = listeners.iter().find(|l| l.name == *name)?;
            let (host, port) = host_and_port(&listener.public_url)?;
            Some(format!("{host}:{port}").into())
        }
    }
}

/// Of an origin: the host as it stands, brackets included, and the port, the scheme's own where
/// none is written.
fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let (scheme, authority) = url.split_once("://")?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some((host, port.parse().ok()?)),
        Some(_) | None => Some((authority, if scheme == "https" { 443 } else { 80 })),
    }
}

/// What callers of an agent are told to bring, by what its listener says of our issuers.
fn schemes(policy: &PolicySet, agent: &Agent, listeners: &[Arc<Listener>]) -> SecuritySchemes {
    let usable = |issuer| could_use(policy, agent.index, issuer);
    match listeners.first() {
        Some(listener) => listener.resources.schemes(&agent.route, &usable),
        None => SecuritySchemes::default(),
    }
}

/// What the gateway and the policy could let anybody do.
fn promises(policy: &PolicySet, agent: &Agent) -> Promises {
    let could = |operation, skill| {
        let asked = Asked::Operation(operation);
        could_allow(policy, agent.index, asked, skill)
    };
    let mut skills = agent.skills.iter().map(|id| AskedSkill::Known(id));
    let streaming = |skill| could(Operation::SendStreamingMessage, skill);
    Promises {
        streaming: skills.any(streaming) || streaming(AskedSkill::Unknown),
        push: policy.webhooks().any_for(agent.index)
            && could(
                Operation::CreateTaskPushNotificationConfig,
                AskedSkill::NotAMessage,
            ),
        extended: could(Operation::GetExtendedAgentCard, AskedSkill::NotAMessage),
    }
}
