//! From headers to a caller through the gate: what is remembered, and for how long.

use super::world::{Case, World, by_code};
use crate::support::fake_resolver::FakeResolver;
use crate::support::memory_journal::MemoryJournal;
use http::HeaderMap;
use portcullis::a2a::Fault;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::fetch::introspection::IntrospectionClient;
use portcullis::adapters::ownership_memory::MemoryStore;
use portcullis::adapters::random::SystemRandom;
use portcullis::config;
use portcullis::pipeline::failures::Failures;
use portcullis::pipeline::gate::{Gate, Ports};
use portcullis::pipeline::metrics::Metrics;
use portcullis::pipeline::proofs::SeenProofs;
use portcullis::pipeline::{Challenge, Presentation, Rejection, SeenAs, Verified, authenticate};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const PEER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A gate that trusts issuer A.
struct Stand {
    world: World,
    clock: Arc<ManualClock>,
    gate: Gate,
    folder: TempDir,
}

const YAML: &str = "version: 1
listeners: [{name: public, bind: 127.0.0.1:0, public_url: https://gateway.example}]
agents:
  - name: one
    route: {path: /agents/one}
    backend: {url: http://127.0.0.1:9}
issuers:
  - name: a
    issuer: https://issuer-a.example
    audiences: [https://gateway.example/a2a]
    keys: {file: a.json}
    grants: [{path: [scope], form: space_string, map: {a2a:use: agent, gw:full: full}}]
audit: {journal: {dir: journal}}
";

impl Stand {
    fn new() -> Stand {
        let world = World::load();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gateway.yaml"), YAML).unwrap();
        write_keys(folder.path(), &world.jwks["A"]["default"]);
        let loaded = config::load(&folder.path().join("gateway.yaml"));
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        let now = u64::try_from(world.now).unwrap() * 1000;
        let clock = Arc::new(ManualClock::at(now));
        let ports = Ports {
            clock: clock.clone(),
            random: Arc::new(SystemRandom),
            journal: Arc::new(MemoryJournal::default()),
            resolver: Arc::new(FakeResolver),
            introspector: Arc::new(IntrospectionClient::default()),
            ownership: Arc::new(MemoryStore::new(clock.clone(), Duration::from_secs(60), 1)),
            metrics: Arc::new(Metrics::new().unwrap()),
            keys: None,
            issuer_source: Arc::new(portcullis::pipeline::issuer_keys::Nowhere),
            revoked: Vec::new(),
            instance: "test".into(),
        };
        Stand {
            gate: Gate::new(ports, loaded.snapshot),
            world,
            clock,
            folder,
        }
    }

    /// Puts a generation with other keys in force.
    fn reload(&self, jwks: &str) {
        write_keys(self.folder.path(), jwks);
        let loaded = config::load(&self.folder.path().join("gateway.yaml"));
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        self.gate.install(loaded.snapshot);
    }

    fn judge(&self, id: &str) -> Result<Arc<Verified>, Rejection> {
        let case = self.world.case(id);
        self.judge_case(case).1
    }

    fn judge_case(&self, case: &Case) -> (HeaderMap, Result<Arc<Verified>, Rejection>) {
        let headers = case.headers().unwrap_or_default();
        let live = self.gate.live();
        let presentation = from_peer(&headers, case.query());
        let judged = at_once(authenticate(&self.gate, &live, &presentation));
        (headers, judged)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn cached(&self) -> usize {
        self.gate.live().tokens.len()
    }
}

/// With keys from files nothing is waited for.
fn at_once<T>(judging: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(judging).poll(&mut context) {
        std::task::Poll::Ready(judged) => judged,
        std::task::Poll::Pending => panic!("a token with known keys was made to wait"),
    }
}

fn write_keys(folder: &Path, jwks: &str) {
    std::fs::write(folder.join("a.json"), jwks).unwrap();
}

#[test]
fn a_hit_is_the_same_caller() {
    let stand = Stand::new();
    let first = stand.judge("tr-001").unwrap();
    let second = stand.judge("tr-001").unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(stand.cached(), 1);
    // The same claims under another signature are another token of the same caller.
    let other = stand.judge("hd-018").unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
    assert_eq!(first.owner, other.owner);
    assert_ne!(first.fingerprint, other.fingerprint);
    assert_eq!(stand.cached(), 2);
}

#[test]
fn an_owner_is_issuer_and_subject() {
    let verified = Stand::new().judge("tr-001").unwrap();
    assert_eq!(&*verified.owner.0, "a\u{1f}agent-1");
}

#[test]
fn a_hit_is_judged_again() {
    let stand = Stand::new();
    stand.judge("tr-001").unwrap();
    stand.advance(250);
    stand.judge("tr-001").unwrap();
    // 300 s of life and 30 s of leeway; the cache's own 300 s are not the reason.
    stand.advance(79);
    assert!(stand.judge("tr-001").is_ok());
    stand.advance(1);
    let refused = stand.judge("tr-001").unwrap_err();
    assert_eq!(
        (refused.code, refused.token_rule),
        ("expired", Some("CL-3"))
    );
    assert_eq!(stand.judge("tr-001").unwrap_err().code, "expired");
}

#[test]
fn an_entry_is_verified_anew_after_a_while() {
    let stand = Stand::new();
    let first = stand.judge("tr-001").unwrap();
    stand.advance(299);
    assert!(Arc::ptr_eq(&first, &stand.judge("tr-001").unwrap()));
    stand.advance(1);
    assert!(!Arc::ptr_eq(&first, &stand.judge("tr-001").unwrap()));
}

#[test]
fn a_new_generation_begins_empty_and_a_removed_key_is_a_revoked_one() {
    let stand = Stand::new();
    let before = stand.gate.live();
    stand.judge("tr-001").unwrap();
    stand.reload(&stand.world.jwks["A"]["empty"]);
    assert_eq!(stand.cached(), 0);
    assert_eq!(stand.judge("tr-001").unwrap_err().code, "unknown_kid");
    // A request that began before the reload keeps its generation.
    let headers = stand.world.case("tr-001").headers().unwrap();
    let presentation = from_peer(&headers, None);
    assert!(at_once(authenticate(&stand.gate, &before, &presentation)).is_ok());
    stand.reload(&stand.world.jwks["A"]["default"]);
    stand.judge("tr-001").unwrap();
}

#[test]
fn a_remembered_caller_whose_key_left_is_refused() {
    let stand = Stand::new();
    let verified = stand.judge("tr-001").unwrap();
    let other = |name: &str| {
        let mut case = World::load().cases.swap_remove(0);
        case.jwks.insert("A".into(), name.into());
        stand.world.issuers(&case)
    };
    let now = stand.world.now;
    let judge =
        |name: &str| portcullis::identity::still_good(&other(name), &verified.principal, now);
    assert_eq!(judge("default"), Ok(()));
    assert_eq!(judge("rsa_plain"), Err(by_code("key_gone")));
    assert_eq!(judge("no_document"), Err(by_code("keys_unavailable")));
    // The same key for another algorithm is not the one that verified (KY-5).
    let verified = stand.judge("hd-016").unwrap();
    let judge =
        |name: &str| portcullis::identity::still_good(&other(name), &verified.principal, now);
    assert_eq!(judge("default"), Ok(()));
    assert_eq!(judge("rsa_plain"), Ok(()));
    assert_eq!(judge("rsa_ps"), Err(by_code("key_gone")));
}

#[test]
fn refusals_take_no_room() {
    // Of these the token is good, and remembered; who sent it is not its holder.
    const SENDER: [&str; 5] = ["SC-2", "SC-3", "SC-4", "SC-6", "SC-7"];
    let mut stand = Stand::new();
    for case in &World::load().cases {
        stand.gate.failures = Failures::default();
        let judged = stand.judge_case(case).1;
        match judged.map_err(|refused| refused.token_rule.unwrap()) {
            Err(rule) if !SENDER.contains(&rule) => {
                assert_eq!(stand.cached(), 0, "{}", case.id);
            }
            Ok(_) | Err(_) => stand.reload(&stand.world.jwks["A"]["default"]),
        }
    }
}

#[test]
fn the_cache_is_bounded() {
    let stand = Stand::new();
    let verified = stand.judge("tr-001").unwrap();
    let cache = portcullis::pipeline::token_cache::TokenCache::new();
    for n in 0..12_000u64 {
        let key = portcullis::pipeline::token_cache::TokenKey::of(&n.to_string());
        cache.insert(key, verified.clone(), Duration::from_millis(n));
        assert!(cache.get(&key, Duration::from_millis(n)).is_some());
    }
    assert!((9_000..=10_000).contains(&cache.len()), "{}", cache.len());
}

#[test]
fn every_refused_token_gets_the_same_reply() {
    let stand = Stand::new();
    let mut refusals = 0;
    for (number, case) in (0u32..).zip(&stand.world.cases) {
        let (headers, live) = (case.headers().unwrap_or_default(), stand.gate.live());
        // From an address of its own: so many from one would be held up.
        let presentation = Presentation {
            peer: std::net::Ipv4Addr::from(number).into(),
            ..from_peer(&headers, case.query())
        };
        let judged = at_once(authenticate(&stand.gate, &live, &presentation));
        let Err(rejection) = judged else {
            continue;
        };
        assert!(rejection.token_rule.is_some(), "{}", case.id);
        if rejection.challenge != Challenge::InvalidToken {
            continue;
        }
        refusals += 1;
        let public = Rejection {
            code: "",
            token_rule: None,
            ..rejection
        };
        let same = Rejection {
            challenge: Challenge::InvalidToken,
            ..Rejection::plain(Fault::Unauthenticated, "")
        };
        assert_eq!(public, same, "{} {}", case.id, headers.len());
    }
    assert!(refusals > 150, "{refusals}");
    let metrics = stand.gate.metrics.render();
    assert!(metrics.contains(r#"auth_failures_total{issuer="a",reason="bad_signature"}"#));
    assert!(metrics.contains(r#"auth_failures_total{issuer="other",reason="no_credential"}"#));
}

#[test]
fn each_kind_of_refusal_has_its_reply() {
    let stand = Stand::new();
    for (id, fault, challenge, retry) in [
        ("tr-012", Fault::Unauthenticated, Challenge::Bearer, None),
        (
            "tr-015",
            Fault::InvalidCredentials,
            Challenge::InvalidRequest,
            None,
        ),
        (
            "fm-017",
            Fault::Unauthenticated,
            Challenge::InvalidToken,
            None,
        ),
        (
            "sc-014",
            Fault::Unauthenticated,
            Challenge::InvalidToken,
            None,
        ),
    ] {
        let refused = stand.judge(id).unwrap_err();
        assert_eq!(
            (refused.fault, refused.challenge, refused.retry_after),
            (fault, challenge, retry),
            "{id}"
        );
    }
}

/// CA-2, SC-2: what is remembered of a token says nothing about who sends it now.
#[test]
fn a_hit_is_judged_by_its_own_connection() {
    let stand = Stand::new();
    let case = stand.world.case("own-sc-2-good");
    let (headers, live) = (case.headers().unwrap(), stand.gate.live());
    let (alice, bob) = (case.certificate().unwrap(), [7; 32]);
    for (certificate, good) in [
        (Some(alice), true),
        (Some(bob), false),
        (None, false),
        (Some(alice), true),
    ] {
        let presentation = Presentation {
            certificate,
            ..from_peer(&headers, None)
        };
        let judged = at_once(authenticate(&stand.gate, &live, &presentation));
        assert_eq!(judged.is_ok(), good, "{certificate:?}");
        assert_eq!(stand.cached(), 1);
    }
}

/// SC-4: what cannot be remembered is not taken, and nobody is told that the proof was bad.
#[test]
fn a_full_store_of_proofs_refuses() {
    let mut stand = Stand::new();
    stand.gate.seen_proofs = SeenProofs::with_room(&SystemRandom, 1, 1);
    assert!(stand.judge("sc-011").is_ok());
    let refused = stand.judge("own-sc-4-more").unwrap_err();
    assert_eq!(
        (refused.fault, refused.challenge, refused.code),
        (Fault::Unavailable, Challenge::None, "proof_store_full")
    );
    assert!(refused.retry_after.is_some());
    assert_eq!(stand.judge("sc-011").unwrap_err().code, "proof_replayed");
    stand.advance(66);
    assert_eq!(stand.judge("own-sc-4-more").unwrap_err().code, "proof_time");
}

/// CA-5: an address that has proofs verified in vain is told to wait.
#[test]
fn forged_proofs_are_bounded_by_address() {
    use portcullis::pipeline::failures::PER_WINDOW;
    let stand = Stand::new();
    assert!(stand.judge("sc-011").is_ok());
    for _ in 0..PER_WINDOW {
        let refused = stand.judge("sc-016").unwrap_err();
        assert_eq!(refused.code, "proof_signature");
    }
    let refused = stand.judge("sc-016").unwrap_err();
    assert_eq!(refused.code, "too_many_failures");
    // Tokens that need no proof go on.
    stand.advance(10);
    assert!(stand.judge("tr-001").is_ok());
}

fn from_peer<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Presentation<'a> {
    Presentation {
        headers,
        query,
        peer: PEER,
        certificate: None,
        method: "POST",
        seen_as: SeenAs::Url("https://gateway.example/a2a"),
    }
}
