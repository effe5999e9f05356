//! What was found: as a table, as JSON, as a signed file.

use super::row::{Found, Judged};
use super::separate::Read;
use super::{Sources, signed};
use crate::adapters::clock::SystemClock;
use crate::audit::record::Time;
use crate::cli::exit;
use crate::cli::policy::suite::Source;
use crate::config::snapshot::Snapshot;
use crate::identity::SigningKey;
use crate::pipeline::ports::Clock;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How much of what was tried is real.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// A gateway of its own, with built-in agents.
    BuiltIn,
    /// A gateway of its own, in front of the real agents.
    RealAgents,
    /// A gateway that runs, at this origin.
    Running(String),
}

/// What a run consists of.
pub(super) struct Setting {
    standing: Standing,
    agents: Vec<String>,
    issuers: Vec<(String, String)>,
    sources: Sources,
    passed_over: Vec<String>,
}

impl Setting {
    pub(super) fn new(
        standing: Standing,
        snapshot: &Snapshot,
        sources: Sources,
        passed_over: Vec<String>,
    ) -> Setting {
        let issuers = snapshot.issuers.iter();
        Setting {
            standing,
            agents: snapshot.agents.iter().map(|a| a.name.to_string()).collect(),
            issuers: issuers
                .map(|i| (i.name.to_string(), i.issuer.to_string()))
                .collect(),
            sources,
            passed_over,
        }
    }

    fn mode(&self) -> &'static str {
        match self.standing {
            Standing::BuiltIn | Standing::RealAgents => "separate_gateway",
            Standing::Running(_) => "running_gateway",
        }
    }

    /// What is not the real thing.
    fn simulated(&self) -> Vec<&'static str> {
        let mut all = match self.standing {
            Standing::Running(_) => return Vec::new(),
            Standing::BuiltIn => vec!["agents: built in, with the configured skills and paths"],
            Standing::RealAgents => Vec::new(),
        };
        all.extend([
            "issuers: each entry has a fresh key of its own",
            "listeners: on free ports of this machine, without TLS",
            "time: the clock stands at the instant of each test's token",
            "tasks: made their owners' before the call",
        ]);
        all
    }

    /// What the real gateway may do beside, and was not tried.
    fn off(&self) -> Vec<&'static str> {
        match self.standing {
            Standing::Running(_) => Vec::new(),
            Standing::RealAgents => vec!["revocation", "introspection", "names of webhooks"],
            Standing::BuiltIn => vec![
                "revocation",
                "introspection",
                "names of webhooks",
                "TLS to agents",
                "signatures of cards",
            ],
        }
    }
}

/// Everything that was found.
pub(super) struct Report {
    json: Map<String, Value>,
    text: String,
    exit: u8,
}

impl Report {
    pub(super) fn new(
        setting: Setting,
        rows: &[Judged<'_>],
        journal: Option<&Read>,
        mut stray: Vec<String>,
    ) -> Report {
        if journal.is_some_and(|journal| !journal.intact) {
            stray.push("the chain of the gateway's journal is broken".to_owned());
        }
        let count = |found: Found| rows.iter().filter(|row| row.found == found).count();
        let failed = count(Found::Failed);
        let code = match (failed + stray.len(), count(Found::Proven)) {
            (1.., _) => exit::FAILED,
            (0, 0) => exit::NO,
            (0, _) => exit::YES,
        };
        Report {
            json: as_json(&setting, rows, journal, &stray),
            text: as_text(&setting, rows, journal, &stray),
            exit: code,
        }
    }

    pub(super) fn exit(&self) -> u8 {
        self.exit
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn json(&self) -> Value {
        Value::Object(self.json.clone())
    }

    pub(super) fn sign(&mut self, key: &SigningKey) -> Option<()> {
        let public: Value = serde_json::from_str(&key.public_jwk()).ok()?;
        self.json.insert("key".to_owned(), public);
        signed::sign(&mut self.json, key)
    }
}

fn as_json(
    setting: &Setting,
    rows: &[Judged<'_>],
    journal: Option<&Read>,
    stray: &[String],
) -> Map<String, Value> {
    let file = |source: &Source| json!({ "path": source.path, "sha256": source.sha256 });
    let files = |sources: &[Source]| sources.iter().map(file).collect::<Vec<_>>();
    let count = |found: Found| rows.iter().filter(|row| row.found == found).count();
    let real = setting.standing != Standing::BuiltIn;
    let simulates_issuers = !matches!(setting.standing, Standing::Running(_));
    let name = |agent: usize| setting.agents.get(agent).map_or("", String::as_str);
    let tried: BTreeSet<&str> = rows
        .iter()
        .map(|row| name(row.row.trial.call.agent))
        .collect();
    let agents = setting.agents.iter();
    let agents = agents.map(
        |name| json!({ "name": name, "built_in": !real, "tested": tried.contains(name.as_str()) }),
    );
    let issuers = setting.issuers.iter();
    let issuers = issuers.map(
        |(name, issuer)| json!({ "name": name, "issuer": issuer, "simulated": simulates_issuers }),
    );
    let mut all = signed::begin();
    let gateway_url = match &setting.standing {
        Standing::Running(url) => Some(url),
        Standing::BuiltIn | Standing::RealAgents => None,
    };
    for (member, value) in [
        ("time", json!(Time(SystemClock::new().now()))),
        (
            "program",
            json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") }),
        ),
        ("mode", json!(setting.mode())),
        ("gateway_url", json!(gateway_url)),
        ("simulated", json!(setting.simulated())),
        ("off", json!(setting.off())),
        ("gateway", file(&setting.sources.gateway)),
        ("policies", json!(files(&setting.sources.policies))),
        ("tests", json!(files(&setting.sources.tests))),
        ("passed_over", json!(setting.passed_over)),
        ("agents", agents.collect()),
        ("issuers", issuers.collect()),
        (
            "rows",
            rows.iter()
                .map(|row| row.json(name(row.row.trial.call.agent)))
                .collect(),
        ),
        ("stray", json!(stray)),
        (
            "journal",
            json!(journal.map(|journal| json!({
                "intents": journal.intents, "refusals": journal.refusals,
                "intact": journal.intact,
            }))),
        ),
        (
            "summary",
            json!({
                "tests": rows.len(), "proven": count(Found::Proven),
                "failed": count(Found::Failed), "not_tried": count(Found::NotTried),
                "stray": stray.len(),
            }),
        ),
    ] {
        all.insert(member.to_owned(), value);
    }
    all
}

fn as_text(
    setting: &Setting,
    rows: &[Judged<'_>],
    journal: Option<&Read>,
    stray: &[String],
) -> String {
    let mut text = match &setting.standing {
        Standing::BuiltIn | Standing::RealAgents => {
            "gateway    one of its own, in this process\n".to_owned()
        }
        Standing::Running(url) => format!("gateway    {url}, as it runs\n"),
    };
    for simulated in setting.simulated() {
        text.push_str(&format!("simulated  {simulated}\n"));
    }
    for off in setting.off() {
        text.push_str(&format!("off        {off}\n"));
    }
    text.push_str("\n  HTTP  requests × executions at the agent\n");
    let mut file = "";
    for row in rows {
        if file != &*row.row.trial.file {
            file = &row.row.trial.file;
            text.push_str(&format!("{file}\n"));
        }
        text.push_str(&row.lines());
    }
    for file in &setting.passed_over {
        text.push_str(&format!(
            "{file}: passed over, it is about another policy\n"
        ));
    }
    for stray in stray {
        text.push_str(&format!("FAILED: {stray}\n"));
    }
    text.push('\n');
    if let Some(journal) = journal.filter(|journal| journal.intact) {
        text.push_str(&format!(
            "the gateway recorded {} intents and {} refusals; the chain of its journal is intact\n",
            journal.intents, journal.refusals
        ));
    }
    let count = |found: Found| rows.iter().filter(|row| row.found == found).count();
    text.push_str(&match rows.len() {
        0 => "no test was found\n".to_owned(),
        _ => format!(
            "{} proven, {} failed, {} not tried\n",
            count(Found::Proven),
            count(Found::Failed),
            count(Found::NotTried)
        ),
    });
    text
}
