//! Denylists in files: taken up without a restart, and never lost to a broken one (I-8).

use super::{Stand, claim, empty, signing_input, token};
use crate::support::client::get;
use portcullis::config;
use serde_json::{Value, json};

#[tokio::test]
async fn each_kind_of_entry_revokes_what_it_names_and_nothing_else() {
    let stand = Stand::new().await;
    let corp = |subject: &str, extra: Value| token(&stand.corp, subject, extra);
    let named = [
        (corp("a", json!({"jti": "t-1"})), "revoked_token"),
        (corp("b", empty()), "revoked_subject"),
        (corp("c", empty()), "revoked_subject"),
        (corp("d", json!({"client_id": "rogue"})), "revoked_client"),
        (corp("e", json!({"sid": "s-1"})), "revoked_session"),
        (corp("f", empty()), "revoked_signing_input"),
    ];
    let all = json!({"jti": "t-1", "client_id": "rogue", "sid": "s-1"});
    let theirs: Vec<String> = ["a", "b", "c", "d", "e", "f"]
        .map(|subject| token(&stand.partner, subject, all.clone()))
        .to_vec();
    let other = corp("g", empty());
    // Once in the cache of verified tokens, so that hits are judged as well.
    for (token, code) in &named {
        stand.assert_passes(token, code).await;
    }
    let issued = claim(&named[2].0, "iat").as_i64().unwrap();
    let list = format!(
        "version: 1
revoked:
  - {{issuer: corp, jti: t-1, note: stolen, until: 2100-01-01T00:00:00Z}}
  - {{issuer: corp, sub: b}}
  - {{issuer: corp, sub: c, issued_before: {}}}
  - {{issuer: corp, sub: g, issued_before: {issued}}}
  - {{issuer: corp, client_id: rogue}}
  - {{issuer: corp, sid: s-1}}
  - {{signing_input: \"{}\"}}
  - {{issuer: corp, sub: g, until: 2020-01-01T00:00:00Z}}
",
        issued + 1,
        signing_input(&named[5].0)
    );
    stand.gateway.write("denylist.yaml", &list);
    stand.gateway.until_generation(2).await;
    for (token, code) in &named {
        stand.assert_revoked(token, code).await;
    }
    for token in theirs.iter().chain([&other]) {
        stand.assert_passes(token, "not named").await;
    }
    let list = format!(
        "version: 1\nrevoked: [{{key: {}}}]\n",
        stand.partner.key().kid()
    );
    stand.gateway.write("denylist.yaml", &list);
    stand.gateway.until_generation(3).await;
    stand.assert_revoked(&theirs[0], "revoked_key").await;
    for (token, code) in &named {
        stand.assert_passes(token, code).await;
    }
}

#[tokio::test]
async fn a_broken_list_changes_nothing_and_is_seen() {
    let stand = Stand::with(
        "version: 1\nrevoked: [{issuer: corp, sub: mallory}]\n",
        None,
        |yaml| yaml,
    )
    .await;
    let mallory = token(&stand.corp, "mallory", empty());
    stand.assert_revoked(&mallory, "revoked_subject").await;
    let rejected = |r: &[Value]| r.iter().filter(|r| r["result"] == "rejected").count();
    for (many, broken) in [
        "",
        "version: 1\nrevoked: [{issuer: corq, sub: mallory}]\n",
        "version: 1\n",
    ]
    .into_iter()
    .enumerate()
    {
        stand.gateway.write("denylist.yaml", broken);
        let journal = &stand.gateway.journal;
        journal.until("the rejection", |r| rejected(r) > many).await;
        let ready = get(stand.gateway.admin, "/readyz", &[]).await.unwrap();
        assert_eq!(ready.status, 200);
        assert!(ready.text().contains("denylist.yaml"), "{}", ready.text());
        stand.assert_revoked(&mallory, "revoked_subject").await;
    }
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    let line = r#"portcullis_auth_failures_total{issuer="corp",reason="revoked_subject"} 4"#;
    assert!(metrics.contains(line), "{metrics}");
    std::fs::remove_file(stand.gateway.folder.path().join("denylist.yaml")).unwrap();
    let journal = &stand.gateway.journal;
    journal.until("the rejection", |r| rejected(r) > 3).await;
    stand.assert_revoked(&mallory, "revoked_subject").await;
}

#[test]
fn a_list_that_cannot_be_read_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let text = "version: 1
listeners: [{name: public, bind: 127.0.0.1:0, public_url: http://localhost:1}]
revocation: {files: [gone.yaml]}
agents: [{name: a, route: {path: /a}, backend: {url: http://127.0.0.1:1}, skills: [x]}]
audit: {journal: {dir: journal}}
";
    std::fs::write(&file, text).unwrap();
    let problems = config::load(&file).unwrap_err().to_string();
    assert!(problems.contains("gone.yaml` cannot be read"), "{problems}");
}
