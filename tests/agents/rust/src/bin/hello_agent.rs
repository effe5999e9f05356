//! A hello-world agent made with the official Rust SDK, with counters and a log of its own.
//!
//! Serves JSON-RPC, HTTP+JSON and gRPC in 1.0 on free loopback ports. Prints one line of JSON with its
//! ports, then serves until it is stopped. `/counters` and `/executions` are those of
//! `tests/agents/python/ledger.py`.

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};
use a2a_grpc::GrpcHandler;
use a2a_pb::proto::a2a_service_server::A2aServiceServer;
use a2a_server::agent_card::{StaticAgentCard, agent_card_router};
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::middleware::ServiceParams;
use a2a_server::rest::rest_router;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryPushConfigStore,
    InMemoryTaskStore, PushConfigStore, RequestHandler,
};
use async_trait::async_trait;
use axum::extract::{Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

const GREETING: &str = "hello from the rust agent";

#[derive(Default)]
struct Ledger {
    requests: AtomicU64,
    executions: AtomicU64,
    cards: AtomicU64,
    log: Mutex<Vec<Value>>,
}

impl Ledger {
    /// One entry; absent and empty values are left out, since parsers differ in that alone.
    fn note(&self, operation: &str, mut what: Value) {
        let members = what.as_object_mut().expect("an object");
        members.retain(|_, value| !(value.is_null() || *value == "" || *value == json!([])));
        members.insert("op".to_owned(), json!(operation));
        self.log.lock().expect("no panic").push(what);
    }
}

/// The names in a request.
fn describe(request: &impl serde::Serialize) -> Value {
    let said = serde_json::to_value(request).expect("a request is JSON");
    let Some(message) = said.get("message") else {
        let task = said.get("taskId").filter(|id| !id.is_null());
        return json!({
            "task": task.or(said.get("id")), "context": said["contextId"], "webhook": said["url"],
        });
    };
    json!({
        "task": message["taskId"], "context": message["contextId"],
        "references": message["referenceTaskIds"], "skill": message["metadata"]["skillId"],
        "webhook": said["configuration"]["taskPushNotificationConfig"]["url"],
        "tenant": said["tenant"],
    })
}

tokio::task_local! {
    /// Set while a caller's list of webhooks is made.
    static LISTING: ();
}

/// A store whose webhooks callers can list, but not what sends to them: what a webhook would get
/// stays here.
struct Unsent(InMemoryPushConfigStore);

#[async_trait]
impl PushConfigStore for Unsent {
    async fn save(
        &self,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        self.0.save(config).await
    }

    async fn get(&self, task: &str, id: &str) -> Result<TaskPushNotificationConfig, A2AError> {
        self.0.get(task, id).await
    }

    async fn list(&self, task: &str) -> Result<Vec<TaskPushNotificationConfig>, A2AError> {
        match LISTING.try_with(|()| ()) {
            Ok(()) => self.0.list(task).await,
            Err(_) => Ok(Vec::new()),
        }
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), A2AError> {
        self.0.delete(task, id).await
    }

    async fn delete_all(&self, task: &str) -> Result<(), A2AError> {
        self.0.delete_all(task).await
    }
}

/// The SDK's handler, with every call in the log.
struct Watched {
    inner: DefaultRequestHandler,
    ledger: Arc<Ledger>,
}

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// `method(request) -> answer, operation;` for every method of the SDK's trait but one.
macro_rules! watched {
    ($($method:ident($request:ty) -> $answer:ty, $operation:literal;)*) => {
        #[async_trait]
        impl RequestHandler for Watched {
            $(async fn $method(
                &self,
                params: &ServiceParams,
                request: $request,
            ) -> Result<$answer, A2AError> {
                self.ledger.note($operation, describe(&request));
                self.inner.$method(params, request).await
            })*

            async fn list_push_configs(
                &self,
                params: &ServiceParams,
                request: ListTaskPushNotificationConfigsRequest,
            ) -> Result<ListTaskPushNotificationConfigsResponse, A2AError> {
                self.ledger.note("ListTaskPushNotificationConfigs", describe(&request));
                LISTING.scope((), self.inner.list_push_configs(params, request)).await
            }
        }
    };
}

watched! {
    send_message(SendMessageRequest) -> SendMessageResponse, "SendMessage";
    send_streaming_message(SendMessageRequest) -> Events, "SendStreamingMessage";
    get_task(GetTaskRequest) -> Task, "GetTask";
    list_tasks(ListTasksRequest) -> ListTasksResponse, "ListTasks";
    cancel_task(CancelTaskRequest) -> Task, "CancelTask";
    subscribe_to_task(SubscribeToTaskRequest) -> Events, "SubscribeToTask";
    create_push_config(TaskPushNotificationConfig) -> TaskPushNotificationConfig,
        "CreateTaskPushNotificationConfig";
    get_push_config(GetTaskPushNotificationConfigRequest) -> TaskPushNotificationConfig,
        "GetTaskPushNotificationConfig";
    delete_push_config(DeleteTaskPushNotificationConfigRequest) -> (),
        "DeleteTaskPushNotificationConfig";
    get_extended_agent_card(GetExtendedAgentCardRequest) -> AgentCard, "GetExtendedAgentCard";
}

struct Hello(Arc<Ledger>);

impl AgentExecutor for Hello {
    fn execute(
        &self,
        ctx: ExecutorContext,
    ) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        self.0.executions.fetch_add(1, SeqCst);
        let (task, context) = ctx.task_info();
        self.0
            .note("execute", json!({"task": task, "context": context}));
        let text = ctx.message.as_ref().and_then(|m| m.text());
        let starts = |word| text.as_ref().is_some_and(|t| t.starts_with(word));
        let (asks, waits) = (starts("ask"), starts("wait"));
        let status = |state: &str| json!({"statusUpdate": {"taskId": task, "contextId": context, "status": {"state": state}}});
        let mut events = Vec::new();
        if ctx.stored_task.is_none() {
            events.push(json!({"task": {
                "id": task, "contextId": context, "status": {"state": "TASK_STATE_SUBMITTED"},
            }}));
        }
        events.push(status("TASK_STATE_WORKING"));
        if waits {
            // The handler ends this when the task is canceled.
            return said(events).chain(stream::pending()).boxed();
        }
        if asks {
            events.push(status("TASK_STATE_INPUT_REQUIRED"));
        } else {
            events.push(
                json!({"artifactUpdate": {"taskId": task, "contextId": context,
                    "lastChunk": true, "artifact": {
                        "artifactId": "greeting", "name": "greeting", "parts": [{"text": GREETING}],
                    },
                }}),
            );
            events.push(status("TASK_STATE_COMPLETED"));
        }
        said(events)
    }

    fn cancel(&self, ctx: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let (task, context) = ctx.task_info();
        self.0
            .note("cancel", json!({"task": task, "context": context}));
        let status = json!({"state": "TASK_STATE_CANCELED"});
        said(vec![json!({"statusUpdate": {
            "taskId": task, "contextId": context, "status": status,
        }})])
    }
}

fn said(events: Vec<Value>) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
    let parse =
        |event| serde_json::from_value(event).map_err(|e| A2AError::internal(e.to_string()));
    stream::iter(events.into_iter().map(parse)).boxed()
}

async fn count(State(ledger): State<Arc<Ledger>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path.starts_with("/a2a/") {
        ledger.requests.fetch_add(1, SeqCst);
    } else if path.starts_with("/.well-known/") {
        ledger.cards.fetch_add(1, SeqCst);
    }
    next.run(request).await
}

async fn counters(State(ledger): State<Arc<Ledger>>) -> Json<Value> {
    Json(json!({
        "requests": ledger.requests.load(SeqCst),
        "executions": ledger.executions.load(SeqCst),
        "cards": ledger.cards.load(SeqCst),
    }))
}

async fn executions(
    State(ledger): State<Arc<Ledger>>,
    Query(query): Query<HashMap<String, usize>>,
) -> Json<Value> {
    let log = ledger.log.lock().expect("no panic");
    let after = query.get("after").copied().unwrap_or_default();
    Json(json!({
        "requests": ledger.requests.load(SeqCst),
        "noted": log.len(),
        "entries": log.get(after..).unwrap_or_default(),
    }))
}

fn card(base: &str, rpc_port: u16) -> Result<AgentCard, serde_json::Error> {
    let interface = |binding: &str, url: String| json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
    serde_json::from_value(json!({
        "name": "Hello", "description": "Says hello", "version": "1.0.0",
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            interface("JSONRPC", format!("{base}/a2a/jsonrpc")),
            interface("HTTP+JSON", format!("{base}/a2a/rest")),
            interface("GRPC", format!("127.0.0.1:{rpc_port}")),
        ],
        "skills": [{"id": "hello", "name": "hello", "description": "Says hello", "tags": ["hello"]}],
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let rpc_listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let rpc_port = rpc_listener.local_addr()?.port();
    let card = card(&format!("http://127.0.0.1:{port}"), rpc_port)?;
    let ledger = Arc::new(Ledger::default());
    let inner = DefaultRequestHandler::new(Hello(Arc::clone(&ledger)), InMemoryTaskStore::new())
        .with_capabilities(card.capabilities.clone())
        .with_push_config_store(Unsent(InMemoryPushConfigStore::new()))
        .with_extended_agent_card(card.clone());
    let handler = Arc::new(Watched {
        inner,
        ledger: Arc::clone(&ledger),
    });
    let counted = Arc::clone(&ledger);
    let rpc = A2aServiceServer::with_interceptor(
        GrpcHandler::new(Arc::clone(&handler)),
        move |request: tonic::Request<()>| {
            counted.requests.fetch_add(1, SeqCst);
            Ok(request)
        },
    );
    let app = Router::new()
        .nest("/a2a/jsonrpc", jsonrpc_router(Arc::clone(&handler)))
        .nest("/a2a/rest", rest_router(handler))
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .merge(
            Router::new()
                .route("/counters", get(counters))
                .route("/executions", get(executions))
                .with_state(Arc::clone(&ledger)),
        )
        .layer(from_fn_with_state(ledger, count));
    println!("{}", json!({"port": port, "grpc": rpc_port}));
    let rpc = tonic::transport::Server::builder()
        .add_service(rpc)
        .serve_with_incoming(TcpListenerStream::new(rpc_listener));
    tokio::spawn(rpc);
    axum::serve(listener, app).await?;
    Ok(())
}
