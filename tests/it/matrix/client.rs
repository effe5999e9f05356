//! Sends a request in any dialect and reads the answer in its own form.

use super::proto::{find, frames};
use super::requests::Spoken;
use crate::support::client::Client;
use crate::support::h2_client::H2Client;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use portcullis::a2a::{Binding, Dialect};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// An answer, in words that all bindings share.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A result; of a stream, its first event.
    Good(Value),
    /// An error: the HTTP status (of gRPC the status), the code or reason that the binding has,
    /// the JSON-RPC id, and the challenge.
    Bad {
        status: u16,
        reason: String,
        id: Value,
        challenge: bool,
    },
}

/// The host that leads to the agent's gRPC.
pub const GRPC_HOST: &str = "polyglot.grpc.test";
/// Where the agent is below the gateway.
pub const ROUTE: &str = "/agents/polyglot";

pub async fn send(
    gateway: SocketAddr,
    dialect: Dialect,
    token: Option<&str>,
    spoken: &Spoken,
) -> Said {
    match dialect.binding {
        Binding::JsonRpc => over_http(gateway, dialect, "/rpc", token, spoken).await,
        Binding::Rest => over_http(gateway, dialect, "/rest", token, spoken).await,
        Binding::Grpc => over_grpc(gateway, dialect, token, spoken).await,
    }
}

async fn over_http(
    gateway: SocketAddr,
    dialect: Dialect,
    interface: &str,
    token: Option<&str>,
    spoken: &Spoken,
) -> Said {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut fields = vec![("A2A-Version", dialect.version.label())];
    fields.extend(spoken.content_type.map(|c| ("Content-Type", c)));
    fields.extend(bearer.iter().map(|b| ("Authorization", b.as_str())));
    let path = format!("{ROUTE}{interface}{}", spoken.path);
    let mut client = Client::connect(gateway).await.unwrap();
    let response = client
        .request(spoken.method, &path, &fields, &spoken.body)
        .await
        .unwrap();
    let text = response.text();
    let stream = response.field("content-type") == Some("text/event-stream");
    let body: Value = match stream {
        true => serde_json::from_str(text.lines().next().unwrap().strip_prefix("data:").unwrap())
            .unwrap(),
        false if text.is_empty() => json!({}),
        false => response.json(),
    };
    let challenge = response.field("www-authenticate").is_some();
    let error = &body["error"];
    if response.status < 300 && error.is_null() {
        return Said::Good(body);
    }
    let detail = |list: &str| {
        error[list][0]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let reason = match (dialect.binding, &body["type"]) {
        (_, Value::String(kind)) => kind.clone(),
        (Binding::JsonRpc, _) if error["data"].is_array() => detail("data"),
        (Binding::JsonRpc, _) => error["code"].to_string(),
        (Binding::Rest | Binding::Grpc, _) => detail("details"),
    };
    Said::Bad {
        status: response.status,
        reason,
        id: body["id"].clone(),
        challenge,
    }
}

async fn over_grpc(
    gateway: SocketAddr,
    dialect: Dialect,
    token: Option<&str>,
    spoken: &Spoken,
) -> Said {
    let mut client = H2Client::connect(gateway).await;
    client.call_it(GRPC_HOST);
    let mut list = vec![
        ("content-type", "application/grpc".to_owned()),
        ("te", "trailers".to_owned()),
        ("a2a-version", dialect.version.label().to_owned()),
    ];
    list.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
    let response = client
        .request("POST", &spoken.path, &list, &spoken.body)
        .await
        .unwrap();
    assert_eq!(response.status, 200, "a bare HTTP status");
    let mut fields = response.fields;
    fields.extend(response.trailers.unwrap_or_default());
    let status: u16 = fields["grpc-status"].to_str().unwrap().parse().unwrap();
    if status == 0 {
        let messages = frames(&response.body);
        return Said::Good(json!({"bytes": messages.first().map_or(0, |m| m.len()),
            "task": messages.first().and_then(|m| find(m, 1)).and_then(|t| find_text(t, 1))}));
    }
    let challenge = fields.contains_key("www-authenticate");
    let details = fields["grpc-status-details-bin"].to_str().unwrap();
    let details = STANDARD
        .decode(details)
        .or_else(|_| STANDARD_NO_PAD.decode(details))
        .unwrap();
    // google.rpc.Status.details=3 -> Any.value=2 -> ErrorInfo.reason=1.
    let info = find(find(&details, 3).unwrap(), 2).unwrap();
    Said::Bad {
        status,
        reason: find_text(info, 1).unwrap(),
        id: Value::Null,
        challenge,
    }
}

/// A string field of a message whose other fields may be of any kind.
fn find_text(message: &[u8], number: u32) -> Option<String> {
    find(message, number).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
}
