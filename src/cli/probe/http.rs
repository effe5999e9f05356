//! Questions over HTTP: the card, JSON-RPC, HTTP+JSON. Nobody says which version an agent speaks, so
//! both are asked in: in TLS what it agrees on, in plaintext one after the other.

use super::tls::{Broken, Seen, broken, config};
use super::{ONE, Outcome};
use crate::a2a::Version;
use crate::adapters::fetch::agent::{Answer, Bounds, Place, Unanswered, ask};
use crate::pipeline::cards::{BackendHttp, Speaks};
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Builder;
use reqwest::Url;
use rustls::ClientConfig;
use serde_json::{Value, json};
use std::time::Duration;

/// Largest answer that is read.
const MAX_ANSWER: usize = 256 * 1024;
/// A firewall that drops what it does not like is silent.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

const BOUNDS: Bounds = Bounds {
    connect: CONNECT_TIMEOUT,
    total: ONE,
};

/// Goes straight there and follows nothing.
pub(super) struct Client {
    tls: ClientConfig,
}

/// A client whose distrust is noted in `seen`.
pub(super) fn client(seen: &Seen) -> Result<Client, String> {
    let tls = config(seen).map_err(|error| error.to_string())?;
    Ok(Client { tls })
}

/// Fetches a card.
pub(super) async fn card(client: &Client, url: &Url) -> (Outcome, Option<Value>) {
    let request = Request::get(url.path());
    let (status, body) = match client.answer(url, request, Bytes::new()).await {
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
    let request = versioned(Request::post(url.path()), version);
    let request = request.header(CONTENT_TYPE, "application/json");
    let (status, body) = match client.answer(url, request, call.to_string().into()).await {
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
    let request = versioned(Request::get(format!("{base}/{below}/{id}")), version);
    let (status, body) = match client.answer(url, request, Bytes::new()).await {
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

fn versioned(request: Builder, version: Version) -> Builder {
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

impl Client {
    /// Status and, where it is JSON of a bounded size, body.
    async fn answer(
        &self,
        url: &Url,
        request: Builder,
        body: Bytes,
    ) -> Result<(u16, Option<Value>), Outcome> {
        let request = request
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "portcullis-probe")
            .header("Portcullis-Purpose", "probe")
            .body(body);
        let (Ok(request), Some(host), Some(port)) =
            (request, url.host_str(), url.port_or_known_default())
        else {
            return Err(Outcome::Unreachable("no address".to_owned()));
        };
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = host.trim_matches(['[', ']']);
        let secure = url.scheme() == "https";
        let place = |speaks| Place {
            authority: &authority,
            host,
            port,
            tls: secure.then_some((host, &self.tls)),
            speaks,
        };
        let first = if secure { Speaks::Agreed } else { Speaks::H1 };
        let why = match ask(&place(first), request.clone(), &BOUNDS).await {
            Ok(answer) => return Ok(read(answer).await),
            Err(why) if secure || !may_speak_another(&why) => return Err(failed(why)),
            Err(why) => why,
        };
        match ask(&place(Speaks::H2), request, &BOUNDS).await {
            Ok(answer) => Ok(read(answer).await),
            // It knows neither, and its word in the first is the plainer one.
            Err(again) if may_speak_another(&again) => Err(failed(why)),
            Err(again) => Err(failed(again)),
        }
    }
}

async fn read(answer: Answer) -> (u16, Option<Value>) {
    let status = answer.status.as_u16();
    let body = answer.body(MAX_ANSWER).await.unwrap_or_default();
    (status, serde_json::from_slice(&body).ok())
}

fn may_speak_another(why: &Unanswered) -> bool {
    match why {
        Unanswered::OtherHttp(_) | Unanswered::Closed(_) | Unanswered::Broken(_) => true,
        Unanswered::Unreachable(_)
        | Unanswered::Tls(_)
        | Unanswered::TimedOut { .. }
        | Unanswered::TooLarge => false,
    }
}

fn failed(why: Unanswered) -> Outcome {
    let closed = || Outcome::Refused("it closes the connection without an answer".to_owned());
    let other = match &why {
        Unanswered::Unreachable(_)
        | Unanswered::Tls(_)
        | Unanswered::TimedOut { connected: false } => {
            Outcome::Unreachable("no connection".to_owned())
        }
        Unanswered::TimedOut { connected: true } => {
            Outcome::Unclear("no answer in time".to_owned())
        }
        Unanswered::OtherHttp(asked) => Outcome::Unclear(match asked {
            BackendHttp::H1 => "no HTTP/1.1".to_owned(),
            BackendHttp::H2 => "no HTTP/2".to_owned(),
        }),
        Unanswered::Closed(_) => closed(),
        Unanswered::Broken(_) | Unanswered::TooLarge => Outcome::Unclear("no HTTP".to_owned()),
    };
    let (Unanswered::Unreachable(error) | Unanswered::Tls(error) | Unanswered::Broken(error)) =
        &why
    else {
        return other;
    };
    match broken(&**error) {
        Broken::Refused(why) => Outcome::Refused(why),
        Broken::NoTls(why) => Outcome::Unclear(why),
        Broken::Closed => closed(),
        Broken::Other => other,
    }
}
