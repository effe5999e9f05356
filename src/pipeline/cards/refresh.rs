//! The task that keeps one agent's card fresh.

use super::{
    CardChange, CardStore, CardTarget, FetchFacts, FetchFailureKind, FetchOutcome, Known, NamedKeys,
};
use crate::a2a::card::rewrite::sha256;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use crate::pipeline::RequestId;
use crate::pipeline::ports::{Clock, Random};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::watch;

/// Where cards come from.
#[async_trait]
pub trait CardSource: Send + Sync {
    /// Asks the agent for its card under this id, conditionally when `known` is given; bounded in time and size.
    async fn fetch(
        &self,
        target: &CardTarget,
        known: Option<&Known>,
        request_id: RequestId,
    ) -> FetchOutcome;

    /// Fetches a key set that the configuration allows by its whole URL; bounded in time and size.
    ///
    /// # Errors
    /// Why there is none.
    async fn key_set(&self, url: &str, request_id: RequestId) -> Result<Bytes, FetchFailureKind>;
}

/// What happened for an agent's card.
pub enum Observed<'a> {
    /// Its card was fetched, with this effect.
    Card(&'a CardChange, &'a FetchFacts),
    /// A key set for its signatures was fetched; why not, if it was not.
    KeySet(&'a FetchFacts, Option<&'static str>),
}

/// Called with an agent's index and what happened.
pub type Observe = Arc<dyn Fn(usize, Observed<'_>) + Send + Sync>;

/// What the refreshing tasks of all agents share.
#[derive(Clone)]
pub struct RefreshPorts {
    /// Where cards come from.
    pub source: Arc<dyn CardSource>,
    /// Time, for states and records.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub random: Arc<dyn Random>,
    /// Told of every fetch, after it has taken effect.
    pub observe: Observe,
}

/// Keeps one agent's card fresh until `stop` is true or its sender is gone.
///
/// Asks at once when there is no good card, then in the store's rhythm
/// ([`CardStore::next_refresh`]) and whenever [`CardStore::refresh_now`] is called.
pub async fn run_refresh(
    store: Arc<CardStore>,
    agent: usize,
    ports: RefreshPorts,
    mut stop: watch::Receiver<bool>,
) {
    let mut wait = store.has_card(agent);
    loop {
        if wait {
            let pause = store.next_refresh(agent, ports.random.as_ref());
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = store.refresh_requested(agent) => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        wait = true;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = refresh_once(&store, agent, &ports) => {}
        }
    }
}

/// Asks for one agent's card now, and takes in what comes of it.
pub async fn refresh_once(store: &CardStore, agent: usize, ports: &RefreshPorts) {
    let Some(target) = store.target(agent) else {
        return;
    };
    let known = store.known(agent);
    let id = RequestId::new(ports.clock.as_ref(), ports.random.as_ref());
    let began = ports.clock.monotonic();
    let outcome = ports.source.fetch(&target, known.as_ref(), id).await;
    let took = ports.clock.monotonic().saturating_sub(began);
    let facts = outcome.facts(id, known.as_ref(), took);
    let mut named = NamedKeys::new();
    for url in store.key_sets(agent, &outcome) {
        let set = key_set(ports, agent, &url).await;
        named.extend(set.map(|set| (url, set)));
    }
    let change = store.apply(agent, outcome, named, ports.clock.now());
    (ports.observe)(agent, Observed::Card(&change, &facts));
}

/// One key set, told of as a fetch of its own.
async fn key_set(ports: &RefreshPorts, agent: usize, url: &str) -> Option<KeySet> {
    let request_id = RequestId::new(ports.clock.as_ref(), ports.random.as_ref());
    let began = ports.clock.monotonic();
    let fetched = ports.source.key_set(url, request_id).await;
    let (bytes, status, read) = match &fetched {
        Ok(body) => {
            let set = KeySet::parse(body, Algorithm::Rs256);
            (
                Some(body),
                Some(200),
                set.map(|(set, _)| set).map_err(|_| "not_a_key_set"),
            )
        }
        Err(kind) => (None, kind.status(), Err(kind.label())),
    };
    let facts = FetchFacts {
        request_id,
        path: url.into(),
        http_status: status,
        bytes: bytes.map_or(0, |body| body.len() as u64),
        sha256: bytes.map(|body| sha256(body)),
        took: ports.clock.monotonic().saturating_sub(began),
    };
    (ports.observe)(
        agent,
        Observed::KeySet(&facts, read.as_ref().err().copied()),
    );
    read.ok()
}
