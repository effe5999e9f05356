//! A hello-world agent made with the official Rust SDK, with counters of its own.
//!
//! Serves JSON-RPC 1.0 at `/rpc` on a free loopback port. Prints one line of JSON with its port,
//! then serves until it is stopped. `GET /counters` tells what arrived: `requests` are HTTP
//! requests at `/rpc`, `executions` are runs of the executor, `cards` are card fetches.

use a2a::{A2AError, AgentCard, StreamResponse};
use a2a_server::agent_card::{StaticAgentCard, agent_card_router};
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const GREETING: &str = "hello from the rust agent";

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    executions: AtomicU64,
    cards: AtomicU64,
}

struct Hello(Arc<Counters>);

impl AgentExecutor for Hello {
    fn execute(
        &self,
        ctx: ExecutorContext,
    ) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        self.0.executions.fetch_add(1, SeqCst);
        let (task, context) = ctx.task_info();
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

async fn count(State(counters): State<Arc<Counters>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path == "/rpc" {
        counters.requests.fetch_add(1, SeqCst);
    } else if path.starts_with("/.well-known/") {
        counters.cards.fetch_add(1, SeqCst);
    }
    next.run(request).await
}

async fn counts(State(counters): State<Arc<Counters>>) -> Json<Value> {
    Json(json!({
        "requests": counters.requests.load(SeqCst),
        "executions": counters.executions.load(SeqCst),
        "cards": counters.cards.load(SeqCst),
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let card: AgentCard = serde_json::from_value(json!({
        "name": "Hello", "description": "Says hello", "version": "1.0.0",
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [{
            "url": format!("http://127.0.0.1:{port}/rpc"),
            "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
        }],
        "skills": [{"id": "hello", "name": "hello", "description": "Says hello", "tags": ["hello"]}],
    }))?;
    let counters = Arc::new(Counters::default());
    let handler =
        DefaultRequestHandler::new(Hello(Arc::clone(&counters)), InMemoryTaskStore::new())
            .with_capabilities(card.capabilities.clone());
    let app = Router::new()
        .nest("/rpc", jsonrpc_router(Arc::new(handler)))
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .merge(
            Router::new()
                .route("/counters", get(counts))
                .with_state(Arc::clone(&counters)),
        )
        .layer(from_fn_with_state(counters, count));
    println!("{}", json!({"port": port, "rpc": "/rpc"}));
    axum::serve(listener, app).await?;
    Ok(())
}
