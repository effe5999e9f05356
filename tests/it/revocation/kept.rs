//! What operators revoke: in force at once, kept over a restart, ended in time.

use super::{NOTHING, Stand, claim, empty, signing_input, token};
use portcullis::adapters::clock::{ManualClock, SystemClock};
use portcullis::adapters::revocation_file::RevocationFile;
use portcullis::pipeline::ports::Clock;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn an_order_holds_from_its_answer_on_until_it_is_taken_back() {
    let stand = Stand::new().await;
    let (good, theirs) = (
        token(&stand.corp, "alice", json!({"sid": "s-1"})),
        token(&stand.partner, "alice", json!({"sid": "s-1"})),
    );
    let orders = [
        (
            json!({"issuer": "corp", "jti": claim(&good, "jti")}),
            "revoked_token",
        ),
        (json!({"issuer": "corp", "sub": "alice"}), "revoked_subject"),
        (
            json!({"issuer": "corp", "client_id": "test-client"}),
            "revoked_client",
        ),
        (
            json!({"issuer": "corp", "sid": "s-1", "note": "left the company"}),
            "revoked_session",
        ),
        (
            json!({"signing_input": signing_input(&good)}),
            "revoked_signing_input",
        ),
        (json!({"key": stand.corp.key().kid()}), "revoked_key"),
    ];
    for (order, code) in orders {
        stand.assert_passes(&good, code).await;
        let shown = stand.revoke(order.clone()).await;
        stand.assert_revoked(&good, code).await;
        stand.assert_passes(&theirs, code).await;
        let (_, list) = stand.order("GET", "revocations", None).await;
        assert_eq!(list["revocations"], json!([shown]));
        let path = format!("revocations/{}", shown["id"].as_str().unwrap());
        assert_eq!(stand.order("DELETE", &path, None).await.0, 200);
    }
    stand.assert_passes(&good, "all taken back").await;
}

/// A restart does not un-revoke, and an issuer entry that got another name does not either.
#[tokio::test]
async fn orders_outlive_the_process() {
    let first = Stand::new().await;
    first
        .revoke(json!({"issuer": "corp", "sub": "mallory"}))
        .await;
    let state = first.gateway.folder.path().join("state/revoked.json");
    let mode = std::fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = state.display().to_string();
    let second = Stand::with(NOTHING, None, |yaml| {
        yaml.replace("state/revoked.json", &kept)
            .replace("name: corp\n", "name: renamed\n")
    })
    .await;
    let mallory = token(&second.corp, "mallory", empty());
    second.assert_revoked(&mallory, "revoked_subject").await;
    let theirs = token(&second.partner, "mallory", empty());
    second.assert_passes(&theirs, "another issuer").await;
}

#[tokio::test]
async fn what_names_tokens_ends_with_them_and_what_names_callers_stays() {
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let stand = Stand::with(NOTHING, Some(clock.clone()), |yaml| yaml).await;
    let cutoff = i64::try_from(clock.now() / 1000).unwrap() + 10;
    stand.revoke(json!({"issuer": "corp", "jti": "t-1"})).await;
    stand.revoke(json!({"issuer": "corp", "sid": "s-1"})).await;
    stand.revoke(json!({"signing_input": "0".repeat(64)})).await;
    stand
        .revoke(json!({"issuer": "corp", "sub": "eve", "issued_before": cutoff}))
        .await;
    stand
        .revoke(json!({"issuer": "corp", "sub": "mallory"}))
        .await;
    stand
        .revoke(json!({"issuer": "corp", "client_id": "rogue"}))
        .await;
    let count = async || {
        let (_, list) = stand.order("GET", "revocations", None).await;
        list["total"].as_u64().unwrap()
    };
    // The longest lifetime, and the leeway before and after it (CL-6, CL-13).
    clock.advance(Duration::from_secs(3600 + 2 * 30 - 1));
    assert_eq!(count().await, 6);
    clock.advance(Duration::from_secs(1));
    assert_eq!(count().await, 3);
    clock.advance(Duration::from_secs(10));
    assert_eq!(count().await, 2);
    stand
        .revoke(json!({"issuer": "corp", "sub": "oscar"}))
        .await;
    let state = stand.gateway.folder.path().join("state/revoked.json");
    assert_eq!(RevocationFile::look(&state).unwrap().len(), 3);
}

#[tokio::test]
async fn asking_twice_is_one_entry_and_never_shortens() {
    let stand = Stand::new().await;
    let until = |text: &str| json!({"issuer": "corp", "sub": "eve", "until": text});
    stand.revoke(until("2100-01-01T00:00:00Z")).await;
    let (status, shown) = stand
        .order("POST", "revocations", Some(until("2050-01-01T00:00:00Z")))
        .await;
    assert_eq!((status, &shown["until"]), (200, &json!(4_102_444_800_i64)));
    let forever = json!({"issuer": "corp", "sub": "eve"});
    let (status, shown) = stand.order("POST", "revocations", Some(forever)).await;
    assert_eq!((status, &shown["until"]), (200, &Value::Null));
    assert_eq!(stand.gateway.server.gate.revocations.added().len(), 1);
}

#[tokio::test]
async fn an_entry_of_a_file_is_not_taken_back_by_an_order() {
    let list = "version: 1\nrevoked: [{issuer: corp, sub: eve, note: see the file}]\n";
    let stand = Stand::with(list, None, |yaml| yaml).await;
    let (_, shown) = stand.order("GET", "revocations", None).await;
    assert_eq!(shown["revocations"][0]["source"], "file");
    let id = shown["revocations"][0]["id"].as_str().unwrap();
    let (status, body) = stand
        .order("DELETE", &format!("revocations/{id}"), None)
        .await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("in_a_file")));
    let eve = token(&stand.corp, "eve", empty());
    stand.assert_revoked(&eve, "revoked_subject").await;
}

/// Less access is the safer mistake: what cannot be kept is in force all the same, and what cannot
/// be taken back for good stays.
#[tokio::test]
async fn an_order_that_cannot_be_written_is_in_force_and_says_so() {
    let stand = Stand::new().await;
    let eve = token(&stand.corp, "eve", empty());
    let shown = stand.revoke(json!({"issuer": "corp", "sub": "eve"})).await;
    let blocked = stand.gateway.folder.path().join("state/revoked.json.new");
    std::fs::create_dir(&blocked).unwrap();
    let path = format!("revocations/{}", shown["id"].as_str().unwrap());
    let (status, body) = stand.order("DELETE", &path, None).await;
    assert_eq!((status, &body["error"]["code"]), (500, &json!("not_kept")));
    stand.assert_revoked(&eve, "revoked_subject").await;
    let order = json!({"issuer": "corp", "sub": "mallory"});
    let (status, body) = stand.order("POST", "revocations", Some(order)).await;
    assert_eq!((status, &body["error"]["code"]), (500, &json!("not_kept")));
    let mallory = token(&stand.corp, "mallory", empty());
    stand.assert_revoked(&mallory, "revoked_subject").await;
}

#[tokio::test]
async fn nothing_is_revoked_that_would_be_lost() {
    let stand = Stand::with(NOTHING, None, |yaml| {
        yaml.replace(", state: state/revoked.json", "")
    })
    .await;
    let order = json!({"issuer": "corp", "sub": "eve"});
    let (status, body) = stand.order("POST", "revocations", Some(order)).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("not_kept")));
    let eve = token(&stand.corp, "eve", empty());
    stand.assert_passes(&eve, "nothing was revoked").await;
}

#[test]
fn a_file_that_is_not_what_was_written_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/revoked.json");
    let (_, entries) = RevocationFile::open(&path).unwrap();
    assert!(entries.is_empty());
    let good = std::fs::read_to_string(&path).unwrap();
    for (text, told) in [
        ("", "not strict JSON"),
        (&good[..good.len() - 3], "not strict JSON"),
        (r#"{"version":2,"revocations":[]}"#, "`version`"),
        (r#"{"version":1}"#, "no list"),
        (
            r#"{"version":1,"revocations":[{"issuer":"corp","sub":"a"}]}"#,
            "entry 1: `added`",
        ),
        (
            r#"{"version":1,"revocations":[{"sub":"a","added":1}]}"#,
            "entry 1: `issuer`",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = RevocationFile::open(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::write(&path, &good).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
    let error = RevocationFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("others than its owner"), "{error}");
}
