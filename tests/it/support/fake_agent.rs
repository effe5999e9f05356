//! The honest agent of `portcullis demo`, keeping what it receives.

use super::loopback;
use portcullis::cli::demo_agent::{CardShape, DemoAgent, Options};

/// Starts it with the default card; every request is kept.
pub async fn start() -> DemoAgent {
    start_with(CardShape::Hybrid).await
}

/// Starts it with a card of this shape; every request is kept.
pub async fn start_with(card: CardShape) -> DemoAgent {
    let options = Options {
        card,
        keep_requests: true,
        ..Options::default()
    };
    DemoAgent::start_with(loopback(), options).await.unwrap()
}

/// A JSON-RPC request of 1.0 (`SendMessage`, …) or 0.3 (`message/send`, …) with one text part.
pub fn message(method: &str, text: &str, ids: &[(&str, &str)]) -> String {
    let legacy = method.contains('/');
    let mut message = serde_json::json!({
        "messageId": "m-1",
        "role": if legacy { "user" } else { "ROLE_USER" },
        "parts": [if legacy {
            serde_json::json!({"kind": "text", "text": text})
        } else {
            serde_json::json!({"text": text})
        }],
    });
    if legacy {
        message["kind"] = "message".into();
    }
    for (name, id) in ids {
        message[*name] = (*id).into();
    }
    call(method, serde_json::json!({"message": message}))
}

/// A JSON-RPC request with id 1.
pub fn call(method: &str, params: serde_json::Value) -> String {
    serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The header that calls of this method need.
pub fn version_of(method: &str) -> &'static [(&'static str, &'static str)] {
    if method.contains('/') {
        &[]
    } else {
        &[("A2A-Version", "1.0")]
    }
}
