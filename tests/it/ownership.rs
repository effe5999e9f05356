//! Whose a task is: the stores, what a call's ids are to its caller, what a reply binds.

mod binding;
mod relating;
mod suite;

use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::ownership_memory::MemoryStore;
use portcullis::config::snapshot::{Agent, Backend, Contexts, Interfaces, Limits};
use portcullis::pipeline::ports::{Claimed, IdKind, Owned, Owner, OwnershipStore, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use suite::{Subject, TTL, owned, owner, wait};

#[test]
fn the_store_in_memory_passes_the_suite() {
    suite::every_rule(|| {
        let clock = Arc::new(ManualClock::at(0));
        let moved = Arc::clone(&clock);
        Subject {
            store: Arc::new(MemoryStore::new(clock, TTL, 1000)),
            advance: Box::new(move |by| moved.advance(by)),
        }
    });
}

#[test]
fn a_full_store_takes_nothing_new_and_forgets_nobody() {
    let clock = Arc::new(ManualClock::at(0));
    let store = MemoryStore::new(Arc::clone(&clock) as _, TTL, 3);
    let alice = owned("alice", None, None);
    let bind = |id: &str| wait(store.bind("a", IdKind::Task, id, &alice));
    for id in ["t1", "t2", "t3"] {
        assert_eq!(store.trouble(), None);
        assert_eq!(bind(id), Ok(Claimed::New));
    }
    for _ in 0..3 {
        assert_eq!(store.trouble(), Some(StoreError));
        assert_eq!(bind("t4"), Err(StoreError));
        let claim = wait(store.claim("a", IdKind::Context, "c", &owner("bob")));
        assert_eq!(claim, Err(StoreError));
        for id in ["t1", "t2", "t3"] {
            assert_eq!(bind(id), Ok(Claimed::Already));
        }
    }
    // What expires makes room.
    clock.advance(TTL / 2);
    assert_eq!(bind("t1"), Ok(Claimed::Already));
    clock.advance(TTL / 2);
    assert_eq!(store.trouble(), None);
    assert_eq!(bind("t4"), Ok(Claimed::New));
    assert_eq!(bind("t1"), Ok(Claimed::Already));
}

#[test]
fn a_released_claim_gives_its_room_back() {
    let store = MemoryStore::new(Arc::new(ManualClock::at(0)), TTL, 1);
    let bob = owner("bob");
    for round in 0..100 {
        let id = format!("c{round}");
        let claimed = wait(store.claim("a", IdKind::Context, &id, &bob));
        assert_eq!(claimed, Ok(Claimed::New));
        wait(store.release("a", IdKind::Context, &id, &bob)).unwrap();
    }
}

/// A store in memory that counts what is asked of it and can be made to fail.
struct Watched {
    inner: MemoryStore,
    asked: AtomicUsize,
    broken: AtomicBool,
}

impl Watched {
    fn new() -> Watched {
        Watched {
            inner: MemoryStore::new(Arc::new(ManualClock::at(0)), TTL, 10_000),
            asked: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }

    fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::Relaxed);
    }

    fn own(&self, kind: IdKind, id: &str, owned: &Owned) {
        let claimed = wait(self.inner.bind("w", kind, id, owned)).unwrap();
        assert_ne!(claimed, Claimed::Foreign);
    }

    fn owner_of(&self, kind: IdKind, id: &str) -> Option<Owner> {
        let owned = wait(self.inner.owned("w", kind, id)).unwrap();
        owned.map(|owned| owned.owner)
    }

    fn ask(&self) -> Result<&MemoryStore, StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.trouble().map_or(Ok(&self.inner), Err)
    }
}

#[async_trait::async_trait]
impl OwnershipStore for Watched {
    async fn owned(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
    ) -> Result<Option<Owned>, StoreError> {
        self.ask()?.owned(agent, kind, id).await
    }

    async fn claim(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<Claimed, StoreError> {
        self.ask()?.claim(agent, kind, id, owner).await
    }

    async fn release(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<(), StoreError> {
        self.ask()?.release(agent, kind, id, owner).await
    }

    async fn bind(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owned: &Owned,
    ) -> Result<Claimed, StoreError> {
        self.ask()?.bind(agent, kind, id, owned).await
    }

    async fn count_tasks(
        &self,
        agent: &str,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<u64, StoreError> {
        self.ask()?.count_tasks(agent, owner, context).await
    }

    fn trouble(&self) -> Option<StoreError> {
        self.broken.load(Ordering::Relaxed).then_some(StoreError)
    }
}

fn agent(contexts: Contexts) -> Agent {
    let second = Duration::from_secs(1);
    Agent {
        index: 0,
        name: "w".into(),
        route: "".into(),
        publish: false,
        backend: Backend::default(),
        other_backends: Vec::new(),
        grpc: None,
        interfaces: Interfaces::Auto,
        skills: Vec::new(),
        tenant: portcullis::config::snapshot::Tenant::None,
        stamp: false,
        identity: portcullis::config::snapshot::BackendIdentity::None,
        forward_token: false,
        skill_rules: None,
        skill_paths: Vec::new(),
        skill_default: None,
        contexts,
        backend_paths: Vec::new(),
        one_time: false,
        deny_status: 403,
        reply_guard: true,
        also_origins: Vec::new(),
        verify: None,
        sign: false,
        public_skills: None,
        limits: Limits {
            body: 1024,
            idle_stream: second,
            max_stream: second,
            unary_timeout: second,
            connect_timeout: second,
            send_timeout: second,
        },
    }
}
