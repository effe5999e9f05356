//! Questions over HTTP/1.1: the card, JSON-RPC, HTTP+JSON.

use super::Outcome;
use super::tls::{Broken, Seen, broken, config};
use crate::a2a::Version;
use crate::adapters::fetch::plain_mannered;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use std::time::Duration;

/// Largest answer that is read.
const MAX_ANSWER: usize = 256 * 1024;
/// A firewall that drops what it does not like is silent.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A client that goes straight there, follows nothing and repeats nothing.
pub(super) fn client(seen: &Seen) -> Result<Client, String> {
    let tls = config(seen).map_err(|error| error.to_string())?;
    plain_mannered(Some(tls), CONNECT_TIMEOUT, None)
        .user_agent("portcullis-probe")
        .build()
        .map_err(|error| error.to_string())
}

/// Fetches a card.
pub(super) async fn card(client: &Client, url: &Url) -> (Outcome, Option<Value>) {
    let (status, body) = match answer(client.get(url.clone())).await {
        Ok(answer) => answer,
        Err(outcome) => return (outcome, None),
    };
    let card = body.filter(|b| status == 200 && b["name"].is_string());
    match (refusal(status), card) {
        (_, Some(card)) => (Outcome::Answered("a public card".to_owned()), Some(card)),
        (Some(refused), None) => (refused, None),
        (None, None) => (Outcome::Unclear(format!("no card, status {status}")), None),
    }
}

/// Asks for a task that is not there.
pub(super) async fn json_rpc(client: &Client, url: &Url, version: Version, id: &str) -> Outcome {
    let method = match version {
        Version::V1_0 => "GetTask",
        Version::V0_3 => "tasks/get",
    };
    let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"id": id}});
    let request = client.request(Method::POST, url.clone());
    let request = versioned(request, version)
        .header(CONTENT_TYPE, "application/json")
        .body(call.to_string());
    let (status, body) = match answer(request).await {
        Ok(answer) => answer,
        Err(outcome) => return outcome,
    };
    if let Some(refused) = refusal(status) {
        return refused;
    }
    let body = body.unwrap_or_default();
    if body["jsonrpc"] != "2.0" {
        return Outcome::Unclear(format!("no JSON-RPC, status {status}"));
    }
    Outcome::Answered(match body["error"]["code"].as_i64() {
        // Also that it knows no such method: it read the call.
        Some(code) => format!("JSON-RPC error {code}, status {status}"),
        None => format!("status {status}"),
    })
}

/// Asks for a task that is not there.
pub(super) async fn rest(client: &Client, url: &Url, version: Version, id: &str) -> Outcome {
    let base = url.path().trim_end_matches('/');
    let below = match version {
        Version::V1_0 => "tasks",
        Version::V0_3 => "v1/tasks",
    };
    let mut at = url.clone();
    at.set_path(&format!("{base}/{below}/{id}"));
    let request = versioned(client.get(at), version);
    let (status, body) = match answer(request).await {
        Ok(answer) => answer,
        Err(outcome) => return outcome,
    };
    if let Some(refused) = refusal(status) {
        return refused;
    }
    let text = body.map(|b| b.to_string()).unwrap_or_default();
    // A2A 1.0 section 11.6 and what SDKs of 0.3 say; a 404 of any other server has neither.
    let of_a2a = ["TASK_NOT_FOUND", "TaskNotFound", "-32001", "Task not found"];
    if of_a2a.iter().any(|mark| text.contains(mark)) {
        Outcome::Answered(format!("there is no such task, status {status}"))
    } else {
        Outcome::Unclear(format!("nothing of A2A, status {status}"))
    }
}

fn versioned(request: RequestBuilder, version: Version) -> RequestBuilder {
    match version {
        Version::V1_0 => request.header("A2A-Version", "1.0"),
        Version::V0_3 => request,
    }
}

/// A status by which a server keeps strangers out.
pub(super) fn refusal(status: u16) -> Option<Outcome> {
    matches!(status, 401 | 403 | 407 | 495 | 496)
        .then(|| Outcome::Refused(format!("status {status}")))
}

/// Status and, where it is JSON of a bounded size, body.
async fn answer(request: RequestBuilder) -> Result<(u16, Option<Value>), Outcome> {
    let sent = request
        .header(ACCEPT, "application/json")
        .header("Portcullis-Purpose", "probe")
        .send()
        .await;
    let mut response = sent.map_err(|error| failed(&error))?;
    let status = response.status().as_u16();
    let body = body(&mut response).await;
    Ok((status, serde_json::from_slice(&body).ok()))
}

async fn body(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Vec::new();
        }
        body.extend_from_slice(&chunk);
    }
    body
}

fn failed(error: &reqwest::Error) -> Outcome {
    match broken(error) {
        Broken::Refused(why) => Outcome::Refused(why),
        Broken::NoTls(why) => Outcome::Unclear(why),
        Broken::Closed => Outcome::Refused("it closes the connection without an answer".to_owned()),
        Broken::Other if error.is_connect() || error.is_timeout() => {
            Outcome::Unreachable("no connection".to_owned())
        }
        Broken::Other => Outcome::Unclear("no HTTP".to_owned()),
    }
}
