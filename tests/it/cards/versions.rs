//! Cards of agents that speak one version of HTTP only: they arrive where `backend.http` says that
//! version, and where it says another the trouble has a name.

use crate::edge::{ANSWER, CALL, POLICY};
use crate::support::client::{Client, get};
use crate::support::gateway::{Gateway, Setup};
use crate::support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::pki::{Authority, Pair};
use crate::support::raw_agent::{Act, RawAgent};
use crate::support::{loopback, within};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

const EXTENDED: &str = r#"{"jsonrpc":"2.0","id":2,"method":"GetExtendedAgentCard"}"#;
/// What is in the agent's certificate, and nothing else.
const NAME: &str = "agent.internal";

fn card(origin: &str) -> Value {
    json!({
        "name": "versions", "description": "d", "version": "1",
        "capabilities": {"extendedAgentCard": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            {"url": format!("{origin}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "skills": [{"id": "only", "name": "o", "description": "d", "tags": []}],
    })
}

/// What one connection of an agent that knows HTTP/1.1 alone is good for.
async fn one<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, seen: &Seen, card: &str) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let reply = match &*head.split(' ').take(2).collect::<Vec<_>>().join(" ") {
        "GET /.well-known/agent-card.json" => ("200 OK", card),
        "POST /rpc" => ("200 OK", ANSWER),
        _ => ("400 Bad Request", "{}"),
    };
    if reply.0 == "200 OK" {
        // A call's body, which came in the same write or comes now.
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        seen.lock().unwrap().push(head);
    }
    let (status, body) = reply;
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
}

type Seen = Arc<Mutex<Vec<String>>>;

/// An agent that knows HTTP/1.1 alone.
struct H1Only {
    address: SocketAddr,
    /// Heads of good requests.
    seen: Seen,
    task: JoinHandle<()>,
}

impl H1Only {
    async fn start(tls: Option<Arc<rustls::ServerConfig>>) -> H1Only {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen::default();
        let noted = seen.clone();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let card = card(&format!("{scheme}://{address}")).to_string();
        let acceptor = tls.map(TlsAcceptor::from);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &acceptor {
                    None => one(stream, &noted, &card).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            one(stream, &noted, &card).await;
                        }
                    }
                }
            }
        });
        H1Only {
            address,
            seen,
            task,
        }
    }
}

impl Drop for H1Only {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An agent of one version.
enum Agent {
    H1(H1Only),
    H2(H2Agent),
}

impl Agent {
    /// With TLS, it offers these protocols.
    async fn start(h2: bool, tls: Option<(&Pair, &[&str])>) -> Agent {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let tls = tls.map(|(own, protocols)| Authority::server(own, None, protocols));
        if !h2 {
            return Agent::H1(H1Only::start(tls).await);
        }
        let agent = H2Agent::start_with(tls, []).await;
        let card = card(&format!("{scheme}://{}", agent.address));
        agent.show(H2Answer::json(200, &card.to_string()));
        let extended = json!({"jsonrpc": "2.0", "id": 2, "result": card}).to_string();
        agent.play([
            H2Act::Answer(H2Answer::json(200, ANSWER)),
            H2Act::Answer(H2Answer::json(200, &extended)),
        ]);
        Agent::H2(agent)
    }

    fn address(&self) -> SocketAddr {
        match self {
            Agent::H1(agent) => agent.address,
            Agent::H2(agent) => agent.address,
        }
    }

    /// How often its card was asked for, and how many calls it got.
    fn counts(&self) -> (usize, usize) {
        match self {
            Agent::H1(agent) => {
                let seen = agent.seen.lock().unwrap();
                let cards = seen.iter().filter(|head| head.starts_with("GET ")).count();
                (cards, seen.len() - cards)
            }
            Agent::H2(agent) => {
                let counts = agent.counts();
                (counts.cards.len(), counts.requests())
            }
        }
    }
}

struct Stand {
    gateway: Gateway,
    token: String,
}

/// Its interfaces are listed, or come from the card.
fn stand(
    agent: SocketAddr,
    tls: bool,
    http: Option<&str>,
    listed: bool,
    authority: &Authority,
) -> Stand {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let entry = issuer.yaml_entry("corp", "corp.jwks.json", "");
    let (scheme, trust) = match tls {
        true => (
            "https",
            format!(", tls: {{ca: ca.pem, server_name: {NAME}}}"),
        ),
        false => ("http", String::new()),
    };
    let http = http.map_or(String::new(), |http| format!(", http: {http}"));
    let interfaces = match listed {
        true => "[{binding: JSONRPC, version: \"1.0\", backend: /rpc}]",
        false => "auto",
    };
    let yaml = format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: a
    route: {{path: /a}}
    publish: true
    backend: {{url: \"{scheme}://{agent}\"{http}{trust}}}
    interfaces: {interfaces}
    skills: [only]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
"
    );
    let jwks = issuer.jwks();
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &[
            ("policy.yaml", POLICY),
            ("corp.jwks.json", &*jwks),
            ("ca.pem", &*authority.pem),
        ],
        clock: None,
    });
    Stand {
        token: issuer.token("alice", Grant::Agent, json!({})),
        gateway,
    }
}

impl Stand {
    async fn post(&self, path: &str, call: &str) -> (u16, String) {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let sent = client.post_json(path, Some(&self.token), &[], call).await;
        let response = sent.unwrap();
        (response.status, response.text())
    }

    /// What readiness says of the agent's card, once it says that something is wrong with it.
    async fn trouble(&self) -> String {
        within("a trouble with the card", async {
            loop {
                let ready = get(self.gateway.admin, "/readyz", &[]).await.unwrap();
                let ready: Value = serde_json::from_str(&ready.text()).unwrap();
                let reasons = ready["reasons"].as_array().unwrap();
                let of_agent = reasons.iter().find(|r| r["what"] == "agent");
                let why = of_agent.map(|r| r["why"].as_str().unwrap().to_owned());
                match why.filter(|why| !why.contains("not fetched yet")) {
                    Some(why) => return why,
                    None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                }
            }
        })
        .await
    }
}

fn agents_pair() -> (Authority, Pair) {
    let authority = Authority::new();
    let own = authority.pair(&[NAME]);
    (authority, own)
}

/// Card, call and extended card: all in the version that is configured.
async fn all_arrives(h2: bool, protocols: Option<&[&str]>, http: Option<&str>) {
    let case = format!("h2 {h2}, TLS {protocols:?}, http {http:?}");
    let (authority, own) = agents_pair();
    let agent = Agent::start(h2, protocols.map(|names| (&own, names))).await;
    let stand = stand(
        agent.address(),
        protocols.is_some(),
        http,
        false,
        &authority,
    );
    let Stand { gateway, token } = stand;
    let gateway = gateway.with_cards().await;
    let card = get(gateway.address, "/a/.well-known/agent-card.json", &[])
        .await
        .unwrap();
    assert_eq!(card.status, 200, "{case}");
    let card: Value = serde_json::from_str(&card.text()).unwrap();
    assert_eq!(card["name"], "versions", "{case}");
    let path = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    let path = path.split_once("/a").map(|(_, rest)| format!("/a{rest}"));
    let stand = Stand { gateway, token };
    let answered = stand.post(path.as_deref().unwrap(), CALL).await;
    assert_eq!(answered, (200, ANSWER.to_owned()), "{case}");
    assert_eq!(agent.counts(), (1, 1), "{case}");
    let authority = agent.address().to_string();
    match &agent {
        Agent::H1(agent) => {
            for head in agent.seen.lock().unwrap().iter() {
                let host = format!("\r\nhost: {authority}\r\n");
                assert!(head.to_ascii_lowercase().contains(&host), "{case}: {head}");
            }
        }
        Agent::H2(agent) => {
            let (status, extended) = stand.post(path.as_deref().unwrap(), EXTENDED).await;
            assert_eq!(status, 200, "{case}: {extended}");
            assert!(extended.contains("versions"), "{case}: {extended}");
            let counts = agent.counts();
            for seen in counts.cards.iter().chain(&counts.seen) {
                // Where a `Host` differs from it, a request is malformed (RFC 9113 section 8.3.1).
                assert_eq!(seen.authority, authority, "{case}");
                assert_eq!(seen.field("host"), None, "{case}");
                assert!(seen.field("authorization").is_none(), "{case}");
            }
            let purpose = counts.cards[0].field("portcullis-purpose");
            assert_eq!(purpose, Some("card"), "{case}");
        }
    }
}

#[tokio::test]
async fn the_card_of_an_agent_of_plaintext_http2_arrives() {
    all_arrives(true, None, Some("h2")).await;
}

#[tokio::test]
async fn the_card_of_an_agent_of_http2_over_tls_arrives() {
    for http in [Some("h2"), None] {
        all_arrives(true, Some(&["h2"]), http).await;
    }
    // Which of two is spoken is the agent's choice only where it is left to it.
    all_arrives(true, Some(&["h2", "http/1.1"]), Some("h2")).await;
}

#[tokio::test]
async fn the_card_of_an_agent_of_http1_arrives() {
    for http in [Some("h1"), None] {
        all_arrives(false, None, http).await;
        all_arrives(false, Some(&["http/1.1"]), http).await;
        // A server that has never heard of ALPN.
        all_arrives(false, Some(&[]), http).await;
    }
    all_arrives(false, Some(&["http/1.1", "h2"]), Some("h1")).await;
}

/// An agent that speaks what it is not asked in: readiness says what to set, records have the name,
/// and the agent executes nothing.
async fn has_a_name(h2: bool, protocols: Option<&[&str]>, http: Option<&str>, set: &str) {
    let case = format!("h2 {h2}, TLS {protocols:?}, http {http:?}");
    let (authority, own) = agents_pair();
    let agent = Agent::start(h2, protocols.map(|names| (&own, names))).await;
    let stand = stand(agent.address(), protocols.is_some(), http, true, &authority);
    let why = stand.trouble().await;
    assert!(why.contains(set), "{case}: {why}");
    let fetches = stand.gateway.journal.of_kind("fetch", 1).await;
    assert_eq!(fetches[0]["error"], "other_http", "{case}: {fetches:?}");
    let (status, _) = stand.post("/a", CALL).await;
    assert_eq!(status, 502, "{case}");
    let outcomes = stand.gateway.journal.of_kind("outcome", 1).await;
    let attempts = outcomes[0]["attempts"].as_array().unwrap();
    let error = attempts.last().map(|attempt| &attempt["error"]);
    assert_eq!(error, Some(&"other_http".into()), "{case}: {outcomes:?}");
    assert_eq!(agent.counts(), (0, 0), "{case}");
}

/// An agent that hangs up on what it does not understand gives a hint at least.
#[tokio::test]
async fn an_agent_that_closes_without_a_word_may_speak_another_version() {
    for (http, set) in [
        (None, "set `backend.http: h2`"),
        (Some("h2"), "set `backend.http: h1`"),
    ] {
        let agent = RawAgent::start((0..8).map(|_| Act::Close)).await;
        let (authority, _) = agents_pair();
        let stand = stand(agent.address, false, http, true, &authority);
        let why = stand.trouble().await;
        assert!(why.contains("without a reply"), "{why}");
        assert!(why.contains(set), "{why}");
        let fetches = stand.gateway.journal.of_kind("fetch", 1).await;
        assert_eq!(fetches[0]["error"], "closed", "{fetches:?}");
    }
}

/// What is set right takes effect at once, also where an old card is served meanwhile.
#[tokio::test]
async fn a_corrected_version_is_asked_in_at_once() {
    let (authority, _) = agents_pair();
    let agent = Agent::start(true, None).await;
    let stand = stand(agent.address(), false, Some("h2"), false, &authority);
    let Stand { gateway, .. } = stand;
    let gateway = gateway.with_cards().await;
    let file = gateway.folder.path().join("gateway.yaml");
    let right = std::fs::read_to_string(&file).unwrap();
    gateway.write("gateway.yaml", &right.replace("http: h2", "http: h1"));
    gateway.until_generation(2).await;
    // The last good card goes on being served.
    let fetches = gateway.journal.of_kind("fetch", 2).await;
    assert_eq!(fetches[1]["error"], "other_http", "{fetches:?}");
    assert!(gateway.server.gate.live().cards.has_card(0));
    gateway.write("gateway.yaml", &right);
    gateway.until_generation(3).await;
    let fetches = gateway.journal.of_kind("fetch", 3).await;
    assert_eq!(fetches[2]["error"], Value::Null, "{fetches:?}");
    assert_eq!(agent.counts(), (2, 0));
}

#[tokio::test]
async fn an_agent_of_another_version_in_plaintext_has_a_name() {
    for http in [None, Some("h1")] {
        has_a_name(true, None, http, "set `backend.http: h2`").await;
    }
    has_a_name(false, None, Some("h2"), "set `backend.http: h1`").await;
}

#[tokio::test]
async fn an_agent_of_another_version_over_tls_has_a_name() {
    has_a_name(true, Some(&["h2"]), Some("h1"), "set `backend.http: h2`").await;
    for protocols in [&["http/1.1"][..], &[]] {
        let set = "set `backend.http: h1`";
        has_a_name(false, Some(protocols), Some("h2"), set).await;
    }
}

/// A server whose handshakes fail. It says so and waits until the other end leaves: closing with
/// bytes unread could take its word back.
async fn distrusting(tls: Arc<rustls::ServerConfig>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(tls);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Err((_, mut left)) = acceptor.accept(stream).into_fallible().await {
                let _ = left.read_to_end(&mut Vec::new()).await;
            }
        }
    });
    (address, task)
}

/// Whom one does not trust is not called away.
#[tokio::test]
async fn an_agent_that_is_not_trusted_is_told_from_one_that_is_not_there() {
    let clients = Authority::new();
    let (authority, own) = agents_pair();
    let stranger = Authority::new();
    for (trusted, wants) in [(&stranger, None), (&authority, Some(&clients))] {
        for protocols in [&["h2"][..], &["http/1.1"], &[]] {
            let server = Authority::server(&own, wants, protocols);
            let (address, task) = distrusting(server).await;
            let stand = stand(address, true, None, true, trusted);
            let why = stand.trouble().await;
            assert!(why.contains("see `backend.tls`"), "{protocols:?}: {why}");
            let fetches = stand.gateway.journal.of_kind("fetch", 1).await;
            assert_eq!(fetches[0]["error"], "tls", "{fetches:?}");
            task.abort();
        }
    }
}
