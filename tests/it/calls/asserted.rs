//! How an agent can tell that it is us: the assertion, a shared secret, the caller's own token.

use super::grpc;
use super::{POLICY, Stand, message, yaml};
use crate::support::client::{Client, Response, get};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::http1::sha256;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::KeySet;
use serde_json::{Value, json};

const SECRET: &str = "qzsecretzq";

/// With keys, more members of the first agent's backend, and more lines of its entry.
fn with_keys(yaml: String, backend: &str, agent: &str) -> String {
    let (before, rest) = yaml.split_once("    backend: {").unwrap();
    let (url, rest) = rest.split_once("}\n").unwrap();
    format!("{before}    backend: {{{url}{backend}}}\n{agent}{rest}keys: {{dir: keys}}\n")
}

async fn asserting(agent: &str) -> Stand {
    let policy = POLICY.replace("[tasks]", "[tasks, list]");
    Stand::with(&policy, |yaml| {
        with_keys(yaml, ", identity: assertion", agent)
    })
    .await
}

/// Lines of this name in what the agent got last, as they came.
fn lines(stand: &Stand, name: &str) -> Vec<String> {
    let requests = stand.agent.requests();
    let head = String::from_utf8(requests.last().unwrap().head.clone()).unwrap();
    let folded = |line: &str| line.to_lowercase().replace('_', "-");
    let lines = head.lines().skip(1);
    lines
        .filter(|line| folded(line).starts_with(&format!("{name}:")))
        .map(|line| line.split_once(": ").unwrap().1.to_owned())
        .collect()
}

/// The claims of an assertion, once its signature verifies by what the gateway publishes.
pub async fn verified(gateway: &Gateway, token: &str) -> Value {
    let published = get(gateway.address, "/.well-known/jwks.json", &[]);
    let published = published.await.unwrap();
    assert_eq!(published.status, 200);
    let (set, notes) = KeySet::parse(&published.body, Algorithm::Rs256).unwrap();
    assert!(notes.is_empty());
    assert_eq!(
        set.keys().len(),
        2,
        "cards and assertions have keys of their own"
    );
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let (input, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = input.split_once('.').unwrap();
    let header: Value = serde_json::from_slice(&decode(header)).unwrap();
    assert_eq!(header["typ"], "portcullis-assertion+jwt");
    assert_eq!(header["alg"], "EdDSA");
    let key = set.named(header["kid"].as_str().unwrap()).unwrap();
    assert!(key.verifies(input.as_bytes(), &decode(signature)));
    serde_json::from_slice(&decode(payload)).unwrap()
}

/// What is asserted of the newest request, compared with what the agent got.
async fn asserted(stand: &Stand, method: &str, target: &str) -> Value {
    let found = lines(stand, "portcullis-assertion");
    assert_eq!(found.len(), 1, "{found:?}");
    let claims = verified(&stand.gateway, &found[0]).await;
    let ids = lines(stand, "portcullis-request-id");
    assert_eq!(ids.len(), 1);
    assert_eq!(claims["request_id"], *ids[0]);
    let body = stand.agent.requests().last().unwrap().body.clone();
    assert_eq!(claims["body_sha256"], sha256(&body));
    let asked = format!("{method} {target}");
    assert_eq!(claims["target_sha256"], sha256(asked.as_bytes()), "{asked}");
    let life = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert!((1..=60).contains(&life));
    assert_eq!(claims["iss"], format!("http://{}", stand.gateway.address));
    assert_eq!(claims["aud"], "pr-agent");
    claims
}

async fn forging(stand: &Stand, token: &str, body: &str) -> Response {
    let forged = [
        ("A2A-Version", "1.0"),
        ("Portcullis-Assertion", "forged"),
        ("PORTCULLIS-ASSERTION", "forged"),
        ("Portcullis_Assertion", "forged"),
        ("Portcullis-Request_Id", "forged"),
        ("Portcullis-Anything", "forged"),
    ];
    stand.post(Some(token), &forged, body).await
}

#[tokio::test]
async fn an_agent_that_wants_one_gets_an_assertion_of_what_was_judged() {
    for stamp in ["", "    stamp: on\n"] {
        let stand = asserting(stamp).await;
        let token = stand.reviewer();
        let body = message("SendMessage", "review-diff", "hi", &[]);
        let answer = forging(&stand, &token, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let claims = asserted(&stand, "POST", "/a2a").await;
        assert_eq!(lines(&stand, "portcullis-anything"), [""; 0]);
        let intent = &stand.gateway.journal.records();
        let intent = intent.iter().find(|r| r["kind"] == "intent").unwrap();
        for (claim, recorded) in [
            ("sub", &intent["caller"]["subject"]),
            ("issuer", &intent["caller"]["issuer"]),
            ("client_id", &intent["caller"]["client"]),
            ("grant", &intent["caller"]["grant"]),
            ("skill", &intent["skill"]["id"]),
            ("rule", &intent["decision"]["rule"]),
            ("request_id", &intent["request_id"]),
            ("jti", &intent["request_id"]),
        ] {
            assert!(recorded.is_string(), "{claim}: {intent}");
            assert_eq!(&claims[claim], recorded, "{claim}");
        }
        assert_eq!(claims["skill"], "review-diff");
        assert_eq!(claims["rule"], "reviewers-review");
        // Refused calls are not signed for, and reach nothing.
        let before = stand.counted();
        let author = stand.token("bob", "author");
        let refused = forging(&stand, &author, &body).await;
        stand.assert_refused(before, &refused, 403, "no rule");
    }
}

#[tokio::test]
async fn every_request_of_a_list_and_of_the_backend_surface_is_asserted_too() {
    let stand = asserting("").await;
    let token = stand.reviewer();
    let list = fake_agent::call("ListTasks", json!({"pageSize": 1}));
    let answer = stand.call(&token, "ListTasks", &list).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let claims = asserted(&stand, "POST", "/a2a").await;
    assert_eq!(claims["rule"], "own-tasks");
    assert!(claims["skill"].is_null());
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let bearer = format!("Bearer {full}");
    let path = "/agents/pr-agent/config?a=b%20c";
    let answer = client
        .request("GET", path, &[("Authorization", &bearer)], b"")
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let claims = asserted(&stand, "GET", "/config?a=b%20c").await;
    assert_eq!(claims["grant"], "full");
    assert_eq!(claims["rule"], "backend");
}

/// In gRPC it is metadata, and what is asserted of the body is the frame.
#[tokio::test]
async fn a_grpc_agent_gets_it_as_metadata() {
    let stand = grpc::Stand::greeted(|yaml| with_keys(yaml, ", identity: assertion", "")).await;
    let forged = [
        ("portcullis-assertion", "forged"),
        ("portcullis_assertion", "forged"),
    ];
    let path = stand.greet(&forged).await;
    let seen = stand.seen();
    let found: Vec<_> = seen[0]
        .fields
        .iter()
        .filter(|(name, _)| name.as_str().replace('_', "-") == "portcullis-assertion")
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let claims = verified(&stand.gateway, found[0].1.to_str().unwrap()).await;
    assert_eq!(claims["body_sha256"], sha256(&seen[0].body));
    let asked = format!("POST {path}");
    assert_eq!(claims["target_sha256"], sha256(asked.as_bytes()));
    assert_eq!(
        claims["request_id"],
        seen[0].field("portcullis-request-id").unwrap()
    );
}

#[tokio::test]
async fn a_shared_secret_replaces_whatever_the_caller_sends_under_its_name() {
    for (name, folded) in [
        ("X-Api-Key", "x-api-key"),
        ("Authorization", "authorization"),
    ] {
        let identity =
            format!(", identity: {{header: {{name: {name}, value: {{file: secret.txt}}}}}}");
        let agent = fake_agent::start().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = with_keys(yaml(&agent.url(), &issuer), &identity, "");
        let files = [
            ("policy.yaml", POLICY),
            ("corp.jwks.json", &issuer.jwks()),
            ("secret.txt", "qzsecretzq\n"),
        ];
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &files,
            clock: None,
        })
        .with_cards()
        .await;
        let stand = Stand {
            agent,
            issuer,
            gateway,
        };
        let body = message("SendMessage", "hello", "hi", &[]);
        let forged = [
            ("A2A-Version", "1.0"),
            ("X-Api-Key", "mine"),
            ("x-api-key", "mine"),
            ("X_Api_Key", "mine"),
        ];
        let answer = stand.post(Some(&stand.reviewer()), &forged, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(lines(&stand, folded), [SECRET], "{name}");
        assert_eq!(lines(&stand, "portcullis-assertion"), [""; 0]);
        let records = stand.gateway.journal.records();
        assert!(!json!(records).to_string().contains(SECRET));
        let live = stand.gateway.server.gate.live();
        assert!(!format!("{:?}", live.snapshot).contains(SECRET));
    }
}

#[tokio::test]
async fn the_token_goes_on_only_where_the_file_says_so_and_never_the_proof() {
    let body = message("SendMessage", "hello", "hi", &[]);
    let fields = [("A2A-Version", "1.0"), ("DPoP", "a.b.c")];
    for (forward, agent) in [(false, ""), (true, "    forward_token: true\n")] {
        let stand = Stand::with(POLICY, |yaml| with_keys(yaml, "", agent)).await;
        let token = stand.reviewer();
        let answer = stand.post(Some(&token), &fields, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let expected = match forward {
            true => vec![format!("Bearer {token}")],
            false => Vec::new(),
        };
        assert_eq!(lines(&stand, "authorization"), expected);
        assert_eq!(lines(&stand, "dpop"), [""; 0]);
    }
    // Another origin of the same agent never gets it (TR-10).
    let stand = grpc::Stand::greeted(|yaml| with_keys(yaml, "", "    forward_token: true\n")).await;
    stand.greet(&[]).await;
    assert_eq!(stand.seen()[0].field("authorization"), None);
}
