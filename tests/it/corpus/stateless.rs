//! Every case that is one request.

use super::request::fault;
use super::stand::{Stand, Wanted};
use super::{Corpus, Expect};
use std::collections::BTreeMap;

/// Cases of the core alone: no gateway file can have such an issuer.
const NOT_CONFIGURABLE: [&str; 5] = [
    "own-cl-2-clients",
    "own-cl-2-cognito-any",
    "own-is-4-star",
    "own-is-4-untied",
    "own-is-4-unlisted",
];

#[tokio::test]
async fn every_request_has_its_outcome_over_http() {
    let corpus = Corpus::load();
    // Cases with the same configuration share a gateway.
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, case) in corpus.cases.iter().enumerate() {
        if NOT_CONFIGURABLE.contains(&case.id.as_str()) {
            continue;
        }
        let (jwks, settings): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (case.jwks.iter().collect(), case.settings.iter().collect());
        let key = format!("{jwks:?} {settings:?} {:?} {:?}", case.policy, case.issuer);
        groups.entry(key).or_default().push(at);
    }
    let mut wrong = Vec::new();
    let mut sent = 0;
    for cases in groups.values() {
        let first = &corpus.cases[cases[0]];
        let wanted = Wanted {
            jwks: first.jwks.clone(),
            policy: first.policy.clone(),
            settings: first.settings.clone(),
            of: first.issuer.clone(),
            ..Wanted::default()
        };
        let stand = Stand::new(&corpus, &wanted).await;
        for case in cases.iter().map(|at| &corpus.cases[*at]) {
            for h2 in [false, true] {
                let before = stand.executions();
                let way = stand.way(case.request.tls_client.as_deref(), sent);
                let reply = match h2 {
                    false => case.request.send(&way).await,
                    true if case.request.fits_h2() => case.request.send_h2(&way).await,
                    true => continue,
                };
                sent += 1;
                let executed = stand.executions() - before;
                let mut expect = case.expect.clone();
                // Over the second connection a good proof is a replay (SC-4).
                if h2 && expect.outcome == "accept" && case.request.is_bound() {
                    expect = Expect {
                        outcome: "reject".into(),
                        status: 401,
                        error: Some("invalid_dpop_proof".into()),
                    };
                }
                if let Some(fault) = fault(&case.request, &expect, &reply, executed) {
                    wrong.push(format!("{} ({}), h2 {h2}: {fault}", case.id, case.title));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {sent}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(sent > 2 * 250, "{sent}");
}
