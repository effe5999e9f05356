//! Where callers without a good token learn who gives them one (RFC 9728, ER-2 to ER-4).

use crate::support::client::{Client, Response, get};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{AUDIENCE, DevAlgorithm, Grant, Issuer};
use portcullis::cli::demo_agent::DemoAgent;
use serde_json::{Value, json};

const POLICY: &str = "version: 1
policy: p
rules:
  - id: all
    allow: {agents: [a], operations: any, skills: any, issuers: any}
    grant: agent
";

struct Stand {
    agent: DemoAgent,
    gateway: Gateway,
    corp: Issuer,
    partner: Issuer,
}

/// Two issuers: `corp` with the audiences of the origin and of one agent, `partner` with one that
/// is not ours to describe beside the origin, and without scopes.
async fn stand() -> Stand {
    let agent = fake_agent::start().await;
    let corp = Issuer::new(DevAlgorithm::Es256);
    let partner = Issuer::named(DevAlgorithm::Es256, "https://partner.example");
    let (first, second) = (corp.jwks(), partner.jwks());
    let entry = |issuer: &Issuer, name: &str, audiences: &str, grants: &str| {
        let iss = issuer.iss();
        let more = if name == "corp" {
            ""
        } else {
            ", dpop: {nonce: true}"
        };
        format!(
            "  - {{name: {name}, issuer: \"{iss}\", audiences: [{audiences}], \
             keys: {{file: {name}.jwks}}, grants: [{grants}]{more}}}\n"
        )
    };
    let corp_entry = entry(
        &corp,
        "corp",
        &format!("\"{AUDIENCE}\", \"{AUDIENCE}/agents/a/\""),
        "{path: [scope], form: space_string, map: {agents.use: agent, agents.all: full}}",
    );
    let partner_entry = entry(
        &partner,
        "partner",
        &format!("\"{AUDIENCE}\", \"api://gateway\", \"{AUDIENCE}.evil.example\""),
        "{path: [realm_access, roles], form: string_array, map: {caller: agent}}",
    );
    let yaml = format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: \"{AUDIENCE}\"}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{corp_entry}{partner_entry}agents:
  - name: a
    route: {{path: /agents/a}}
    backend: {{url: \"http://{}\"}}
    backend_paths: [{{path: /status, methods: [GET]}}]
    interfaces: [{{binding: JSONRPC, version: \"1.0\"}}]
    skills: [hello]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
",
        agent.address()
    );
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &[
            ("policy.yaml", POLICY),
            ("corp.jwks", &first),
            ("partner.jwks", &second),
        ],
        clock: None,
    });
    Stand {
        agent,
        gateway,
        corp,
        partner,
    }
}

impl Stand {
    async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        get(self.gateway.address, path, fields).await.unwrap()
    }

    async fn challenge(&self, path: &str, authorization: Option<&str>) -> (u16, String) {
        let mut fields = vec![("X-Forwarded-Host", "evil.example")];
        fields.extend(authorization.map(|value| ("Authorization", value)));
        let response = self.get(path, &fields).await;
        let challenge = response.field("www-authenticate").unwrap_or_default();
        (response.status, challenge.to_owned())
    }
}

#[tokio::test]
async fn metadata_names_the_issuers_of_its_resource() {
    let stand = stand().await;
    let at = |suffix: &str| format!("/.well-known/oauth-protected-resource{suffix}");
    let (corp, partner) = (stand.corp.iss(), stand.partner.iss());
    let root = stand.get(&at(""), &[("Host", "localhost")]).await;
    assert_eq!(root.status, 200);
    assert_eq!(root.field("content-type"), Some("application/json"));
    assert_eq!(
        root.json(),
        json!({
            "resource": AUDIENCE,
            "authorization_servers": [corp, partner],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["agents.all", "agents.use"],
            "dpop_signing_alg_values_supported": ["ES256", "PS256", "RS256", "EdDSA", "Ed25519"],
        })
    );
    let of_agent = stand.get(&at("/agents/a/"), &[]).await.json();
    assert_eq!(of_agent["resource"], format!("{AUDIENCE}/agents/a/"));
    assert_eq!(of_agent["authorization_servers"], json!([corp]));
    // Only the other issuer binds tokens to keys.
    assert_eq!(of_agent.get("dpop_signing_alg_values_supported"), None);

    let etag = root.field("etag").unwrap().to_owned();
    let again = stand.get(&at(""), &[("If-None-Match", &etag)]).await;
    assert_eq!((again.status, again.text().as_str()), (304, ""));

    for nowhere in ["/agents", "/agents/a/b", "/agents/b", ".evil.example", "x"] {
        let answer = stand.get(&at(nowhere), &[]).await;
        assert_eq!(answer.status, 401, "{nowhere}");
    }
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let posted = client.post_json(&at(""), None, &[], "{}").await.unwrap();
    assert_eq!(posted.status, 401);
    assert_eq!(stand.agent.counters().executions(), 0);
}

#[tokio::test]
async fn challenges_lead_to_the_metadata_of_what_was_asked_for() {
    let stand = stand().await;
    let root = format!("{AUDIENCE}/.well-known/oauth-protected-resource");
    let agent = format!("{root}/agents/a/");
    for (path, metadata) in [
        ("/agents/a/status", &agent),
        ("/agents/a", &agent),
        ("/agents/ab", &root),
        ("/", &root),
    ] {
        let bearer = r#"Bearer realm="portcullis""#;
        let found = stand.challenge(path, None).await;
        let wanted = format!(r#"{bearer}, resource_metadata="{metadata}""#);
        assert_eq!(found, (401, wanted), "{path}");
        let found = stand.challenge(path, Some("Bearer a.b.c")).await;
        let wanted = format!(r#"{bearer}, error="invalid_token", resource_metadata="{metadata}""#);
        assert_eq!(found, (401, wanted), "{path}");
        let found = stand.challenge(path, Some("Bearer a b")).await;
        let wanted =
            format!(r#"{bearer}, error="invalid_request", resource_metadata="{metadata}""#);
        assert_eq!(found, (400, wanted), "{path}");
    }
    // The scope is the issuer's own word for the grant; without one there is none to ask for.
    let claims = |issuer: &Issuer, extra: Value| {
        let mut claims = issuer.claims("alice", Grant::Agent, extra);
        claims.scope = "agents.use other".into();
        format!("Bearer {}", issuer.mint(&claims))
    };
    let token = claims(&stand.corp, json!({}));
    let (status, challenge) = stand.challenge("/agents/a/status", Some(&token)).await;
    assert_eq!(status, 403);
    assert_eq!(
        challenge,
        format!(
            r#"Bearer realm="portcullis", error="insufficient_scope", scope="agents.all", resource_metadata="{agent}""#
        )
    );
    let token = claims(
        &stand.partner,
        json!({"realm_access": {"roles": ["caller"]}}),
    );
    let (status, challenge) = stand.challenge("/agents/a/status", Some(&token)).await;
    assert_eq!(status, 403);
    assert_eq!(
        challenge,
        format!(
            r#"Bearer realm="portcullis", error="insufficient_scope", resource_metadata="{agent}""#
        )
    );
    assert_eq!(stand.agent.counters().executions(), 0);
}
