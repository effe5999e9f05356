//! Files of the gateway under test, and server processes.

use super::Fallible;
use super::loopback_grpc::{self, HOST};
use super::loopback_traffic::{Call, Traffic, read_message};
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{Claims, DevAlgorithm, DevIssuer};
use serde_json::json;
use std::cell::Cell;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const RULES: usize = 100;
/// For a server to come up, and to end.
const PATIENCE: Duration = Duration::from_secs(15);

const ISSUER: &str = "https://issuer.bench.invalid";

/// Configuration, policy and keys in `folder`; returns a token.
pub(crate) fn write_files(
    folder: &Path,
    traffic: Traffic,
    durability: &str,
    [public, admin, agent]: [SocketAddr; 3],
) -> Fallible<String> {
    let issuer = DevIssuer::generate(DevAlgorithm::Rs256)?;
    std::fs::write(folder.join("jwks.json"), issuer.jwks())?;
    std::fs::write(folder.join("policy.yaml"), policy())?;
    let interface = traffic.interface();
    let (h2c, grpc) = match traffic {
        Traffic::Grpc => (", h2c: true", format!("    grpc: {{host: {HOST}}}\n")),
        Traffic::JsonRpc | Traffic::Rest | Traffic::Sse => ("", String::new()),
    };
    std::fs::write(
        folder.join("gateway.yaml"),
        format!(
            "version: 1
listeners: [{{name: public, bind: {public}, public_url: http://{public}{h2c}}}]
admin: {{bind: {admin}}}
issuers:
  - name: corp
    issuer: {ISSUER}
    audiences: [https://agents.bench.invalid]
    keys: {{file: jwks.json}}
    grants: [{{path: [scope], form: space_string, map: {{a2a.agent: agent, a2a.full: full}}}}]
    claims:
      role: {{path: [role], type: string}}
      groups: {{path: [realm_access, roles], type: string_array}}
    development: true
agents:
  - name: bench
    route: {{path: /agents/bench}}
    publish: true
    backend: {{url: http://{agent}}}
    interfaces: [{interface}]
{grpc}    skills: [review-diff, hello, summarize, plan]
    skill_from: [{{metadata: skillId}}]
policies: {{files: [policy.yaml], names: [bench]}}
audit: {{journal: {{dir: journal, durability: {durability}}}}}
"
        ),
    )?;
    let mut claims = Claims {
        issuer: ISSUER.into(),
        audience: "https://agents.bench.invalid".into(),
        subject: "9b1c5d1e-7f0a-4f5e-9a53-0b7d6f2a1c44".into(),
        client: "loopback".into(),
        scope: "a2a.agent".into(),
        lifetime: 3600,
        ..Claims::default()
    };
    claims.extra.insert("role".into(), json!("reviewer"));
    claims.extra.insert(
        "realm_access".into(),
        json!({"roles": ["staff", "platform"]}),
    );
    Ok(issuer.mint(&claims, &SystemClock::new(), &SystemRandom)?)
}

/// A hundred rules for the one agent: allows for other roles, denies that do not fire, the one that
/// lets the call through last.
fn policy() -> String {
    let mut text = String::from("version: 1\npolicy: bench\nrules:\n");
    for rule in 0..RULES - 2 {
        let skill = ["review-diff", "hello", "summarize", "plan"][rule % 4];
        let _ = if rule % 10 == 9 {
            writeln!(
                text,
                "  - id: deny-{rule}\n    deny: {{agents: [bench], operations: [messages], skills: [{skill}]}}\n    unless: {{groups: {{contains: staff}}}}"
            )
        } else {
            writeln!(
                text,
                "  - id: allow-{rule}\n    allow: {{agents: [bench], operations: [messages], skills: [{skill}]}}\n    grant: agent\n    require: {{role: {{equals: role-{rule}}}}}"
            )
        };
    }
    text.push_str(
        "  - id: own-tasks\n    allow: {agents: [bench], operations: [tasks]}\n    grant: agent\n",
    );
    text.push_str("  - id: reviewers-review\n    allow: {agents: [bench], operations: [messages], skills: [review-diff]}\n    grant: agent\n    require: {role: {equals: reviewer}}\n");
    text
}

/// An address that was free a moment ago.
pub(crate) fn free_port() -> std::io::Result<SocketAddr> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

pub(crate) fn pin_self() -> bool {
    let me = std::process::id().to_string();
    Command::new("taskset")
        .args(["-cp", "1", &me])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn command(pinned: bool, program: &Path) -> Command {
    if !pinned {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(program);
    command
}

/// A server process, killed when this is dropped. `taskset` becomes its program, so the id stays.
pub(crate) struct Running(Cell<Option<Child>>, u32);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Fallible<Running> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let id = child.id();
        Ok(Running(Cell::new(Some(child)), id))
    }

    /// User and system time of all its threads.
    pub(crate) fn cpu(&self) -> Fallible<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.1))?;
        let (_, after) = stat.rsplit_once(')').ok_or("no process statistics")?;
        // proc(5): the 14th and 15th fields, counted from the one before the name; in ticks, of
        // which Linux shows 100 per second.
        let ticks: u64 = after
            .split_ascii_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>())
            .sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    /// As an operator stops it; an error when it does not end well. The agent must go on meanwhile,
    /// as calls that were under way are finished first.
    pub(crate) async fn stop(&self) -> Fallible<()> {
        let Some(mut child) = self.0.take() else {
            return Ok(());
        };
        Command::new("kill").arg(self.1.to_string()).status()?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = child.try_wait()? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(format!("a server ended with {status}").into()),
                };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.0.set(Some(child));
        Err("a server did not end".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Until one call passes: the gateway has to fetch the agent's card first.
pub(crate) async fn until_it_answers(
    traffic: Traffic,
    address: SocketAddr,
    token: &str,
) -> Fallible<()> {
    let until = Instant::now() + PATIENCE;
    if traffic == Traffic::Grpc {
        loop {
            match loopback_grpc::answers(address, token).await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
    // A stream would not end.
    let traffic = match traffic {
        Traffic::Sse => Traffic::JsonRpc,
        other => other,
    };
    let mut call = Call::new(traffic, address, token);
    call.number(0);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let answer = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(&call.bytes).await?;
            read_message(&mut stream, &mut buffer, 0).await
        };
        let answer = answer.await;
        if matches!(answer, Ok(Some(_))) && buffer.starts_with(b"HTTP/1.1 200") {
            return Ok(());
        }
        if Instant::now() > until {
            let seen = String::from_utf8_lossy(&buffer[..400]).into_owned();
            return Err(format!("no answer at {address}: {answer:?} {seen}").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The value of a metric.
pub(crate) async fn counted(admin: SocketAddr, series: &str) -> Fallible<u64> {
    let mut stream = TcpStream::connect(admin).await?;
    let get = format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(get.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(series))
        .ok_or("the metric is not there")?;
    Ok(value.trim().parse::<f64>()? as u64)
}
