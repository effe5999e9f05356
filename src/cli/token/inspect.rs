//! `portcullis token inspect`: what a token says, for operators on their own machine.

use super::show::{Moment, Shown, moments, pretty, safe, take_apart};
use super::{Trouble, gateway, warn};
use crate::a2a::strict_json::Value;
use crate::adapters::clock::SystemClock;
use crate::adapters::fetch::keys::{KeyFetcher, Look};
use crate::adapters::random::SystemRandom;
use crate::adapters::resolver::SystemResolver;
use crate::adapters::revocation_file::RevocationFile;
use crate::cli::exit;
use crate::config::snapshot::Snapshot;
use crate::identity::issuer::{Grant, IssuerConfig, KeyOrigin, RemoteKeys};
use crate::identity::keys::{Fixed, KeySet};
use crate::identity::{Finding, Issuers, KeySource, Principal, TokenFault, accept, explain};
use crate::pipeline::RequestId;
use crate::pipeline::issuer_keys::KeyFetchFault;
use crate::pipeline::ports::Clock;
use crate::pipeline::revocations::Revocations;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Which token.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The token; `-` or nothing reads it from standard input, which keeps it out of the shell's
    /// history
    #[arg(value_name = "TOKEN")]
    // More than one is taken here and refused by us: the parser's own message would show it.
    token: Vec<String>,
    /// Say whether the gateway with this file would accept it, and why not
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Longest input in bytes, far above what any gateway takes (TR-6).
pub(in crate::cli) const MAX_INPUT: u64 = 65_536;

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    let text = match &arguments.token[..] {
        [] => from_input()?,
        [dash] if dash == "-" => from_input()?,
        [token] => {
            warn(
                "a token on the command line stays in the shell's history; pipe it into `portcullis token inspect` instead",
            );
            token.clone()
        }
        _ => {
            return Err(Trouble::usage(
                "more than one token was given",
                "give one, or pipe it into `portcullis token inspect`",
            ));
        }
    };
    let token = bare(&text);
    let now = i64::try_from(SystemClock::new().now() / 1000).unwrap_or(i64::MAX);
    let shown = take_apart(token);
    let Some(config) = &arguments.config else {
        let shown = shown.map_err(|what| Trouble {
            what,
            help: "give a signed token as it stands behind `Bearer` in the request".to_owned(),
            exit: exit::NO,
        })?;
        print(arguments.json, Some(shown), now, None);
        return Ok(exit::YES);
    };
    let shown = shown.ok();
    let snapshot = gateway(config)?;
    let added = match &snapshot.revocation.state {
        Some(state) => RevocationFile::look(state).map_err(|error| Trouble {
            what: error.to_string(),
            help: "run this as the user of the gateway".to_owned(),
            exit: exit::INVALID,
        })?,
        None => Vec::new(),
    };
    let revoked = Revocations::new(&snapshot, added);
    let verdict = Verdict::of(&snapshot, &revoked, token, shown.as_ref(), now);
    let accepted = verdict.accepted.is_some();
    print(arguments.json, shown, now, Some(verdict));
    Ok(if accepted { exit::YES } else { exit::NO })
}

/// Whose a token is, by all that a gateway with this configuration judges it by, but for asking its
/// issuer; or the rule that refuses it.
///
/// # Errors
/// What is revoked cannot be read.
pub(in crate::cli) fn whose(
    snapshot: &Snapshot,
    text: &str,
) -> Result<Result<Principal, TokenFault>, String> {
    let token = bare(text);
    let now = i64::try_from(SystemClock::new().now() / 1000).unwrap_or(i64::MAX);
    let shown = take_apart(token).ok();
    let iss = shown
        .as_ref()
        .and_then(|shown| shown.payload.get("iss")?.as_str());
    let issuers = &snapshot.issuers;
    let compiled = Issuers::with_keys(issuers, issuers.iter().map(|entry| keys(entry, iss)));
    let principal = match accept(&compiled, token, now) {
        Ok(principal) => principal,
        Err(refused) => return Ok(Err(refused.fault)),
    };
    let added = match &snapshot.revocation.state {
        Some(state) => RevocationFile::look(state).map_err(|error| error.to_string())?,
        None => Vec::new(),
    };
    let revoked = Revocations::new(snapshot, added).judge(&principal, now);
    Ok(revoked.map(|()| principal))
}

/// The keys of an entry as the gateway would have them now. Only the issuer that the token names
/// is asked.
fn keys(entry: &IssuerConfig, iss: Option<&str>) -> Arc<dyn KeySource> {
    let read = |document: &[u8]| KeySet::parse(document, entry.rsa_alg).map(|(set, _)| set);
    let set = match &entry.keys {
        KeyOrigin::File(file) => read(&file.content).ok(),
        KeyOrigin::Remote(remote) if iss == Some(&*entry.issuer) => {
            let set = looked(remote).keys;
            let set = set.and_then(|set| read(&set.body).map_err(KeyFetchFault::KeySet));
            set.map_err(|fault| warn(format_args!("the keys of `{}`: {fault}", entry.name)))
                .ok()
        }
        KeyOrigin::Remote(_) => None,
    };
    Arc::new(Fixed(set.map(Arc::new)))
}

/// One fetch, by the rules of a running gateway.
pub(super) fn looked(remote: &RemoteKeys) -> Look {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Look {
            keys: Err(KeyFetchFault::Abandoned),
            metadata: None,
        };
    };
    let id = RequestId::new(&SystemClock::new(), &SystemRandom);
    let fetcher = KeyFetcher::new(Arc::new(SystemResolver));
    runtime.block_on(fetcher.look(remote, id))
}

/// What the gateway would say.
struct Verdict {
    /// Whether it is accepted, and with which grant.
    accepted: Option<Option<Grant>>,
    findings: Vec<Finding>,
    /// The entry that the token's `iss` names, when it is one for development.
    development: Option<Box<str>>,
}

impl Verdict {
    fn of(
        snapshot: &Snapshot,
        revoked: &Revocations,
        token: &str,
        shown: Option<&Shown>,
        now: i64,
    ) -> Verdict {
        let issuers = &snapshot.issuers;
        let iss = shown.and_then(|shown| shown.payload.get("iss")?.as_str());
        let compiled = Issuers::with_keys(issuers, issuers.iter().map(|entry| keys(entry, iss)));
        let entry = issuers.iter().find(|entry| Some(&*entry.issuer) == iss);
        // The gateway's own judgement decides; the explanation only says why.
        let accepted = accept(&compiled, token, now).ok();
        let of_denylist = accepted.as_ref().and_then(|p| revoked.explain(p, now));
        let mut findings = explain(&compiled, token, now);
        let accepted = accepted.filter(|_| of_denylist.is_none());
        if let Some(principal) = &accepted
            && let Some(Some(asked)) = snapshot.introspection.get(principal.issuer_index)
        {
            findings.push(Finding {
                rule: "RV-3",
                refuses: false,
                text: format!(
                    "the gateway would also ask `{}`, which was not done here, and refuse it unless the answer is yes",
                    asked.url
                ),
            });
        }
        findings.extend(of_denylist);
        Verdict {
            accepted: accepted.map(|principal| principal.grant),
            findings,
            development: entry.filter(|e| e.development).map(|e| e.name.clone()),
        }
    }

    /// A token may be refused although its signature is good.
    fn verified(&self) -> bool {
        self.findings.iter().any(|f| f.rule == "KY-1" && !f.refuses)
    }

    fn as_text(&self) -> String {
        let mut text = String::from(match self.accepted {
            Some(Some(_)) => "\nthe gateway would accept it\n",
            Some(None) => {
                "\nthe gateway would accept it, and refuse every request: it has no grant\n"
            }
            None => "\nthe gateway would refuse it\n",
        });
        // What refuses comes first: it is what the reader came for.
        for refuses in [true, false] {
            for finding in self.findings.iter().filter(|f| f.refuses == refuses) {
                let mark = if refuses { "refused by " } else { "" };
                text.push_str(&format!(
                    "  {mark}{}: {}\n",
                    finding.rule,
                    safe(&finding.text)
                ));
            }
        }
        if let Some(name) = &self.development {
            text.push_str(&format!(
                "  note: issuer entry `{name}` is a development issuer\n"
            ));
        }
        text
    }

    fn as_json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            Value::Object(vec![
                ("rule".into(), Value::String(finding.rule.into())),
                ("refuses".into(), Value::Bool(finding.refuses)),
                ("text".into(), Value::String(finding.text.as_str().into())),
            ])
        });
        let grant = match self.accepted.flatten() {
            Some(Grant::Agent) => Value::String("agent".into()),
            Some(Grant::Full) => Value::String("full".into()),
            None => Value::Null,
        };
        Value::Object(vec![
            ("accepted".into(), Value::Bool(self.accepted.is_some())),
            ("grant".into(), grant),
            (
                "development".into(),
                Value::Bool(self.development.is_some()),
            ),
            ("findings".into(), Value::Array(findings.collect())),
        ])
    }
}

fn print(json: bool, shown: Option<Shown>, now: i64, verdict: Option<Verdict>) {
    let moments = shown
        .as_ref()
        .map(|shown| moments(&shown.payload, now))
        .unwrap_or_default();
    if json {
        println!("{}", as_json(shown, moments, verdict.as_ref()));
        return;
    }
    let verified = verdict.as_ref().is_some_and(Verdict::verified);
    println!(
        "signature {}",
        if verified { "verified" } else { "not verified" }
    );
    if let Some(shown) = &shown {
        print!("{}", as_text(shown, &moments));
    }
    if let Some(verdict) = &verdict {
        print!("{}", verdict.as_text());
    }
}

pub(super) fn from_input() -> Result<String, Trouble> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        eprintln!("paste the token, then press Enter and Ctrl-D");
    }
    let mut bytes = Vec::new();
    let read = input.by_ref().take(MAX_INPUT + 1).read_to_end(&mut bytes);
    let wrong =
        |what: String| Trouble::usage(what, "pipe one token into `portcullis token inspect`");
    read.map_err(|error| wrong(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(wrong("standard input is too long for a token".to_owned()));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| wrong("standard input is not text".to_owned()))?;
    if text.trim_ascii().is_empty() {
        return Err(wrong("there is no token on standard input".to_owned()));
    }
    Ok(text)
}

/// The token alone, without the scheme that often comes along when a header is copied.
pub(super) fn bare(text: &str) -> &str {
    let text = text.trim_ascii();
    match text.split_once(' ') {
        Some((scheme, token))
            if ["bearer", "dpop"]
                .iter()
                .any(|s| scheme.eq_ignore_ascii_case(s)) =>
        {
            token.trim_ascii()
        }
        _ => text,
    }
}

fn as_text(shown: &Shown, moments: &[Moment]) -> String {
    let mut text = String::new();
    for (name, part) in [("header", &shown.header), ("payload", &shown.payload)] {
        text.push_str(&format!("\n{name}\n  {}\n", pretty(part, 2)));
    }
    if !moments.is_empty() {
        text.push_str("\ntimes\n");
    }
    for moment in moments {
        let at = moment.at.as_deref().unwrap_or("-");
        text.push_str(&format!(
            "  {:<9}  {at:<20}  {}\n",
            moment.claim, moment.words
        ));
    }
    text
}

fn as_json(shown: Option<Shown>, moments: Vec<Moment>, verdict: Option<&Verdict>) -> String {
    let text = |text: &str| Value::String(text.into());
    let times = moments.into_iter().map(|moment| {
        let at = moment.at.as_deref().map_or(Value::Null, text);
        let members = vec![("at".into(), at), ("words".into(), text(&moment.words))];
        (Box::from(moment.claim), Value::Object(members))
    });
    let verified = verdict.is_some_and(Verdict::verified);
    let signature = if verified { "verified" } else { "not_verified" };
    let mut whole = vec![("signature".into(), text(signature))];
    if let Some(shown) = shown {
        whole.push(("header".into(), shown.header));
        whole.push(("payload".into(), shown.payload));
        whole.push(("times".into(), Value::Object(times.collect())));
    }
    whole.extend(verdict.map(|verdict| ("gateway".into(), verdict.as_json())));
    pretty(&Value::Object(whole), 0)
}
