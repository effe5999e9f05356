//! What leaves a journal: comparing it with an agent's log, exporting and shipping it.

use portcullis::audit::chain::Chain;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

mod collector;
mod export;
mod fields;
mod keys;
mod otlp;
mod reconcile;
mod shipped;

/// The time of the first record, and the id of the journal.
const TIME: u64 = 1_798_675_199_007;
const JOURNAL: &str = "01KDAJOURNALJOURNALJOURNA1";

/// A journal in a folder of its own, with records that tests write themselves.
struct Book {
    folder: TempDir,
    chain: Chain,
    file: File,
    first: u64,
}

impl Book {
    fn new() -> Book {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("journal")).unwrap();
        let file = segment(&folder.path().join("journal"), 1);
        let mut book = Book {
            folder,
            chain: Chain::START,
            file,
            first: 1,
        };
        book.opening("opened");
        book
    }

    fn dir(&self) -> PathBuf {
        self.path("journal")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn opening(&mut self, note: &str) {
        self.write(&format!(
            r#""kind":"note",{},"note":"{note}","journal":"{JOURNAL}","torn_bytes":0,"open_intents":0,"lost":0"#,
            head(0)
        ));
    }

    fn write(&mut self, members: &str) -> u64 {
        let mut line = Vec::new();
        self.chain.seal(members.as_bytes(), &mut line);
        self.file.write_all(&line).unwrap();
        self.chain.sequence()
    }

    fn rotate(&mut self) {
        self.first = self.chain.sequence() + 1;
        self.file = segment(&self.dir(), self.first);
        self.opening("segment");
    }

    /// A call of `alice` that the agent answered, and the id of the request.
    fn call(&mut self, n: u64, delivery: &str, reached: &str) -> String {
        let request = request_id(n);
        let intent = self.write(&format!(r#""kind":"intent",{}"#, asked(n, "allow")));
        self.write(&format!(
            r#""kind":"outcome",{},"request_id":"{request}","intent":{intent},"agent":"pr-agent","operation":"SendMessage","delivery":"{delivery}","reached":"{reached}","attempts":[{{"peer":"10.0.0.1:9","reused":false,"started_ms":0.1,"ms":2,"stage":"wait","bytes_sent":9,"body_len":9}}],"response":{{"http_status":200,"states":[],"bytes":9,"events":0,"judged":"ok"}},"ended":"complete","ms":{{"total":4.5}}"#,
            head(n)
        ));
        request
    }

    fn refusal(&mut self, n: u64) -> String {
        self.write(&format!(
            r#""kind":"refusal",{},"http_status":403,"fault":"not_allowed","delivery":"not_attempted","reached":"no""#,
            asked(n, "deny")
        ));
        request_id(n)
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["audit", command, "--journal"])
            .arg(self.dir())
            .args(arguments)
            .output()
            .unwrap()
    }
}

/// Milliseconds of the n-th request.
fn moment(n: u64) -> u64 {
    TIME + n * 1000
}

fn request_id(n: u64) -> String {
    ulid::Ulid::from_parts(moment(n), u128::from(n)).to_string()
}

fn time(n: u64) -> String {
    let time = portcullis::audit::record::Time(moment(n));
    serde_json::to_string(&time).unwrap()
}

fn head(n: u64) -> String {
    format!(
        r#""time":{},"instance":"gw-test","generation":3,"policy_digest":"d3""#,
        time(n)
    )
}

fn asked(n: u64, effect: &str) -> String {
    let reason = if effect == "allow" {
        "allowed"
    } else {
        "no_rule"
    };
    format!(
        r#"{},"request_id":"{}","trace_id":"0af7651916cd43dd8448eb211c80319c","source":{{"addr":"203.0.113.9:4711","listener":"public"}},"caller":{{"issuer":"corp","subject":"alice","client":"console","fingerprint":"0011223344556677","grant":"agent","proof":"none","scopes":["a2a.agent"],"claims":{{"role":"reviewer"}}}},"agent":"pr-agent","surface":"agent","binding":"jsonrpc","version":"1.0","operation":"SendMessage","skill":{{"id":"review-diff","source":"metadata","assurance":"declared"}},"message_id":"m{n}","decision":{{"effect":"{effect}","reason":"{reason}","rule":"reviewers"}},"request":{{"method":"POST","path":"/agents/pr-agent/a2a","bytes":9}}"#,
        head(n),
        request_id(n)
    )
}

fn segment(dir: &Path, first: u64) -> File {
    let mut options = OpenOptions::new();
    let options = options.append(true).create_new(true);
    options
        .open(dir.join(format!("journal-{first:020}.jsonl")))
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
