//! The task that keeps one agent's card fresh.

use super::{CardChange, CardStore, CardTarget, FetchFacts, FetchOutcome, Known};
use crate::pipeline::RequestId;
use crate::pipeline::ports::{Clock, Random};
use async_trait::async_trait;
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
}

/// Called with an agent's index, what a fetch changed there, and the fetch itself.
pub type Observe = Arc<dyn Fn(usize, &CardChange, &FetchFacts) + Send + Sync>;

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
    let Some(target) = store.target(agent) else {
        return;
    };
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
        let known = store.known(agent);
        let id = RequestId::new(ports.clock.as_ref(), ports.random.as_ref());
        let began = ports.clock.monotonic();
        let outcome = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            outcome = ports.source.fetch(&target, known.as_ref(), id) => outcome,
        };
        let took = ports.clock.monotonic().saturating_sub(began);
        let facts = outcome.facts(id, known.as_ref(), took);
        let change = store.apply(agent, outcome, ports.clock.now());
        (ports.observe)(agent, &change, &facts);
    }
}
