//! The fields that conditions and columns name: those of the record's schema, and short names for
//! the usual ones.

use crate::audit::fields::{Personal, personal};
use crate::audit::record;
use crate::audit::redact::hidden::Class;
use crate::audit::redact::{TEXT, cut};
use crate::source::quantity::suggest;
use serde_json::Value;
use std::collections::BTreeMap;

/// Short names, each with the field that it stands for and what that is.
pub const SHORT: [(&str, &str, &str); 27] = [
    ("agent", "agent", "the agent's configured name"),
    ("caller", "caller.subject", "who called: the token's `sub`"),
    ("subject", "caller.subject", "the same"),
    ("client", "caller.client", "by which client"),
    ("issuer", "caller.issuer", "the issuer's configured name"),
    ("grant", "caller.grant", "the token's grant"),
    (
        "fingerprint",
        "caller.fingerprint",
        "which token (`audit hash --token`)",
    ),
    ("skill", "skill.id", "the skill"),
    ("operation", "operation", "by its 1.0 name"),
    ("binding", "binding", "jsonrpc, rest or grpc"),
    ("version", "version", "0.3 or 1.0"),
    ("effect", "decision.effect", "allow or deny"),
    ("reason", "decision.reason", "why"),
    ("rule", "decision.rule", "the deciding rule"),
    (
        "near",
        "decision.near.rule",
        "for a refusal, the nearest rule",
    ),
    ("delivery", "delivery", "how far it got"),
    ("reached", "reached", "no, maybe or yes"),
    ("ended", "ended", "how the exchange ended"),
    (
        "state",
        "response.states",
        "a task state that the reply went through",
    ),
    ("request", "request_id", "the request's id"),
    ("trace", "trace_id", "the trace's id"),
    (
        "task",
        "task_id",
        "the task that the call or its reply names",
    ),
    ("context", "context_id", "the context likewise"),
    ("message", "message_id", "the message's id"),
    ("instance", "instance", "the gateway process"),
    ("digest", "policy_digest", "the configuration in force"),
    ("kind", "kind", "the record's kind"),
];

/// Names that no record spells so.
const MADE: [(&str, From, &str); 3] = [
    (
        "source",
        From::Address,
        "the address that the call came from",
    ),
    ("day", From::Day, "the day, 2026-05-31"),
    ("hour", From::Hour, "the hour, 2026-05-31T14"),
];

/// Fields of every call's first record that its outcome repeats, or has for itself.
const OF_FIRST: [&str; 11] = [
    "v",
    "seq",
    "prev",
    "kind",
    "time",
    "instance",
    "generation",
    "policy_digest",
    "agent",
    "operation",
    "request_id",
];

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As it was asked for.
    pub name: Box<str>,
    /// Where its values come from.
    pub from: From,
    /// What its values are.
    pub shape: Shape,
    /// Which record of a call has it.
    pub side: Side,
    /// Its values stand in an array, without a name of their own.
    many: bool,
}

/// Where a field's values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// The members of this path, through arrays.
    Path(Box<str>),
    /// The claim of this name, which may have no value or not be recorded.
    Claim(Box<str>),
    /// The address of `source.addr`, without the port.
    Address,
    /// The day of `time`.
    Day,
    /// The hour of `time`.
    Hour,
}

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// What a claim is.
    Any,
}

/// Which record of a call has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The intent or the refusal.
    First,
    /// The outcome.
    Outcome,
    /// One of the two, or both.
    Either,
    /// None: it is of other records.
    Elsewhere,
}

/// The fields that there are.
#[derive(Debug)]
pub struct Fields(BTreeMap<String, Known>);

#[derive(Debug, Clone, Copy)]
struct Known {
    shape: Shape,
    many: bool,
    /// In intents or refusals.
    first: bool,
    outcome: bool,
}

impl Fields {
    /// Those of the record's schema.
    pub fn new() -> Fields {
        let schema = record::schema();
        let mut fields = Fields(BTreeMap::new());
        let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        for variant in variants.into_iter().flatten() {
            let kind = variant["properties"]["kind"]["const"].as_str();
            let first = matches!(kind, Some("intent" | "refusal"));
            let outcome = kind == Some("outcome");
            fields.collect(&schema, variant, "", false, (first, outcome));
        }
        fields.collect(
            &schema,
            &schema["properties"].clone(),
            "",
            false,
            (true, true),
        );
        for (name, _) in schema["properties"].as_object().into_iter().flatten() {
            let node = &schema["properties"][name];
            fields.collect(&schema, node, name, false, (true, true));
        }
        fields
    }

    fn collect(&mut self, root: &Value, node: &Value, path: &str, many: bool, of: (bool, bool)) {
        if let Some(name) = node["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap_or_default();
            return self.collect(root, &root["definitions"][name], path, many, of);
        }
        for (name, member) in node["properties"].as_object().into_iter().flatten() {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            self.collect(root, member, &path, false, of);
        }
        if node["items"].is_object() {
            return self.collect(root, &node["items"], path, true, of);
        }
        for choice in ["oneOf", "anyOf"] {
            for choice in node[choice].as_array().into_iter().flatten() {
                self.collect(root, choice, path, many, of);
            }
        }
        if node["additionalProperties"].is_object() {
            return self.know(&format!("{path}.*"), Shape::Any, many, of);
        }
        let types = &node["type"];
        let is = |name: &str| {
            let among = |types: &Vec<Value>| types.iter().any(|kind| kind == name);
            types == name || types.as_array().is_some_and(among)
        };
        let shape = [
            ("string", Shape::Text),
            ("number", Shape::Number),
            ("integer", Shape::Number),
            ("boolean", Shape::Flag),
        ];
        if let Some((_, shape)) = shape.into_iter().find(|(name, _)| is(name)) {
            self.know(path, shape, many, of);
        }
    }

    fn know(&mut self, path: &str, shape: Shape, many: bool, (first, outcome): (bool, bool)) {
        if path.is_empty() {
            return;
        }
        let known = self.0.entry(path.to_owned()).or_insert(Known {
            shape,
            many,
            first,
            outcome,
        });
        known.first |= first;
        known.outcome |= outcome;
    }

    /// Every name that [`Fields::find`] knows, short ones first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let short = SHORT.iter().map(|(name, ..)| *name);
        let made = MADE.iter().map(|(name, ..)| *name);
        short.chain(made).chain(self.0.keys().map(String::as_str))
    }

    /// Short names with what they are, for help.
    pub fn short() -> impl Iterator<Item = (&'static str, &'static str)> {
        let short = SHORT.iter().map(|(name, _, what)| (*name, *what));
        short.chain(MADE.iter().map(|(name, _, what)| (*name, *what)))
    }

    /// The field of a short or full name.
    ///
    /// # Errors
    /// There is none, in words for whoever wrote it.
    pub fn find(&self, name: &str) -> Result<Field, String> {
        if let Some((_, from, _)) = MADE.iter().find(|(made, ..)| *made == name) {
            return Ok(Field {
                name: name.into(),
                from: from.clone(),
                shape: Shape::Text,
                side: Side::First,
                many: false,
            });
        }
        let full = SHORT.iter().find(|(short, ..)| *short == name);
        let full = full.map_or(name, |(_, full, _)| full);
        let claim = full.strip_prefix("caller.").unwrap_or(full);
        if let Some(claim) = claim
            .strip_prefix("claims.")
            .filter(|claim| !claim.is_empty())
        {
            return Ok(Field {
                name: name.into(),
                from: From::Claim(claim.into()),
                shape: Shape::Any,
                side: Side::First,
                many: false,
            });
        }
        let open = full.rsplit_once('.').map(|(group, _)| format!("{group}.*"));
        let known = self.0.get(full).or_else(|| self.0.get(&open?));
        match known.filter(|_| !full.ends_with('*')) {
            Some(known) => Ok(Field {
                name: name.into(),
                from: From::Path(full.into()),
                shape: known.shape,
                side: side(full, *known),
                many: known.many,
            }),
            None => Err(self.unknown(full)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let shown = cut(name, TEXT);
        let below = |group: &str| {
            let group = format!("{group}.");
            let members = self.0.keys().filter(|path| path.starts_with(&group));
            members.cloned().collect::<Vec<_>>().join(", ")
        };
        let members = below(name);
        if !members.is_empty() {
            return format!("`{shown}` has members; name one: {members}");
        }
        let unknown = format!("there is no field `{shown}`");
        let siblings = name.rsplit_once('.').map(|(group, _)| below(group));
        match (suggest(name, self.names()), siblings) {
            (Some(meant), _) => format!("{unknown}; did you mean `{meant}`?"),
            (None, Some(siblings)) if !siblings.is_empty() => {
                format!("{unknown}; beside it are {siblings}")
            }
            (None, _) => format!("{unknown}; `portcullis schema record` has them all"),
        }
    }
}

impl Default for Fields {
    fn default() -> Fields {
        Fields::new()
    }
}

fn side(path: &str, known: Known) -> Side {
    match (known.first, known.outcome) {
        _ if OF_FIRST.contains(&path) => Side::First,
        (true, false) => Side::First,
        (true, true) => Side::Either,
        (false, true) => Side::Outcome,
        (false, false) => Side::Elsewhere,
    }
}

impl Field {
    /// What its values are to `audit.redact`, which may have them written as tokens.
    pub fn class(&self) -> Option<Class> {
        let path = match &self.from {
            From::Address => return Some(Class::Address),
            // One that equals the caller's subject, client or actor is hidden with them.
            From::Claim(_) => return Some(Class::Subject),
            From::Day | From::Hour => return None,
            // As the page of fields spells them.
            From::Path(path) => path
                .replace("actors.", "actors[].")
                .replace("artifacts.", "artifacts[]."),
        };
        match personal(&path)? {
            Personal::Subject => Some(Class::Subject),
            // A path is hidden piece by piece.
            Personal::Id if path != "request.path" => Some(Class::Id),
            // With its port it is no address.
            Personal::Id | Personal::Address => None,
            Personal::No | Personal::Indirect | Personal::Depends => None,
        }
    }

    /// Whether calls have it.
    pub fn of_calls(&self) -> bool {
        self.side != Side::Elsewhere
    }

    /// What bytes a record has one of when the field is one of `texts`; `None` where that
    /// cannot be said.
    pub(super) fn needles(&self, texts: &[Box<str>]) -> Option<Vec<Vec<u8>>> {
        if texts.is_empty() {
            return None;
        }
        let json = |text: &str| serde_json::to_string(text).ok();
        let prefixed = |key: &str, text: &str| {
            let json = json(text)?;
            // Without its last quote: what follows is not known.
            Some(format!("\"{key}\":{}", json.get(..json.len() - 1)?).into_bytes())
        };
        let mut needles = Vec::new();
        for text in texts {
            match &self.from {
                From::Claim(_) => return None,
                From::Day | From::Hour => needles.push(prefixed("time", text)?),
                From::Address => {
                    needles.push(prefixed("addr", text)?);
                    needles.push(prefixed("addr", &format!("[{text}]"))?);
                }
                From::Path(path) => match (self.shape, self.many) {
                    (Shape::Text, true) => needles.push(json(text)?.into_bytes()),
                    (Shape::Text, false) => {
                        let key = path.rsplit('.').next().unwrap_or(path);
                        needles.push(format!("\"{key}\":{}", json(text)?).into_bytes());
                    }
                    // One number has several spellings.
                    (Shape::Number | Shape::Flag | Shape::Any, _) => return None,
                },
            }
        }
        Some(needles)
    }
}
