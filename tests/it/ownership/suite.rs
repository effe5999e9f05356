//! What every ownership store must do. A store passes when [`every_rule`] does on fresh ones.

use portcullis::pipeline::ports::{Claimed, IdKind, Owned, Owner, OwnershipStore};
use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// How long the store under test keeps an id.
pub const TTL: Duration = Duration::from_secs(1000);

/// An empty store, and a way to let its time pass.
pub struct Subject {
    pub store: Arc<dyn OwnershipStore>,
    pub advance: Box<dyn Fn(Duration)>,
}

pub fn every_rule(fresh: impl Fn() -> Subject) {
    for rule in [
        an_id_is_the_first_callers,
        kinds_and_agents_are_apart,
        a_claim_lives_as_long_as_its_last_call,
        a_binding_cannot_be_released,
        what_was_bound_first_stays,
        ids_expire_after_their_last_use,
        looking_prolongs_nothing,
        strangers_prolong_nothing,
        of_many_at_once_one_wins,
        tasks_are_counted_by_owner_agent_and_context,
    ] {
        rule(&fresh());
    }
}

pub fn owner(name: &str) -> Owner {
    Owner::new("corp", name)
}

pub fn owned(name: &str, skill: Option<&str>, context: Option<&str>) -> Owned {
    Owned {
        owner: owner(name),
        skill: skill.map(Arc::from),
        context: context.map(Arc::from),
    }
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

impl Subject {
    fn claim(&self, id: &str, name: &str) -> Claimed {
        wait(self.store.claim("a", IdKind::Context, id, &owner(name))).unwrap()
    }

    fn release(&self, id: &str, name: &str) {
        wait(self.store.release("a", IdKind::Context, id, &owner(name))).unwrap();
    }

    fn bind(&self, id: &str, name: &str) -> Claimed {
        let owned = owned(name, None, None);
        wait(self.store.bind("a", IdKind::Context, id, &owned)).unwrap()
    }

    fn get(&self, agent: &str, kind: IdKind, id: &str) -> Option<Owned> {
        wait(self.store.owned(agent, kind, id)).unwrap()
    }

    fn owner(&self, id: &str) -> Option<Owner> {
        self.get("a", IdKind::Context, id).map(|owned| owned.owner)
    }
}

fn an_id_is_the_first_callers(s: &Subject) {
    assert_eq!(s.owner("c"), None);
    assert_eq!(s.claim("c", "alice"), Claimed::New);
    assert_eq!(s.owner("c"), Some(owner("alice")));
    for _ in 0..2 {
        assert_eq!(s.claim("c", "bob"), Claimed::Foreign);
        assert_eq!(s.bind("c", "bob"), Claimed::Foreign);
        assert_eq!(s.owner("c"), Some(owner("alice")));
        assert_ne!(s.bind("c", "alice"), Claimed::Foreign);
        assert_eq!(s.claim("c", "alice"), Claimed::Already);
    }
    assert_eq!(s.bind("d", "bob"), Claimed::New);
    assert_eq!(s.bind("d", "bob"), Claimed::Already);
    assert_eq!(s.claim("d", "alice"), Claimed::Foreign);
    assert!(s.store.trouble().is_none());
}

fn kinds_and_agents_are_apart(s: &Subject) {
    assert_eq!(s.bind("x", "alice"), Claimed::New);
    assert_eq!(s.get("a", IdKind::Task, "x"), None);
    assert_eq!(s.get("b", IdKind::Context, "x"), None);
    for (agent, kind) in [("a", IdKind::Task), ("b", IdKind::Context)] {
        let claimed = wait(s.store.claim(agent, kind, "x", &owner("bob"))).unwrap();
        assert_eq!(claimed, Claimed::New, "{agent} {kind:?}");
    }
    assert_eq!(s.owner("x"), Some(owner("alice")));
    assert_eq!(s.owner("X"), None);
}

fn a_claim_lives_as_long_as_its_last_call(s: &Subject) {
    s.release("never", "alice");
    // Two calls of one caller; the first never reaches the agent.
    assert_eq!(s.claim("c", "alice"), Claimed::New);
    assert_eq!(s.claim("c", "alice"), Claimed::New);
    s.release("c", "alice");
    assert_eq!(s.claim("c", "bob"), Claimed::Foreign);
    s.release("c", "bob");
    assert_eq!(s.owner("c"), Some(owner("alice")));
    // Nor does the second.
    s.release("c", "alice");
    assert_eq!(s.owner("c"), None);
    assert_eq!(s.claim("c", "bob"), Claimed::New);
    s.release("c", "alice");
    assert_eq!(s.owner("c"), Some(owner("bob")));
}

fn a_binding_cannot_be_released(s: &Subject) {
    assert_eq!(s.claim("c", "alice"), Claimed::New);
    assert_eq!(s.bind("c", "alice"), Claimed::New);
    s.release("c", "alice");
    assert_eq!(s.claim("c", "bob"), Claimed::Foreign);
}

fn what_was_bound_first_stays(s: &Subject) {
    let bind = |skill, context| {
        let owned = owned("alice", skill, context);
        wait(s.store.bind("a", IdKind::Task, "t", &owned)).unwrap();
        s.get("a", IdKind::Task, "t").unwrap()
    };
    assert_eq!(bind(None, None), owned("alice", None, None));
    let added = owned("alice", Some("review"), Some("c1"));
    assert_eq!(bind(Some("review"), Some("c1")), added);
    assert_eq!(bind(Some("hello"), Some("c2")), added);
    assert_eq!(bind(None, None), added);
}

fn ids_expire_after_their_last_use(s: &Subject) {
    s.bind("bound", "alice");
    s.claim("claimed", "alice");
    for _ in 0..3 {
        (s.advance)(TTL - Duration::from_secs(1));
        assert_eq!(s.bind("bound", "alice"), Claimed::Already);
        assert_eq!(s.claim("claimed", "alice"), Claimed::New);
    }
    (s.advance)(TTL);
    for id in ["bound", "claimed"] {
        assert_eq!(s.owner(id), None);
        assert_eq!(s.claim(id, "bob"), Claimed::New);
        assert_eq!(s.claim(id, "alice"), Claimed::Foreign);
        // Nothing of the former owner's is left, its claims neither.
        s.release(id, "bob");
        assert_eq!(s.owner(id), None);
    }
}

fn looking_prolongs_nothing(s: &Subject) {
    s.bind("c", "alice");
    (s.advance)(TTL - Duration::from_secs(1));
    assert_eq!(s.owner("c"), Some(owner("alice")));
    (s.advance)(Duration::from_secs(1));
    assert_eq!(s.owner("c"), None);
}

fn strangers_prolong_nothing(s: &Subject) {
    s.bind("c", "alice");
    (s.advance)(TTL - Duration::from_secs(1));
    assert_eq!(s.claim("c", "bob"), Claimed::Foreign);
    assert_eq!(s.bind("c", "bob"), Claimed::Foreign);
    (s.advance)(Duration::from_secs(1));
    assert_eq!(s.owner("c"), None);
}

fn tasks_are_counted_by_owner_agent_and_context(s: &Subject) {
    let bind = |agent: &str, kind, id: &str, name, context| {
        let owned = owned(name, None, context);
        wait(s.store.bind(agent, kind, id, &owned)).unwrap()
    };
    let count =
        |agent, name, context| wait(s.store.count_tasks(agent, &owner(name), context)).unwrap();
    assert_eq!(count("a", "alice", None), 0);
    for (agent, id, name, context) in [
        ("a", "t1", "alice", Some("c1")),
        ("a", "t2", "alice", Some("c1")),
        ("a", "t3", "alice", Some("c2")),
        ("a", "t4", "alice", None),
        ("b", "t1", "alice", Some("c1")),
        ("a", "t5", "bob", Some("c3")),
    ] {
        // As often as they are named, they are counted once.
        for _ in 0..2 {
            bind(agent, IdKind::Task, id, name, context);
        }
    }
    bind("a", IdKind::Context, "c1", "alice", None);
    assert_eq!(
        bind("a", IdKind::Task, "t5", "alice", None),
        Claimed::Foreign
    );
    for (agent, name, context, expected) in [
        ("a", "alice", None, 4),
        ("a", "alice", Some("c1"), 2),
        ("a", "alice", Some("c2"), 1),
        ("a", "alice", Some("c3"), 0),
        ("b", "alice", None, 1),
        ("a", "bob", None, 1),
        ("b", "bob", None, 0),
        ("a", "", None, 0),
    ] {
        assert_eq!(
            count(agent, name, context),
            expected,
            "{agent} {name} {context:?}"
        );
    }
    // A context that is learnt later counts; what expires does not, whoever has it then.
    bind("a", IdKind::Task, "t4", "alice", Some("c2"));
    assert_eq!(count("a", "alice", Some("c2")), 2);
    (s.advance)(TTL);
    assert_eq!(count("a", "alice", None), 0);
    assert_eq!(bind("a", IdKind::Task, "t1", "bob", None), Claimed::New);
    assert_eq!((count("a", "alice", None), count("a", "bob", None)), (0, 1));
}

fn of_many_at_once_one_wins(s: &Subject) {
    const CALLERS: usize = 8;
    let store = &s.store;
    for round in 0..50 {
        let id = format!("c{round}");
        let start = Barrier::new(CALLERS);
        let winners: HashSet<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CALLERS)
                .map(|n| {
                    let (id, start) = (&id, &start);
                    scope.spawn(move || {
                        let me = owner(&n.to_string());
                        start.wait();
                        let claimed = wait(store.claim("a", IdKind::Context, id, &me)).unwrap();
                        (claimed == Claimed::New).then_some(n)
                    })
                })
                .collect();
            threads
                .into_iter()
                .filter_map(|t| t.join().unwrap())
                .collect()
        });
        let winner: Vec<_> = winners.iter().map(|n| owner(&n.to_string())).collect();
        assert_eq!(winner.len(), 1, "round {round}");
        assert_eq!(s.owner(&id).as_ref(), winner.first());
    }
}
