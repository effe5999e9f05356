//! The program as operators run it: killed, stopped, reloaded, without space, and searched for
//! what it must not say.

mod chaos;
mod evidence;
mod full_disk;
mod killed;
mod ordered;
mod read_only;
mod reloaded;
mod secrets;
mod stopped;

use crate::support::loopback;
use crate::support::raw_agent::json_answer;
use portcullis::cli::demo_agent::{DemoAgent, Options};
use serde_json::json;

/// An honest agent that has just the skill of the gateway file, so that nothing is left to say in
/// readiness; every request is kept.
async fn hello_agent() -> DemoAgent {
    let options = Options {
        skills: vec!["hello".to_owned()],
        keep_requests: true,
        ..Options::default()
    };
    DemoAgent::start_with(loopback(), options).await.unwrap()
}

/// The answer with the card of an agent on a raw socket, with the same skill.
fn card(port: u16) -> Vec<u8> {
    let card = json!({
        "name": "raw", "description": "raw", "version": "1",
        "supportedInterfaces": [{
            "url": format!("http://127.0.0.1:{port}/a2a"),
            "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "skills": [{"id": "hello", "name": "hello", "description": "greets", "tags": ["x"]}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    });
    json_answer(200, &card.to_string())
}
