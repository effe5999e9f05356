//! What the agent does with a call.

use super::http::Request;
use super::push::Configs;
use super::shapes::{self, State, TaskView};
use crate::a2a::Version;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// An answer to a call.
pub(super) enum Answer {
    Whole(Value),
    Stream(Events),
}

/// JSON-RPC code and text.
type Fault = (i64, &'static str);

const TASK_NOT_FOUND: Fault = (-32001, "task not found");
const NOT_CANCELABLE: Fault = (-32002, "task cannot be canceled");
const UNSUPPORTED: Fault = (-32004, "the task has ended");
const VERSION: Fault = (-32009, "the A2A-Version header must say 1.0");
const PARSE: Fault = (-32700, "not JSON");
const INVALID: Fault = (-32600, "not a request");
const METHOD: Fault = (-32601, "no such method");
const PARAMS: Fault = (-32602, "parameters");

enum Method {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    Card,
    Push(Push),
}

#[derive(Clone, Copy)]
enum Push {
    Set,
    Get,
    List,
    Delete,
}

pub(super) struct Service {
    card: Vec<u8>,
    extended: bool,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    by_id: HashMap<String, watch::Sender<TaskView>>,
    /// Ids in the order in which they were made.
    order: Vec<String>,
    made: u64,
    push: Configs,
}

impl Service {
    pub(super) fn new(options: &super::Options, address: SocketAddr) -> Service {
        Service {
            card: shapes::card(options, address).to_string().into_bytes(),
            extended: options.extended_card,
            tasks: Mutex::default(),
        }
    }

    pub(super) fn card(&self) -> &[u8] {
        &self.card
    }

    /// Answers a JSON-RPC request; runs `executed` when a message is acted on.
    pub(super) fn call(&self, request: &Request, executed: impl Fn()) -> Answer {
        let Ok(envelope) = serde_json::from_slice::<Value>(&request.body) else {
            return Answer::Whole(failed(&Value::Null, PARSE));
        };
        let id = envelope.get("id").cloned().unwrap_or(Value::Null);
        match self.dispatch(&id, &envelope, request, executed) {
            Ok(answer) => answer,
            Err(fault) => Answer::Whole(failed(&id, fault)),
        }
    }

    fn dispatch(
        &self,
        id: &Value,
        envelope: &Value,
        request: &Request,
        executed: impl Fn(),
    ) -> Result<Answer, Fault> {
        let method = envelope.get("method").and_then(Value::as_str);
        let (version, method) = match method.ok_or(INVALID)? {
            "SendMessage" => (Version::V1_0, Method::Send),
            "SendStreamingMessage" => (Version::V1_0, Method::Stream),
            "GetTask" => (Version::V1_0, Method::Get),
            "ListTasks" => (Version::V1_0, Method::List),
            "CancelTask" => (Version::V1_0, Method::Cancel),
            "SubscribeToTask" => (Version::V1_0, Method::Subscribe),
            "CreateTaskPushNotificationConfig" => (Version::V1_0, Method::Push(Push::Set)),
            "GetTaskPushNotificationConfig" => (Version::V1_0, Method::Push(Push::Get)),
            "ListTaskPushNotificationConfigs" => (Version::V1_0, Method::Push(Push::List)),
            "DeleteTaskPushNotificationConfig" => (Version::V1_0, Method::Push(Push::Delete)),
            "GetExtendedAgentCard" if self.extended => (Version::V1_0, Method::Card),
            "message/send" => (Version::V0_3, Method::Send),
            "message/stream" => (Version::V0_3, Method::Stream),
            "tasks/get" => (Version::V0_3, Method::Get),
            "tasks/cancel" => (Version::V0_3, Method::Cancel),
            "tasks/resubscribe" => (Version::V0_3, Method::Subscribe),
            "tasks/pushNotificationConfig/set" => (Version::V0_3, Method::Push(Push::Set)),
            "tasks/pushNotificationConfig/get" => (Version::V0_3, Method::Push(Push::Get)),
            "tasks/pushNotificationConfig/list" => (Version::V0_3, Method::Push(Push::List)),
            "tasks/pushNotificationConfig/delete" => (Version::V0_3, Method::Push(Push::Delete)),
            _ => return Err(METHOD),
        };
        // Strict on purpose: a gateway that loses the header must be seen.
        if version == Version::V1_0 && request.field("a2a-version") != Some("1.0") {
            return Err(VERSION);
        }
        let params = envelope.get("params").ok_or(PARAMS)?;
        let whole = |result: Value| Answer::Whole(succeeded(id, result));
        match method {
            Method::Send | Method::Stream => {
                let done = self.message(version, params)?;
                executed();
                if let Done::Task(task) = &done {
                    self.attach(version, params, &task.borrow().id);
                }
                Ok(match (method, done) {
                    (Method::Stream, Done::Bare(message)) => {
                        Answer::Stream(Events::of(id, version, vec![message], None))
                    }
                    (Method::Stream, Done::Task(task)) => {
                        Answer::Stream(Events::sent(id, version, task))
                    }
                    (_, Done::Bare(message)) => whole(message),
                    (_, Done::Task(task)) => whole(shapes::wrapped_task(version, &task.borrow())),
                })
            }
            Method::Get => {
                let task = self.task(params)?;
                let view = task.borrow();
                Ok(whole(shapes::task(version, &view)))
            }
            Method::List => Ok(whole(self.list(params)?)),
            Method::Push(push) => Ok(whole(self.push(version, push, params)?)),
            Method::Card => {
                let card = serde_json::from_slice(&self.card).unwrap_or_default();
                Ok(whole(card))
            }
            Method::Cancel => {
                let task = self.cancel(params)?;
                let view = task.borrow();
                Ok(whole(shapes::task(version, &view)))
            }
            Method::Subscribe => {
                let mut task = self.task(params)?;
                let view = task.borrow_and_update().clone();
                if view.state.is_terminal() {
                    return Err(UNSUPPORTED);
                }
                let first = vec![shapes::wrapped_task(version, &view)];
                Ok(Answer::Stream(Events::of(id, version, first, Some(task))))
            }
        }
    }

    /// Starts or continues a task.
    fn message(&self, version: Version, params: &Value) -> Result<Done, Fault> {
        let message = params.get("message").ok_or(PARAMS)?;
        let parts = message.get("parts").and_then(Value::as_array);
        let text = parts
            .ok_or(PARAMS)?
            .iter()
            .find_map(|part| part.get("text")?.as_str())
            .unwrap_or_default();
        let state = match text.split_whitespace().next() {
            Some("ask") => State::InputRequired,
            Some("wait") => State::Working,
            Some("fail") => State::Failed,
            _ => State::Completed,
        };
        let context = message.get("contextId").and_then(Value::as_str);
        let mut tasks = self.lock();
        if let Some(id) = message.get("taskId").and_then(Value::as_str) {
            let task = tasks.by_id.get(id).ok_or(TASK_NOT_FOUND)?;
            let known = task.borrow().clone();
            if context.is_some_and(|context| context != known.context) {
                return Err(PARAMS);
            }
            if known.state.is_terminal() {
                return Err(UNSUPPORTED);
            }
            task.send_modify(|task| {
                task.state = state;
                task.turns += 1;
            });
            return Ok(Done::Task(task.subscribe()));
        }
        tasks.made += 1;
        let number = tasks.made;
        let context = context.map_or_else(|| format!("context-{number}"), str::to_owned);
        if text.starts_with("message") {
            let id = format!("reply-{number}");
            return Ok(Done::Bare(shapes::message(version, &id, &context)));
        }
        let (task, seen) = watch::channel(TaskView {
            id: format!("task-{number}"),
            context,
            state,
            turns: 1,
        });
        tasks.order.push(format!("task-{number}"));
        tasks.by_id.insert(format!("task-{number}"), task);
        Ok(Done::Task(seen))
    }

    /// Everybody's tasks, newest first.
    fn list(&self, params: &Value) -> Result<Value, Fault> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        let context = text("contextId");
        let size = params.get("pageSize").map_or(Some(50), Value::as_u64);
        let size = size.filter(|size| (1..=100).contains(size)).ok_or(PARAMS)?;
        let begin = match text("pageToken") {
            "" => 0,
            token => token.parse::<usize>().map_err(|_| PARAMS)?,
        };
        let tasks = self.lock();
        let all: Vec<Value> = tasks
            .order
            .iter()
            .rev()
            .filter_map(|id| Some(tasks.by_id.get(id)?.borrow().clone()))
            .filter(|task| context.is_empty() || task.context == context)
            .map(|task| shapes::task(Version::V1_0, &task))
            .collect();
        let end = begin.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        let page: Vec<&Value> = all.iter().skip(begin).take(end - begin).collect();
        let next = if end < all.len() {
            end.to_string()
        } else {
            String::new()
        };
        Ok(json!({
            "tasks": page, "nextPageToken": next, "pageSize": size, "totalSize": all.len(),
        }))
    }

    /// Keeps the push configuration of a message, if it has one.
    fn attach(&self, version: Version, params: &Value, task: &str) {
        let name = match version {
            Version::V1_0 => "taskPushNotificationConfig",
            Version::V0_3 => "pushNotificationConfig",
        };
        let config = params.get("configuration").and_then(|c| c.get(name));
        if let Some(config) = config.filter(|config| config.is_object()) {
            self.lock().push.set(version, task, config);
        }
    }

    fn push(&self, version: Version, method: Push, params: &Value) -> Result<Value, Fault> {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let (task, id) = match (version, method) {
            (Version::V1_0, _) => (text("taskId"), text("id")),
            (Version::V0_3, Push::Set) => (text("taskId"), None),
            (Version::V0_3, _) => (text("id"), text("pushNotificationConfigId")),
        };
        let task = task.ok_or(PARAMS)?;
        let mut tasks = self.lock();
        if !tasks.by_id.contains_key(task) {
            return Err(TASK_NOT_FOUND);
        }
        let configs = &mut tasks.push;
        match method {
            Push::Set => {
                let config = match version {
                    Version::V1_0 => params,
                    Version::V0_3 => params.get("pushNotificationConfig").ok_or(PARAMS)?,
                };
                Ok(configs.set(version, task, config))
            }
            Push::List => Ok(configs.list(version, task)),
            Push::Delete => {
                configs.remove(task, id.ok_or(PARAMS)?);
                Ok(Value::Null)
            }
            Push::Get => configs.get(version, task, id).ok_or(TASK_NOT_FOUND),
        }
    }

    fn task(&self, params: &Value) -> Result<watch::Receiver<TaskView>, Fault> {
        let id = params.get("id").and_then(Value::as_str).ok_or(PARAMS)?;
        let tasks = self.lock();
        let task = tasks.by_id.get(id).ok_or(TASK_NOT_FOUND)?;
        Ok(task.subscribe())
    }

    fn cancel(&self, params: &Value) -> Result<watch::Receiver<TaskView>, Fault> {
        let id = params.get("id").and_then(Value::as_str).ok_or(PARAMS)?;
        let tasks = self.lock();
        let task = tasks.by_id.get(id).ok_or(TASK_NOT_FOUND)?;
        let canceled = task.send_if_modified(|task| {
            let open = !task.state.is_terminal();
            if open {
                task.state = State::Canceled;
            }
            open
        });
        if canceled {
            Ok(task.subscribe())
        } else {
            Err(NOT_CANCELABLE)
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Done {
    Bare(Value),
    Task(watch::Receiver<TaskView>),
}

/// The events of one stream: those known now, then one per change of the task.
pub(super) struct Events {
    id: Value,
    version: Version,
    ready: VecDeque<Value>,
    follow: Option<watch::Receiver<TaskView>>,
}

impl Events {
    fn of(
        id: &Value,
        version: Version,
        ready: Vec<Value>,
        follow: Option<watch::Receiver<TaskView>>,
    ) -> Events {
        Events {
            id: id.clone(),
            version,
            ready: ready.into(),
            follow,
        }
    }

    /// The task, that it is at work, then what became of it.
    fn sent(id: &Value, version: Version, mut task: watch::Receiver<TaskView>) -> Events {
        let now = task.borrow_and_update().clone();
        let working = TaskView {
            state: State::Working,
            ..now.clone()
        };
        let ready = vec![
            shapes::wrapped_task(version, &working),
            shapes::status_update(version, &working),
        ];
        let mut events = Events::of(id, version, ready, Some(task));
        if now.state != State::Working {
            events.became(&now);
        }
        events
    }

    fn became(&mut self, task: &TaskView) {
        if task.state == State::Completed {
            self.ready
                .push_back(shapes::artifact_update(self.version, task));
        }
        self.ready
            .push_back(shapes::status_update(self.version, task));
        // As the official SDKs do, a stream ends where the agent stops working.
        if task.state != State::Working {
            self.follow = None;
        }
    }

    /// The next event in its JSON-RPC envelope, `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        while self.ready.is_empty() {
            let task = self.follow.as_mut()?;
            task.changed().await.ok()?;
            let now = task.borrow_and_update().clone();
            self.became(&now);
        }
        let event = self.ready.pop_front()?;
        Some(succeeded(&self.id, event))
    }
}

fn succeeded(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn failed(id: &Value, (code, message): Fault) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
