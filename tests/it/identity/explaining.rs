//! What an operator reads agrees with what happens, and tells no secret.

use super::world::World;
use portcullis::identity::{accept, explain};

#[test]
fn an_explanation_agrees_with_acceptance_and_never_shows_the_token() {
    let world = World::load();
    for case in &world.cases {
        let Some(token) = case.token() else {
            continue;
        };
        let issuers = world.issuers(case);
        let findings = explain(&issuers, &token, world.now);
        let refusing: Vec<_> = findings.iter().filter(|f| f.refuses).collect();
        match accept(&issuers, &token, world.now) {
            Ok(_) => assert!(refusing.is_empty(), "{}: {refusing:?}", case.id),
            Err(refused) => {
                let rule = refused.fault.rule;
                assert!(
                    refusing.iter().any(|f| f.rule == rule),
                    "{}: {rule}",
                    case.id
                );
                let bare = refused.fault.to_string();
                assert!(
                    findings.iter().all(|f| f.text != bare),
                    "{}: {bare}",
                    case.id
                );
            }
        }
        for segment in token.split('.').filter(|s| s.len() > 16) {
            assert!(
                findings.iter().all(|f| !f.text.contains(segment)),
                "{}",
                case.id
            );
        }
        for finding in &findings {
            assert!(!finding.text.chars().any(char::is_control), "{}", case.id);
        }
    }
}

#[test]
fn it_goes_on_past_the_first_refusal_and_says_what_to_do() {
    let world = World::load();
    let case = world.case("own-hd-5-keycloak");
    let findings = explain(
        &world.issuers(case),
        &case.token().unwrap(),
        world.now + 400,
    );
    let text: Vec<String> = findings
        .iter()
        .map(|f| format!("{} {}", f.rule, f.text))
        .collect();
    assert_eq!(
        text,
        [
            "IS-1 `iss` chooses the issuer entry `k`",
            "KY-1 the signature is good: RS256 with the key `k-rs-1`",
            "HD-5 the header's `typ` is `at+jwt`, this issuer takes `JWT`; list the value under \
             `typ` if this issuer's access tokens carry it",
            "CL-3 `exp` is `1750000300`, now is 1750000400 and the leeway 30 s; ask for a new \
             token, and compare the clocks if it is new",
        ]
    );
}

#[test]
fn a_good_token_without_a_grant_is_told_so() {
    let world = World::load();
    let case = world.case("own-gr-7-case");
    let findings = explain(&world.issuers(case), &case.token().unwrap(), world.now);
    assert!(findings.iter().all(|f| !f.refuses));
    let grant = findings.iter().find(|f| f.rule == "GR-1").unwrap();
    assert!(grant.text.starts_with("it has no grant"), "{}", grant.text);
}
