//! Names that a policy may use, resolved against the configuration, with a way out for each that
//! does not exist.

use super::condition::{Reserved, Source};
use super::index::{Operations, RuleIssuers};
use crate::a2a::{Operation, OperationGroup, wire};
use crate::identity::issuer::{ClaimKind, IssuerConfig, RESERVED_CLAIMS};
use crate::source::quantity::suggest;
use crate::source::tree::clip;
use crate::source::{Value, codes};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What rules may be about, in the order of the configuration.
#[derive(Debug, Default)]
pub struct World<'a> {
    /// The agents.
    pub agents: Vec<AgentFacts<'a>>,
    /// The issuers.
    pub issuers: &'a [Arc<IssuerConfig>],
    /// Whether the gateway file had no error. If it had, names may be missing here that are not
    /// missing there, and nothing is said about those.
    pub complete: bool,
}

/// What rules need to know about an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its declared skills.
    pub skills: &'a [Box<str>],
    /// Whether it has declared paths of the backend surface.
    pub has_backend_paths: bool,
}

const GROUPS: [(&str, OperationGroup); 5] = [
    ("messages", OperationGroup::Messages),
    ("tasks", OperationGroup::Tasks),
    ("list", OperationGroup::List),
    ("push", OperationGroup::Push),
    ("card", OperationGroup::Card),
];

/// RPC names of 0.3 that are neither its JSON-RPC methods nor names of 1.0.
const OLD_RPC_NAMES: [(&str, Operation); 3] = [
    ("TaskSubscription", Operation::SubscribeToTask),
    (
        "ListTaskPushNotificationConfig",
        Operation::ListTaskPushNotificationConfigs,
    ),
    ("GetAgentCard", Operation::GetExtendedAgentCard),
];

/// All operations of a group.
pub(super) fn group(group: OperationGroup) -> Operations {
    Operation::ALL
        .into_iter()
        .filter(|o| o.group() == group)
        .fold(Operations::default(), |all, o| all.with(Operations::of(o)))
}

/// Every group, with its operations.
pub(super) fn groups() -> impl Iterator<Item = (&'static str, Vec<Operation>)> {
    GROUPS.into_iter().map(|(name, group)| {
        let all = Operation::ALL.into_iter();
        (name, all.filter(|o| o.group() == group).collect())
    })
}

/// What may stand in a list of operations.
pub(super) fn operation_names() -> impl Iterator<Item = &'static str> {
    let groups = GROUPS.iter().map(|(name, _)| *name);
    let all = groups.chain(Operation::ALL.into_iter().map(Operation::name));
    all.chain(["backend"])
}

/// An operation, a group, or `backend`.
pub(super) fn operations(value: &Value<'_, '_>, name: &str) -> Option<Operations> {
    if name == "backend" {
        return Some(Operations::BACKEND);
    }
    if let Some((_, found)) = GROUPS.iter().find(|(n, _)| *n == name) {
        return Some(group(*found));
    }
    if let Some(operation) = Operation::ALL.into_iter().find(|o| o.name() == name) {
        return Some(Operations::of(operation));
    }
    let old = OLD_RPC_NAMES.iter().find(|(n, _)| *n == name);
    let old = old
        .map(|(_, operation)| *operation)
        .or_else(|| Some(wire::json_rpc(name)?.operation));
    if let Some(operation) = old {
        value.error(
            codes::OLD_OPERATION,
            format!("`{}` is the 0.3 name of an operation", clip(name)),
            format!(
                "write `{}`: policies use the 1.0 names, and both spellings mean the same call",
                operation.name()
            ),
        );
        return None;
    }
    let names = operation_names;
    let hint = match (name, suggest(name, names())) {
        ("any" | "*" | "all", _) => "write `operations: any`, without a list".to_owned(),
        (_, Some(near)) => format!("did you mean `{near}`?"),
        (_, None) => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
    };
    value.error(
        codes::UNKNOWN_OPERATION,
        format!("unknown operation `{}`", clip(name)),
        hint,
    );
    None
}

/// The configuration's names, ready to be looked up.
pub(super) struct Names<'a> {
    pub(super) world: &'a World<'a>,
    agents: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    pub(super) fn new(world: &'a World<'a>) -> Names<'a> {
        let agents = world.agents.iter().enumerate();
        Names {
            world,
            agents: agents.map(|(i, a)| (a.name, i)).collect(),
        }
    }

    pub(super) fn agent(&self, value: &Value<'_, '_>, name: &str) -> Option<usize> {
        if let Some(agent) = self.agents.get(name) {
            return Some(*agent);
        }
        let known = || self.world.agents.iter().map(|a| a.name);
        self.unknown(value, codes::UNKNOWN_AGENT, "agent", name, known);
        None
    }

    pub(super) fn issuer(&self, value: &Value<'_, '_>, name: &str) -> Option<usize> {
        let issuers = self.world.issuers;
        let found = issuers.iter().position(|i| *i.name == *name);
        if found.is_none() {
            let known = || issuers.iter().map(|i| &*i.name);
            self.unknown(value, codes::UNKNOWN_ISSUER, "issuer", name, known);
        }
        found
    }

    /// Whether one of the agents declares a skill; `None` means all agents.
    pub(super) fn skill(
        &self,
        value: &Value<'_, '_>,
        name: &str,
        agents: Option<&[usize]>,
    ) -> bool {
        let concerned = || {
            let all = self.world.agents.iter().enumerate();
            all.filter(move |(i, _)| agents.is_none_or(|named| named.contains(i)))
                .map(|(_, agent)| agent)
        };
        let known = || concerned().flat_map(|a| a.skills.iter().map(AsRef::as_ref));
        let found = known().any(|skill| skill == name);
        // Without an agent the skill is not what is wrong.
        if !found && concerned().next().is_some() {
            self.unknown(value, codes::UNKNOWN_RULE_SKILL, "skill", name, known);
        }
        found
    }

    /// Where a claim stands and its type, for tokens of `issuers`.
    pub(super) fn claim(
        &self,
        value: &Value<'_, '_>,
        name: &str,
        issuers: &RuleIssuers,
    ) -> Option<(Source, ClaimKind)> {
        if let Some(reserved) = Reserved::named(name) {
            return Some((Source::Reserved(reserved), reserved.kind()));
        }
        let all = self.world.issuers;
        let concerned = || {
            let numbered = all.iter().enumerate();
            numbered
                .filter(|(i, _)| issuers.contains(*i))
                .map(|(_, i)| i)
        };
        let mut found: Option<(ClaimKind, &str)> = None;
        for issuer in concerned() {
            let Some(claim) = issuer.claims.iter().find(|c| *c.name == *name) else {
                continue;
            };
            match found {
                Some((kind, first)) if kind != claim.kind => {
                    value.error(
                        codes::CLAIM_TYPES_DIFFER,
                        format!(
                            "`{}` is {} in tokens of `{first}` and {} in those of `{}`",
                            clip(name),
                            type_name(kind),
                            type_name(claim.kind),
                            issuer.name
                        ),
                        "write a rule per issuer, each with `issuers: [NAME]`",
                    );
                    return None;
                }
                Some(_) => {}
                None => found = Some((claim.kind, &issuer.name)),
            }
        }
        let Some((kind, _)) = found else {
            let elsewhere = all
                .iter()
                .find(|i| i.claims.iter().any(|c| *c.name == *name));
            if let Some(issuer) = elsewhere {
                value.error(
                    codes::UNKNOWN_CLAIM,
                    format!(
                        "none of the rule's issuers declares the claim `{}`",
                        clip(name)
                    ),
                    format!("only `{}` does: name it in `issuers`", issuer.name),
                );
                return None;
            }
            let known = || {
                let declared = concerned().flat_map(|i| i.claims.iter().map(|c| &*c.name));
                declared.chain(RESERVED_CLAIMS)
            };
            self.unknown(value, codes::UNKNOWN_CLAIM, "claim", name, known);
            return None;
        };
        let by_issuer = all.iter().enumerate().map(|(i, issuer)| {
            let mut claims = issuer.claims.iter();
            issuers
                .contains(i)
                .then(|| claims.position(|c| *c.name == *name))
                .flatten()
        });
        Some((Source::Declared(by_issuer.collect()), kind))
    }

    /// Whether some issuer declares a claim, or none needs to.
    pub(super) fn declared(&self, value: &Value<'_, '_>, name: &str) -> bool {
        let known = || {
            let issuers = self.world.issuers.iter();
            let declared = issuers.flat_map(|i| i.claims.iter().map(|c| &*c.name));
            declared.chain(RESERVED_CLAIMS)
        };
        let found = known().any(|claim| claim == name);
        if !found {
            self.unknown(value, codes::UNKNOWN_CLAIM, "claim", name, known);
        }
        found
    }

    fn unknown<'n, I: Iterator<Item = &'n str>>(
        &self,
        value: &Value<'_, '_>,
        code: &'static str,
        what: &str,
        name: &str,
        known: impl Fn() -> I,
    ) {
        /// As many names as fit into a hint.
        const SHOWN: usize = 12;
        if !self.world.complete {
            return;
        }
        let mut names: Vec<&str> = known().collect();
        names.sort_unstable();
        names.dedup();
        let plural = format!("{what}s");
        let hint = match suggest(name, names.iter().copied()) {
            _ if matches!(name, "any" | "*" | "all") && what != "claim" => {
                format!("write `{plural}: any`, without a list")
            }
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => format!("no {what} is declared"),
            None if names.len() > SHOWN => {
                names.truncate(SHOWN);
                format!("known: {}, …", names.join(", "))
            }
            None => format!("known: {}", names.join(", ")),
        };
        value.error(code, format!("unknown {what} `{}`", clip(name)), hint);
    }
}

/// A type as gateway files name it.
pub(super) fn type_name(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::String => "string",
        ClaimKind::Number => "number",
        ClaimKind::Boolean => "boolean",
        ClaimKind::StringArray => "string_array",
        ClaimKind::SpaceString => "space_string",
    }
}

/// A name that nothing else of its kind has, in any file.
pub(super) fn named<'d>(
    seen: &mut HashMap<&'d str, String>,
    value: &Value<'_, 'd>,
    file: &str,
    code: &'static str,
    what: &str,
) -> Option<&'d str> {
    /// Longer names do not fit into metrics and tables.
    const LONGEST: usize = 64;
    let name = value.text()?;
    let good = name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if !good {
        value.error(
            codes::BAD_NAME,
            "not a name",
            "a name starts with a letter or digit and has at most 64 letters, digits, `.`, `_` and `-`",
        );
        return None;
    }
    match seen.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(format!("{file}:{}", value.node.position.line));
            Some(name)
        }
        Entry::Occupied(first) => {
            value.error(
                code,
                format!("a second {what} `{name}`"),
                format!("the first one is at {}", first.get()),
            );
            None
        }
    }
}
