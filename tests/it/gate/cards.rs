//! Cards as strangers see them.

use super::Stand;
use crate::support::client::{Client, Response, get, request_head};
use crate::support::gateway::Gateway;
use crate::support::raw_agent::{Act, RawAgent, RefusingPort, json_answer};

const CARD: &str = "/agents/open/.well-known/agent-card.json";

/// Everything that a caller can see but for the request id and the date.
fn visible(response: &Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut fields: Vec<_> = response
        .fields
        .iter()
        .filter(|(name, _)| {
            !name.eq_ignore_ascii_case("date")
                && !name.eq_ignore_ascii_case("portcullis-request-id")
        })
        .cloned()
        .collect();
    fields.sort();
    (response.status, fields, response.body.clone())
}

#[tokio::test]
async fn fc_18_both_names_give_the_same_rewritten_card() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let card = get(address, CARD, &[]).await.unwrap();
    let old = get(address, "/agents/open/.well-known/agent.json", &[])
        .await
        .unwrap();
    assert_eq!(card.status, 200);
    assert_eq!(visible(&card), visible(&old));
    let text = card.text();
    let backend = stand.agent.address().to_string();
    assert!(!text.contains(&backend), "{backend} in {text}");
    let public = format!("http://{address}/agents/open/a2a");
    assert_eq!(
        card.json()["supportedInterfaces"][0]["url"],
        public.as_str()
    );
    assert_eq!(card.json()["url"], public.as_str());
    assert!(text.contains("earer"), "our scheme is not declared: {text}");
    stand.untouched();
}

#[tokio::test]
async fn fc_14_validators_are_our_own() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let first = get(address, CARD, &[]).await.unwrap();
    let etag = first.field("etag").unwrap().to_owned();
    for list in [format!("\"x\", W/{etag}"), "*".to_owned(), etag.clone()] {
        let again = get(address, CARD, &[("If-None-Match", &list)])
            .await
            .unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{list}");
        assert_eq!(again.field("etag"), Some(etag.as_str()));
    }
    let other = get(address, CARD, &[("If-None-Match", "\"other\"")])
        .await
        .unwrap();
    assert_eq!(other.status, 200);
    let mut client = Client::connect(address).await.unwrap();
    client
        .send(request_head("HEAD", CARD, &[], None).as_bytes())
        .await
        .unwrap();
    let head = client.head().await.unwrap().unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(
        head.field("content-length"),
        Some(first.body.len().to_string().as_str())
    );
    // Nothing follows the head: the connection goes on with the next request.
    client
        .send(request_head("GET", CARD, &[], None).as_bytes())
        .await
        .unwrap();
    assert_eq!(client.response().await.unwrap().body, first.body);
    stand.untouched();
}

#[tokio::test]
async fn a_hidden_card_is_a_path_that_never_existed() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let unknown = get(address, "/agents/nobody/.well-known/agent-card.json", &[])
        .await
        .unwrap();
    assert_eq!(unknown.status, 404);
    for path in [
        "/agents/hidden/.well-known/agent-card.json",
        "/agents/hidden/.well-known/agent.json",
        "/.well-known/agent-card.json",
        "/agents/open/a2a/.well-known/agent-card.json",
        "/x/y/z/.well-known/agent.json",
    ] {
        let response = get(address, path, &[]).await.unwrap();
        assert_eq!(visible(&response), visible(&unknown), "{path}");
    }
    stand.untouched();
}

#[tokio::test]
async fn only_the_exact_card_path_is_public() {
    let stand = Stand::new().await;
    for (method, path) in [
        ("POST", CARD),
        ("DELETE", CARD),
        ("GET", "/.well-knownprivate"),
        ("GET", "/agents/open/.well-known/agent-card.jsonx"),
        ("GET", "/agents/open/.well-known/"),
    ] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let response = client.request(method, path, &[], b"").await.unwrap();
        assert_eq!(response.status, 401, "{method} {path}");
    }
    stand.untouched();
}

fn in_front_of(agent: std::net::SocketAddr) -> String {
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
agents:
  - {{name: open, route: {{path: /agents/open}}, publish: true, backend: {{url: http://{agent}}}, skills: [hello]}}
audit: {{journal: {{dir: journal}}}}
"
    )
}

#[tokio::test]
async fn fc_17_an_unreadable_card_is_withheld() {
    for answer in [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>".to_vec(),
        json_answer(200, "[]"),
        json_answer(200, r#"{"name":"w","name":"v","url":"http://x/"}"#),
        json_answer(200, r#"{"name":"w","url":"http://other.example.com/"}"#),
        b"HTTP/1.1 302 Found\r\nLocation: http://internal/\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ] {
        let agent = RawAgent::start([Act::Answer(answer)]).await;
        let gateway = Gateway::start(&in_front_of(agent.address));
        gateway
            .journal
            .until("the fetch", |r| r.iter().any(|r| r["kind"] == "fetch"))
            .await;
        let response = get(gateway.address, CARD, &[]).await.unwrap();
        assert_eq!(response.status, 502, "{}", response.text());
        assert!(!response.text().contains("internal") && !response.text().contains("html"));
        let seen = agent.counts().seen;
        assert_eq!(seen[0].field("portcullis-purpose").as_deref(), Some("card"));
    }
}

#[tokio::test]
async fn a_card_that_is_not_there_yet_is_unavailable() {
    let port = RefusingPort::new();
    let gateway = Gateway::start(&in_front_of(port.address));
    gateway
        .journal
        .until("the fetch", |r| r.iter().any(|r| r["kind"] == "fetch"))
        .await;
    let response = get(gateway.address, CARD, &[]).await.unwrap();
    assert_eq!(response.status, 503);
    let retry: u64 = response.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry));
}

#[tokio::test]
async fn fc_14_a_new_public_url_is_another_card() {
    let stand = Stand::new().await;
    let first = get(stand.gateway.address, CARD, &[]).await.unwrap();
    let etag = first.field("etag").unwrap().to_owned();
    let changed = super::yaml(&stand.agent).replace(
        "public_url: http://PUBLIC",
        "public_url: http://agents.example.com",
    );
    stand.gateway.write("gateway.yaml", &changed);
    stand.gateway.until_generation(2).await;
    let second = get(stand.gateway.address, CARD, &[("If-None-Match", &etag)])
        .await
        .unwrap();
    assert_eq!(second.status, 200);
    assert!(
        second
            .text()
            .contains("http://agents.example.com/agents/open/a2a")
    );
    stand.untouched();
}

const KEYS: &str = "/.well-known/jwks.json";

#[tokio::test]
async fn a_signed_card_verifies_with_the_published_key() {
    let agent = crate::support::fake_agent::start().await;
    let yaml = in_front_of(agent.address())
        .replace("skills: [hello]}", "skills: [hello], sign: true}")
        + "keys: {dir: keys}\n";
    let gateway = Gateway::start(&yaml).with_cards().await;
    let keys = get(gateway.address, KEYS, &[]).await.unwrap();
    assert_eq!(keys.status, 200);
    assert_eq!(keys.field("content-type"), Some("application/json"));
    assert!(keys.field("cache-control").unwrap().contains("max-age"));
    let key = &keys.json()["keys"][0];
    assert_eq!((key["crv"].as_str(), key.get("d")), (Some("Ed25519"), None));
    let card = get(gateway.address, CARD, &[]).await.unwrap();
    let (set, _) = portcullis::identity::keys::KeySet::parse(
        &keys.body,
        portcullis::identity::issuer::Algorithm::Rs256,
    )
    .unwrap();
    let attested = portcullis::a2a::card::attest(&card.body, &|header, input, signature| {
        let key = set.named(header.kid.as_deref().unwrap()).unwrap();
        match key.verifies(input, signature) {
            true => Ok(()),
            false => Err(portcullis::a2a::card::BadSignature::Mismatch),
        }
    });
    assert_eq!(attested.label(), "verified");
    let etag = keys.field("etag").unwrap();
    let again = get(gateway.address, KEYS, &[("If-None-Match", etag)])
        .await
        .unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));
    for path in [
        "/agents/open/.well-known/jwks.json",
        "/.well-known/jwks.json/x",
    ] {
        let other = get(gateway.address, path, &[]).await.unwrap();
        assert_eq!(other.status, 401, "{path}");
    }
    let mut client = Client::connect(gateway.address).await.unwrap();
    let post = client.request("POST", KEYS, &[], b"").await.unwrap();
    assert_eq!(post.status, 401);
    // A reload keeps the key; so does a restart, as it is in a file of its own.
    gateway.write(
        "gateway.yaml",
        &yaml.replace("publish: true", "publish: true, contexts: issued"),
    );
    gateway.until_generation(2).await;
    assert_eq!(
        get(gateway.address, KEYS, &[]).await.unwrap().body,
        keys.body
    );
    assert!(gateway.folder.path().join("keys/card.pem").exists());
}

#[tokio::test]
async fn without_keys_there_is_no_key_set() {
    let stand = Stand::new().await;
    let response = get(stand.gateway.address, KEYS, &[]).await.unwrap();
    assert_eq!(response.status, 401);
    stand.untouched();
}

/// The whole way: fetched, checked, withheld, recorded, told, and published once it is right.
#[tokio::test]
async fn a_tampered_card_is_not_published() {
    let file = std::fs::read("tests/cases/cards/signed.json").unwrap();
    let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let named = |name: &str| {
        let cases = file["cases"].as_array().unwrap().iter();
        let found = cases
            .clone()
            .find(|c| c["case"].as_str().unwrap().contains(name));
        found.unwrap()["card"].to_string()
    };
    let agent = RawAgent::start([
        Act::Answer(json_answer(200, &named("tampered: a changed name"))),
        Act::Answer(json_answer(200, &named("ES256, with what"))),
    ])
    .await;
    let yaml = in_front_of(agent.address).replace(
        "skills: [hello]}",
        "skills: [hello], verify: {keys: {file: keys.json}}, also_origins: [http://b.example.com:8080]}",
    );
    let keys = file["keys"].to_string();
    let gateway = Gateway::start_with(crate::support::gateway::Setup {
        yaml: &yaml,
        files: &[("keys.json", &keys)],
        clock: None,
    });
    let changed = |r: &[serde_json::Value]| r.iter().any(|r| r["kind"] == "card_changed");
    let records = gateway.journal.until("the card", changed).await;
    let record = records
        .iter()
        .find(|r| r["kind"] == "card_changed")
        .unwrap();
    assert_eq!(record["error"], "signature_mismatch");
    let fetch = records.iter().find(|r| r["kind"] == "fetch").unwrap();
    assert_eq!(fetch["sha256"].as_str().unwrap().len(), 64);
    let response = get(gateway.address, CARD, &[]).await.unwrap();
    assert_eq!(response.status, 502, "{}", response.text());
    let ready = get(gateway.admin, "/readyz", &[]).await.unwrap();
    assert!(
        ready.text().contains("signature_mismatch"),
        "{}",
        ready.text()
    );
    let metrics = get(gateway.admin, "/metrics", &[]).await.unwrap().text();
    assert!(metrics.contains("portcullis_card_drift{agent=\"open\",kind=\"no_card\"} 1"));
    assert!(
        metrics.contains("portcullis_card_fetches_total{agent=\"open\",result=\"withheld\"} 1")
    );

    let gateway = {
        gateway.server.gate.live().cards.refresh_now(0);
        gateway.with_cards().await
    };
    let twice =
        |r: &[serde_json::Value]| r.iter().filter(|r| r["kind"] == "card_changed").count() == 2;
    let records = gateway.journal.until("the good card", twice).await;
    let record = records
        .iter()
        .rfind(|r| r["kind"] == "card_changed")
        .unwrap();
    assert_eq!(record["signature"], "verified_stripped");
    assert_eq!(get(gateway.address, CARD, &[]).await.unwrap().status, 200);
}

/// The Host decides nothing: another one gets no card, and forwarded names are not looked at.
#[tokio::test]
async fn fc_12_no_host_gets_into_a_card() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let first = get(address, CARD, &[]).await.unwrap();
    let mut client = Client::connect(address).await.unwrap();
    let head = request_head("GET", CARD, &[], None);
    let head = head.replace("localhost", "attacker.example.com");
    assert!(head.contains("attacker"), "{head}");
    client.send(head.as_bytes()).await.unwrap();
    let refused = client.response().await.unwrap();
    assert_eq!(refused.status, 421);
    let fields = [
        ("X-Forwarded-Host", "attacker.example.com"),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", "host=attacker.example.com;proto=https"),
    ];
    let forwarded = get(address, CARD, &fields).await.unwrap();
    assert_eq!(visible(&forwarded), visible(&first));
    let after = get(address, CARD, &[]).await.unwrap();
    assert_eq!(visible(&after), visible(&first));
    for response in [refused, forwarded, after] {
        assert!(!response.text().contains("attacker"), "{}", response.text());
    }
    stand.untouched();
}

/// `check --live` says what a running gateway would: drift, interfaces that are not published,
/// and what signatures are worth.
#[tokio::test]
async fn check_live_says_how_a_card_differs() {
    let agent = RawAgent::start([]).await;
    let port = agent.address.port();
    let card = serde_json::json!({"name": "w", "skills": [{"id": "other"}], "supportedInterfaces": [
        {"url": format!("http://127.0.0.1:{port}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "http://elsewhere.example.com/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let folder = tempfile::tempdir().unwrap();
    let keys = std::fs::read("tests/cases/cards/signed.json").unwrap();
    let keys: serde_json::Value = serde_json::from_slice(&keys).unwrap();
    std::fs::write(folder.path().join("keys.json"), keys["keys"].to_string()).unwrap();
    let yaml = in_front_of(agent.address)
        .replace("PUBLIC", "127.0.0.1:1")
        .replace("bind: 127.0.0.1:0", "bind: 127.0.0.1:2");
    let check = |verify: &str, answer: Vec<u8>| {
        agent.play([Act::Answer(answer)]);
        let config = folder.path().join("gateway.yaml");
        let verify = format!("skills: [hello], {verify}}}");
        std::fs::write(&config, yaml.replace("skills: [hello]}", &verify)).unwrap();
        tokio::task::spawn_blocking(move || {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_portcullis"));
            command
                .args(["check", "--live", "--json", "--config"])
                .arg(config);
            let done = command.output().unwrap();
            let said: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
            (done.status.code(), said["agents"][0].clone())
        })
    };
    let optional = "verify: {keys: {file: keys.json}, required: false}";
    let answer = json_answer(200, &card.to_string());
    let (code, said) = check(optional, answer.clone()).await.unwrap();
    assert_eq!(
        (code, &said["published"]),
        (Some(0), &true.into()),
        "{said}"
    );
    assert_eq!(said["signature"], "unsigned");
    let kinds: Vec<_> = said["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| &n["kind"])
        .collect();
    assert_eq!(
        kinds,
        [
            "skill_unlisted",
            "skill_vanished",
            "interface_dropped",
            "unproven"
        ]
    );

    let (code, said) = check("verify: {keys: {file: keys.json}}", answer)
        .await
        .unwrap();
    assert_eq!(
        (code, &said["published"]),
        (Some(1), &false.into()),
        "{said}"
    );
    assert!(
        said["notices"][0]["says"]
            .as_str()
            .unwrap()
            .contains("unsigned")
    );
}
