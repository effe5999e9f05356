//! Mutated tokens: never a panic, never an acceptance of what was not signed.

use super::world::World;
use portcullis::identity::{Issuers, accept, explain, transport};
use proptest::prelude::*;
use std::sync::LazyLock;

static WORLD: LazyLock<(World, Issuers, Vec<String>)> = LazyLock::new(|| {
    let world = World::load();
    let issuers = world.issuers(world.case("tr-001"));
    let tokens = world.cases.iter().filter_map(|case| case.token()).collect();
    (world, issuers, tokens)
});

/// What a change puts into a token.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9_-]{0,4}",
        Just(".".to_owned()),
        Just("=".to_owned()),
        "\\PC{0,3}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_changed_token_is_refused_without_a_panic(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        removed in 0usize..6,
        put in piece(),
    ) {
        let (world, issuers, tokens) = &*WORLD;
        let token = &tokens[which.index(tokens.len())];
        let at = at.index(token.len());
        let end = (at + removed).min(token.len());
        let mut changed = token.clone();
        changed.replace_range(at..end, &put);
        let accepted = accept(issuers, &changed, world.now).is_ok();
        prop_assert!(!accepted || changed == *token);
        let refused = explain(issuers, &changed, world.now).iter().any(|f| f.refuses);
        prop_assert_eq!(accepted, !refused);
    }

    #[test]
    fn any_text_as_a_credential_does_no_harm(field in "\\PC{0,80}", query in "\\PC{0,40}") {
        let (world, issuers, _) = &*WORLD;
        let mut headers = http::HeaderMap::new();
        if let Ok(value) = http::HeaderValue::from_bytes(field.as_bytes()) {
            headers.insert("authorization", value);
        }
        let _ = transport::presented(&headers, Some(&query));
        prop_assert!(accept(issuers, &field, world.now).is_err());
    }

    #[test]
    fn a_good_token_is_good_until_its_end(seconds in 0i64..5000) {
        let (world, issuers, _) = &*WORLD;
        let token = world.case("tr-001").token().unwrap();
        let good = accept(issuers, &token, world.now + seconds).is_ok();
        prop_assert_eq!(good, seconds < 330);
    }
}
