//! The REST binding against a live gateway, in front of an agent that offers it in both versions
//! below the path of its JSON-RPC interface.

use super::{POLICY, RPC, message};
use crate::support::client::{Client, Response};
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::raw_agent::{Act, LAST_CHUNK, RawAgent, Seen, chunk, json_answer, stream_head};
use serde_json::{Value, json};

/// The path of the agent's REST interface.
pub const REST: &str = "/agents/pr-agent/a2a/rest";

/// A hybrid card with JSON-RPC and REST in both versions.
fn card(port: u16) -> Value {
    let rpc = format!("http://127.0.0.1:{port}/a2a");
    let rest = format!("http://127.0.0.1:{port}/a2a/rest");
    json!({
        "name": "raw", "description": "raw", "version": "1",
        "protocolVersion": "0.3.0", "url": rpc, "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": rest, "transport": "HTTP+JSON"}],
        "supportedInterfaces": [
            {"url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": rest, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true}, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    })
}

pub struct Stand {
    pub agent: RawAgent,
    pub gateway: Gateway,
    issuer: Issuer,
}

impl Stand {
    pub async fn new() -> Stand {
        Stand::with(|yaml| yaml).await
    }

    /// With a gateway file that is changed by `edit`; the agent has answered for its card.
    pub async fn with(edit: impl Fn(String) -> String) -> Stand {
        let agent = RawAgent::start([]).await;
        let public = card(agent.address.port());
        agent.play([Act::Answer(json_answer(200, &public.to_string()))]);
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = super::yaml(&format!("http://{}", agent.address), &issuer);
        let yaml = edit(yaml.replace(
            &yaml[yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap()],
            "",
        ));
        let policy = POLICY.replace("[review-diff]", "any");
        let files = [
            ("policy.yaml", &*policy),
            ("corp.jwks.json", &issuer.jwks()),
        ];
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &files,
            clock: None,
        })
        .with_cards()
        .await;
        Stand {
            agent,
            gateway,
            issuer,
        }
    }

    pub fn token(&self, grant: Grant) -> String {
        self.issuer
            .token("alice", grant, json!({"role": "reviewer"}))
    }

    /// Sends a request below the REST interface; a body goes as JSON.
    async fn ask(
        &self,
        method: &str,
        below: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let bearer = format!("Bearer {}", self.token(Grant::Agent));
        let mut all = vec![("Authorization", bearer.as_str())];
        if !body.is_empty() {
            all.push(("Content-Type", "application/json"));
        }
        all.extend_from_slice(fields);
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        client
            .request(method, &format!("{REST}{below}"), &all, body.as_bytes())
            .await
            .unwrap()
    }

    /// What the agent saw, the card's own request left out.
    pub fn seen(&self) -> Vec<Seen> {
        self.agent.counts().seen.split_off(1)
    }

    fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }

    /// Makes `t-1` Alice's, by the other binding.
    async fn own_a_task(&self) {
        let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task()}});
        self.agent
            .play([Act::Answer(json_answer(200, &reply.to_string()))]);
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let body = message("SendMessage", "hello", "hi", &[]);
        let token = self.token(Grant::Agent);
        let version = [("A2A-Version", "1.0")];
        let response = client.post_json(RPC, Some(&token), &version, &body);
        assert_eq!(response.await.unwrap().status, 200);
    }
}

fn task() -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}})
}

fn send(parts: &str) -> String {
    json!({"message": {
        "messageId": "m-1", "role": "ROLE_USER", parts: [{"text": "hi"}],
        "metadata": {"skillId": "hello"},
    }})
    .to_string()
}

fn versions(seen: &Seen) -> Vec<String> {
    let fields = seen.fields().1;
    fields
        .into_iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("a2a-version"))
        .map(|(_, value)| value)
        .collect()
}

/// FC-43: the layouts of both versions lead to the operation, and go out as they are. FC-41: what
/// is declared arrives as exactly one header; with a path of 1.0 it is always declared.
#[tokio::test]
async fn fc_41_fc_43_both_layouts_reach_the_agent_with_one_version() {
    let stand = Stand::new().await;
    // Path and query, header, name of the parts; what the agent saw of path and version.
    let table = [
        (
            "/message:send",
            Some("1.0"),
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        ("/message:send", None, "parts", "/message:send", Some("1.0")),
        (
            "/message:send?A2A-Version=1.0",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/message%3Asend",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/message:send/",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/v1/message:send",
            Some("0.3"),
            "content",
            "/v1/message:send",
            Some("0.3"),
        ),
        (
            "/v1/message:send",
            None,
            "content",
            "/v1/message:send",
            None,
        ),
        (
            "/v1/message:send?A2A-Version=0.3",
            None,
            "content",
            "/v1/message:send",
            Some("0.3"),
        ),
    ];
    for (below, stated, parts, path, version) in table {
        let fields: Vec<_> = stated
            .iter()
            .map(|stated| ("A2A-Version", *stated))
            .collect();
        let reply = json!({"task": task()}).to_string();
        stand.agent.play([Act::Answer(json_answer(200, &reply))]);
        let body = send(parts);
        let response = stand.ask("POST", below, &fields, &body).await;
        assert_eq!(
            (response.status, &*response.text()),
            (200, &*reply),
            "{below}"
        );
        let seen = stand.last();
        let (line, _) = seen.fields();
        assert_eq!(line, format!("POST /a2a/rest{path} HTTP/1.1"), "{below}");
        let expected: Vec<_> = version.into_iter().collect();
        assert_eq!(versions(&seen), expected, "{below}");
        assert_eq!(seen.body, body.as_bytes(), "{below}: byte for byte");
    }
    let records = stand.gateway.journal.records();
    let intents: Vec<_> = records.iter().filter(|r| r["kind"] == "intent").collect();
    assert_eq!(intents.len(), table.len());
    assert!(intents.iter().all(|r| r["operation"] == "SendMessage"));
    assert!(intents.iter().all(|r| r["binding"] == "rest"));
}

/// FC-43: what is no path of an operation leads nowhere, and says so as REST does.
#[tokio::test]
async fn fc_43_unknown_paths_are_refused_in_the_form_of_rest() {
    let stand = Stand::new().await;
    let older = ["/v1", "/v1/tasks", "/v1/nope"];
    let newer = [
        "/v2/message:send",
        "/acme/message:send",
        "/message/send",
        "/nope",
        "",
    ];
    for below in older.into_iter().chain(newer) {
        let response = stand.ask("POST", below, &[], &send("parts")).await;
        assert_eq!(response.status, 404, "{below}");
        let answer = response.json();
        match older.contains(&below) {
            true => assert_eq!(
                answer,
                json!({"type": "MethodNotFoundError", "code": -32601, "message": "nothing is here"})
            ),
            false => {
                assert_eq!(answer["error"]["code"], 404, "{below}");
                assert_eq!(answer["error"]["status"], "NOT_FOUND", "{below}");
            }
        }
        // Without a token nobody learns whether it exists.
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let path = format!("{REST}{below}");
        let stranger = client.request("POST", &path, &[], b"").await.unwrap();
        let elsewhere = client.request("POST", "/nowhere", &[], b"").await.unwrap();
        assert_eq!((stranger.status, stranger.body), (401, elsewhere.body));
    }
    assert_eq!(stand.seen(), []);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let stand = Stand::new().await;
    for (method, below, allow) in [
        ("DELETE", "/tasks/t-1", "GET"),
        ("PUT", "/tasks/t-1:subscribe", "GET, POST"),
        ("GET", "/v1/tasks/t-1:cancel", "POST"),
        ("GET", "/message:send", "POST"),
    ] {
        let response = stand.ask(method, below, &[], "").await;
        assert_eq!(response.status, 405, "{method} {below}");
        assert_eq!(response.field("allow"), Some(allow), "{method} {below}");
    }
    assert_eq!(stand.seen(), []);
}

/// FC-81: no spelling of a path leads past the rule that its plain spelling meets.
#[tokio::test]
async fn fc_81_path_tricks_reach_nothing() {
    let stand = Stand::new().await;
    let full = format!("Bearer {}", stand.token(Grant::Full));
    for path in [
        "/agents/pr-agent/a2a/rest/..;/admin",
        "//agents/pr-agent/a2a/rest/message:send",
        "/agents/pr-agent/a2a/rest//message:send",
        "/agents/pr-agent/a2a/rest/%2e%2e/message:send",
        "/agents/pr-agent/a2a/rest%2fmessage:send",
        "/agents/pr-agent/a2a/rest/./message:send",
        "/agents/pr-agent/a2a/rest/tasks/a%2Fb:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t-1;x:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t-1%00:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t%253Acancel",
        "/agents/pr-agent/a2a/rest/Message:Send",
        "/agents/pr-agent/a2a/rest/TASKS/t-1",
        "/agents/pr-agent/a2a/rest/tasks/x:y:cancel",
    ] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let fields = [
            ("Authorization", &*full),
            ("Content-Type", "application/json"),
        ];
        let body = send("parts");
        let response = client.request("POST", path, &fields, body.as_bytes()).await;
        let status = response.unwrap().status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    assert_eq!(stand.seen(), []);
}

/// The Python client of 1.x writes 0.3 in the proto's own names. Agents are told the JSON names,
/// which every one of them reads.
#[tokio::test]
async fn the_proto_s_names_are_respelled_on_the_way() {
    let stand = Stand::new().await;
    let reply = json!({"task": task()}).to_string();
    stand.agent.play([Act::Answer(json_answer(200, &reply))]);
    let body = r#" {"request" : {"message_id":"m-1","role":"ROLE_USER","content":[{"text":"request"}],
        "metadata":{"skillId":"hello","task_id":"x"}}, "configuration":{"accepted_output_modes":[]}}"#;
    let respelled = r#" {"message" : {"messageId":"m-1","role":"ROLE_USER","content":[{"text":"request"}],
        "metadata":{"skillId":"hello","task_id":"x"}}, "configuration":{"acceptedOutputModes":[]}}"#;
    let response = stand.ask("POST", "/v1/message:send", &[], body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = stand.last();
    assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), respelled);
    let length = respelled.len().to_string();
    assert_eq!(seen.field("content-length"), Some(length));
}

/// A task that was begun in another binding is followed in this one; to everybody else it is not
/// there.
#[tokio::test]
async fn tasks_are_read_followed_and_canceled_with_the_caller_s_own_verb() {
    let stand = Stand::new().await;
    stand.own_a_task().await;
    let one = task().to_string();
    let mut updated = task();
    updated["status"]["state"] = "TASK_STATE_COMPLETED".into();
    let events = || {
        let mut bytes = stream_head();
        bytes.extend(chunk(&format!("data: {}\n\n", json!({"task": task()}))));
        bytes.extend(chunk(&format!("data: {}\n\n", json!({"task": updated}))));
        bytes.extend(LAST_CHUNK);
        Act::Answer(bytes)
    };
    let json = || Act::Answer(json_answer(200, &one));
    // Method, path and query, body; what the agent saw of path and length; its answer.
    let table = [
        ("GET", "/tasks/t-1", "", "/tasks/t-1", None, json()),
        (
            "GET",
            "/tasks/t-1?historyLength=%32",
            "",
            "/tasks/t-1?historyLength=2",
            None,
            json(),
        ),
        ("GET", "/v1/tasks/t-1", "", "/v1/tasks/t-1", None, json()),
        (
            "POST",
            "/tasks/t-1:cancel",
            "",
            "/tasks/t-1:cancel",
            Some("0"),
            json(),
        ),
        (
            "POST",
            "/tasks/t-1:cancel",
            r#"{"id":"t-1"}"#,
            "/tasks/t-1:cancel",
            Some("12"),
            json(),
        ),
        (
            "POST",
            "/v1/tasks/t-1%3Acancel",
            r#"{"name":"tasks/t-1"}"#,
            "/v1/tasks/t-1:cancel",
            Some("20"),
            json(),
        ),
        (
            "POST",
            "/tasks/t-1:subscribe",
            "",
            "/tasks/t-1:subscribe",
            Some("0"),
            events(),
        ),
        (
            "GET",
            "/tasks/t-1:subscribe",
            "",
            "/tasks/t-1:subscribe",
            None,
            events(),
        ),
        (
            "GET",
            "/v1/tasks/t-1:subscribe",
            "",
            "/v1/tasks/t-1:subscribe",
            None,
            events(),
        ),
    ];
    for (method, below, body, path, length, act) in table {
        stand.agent.play([act]);
        let response = stand.ask(method, below, &[], body).await;
        assert_eq!(
            response.status,
            200,
            "{method} {below}: {}",
            response.text()
        );
        let seen = stand.last();
        let line = format!("{method} /a2a/rest{path} HTTP/1.1");
        assert_eq!(seen.fields().0, line);
        assert_eq!(seen.field("content-length").as_deref(), length, "{line}");
        assert_eq!(seen.body, body.as_bytes(), "{line}");
    }
    let before = stand.seen().len();
    for below in ["/tasks/t-2", "/v1/tasks/t-2"] {
        let response = stand.ask("GET", below, &[], "").await;
        assert_eq!(response.status, 404, "{below}");
        let code = crate::wire::error_code(&response.json());
        assert_eq!(
            code,
            if below.starts_with("/v1") {
                -32001
            } else {
                404
            }
        );
    }
    assert_eq!(stand.seen().len(), before);
}

/// A client that finds one verb of a subscription refused asks again with the other.
#[tokio::test]
async fn a_refused_verb_of_a_subscription_stays_a_405() {
    let stand = Stand::new().await;
    stand.own_a_task().await;
    let refusal = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Type: text/plain\r\nContent-Length: 18\r\n\r\nMethod Not Allowed";
    for below in ["/tasks/t-1:subscribe", "/v1/tasks/t-1:subscribe"] {
        stand.agent.play([Act::Answer(refusal.to_vec())]);
        let response = stand.ask("POST", below, &[], "").await;
        assert_eq!(response.status, 405, "{below}: {}", response.text());
    }
}

/// A path that is both an operation's and declared as the backend's own needs the full grant.
#[tokio::test]
async fn a_card_never_lowers_the_surface_of_a_declared_path() {
    let declared = "backend_paths:\n      - {path: '/a2a/rest/message:send', methods: [POST]}";
    let stand = Stand::with(|yaml| yaml.replace("backend_paths:", declared)).await;
    let refused = stand
        .ask("POST", "/message:send", &[], &send("parts"))
        .await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(stand.seen(), []);
    let reply = json!({"task": task()}).to_string();
    stand.agent.play([Act::Answer(json_answer(200, &reply))]);
    let full = format!("Bearer {}", stand.token(Grant::Full));
    let fields = [
        ("Authorization", &*full),
        ("Content-Type", "application/json"),
    ];
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let path = format!("{REST}/message:send");
    let body = send("parts");
    let passed = client
        .request("POST", &path, &fields, body.as_bytes())
        .await;
    assert_eq!((passed.unwrap().status, stand.seen().len()), (200, 1));
}

/// FC-02: the published address leads back to where the card's own address led.
#[tokio::test]
async fn fc_02_the_card_names_the_rest_interface_below_the_route() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let path = "/agents/pr-agent/.well-known/agent-card.json";
    let card = client.request("GET", path, &[], b"").await.unwrap().json();
    let url = format!("http://{}{REST}", stand.gateway.address);
    let rest = json!({"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
    assert_eq!(card["supportedInterfaces"][1], rest);
    let rest = json!({"url": url, "transport": "HTTP+JSON"});
    let additional = card["additionalInterfaces"].as_array().unwrap();
    assert!(additional.contains(&rest), "{card}");
}
