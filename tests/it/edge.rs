//! Both edges of the gateway: TLS and HTTP/2 in and out, browsers, load balancers.
//!
//! Answers: who gets a connection, and what an agent's certificate must be. Invariants: where a
//! call does not get through, the agent's own counter says so. Start reading at [`Stand`].

use crate::support::client::{Client, get};
use crate::support::gateway::{Gateway, Setup};
use crate::support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::support::h2_client::H2Client;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::pki::{Authority, Pair};
use serde_json::{Value, json};
use std::net::SocketAddr;

pub const POLICY: &str = "version: 1
policy: edge
rules:
  - id: all
    allow: {agents: [a], operations: any, skills: any}
    grant: agent
";
pub const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;
pub const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}}}"#;

fn good() -> H2Act {
    H2Act::Answer(H2Answer::json(200, ANSWER))
}

/// A gateway whose listener and backend are as a test says.
pub struct Stand {
    pub gateway: Gateway,
    pub issuer: Issuer,
    token: String,
}

fn stand(listener: &str, backend: &str, files: &[(&str, &str)]) -> Stand {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let entry = issuer.yaml_entry("corp", "corp.jwks.json", "");
    let yaml = format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC, {listener}}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: a
    route: {{path: /a}}
    backend: {{{backend}}}
    interfaces: [{{binding: JSONRPC, version: \"1.0\"}}]
    skills: [only]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
"
    );
    let jwks = issuer.jwks();
    let mut all = vec![("policy.yaml", POLICY), ("corp.jwks.json", &*jwks)];
    all.extend_from_slice(files);
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &all,
        clock: None,
    });
    Stand {
        token: issuer.token("alice", Grant::Agent, json!({})),
        issuer,
        gateway,
    }
}

impl Stand {
    async fn post(&self) -> (u16, String) {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let sent = client.post_json("/a", Some(&self.token), &[], CALL).await;
        let response = sent.unwrap();
        (response.status, response.text())
    }

    async fn outcome(&self) -> Value {
        let is = |r: &Value| r["kind"] == "outcome";
        let records = self
            .gateway
            .journal
            .until("an outcome", |r| r.iter().any(is))
            .await;
        records.into_iter().find(is).unwrap()
    }
}

const TLS: &str =
    "tls: {certificates: [{cert: own.pem, key: own.key}, {cert: other.pem, key: other.key}]}";

pub async fn secure_stand(more: &str, clients: Option<&Authority>) -> (Stand, Authority, H2Agent) {
    let authority = Authority::new();
    let own = authority.pair(&["localhost"]);
    let other = authority.pair(&["other.localhost"]);
    let agent = H2Agent::start((0..8).map(|_| good())).await;
    let clients = clients.map_or(String::new(), |ca| ca.pem.clone());
    let files = [
        ("own.pem", &*own.cert),
        ("own.key", &*own.key),
        ("other.pem", &*other.cert),
        ("other.key", &*other.key),
        ("clients.pem", &*clients),
    ];
    let backend = format!("url: \"http://{}\", http: h2", agent.address);
    let listener = format!("{TLS}, hosts: [PUBLIC, localhost, other.localhost]{more}");
    let stand = stand(&listener, &backend, &files);
    (stand, authority, agent)
}

#[tokio::test]
async fn callers_are_served_over_tls_in_both_versions() {
    let (stand, authority, agent) = secure_stand("", None).await;
    let address = stand.gateway.address;
    // Each name has its own certificate.
    for name in ["localhost", "other.localhost"] {
        let config = authority.client(None);
        let mut client = H2Client::connect_tls(address, name, config).await.unwrap();
        let response = client
            .post_json("/a", Some(&stand.token), CALL)
            .await
            .unwrap();
        assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
        let response = client.post_json("/a", None, CALL).await.unwrap();
        assert_eq!(response.status, 401);
    }
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(authority.client(None))
        .resolve("localhost", address)
        .http1_only()
        .build()
        .unwrap();
    let request = client
        .post(format!("https://localhost:{}/a", address.port()))
        .bearer_auth(&stand.token)
        .header("content-type", "application/json")
        .body(CALL);
    let response = request.send().await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_11);
    assert_eq!(response.text().await.unwrap(), ANSWER);
    assert_eq!(agent.counts().requests(), 3);
}

#[tokio::test]
async fn who_has_no_good_client_certificate_gets_no_request_through() {
    let clients = Authority::new();
    let more = ", client_ca: {file: clients.pem, mode: required}";
    let (stand, authority, agent) = secure_stand(more, Some(&clients)).await;
    let address = stand.gateway.address;
    let stranger = Authority::new().pair(&["mallory"]);
    let alice = clients.pair(&["alice"]);
    for (own, let_in) in [
        (None, false),
        (Some(&stranger), false),
        (Some(&alice), true),
    ] {
        let config = authority.client(own);
        // TLS 1.3 tells a client that it is refused only behind its own handshake.
        let answered = match H2Client::connect_tls(address, "localhost", config).await {
            Ok(mut client) => client.post_json("/a", Some(&stand.token), CALL).await.ok(),
            Err(_) => None,
        };
        assert_eq!(answered.map(|r| r.status), let_in.then_some(200));
        assert_eq!(agent.counts().requests(), usize::from(let_in));
    }
}

#[tokio::test]
async fn who_shows_a_certificate_must_show_a_good_one() {
    let clients = Authority::new();
    let more = ", client_ca: {file: clients.pem, mode: optional}";
    let (stand, authority, _agent) = secure_stand(more, Some(&clients)).await;
    let stranger = Authority::new().pair(&["mallory"]);
    for (own, let_in) in [(None, true), (Some(&stranger), false)] {
        let address = stand.gateway.address;
        let answered =
            match H2Client::connect_tls(address, "localhost", authority.client(own)).await {
                Ok(mut client) => client.post_json("/a", Some(&stand.token), CALL).await.ok(),
                Err(_) => None,
            };
        assert_eq!(answered.is_some(), let_in);
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let (stand, _, _agent) = secure_stand("", None).await;
    let renewed = Authority::new();
    let own = renewed.pair(&["localhost"]);
    stand.gateway.write("own.pem", &own.cert);
    stand.gateway.write("own.key", &own.key);
    stand.gateway.until_generation(2).await;
    let address = stand.gateway.address;
    let client = H2Client::connect_tls(address, "localhost", renewed.client(None)).await;
    let mut client = client.unwrap();
    assert_eq!(
        client.post_json("/a", None, CALL).await.unwrap().status,
        401
    );
}

/// What an agent wants and shows.
struct Agent {
    authority: Authority,
    clients: Authority,
    ours: Pair,
    agent: H2Agent,
}

async fn secure_agent(names: &[&str], wants: bool) -> Agent {
    let (authority, clients) = (Authority::new(), Authority::new());
    let own = authority.pair(names);
    let server = Authority::server(&own, wants.then_some(&clients), &["h2", "http/1.1"]);
    Agent {
        ours: clients.pair(&["portcullis"]),
        agent: H2Agent::start_with(Some(server), [good(), good()]).await,
        authority,
        clients,
    }
}

impl Agent {
    fn stand(&self, tls: &str, client: &Pair) -> Stand {
        let files = [
            ("ca.pem", &*self.authority.pem),
            ("stranger.pem", &*self.clients.pem),
            ("us.pem", &*client.cert),
            ("us.key", &*client.key),
        ];
        let backend = format!("url: \"https://{}\", tls: {{{tls}}}", self.agent.address);
        stand("plaintext: i_understand", &backend, &files)
    }
}

#[tokio::test]
async fn an_agent_is_called_over_mutual_tls() {
    let agent = secure_agent(&["agent.internal"], true).await;
    let tls = "ca: ca.pem, server_name: agent.internal, client: {cert: us.pem, key: us.key}";
    let stand = agent.stand(tls, &agent.ours);
    assert_eq!(stand.post().await, (200, ANSWER.to_owned()));
    assert_eq!(stand.post().await.0, 200);
    let counts = agent.agent.counts();
    assert_eq!(counts.requests(), 2);
    assert_eq!(counts.seen[0].connection, counts.seen[1].connection);
    assert_eq!(counts.seen[0].scheme, "https");
    assert_eq!(stand.outcome().await["delivery"], "responded");
}

/// An address needs no name where the certificate is for it.
#[tokio::test]
async fn an_agent_at_an_address_is_verified_by_it() {
    let agent = secure_agent(&["127.0.0.1"], false).await;
    let stand = agent.stand("ca: ca.pem", &agent.ours);
    assert_eq!(stand.post().await.0, 200);
}

#[tokio::test]
async fn an_agent_that_is_not_who_it_must_be_gets_nothing() {
    for (names, tls) in [
        (
            &["agent.internal"][..],
            "ca: stranger.pem, server_name: agent.internal",
        ),
        (
            &["agent.internal"],
            "ca: ca.pem, server_name: other.internal",
        ),
        // By its address, which is not in its certificate.
        (&["agent.internal"], "ca: ca.pem"),
        (&["127.0.0.2"], "ca: ca.pem"),
    ] {
        let agent = secure_agent(names, false).await;
        let stand = agent.stand(tls, &agent.ours);
        assert_eq!(stand.post().await.0, 502, "{tls}");
        let outcome = stand.outcome().await;
        assert_eq!(outcome["delivery"], "connect_failed", "{outcome}");
        assert_eq!(outcome["reached"], "no");
        assert_eq!(outcome["attempts"][0]["error"], "tls", "{outcome}");
        assert_eq!(agent.agent.counts().requests(), 0, "{tls}");
    }
}

/// TLS 1.3 tells us that our certificate is refused only after the request was written.
#[tokio::test]
async fn an_agent_that_refuses_our_certificate_executes_nothing() {
    let agent = secure_agent(&["agent.internal"], true).await;
    let stranger = Authority::new().pair(&["portcullis"]);
    let name = "ca: ca.pem, server_name: agent.internal";
    let with_one = format!("{name}, client: {{cert: us.pem, key: us.key}}");
    for tls in [name, &with_one] {
        let stand = agent.stand(tls, &stranger);
        assert_eq!(stand.post().await.0, 502, "{tls}");
        let outcome = stand.outcome().await;
        let delivery = outcome["delivery"].as_str().unwrap();
        assert!(
            matches!(delivery, "sent_no_response" | "connect_failed"),
            "{outcome}"
        );
        assert_eq!(agent.agent.counts().requests(), 0);
    }
}

async fn plain(listener: &str) -> (Stand, H2Agent) {
    let agent = H2Agent::start((0..4).map(|_| good())).await;
    let backend = format!("url: \"http://{}\", http: h2", agent.address);
    (stand(listener, &backend, &[]), agent)
}

#[tokio::test]
async fn plaintext_callers_may_speak_either_version_where_it_is_allowed() {
    let (stand, agent) = plain("h2c: true").await;
    assert_eq!(stand.post().await.0, 200);
    let mut client = H2Client::connect(stand.gateway.address).await;
    let response = client
        .post_json("/a", Some(&stand.token), CALL)
        .await
        .unwrap();
    assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
    assert!(response.field("portcullis-request-id").is_some());
    assert_eq!(agent.counts().requests(), 2);
    // Another authority is as little ours as another Host.
    client.call_it("elsewhere.example.com");
    let response = client
        .post_json("/a", Some(&stand.token), CALL)
        .await
        .unwrap();
    assert_eq!(response.status, 421);
    // What belongs to one connection of HTTP/1.1 is no field of HTTP/2.
    client.call_it(&stand.gateway.address.to_string());
    let fields = [("te", "gzip".to_owned())];
    let refused = client.request("POST", "/a", &fields, b"{}").await;
    assert!(!refused.is_ok_and(|r| r.status == 200));
    assert_eq!(agent.counts().requests(), 2);
    assert!(
        stand
            .gateway
            .server
            .stop(std::time::Duration::from_secs(5))
            .await
    );
    client.until_closed().await;
}

#[tokio::test]
async fn http2_is_not_spoken_where_it_is_not_allowed() {
    let (stand, agent) = plain("plaintext: i_understand").await;
    let mut client = H2Client::connect(stand.gateway.address).await;
    assert!(
        client
            .post_json("/a", Some(&stand.token), CALL)
            .await
            .is_err()
    );
    assert_eq!(agent.counts().requests(), 0);
}

const PAGE: &str = "https://console.example.com";

async fn preflight(address: SocketAddr, origin: &str) -> crate::support::client::Response {
    let mut client = Client::connect(address).await.unwrap();
    let fields = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        (
            "Access-Control-Request-Headers",
            "authorization, content-type",
        ),
    ];
    client.request("OPTIONS", "/a", &fields, b"").await.unwrap()
}

#[tokio::test]
async fn pages_of_listed_origins_may_call() {
    let (stand, agent) = plain(&format!("cors: {{origins: [\"{PAGE}\"]}}")).await;
    let address = stand.gateway.address;
    let answer = preflight(address, PAGE).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.field("access-control-allow-origin"), Some(PAGE));
    assert_eq!(
        answer.field("access-control-allow-headers"),
        Some("authorization, content-type")
    );
    assert_eq!(answer.field("access-control-allow-credentials"), None);
    let mut client = Client::connect(address).await.unwrap();
    for (token, status) in [(Some(&*stand.token), 200), (None, 401)] {
        let sent = client
            .post_json("/a", token, &[("Origin", PAGE)], CALL)
            .await;
        let response = sent.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.field("access-control-allow-origin"), Some(PAGE));
        let exposed = response.field("access-control-expose-headers").unwrap();
        assert!(exposed.contains("Portcullis-Request-Id"), "{exposed}");
        assert!(exposed.contains("WWW-Authenticate"), "{exposed}");
        assert!(exposed.contains("DPoP-Nonce"), "{exposed}");
    }
    for stranger in [
        "https://evil.example.com",
        "null",
        "https://console.example.com.evil.com",
    ] {
        let answer = preflight(address, stranger).await;
        assert_eq!(answer.status, 401, "{stranger}");
        assert_eq!(answer.field("access-control-allow-origin"), None);
    }
    assert_eq!(agent.counts().requests(), 1);
}

#[tokio::test]
async fn a_load_balancer_may_ask_under_any_host() {
    let (stand, agent) = plain("health_path: /healthz").await;
    let address = stand.gateway.address;
    let host = [("Host", "10.1.2.3")];
    let mut client = Client::connect(address).await.unwrap();
    let response = client.request("GET", "/healthz", &host, b"").await;
    let response = response.unwrap();
    assert_eq!((response.status, response.text()), (200, "ok\n".to_owned()));
    let response = client
        .request("GET", "/healthz/x", &host, b"")
        .await
        .unwrap();
    assert_eq!(response.status, 421);
    let response = client
        .request("POST", "/healthz", &host, b"{}")
        .await
        .unwrap();
    assert_eq!(response.status, 421);
    let other = get(address, "/healthz?x=1", &[]).await.unwrap();
    assert_eq!(other.status, 200);
    assert_eq!(agent.counts().requests(), 0);
    assert_eq!(stand.gateway.count("refusal"), 2);
}
