//! The official Rust client, told what to do line by line.
//!
//! Reads one JSON object per line and answers each with one line of JSON; the orders and answers
//! are those of `tests/agents/python/client_check.py`, in version 1.0 alone. Every time the agent
//! is found anew by the card below `base`.

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Part, Role,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use a2a_grpc::GrpcTransportFactory;
use futures::stream::{BoxStream, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Deserialize)]
struct Order {
    r#do: String,
    base: String,
    #[serde(default = "jsonrpc")]
    binding: String,
    #[serde(default)]
    streaming: bool,
    #[serde(default)]
    watch: bool,
    token: Option<String>,
    text: Option<String>,
    task: Option<String>,
    context: Option<String>,
    url: Option<String>,
    config: Option<String>,
}

fn jsonrpc() -> String {
    "JSONRPC".to_owned()
}

/// What came back, gathered.
#[derive(Default)]
struct Answer {
    kinds: Vec<&'static str>,
    texts: Vec<String>,
    task: Value,
    context: Value,
    state: Value,
    watched: Value,
    told: Option<Value>,
    urls: Option<Value>,
}

impl Answer {
    fn of_task(&mut self, task: &Value) {
        self.task = task["id"].clone();
        self.context = task["contextId"].clone();
        self.state = task["status"]["state"].clone();
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            self.of_artifact(artifact);
        }
    }

    fn of_artifact(&mut self, artifact: &Value) {
        let parts = artifact["parts"].as_array().into_iter().flatten();
        let texts = parts.filter_map(|part| part["text"].as_str());
        self.texts.extend(texts.map(str::to_owned));
    }

    /// An event of a stream, or the whole answer of a unary call.
    fn of_event(&mut self, event: &Value) {
        if let Some(task) = event.get("task") {
            self.kinds.push("task");
            self.of_task(task);
        } else if event.get("message").is_some() {
            self.kinds.push("message");
        }
        for (name, kind) in [
            ("statusUpdate", "status_update"),
            ("artifactUpdate", "artifact_update"),
        ] {
            let Some(update) = event.get(name) else {
                continue;
            };
            self.kinds.push(kind);
            self.task = update["taskId"].clone();
            self.context = update["contextId"].clone();
            if let Some(state) = update.pointer("/status/state") {
                self.state = state.clone();
            }
            if let Some(artifact) = update.get("artifact") {
                self.of_artifact(artifact);
            }
        }
    }

    fn into_value(self) -> Value {
        json!({
            "kinds": self.kinds, "text": self.texts.join(" "),
            "task": self.task, "context": self.context, "state": self.state,
            "watched": self.watched, "told": self.told, "urls": self.urls,
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, A2AError> {
    serde_json::from_value(value).map_err(|error| A2AError::internal(error.to_string()))
}

fn write(value: impl serde::Serialize) -> Result<Value, A2AError> {
    serde_json::to_value(value).map_err(|error| A2AError::internal(error.to_string()))
}

fn request(order: &Order) -> Result<SendMessageRequest, A2AError> {
    let text = order.text.as_deref().unwrap_or("hi");
    let mut message = write(Message::new(Role::User, vec![Part::text(text)]))?;
    for (name, id) in [("taskId", &order.task), ("contextId", &order.context)] {
        if let Some(id) = id {
            message[name] = json!(id);
        }
    }
    let hook = order.url.as_ref();
    let configuration = hook.map(|url| json!({"taskPushNotificationConfig": {"url": url}}));
    read(json!({"message": message, "configuration": configuration}))
}

type Events = BoxStream<'static, Result<a2a::StreamResponse, A2AError>>;

async fn gather(answer: &mut Answer, mut stream: Events) -> Result<(), A2AError> {
    while let Some(event) = stream.next().await {
        answer.of_event(&write(event?)?);
    }
    Ok(())
}

/// Cancels the task once it is watched; gives its last state as the watcher saw it.
async fn watch<T: Transport>(client: &A2AClient<T>, task: &Value) -> Result<Value, A2AError> {
    let subscribe: SubscribeToTaskRequest = read(json!({"id": task}))?;
    let mut stream = client.subscribe_to_task(&subscribe).await?;
    let mut seen = Answer::default();
    if let Some(event) = stream.next().await {
        seen.of_event(&write(event?)?);
        let cancel: CancelTaskRequest = read(json!({"id": task}))?;
        client.cancel_task(&cancel).await?;
    }
    gather(&mut seen, stream).await?;
    Ok(seen.state)
}

async fn call<T: Transport>(
    client: &A2AClient<T>,
    order: &Order,
    posted: &mut Vec<String>,
) -> Result<Value, A2AError> {
    let mut answer = Answer::default();
    let by_id = json!({"id": order.task});
    match &*order.r#do {
        "send" if order.streaming => {
            let mut stream = client.send_streaming_message(&request(order)?).await?;
            while let Some(event) = stream.next().await {
                answer.of_event(&write(event?)?);
                let at_work = answer.state == "TASK_STATE_WORKING";
                if order.watch && at_work && answer.watched.is_null() {
                    posted.extend([posted[0].clone(), posted[0].clone()]);
                    answer.watched = watch(client, &answer.task).await?;
                }
            }
        }
        "send" => answer.of_event(&write(client.send_message(&request(order)?).await?)?),
        "get" => {
            let get: GetTaskRequest = read(by_id)?;
            answer.of_task(&write(client.get_task(&get).await?)?);
        }
        "cancel" => {
            let cancel: CancelTaskRequest = read(by_id)?;
            answer.of_task(&write(client.cancel_task(&cancel).await?)?);
        }
        "subscribe" => {
            let subscribe: SubscribeToTaskRequest = read(by_id)?;
            let stream = client.subscribe_to_task(&subscribe).await?;
            gather(&mut answer, stream).await?;
        }
        "list" => {
            let list: ListTasksRequest = read(json!({"contextId": order.context}))?;
            let listed = write(client.list_tasks(&list).await?)?;
            let tasks = listed["tasks"].as_array().into_iter().flatten();
            let names = |task: &Value| json!({"task": task["id"], "context": task["contextId"]});
            answer.told = Some(tasks.map(names).collect());
        }
        "extended" => {
            let asked: GetExtendedAgentCardRequest = read(json!({}))?;
            let card = client.get_extended_agent_card(&asked).await?;
            answer.told = Some(card.skills.iter().map(|s| json!({"skill": s.id})).collect());
            answer.urls = Some(
                card.supported_interfaces
                    .iter()
                    .map(|i| json!(i.url))
                    .collect(),
            );
        }
        _ => answer.told = Some(push(client, order).await?),
    }
    Ok(answer.into_value())
}

/// Works with webhooks; gives what the agent tells of them.
async fn push<T: Transport>(client: &A2AClient<T>, order: &Order) -> Result<Value, A2AError> {
    let named = json!({"taskId": order.task, "id": order.config});
    let told = match &*order.r#do {
        "push-create" => {
            let asked = json!({"taskId": order.task, "id": "hook", "url": order.url});
            let asked: TaskPushNotificationConfig = read(asked)?;
            vec![write(client.create_push_config(&asked).await?)?]
        }
        "push-get" => {
            let asked: GetTaskPushNotificationConfigRequest = read(named)?;
            vec![write(client.get_push_config(&asked).await?)?]
        }
        "push-list" => {
            let asked = json!({"taskId": order.task});
            let asked: ListTaskPushNotificationConfigsRequest = read(asked)?;
            let listed = write(client.list_push_configs(&asked).await?)?;
            listed["configs"].as_array().cloned().unwrap_or_default()
        }
        "push-delete" => {
            let asked: DeleteTaskPushNotificationConfigRequest = read(named)?;
            client.delete_push_config(&asked).await?;
            Vec::new()
        }
        other => return Err(A2AError::internal(format!("unknown order `{other}`"))),
    };
    let names = |c: &Value| json!({"task": c["taskId"], "id": c["id"], "url": c["url"]});
    Ok(told.iter().map(names).collect())
}

async fn obey(order: &Order, posted: &mut Vec<String>) -> Result<Value, A2AError> {
    let mut card: AgentCard = AgentCardResolver::new(None).resolve(&order.base).await?;
    if order.r#do == "card" {
        let raw = write(&card)?;
        let urls: Vec<&str> = card.supported_interfaces.iter().map(|i| &*i.url).collect();
        return Ok(json!({"raw": raw.to_string(), "urls": urls}));
    }
    // As a client sees it that knows this binding alone.
    let offered = &mut card.supported_interfaces;
    offered.retain(|i| i.protocol_binding == order.binding && i.protocol_version == "1.0");
    let mut factory = A2AClientFactory::builder().register(Arc::new(GrpcTransportFactory::new()));
    if let Some(token) = &order.token {
        factory = factory.with_interceptor(Arc::new(AuthInterceptor::bearer(token)));
    }
    let made = factory.build().create_from_card_with_interface(&card).await;
    let (client, interface) = made?;
    // The client posts once for each call, to the interface that it chose.
    posted.push(interface.url);
    call(&client, order, posted).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let mut posted = Vec::new();
        let done = tokio::time::timeout(PATIENCE, obey(&order, &mut posted)).await;
        let mut answer = match done.unwrap_or_else(|_| Err(A2AError::internal("time is up"))) {
            Ok(answer) => answer,
            Err(error) => json!({"error": {
                "type": format!("A2AError {}", error.code), "text": error.message,
            }}),
        };
        answer["posted"] = json!(posted);
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
