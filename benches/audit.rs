//! A journal of many records, and how fast questions to it are answered.
//!
//! `AUDIT_RECORDS` says how many (default 200,000), `AUDIT_DIR` keeps the journal in a folder, where
//! `portcullis audit` can be measured on it too; otherwise it is removed again.
#![allow(missing_docs, reason = "a program")]

use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use portcullis::a2a::reader::{EventKind, TaskState};
use portcullis::a2a::{Binding, Operation, Version};
use portcullis::adapters::journal::scan::{cores, segments};
use portcullis::adapters::journal::search::{Search, Told};
use portcullis::adapters::journal::verify::verify;
use portcullis::audit::chain::Chain;
use portcullis::audit::checkpoint::{public_keys, sign};
use portcullis::audit::query::Query;
use portcullis::audit::query::field::Fields;
use portcullis::audit::record::{
    Actors, Address, Artifacts, Asked, Assurance, Attempt, Caller, Checkpoint, ClaimValue, Claims,
    Decision, Delivery, Effect, Ended, Grant, Head, Id, Ids, Intent, Judged, Millis, Near,
    NoClaims, Outcome, Proof, Reach, Record, Refusal, Request, Response, Sha256, Shadows, Skill,
    SkillSource, Source, Stage, Surface, Text, Time, Timing,
};
use portcullis::audit::redact::Fingerprint;
use portcullis::audit::verify::Required;
use portcullis::audit::verify::join::End;
use portcullis::audit::verify::piece::Means;
use portcullis::identity::SigningKey;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const JOURNAL: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// 2026-11-01T00:00:00Z.
const START: u64 = 1_793_491_200_000;
const SEGMENT: u64 = 64 << 20;
const AGENTS: [&str; 5] = [
    "pr-agent",
    "search-agent",
    "mail-agent",
    "code-agent",
    "db-agent",
];
const SKILLS: [&str; 4] = ["review-diff", "hello", "search", "write"];

struct Made {
    dir: PathBuf,
    out: Option<BufWriter<File>>,
    chain: Chain,
    bytes: u64,
    key: SigningKey,
    line: Vec<u8>,
    since: u64,
}

fn head(time: u64) -> Head<'static> {
    Head {
        time: Time(time),
        instance: "gw-00000000",
        generation: 1,
        policy_digest: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    }
}

impl Made {
    fn put(&mut self, record: &Record<'_>) -> u64 {
        if self.out.is_none() || self.bytes > SEGMENT {
            let name = format!("journal-{:020}.jsonl", self.chain.sequence() + 1);
            let file = File::create(self.dir.join(name)).expect("a segment");
            self.out = Some(BufWriter::with_capacity(1 << 20, file));
            self.bytes = 0;
        }
        self.line.clear();
        self.chain.seal(&record.members(), &mut self.line);
        self.bytes += self.line.len() as u64;
        let out = self.out.as_mut().expect("a segment is open");
        out.write_all(&self.line).expect("room");
        self.since += 1;
        self.chain.sequence()
    }

    fn checkpoint(&mut self, time: u64) {
        let (size, chain_head) = (self.chain.sequence(), self.chain.head());
        let signature = sign(&self.key, JOURNAL, (size, chain_head), head(time));
        let kid = self.key.kid().to_owned();
        self.put(&Record::Checkpoint(Checkpoint {
            head: head(time),
            journal: JOURNAL,
            size,
            chain_head: Sha256(chain_head),
            key_id: &kid,
            signature: &signature,
        }));
        self.since = 0;
    }
}

/// Writes a journal: of a hundred calls, 87 are answered and 13 refused.
fn write(dir: &Path, records: u64) -> SigningKey {
    let pair = || Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed");
    let mut made = Made {
        dir: dir.to_owned(),
        out: None,
        chain: Chain::START,
        bytes: 0,
        key: SigningKey::new(pair()),
        line: Vec::new(),
        since: 0,
    };
    let print_key = hmac::Key::new(hmac::HMAC_SHA256, b"bench");
    let mut n = 0;
    while made.chain.sequence() < records {
        n += 1;
        let time = START + n * 250;
        let who = n * 7919 % 200;
        let subject = format!("user-{who:04}-7f0a-4f5e-9a53-0b7d6f2a1c44");
        let request_id = ulid::Ulid::from_parts(time, u128::from(n)).to_string();
        let (message, context) = (format!("m-{n:08x}"), format!("ctx-{:06x}", n / 5));
        let refused = n * 31 % 100 < 13;
        let claims = [(
            "role",
            ClaimValue::Text(Id(if refused { "reader" } else { "reviewer" })),
        )];
        let agent = AGENTS[(n * 13 % 5) as usize];
        let asked = Asked {
            request_id: &request_id,
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
            source: Source {
                addr: Address::Plain(SocketAddr::from(([192, 0, 2, (who % 250) as u8], 4711))),
                listener: "public",
                certificate: None,
            },
            caller: Some(Caller {
                issuer: "corp",
                subject: Id(&subject),
                client: Some(Id("agent-console")),
                actors: Actors::default(),
                fingerprint: Fingerprint::of(&print_key, subject.as_bytes()),
                grant: Grant::Agent,
                proof: Proof::None,
                scopes: Ids(&[]),
                claims: Claims(&claims),
                no_claims: NoClaims(&[]),
            }),
            agent: Some(agent),
            surface: Surface::Agent,
            binding: Some(Binding::JsonRpc),
            version: Some(Version::V1_0),
            operation: Some(Operation::SendMessage),
            tenant: None,
            skill: Some(Skill {
                id: Some(Text(SKILLS[(n % 4) as usize])),
                source: SkillSource::Metadata,
                assurance: Some(Assurance::Declared),
            }),
            message_id: Some(Id(&message)),
            task_id: None,
            context_id: Some(Id(&context)),
            reference_task_ids: Ids(&[]),
            extensions: Ids(&[]),
            declared_extensions: Ids(&[]),
            push_config_id: None,
            webhook_hosts: Ids(&[]),
            decision: Decision {
                effect: if refused { Effect::Deny } else { Effect::Allow },
                reason: if refused { "no_rule" } else { "allowed" },
                rule: (!refused).then_some("reviewers-review"),
                near: refused.then_some(Near {
                    rule: "reviewers-review",
                    claim: Some("role"),
                    content: None,
                    why: "value_differs",
                }),
                shadow: Shadows(&[]),
            },
            request: Request {
                method: Text("POST"),
                path: Some(Id("/agents/pr-agent/a2a")),
                bytes: 1024,
                sha256: Some(Sha256([0xab; 32])),
                forwarded: None,
            },
        };
        if refused {
            made.put(&Record::Refusal(Refusal {
                head: head(time),
                asked,
                http_status: 403,
                fault: "forbidden",
                token_reason: None,
                error: None,
                reach: Reach::UNTOUCHED,
            }));
        } else {
            let intent = made.put(&Record::Intent(Intent {
                head: head(time),
                asked,
            }));
            let ms = |ms| Millis(Duration::from_millis(ms));
            made.put(&Record::Outcome(Outcome {
                head: head(time + 40),
                request_id: &request_id,
                intent,
                agent,
                operation: Some(Operation::SendMessage),
                reach: Delivery::Responded.into(),
                attempts: &[Attempt {
                    peer: "127.0.0.1:9999".into(),
                    reused: true,
                    started_ms: ms(1),
                    ms: ms(38),
                    stage: Stage::Response,
                    bytes_sent: 1024,
                    body_len: 1024,
                    error: None,
                    tcp: None,
                }],
                response: Some(Response {
                    http_status: 200,
                    grpc_status: None,
                    rpc_code: None,
                    kind: Some(EventKind::Task),
                    states: &[TaskState::Completed],
                    extensions: Ids(&[]),
                    bytes: 700,
                    events: 0,
                    judged: Judged::Ok,
                    malformed: None,
                    ended_by_close: false,
                }),
                task_id: Some(Id(&message)),
                context_id: Some(Id(&context)),
                artifacts: Artifacts(&[]),
                ended: Ended::Complete,
                ms: Timing {
                    total: ms(40),
                    to_response: Some(ms(38)),
                    overhead: Some(ms(1)),
                },
            }));
        }
        if made.since >= 4096 {
            made.checkpoint(time);
        }
    }
    made.checkpoint(START + n * 250);
    made.out.as_mut().expect("a segment").flush().expect("room");
    SigningKey::new(pair())
}

fn main() {
    let records = std::env::var("AUDIT_RECORDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let records: u64 = records.unwrap_or(200_000);
    let kept = std::env::var("AUDIT_DIR").ok().map(PathBuf::from);
    let temporary = tempfile::tempdir().expect("a folder");
    let dir = kept.unwrap_or_else(|| temporary.path().to_owned());
    fs::create_dir_all(&dir).expect("a folder");
    let begun = Instant::now();
    let key = write(&dir, records);
    let pem = key.to_pem().expect("a key");
    fs::write(dir.join("checkpoint.pem"), pem).expect("room");
    let listed = segments(&dir).expect("a journal");
    let bytes: u64 = listed.iter().map(|segment| segment.bytes).sum();
    println!(
        "{records} records, {} MiB in {} segments, written in {:.1?}",
        bytes >> 20,
        listed.len(),
        begun.elapsed()
    );
    let say = |what: &str, begun: Instant, found: u64| {
        let took = begun.elapsed();
        println!(
            "{what:50} {found:>9} found  {took:>8.2?}  {:>6.2} M records/s  {:>7.0} MB/s",
            records as f64 / took.as_secs_f64() / 1e6,
            bytes as f64 / took.as_secs_f64() / 1e6,
        );
    };
    let fields = Fields::new();
    for conditions in [
        vec!["subject=user-0042-7f0a-4f5e-9a53-0b7d6f2a1c44"],
        vec!["agent=pr-agent", "reason=no_rule"],
        vec!["agent=pr-agent", "delivery=responded"],
        vec!["skill=review-diff", "claims.role!=reviewer"],
        vec!["task=m-00000100"],
        vec!["ms.total>1000"],
    ] {
        let owned: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        let query = Query::parse(&owned, &fields).expect("a query");
        let search = Search {
            query: &query,
            records: false,
            threads: cores(),
        };
        let mut found = 0;
        let begun = Instant::now();
        search.run(&listed, &|_, _, _| (), &mut |told| {
            found += u64::from(matches!(told, Told::Found(())));
            ControlFlow::Continue(())
        });
        say(&conditions.join(" "), begun, found);
    }
    let means = Means {
        required: Required::new(),
        keys: public_keys(&key),
        wanted: BTreeSet::new(),
    };
    let end = End {
        held: false,
        tail: 0,
    };
    let begun = Instant::now();
    let report = verify(
        &listed,
        &means,
        (Vec::new(), Chain::START, end),
        cores(),
        &mut |_| {},
    );
    assert!(report.intact(), "{:?}", report.problems);
    say("verify", begun, report.records);
}
