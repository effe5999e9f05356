//! Every field of every kind of record: what it means, when it is there, and whether it says
//! something about a person. The first two come from the schema, the last from a table here that
//! must name every field.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A field of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// What stands there.
    pub form: String,
    /// What it means.
    pub meaning: String,
    /// The kinds of record that may have it; empty for all.
    pub kinds: Vec<String>,
    /// Whether each record of these kinds has it, where it has what is around it.
    pub always: bool,
}

/// What a field says about a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Personal {
    /// Nothing.
    No,
    /// Who it is; `audit.redact.subjects` hides it.
    Subject,
    /// An id that others may be able to connect with somebody; `audit.redact.ids` hides it.
    Id,
    /// The address of a device; `audit.redact.addresses` hides or shortens it.
    Address,
    /// Connected with somebody only by who has the issuer's or agent's own data, or by the key of
    /// fingerprints; nothing hides it.
    Indirect,
    /// It depends on what is configured or on what an operator does; nothing hides it, but what
    /// equals the caller's subject, client or actor is hidden with them.
    Depends,
}

impl Personal {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Personal::No => ("no", ""),
            Personal::Subject => ("yes", "`subjects`"),
            Personal::Id => ("indirectly", "`ids`"),
            Personal::Address => ("yes", "`addresses`"),
            Personal::Indirect => ("indirectly", ""),
            Personal::Depends => ("depends", ""),
        }
    }
}

/// Fields that say something about a person.
const PERSONAL: &[(&str, Personal)] = &[
    ("source.addr", Personal::Address),
    ("source.certificate", Personal::Indirect),
    ("caller", Personal::Subject),
    ("caller.subject", Personal::Subject),
    ("caller.client", Personal::Subject),
    ("caller.actors", Personal::Subject),
    ("caller.actors[].subject", Personal::Subject),
    ("caller.fingerprint", Personal::Indirect),
    ("caller.scopes", Personal::Depends),
    ("caller.claims", Personal::Depends),
    ("tenant", Personal::Depends),
    ("message_id", Personal::Id),
    ("task_id", Personal::Id),
    ("context_id", Personal::Id),
    ("reference_task_ids", Personal::Id),
    ("push_config_id", Personal::Id),
    ("webhook_hosts", Personal::Depends),
    ("request.path", Personal::Id),
    ("request.sha256", Personal::Indirect),
    ("request.forwarded.sha256", Personal::Indirect),
    ("artifacts", Personal::Id),
    ("artifacts[].id", Personal::Id),
    ("artifacts[].name", Personal::Depends),
    ("detail", Personal::Depends),
];

/// Fields that say nothing about a person.
const IMPERSONAL: &[&str] = &[
    "v",
    "seq",
    "prev",
    "kind",
    "time",
    "instance",
    "generation",
    "policy_digest",
    "request_id",
    "trace_id",
    "source",
    "source.listener",
    "caller.issuer",
    "caller.actors[].issuer",
    "caller.grant",
    "caller.proof",
    "caller.no_claims",
    "agent",
    "surface",
    "binding",
    "version",
    "operation",
    "skill",
    "skill.id",
    "skill.source",
    "skill.assurance",
    "extensions",
    "declared_extensions",
    "decision",
    "decision.effect",
    "decision.reason",
    "decision.rule",
    "decision.near",
    "decision.near.rule",
    "decision.near.claim",
    "decision.near.content",
    "decision.near.why",
    "decision.shadow",
    "decision.shadow[].rule",
    "decision.shadow[].effect",
    "decision.shadow[].result",
    "decision.shadow[].would",
    "request",
    "request.method",
    "request.bytes",
    "request.forwarded",
    "request.forwarded.bytes",
    "intent",
    "delivery",
    "reached",
    "attempts",
    "attempts[].peer",
    "attempts[].reused",
    "attempts[].started_ms",
    "attempts[].ms",
    "attempts[].stage",
    "attempts[].bytes_sent",
    "attempts[].body_len",
    "attempts[].error",
    "attempts[].tcp",
    "attempts[].tcp.state",
    "attempts[].tcp.bytes_sent",
    "attempts[].tcp.bytes_acked",
    "attempts[].tcp.notsent",
    "response",
    "response.http_status",
    "response.grpc_status",
    "response.rpc_code",
    "response.kind",
    "response.states",
    "response.extensions",
    "response.bytes",
    "response.events",
    "response.judged",
    "response.malformed",
    "response.ended_by_close",
    "artifacts[].media_types",
    "artifacts[].bytes",
    "ended",
    "ms",
    "ms.total",
    "ms.to_response",
    "ms.overhead",
    "http_status",
    "fault",
    "token_reason",
    "error",
    "since",
    "count",
    "reasons",
    "purpose",
    "target",
    "path",
    "bytes",
    "sha256",
    "result",
    "trigger",
    "problems",
    "before",
    "after",
    "published",
    "signature",
    "skills_unlisted",
    "skills_vanished",
    "dropped",
    "journal",
    "size",
    "chain_head",
    "key_id",
    "note",
    "torn_bytes",
    "open_intents",
    "lost",
    "oldest_open",
    "added",
    "codes",
    "files",
    "files[].bytes",
    "files[].name",
    "files[].not_kept",
    "files[].role",
    "files[].sha256",
    "issuer",
    "more_files",
    "removed",
    "unclosed",
    "unclosed.instance",
    "unclosed.seq",
    "unclosed.time",
];

/// What a field says about a person; `None` for one that nobody has thought about.
pub fn personal(path: &str) -> Option<Personal> {
    let known = PERSONAL.iter().find(|(known, _)| *known == path);
    let impersonal = IMPERSONAL.contains(&path).then_some(Personal::No);
    known.map(|(_, personal)| *personal).or(impersonal)
}

/// The fields of a schema of records, by their paths: dots lead into objects, `[]` into lists.
pub fn paths(schema: &Value) -> BTreeMap<String, Field> {
    ordered(schema).into_iter().collect()
}

fn ordered(schema: &Value) -> Vec<(String, Field)> {
    let mut found = Vec::new();
    members(schema, "", &[], &mut found);
    let kinds = schema.get("oneOf").and_then(Value::as_array);
    for kind in kinds.into_iter().flatten() {
        let name = kind["properties"]["kind"]["const"].as_str();
        members(kind, "", &[name.unwrap_or_default()], &mut found);
    }
    let all = kinds.map_or(0, Vec::len);
    for (path, field) in &mut found {
        // What each kind has is not listed by kinds.
        if field.kinds.len() == all {
            field.kinds.clear();
        }
        if path == "kind" {
            field.meaning = "What the record is about.".into();
            field.form = "text".into();
        }
    }
    found
}

fn members(schema: &Value, above: &str, kinds: &[&str], found: &mut Vec<(String, Field)>) {
    let required = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|all| all.iter().any(|one| one == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let path = format!("{above}{name}");
        let always = required(name);
        match found.iter_mut().find(|(known, _)| *known == path) {
            Some((_, field)) => {
                field.kinds.extend(kinds.iter().map(|&kind| kind.into()));
                field.always &= always;
                let said = words(property);
                if !field.meaning.contains(&said) {
                    let _ = write!(field.meaning, " / {said}");
                }
            }
            None => found.push((
                path.clone(),
                Field {
                    form: form(property),
                    meaning: words(property),
                    kinds: kinds.iter().map(|&kind| kind.into()).collect(),
                    always,
                },
            )),
        }
        members(property, &format!("{path}."), kinds, found);
        if let Some(items) = property.get("items") {
            members(items, &format!("{path}[]."), kinds, found);
        }
    }
}

fn words(property: &Value) -> String {
    let text = property.get("description").and_then(Value::as_str);
    let mut text = text.unwrap_or_default().replace('\n', " ");
    let values: Vec<&str> = match (property.get("enum"), property.get("oneOf")) {
        (Some(Value::Array(values)), _) => values.iter().filter_map(Value::as_str).collect(),
        (_, Some(Value::Array(options))) => options
            .iter()
            .filter_map(|option| option.get("const").and_then(Value::as_str))
            .collect(),
        _ => Vec::new(),
    };
    if !values.is_empty() {
        let _ = write!(text, " One of `{}`.", values.join("`, `"));
    }
    text
}

fn form(property: &Value) -> String {
    let has = |name: &str, value: &str| property.get(name).is_some_and(|v| v == value);
    if has("format", "date-time") {
        return "time".into();
    }
    let of = |pattern: &str| property.get("pattern").is_some_and(|p| p == pattern);
    if of("^[0-9a-f]{64}$") {
        return "SHA-256, hex".into();
    }
    let named = match property.get("type") {
        Some(Value::String(name)) => Some(name.as_str()),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|n| *n != "null"),
        _ => None,
    };
    match named {
        Some("string") => "text".into(),
        Some("integer") => "whole number".into(),
        Some("number") => "number".into(),
        Some("boolean") => "true or false".into(),
        Some("array") => {
            let items = property.get("items").map(form).unwrap_or_default();
            format!("list of {items}")
        }
        Some("object") if property.get("additionalProperties").is_some() => "object by name".into(),
        Some("object") => "object".into(),
        _ if property.get("oneOf").is_some() => "text".into(),
        _ => "object".into(),
    }
}

/// The fields as a page for operators and auditors, in Markdown.
pub fn page(schema: &Value) -> String {
    let mut out = String::from(
        "# Fields of the journal\n\n\
         One line of the journal is one JSON object, a *record*. This page is made from the types of\n\
         records and compared with them in tests; `record.schema.json` has the same as a JSON Schema.\n\
         Times are RFC 3339 in UTC, durations are milliseconds.\n\n\
         *Always*: each record of these kinds has it, where it has the object around it.\n\
         *Personal*: whether it says something about a person, and which member of `audit.redact` hides\n\
         it. *Indirectly*: only for who has other data of the issuer or the agent. *Depends*: on what is\n\
         configured, or on what an operator does. Texts of messages, tokens and secrets are in no field.\n\n\
         | Field | Form | Kinds | Always | Personal | Hidden by | Meaning |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (path, field) in ordered(schema) {
        let (personal, by) = personal(&path).unwrap_or(Personal::No).words();
        let kinds = match field.kinds.is_empty() {
            true => "all".to_owned(),
            false => format!("`{}`", field.kinds.join("`, `")),
        };
        let always = if field.always { "yes" } else { "no" };
        let meaning = field.meaning.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{path}` | {} | {kinds} | {always} | {personal} | {by} | {meaning} |",
            field.form
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::record::schema;

    #[test]
    fn somebody_has_thought_about_every_field() {
        let paths = paths(&schema());
        let missing: Vec<_> = paths
            .keys()
            .filter(|path| personal(path).is_none())
            .collect();
        assert!(
            missing.is_empty(),
            "say in PERSONAL or IMPERSONAL what they say about a person: {missing:#?}"
        );
        let listed = PERSONAL
            .iter()
            .map(|(path, _)| *path)
            .chain(IMPERSONAL.iter().copied());
        let mut listed: Vec<_> = listed.collect();
        for path in &listed {
            assert!(paths.contains_key(*path), "{path} is no field");
        }
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), paths.len(), "a field is listed twice");
    }

    #[test]
    fn every_field_says_what_it_means() {
        let paths = paths(&schema());
        for (path, field) in &paths {
            assert!(field.meaning.len() > 3, "{path} has no doc comment");
        }
        let (trace, prev) = (&paths["trace_id"], &paths["prev"]);
        assert_eq!(trace.kinds, ["intent", "refusal"]);
        assert!(trace.always && prev.always && prev.kinds.is_empty());
        assert_eq!(paths["attempts[].peer"].kinds, ["outcome"]);
    }
}
