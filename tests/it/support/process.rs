//! The real program in a process of its own, with its files in a folder of its own.

use super::client::{Response, get};
use super::issuer::Issuer;
use portcullis::audit::chain;
use portcullis::audit::checkpoint::{Signed, public_keys};
use portcullis::identity::SigningKey;
use serde_json::Value;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a process may take to do what is asked of it. Reloads alone wait four seconds for
/// files to settle, and several processes may share one core.
pub const BOUND: Duration = Duration::from_secs(25);
/// The path of the agent's interface.
pub const RPC: &str = "/agents/pr-agent/a2a";

/// The gateway's files.
pub struct Files {
    folder: TempDir,
    /// Where its journal is.
    pub journal: PathBuf,
}

/// What the gateway file says beside the constant parts.
pub struct Plan<'p> {
    /// The agent's URL.
    pub agent: &'p str,
    /// `write`, `group` or `each`.
    pub durability: &'p str,
    /// Further members of the journal's settings, each with a comma in front.
    pub journal_members: &'p str,
    /// The journal's directory; `None` for one among the files.
    pub journal: Option<&'p Path>,
    /// Further members of the agent's entry, each a line indented by four spaces.
    pub agent_members: &'p str,
}

impl<'p> Plan<'p> {
    pub fn for_agent(agent: &'p str) -> Plan<'p> {
        Plan {
            agent,
            durability: "write",
            journal_members: "",
            journal: None,
            agent_members: "",
        }
    }
}

/// Everybody may send messages and follow up.
pub const OPEN: &str = "version: 1
policy: open
rules:
  - id: messages
    allow: {agents: [pr-agent], operations: [messages], skills: [hello]}
    grant: agent
  - id: tasks
    allow: {agents: [pr-agent], operations: [tasks]}
    grant: agent
";

impl Files {
    /// Writes them; both listeners take a free port each.
    pub fn write(issuer: &Issuer, plan: &Plan<'_>) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let journal = match plan.journal {
            Some(dir) => dir.to_owned(),
            None => folder.path().join("journal"),
        };
        let files = Files { folder, journal };
        files.put("policy.yaml", OPEN);
        files.put("corp.jwks.json", &issuer.jwks());
        files.put("gateway.yaml", &files.yaml(issuer, plan));
        files
    }

    fn yaml(&self, issuer: &Issuer, plan: &Plan<'_>) -> String {
        let entry = issuer.yaml_entry(
            "corp",
            "corp.jwks.json",
            "{role: {path: [role], type: string}}",
        );
        format!(
            "version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://localhost}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: pr-agent
    route: {{path: /agents/pr-agent}}
    backend: {{url: {}}}
    skills: [hello]
{}policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: {}, durability: {}{}}}}}
",
            plan.agent,
            plan.agent_members,
            self.journal.display(),
            plan.durability,
            plan.journal_members
        )
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes or replaces a file.
    pub fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The text of a file.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// All segments of the journal, one after the other.
    pub fn journal_bytes(&self) -> Vec<u8> {
        let mut segments: Vec<PathBuf> = std::fs::read_dir(&self.journal)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        segments.sort();
        let read = |path: &PathBuf| std::fs::read(path).unwrap();
        segments.iter().flat_map(read).collect()
    }

    /// The journal's records, after checking their chain from the first to the last, and its
    /// checkpoints with the key beside it. Bytes behind the last line feed are a record that is being written, or was when the process ended.
    pub fn records(&self) -> Vec<Value> {
        let bytes = self.journal_bytes();
        let whole = bytes.iter().rposition(|b| *b == b'\n').unwrap_or(0);
        let lines = || bytes[..whole].split(|b| *b == b'\n');
        if let Err(broken) = chain::check(lines()) {
            panic!("the chain is broken: {broken}");
        }
        if let Ok(pem) = std::fs::read_to_string(self.journal.join("checkpoint.pem")) {
            let keys = public_keys(&SigningKey::from_pem(&pem).unwrap()).unwrap();
            let signed: Vec<Signed> = lines().filter_map(Signed::of).collect();
            for checkpoint in &signed {
                assert_eq!(checkpoint.verify(&keys), Ok(()), "{checkpoint:?}");
                assert_eq!(checkpoint.journal, signed[0].journal);
            }
        }
        lines()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }
}

/// Records of one kind.
pub fn of_kind<'r>(records: &'r [Value], kind: &str) -> Vec<&'r Value> {
    records.iter().filter(|r| r["kind"] == kind).collect()
}

/// A running program. Dropping it kills it.
pub struct Process {
    child: Child,
    /// Where callers come in.
    pub public: SocketAddr,
    /// Where operators come in.
    pub admin: SocketAddr,
    output: [Arc<Output>; 2],
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Output {
    bytes: Mutex<Vec<u8>>,
    grown: Condvar,
}

impl Process {
    /// Starts `portcullis run` and waits until it is ready and has every agent's card.
    pub async fn start(files: &Files) -> Process {
        Process::start_with(files, &[], &[]).await
    }

    /// The same with further arguments and environment variables.
    pub async fn start_with(
        files: &Files,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Process {
        let process = Process::start_unready(files, arguments, variables);
        process
            .until_ready("readiness, with every card", |ready| {
                ready.status == 200 && ready.json()["reasons"] == serde_json::json!([])
            })
            .await;
        process
    }

    /// Starts it and waits until it listens.
    pub fn start_unready(files: &Files, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut process = Process::spawn(files, arguments, variables);
        let line = process.until_written("the gate stands");
        let line = line.unwrap_or_else(|| panic!("the gateway did not start"));
        let addresses = addresses(&line);
        assert_eq!(addresses.len(), 2, "`{line}`");
        (process.public, process.admin) = (addresses[0], addresses[1]);
        process
    }

    /// Starts it and waits for nothing; its addresses are not known.
    pub fn spawn(files: &Files, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        // Unit tests share this module, and only here is there a program.
        let program = option_env!("CARGO_BIN_EXE_portcullis");
        let program = program.unwrap_or_else(|| panic!("unit tests have no program"));
        let mut child = Command::new(program)
            .args(["run", "--config"])
            .arg(files.path("gateway.yaml"))
            .args(arguments)
            .env_remove("PORTCULLIS_LOG")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = [Arc::new(Output::default()), Arc::new(Output::default())];
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let readers = vec![keep(out, &output[0]), keep(err, &output[1])];
        Process {
            child,
            public: super::loopback(),
            admin: super::loopback(),
            output,
            readers,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stdout and stderr so far.
    pub fn written(&self) -> String {
        let text = |o: &Arc<Output>| String::from_utf8_lossy(&o.bytes.lock().unwrap()).into_owned();
        self.output.iter().map(text).collect()
    }

    /// The first line on stderr with `text`; `None` when it ends without.
    pub fn until_written(&self, text: &str) -> Option<String> {
        let stderr = &self.output[1];
        let until = Instant::now() + BOUND;
        let mut bytes = stderr.bytes.lock().unwrap();
        loop {
            let so_far = String::from_utf8_lossy(&bytes);
            let whole = &so_far[..so_far.rfind('\n').map_or(0, |at| at + 1)];
            if let Some(line) = whole.lines().find(|line| line.contains(text)) {
                return Some(line.to_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.readers[1].is_finished() {
                return None;
            }
            let slice = left.min(Duration::from_millis(200));
            bytes = stderr.grown.wait_timeout(bytes, slice).unwrap().0;
        }
    }

    /// Asks `/readyz` until the answer satisfies `condition`.
    pub async fn until_ready(&self, what: &str, condition: impl Fn(&Response) -> bool) -> Response {
        eventually(what, async || {
            let ready = get(self.admin, "/readyz", &[]).await.ok()?;
            condition(&ready).then_some(ready)
        })
        .await
    }

    /// Sends a signal: `TERM`, `HUP`.
    pub fn signal(&self, name: &str) {
        // The shell's own `kill`: the standard library has no way to send a signal but SIGKILL.
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Ends it as a crash would, at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "it had ended before: {status}");
    }

    /// Waits until it has ended, and all its output is here.
    pub async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let status = eventually("the process to end", async || child.try_wait().unwrap()).await;
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        // Shown when the test fails, and kept where the output of all tests is searched.
        eprintln!("-- what the gateway wrote\n{}--", self.written());
    }
}

/// Asks again and again, at most for [`BOUND`].
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + BOUND;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn keep(mut from: impl Read + Send + 'static, to: &Arc<Output>) -> JoinHandle<()> {
    let to = Arc::clone(to);
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            to.bytes.lock().unwrap().extend_from_slice(&piece[..length]);
            to.grown.notify_all();
        }
    })
}

/// Every socket address in a line, in order.
fn addresses(line: &str) -> Vec<SocketAddr> {
    line.split(|c: char| !c.is_ascii_digit() && !".:".contains(c))
        .filter_map(|word| word.parse().ok())
        .collect()
}
