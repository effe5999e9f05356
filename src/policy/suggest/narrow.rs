//! [`suggest`]: the rules of policy files, narrowed to what was used.

use super::super::decide::{Asked, AskedSkill};
use super::super::diff::{Side, concerning};
use super::super::index::{PolicySet, is_message};
use super::super::names::World;
use super::super::replay::{Judge, Judged, Recorded, RecordedSkill};
use super::super::{compile, names};
use super::usage::{RuleUsage, Usage};
use super::yaml;
use crate::a2a::Operation;
use crate::identity::issuer::Grant;
use crate::source::{Document, Key, Kind, Node};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is suggested for one rule.
#[derive(Debug, Clone)]
pub struct Suggestion {
    /// The rule.
    pub rule: Arc<str>,
    /// The file that it stands in, and the line.
    pub place: (Box<str>, usize),
    /// The rule as it should be; `None`: it should go.
    pub yaml: Option<String>,
    /// What was never used, in words.
    pub unused: Vec<String>,
    /// What it was used for.
    pub usage: Option<RuleUsage>,
}

/// A suggestion that is yet to be replayed.
pub struct Proposal {
    /// What would be suggested.
    pub suggestion: Suggestion,
    /// The whole policy with it.
    pub policies: PolicySet,
    /// Whether it has not refused anything so far.
    pub holds: bool,
}

/// What the usage suggests for every allow in force of these policy files.
pub fn suggest(documents: &[Document], world: &World<'_>, usage: &Usage) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (file, document) in documents.iter().enumerate() {
        for (at, rule) in rules(document).iter().enumerate() {
            let id = member(rule, "id").and_then(text);
            let (Some(id), Some(_)) = (id, member(rule, "allow")) else {
                continue;
            };
            if member(rule, "mode").is_some() {
                continue;
            }
            let used = usage.of(id);
            let (yaml, unused) = match used {
                None => (None, vec!["the whole rule".to_owned()]),
                Some(used) => match narrowed(rule, used, world) {
                    Some((narrower, unused)) => (Some(yaml::rule(&narrower)), unused),
                    None => continue,
                },
            };
            let Some(changed) = replaced(documents, (file, at), yaml.as_deref()) else {
                continue;
            };
            let (policies, problems) = compile(&changed, world);
            if problems.has_errors() {
                continue;
            }
            let suggestion = Suggestion {
                rule: id.into(),
                place: (document.file.as_str().into(), rule.position.line),
                yaml,
                unused,
                usage: used.cloned(),
            };
            proposals.push(Proposal {
                suggestion,
                policies,
                holds: true,
            });
        }
    }
    proposals
}

impl Proposal {
    /// Replays a call that was allowed, and that `judged` under the rules in force. What cannot be
    /// shown to stay allowed makes the suggestion fall.
    pub fn replay(
        &mut self,
        recorded: &Recorded,
        judged: &Judged,
        now: &PolicySet,
        world: &World<'_>,
    ) {
        let concerned = match judged {
            Judged::Refused(_) => false,
            // Of a delegated call one party may be allowed it by another rule.
            Judged::Allowed(Some(rule)) => {
                *rule == self.suggestion.rule || recorded.caller.is_delegated()
            }
            Judged::Allowed(None) => true,
            Judged::Undetermined(_) => self.is_about(recorded, now, world),
        };
        if !self.holds || !recorded.allowed || !concerned {
            return;
        }
        let side = Side {
            policies: &self.policies,
            world,
        };
        let judged = Judge::new(side).judge(recorded);
        self.holds = matches!(judged, Judged::Allowed(_));
    }

    fn is_about(&self, recorded: &Recorded, now: &PolicySet, world: &World<'_>) -> bool {
        let mut agents = world.agents.iter();
        let Some(agent) = agents.position(|agent| *agent.name == *recorded.agent) else {
            return false;
        };
        let skill = recorded.skill.asked().unwrap_or(AskedSkill::Unknown);
        let found = concerning(now, agent, recorded.asked, skill);
        let mut rules = found.allows.iter().filter_map(|at| now.rules.get(*at));
        rules.any(|rule| rule.id == self.suggestion.rule)
            || recorded.skill == RecordedSkill::Unrecorded
    }
}

fn rules(document: &Document) -> &[Node] {
    match document.root.get("rules").map(|rules| &rules.kind) {
        Some(Kind::Seq(rules)) => rules,
        Some(_) | None => &[],
    }
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name)
}

fn text(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Str(text) => Some(text),
        _ => None,
    }
}

/// The listed texts; `None` for `any` and for what is not there.
fn listed(node: Option<&Node>) -> Option<Vec<&str>> {
    match &node?.kind {
        Kind::Seq(items) => Some(items.iter().filter_map(text).collect()),
        _ => None,
    }
}

/// Sets a member, at its place or at the end; `None` removes it.
fn set(node: &mut Node, name: &str, value: Option<Node>) {
    let Kind::Map(members) = &mut node.kind else {
        return;
    };
    let at = members.iter().position(|(key, _)| key.name == name);
    match (at, value) {
        (Some(at), Some(value)) => {
            if let Some((_, old)) = members.get_mut(at) {
                *old = value;
            }
        }
        (Some(at), None) => drop(members.remove(at)),
        (None, Some(value)) => {
            let key = Key {
                name: name.to_owned(),
                position: node.position,
            };
            members.push((key, value));
        }
        (None, None) => {}
    }
}

/// The documents with another rule in the place of one, or none.
fn replaced(
    documents: &[Document],
    (file, at): (usize, usize),
    yaml: Option<&str>,
) -> Option<Vec<Document>> {
    let rule = match yaml {
        Some(yaml) => {
            let text = format!("version: 1\npolicy: suggested\nrules:\n{yaml}");
            let parsed = Document::parse("suggested.yaml", &text).ok()?;
            Some(rules(&parsed).first()?.clone())
        }
        None => None,
    };
    let mut changed = documents.to_vec();
    let root = &mut changed.get_mut(file)?.root;
    let Kind::Map(members) = &mut root.kind else {
        return None;
    };
    let (_, list) = members.iter_mut().find(|(key, _)| key.name == "rules")?;
    let Kind::Seq(list) = &mut list.kind else {
        return None;
    };
    match rule {
        Some(rule) => *list.get_mut(at)? = rule,
        None => drop(list.remove(at)),
    }
    Some(changed)
}

/// The rule with less breadth, and what is left out; `None` when all of it is used.
fn narrowed(rule: &Node, used: &RuleUsage, world: &World<'_>) -> Option<(Node, Vec<String>)> {
    let mut narrower = rule.clone();
    let mut unused = Vec::new();
    let mut scope = member(rule, "allow")?.clone();
    let agents = agents(&mut scope, used, world, &mut unused);
    let full = member(rule, "grant").and_then(text) == Some("full");
    let messages = operations(&mut scope, used, full, &mut unused);
    if messages {
        skills(&mut scope, used, &agents, world, &mut unused);
    } else {
        set(&mut scope, "skills", None);
    }
    issuers(&mut scope, used, world, &mut unused);
    set(&mut narrower, "allow", Some(scope));
    if !full && used.grants.iter().eq([&Grant::Full]) {
        unused.push("the agent grant".to_owned());
        set(&mut narrower, "grant", Some(yaml::text("full")));
    }
    if let Some(require) = member(rule, "require") {
        let require = values(require, used, &mut unused);
        set(&mut narrower, "require", Some(require));
    }
    (!unused.is_empty()).then_some((narrower, unused))
}

fn agents<'w>(
    scope: &mut Node,
    used: &RuleUsage,
    world: &World<'w>,
    unused: &mut Vec<String>,
) -> Vec<&'w str> {
    let named = listed(scope.get("agents"));
    let all = world.agents.iter().map(|agent| agent.name);
    let about = all.filter(|name| named.as_ref().is_none_or(|named| named.contains(name)));
    let (seen, others): (Vec<&str>, Vec<&str>) =
        about.partition(|name| used.agents.contains(*name));
    if !others.is_empty() {
        unused.push(format!("agents {}", others.join(", ")));
        set(scope, "agents", Some(yaml::list(seen.iter().copied())));
    }
    seen
}

/// Whether messages are still concerned.
fn operations(scope: &mut Node, used: &RuleUsage, full: bool, unused: &mut Vec<String>) -> bool {
    let named = listed(scope.get("operations"));
    let about = |name: &str, group: &str| {
        let listed = |named: &Vec<&str>| named.contains(&name) || named.contains(&group);
        named.as_ref().map_or(name != "backend" || full, listed)
    };
    let used_for = |operation| used.asked.contains(&Asked::Operation(operation));
    let mut left_out = Vec::new();
    let mut kept: Vec<&str> = Vec::new();
    for (group, members) in names::groups() {
        let about: Vec<Operation> = members
            .iter()
            .copied()
            .filter(|operation| about(operation.name(), group))
            .collect();
        let seen: Vec<&str> = about
            .iter()
            .filter(|operation| used_for(**operation))
            .map(|operation| operation.name())
            .collect();
        let others = about.iter().filter(|operation| !used_for(**operation));
        left_out.extend(others.map(|operation| operation.name()));
        if seen.len() == members.len() {
            kept.push(group);
        } else {
            kept.extend(seen);
        }
    }
    let backend = used.asked.contains(&Asked::Backend);
    if backend {
        kept.push("backend");
    } else if about("backend", "backend") {
        left_out.push("backend");
    }
    if !left_out.is_empty() {
        unused.push(format!("operations {}", left_out.join(", ")));
        set(scope, "operations", Some(yaml::list(kept)));
    }
    used.asked.iter().any(|asked| is_message(asked.slot()))
}

fn skills(
    scope: &mut Node,
    used: &RuleUsage,
    agents: &[&str],
    world: &World<'_>,
    unused: &mut Vec<String>,
) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for skill in &used.skills {
        match skill {
            RecordedSkill::Known(skill) => drop(seen.insert(skill)),
            RecordedSkill::None => {}
            // Only `any` is about these.
            RecordedSkill::Unestablished | RecordedSkill::Unrecorded => return,
        }
    }
    let named = listed(scope.get("skills"));
    let declared = world
        .agents
        .iter()
        .filter(|agent| agents.contains(&agent.name));
    let declared: BTreeSet<&str> = declared
        .flat_map(|agent| agent.skills.iter().map(AsRef::as_ref))
        .collect();
    let others: Vec<&str> = match &named {
        Some(named) => named
            .iter()
            .copied()
            .filter(|s| !seen.contains(s))
            .collect(),
        None => declared
            .iter()
            .copied()
            .filter(|s| !seen.contains(s))
            .collect(),
    };
    if others.is_empty() && named.is_some() {
        return;
    }
    unused.push(match others.as_slice() {
        [] => "calls whose skill cannot be established".to_owned(),
        others => format!("skills {}", others.join(", ")),
    });
    set(scope, "skills", Some(yaml::list(seen)));
}

fn issuers(scope: &mut Node, used: &RuleUsage, world: &World<'_>, unused: &mut Vec<String>) {
    let named = listed(scope.get("issuers"));
    let all = world.issuers.iter().map(|issuer| &*issuer.name);
    let about = all.filter(|name| named.as_ref().is_none_or(|named| named.contains(name)));
    let (seen, others): (Vec<&str>, Vec<&str>) =
        about.partition(|name| used.issuers.contains(*name));
    if !others.is_empty() && !seen.is_empty() {
        unused.push(format!("issuers {}", others.join(", ")));
        set(scope, "issuers", Some(yaml::list(seen)));
    }
}

/// Values of `any_of` that no caller had.
fn values(require: &Node, used: &RuleUsage, unused: &mut Vec<String>) -> Node {
    let mut narrower = require.clone();
    let Kind::Map(members) = &mut narrower.kind else {
        return narrower;
    };
    for (claim, matcher) in members {
        let (Some(named), Some(had)) = (listed(matcher.get("any_of")), used.values(&claim.name))
        else {
            continue;
        };
        let (seen, others): (Vec<&str>, Vec<&str>) = named.iter().partition(|v| had.contains(**v));
        if others.is_empty() || seen.is_empty() {
            continue;
        }
        unused.push(format!("`{}` {}", claim.name, others.join(", ")));
        let seen = yaml::list(seen);
        set(matcher, "any_of", Some(seen));
    }
    narrower
}

/// Claims that a rule compares with a list, by rule: whose values are worth counting.
pub fn listed_claims(documents: &[Document]) -> Vec<(String, Vec<Box<str>>)> {
    let mut all = Vec::new();
    for rule in documents.iter().flat_map(rules) {
        let (Some(id), Some(require)) = (member(rule, "id").and_then(text), rule.get("require"))
        else {
            continue;
        };
        let Kind::Map(members) = &require.kind else {
            continue;
        };
        let claims = members.iter().filter(|(_, m)| m.get("any_of").is_some());
        let claims = claims
            .map(|(claim, _)| claim.name.as_str().into())
            .collect();
        all.push((id.to_owned(), claims));
    }
    all
}
