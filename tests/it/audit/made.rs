//! A journal that was made by hand, in files.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::Ed25519KeyPair;
use portcullis::audit::chain::Chain;
use portcullis::audit::checkpoint::sign;
use portcullis::audit::record::{self, Head, Time};
use portcullis::identity::SigningKey;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub const JOURNAL: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// 2026-11-30T12:00:00Z.
pub const START: u64 = 1_796_040_000_000;
pub const POLICY: &str = "version: 1\npolicy: mine\nrules:\n  - id: reviewers\n    allow: {agents: [pr-agent], operations: [messages], skills: [review]}\n    grant: agent\n    require: {role: {equals: reviewer}}\n  - id: others\n    deny: {agents: any, operations: any, always: true}\n";

/// Writes one record after the other, ten seconds apart.
pub struct Made {
    folder: TempDir,
    key: SigningKey,
    schema: Value,
    chain: Chain,
    segment: u64,
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// The id of the request that began with record `seq`.
pub fn request(seq: u64) -> String {
    let time = START + 10_000 * seq;
    ulid::Ulid::from_parts(time, u128::from(seq)).to_string()
}

impl Made {
    pub fn new() -> Made {
        Made::with_key(7)
    }

    /// The same with another key of checkpoints.
    pub fn with_key(seed: u8) -> Made {
        let made = Made {
            folder: tempfile::tempdir().unwrap(),
            key: SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()),
            schema: record::schema(),
            chain: Chain::START,
            segment: 1,
        };
        fs::create_dir_all(made.dir().join("texts")).unwrap();
        made
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn segment(&self, first: u64) -> PathBuf {
        self.dir().join(format!("journal-{first:020}.jsonl"))
    }

    pub fn next(&self) -> u64 {
        self.chain.sequence() + 1
    }

    fn time(&self) -> Time {
        Time(START + 10_000 * self.next())
    }

    /// A record with whatever its kind must have, and `members` in their place.
    pub fn put(&mut self, kind: &str, members: Value) -> u64 {
        let variants = self.schema["oneOf"]
            .as_array()
            .or(self.schema["anyOf"].as_array());
        let is = |v: &&Value| v["properties"]["kind"]["const"] == kind;
        let variant = variants.unwrap().iter().find(is).unwrap();
        let mut all = Map::new();
        all.insert("kind".into(), json!(kind));
        all.insert("time".into(), json!(self.time().to_string()));
        all.insert("instance".into(), json!("gw-1"));
        all.insert("generation".into(), json!(1));
        all.insert("policy_digest".into(), json!("d1d1"));
        for name in variant["required"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            if !all.contains_key(name) {
                all.insert(name.to_owned(), json!(0));
            }
        }
        for (name, value) in members.as_object().unwrap() {
            all.insert(name.clone(), value.clone());
        }
        let text = Value::Object(all).to_string();
        let mut line = Vec::new();
        self.chain
            .seal(&text.as_bytes()[1..text.len() - 1], &mut line);
        let path = self.segment(self.segment);
        let mut bytes = fs::read(&path).unwrap_or_default();
        bytes.extend(line);
        fs::write(path, bytes).unwrap();
        self.chain.sequence()
    }

    pub fn checkpoint(&mut self) -> u64 {
        let (size, head) = (self.chain.sequence(), self.chain.head());
        let of = Head {
            time: self.time(),
            instance: "gw-1",
            generation: 1,
            policy_digest: "d1d1",
        };
        let signature = sign(&self.key, JOURNAL, (size, head), of);
        let members = json!({
            "journal": JOURNAL, "size": size, "chain_head": hex(&head),
            "key_id": self.key.kid(), "signature": signature,
        });
        self.put("checkpoint", members)
    }

    pub fn open(&mut self) {
        self.put("note", json!({"note": "opened", "journal": JOURNAL}));
        self.checkpoint();
    }

    pub fn rotate(&mut self) {
        self.rotate_with(json!({}));
    }

    /// The same, with further members of the note that begins the segment.
    pub fn rotate_with(&mut self, mut members: Value) {
        self.checkpoint();
        self.segment = self.next();
        members["note"] = json!("segment");
        members["journal"] = json!(JOURNAL);
        self.put("note", members);
    }

    pub fn close(&mut self) {
        self.put("note", json!({"note": "closed"}));
        self.checkpoint();
    }

    /// A configuration with one policy file, whose text is kept.
    pub fn config(&mut self, digest: &str, policy: &str) {
        let sha256 = sha256(policy.as_bytes());
        fs::write(self.dir().join("texts").join(&sha256), policy).unwrap();
        let files = json!([{"name": "policy.yaml", "role": "policy", "sha256": sha256,
            "bytes": policy.len()}]);
        let members = json!({"result": "loaded", "trigger": "start", "policy_digest": digest,
            "files": files});
        self.put("config", members);
    }

    fn asked(&self, subject: &str, claims: &Value) -> Value {
        json!({
            "request_id": request(self.next()),
            "source": {"addr": "192.0.2.1:4711", "listener": "public"},
            "caller": {"issuer": "corp", "subject": subject, "fingerprint": "0123456789abcdef",
                "grant": "agent", "proof": "none", "scopes": [],
                "claims": claims["claims"], "no_claims": claims["no_claims"]},
            "agent": "pr-agent", "surface": "agent", "binding": "jsonrpc", "version": "1.0",
            "operation": "SendMessage",
            "skill": {"id": "review", "source": "metadata", "assurance": "declared"},
            "request": {"method": "POST", "path": "/agents/pr-agent/a2a", "bytes": 5,
                "sha256": sha256(b"hello")},
        })
    }

    pub fn intent(&mut self, subject: &str, claims: &Value) -> u64 {
        let mut members = self.asked(subject, claims);
        members["decision"] = json!({"effect": "allow", "reason": "allowed", "rule": "reviewers"});
        self.put("intent", members)
    }

    pub fn outcome(&mut self, intent: u64, delivery: &str) -> u64 {
        let reached = if delivery == "responded" {
            "yes"
        } else {
            "maybe"
        };
        let members = json!({
            "request_id": request(intent), "intent": intent, "agent": "pr-agent",
            "operation": "SendMessage", "delivery": delivery, "reached": reached,
            "attempts": [{"peer": "127.0.0.1:9999", "reused": false, "started_ms": 1.0, "ms": 2.0,
                "stage": "response", "bytes_sent": 5, "body_len": 5}],
            "response": {"http_status": 200, "states": ["working", "completed"], "bytes": 7,
                "events": 0, "judged": "ok"},
            "task_id": format!("t-{intent}"), "ended": "complete", "ms": {"total": 12.5},
        });
        self.put("outcome", members)
    }

    pub fn refusal(&mut self, subject: &str, claims: &Value) -> u64 {
        let mut members = self.asked(subject, claims);
        members["decision"] = json!({"effect": "deny", "reason": "no_rule",
            "near": {"rule": "reviewers", "claim": "role", "why": "missing"}});
        for (name, value) in [
            ("http_status", json!(403)),
            ("fault", json!("forbidden")),
            ("delivery", json!("not_attempted")),
            ("reached", json!("no")),
        ] {
            members[name] = value;
        }
        self.put("refusal", members)
    }

    /// Three segments: calls of alice and bob, refusals of carol, and what becomes of them.
    pub fn usual() -> Made {
        let mut made = Made::new();
        let reviewer = json!({"claims": {"role": "reviewer"}});
        let none = json!({"no_claims": {"role": "missing"}});
        made.open();
        made.config("d1d1", POLICY);
        let alice = made.intent("alice", &reviewer);
        made.refusal("carol", &none);
        let bob = made.intent("bob", &json!({}));
        made.rotate();
        made.outcome(alice, "responded");
        made.config("d2d2", "version: 1\npolicy: mine\nrules: []\n");
        let again = made.intent("alice", &reviewer);
        made.outcome(again, "sent_partial");
        made.rotate();
        made.outcome(bob, "responded");
        made.close();
        made
    }

    /// The key of checkpoints, in PKCS#8 PEM.
    pub fn pem(&self) -> String {
        self.key.to_pem().unwrap()
    }

    /// The key of checkpoints, as its own file, and the public one.
    pub fn keys(&self) -> PathBuf {
        let path = self.file("keys.json");
        let jwks = format!(r#"{{"keys":[{}]}}"#, self.key.public_jwk());
        fs::write(&path, jwks).unwrap();
        path
    }

    pub fn audit(&self, arguments: &[&str]) -> Said {
        self.audit_with(arguments, "")
    }

    /// Runs `portcullis audit` on this journal.
    pub fn audit_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = command(arguments, &self.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that reads nothing may be gone already.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
        drop(stdin);
        Said::of(child.wait_with_output().unwrap())
    }
}

pub fn command(arguments: &[&str], journal: &Path) -> Command {
    command_on(arguments, "--journal", journal)
}

/// `portcullis audit` on a folder that is named by this option.
pub fn command_on(arguments: &[&str], option: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.arg("audit").args(arguments).arg(option).arg(folder);
    command
}

/// What a command said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// One JSON value a line.
    pub fn json_lines(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
