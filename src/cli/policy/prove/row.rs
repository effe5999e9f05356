//! One test: what it expects, what happened, and whether that proves it.

use super::count::Counts;
use super::separate::Read;
use crate::policy::decision::Effect;
use crate::policy::mutate::name_of;
use crate::policy::trial::{Trial, is_message};
use serde_json::{Value, json};

/// A test, and what came of it.
pub(super) struct Row<'t> {
    pub(super) trial: &'t Trial,
    /// Or why it was not tried.
    pub(super) tried: Result<Tried, String>,
}

/// A request that was sent.
pub(super) struct Tried {
    pub(super) http: Option<u16>,
    pub(super) rpc_code: Option<i64>,
    pub(super) request_id: Option<String>,
    /// What its agent counted between just before and just after.
    pub(super) counts: Option<Counts>,
    /// What was wrong whatever the test expects.
    pub(super) wrong: Vec<String>,
}

/// What the gateway decided.
#[derive(Debug, Default)]
pub(super) struct Decided {
    effect: Option<Effect>,
    reason: Option<String>,
    rule: Option<String>,
    near: Option<Value>,
}

/// Whether a test is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Proven,
    Failed,
    NotTried,
}

impl Found {
    pub(super) fn label(self) -> &'static str {
        match self {
            Found::Proven => "proven",
            Found::Failed => "failed",
            Found::NotTried => "not_tried",
        }
    }
}

/// A row with its result.
pub(super) struct Judged<'t> {
    pub(super) row: Row<'t>,
    decided: Decided,
    pub(super) found: Found,
    /// Why it is not proven.
    pub(super) why: Vec<String>,
}

impl<'t> Judged<'t> {
    /// Judges a row; `journal` is that of the gateway, where it is ours to read.
    pub(super) fn new(row: Row<'t>, journal: Option<&Read>) -> Judged<'t> {
        let (decided, found, why) = match &row.tried {
            Err(why) => (Decided::default(), Found::NotTried, vec![why.clone()]),
            Ok(tried) => {
                let decided = match journal {
                    Some(journal) => recorded(tried, journal),
                    None => answered(tried),
                };
                let why = misses(row.trial, tried, &decided, journal.is_some());
                let found = match why.is_empty() {
                    true => Found::Proven,
                    false => Found::Failed,
                };
                (decided, found, why)
            }
        };
        Judged {
            row,
            decided,
            found,
            why,
        }
    }

    /// The line of the table, and lines below it.
    pub(super) fn lines(&self) -> String {
        let (http, counts) = match &self.row.tried {
            Ok(tried) => {
                let http = tried.http.map_or("-".to_owned(), |http| http.to_string());
                (http, shown(tried.counts))
            }
            Err(_) => ("-".to_owned(), "-".to_owned()),
        };
        let found = match self.found {
            Found::Proven => "proven",
            Found::Failed => "FAILED",
            Found::NotTried => "not tried",
        };
        let mut lines = format!(
            "  {http:<4}  {counts:<7}  {found:<9}  {}\n",
            self.row.trial.name
        );
        for why in &self.why {
            lines.push_str(&format!("        {why}\n"));
        }
        if self.found == Found::Failed {
            lines.push_str(&format!("        line {}\n", self.row.trial.line));
        }
        lines
    }

    pub(super) fn json(&self, agent: &str) -> Value {
        let trial = self.row.trial;
        let expect = &trial.expect;
        let near = expect.near.as_ref().map(|near| {
            json!({
                "rule": near.rule.as_deref(), "claim": near.claim.as_deref(),
                "content": near.content.as_deref(),
                "why": near.why.as_deref(),
            })
        });
        let tried = self.row.tried.as_ref().ok();
        let counts = tried.and_then(|tried| tried.counts);
        json!({
            "file": *trial.file, "line": trial.line, "test": *trial.name,
            "agent": agent, "operation": name_of(trial.call.asked),
            "skill": trial.call.skill.as_deref(),
            "expected": {
                "effect": expect.effect.label(), "reason": expect.reason.as_deref(),
                "rule": expect.rule.as_deref(), "near": near, "http": expect.http,
            },
            "got": tried.map(|tried| json!({
                "http": tried.http, "rpc_code": tried.rpc_code,
                "request_id": tried.request_id,
                "effect": self.decided.effect.map(Effect::label),
                "reason": self.decided.reason, "rule": self.decided.rule,
                "near": self.decided.near,
            })),
            "requests": counts.and_then(|counts| counts.requests),
            "executions": counts.map(|counts| counts.executions),
            "result": self.found.label(),
            "why": self.why,
        })
    }
}

/// Requests × executions.
fn shown(counts: Option<Counts>) -> String {
    match counts {
        Some(Counts {
            requests: Some(requests),
            executions,
        }) => format!("{requests} × {executions}"),
        Some(Counts {
            requests: None,
            executions,
        }) => format!("? × {executions}"),
        None => "?".to_owned(),
    }
}

fn effect(label: Option<&str>) -> Option<Effect> {
    [Effect::Allow, Effect::Deny]
        .into_iter()
        .find(|effect| Some(effect.label()) == label)
}

/// What the gateway's own journal says of it.
fn recorded(tried: &Tried, journal: &Read) -> Decided {
    let id = tried.request_id.as_deref().unwrap_or_default();
    let Some(decision) = journal.decisions.get(id) else {
        return Decided::default();
    };
    let text = |name: &str| decision[name].as_str().map(str::to_owned);
    Decided {
        effect: effect(decision["effect"].as_str()),
        reason: text("reason"),
        rule: text("rule"),
        near: decision.get("near").cloned(),
    }
}

/// What the reply alone shows.
fn answered(tried: &Tried) -> Decided {
    let good = tried.http.is_some_and(|http| http < 300) && tried.rpc_code.is_none();
    Decided {
        effect: tried
            .http
            .map(|_| if good { Effect::Allow } else { Effect::Deny }),
        ..Decided::default()
    }
}

fn misses(trial: &Trial, tried: &Tried, decided: &Decided, journal: bool) -> Vec<String> {
    let mut why = tried.wrong.clone();
    let expect = &trial.expect;
    let mut differs = |what: &str, expected: &str, got: Option<&str>| {
        if got != Some(expected) {
            let got = got.unwrap_or("-");
            why.push(format!("{what}: expected {expected}, got {got}"));
        }
    };
    let got = decided.effect;
    if journal && got.is_none() {
        differs("record", "one in the journal", None);
    }
    differs("effect", expect.effect.label(), got.map(Effect::label));
    if let Some(http) = expect.http {
        let got = tried.http.map(|http| http.to_string());
        differs("http", &http.to_string(), got.as_deref());
    }
    if journal {
        let of_near = |name: &str| decided.near.as_ref()?[name].as_str();
        let near = expect.near.as_ref();
        for (what, expected, got) in [
            (
                "reason",
                expect.reason.as_deref(),
                decided.reason.as_deref(),
            ),
            ("rule", expect.rule.as_deref(), decided.rule.as_deref()),
            (
                "near.rule",
                near.and_then(|n| n.rule.as_deref()),
                of_near("rule"),
            ),
            (
                "near.claim",
                near.and_then(|n| n.claim.as_deref()),
                of_near("claim"),
            ),
            (
                "near.content",
                near.and_then(|n| n.content.as_deref()),
                of_near("content"),
            ),
            (
                "near.why",
                near.and_then(|n| n.why.as_deref()),
                of_near("why"),
            ),
        ] {
            if let Some(expected) = expected {
                differs(what, expected, got);
            }
        }
    }
    let refused = expect.effect == Effect::Deny || got == Some(Effect::Deny);
    match tried.counts {
        None => {}
        Some(counts) if refused => untouched(counts, &mut why),
        Some(counts) => reached(trial, counts, &mut why),
    }
    why
}

/// I-1: nothing of a refused call is at the agent.
fn untouched(counts: Counts, why: &mut Vec<String>) {
    if let Some(count @ 1..) = counts.requests {
        why.push(format!("to be refused, and the agent got {count} requests"));
    }
    if let count @ 1.. = counts.executions {
        why.push(format!("to be refused, and the agent executed {count}"));
    }
}

/// An allowed call is there once, and a message was acted on once.
fn reached(trial: &Trial, counts: Counts, why: &mut Vec<String>) {
    if let Some(count) = counts.requests.filter(|count| *count != 1) {
        why.push(format!("allowed, and the agent got {count} requests"));
    }
    let executions = counts.executions;
    let good = match is_message(trial.call.asked) {
        true => executions == 1,
        false => executions <= 1,
    };
    if !good {
        why.push(format!("allowed, and the agent executed {executions}"));
    }
}
