//! The official Rust client against an agent that it finds by its card.
//!
//! `client_check BASE_URL [TOKEN [EXPECTED]]` fetches the card below `BASE_URL`, sends one message
//! unary and one streaming, and reads the task back. Every answer must contain `EXPECTED` (by
//! default `hello`). Prints one line of JSON; exits 0 only when everything held.

use a2a::{GetTaskRequest, Message, Part, Role, SendMessageRequest};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use futures::StreamExt;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

type Failure = Box<dyn std::error::Error>;

fn request() -> Result<SendMessageRequest, Failure> {
    let message = Message::new(Role::User, vec![Part::text("hi")]);
    Ok(serde_json::from_value(json!({"message": message}))?)
}

async fn unary<T: Transport>(client: &A2AClient<T>) -> Result<Value, Failure> {
    Ok(serde_json::to_value(
        client.send_message(&request()?).await?,
    )?)
}

async fn streaming<T: Transport>(client: &A2AClient<T>) -> Result<Value, Failure> {
    let mut stream = client.send_streaming_message(&request()?).await?;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(serde_json::to_value(event?)?);
    }
    if events.len() < 2 {
        return Err("it came as one piece".into());
    }
    Ok(Value::Array(events))
}

/// The first task id in an answer.
fn task_of(answer: &Value) -> Option<&str> {
    let first = answer.get(0).unwrap_or(answer);
    let update = first
        .get("statusUpdate")
        .or_else(|| first.get("artifactUpdate"));
    let id = first.pointer("/task/id").or_else(|| update?.get("taskId"));
    id.and_then(Value::as_str)
}

async fn check(base: &str, token: Option<&str>, expected: &str) -> Result<Vec<String>, Failure> {
    let card = AgentCardResolver::new(None).resolve(base).await?;
    let mut factory = A2AClientFactory::builder();
    if let Some(token) = token {
        factory = factory.with_interceptor(Arc::new(AuthInterceptor::bearer(token)));
    }
    let client = factory.build().create_from_card(&card).await?;
    let mut problems = Vec::new();
    for (name, answer) in [
        ("unary", unary(&client).await),
        ("streaming", streaming(&client).await),
    ] {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                problems.push(format!("{name}: {error}"));
                continue;
            }
        };
        if !answer.to_string().contains(expected) {
            problems.push(format!("{name}: no `{expected}` in the answer"));
        }
        let Some(id) = task_of(&answer) else {
            problems.push(format!("{name}: no task in the answer"));
            continue;
        };
        let get: GetTaskRequest = serde_json::from_value(json!({"id": id}))?;
        match client.get_task(&get).await {
            Ok(task) if task.id == id => {}
            Ok(_) => problems.push(format!("{name}: another task was read back")),
            Err(error) => {
                problems.push(format!("{name}: its task could not be read back: {error}"))
            }
        }
    }
    Ok(problems)
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(base) = args.first() else {
        eprintln!("usage: client_check BASE_URL [TOKEN [EXPECTED]]");
        return ExitCode::from(2);
    };
    let token = args
        .get(1)
        .map(String::as_str)
        .filter(|token| !token.is_empty());
    let expected = args.get(2).map_or("hello", String::as_str);
    let problems = match check(base, token, expected).await {
        Ok(problems) => problems,
        Err(error) => vec![error.to_string()],
    };
    println!(
        "{}",
        json!({"ok": problems.is_empty(), "problems": problems})
    );
    ExitCode::from(u8::from(!problems.is_empty()))
}
