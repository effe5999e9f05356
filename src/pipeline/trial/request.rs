//! Calls written as requests, clear ones and others, and read by the reader of live requests.

use crate::a2a::skill_rules::Selector;
use crate::a2a::strict_json::Value as Json;
use crate::a2a::{Binding, Malformed, Operation, ReadRules, Reading, Request, Versions, parse};
use crate::config::snapshot::{Agent, Tenant};
use crate::policy::trial::{Calling, is_message};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

/// The task that calls name.
const TASK: &str = "task-1";

/// The bytes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Reads a request as the gateway would at a JSON-RPC interface of the agent.
///
/// # Errors
/// It is not one clear call.
pub fn read(agent: &Agent, written: &Written) -> Result<Reading, Malformed> {
    let rules = ReadRules {
        versions: Versions {
            v0_3: agent.tenant == Tenant::None,
            v1_0: true,
        },
        skills: agent.skill_rules.clone(),
        stamp: agent.stamp,
        tenants: agent.tenant != Tenant::None,
    };
    let request = Request {
        method: &Method::POST,
        path: "",
        query: None,
        headers: &written.headers,
        body: &written.body,
    };
    parse(Binding::JsonRpc, &request, &rules)
}

/// Writes a call in JSON-RPC, A2A 1.0, as a client would. A skill stands where the agent's first
/// selector looks for it.
pub fn written(agent: &Agent, operation: Operation, calling: &Calling) -> Written {
    let (headers, params) = parts(agent, operation, calling);
    let body = envelope(operation, params).to_string().into();
    Written { headers, body }
}

/// The same, so that two readers could read two calls in it; each with what was done. None of them
/// may be read as one.
pub fn ambiguous(
    agent: &Agent,
    operation: Operation,
    calling: &Calling,
) -> Vec<(&'static str, Written)> {
    let (headers, params) = parts(agent, operation, calling);
    let whole = envelope(operation, params.clone());
    let mut all = Vec::new();
    let mut add = |how, body: String| {
        let headers = headers.clone();
        let body = body.into();
        all.push((how, Written { headers, body }));
    };
    add("two calls in one body", format!("[{whole},{whole}]"));
    let mut doubled = whole.clone();
    push(&mut doubled, "method", text("GetTask"));
    add("`method` twice", doubled.to_string());
    let mut cased = whole;
    push(&mut cased, "Method", text("GetTask"));
    add("`Method` beside `method`", cased.to_string());
    let members = params.as_object().unwrap_or_default();
    let twice = |name: &str, value: Json| {
        let mut params = params.clone();
        push(&mut params, name, value);
        envelope(operation, params).to_string()
    };
    if let Some((name, value)) = members.first() {
        add("a parameter twice", twice(name, value.clone()));
        add(
            "a parameter in another case",
            twice(&name.to_uppercase(), value.clone()),
        );
    }
    // Where the skill stands: a reader that takes the other one runs what nobody judged.
    let skills = [Place::Message, Place::Request];
    for (name, value) in skills
        .into_iter()
        .filter_map(|place| place.skill(agent, &params))
    {
        let other = agent.skills.iter().find(|skill| ***skill != *value);
        let other = other.map_or("another", |skill| &**skill);
        let again = |key: &str| {
            let mut params = params.clone();
            for place in skills {
                if let Some(metadata) = place.metadata(&mut params)
                    && metadata.get(&name).is_some()
                {
                    push(metadata, key, text(other));
                }
            }
            envelope(operation, params).to_string()
        };
        add("the skill twice", again(&name));
        add("the skill in another case", again(&name.to_uppercase()));
    }
    all
}

/// Where metadata stands.
#[derive(Clone, Copy)]
enum Place {
    Message,
    Request,
}

impl Place {
    fn metadata(self, params: &mut Json) -> Option<&mut Json> {
        let of = |object: &'_ mut Json, name: &str| match object {
            Json::Object(members) => members.iter().position(|(n, _)| **n == *name),
            _ => None,
        };
        let within = match self {
            Place::Request => params,
            Place::Message => {
                let at = of(params, "message")?;
                let Json::Object(members) = params else {
                    return None;
                };
                &mut members.get_mut(at)?.1
            }
        };
        let at = of(within, "metadata")?;
        let Json::Object(members) = within else {
            return None;
        };
        Some(&mut members.get_mut(at)?.1)
    }

    /// The selector of the agent that stands here, and the skill that it names.
    fn skill(self, agent: &Agent, params: &Json) -> Option<(String, String)> {
        let metadata = match self {
            Place::Request => params.get("metadata")?,
            Place::Message => params.get("message")?.get("metadata")?,
        };
        let mut selectors = agent.skill_rules.as_ref()?.selectors().iter();
        let found = selectors.find_map(|selector| match (self, selector) {
            (Place::Message, Selector::Metadata(key))
            | (Place::Request, Selector::RequestMetadata(key)) => metadata
                .get(key)
                .and_then(Json::as_str)
                .map(|skill| (key, skill)),
            (Place::Message | Place::Request, _) => None,
        })?;
        Some((found.0.to_string(), found.1.to_owned()))
    }
}

fn push(object: &mut Json, name: &str, value: Json) {
    if let Json::Object(members) = object {
        members.push((name.into(), value));
    }
}

fn envelope(operation: Operation, params: Json) -> Json {
    object([
        ("jsonrpc", text("2.0")),
        ("id", Json::Number("1".into())),
        ("method", text(operation.name())),
        ("params", params),
    ])
}

/// The header fields and the parameters of a call.
fn parts(agent: &Agent, operation: Operation, calling: &Calling) -> (HeaderMap, Json) {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    let mut params = params(operation);
    if is_message(calling.asked) {
        let message = calling.message.clone();
        let mut message = message.unwrap_or_else(|| Json::Object(Vec::new()));
        put(&mut message, "messageId", text("message-1"));
        put(&mut message, "role", text("ROLE_USER"));
        let part = object([("text", text("test"))]);
        put(&mut message, "parts", Json::Array(vec![part]));
        if let Some(skill) = calling.skill.as_deref() {
            match place(agent) {
                Some(Selector::Metadata(key)) => within(&mut message, key, skill),
                Some(Selector::RequestMetadata(key)) => within(&mut params, key, skill),
                Some(Selector::Header(name)) => {
                    if let Ok(value) = HeaderValue::from_str(skill) {
                        headers.insert(name.clone(), value);
                    }
                }
                Some(Selector::Data(_) | Selector::Path) | None => {}
            }
        }
        put(&mut params, "message", message);
    }
    (headers, params)
}

/// The selector by which a test names its skill.
pub(super) fn place(agent: &Agent) -> Option<&Selector> {
    let mut selectors = agent.skill_rules.as_ref()?.selectors().iter();
    selectors.next()
}

/// Whether a call to the agent can name a skill that the agent does not have.
pub fn names_any_skill(agent: &Agent) -> bool {
    match place(agent) {
        Some(Selector::Metadata(_) | Selector::RequestMetadata(_) | Selector::Header(_)) => true,
        Some(Selector::Data(_) | Selector::Path) | None => false,
    }
}

fn params(operation: Operation) -> Json {
    let task = || ("id", text(TASK));
    let of_task = || ("taskId", text(TASK));
    let config = || ("id", text("push-1"));
    match operation {
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::ListTasks
        | Operation::GetExtendedAgentCard => object([]),
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => object([task()]),
        Operation::CreateTaskPushNotificationConfig => {
            object([of_task(), ("url", text("https://webhook.invalid/"))])
        }
        Operation::ListTaskPushNotificationConfigs => object([of_task()]),
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            object([of_task(), config()])
        }
    }
}

fn text(text: &str) -> Json {
    Json::String(text.into())
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    let members = members.map(|(name, value)| (Box::from(name), value));
    Json::Object(members.into())
}

/// Adds a member that is not there.
fn put(object: &mut Json, name: &str, value: Json) {
    if let Json::Object(members) = object
        && !members.iter().any(|(known, _)| **known == *name)
    {
        members.push((name.into(), value));
    }
}

/// Names a skill in the metadata of a message or request.
fn within(object: &mut Json, key: &str, skill: &str) {
    put(object, "metadata", Json::Object(Vec::new()));
    if let Json::Object(members) = object {
        let metadata = members.iter_mut().find(|(name, _)| &**name == "metadata");
        if let Some((_, metadata)) = metadata {
            put(metadata, key, text(skill));
        }
    }
}
