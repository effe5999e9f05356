//! An agent that speaks every dialect and counts what it executes.

use super::proto::{find, frames};
use crate::support::http1::{self, Framing, Reader};
use crate::support::loopback;
use crate::support::proto::{encode, framed, method_of};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use portcullis::a2a::{Operation, Version, wire};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A running agent; dropping it closes its ports.
pub struct Polyglot {
    /// JSON-RPC at `/rpc`, REST below `/rest`.
    pub http: SocketAddr,
    /// gRPC without TLS.
    pub grpc: SocketAddr,
    executed: Arc<Executed>,
    tasks: [JoinHandle<()>; 2],
}

/// What it executed: path and body of each request, its card's own left out; and whose webhooks it
/// answers with.
#[derive(Default)]
struct Executed(Mutex<Vec<(String, Vec<u8>)>>, Mutex<Whose>);

/// The task that its webhooks are said to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whose {
    /// The one that was asked about.
    #[default]
    Asked,
    /// Nothing is said of it.
    Unsaid,
    Another,
    /// A list has one of the task that was asked about, and another's behind it.
    AnotherToo,
}

impl Whose {
    /// The tasks that a list names; what is no list has the last.
    fn tasks(self, asked: &str) -> Vec<Option<&str>> {
        match self {
            Whose::Asked => vec![Some(asked)],
            Whose::Unsaid => vec![None],
            Whose::Another => vec![Some(ANOTHER)],
            Whose::AnotherToo => vec![Some(asked), Some(ANOTHER)],
        }
    }
}

const ANOTHER: &str = "t-of-another";

impl Executed {
    /// Notes one more; how many there were before.
    fn note(&self, path: &str, body: &[u8]) -> u64 {
        let mut all = self.0.lock().unwrap();
        all.push((path.to_owned(), body.to_vec()));
        all.len() as u64 - 1
    }
}

impl Polyglot {
    pub async fn start() -> Polyglot {
        let listeners = [
            TcpListener::bind(loopback()).await.unwrap(),
            TcpListener::bind(loopback()).await.unwrap(),
        ];
        let [http, grpc] = [0, 1].map(|i: usize| listeners[i].local_addr().unwrap());
        let executed = Arc::new(Executed::default());
        let [over_http, over_grpc] = listeners;
        let tasks = [
            tokio::spawn(accept(over_http, executed.clone(), serve_http)),
            tokio::spawn(accept(over_grpc, executed.clone(), serve_grpc)),
        ];
        Polyglot {
            http,
            grpc,
            executed,
            tasks,
        }
    }

    /// Operations executed so far; its card is none.
    pub fn executed(&self) -> u64 {
        self.executed.0.lock().unwrap().len() as u64
    }

    /// From now on it answers with webhooks of this task.
    pub fn answer_of(&self, whose: Whose) {
        *self.executed.1.lock().unwrap() = whose;
    }

    /// Path and body of the last one.
    pub fn last(&self) -> (String, Vec<u8>) {
        self.executed.0.lock().unwrap().last().unwrap().clone()
    }
}

impl Drop for Polyglot {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn accept<F, R>(listener: TcpListener, executed: Arc<Executed>, serve: F)
where
    F: Fn(TcpStream, Arc<Executed>) -> R,
    R: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, executed.clone()));
    }
}

async fn serve_http(stream: TcpStream, executed: Arc<Executed>) {
    let mut reader = Reader::new(stream);
    while let Ok(Some(head)) = reader.head().await {
        let (line, fields) = http1::parse_head(&head);
        let mut framing = http1::framing(&fields, Framing::Length(0));
        let mut body = Vec::new();
        while let Ok(Some(piece)) = reader.piece(&mut framing).await {
            body.extend(piece);
        }
        let (media, answer) = http_answer(&line, &body, &executed);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let whole = [head.into_bytes(), answer.into_bytes()].concat();
        if reader.inner_mut().write_all(&whole).await.is_err() {
            return;
        }
    }
}

fn http_answer(line: &str, body: &[u8], executed: &Executed) -> (&'static str, String) {
    let mut parts = line.split(' ');
    let (method, path) = (parts.next().unwrap(), parts.next().unwrap());
    if path.starts_with("/.well-known/") {
        return ("application/json", card().to_string());
    }
    let number = executed.note(path, body);
    let whose = *executed.1.lock().unwrap();
    if path == "/rpc" {
        let asked: Value = serde_json::from_slice(body).unwrap();
        let spelling = wire::json_rpc(asked["method"].as_str().unwrap()).unwrap();
        let params = &asked["params"];
        let task = ["taskId", "id"].iter().find_map(|k| params[*k].as_str());
        let result = result(
            spelling.version,
            spelling.operation,
            task,
            number,
            true,
            whose,
        );
        let whole = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        return in_media(spelling.operation, &whole);
    }
    let (version, operation, task) = rest_operation(method, path.strip_prefix("/rest").unwrap());
    let result = result(version, operation, task.as_deref(), number, false, whose);
    in_media(operation, &result)
}

fn in_media(operation: Operation, value: &Value) -> (&'static str, String) {
    match operation.is_streaming() {
        true => ("text/event-stream", format!("data: {value}\n\n")),
        false => ("application/json", value.to_string()),
    }
}

/// What a path of REST means; written apart from the gateway's own table.
fn rest_operation(method: &str, path: &str) -> (Version, Operation, Option<String>) {
    let path = path.split('?').next().unwrap();
    let (version, path) = match path.strip_prefix("/v1") {
        Some(rest) => (Version::V0_3, rest),
        None => (Version::V1_0, path),
    };
    let path = path.strip_prefix("/t1").unwrap_or(path);
    let segments: Vec<_> = path.split('/').skip(1).collect();
    let (operation, task) = match (method, segments.as_slice()) {
        ("POST", ["message:send"]) => (Operation::SendMessage, None),
        ("POST", ["message:stream"]) => (Operation::SendStreamingMessage, None),
        ("GET", ["tasks"]) => (Operation::ListTasks, None),
        ("GET", ["extendedAgentCard" | "card"]) => (Operation::GetExtendedAgentCard, None),
        ("GET", ["tasks", id]) => (Operation::GetTask, Some(*id)),
        ("POST", ["tasks", id]) => match id.split_once(':').unwrap() {
            (id, "cancel") => (Operation::CancelTask, Some(id)),
            (id, "subscribe") => (Operation::SubscribeToTask, Some(id)),
            other => panic!("{other:?}"),
        },
        ("POST", ["tasks", id, _]) => (Operation::CreateTaskPushNotificationConfig, Some(*id)),
        ("GET", ["tasks", id, _]) => (Operation::ListTaskPushNotificationConfigs, Some(*id)),
        ("GET", ["tasks", id, _, _]) => (Operation::GetTaskPushNotificationConfig, Some(*id)),
        ("DELETE", ["tasks", id, _, _]) => (Operation::DeleteTaskPushNotificationConfig, Some(*id)),
        other => panic!("{other:?}"),
    };
    (version, operation, task.map(str::to_owned))
}

/// The result of an operation, `tagged` as 0.3's JSON-RPC has it or bare as REST has it.
fn result(
    version: Version,
    operation: Operation,
    task: Option<&str>,
    number: u64,
    json_rpc: bool,
    whose: Whose,
) -> Value {
    let tagged = json_rpc && version == Version::V0_3;
    let fresh = format!("t-{number}");
    let task = task.unwrap_or(&fresh);
    let state = if tagged {
        "completed"
    } else {
        "TASK_STATE_COMPLETED"
    };
    let mut whole =
        json!({"id": task, "contextId": format!("c-{task}"), "status": {"state": state}});
    if tagged {
        whole["kind"] = "task".into();
    }
    let hook = json!({"id": "c-1", "url": super::requests::HOOK});
    let config = |task: Option<&str>| {
        let mut config = match version {
            Version::V1_0 => hook.clone(),
            Version::V0_3 => json!({"pushNotificationConfig": hook}),
        };
        match (task, version, json_rpc) {
            (None, _, _) => {}
            (Some(task), Version::V0_3, false) => {
                config["name"] = format!("tasks/{task}/pushNotificationConfigs/c-1").into();
            }
            (Some(task), _, _) => config["taskId"] = task.into(),
        }
        config
    };
    let mut configs: Vec<_> = whose.tasks(task).into_iter().map(config).collect();
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            match tagged {
                true => whole,
                false => json!({ "task": whole }),
            }
        }
        Operation::GetTask | Operation::CancelTask => whole,
        Operation::ListTasks => {
            let other = json!({"id": ANOTHER, "contextId": "c-of-another",
                "status": {"state": state}});
            json!({"tasks": [other], "nextPageToken": "", "pageSize": 5, "totalSize": 1})
        }
        Operation::CreateTaskPushNotificationConfig | Operation::GetTaskPushNotificationConfig => {
            configs.pop().unwrap()
        }
        Operation::ListTaskPushNotificationConfigs if tagged => json!(configs),
        Operation::ListTaskPushNotificationConfigs => json!({ "configs": configs }),
        Operation::DeleteTaskPushNotificationConfig if json_rpc => Value::Null,
        Operation::DeleteTaskPushNotificationConfig => json!({}),
        Operation::GetExtendedAgentCard => card(),
    }
}

/// Its card, in both shapes; the interfaces are listed in the gateway's configuration.
fn card() -> Value {
    json!({
        "name": "polyglot", "description": "speaks every dialect", "version": "1",
        "protocolVersion": "0.3.0", "url": "http://polyglot.example/rpc",
        "preferredTransport": "JSONRPC", "supportsAuthenticatedExtendedCard": true,
        "supportedInterfaces": [{"url": "http://polyglot.example/rpc",
            "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities":
            {"streaming": true, "pushNotifications": true, "extendedAgentCard": true,
                "extensions": [{"uri": "urn:portcullis:stamp:1"},
                    {"uri": "urn:portcullis:assertion:1"}]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "hello", "name": "hello", "description": "greets", "tags": ["x"]}],
    })
}

async fn serve_grpc(stream: TcpStream, executed: Arc<Executed>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let mut calls = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        calls.spawn(answer_grpc(request, respond, executed.clone()));
    }
}

async fn answer_grpc(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    executed: Arc<Executed>,
) {
    let path = request.uri().path().to_owned();
    let mut stream = request.into_body();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        let _ = stream.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    let number = executed.note(&path, &body);
    let whose = *executed.1.lock().unwrap();
    let reply = grpc_reply(&path, frames(&body)[0], number, whose);
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let mut send = respond.send_response(head, false).unwrap();
    send.send_data(framed(&reply).into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    send.send_trailers(trailers).unwrap();
}

/// Field numbers: `a2a-protocol.md` a.3 and a.4.
fn grpc_reply(path: &str, request: &[u8], count: u64, whose: Whose) -> Vec<u8> {
    let (service, method) = path[1..].split_once('/').unwrap();
    let package = service.strip_suffix(".A2AService").unwrap();
    let old = package == "a2a.v1";
    let named = |field| find(request, field).map(|id| String::from_utf8(id.to_vec()).unwrap());
    let fresh = format!("t-{count}");
    let part = |name: Option<String>| name.map(|n| n.split('/').nth(1).unwrap().to_owned());
    let task = match (old, method) {
        (_, "SendMessage" | "SendStreamingMessage" | "ListTasks") => None,
        (true, _) => part(named(1)),
        (false, "GetTask" | "CancelTask" | "SubscribeToTask") => named(2),
        (false, "CreateTaskPushNotificationConfig") => named(3),
        (false, "ListTaskPushNotificationConfigs") => named(1),
        (false, _) => named(2),
    };
    let task = task.unwrap_or(fresh);
    let whole = |id: &str| {
        json!([
            ["id", id],
            ["context_id", format!("c-{id}")],
            ["status", [["state", 3]]]
        ])
    };
    let hook = super::requests::HOOK;
    let config = |task: Option<&str>| {
        let mut config = match old {
            true => vec![json!([
                "push_notification_config",
                [["id", "c-1"], ["url", hook]]
            ])],
            false => vec![json!(["id", "c-1"]), json!(["url", hook])],
        };
        config.extend(task.map(|task| match old {
            true => json!(["name", format!("tasks/{task}/pushNotificationConfigs/c-1")]),
            false => json!(["task_id", task]),
        }));
        json!(config)
    };
    let mut configs: Vec<_> = whose.tasks(&task).into_iter().map(config).collect();
    let fields = match method {
        "SendMessage" | "SendStreamingMessage" | "SubscribeToTask" | "TaskSubscription" => {
            json!([["task", whole(&task)]])
        }
        "GetTask" | "CancelTask" => whole(&task),
        "ListTasks" => {
            json!([
                ["tasks", whole(ANOTHER)],
                ["page_size", 5],
                ["total_size", 1]
            ])
        }
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            configs.pop().unwrap()
        }
        "ListTaskPushNotificationConfigs" | "ListTaskPushNotificationConfig" => {
            configs.into_iter().map(|c| json!(["configs", c])).collect()
        }
        "DeleteTaskPushNotificationConfig" => json!([]),
        "GetExtendedAgentCard" | "GetAgentCard" => super::requests::card(package),
        other => panic!("{other}"),
    };
    let (_, reply, _) = method_of(package, method).unwrap();
    encode(package, &reply, &fields)
}
