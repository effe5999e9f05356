//! The security schemes of cards: made from the issuers, as the metadata of resources is.

use crate::support::client::{Response, get};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::AUDIENCE;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use portcullis::a2a::card::{BadSignature, attest};
use portcullis::a2a::{Binding, Dialect, Version};
use portcullis::config::check::load;
use portcullis::config::snapshot::Snapshot;
use portcullis::identity::SigningKey;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::KeySet;
use portcullis::pipeline::cards::{CardStore, CardView, FetchOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

const CORP: &str = "https://idp.example/realms/a/";
const PARTNER: &str = "https://partner.example";
const SCOPES: &str = "{path: [scope], form: space_string, map: {use: agent, all: full}}";
const ROLES: &str = "{path: [roles], form: string_array, map: {caller: agent}}";
const NOBODY: &str = r#"{"keys":[]}"#;

/// An entry under `issuers:`.
fn entry(name: &str, issuer: &str, keys: &str, audience: &str, grants: &str) -> String {
    format!(
        "  - {{name: {name}, issuer: \"{issuer}\", audiences: [{audience}], keys: {{{keys}}}, \
         grants: [{grants}]}}\n"
    )
}

fn rules(text: &str) -> String {
    format!("version: 1\npolicy: p\nrules:\n{text}")
}

const ALL: &str = "  - id: all
    allow: {agents: any, operations: any, skills: any, issuers: any}
    grant: agent
";

fn yaml(backend: &str, issuers: &str, agents: &[&str]) -> String {
    let agents = agents.iter().map(|name| {
        format!(
            "  - {{name: {name}, route: {{path: /agents/{name}}}, publish: true, \
             backend: {{url: \"http://{backend}\"}}, skills: [hello], sign: true}}\n"
        )
    });
    let agents: String = agents.collect();
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: \"{AUDIENCE}\"}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{issuers}agents:
{agents}policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
keys: {{dir: keys}}
"
    )
}

/// What a configuration of one agent at `b.example.com` says.
fn snapshot(issuers: &str, policy: &str) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let gateway = yaml("b.example.com:8080", issuers, &["w"]);
    put("gateway.yaml", &gateway.replace("PUBLIC", "127.0.0.1:0"));
    put("policy.yaml", &rules(policy));
    put("some.jwks", NOBODY);
    let loaded = load(&folder.path().join("gateway.yaml"));
    loaded.unwrap_or_else(|p| panic!("{p}")).snapshot
}

/// A store with the card of an agent that wants an API key.
fn store(snapshot: &Snapshot, key: Option<&Arc<SigningKey>>) -> CardStore {
    let store = CardStore::for_snapshot(snapshot, None, key, 0);
    let url = "http://b.example.com:8080/a2a";
    let body = json!({"name": "w", "description": "d", "version": "1", "url": url,
        "capabilities": {"streaming": false}, "defaultInputModes": ["a/b"],
        "defaultOutputModes": ["a/b"],
        "skills": [{"id": "hello", "name": "h", "description": "d", "tags": ["t"]}],
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "security": [{"k": []}]});
    let fetched = FetchOutcome::Fetched {
        body: body.to_string().into(),
        etag: None,
        path: "/card".into(),
    };
    store.apply(0, fetched, Vec::new(), 1);
    store
}

/// The card that is published of it.
fn published(snapshot: &Snapshot, key: Option<&Arc<SigningKey>>) -> Bytes {
    let store = store(snapshot, key);
    match store.card(0) {
        CardView::Ready(published, _) => published.document.body.clone(),
        CardView::Missing(_) | CardView::Withheld => panic!("{:?}", store.state(0)),
    }
}

/// The requirements of a hybrid card, which both shapes tell alike: names and scopes.
fn requirements(card: &Value) -> Value {
    let newer = card["securityRequirements"].as_array().unwrap().iter();
    let newer: Vec<Value> = newer
        .map(|one| {
            let schemes = one["schemes"].as_object().unwrap().iter();
            let schemes = schemes.map(|(name, list)| (name.clone(), list["list"].clone()));
            Value::Object(schemes.collect())
        })
        .collect();
    assert_eq!(card["security"], json!(newer), "{card}");
    for one in &newer {
        for name in one.as_object().unwrap().keys() {
            assert!(card["securitySchemes"].get(name).is_some(), "{card}");
        }
    }
    newer.into()
}

fn requirements_of(issuers: &str, policy: &str) -> Value {
    let body = published(&snapshot(issuers, policy), None);
    requirements(&serde_json::from_slice(&body).unwrap())
}

/// The issuers that a card names by their metadata.
fn issuers_of(card: &Value) -> Vec<String> {
    let schemes = card["securitySchemes"].as_object().unwrap().values();
    let urls = schemes.filter_map(|scheme| {
        let url = scheme.get("openIdConnectUrl")?.as_str().unwrap();
        assert_eq!(scheme["type"], "openIdConnect");
        assert_eq!(
            scheme["openIdConnectSecurityScheme"]["openIdConnectUrl"],
            url
        );
        let issuer = url.strip_suffix("/.well-known/openid-configuration");
        Some(issuer.unwrap().to_owned())
    });
    urls.collect()
}

#[test]
fn an_issuer_with_openid_metadata_has_a_scheme_and_the_bearer_scheme_covers_all() {
    let each = [
        ("a", "discovery: true", true),
        ("b", "discovery: openid", true),
        ("c", "discovery: oauth", false),
        ("d", "file: some.jwks", false),
        ("e", "url: \"https://e.example/keys\"", false),
    ];
    for (name, keys, named) in each {
        let issuer = format!("https://{name}.example");
        let issuers = entry(name, &issuer, keys, AUDIENCE, SCOPES);
        let mut expected = vec![json!({"bearer": ["use"]})];
        if named {
            expected.insert(0, json!({name: ["use"]}));
        }
        assert_eq!(requirements_of(&issuers, ALL), json!(expected), "{keys}");
        let body = published(&snapshot(&issuers, ALL), None);
        let text = String::from_utf8_lossy(&body);
        assert_eq!(text.contains(&issuer), named, "{text}");
    }
    // The metadata is where we look for it ourselves: a slash at the issuer's end does not double.
    let issuers = entry("corp", CORP, "discovery: true", AUDIENCE, SCOPES);
    let body = published(&snapshot(&issuers, ALL), None);
    let card: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(issuers_of(&card), ["https://idp.example/realms/a"]);
    assert_eq!(
        card["securitySchemes"]["bearer"],
        json!({"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"},
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    );
}

#[test]
fn the_bearer_scheme_has_the_scope_that_all_issuers_have_in_common() {
    let two = |grants: &str| {
        entry("corp", CORP, "discovery: true", AUDIENCE, SCOPES)
            + &entry("partner", PARTNER, "file: some.jwks", AUDIENCE, grants)
    };
    let corp = json!({"corp": ["use"]});
    let bearer = |grants: &str| {
        let found = requirements_of(&two(grants), ALL);
        assert_eq!(found[0], corp);
        found[1].clone()
    };
    assert_eq!(bearer(SCOPES), json!({"bearer": ["use"]}));
    assert_eq!(
        bearer(&SCOPES.replace("use", "other")),
        json!({"bearer": []})
    );
    assert_eq!(bearer(ROLES), json!({"bearer": []}));
    // A scope that gives more than the agent grant is not asked for.
    let full = "{path: [scope], form: space_string, map: {all: full}}";
    let issuers = entry("corp", CORP, "discovery: true", AUDIENCE, full);
    let expected = json!([{"corp": []}, {"bearer": []}]);
    assert_eq!(requirements_of(&issuers, ALL), expected);
}

#[test]
fn an_entry_named_bearer_leaves_the_name_to_the_bearer_scheme() {
    let issuers = entry("bearer", CORP, "discovery: true", AUDIENCE, SCOPES);
    let expected = json!([{"_bearer": ["use"]}, {"bearer": ["use"]}]);
    assert_eq!(requirements_of(&issuers, ALL), expected);
}

/// I-6: strangers read cards.
#[test]
fn a_card_tells_of_no_issuer_that_callers_cannot_use_or_metadata_does_not_tell_of() {
    let audience = format!("\"{AUDIENCE}/agents/w\"");
    let issuers = [
        entry("corp", CORP, "discovery: true", &audience, SCOPES),
        entry(
            "hidden1",
            "https://hidden1.example",
            "discovery: true",
            "api://x",
            SCOPES,
        ),
        entry(
            "hidden2",
            "https://hidden2.example",
            "discovery: true",
            AUDIENCE,
            SCOPES,
        ),
        entry(
            "hidden3",
            "https://hidden3.example",
            "discovery: true",
            &audience,
            SCOPES,
        ),
        entry(
            "hidden4",
            "https://hidden4.example",
            "discovery: true",
            &audience,
            SCOPES,
        ),
    ]
    .concat();
    let policy = "  - id: some
    allow: {agents: any, operations: any, skills: [hello], issuers: [corp, hidden1, hidden2]}
    grant: agent
  - id: gone
    allow: {agents: any, operations: any, skills: [hello], issuers: [hidden3]}
    grant: agent
  - id: stop
    deny: {agents: any, operations: any, skills: any, issuers: [hidden3]}
    always: true
";
    let body = published(&snapshot(&issuers, policy), None);
    let text = String::from_utf8_lossy(&body);
    assert!(!text.contains("hidden"), "{text}");
    let card: Value = serde_json::from_slice(&body).unwrap();
    // The scopes of the issuers that are not named are not told either.
    let expected = json!([{"corp": ["use"]}, {"bearer": []}]);
    assert_eq!(requirements(&card), expected);

    // Nobody may do anything: the card still says that a token is needed.
    let nobody = policy.replace("allow: {agents: any", "allow: {agents: [w]");
    let nobody = nobody.replace(
        "issuers: [hidden3]}\n    always",
        "issuers: any}\n    always",
    );
    assert_eq!(requirements_of(&issuers, &nobody), json!([{"bearer": []}]));
}

/// Requirements without a scope are where the two forms of a card differ that signatures cover.
#[test]
fn signatures_cover_the_schemes_in_both_forms() {
    let key = Arc::new(SigningKey::new(Ed25519KeyPair::generate().unwrap()));
    let keys = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
    let (keys, _) = KeySet::parse(keys.as_bytes(), Algorithm::Rs256).unwrap();
    for (grants, many) in [(SCOPES, 1), (ROLES, 2)] {
        let issuers = entry("corp", CORP, "discovery: true", AUDIENCE, grants);
        let body = published(&snapshot(&issuers, ALL), Some(&key));
        let check = |body: &[u8]| {
            attest(body, &|header, input, signature| {
                let key = keys.named(header.kid.as_deref().unwrap()).unwrap();
                let good = key.verifies(input, signature);
                good.then_some(()).ok_or(BadSignature::Mismatch)
            })
        };
        assert_eq!(check(&body).label(), "verified");
        let text = String::from_utf8_lossy(&body);
        let card: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(card["signatures"].as_array().unwrap().len(), many, "{text}");
        // Another issuer is another card.
        let forged = text.replace("idp.example", "idp.evil");
        assert_eq!(check(forged.as_bytes()).label(), "signature_mismatch");
    }
}

#[test]
fn extended_cards_in_protobuf_have_the_same_schemes() {
    let issuers = entry("corp", CORP, "discovery: true", AUDIENCE, SCOPES);
    let store = store(&snapshot(&issuers, ALL), None);
    let delimited = |number: u8, inner: &[u8]| -> Vec<u8> {
        let length = u8::try_from(inner.len()).unwrap();
        [&[number << 3 | 2, length], inner].concat()
    };
    let url = b"https://idp.example/realms/a/.well-known/openid-configuration";
    let scheme = delimited(4, &delimited(2, url));
    let scheme = delimited(8, &[delimited(1, b"corp"), delimited(2, &scheme)].concat());
    let scopes = delimited(2, &delimited(1, b"use"));
    let requirement = [delimited(1, b"corp"), scopes].concat();
    let requirement = delimited(9, &delimited(1, &requirement));
    let files = [
        (Version::V1_0, "tests/cases/cards/proto.json"),
        (Version::V0_3, "tests/cases/cards/proto-0.3.json"),
    ];
    for (version, file) in files {
        let cases: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let card = STANDARD
            .decode(cases[0]["proto"].as_str().unwrap())
            .unwrap();
        let length = u32::try_from(card.len()).unwrap().to_be_bytes();
        let reply = [&[0][..], &length, &card].concat();
        let dialect = Dialect {
            binding: Binding::Grpc,
            version,
        };
        let reply = store.extended(0, dialect, &reply, &|_| true);
        let reply = reply.unwrap_or_else(|fault| panic!("{version:?}: {fault}"));
        for part in [&scheme, &requirement] {
            let found = reply.windows(part.len()).any(|window| *window == **part);
            assert!(found, "{version:?}: {}", reply.escape_ascii());
        }
    }
}

struct Stand {
    agent: portcullis::cli::demo_agent::DemoAgent,
    gateway: Gateway,
}

/// Agents `a` and `b`; only `corp` has an audience of `b`'s own.
fn two_issuers(corp: &str, scope: &str) -> String {
    let both = format!("{AUDIENCE}, \"{AUDIENCE}/agents/b\"");
    entry(
        "corp",
        corp,
        "discovery: true",
        &both,
        &SCOPES.replace("use", scope),
    ) + &entry("partner", PARTNER, "discovery: openid", AUDIENCE, ROLES)
}

impl Stand {
    async fn start() -> Stand {
        let agent = fake_agent::start().await;
        let issuers = two_issuers("https://corp.example", "use");
        let yaml = yaml(&agent.address().to_string(), &issuers, &["a", "b"]);
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &[("policy.yaml", &rules(ALL))],
            clock: None,
        });
        let gateway = gateway.with_cards().await;
        Stand { agent, gateway }
    }

    async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        get(self.gateway.address, path, fields).await.unwrap()
    }

    async fn card(&self, agent: &str, fields: &[(&str, &str)]) -> Response {
        let path = format!("/agents/{agent}/.well-known/agent-card.json");
        self.get(&path, fields).await
    }

    /// Compares a card with the metadata of the resource that it is about; returns the latter.
    async fn agree(&self, agent: &str, resource: &str) -> Value {
        let card = self.card(agent, &[]).await.json();
        let path = format!("/.well-known/oauth-protected-resource{resource}");
        let metadata = self.get(&path, &[]).await.json();
        assert_eq!(json!(issuers_of(&card)), metadata["authorization_servers"]);
        let scopes = metadata["scopes_supported"].as_array().unwrap();
        let requirements = requirements(&card);
        let asked = requirements.as_array().unwrap().iter();
        let asked = asked.flat_map(|one| one.as_object().unwrap().values());
        let asked: Vec<&Value> = asked.flat_map(|list| list.as_array().unwrap()).collect();
        assert!(!asked.is_empty(), "{card}");
        assert!(asked.iter().all(|scope| scopes.contains(scope)), "{card}");
        metadata
    }
}

#[tokio::test]
async fn card_and_metadata_name_the_same_issuers_and_scopes() {
    let stand = Stand::start().await;
    let metadata = stand.agree("a", "").await;
    let corp = "https://corp.example";
    assert_eq!(metadata["authorization_servers"], json!([corp, PARTNER]));
    let metadata = stand.agree("b", "/agents/b").await;
    assert_eq!(metadata["authorization_servers"], json!([corp]));
    assert_eq!(stand.agent.counters().executions(), 0);
}

#[tokio::test]
async fn a_reload_with_another_issuer_changes_the_card_and_its_tag() {
    let stand = Stand::start().await;
    let before = stand.card("a", &[]).await;
    let old = before.field("etag").unwrap().to_owned();
    let backend = stand.agent.address().to_string();
    for (generation, issuer, scope) in [
        (2, "https://next.example", "use"),
        (3, "https://next.example", "call"),
    ] {
        let issuers = two_issuers(issuer, scope);
        let next = yaml(&backend, &issuers, &["a", "b"]);
        stand.gateway.write("gateway.yaml", &next);
        stand.gateway.until_generation(generation).await;
        let metadata = stand.agree("a", "").await;
        assert_eq!(metadata["authorization_servers"], json!([issuer, PARTNER]));
        let after = stand.card("a", &[("If-None-Match", &old)]).await;
        assert_eq!(after.status, 200);
        assert_ne!(after.field("etag"), Some(&*old));
        let card = after.json();
        assert_eq!(requirements(&card)[0], json!({"corp": [scope]}));
        assert!(!after.text().contains("corp.example"), "{card}");
        let again = [("If-None-Match", after.field("etag").unwrap())];
        assert_eq!(stand.card("a", &again).await.status, 304);
    }
    assert_eq!(stand.agent.counters().executions(), 0);
}
