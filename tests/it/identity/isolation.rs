//! Random sets of issuers: a token is its signer's under exactly one entry, or nobody's (IS-1, IS-2).

use super::world::strict;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{Claims, DevAlgorithm, DevIssuer};
use portcullis::identity::{Issuers, accept};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const NOW: i64 = 1_800_000_000;
const KIDS: [&str; 3] = ["one", "two", "three"];
const AUDIENCES: [&str; 3] = [
    "https://a.example",
    "https://b.example",
    "https://c.example",
];
/// Issuers beyond this are never configured.
const MOST: usize = 5;

/// What is signed with; entries have them in common as it comes.
static KEYS: LazyLock<Vec<DevIssuer>> = LazyLock::new(|| {
    let algorithms = [
        DevAlgorithm::Es256,
        DevAlgorithm::Es256,
        DevAlgorithm::EdDsa,
        DevAlgorithm::EdDsa,
    ];
    algorithms.map(|a| DevIssuer::generate(a).unwrap()).into()
});

/// One entry: its keys by the name under which it publishes them, and its audience.
#[derive(Debug, Clone)]
struct Entry {
    keys: BTreeMap<usize, usize>,
    audience: usize,
}

fn entry() -> impl Strategy<Value = Entry> {
    let keys = prop::collection::btree_map(0..KIDS.len(), 0..4usize, 1..=2);
    (keys, 0..AUDIENCES.len()).prop_map(|(keys, audience)| Entry { keys, audience })
}

/// A token: who signs, whose it claims to be, under which name of a key, for whom, and whose the
/// header says that it is.
#[derive(Debug, Clone)]
struct Made {
    signer: usize,
    claims: usize,
    kid: usize,
    audience: usize,
    header: Option<usize>,
}

fn made() -> impl Strategy<Value = Made> {
    let header = prop::option::weighted(0.2, 0..=MOST);
    (
        0..4usize,
        0..=MOST,
        0..KIDS.len(),
        0..AUDIENCES.len(),
        header,
    )
        .prop_map(|(signer, claims, kid, audience, header)| Made {
            signer,
            claims,
            kid,
            audience,
            header,
        })
}

fn iss(issuer: usize) -> String {
    // One is the beginning of another.
    format!("https://issuer.example/{}", "x".repeat(issuer))
}

fn issuers(entries: &[Entry]) -> Issuers {
    let configs = entries.iter().enumerate().map(|(at, entry)| {
        let keys = entry.keys.iter().map(|(kid, key)| {
            let mut jwk = KEYS[*key].public_jwk();
            jwk["kid"] = KIDS[*kid].into();
            jwk
        });
        let jwks = json!({"keys": keys.collect::<Vec<Value>>()}).to_string();
        let mut config = strict(&format!("entry-{at}"), &iss(at), jwks.as_bytes().into());
        config.audiences = vec![AUDIENCES[entry.audience].into()];
        Arc::new(config)
    });
    Issuers::compile(&configs.collect::<Vec<_>>()).0
}

fn token(made: &Made) -> String {
    let mut claims = Claims {
        issuer: iss(made.claims),
        audience: AUDIENCES[made.audience].to_owned(),
        subject: "alice".to_owned(),
        client: "console".to_owned(),
        lifetime: 600,
        ..Claims::default()
    };
    claims.header.insert("kid".into(), KIDS[made.kid].into());
    if let Some(header) = made.header {
        claims.header.insert("iss".into(), iss(header).into());
    }
    let clock = ManualClock::at(u64::try_from(NOW).unwrap() * 1000);
    KEYS[made.signer]
        .mint(&claims, &clock, &SystemRandom)
        .unwrap()
}

/// The entry whose token it is, straight from the rules.
fn owner(entries: &[Entry], made: &Made) -> Option<usize> {
    let entry = entries.get(made.claims)?;
    let good = entry.keys.get(&made.kid) == Some(&made.signer)
        && entry.audience == made.audience
        && made.header.is_none_or(|header| header == made.claims);
    good.then_some(made.claims)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_token_is_never_taken_for_another_issuers(
        entries in prop::collection::vec(entry(), 2..=MOST),
        tokens in prop::collection::vec(made(), 8),
    ) {
        let issuers = issuers(&entries);
        for made in &tokens {
            let accepted = accept(&issuers, &token(made), NOW).ok();
            let found = accepted.as_ref().map(|principal| principal.issuer_index);
            prop_assert_eq!(found, owner(&entries, made), "{:?}", made);
            if let Some(principal) = accepted {
                prop_assert_eq!(&*principal.issuer, format!("entry-{}", made.claims));
            }
        }
    }

    /// The same, from a token that is good: with any one thing of another issuer's it is nobody's.
    #[test]
    fn a_good_token_with_anything_of_anothers_is_nobodys(
        entries in prop::collection::vec(entry(), 2..=MOST),
        which in any::<prop::sample::Index>(),
        other in made(),
    ) {
        let at = which.index(entries.len());
        let entry = &entries[at];
        let (kid, signer) = entry.keys.iter().next().unwrap();
        let good = Made {
            signer: *signer,
            claims: at,
            kid: *kid,
            audience: entry.audience,
            header: None,
        };
        let issuers = issuers(&entries);
        let found = |made: &Made| {
            let accepted = accept(&issuers, &token(made), NOW);
            accepted.ok().map(|principal| principal.issuer_index)
        };
        prop_assert_eq!(found(&good), Some(at));
        for changed in [
            Made { signer: other.signer, ..good.clone() },
            Made { claims: other.claims, ..good.clone() },
            Made { kid: other.kid, ..good.clone() },
            Made { audience: other.audience, ..good.clone() },
            Made { header: other.header, ..good.clone() },
        ] {
            prop_assert_eq!(found(&changed), owner(&entries, &changed), "{:?}", changed);
        }
    }
}
