//! The request of a test, sent for real.

use super::separate::Prepared;
use super::token::Credential;
use crate::a2a::skill_rules::{DataPath, Selector, Step};
use crate::a2a::{Binding, Operation, Version};
use crate::config::snapshot::{Agent, Interface};
use crate::pipeline::trial::written;
use crate::policy::Asked;
use crate::policy::trial::{Calling, is_message, names_task};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use reqwest::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// Largest reply that is read; the status is known from its header.
const MAX_REPLY: usize = 256 * 1024;
/// Longest wait for a reply, and for the first event of a stream.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Where replies of gateways name their request.
const REQUEST_ID: &str = "portcullis-request-id";

/// A request, without who sends it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// Below the gateway's origin.
    pub(super) path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// The code of a JSON-RPC error.
    pub(super) rpc_code: Option<i64>,
    pub(super) request_id: Option<String>,
}

impl Ask {
    /// The call of a test, at one of these interfaces of its agent.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub(super) fn of(
        agent: &Agent,
        interfaces: &[Interface],
        calling: &Calling,
        prepared: &Prepared,
    ) -> Result<Ask, String> {
        let Asked::Operation(operation) = calling.asked else {
            return backend(agent);
        };
        let interface = interface(agent, interfaces, calling)?;
        let written = written(agent, operation, calling);
        let body = fitted(agent, operation, calling, prepared, written.body);
        Ok(Ask {
            method: Method::POST,
            path: format!("{}{}", agent.route, interface.public_path),
            headers: written.headers,
            body,
        })
    }

    /// Sends it to a gateway. Of a stream, the first event is waited for.
    ///
    /// # Errors
    /// No reply came.
    pub(super) async fn send(
        &self,
        http: &Client,
        base: &str,
        credential: &Credential,
        proof: Option<String>,
    ) -> Result<Reply, String> {
        let scheme = if proof.is_some() { "DPoP" } else { "Bearer" };
        let mut request = http
            .request(self.method.clone(), format!("{base}{}", self.path))
            .headers(self.headers.clone())
            .header(
                header::AUTHORIZATION,
                format!("{scheme} {}", credential.token),
            )
            .body(self.body.clone());
        if let Some(proof) = proof {
            request = request.header("DPoP", proof);
        }
        let asked = tokio::time::timeout(PATIENCE, async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            let field = |name: &str| {
                let value = response.headers().get(name)?;
                Some(value.to_str().ok()?.to_owned())
            };
            let request_id = field(REQUEST_ID);
            let streams = field("content-type").is_some_and(|t| t.starts_with("text/event-stream"));
            let body = body(response, streams).await?;
            Ok::<_, reqwest::Error>(Reply {
                status,
                rpc_code: rpc_code(&body),
                request_id,
            })
        });
        match asked.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(format!("no reply came: {}", error.without_url())),
            Err(_) => Err("no reply came in time".to_owned()),
        }
    }
}

async fn body(mut response: reqwest::Response, streams: bool) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if streams || body.len() > MAX_REPLY {
            break;
        }
    }
    Ok(body)
}

fn rpc_code(body: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(body).ok()?;
    let data = text
        .strip_prefix("data:")
        .map(|rest| rest.lines().next().unwrap_or_default());
    let json: Value = serde_json::from_str(data.unwrap_or(text)).ok()?;
    json["error"]["code"].as_i64()
}

fn backend(agent: &Agent) -> Result<Ask, String> {
    let path = agent.backend_paths.first();
    let path = path.ok_or("its agent declares no path of its backend")?;
    let read = path.methods.iter().find(|method| ***method == *"GET");
    let method = read.or(path.methods.first()).map_or("GET", |method| method);
    Ok(Ask {
        method: Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?,
        path: format!("{}{}", agent.route, path.path),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    })
}

/// The interface that speaks JSON-RPC of 1.0, at the path of the skill where paths stand for them.
fn interface<'i>(
    agent: &Agent,
    interfaces: &'i [Interface],
    calling: &Calling,
) -> Result<&'i Interface, String> {
    let speaks =
        |i: &&Interface| i.binding == Binding::JsonRpc && i.versions.contains(Version::V1_0);
    let skill = calling.skill.as_deref();
    let by_path = matches!(selector(agent), Some(Selector::Path));
    let wanted = |i: &&Interface| agent.skill_of(i) == skill.filter(|_| by_path);
    let mut found = interfaces.iter().filter(speaks);
    let exact = interfaces.iter().filter(speaks).find(wanted);
    let any = exact.or_else(|| found.next().filter(|_| !by_path || skill.is_none()));
    any.ok_or_else(|| "no interface for JSON-RPC of version 1.0 is known at its agent".to_owned())
}

fn selector(agent: &Agent) -> Option<&Selector> {
    agent.skill_rules.as_ref()?.selectors().first()
}

/// The body with the ids that were prepared, and a skill that stands in data.
fn fitted(
    agent: &Agent,
    operation: Operation,
    calling: &Calling,
    prepared: &Prepared,
    body: Bytes,
) -> Bytes {
    let in_data = match (selector(agent), calling.skill.as_deref()) {
        (Some(Selector::Data(path)), Some(skill)) if calling.message.is_none() => {
            Some(data(path, skill))
        }
        _ => None,
    };
    if prepared.task.is_none() && in_data.is_none() {
        return body;
    }
    let Ok(mut envelope) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    let params = &mut envelope["params"];
    if let Some((task, context)) = &prepared.task {
        if is_message(Asked::Operation(operation)) {
            params["message"]["taskId"] = json!(task);
            if let (Some(context), Some(_)) = (context, params["message"].get("contextId")) {
                params["message"]["contextId"] = json!(context);
            }
        } else if names_task(Asked::Operation(operation)) {
            let name = if params.get("taskId").is_some() {
                "taskId"
            } else {
                "id"
            };
            params[name] = json!(task);
        }
    }
    if let (Some(data), Some(parts)) = (in_data, params["message"]["parts"].as_array_mut()) {
        parts.push(json!({ "data": data }));
    }
    envelope.to_string().into()
}

/// Data in which a path leads to a skill.
fn data(path: &DataPath, skill: &str) -> Value {
    path.steps()
        .iter()
        .rev()
        .fold(json!(skill), |inner, step| match step {
            Step::Name(name) => json!({ &**name: inner }),
            Step::Index(index) => {
                let mut items = vec![Value::Null; *index];
                items.push(inner);
                Value::Array(items)
            }
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn data_has_its_skill_where_the_path_leads() {
        for (path, expected) in [
            ("$", json!("x")),
            ("$.plan.skill", json!({ "plan": { "skill": "x" } })),
            ("$['a b'][1]", json!({ "a b": [null, "x"] })),
        ] {
            let path = DataPath::parse(path).unwrap();
            assert_eq!(data(&path, "x"), expected, "{path}");
        }
    }

    #[test]
    fn an_error_is_read_from_a_reply_and_from_an_event() {
        for (body, code) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001}}"#,
                Some(-32001),
            ),
            (
                "data: {\"id\":1,\"error\":{\"code\":-32600}}\n\n",
                Some(-32600),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
            ("no JSON", None),
        ] {
            assert_eq!(rpc_code(body.as_bytes()), code, "{body}");
        }
    }
}
