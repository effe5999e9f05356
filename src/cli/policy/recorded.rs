//! A request of the journal, to be judged again.
//!
//! A record tells the claims that policy used then, and of those without a value why. What it does
//! not tell is named, and counts as missing, so that nothing is allowed for it.

use super::caller::usage;
use crate::a2a::Operation;
use crate::adapters::journal::read::{Line, Reading};
use crate::cli::exit;
use crate::config::snapshot::Snapshot;
use crate::identity::issuer::{ClaimKind, Grant};
use crate::identity::{Actor, ClaimState, ClaimValue, Confirmation, Principal};
use crate::policy::Asked;
use crate::policy::replay::is_hidden;
use serde_json::Value;
use std::sync::Arc;

/// A request of the journal.
pub(super) struct Recorded {
    /// Its caller, if it was known.
    pub(super) principal: Option<Principal>,
    /// Claims of which the record does not tell what they were.
    pub(super) untold: Vec<String>,
    /// The agent's position, if it was for one that is still there.
    pub(super) agent: Option<usize>,
    /// What was asked for, if that was read.
    pub(super) asked: Option<Asked>,
    /// The skill, with where it was read and what that is worth.
    pub(super) skill: Option<(Option<String>, String, Option<String>)>,
    /// What was decided then, in one line.
    pub(super) then: String,
}

/// Finds a request.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn find(snapshot: &Snapshot, id: &str) -> Result<Recorded, u8> {
    let dir = &snapshot.audit.dir;
    let unreadable = |error: std::io::Error| {
        eprintln!(
            "error: the journal in `{}` cannot be read: {error}",
            dir.display()
        );
        exit::INVALID
    };
    for (place, line) in Reading::open(dir).map_err(unreadable)? {
        let record = match line {
            Line::Record(record) => record,
            Line::Fault(fault) => {
                eprintln!("warning: the journal, {place}: {fault}");
                continue;
            }
        };
        let kind = record["kind"].as_str();
        if record["request_id"] == id && matches!(kind, Some("intent" | "refusal")) {
            return Ok(read(snapshot, &record));
        }
    }
    eprintln!(
        "error: no request `{}` is in the journal",
        crate::cli::token::safe(id)
    );
    Err(exit::NO)
}

fn read(snapshot: &Snapshot, record: &Value) -> Recorded {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut untold = Vec::new();
    let caller = &record["caller"];
    let principal = principal(snapshot, caller, &mut untold);
    let agents = &snapshot.agents;
    let agent = record["agent"].as_str();
    let operation = record["operation"].as_str();
    let operation = Operation::ALL
        .into_iter()
        .find(|o| Some(o.name()) == operation);
    let asked = match (operation, record["surface"].as_str()) {
        (Some(operation), _) => Some(Asked::Operation(operation)),
        (None, Some("backend")) => Some(Asked::Backend),
        (None, _) => None,
    };
    let skill = record.get("skill").map(|skill| {
        let source = text(&skill["source"]).unwrap_or_default();
        (text(&skill["id"]), source, text(&skill["assurance"]))
    });
    let decision = &record["decision"];
    let word = |name: &str| decision[name].as_str().unwrap_or("-");
    Recorded {
        principal,
        untold,
        agent: agents.iter().position(|a| Some(&*a.name) == agent),
        asked,
        skill,
        then: format!(
            "{} ({}), rule {}, generation {}",
            word("effect"),
            word("reason"),
            word("rule"),
            record["generation"]
        ),
    }
}

fn principal(snapshot: &Snapshot, caller: &Value, untold: &mut Vec<String>) -> Option<Principal> {
    let name = caller["issuer"].as_str()?;
    let index = snapshot.issuers.iter().position(|i| *i.name == *name)?;
    let config = snapshot.issuers.get(index)?;
    let mut whole = |what: &str, value: &Value| -> Option<Box<str>> {
        let text = value.as_str()?;
        if text.ends_with('…') || is_hidden(text) {
            untold.push(what.to_owned());
        }
        Some(text.into())
    };
    let subject = whole("sub", &caller["subject"])?;
    let client = whole("client_id", &caller["client"]);
    let actors = caller["actors"].as_array().into_iter().flatten();
    let actors: Vec<Actor> = actors
        .filter_map(|actor| {
            Some(Actor {
                subject: whole("actor_sub", &actor["subject"])?,
                issuer: actor["issuer"].as_str().map(Box::from),
            })
        })
        .collect();
    let bound = Some([0; 32]);
    let confirmation = match caller["proof"].as_str() {
        Some("mtls") => Confirmation {
            certificate: bound,
            key: None,
        },
        Some("dpop") => Confirmation {
            certificate: None,
            key: bound,
        },
        Some(_) | None => Confirmation::default(),
    };
    let mut claims = Vec::new();
    for declared in &config.claims {
        let name = &*declared.name;
        let state = match caller["no_claims"][name].as_str() {
            Some("missing") => Some(ClaimState::Missing),
            Some("null") => Some(ClaimState::Null),
            Some("wrong_type") => Some(ClaimState::WrongType),
            Some(_) | None => state(declared.kind, &caller["claims"][name]),
        };
        if state.is_none() {
            untold.push(name.to_owned());
        }
        claims.push(state.unwrap_or(ClaimState::Missing));
    }
    let scopes = match state(ClaimKind::StringArray, &caller["scopes"]) {
        Some(ClaimState::Value(ClaimValue::Strings(scopes))) => scopes,
        Some(_) | None => {
            untold.push("scopes".to_owned());
            Vec::new()
        }
    };
    Some(Principal {
        issuer_index: index,
        issuer: Arc::from(name),
        subject,
        client,
        token_id: None,
        session: None,
        scopes,
        actors,
        grant: match caller["grant"].as_str() {
            Some("agent") => Some(Grant::Agent),
            Some("full") => Some(Grant::Full),
            Some(_) | None => None,
        },
        claims,
        expires: 0,
        not_before: None,
        issued: None,
        key: [0; 32],
        algorithm: config.rsa_alg,
        signing_input: [0; 32],
        confirmation,
    })
}

/// A recorded value; `None` where there is none, or a part of it only.
fn state(kind: ClaimKind, value: &Value) -> Option<ClaimState> {
    let whole = |text: &&str| !text.ends_with('…') && !text.starts_with('…') && !is_hidden(text);
    let value = match kind {
        ClaimKind::String => ClaimValue::String(value.as_str().filter(whole)?.into()),
        ClaimKind::Number => ClaimValue::Number(value.as_f64()?),
        ClaimKind::Boolean => ClaimValue::Boolean(value.as_bool()?),
        ClaimKind::StringArray | ClaimKind::SpaceString => {
            let items = value.as_array()?.iter();
            let texts = items.map(|item| item.as_str().filter(whole).map(Box::from));
            ClaimValue::Strings(texts.collect::<Option<_>>()?)
        }
    };
    Some(ClaimState::Value(value))
}

/// What must be given beside a request to know the call.
pub(super) fn call_of(recorded: &Recorded) -> Result<(usize, Asked), u8> {
    match (recorded.agent, recorded.asked) {
        (Some(agent), Some(asked)) => Ok((agent, asked)),
        (None, _) => Err(usage(
            "the request was for no agent that the gateway file has",
            "its record says what it was for",
        )),
        (_, None) => Err(usage(
            "the request was refused before its operation was read",
            "its record says why, under `decision.reason`",
        )),
    }
}
