//! From policy files to a [`PolicySet`], with everything that is wrong with them.

use super::analysis;
use super::content;
use super::document::{POLICY, RULE, SCOPE};
use super::index::{Body, Operations, PolicySet, Rule, RuleIssuers, Scope};
use super::limits::Limits;
use super::matchers::{self, Place};
use super::names::{self, Names, World};
use super::shadow::{self, Shadow};
use super::trial;
use super::webhooks::Webhooks;
use crate::a2a::OperationGroup;
use crate::identity::issuer::Grant;
use crate::source::tree::clip;
use crate::source::{Document, Kind, Mapping, Problems, Value, Walker, codes};
use std::collections::HashMap;
use std::sync::Arc;

/// Compiles all policy files together. The set is only to be used when no problem is an error:
/// rules with problems are not in it.
pub fn compile(documents: &[Document], world: &World<'_>) -> (PolicySet, Problems) {
    let walkers: Vec<Walker<'_>> = documents.iter().map(Walker::new).collect();
    let mut compiler = Compiler {
        names: Names::new(world),
        policies: HashMap::new(),
        ids: HashMap::new(),
        rules: Vec::new(),
        placed: Vec::new(),
        followed: Vec::new(),
        shadows: Vec::new(),
        webhooks: Webhooks::default(),
        limits: Limits::default(),
        tests: Vec::new(),
        whole: true,
    };
    for (document, walker) in documents.iter().zip(&walkers) {
        compiler.file(&document.file, &walker.root());
    }
    if world.complete {
        compiler.warn_no_follow_up();
    }
    if world.complete && compiler.whole {
        analysis::warn(&compiler.rules, &compiler.placed);
    }
    let skills: Vec<&[Box<str>]> = world.agents.iter().map(|a| a.skills).collect();
    let rules = std::mem::take(&mut compiler.rules);
    let policies = PolicySet::new(rules, &skills, world.issuers.len());
    let policies = policies
        .with_webhooks(std::mem::take(&mut compiler.webhooks))
        .with_shadows(std::mem::take(&mut compiler.shadows))
        .with_limits(std::mem::take(&mut compiler.limits.read));
    let reader = trial::Reader {
        names: &compiler.names,
        policies: &policies,
        whole: compiler.whole,
    };
    for (file, tests) in &compiler.tests {
        // Nothing runs here; what is wrong with them shows as early as what is wrong with rules.
        reader.tests(file, tests);
    }
    drop(compiler);
    let mut problems = Problems::default();
    for walker in walkers {
        problems.extend(walker.into_problems());
    }
    (policies, problems)
}

struct Compiler<'w, 'd> {
    names: Names<'w>,
    /// Where each policy and each rule was first seen.
    policies: HashMap<&'d str, String>,
    ids: HashMap<&'d str, String>,
    rules: Vec<Rule>,
    /// Where each of them stands.
    placed: Vec<Value<'w, 'd>>,
    /// The agents of allows in force, with their operations.
    followed: Vec<(Value<'w, 'd>, Option<Vec<usize>>, Operations)>,
    shadows: Vec<Shadow>,
    webhooks: Webhooks,
    limits: Limits<'d>,
    /// The `tests` of each file.
    tests: Vec<(&'d str, Value<'w, 'd>)>,
    /// Whether every rule could be read.
    whole: bool,
}

impl<'w, 'd> Compiler<'w, 'd> {
    fn file(&mut self, file: &'d str, root: &Value<'w, 'd>) {
        let Some(fields) = root.fields(&POLICY) else {
            return;
        };
        if let Some(version) = fields.get("version")
            && (version.node.written.as_ref() != "1" || version.node.quoted)
        {
            version.error(
                codes::BAD_VERSION,
                "this version of the format is not known",
                "write `version: 1`",
            );
        }
        if let Some(name) = fields.get("policy") {
            let code = codes::DUPLICATE_POLICY;
            names::named(&mut self.policies, &name, file, code, "policy");
        }
        let rules = fields.get("rules").and_then(|v| v.list());
        for value in rules.unwrap_or_default() {
            let rule = value.fields(&RULE).and_then(|f| self.rule(file, &f));
            self.whole &= rule.is_some();
            self.placed.extend(rule.as_ref().map(|_| value.clone()));
            self.rules.extend(rule);
        }
        if let Some(tests) = fields.get("tests") {
            self.tests.push((file, tests));
        }
        if let Some(value) = fields.get("webhooks") {
            self.webhooks.read(&value, &self.names);
        }
        if let Some(value) = fields.get("limits") {
            self.limits.read(file, &value, &self.names);
        }
    }

    fn rule(&mut self, file: &str, fields: &Mapping<'w, 'd>) -> Option<Rule> {
        let id = fields
            .get("id")
            .and_then(|id| names::named(&mut self.ids, &id, file, codes::DUPLICATE_RULE, "rule"));
        let whole = fields.whole();
        let (scope, allows) = match (fields.get("allow"), fields.get("deny")) {
            (Some(scope), None) => (scope, true),
            (None, Some(scope)) => (scope, false),
            (None, None) => {
                whole.error(
                    codes::ALLOW_OR_DENY,
                    "the rule neither allows nor denies",
                    "add `allow: {agents: …, operations: …}` or `deny: …`",
                );
                return None;
            }
            (Some(_), Some(deny)) => {
                deny.error(
                    codes::ALLOW_OR_DENY,
                    "the rule both allows and denies",
                    "make two rules of it",
                );
                return None;
            }
        };
        let mode = shadow::mode(fields);
        let grant = self.grant(fields, allows);
        let place = scope.clone();
        let (scope, issuers) = self.scope(&scope, allows, grant)?;
        if allows && !mode.shadow {
            let followed = (place, scope.agents.clone(), scope.operations);
            self.followed.push(followed);
        }
        content::check_scope(fields, scope.operations);
        let body = if allows {
            self.allow(fields, grant, &issuers)
        } else {
            self.deny(fields, &issuers)
        };
        let (id, body) = (Arc::from(id?), body?);
        let until = mode.until;
        self.shadows
            .extend(until.map(|until| Shadow::new(Arc::clone(&id), until)));
        Some(Rule {
            id,
            scope,
            issuers,
            body,
            shadow: mode.shadow,
        })
    }

    fn grant(&self, fields: &Mapping<'_, '_>, allows: bool) -> Option<Grant> {
        let value = fields.get("grant");
        match (value, allows) {
            (Some(value), true) => value.word(&[("agent", Grant::Agent), ("full", Grant::Full)]),
            (None, true) => {
                fields.whole().error(
                    codes::RULE_GRANT,
                    "an allow without a grant",
                    "add `grant: agent`, or `grant: full` where only tokens with the full reach will do",
                );
                None
            }
            (Some(value), false) => {
                value.error(
                    codes::RULE_GRANT,
                    "a deny has no grant: it concerns every token",
                    "remove it",
                );
                None
            }
            (None, false) => None,
        }
    }

    fn allow(
        &self,
        fields: &Mapping<'_, '_>,
        grant: Option<Grant>,
        issuers: &RuleIssuers,
    ) -> Option<Body> {
        for name in ["when", "unless", "always"] {
            if let Some(value) = fields.get(name) {
                value.error(
                    codes::RULE_CONDITION,
                    format!("an allow has no `{name}`"),
                    "write what a token must have under `require`, or make it a deny",
                );
            }
        }
        let require = fields
            .get("require")
            .map(|v| matchers::read(&v, Place::Require, &self.names, issuers));
        Some(Body::Allow {
            grant: grant?,
            require: require.unwrap_or_default(),
        })
    }

    fn deny(&self, fields: &Mapping<'_, '_>, issuers: &RuleIssuers) -> Option<Body> {
        let require = fields.get("require");
        if let Some(value) = &require {
            value.error(
                codes::RULE_CONDITION,
                "a deny has no `require`",
                "write `unless`: the rule fires unless all of it holds",
            );
        }
        let mut bodies = Vec::new();
        let mut found = 0;
        for name in ["when", "unless", "always"] {
            let Some(value) = fields.get(name) else {
                continue;
            };
            found += 1;
            if found == 2 {
                value.error(
                    codes::RULE_CONDITION,
                    "a second condition in one deny",
                    "a deny has one of `when`, `unless` and `always`: make two rules of it",
                );
            }
            let read = |place| matchers::read(&value, place, &self.names, issuers);
            bodies.extend(match name {
                "when" => Some(Body::DenyWhen(read(Place::When))),
                "unless" => Some(Body::DenyUnless(read(Place::Unless))),
                _ => always(&value),
            });
        }
        if found == 0 && require.is_none() {
            fields.whole().error(
                codes::RULE_CONDITION,
                "a deny without a condition",
                "add `unless: {CLAIM: {equals: VALUE}}`, or `always: true` if it is for everybody",
            );
        }
        bodies.into_iter().next()
    }

    fn scope(
        &self,
        value: &Value<'w, 'd>,
        allows: bool,
        grant: Option<Grant>,
    ) -> Option<(Scope, RuleIssuers)> {
        let fields = value.fields(&SCOPE)?;
        let issuers = self.issuers(&fields, allows);
        let agents = fields.get("agents").map(|v| self.agents(&v));
        let operations = fields.get("operations");
        let (place, operations) = match operations {
            Some(place) => {
                let operations = self.operations(&place, allows, grant, agents.as_ref());
                (place, operations)
            }
            None => return None,
        };
        let agents = agents?;
        let skills = self.skills(&fields, &place, operations, agents.as_deref());
        let scope = Scope {
            agents,
            operations,
            skills,
        };
        Some((scope, issuers))
    }

    fn issuers(&self, fields: &Mapping<'_, '_>, allows: bool) -> RuleIssuers {
        let Some(value) = fields.get("issuers") else {
            if allows && self.names.world.issuers.len() > 1 {
                fields.whole().error(
                    codes::ISSUERS_NEEDED,
                    "the rule does not say whose tokens it trusts",
                    "add `issuers: [NAME]`, or `issuers: any` if what every issuer says in its claims counts the same",
                );
            }
            return RuleIssuers::Any;
        };
        let Some(named) = any_or_texts(&value) else {
            return RuleIssuers::Any;
        };
        let found: Vec<usize> = named
            .iter()
            .filter_map(|(place, name)| self.names.issuer(place, name))
            .collect();
        if found.is_empty() {
            // Reported, so the rule is not used; its claims are looked for everywhere.
            return RuleIssuers::Any;
        }
        RuleIssuers::Named(found.into())
    }

    fn agents(&self, value: &Value<'_, '_>) -> Option<Vec<usize>> {
        let named = any_or_texts(value)?;
        let found = named
            .iter()
            .filter_map(|(place, name)| self.names.agent(place, name));
        Some(found.collect())
    }

    fn operations(
        &self,
        value: &Value<'_, '_>,
        allows: bool,
        grant: Option<Grant>,
        agents: Option<&Option<Vec<usize>>>,
    ) -> Operations {
        let Some(named) = any_or_texts(value) else {
            // Breadth that nobody spelled out does not reach beyond A2A.
            return if allows && grant != Some(Grant::Full) {
                Operations::ELEVEN
            } else {
                Operations::ELEVEN.with(Operations::BACKEND)
            };
        };
        let mut operations = Operations::default();
        for (place, name) in named {
            let Some(found) = names::operations(&place, name) else {
                continue;
            };
            operations = operations.with(found);
            if found != Operations::BACKEND {
                continue;
            }
            if allows && grant == Some(Grant::Agent) {
                place.error(
                    codes::RULE_GRANT,
                    "the backend surface needs the full grant",
                    "write `grant: full`, and put the A2A operations into a rule of their own",
                );
            }
            let all = &self.names.world.agents;
            let mut concerned = all.iter().enumerate().filter(|(i, _)| match agents {
                Some(Some(named)) => named.contains(i),
                Some(None) | None => true,
            });
            let known =
                self.names.world.complete && !matches!(agents, Some(Some(n)) if n.is_empty());
            if known && !concerned.any(|(_, agent)| agent.has_backend_paths) {
                place.error(
                    codes::NEVER_MATCHES,
                    "this can never match: none of the rule's agents has `backend_paths`",
                    "declare them in the gateway file, or remove `backend`",
                );
            }
        }
        operations
    }

    fn skills(
        &self,
        fields: &Mapping<'_, '_>,
        place: &Value<'_, '_>,
        operations: Operations,
        agents: Option<&[usize]>,
    ) -> Option<Vec<Box<str>>> {
        let messages = operations.meets(names::group(OperationGroup::Messages));
        let Some(value) = fields.get("skills") else {
            if messages {
                place.error(
                    codes::SKILLS_NEEDED,
                    "the rule is about messages and names no skills",
                    "add `skills: [NAME]`, or `skills: any`",
                );
            }
            return None;
        };
        if !messages && operations != Operations::default() {
            value.error(
                codes::SKILLS_WITHOUT_MESSAGES,
                "skills only concern messages, and the rule is about none",
                "remove `skills`: whose task it is decides about tasks",
            );
        }
        let named = any_or_texts(&value)?;
        let found = named
            .iter()
            .filter(|(place, name)| self.names.skill(place, name, agents));
        Some(found.map(|(_, name)| (*name).into()).collect())
    }

    /// A caller that may send but not ask again cannot collect the answer of a long task.
    fn warn_no_follow_up(&self) {
        let messages = names::group(OperationGroup::Messages);
        let tasks = names::group(OperationGroup::Tasks);
        let agents = &self.names.world.agents;
        let mut open = vec![true; agents.len()];
        for (_, named, operations) in &self.followed {
            if !operations.meets(tasks) {
                continue;
            }
            match named {
                None => return,
                Some(named) => {
                    for agent in named {
                        open.get_mut(*agent).into_iter().for_each(|o| *o = false);
                    }
                }
            }
        }
        for (place, named, operations) in &self.followed {
            if !operations.meets(messages) {
                continue;
            }
            let mut warned = open
                .iter_mut()
                .zip(agents)
                .enumerate()
                .filter(|(i, (open, _))| {
                    **open && named.as_ref().is_none_or(|named| named.contains(i))
                });
            let Some((_, (first, agent))) = warned.next() else {
                continue;
            };
            *first = false;
            warned.for_each(|(_, (open, _))| *open = false);
            place.warn(
                codes::NO_FOLLOW_UP,
                format!(
                    "messages to `{}` are allowed, and nobody may follow up the task",
                    agent.name
                ),
                "allow `tasks` too: it only concerns tasks that the caller owns",
            );
        }
    }
}

fn always(value: &Value<'_, '_>) -> Option<Body> {
    match value.boolean()? {
        true => Some(Body::DenyAlways),
        false => {
            value.error(
                codes::NEVER_MATCHES,
                "this can never match",
                "write `always: true`, or remove the rule",
            );
            None
        }
    }
}

/// `None`: the word `any`. A list that is empty, or a value of another type, was reported and
/// gives an empty list.
pub(super) fn any_or_texts<'w, 'd>(value: &Value<'w, 'd>) -> Option<Vec<(Value<'w, 'd>, &'d str)>> {
    match &value.node.kind {
        Kind::Str(text) if text == "any" => None,
        Kind::Str(text) if !text.is_empty() => {
            value.error(
                codes::WRONG_TYPE,
                "expected a list, found text",
                format!("write `[{}]`, or `any`", clip(text)),
            );
            Some(Vec::new())
        }
        _ => Some(value.texts().unwrap_or_default()),
    }
}
