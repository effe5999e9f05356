//! The table of callers: what each sends, and what it must come to.

use super::world::{Bearer, World, Wrong};
use crate::cli::demo_agent::GREETING;
use serde_json::{Value, json};
use std::error::Error;

/// One caller.
pub(super) struct Row {
    /// Who it is, in words.
    pub(super) caller: &'static str,
    request: Request,
    token: Option<(Bearer, Wrong)>,
    /// The HTTP status that it must get.
    status: u16,
    /// The JSON-RPC error code that it must get in the body.
    rpc_code: Option<i64>,
    /// What the agent's counters must rise by: requests and executions.
    reached: (u64, u64),
    /// What the body must contain.
    says: &'static str,
}

#[derive(Clone, Copy)]
enum Request {
    /// A message for `review-diff`.
    Message,
    /// The same, straight to the agent.
    Bypass,
    /// A message that starts a task which waits for input; the row keeps its id.
    StartTask,
    /// Asks for the task that was started.
    GetTask,
    /// Two calls in one body.
    Batch,
    Get(&'static str),
}

const REVIEWER: Bearer = Bearer {
    subject: "alice",
    role: Some("reviewer"),
    scope: "a2a.agent",
};
const FULL: Bearer = Bearer {
    subject: "carol",
    role: Some("reviewer"),
    scope: "a2a.full",
};

pub(super) fn rows() -> Vec<Row> {
    let good = |bearer| Some((bearer, Wrong::Nothing));
    let bad = |wrong| Some((REVIEWER, wrong));
    let author = Bearer {
        role: Some("author"),
        ..REVIEWER
    };
    let no_role = Bearer {
        role: None,
        ..REVIEWER
    };
    let bob = Bearer {
        subject: "bob",
        ..REVIEWER
    };
    let passes = |caller, request, token, says| Row {
        caller,
        request,
        token,
        status: 200,
        rpc_code: None,
        reached: (1, 1),
        says,
    };
    let refused = |caller, request, token, status| Row {
        caller,
        request,
        token,
        status,
        rpc_code: None,
        reached: (0, 0),
        says: "",
    };
    vec![
        passes(
            "a valid reviewer",
            Request::Message,
            good(REVIEWER),
            GREETING,
        ),
        refused("no token", Request::Message, None, 401),
        refused(
            "wrong audience",
            Request::Message,
            bad(Wrong::Audience),
            401,
        ),
        refused("wrong role", Request::Message, good(author), 403),
        refused("no role in the token", Request::Message, good(no_role), 403),
        refused(
            "bad signature",
            Request::Message,
            bad(Wrong::Signature),
            401,
        ),
        refused("expired token", Request::Message, bad(Wrong::Expired), 401),
        Row {
            rpc_code: Some(-32600),
            ..refused("two calls in one body", Request::Batch, good(REVIEWER), 200)
        },
        refused(
            "agent grant on /config",
            Request::Get("/config"),
            good(REVIEWER),
            403,
        ),
        refused(
            "agent grant on /nodes/devices",
            Request::Get("/nodes/devices"),
            good(REVIEWER),
            403,
        ),
        refused(
            "agent grant on /a2a/status",
            Request::Get("/a2a/status"),
            good(REVIEWER),
            403,
        ),
        passes(
            "full grant on /config",
            Request::Get("/config"),
            good(FULL),
            "",
        ),
        refused(
            "full grant, undeclared path",
            Request::Get("/secrets"),
            good(FULL),
            404,
        ),
        passes(
            "alice starts a task",
            Request::StartTask,
            good(REVIEWER),
            "",
        ),
        Row {
            rpc_code: Some(-32001),
            ..refused(
                "bob asks for alice's task",
                Request::GetTask,
                good(bob),
                200,
            )
        },
        Row {
            // The agent looks the task up; nothing is executed.
            reached: (1, 0),
            ..passes("alice asks for it", Request::GetTask, good(REVIEWER), "")
        },
        passes(
            "a valid reviewer again",
            Request::Message,
            good(REVIEWER),
            GREETING,
        ),
        passes("straight to the agent (*)", Request::Bypass, None, GREETING),
    ]
}

/// What a row came to.
pub(super) struct Outcome {
    status: u16,
    rpc_code: Option<i64>,
    reached: (u64, u64),
    says: bool,
    trouble: Option<String>,
}

impl Row {
    /// Whether nothing of it may reach the agent.
    pub(super) fn is_refused(&self) -> bool {
        self.reached == (0, 0)
    }

    pub(super) async fn play(&self, world: &mut World) -> Outcome {
        let counters = world.agent.counters();
        let before = (counters.requests(), counters.executions());
        let sent = self.send(world).await;
        let counters = world.agent.counters();
        let reached = (
            counters.requests() - before.0,
            counters.executions() - before.1,
        );
        match sent {
            Ok((status, body)) => {
                let json: Option<Value> = serde_json::from_str(&body).ok();
                let json = json.unwrap_or_default();
                if let (Request::StartTask, Some(id)) =
                    (self.request, json["result"]["task"]["id"].as_str())
                {
                    world.task = Some(id.to_owned());
                }
                Outcome {
                    status,
                    rpc_code: json["error"]["code"].as_i64().filter(|_| status == 200),
                    reached,
                    says: body.contains(self.says),
                    trouble: None,
                }
            }
            Err(error) => Outcome {
                status: 0,
                rpc_code: None,
                reached,
                says: false,
                trouble: Some(error.to_string()),
            },
        }
    }

    async fn send(&self, world: &World) -> Result<(u16, String), Box<dyn Error>> {
        let route = format!("{}/agents/pr-agent", world.public());
        let rpc = format!("{route}/a2a");
        let task = world.task.as_deref().unwrap_or("none");
        let post = |url: String, body: String| {
            world
                .http
                .post(url)
                .header("Content-Type", "application/json")
                .header("A2A-Version", "1.0")
                .body(body)
        };
        let mut request = match self.request {
            Request::Message => post(rpc, message("review-diff", "please review")),
            Request::Bypass => post(
                format!("{}/a2a", world.agent.url()),
                message("review-diff", "please review"),
            ),
            Request::StartTask => post(rpc, message("review-diff", "ask me something")),
            Request::GetTask => post(rpc, call("GetTask", json!({ "id": task }))),
            Request::Batch => {
                let one = message("review-diff", "please review");
                post(rpc, format!("[{one},{one}]"))
            }
            Request::Get(path) => world.http.get(format!("{route}{path}")),
        };
        if let Some((bearer, wrong)) = self.token {
            request = request.bearer_auth(world.token(bearer, wrong)?);
        }
        let response = request.send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }
}

impl Outcome {
    pub(super) fn heading() -> &'static str {
        "caller                         HTTP   JSON-RPC   agent saw / executed\n\
         -----------------------------  -----  ---------  --------------------"
    }

    pub(super) fn line(&self, row: &Row) -> String {
        let code = self.rpc_code.map_or(String::new(), |code| code.to_string());
        let reached = format!("{} / {}", self.reached.0, self.reached.1);
        let mark = if self.is_right(row) { "" } else { "<-- WRONG" };
        let mut line = format!(
            "{:<29}  {:<5}  {code:<9}  {reached:<20} {mark}",
            row.caller, self.status
        );
        if let Some(trouble) = &self.trouble {
            line = format!("{line} {trouble}");
        }
        line.trim_end().to_owned()
    }

    pub(super) fn is_right(&self, row: &Row) -> bool {
        self.status == row.status
            && self.rpc_code == row.rpc_code
            && self.reached == row.reached
            && self.says
    }

    pub(super) fn json(&self, row: &Row) -> Value {
        json!({
            "caller": row.caller,
            "http": self.status,
            "rpc_code": self.rpc_code,
            "requests": self.reached.0,
            "executions": self.reached.1,
            "right": self.is_right(row),
        })
    }
}

/// A 1.0 message that names its skill.
pub(super) fn message(skill: &str, text: &str) -> String {
    call(
        "SendMessage",
        json!({ "message": {
            "messageId": "demo-1",
            "role": "ROLE_USER",
            "parts": [{ "text": text }],
            "metadata": { "skillId": skill },
        }}),
    )
}

fn call(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}
