//! The store of current cards: what replaces what, carrying over, and the refreshing task.

use async_trait::async_trait;
use bytes::Bytes;
use portcullis::a2a::card::Interface;
use portcullis::a2a::{Binding, Versions};
use portcullis::config::route::Routes;
use portcullis::config::snapshot::{
    Admin, Agent, Audit, Backend, Contexts, Interfaces, Limits, Listener, Ownership, Snapshot,
};
use portcullis::pipeline::RequestId;
use portcullis::pipeline::cards::{
    CardChange, CardNoticeKind, CardSource, CardState, CardStore, CardTarget, CardTrouble,
    CardView, FetchFailure, FetchFailureKind, FetchOutcome, Known, Observed, RefreshPorts,
    run_refresh,
};
use portcullis::pipeline::ports::{Clock, Random, UnixMillis};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

pub fn agent(index: usize, name: &str) -> Agent {
    Agent {
        index,
        name: name.into(),
        route: format!("/agents/{name}").into(),
        publish: true,
        backend: Backend {
            host: "b.example.com".into(),
            port: 8080,
            authority: "b.example.com:8080".into(),
            base_path: "".into(),
            card_paths: vec!["/.well-known/agent-card.json".into()],
            ..Backend::default()
        },
        other_backends: Vec::new(),
        grpc: None,
        interfaces: Interfaces::Auto,
        skills: vec!["hello".into()],
        tenant: portcullis::config::snapshot::Tenant::None,
        stamp: false,
        identity: portcullis::config::snapshot::BackendIdentity::None,
        forward_token: false,
        skill_rules: None,
        skill_paths: Vec::new(),
        skill_default: None,
        contexts: Contexts::Claimable,
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
            idle_stream: Duration::from_secs(1),
            max_stream: Duration::from_secs(1),
            unary_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            send_timeout: Duration::from_secs(1),
        },
    }
}

pub fn snapshot(public_url: &str, agents: Vec<Agent>) -> Snapshot {
    let bind = "127.0.0.1:0".parse().unwrap();
    let agents: Vec<_> = agents.into_iter().map(Arc::new).collect();
    Snapshot {
        generation: 1,
        digest: "".into(),
        listeners: vec![Arc::new(Listener {
            name: "public".into(),
            bind,
            public_url: public_url.into(),
            hosts: Vec::new(),
            resources: Default::default(),
            plaintext: true,
            tls: None,
            h2c: false,
            health_path: None,
            cors: Vec::new(),
        })],
        admin: Admin { bind, socket: None },
        routes: Routes::new(&agents),
        agents,
        issuers: Vec::new(),
        introspection: Vec::new(),
        policies: Vec::new(),
        sources: Vec::new(),
        policy: std::sync::Arc::default(),
        policy_names: Vec::new(),
        revocation: Default::default(),
        ownership: Ownership {
            ttl: Duration::from_secs(86_400),
        },
        audit: Audit::new("unused".into()),
        keys: Default::default(),
        telemetry: Default::default(),
        redact: Default::default(),
    }
}

fn store() -> CardStore {
    CardStore::for_snapshot(&snapshot(GW, vec![agent(0, "w")]), None, None, 0)
}

pub const GW: &str = "https://gw.example.com";

fn card(path: &str) -> FetchOutcome {
    let text = format!(
        r#"{{"name":"w","url":"http://b.example.com:8080{path}","skills":[{{"id":"hello"}}]}}"#
    );
    fetched(&text)
}

fn fetched(text: &str) -> FetchOutcome {
    FetchOutcome::Fetched {
        body: Bytes::copy_from_slice(text.as_bytes()),
        etag: Some("\"theirs\"".into()),
        path: "/.well-known/agent-card.json".into(),
    }
}

fn failed(kind: FetchFailureKind) -> FetchOutcome {
    FetchOutcome::Failed(FetchFailure {
        path: "/.well-known/agent-card.json".into(),
        kind,
    })
}

fn view(store: &CardStore) -> String {
    match store.card(0) {
        CardView::Ready(published, at) => {
            let body: serde_json::Value = serde_json::from_slice(&published.document.body).unwrap();
            format!("{} since {at}", body["url"].as_str().unwrap())
        }
        CardView::Missing(after) => format!("missing, {after}"),
        CardView::Withheld => "withheld".to_owned(),
    }
}

#[test]
fn before_a_first_good_card_the_reason_decides_the_answer() {
    let cases = [
        (failed(FetchFailureKind::Unreachable), "missing, 1"),
        (failed(FetchFailureKind::TimedOut), "missing, 1"),
        (failed(FetchFailureKind::NotFound), "missing, 1"),
        (failed(FetchFailureKind::Status(503)), "missing, 1"),
        (failed(FetchFailureKind::Status(204)), "withheld"),
        (failed(FetchFailureKind::Redirected(302)), "withheld"),
        (failed(FetchFailureKind::Encoded), "withheld"),
        (failed(FetchFailureKind::TooLarge), "withheld"),
        (FetchOutcome::NotModified, "missing, 1"),
        (fetched("<html>"), "withheld"),
        (fetched("[]"), "withheld"),
        (
            fetched(r#"{"name":"w","url":"http://other.example.com/"}"#),
            "withheld",
        ),
    ];
    for (outcome, expected) in cases {
        let store = store();
        assert_eq!(view(&store), "missing, 1");
        store.apply(0, outcome.clone(), Vec::new(), 5);
        assert_eq!(view(&store), expected, "{outcome:?}");
        assert!(store.interfaces(0).is_empty());
        // Whatever it was, a good card ends it.
        assert!(matches!(
            store.apply(0, card("/a"), Vec::new(), 9),
            CardChange::Installed(_)
        ));
        assert_eq!(view(&store), "https://gw.example.com/agents/w/a since 9");
    }
}

#[test]
fn the_last_good_card_stays_until_a_better_one_comes() {
    let store = store();
    store.apply(0, card("/a"), Vec::new(), 10);
    let bad = [
        failed(FetchFailureKind::Unreachable),
        failed(FetchFailureKind::TooLarge),
        fetched("<html>"),
    ];
    for (outcome, now) in bad.into_iter().zip([20, 30, 40]) {
        assert!(matches!(
            store.apply(0, outcome, Vec::new(), now),
            CardChange::Kept(_)
        ));
        assert_eq!(view(&store), "https://gw.example.com/agents/w/a since 10");
        assert_eq!(store.interfaces(0).len(), 1);
        // The first failure says since when.
        let notices = store.notices();
        assert!(
            matches!(notices[0].kind, CardNoticeKind::LastGood(20, _)),
            "{notices:?}"
        );
    }
    assert_eq!(
        store.apply(0, card("/a"), Vec::new(), 50),
        CardChange::Unchanged
    );
    assert_eq!(store.notices(), Vec::new());
    assert_eq!(view(&store), "https://gw.example.com/agents/w/a since 10");

    store.apply(0, failed(FetchFailureKind::Broken), Vec::new(), 60);
    assert_eq!(
        store.apply(0, FetchOutcome::NotModified, Vec::new(), 70),
        CardChange::Unchanged
    );
    assert_eq!(store.notices(), Vec::new());

    let change = store.apply(0, card("/b"), Vec::new(), 80);
    assert!(matches!(change, CardChange::Changed { .. }));
    assert_eq!(view(&store), "https://gw.example.com/agents/w/b since 80");
    assert_eq!(&*store.interfaces(0)[0].backend_path, "/b");
}

#[test]
fn skills_that_differ_from_the_configuration_are_noticed() {
    let store = store();
    store.apply(
        0,
        fetched(r#"{"name":"w","url":"http://b.example.com:8080/","skills":[{"id":"x"}]}"#),
        Vec::new(),
        1,
    );
    let kinds: Vec<_> = store.notices().into_iter().map(|n| n.kind).collect();
    let expected = [
        CardNoticeKind::SkillUnlisted("x".into()),
        CardNoticeKind::SkillVanished("hello".into()),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_reload_carries_cards_over_and_rewrites_them() {
    let old = CardStore::for_snapshot(
        &snapshot(GW, vec![agent(0, "v"), agent(1, "w")]),
        None,
        None,
        0,
    );
    old.apply(1, card("/a"), Vec::new(), 10);
    // The same agent at another position: same body, same date.
    let same = CardStore::for_snapshot(&snapshot(GW, vec![agent(0, "w")]), Some(&old), None, 20);
    assert_eq!(view(&same), "https://gw.example.com/agents/w/a since 10");
    assert!(same.known(0).is_some());
    // Another public address: rewritten from what the agent once sent.
    let next = snapshot("https://new.example.com", vec![agent(0, "w")]);
    let moved = CardStore::for_snapshot(&next, Some(&same), None, 30);
    assert_eq!(view(&moved), "https://new.example.com/agents/w/a since 30");
    // Another backend, or another agent: nothing is carried over.
    let mut elsewhere = agent(0, "w");
    elsewhere.backend.host = "c.example.com".into();
    let fresh = CardStore::for_snapshot(&snapshot(GW, vec![elsewhere]), Some(&moved), None, 40);
    assert_eq!(view(&fresh), "missing, 1");
    let other = CardStore::for_snapshot(&snapshot(GW, vec![agent(0, "x")]), Some(&moved), None, 40);
    assert_eq!(view(&other), "missing, 1");
}

#[test]
fn listed_interfaces_need_no_card() {
    let mut one = agent(0, "w");
    let listed = Interface {
        public_path: "".into(),
        backend_path: "/rpc".into(),
        binding: Binding::JsonRpc,
        versions: Versions {
            v0_3: true,
            v1_0: true,
        },
        backend: 0,
    };
    let listed = [listed];
    one.interfaces = Interfaces::Listed(listed.to_vec());
    let store = CardStore::for_snapshot(&snapshot(GW, vec![one]), None, None, 0);
    assert_eq!(*store.interfaces(0), listed);
    store.apply(0, fetched("<html>"), Vec::new(), 1);
    assert_eq!(*store.interfaces(0), listed);
    assert!(store.interfaces(7).is_empty());
}

struct Dice(u8);

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

#[test]
fn waits_double_until_the_first_success_and_are_then_five_minutes() {
    let store = store();
    let mut waits = Vec::new();
    for _ in 0..9 {
        store.apply(0, failed(FetchFailureKind::Unreachable), Vec::new(), 0);
        waits.push(store.next_refresh(0, &Dice(128)).as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    store.apply(0, card("/"), Vec::new(), 0);
    assert_eq!(store.next_refresh(0, &Dice(0)).as_secs(), 225);
    assert_eq!(store.next_refresh(0, &Dice(255)).as_secs(), 374);
    store.apply(0, failed(FetchFailureKind::Unreachable), Vec::new(), 0);
    assert_eq!(store.next_refresh(0, &Dice(128)).as_secs(), 300);
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> UnixMillis {
        77
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Script(Mutex<Vec<(FetchOutcome, Option<Known>)>>);

#[async_trait]
impl CardSource for Script {
    async fn fetch(
        &self,
        target: &CardTarget,
        known: Option<&Known>,
        _: RequestId,
    ) -> FetchOutcome {
        assert_eq!(&*target.authority, "b.example.com:8080");
        let next = self.0.lock().unwrap().pop();
        let Some((outcome, expected)) = next else {
            // An agent that never answers must not keep the task from stopping.
            return std::future::pending().await;
        };
        assert_eq!(known, expected.as_ref());
        outcome
    }

    async fn key_set(&self, url: &str, _: RequestId) -> Result<Bytes, FetchFailureKind> {
        panic!("nothing names {url}");
    }
}

#[tokio::test]
async fn the_task_asks_at_once_then_on_demand_and_stops_when_told() {
    let store = Arc::new(store());
    let known = Known {
        path: "/.well-known/agent-card.json".into(),
        etag: "\"theirs\"".into(),
    };
    let script = vec![
        (FetchOutcome::NotModified, Some(known.clone())),
        (card("/b"), Some(known)),
        (card("/a"), None),
    ];
    let (seen, mut changes) = mpsc::unbounded_channel();
    let ports = RefreshPorts {
        source: Arc::new(Script(Mutex::new(script))),
        clock: Arc::new(Stopped),
        random: Arc::new(Dice(0)),
        observe: Arc::new(move |agent, observed| {
            let Observed::Card(change, fetch) = observed else {
                panic!("no key set is fetched");
            };
            assert_eq!(&*fetch.path, "/.well-known/agent-card.json");
            assert!(matches!(fetch.http_status, Some(200 | 304)));
            seen.send((agent, change.clone())).unwrap()
        }),
    };
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(run_refresh(Arc::clone(&store), 0, ports, stopped));

    assert!(matches!(
        changes.recv().await,
        Some((0, CardChange::Installed(_)))
    ));
    store.refresh_now(0);
    assert!(matches!(
        changes.recv().await,
        Some((0, CardChange::Changed { .. }))
    ));
    store.refresh_now(0);
    assert!(matches!(
        changes.recv().await,
        Some((0, CardChange::Unchanged))
    ));
    assert_eq!(view(&store), "https://gw.example.com/agents/w/b since 77");
    store.refresh_now(0);
    stop.send(true).unwrap();
    task.await.unwrap();
    assert!(changes.recv().await.is_none());
}

#[test]
fn reasons_are_said_in_words() {
    let store = store();
    store.apply(0, failed(FetchFailureKind::NotFound), Vec::new(), 1);
    let Some(state) = store.state(0) else {
        panic!("there is a state");
    };
    let CardState::Absent { reason, since: 0 } = &*state else {
        panic!("{state:?}");
    };
    assert_eq!(
        reason.to_string(),
        "the agent's card could not be fetched from `/.well-known/agent-card.json`: not found on \
         any path; set `backend.card`"
    );
    assert_eq!(CardTrouble::NotAsked.label(), "not_asked");
}
