//! A gateway that runs already, with tokens that somebody else makes.

use super::send::PATIENCE;
use super::token::{Credential, is_bound};
use crate::a2a::{Binding, Versions};
use crate::config::snapshot::Snapshot;
use crate::config::snapshot::{Agent, Interface, Interfaces};
use crate::identity::issuer::Grant;
use crate::policy::trial::Trial;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Longest token, with what may stand around it.
const MAX_TOKEN: u64 = 64 * 1024;
/// Largest card.
const MAX_CARD: usize = 1 << 20;

/// A gateway that runs already.
pub(super) struct Running {
    pub(super) base: String,
    command: String,
    pub(super) snapshot: Arc<Snapshot>,
    /// By position of their agents.
    interfaces: Vec<Arc<[Interface]>>,
}

impl Running {
    pub(super) async fn open(
        http: &Client,
        url: &str,
        command: &str,
        snapshot: Snapshot,
    ) -> Result<Running, String> {
        let parsed = Url::parse(url).ok();
        let good = |u: &Url| matches!(u.scheme(), "http" | "https") && u.path() == "/";
        let base = match parsed.filter(good) {
            Some(url) => url.origin().ascii_serialization(),
            None => return Err(format!("`{url}` is not the origin of a gateway")),
        };
        let mut interfaces = Vec::new();
        for agent in &snapshot.agents {
            interfaces.push(match &agent.interfaces {
                Interfaces::Listed(listed) => listed.as_slice().into(),
                Interfaces::Auto => published(http, &base, agent).await.into(),
            });
        }
        Ok(Running {
            base,
            command: command.to_owned(),
            snapshot: Arc::new(snapshot),
            interfaces,
        })
    }

    pub(super) fn interfaces(&self, agent: usize) -> Arc<[Interface]> {
        let known = self.interfaces.get(agent);
        known.cloned().unwrap_or_else(|| Arc::from([]))
    }

    /// A token from the command, which learns of the caller on its standard input.
    ///
    /// # Errors
    /// Why there is none; never what the command printed.
    pub(super) async fn credential(&self, trial: &Trial) -> Result<Credential, String> {
        if trial.caller.payload.get("cnf").is_some() {
            return Err(match is_bound(&trial.caller.payload) {
                true => "its token is bound to a key that is not here".to_owned(),
                false => "its token is bound to a client certificate that is not here".to_owned(),
            });
        }
        let issuer = self.snapshot.issuers.get(trial.caller.issuer);
        let issuer = issuer.map_or("", |issuer| &issuer.name);
        let grant = match trial.caller.grant {
            Some(Grant::Agent) => "agent",
            Some(Grant::Full) => "full",
            None => "none",
        };
        let parsed = |json: &crate::a2a::strict_json::Value| -> Value {
            serde_json::from_str(&json.to_string()).unwrap_or_default()
        };
        let caller = json!({
            "test": *trial.name, "issuer": issuer, "grant": grant,
            "claims": parsed(&trial.caller.claims), "payload": parsed(&trial.caller.payload),
        });
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            .env("PORTCULLIS_TEST", &*trial.name)
            .env("PORTCULLIS_ISSUER", issuer)
            .env("PORTCULLIS_GRANT", grant);
        let token = printed(command, caller.to_string()).await?;
        Ok(Credential {
            token,
            bound: false,
            nonce: false,
            owner: None,
        })
    }
}

/// What a command prints, as a token.
async fn printed(mut command: Command, input: String) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the token command cannot run: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let talk = tokio::task::spawn_blocking(move || {
        if let Some(mut stdin) = stdin {
            // A command that needs no input may be gone already.
            let _ = stdin.write_all(input.as_bytes());
        }
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MAX_TOKEN).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    });
    let Ok(Ok(read)) = tokio::time::timeout(PATIENCE, talk).await else {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        return Err("the token command did not end in time".to_owned());
    };
    let bytes = read.map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("the token command failed: {status}"));
    }
    let token = String::from_utf8(bytes).unwrap_or_default();
    let token = token.trim();
    match token.is_empty() || token.bytes().any(|b| !b.is_ascii_graphic()) {
        true => Err("the token command printed no token".to_owned()),
        false => Ok(token.to_owned()),
    }
}

/// The interfaces for JSON-RPC of 1.0 that the gateway publishes of an agent; none for one that it
/// does not publish.
async fn published(http: &Client, base: &str, agent: &Agent) -> Vec<Interface> {
    let url = format!("{base}{}/.well-known/agent-card.json", agent.route);
    let Some(card) = card(http, &url).await else {
        return Vec::new();
    };
    let listed = card["supportedInterfaces"].as_array().into_iter().flatten();
    listed
        .filter(|i| i["protocolBinding"] == "JSONRPC")
        .filter(|i| {
            i["protocolVersion"]
                .as_str()
                .is_some_and(|v| v.starts_with("1."))
        })
        .filter_map(|i| {
            let url = Url::parse(i["url"].as_str()?).ok()?;
            let path = url
                .path()
                .trim_end_matches('/')
                .strip_prefix(&*agent.route)?;
            Some(Interface {
                public_path: path.into(),
                backend_path: "/".into(),
                binding: Binding::JsonRpc,
                versions: Versions {
                    v0_3: false,
                    v1_0: true,
                },
                backend: 0,
            })
        })
        .collect()
}

async fn card(http: &Client, url: &str) -> Option<Value> {
    let mut response = http.get(url).send().await.ok()?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_CARD {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
