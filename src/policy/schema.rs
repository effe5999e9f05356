//! The JSON Schemas of policy files and of files of tests, for editors: from the tables of their
//! fields, and, for one gateway, with the names that it declares.

use super::condition::Reserved;
use super::document::POLICY;
use super::names::{World, operation_names, type_name};
use super::trial::shape::TEST_FILE;
use crate::identity::issuer::RESERVED_CLAIMS;
use crate::source::examples;
use crate::source::shape::Fields;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The schema of policy files that `portcullis schema policy` prints, with a line feed at its end.
/// With a `world`, agents, skills, issuers and claims are those that it has. The copy in
/// `config/policy.schema.json` is compared in tests.
pub fn policy(world: Option<&World<'_>>) -> String {
    printed(&POLICY, world)
}

/// The schema of files of tests that `portcullis schema tests` prints; otherwise like [`policy`].
/// The copy is `config/tests.schema.json`.
pub fn tests(world: Option<&World<'_>>) -> String {
    printed(&TEST_FILE, world)
}

/// Where examples are taken from: policies that are tested.
const SHOWN: [&str; 4] = [
    include_str!("../../policies/keycloak-groups.yaml"),
    include_str!("../../policies/multi-tenant.yaml"),
    include_str!("../../policies/shadow-rollout.yaml"),
    // What none of them has.
    "{webhooks: {allow: [{agents: [pr-agent], host: hooks.example.com}]}, \
      limits: [{agents: [pr-agent], per: caller, requests: 60/1m, streams: 5}]}",
];

fn printed(fields: &'static Fields, world: Option<&World<'_>>) -> String {
    let mut schema = fields.json_schema();
    examples::put(&mut schema, fields, &SHOWN);
    complete(&mut schema, world);
    format!("{schema:#}\n")
}

/// Puts in what the tables of fields do not know.
fn complete(schema: &mut Value, world: Option<&World<'_>>) {
    let claims = world.map(claims);
    let Some(definitions) = schema.get_mut("definitions").and_then(Value::as_object_mut) else {
        return;
    };
    for definition in definitions.values_mut() {
        let Some(fields) = definition
            .get_mut("properties")
            .and_then(Value::as_object_mut)
        else {
            continue;
        };
        for (name, field) in fields {
            match (name.as_str(), world) {
                ("operations" | "operation", _) => named(field, operation_names()),
                ("agents" | "agent", Some(world)) => {
                    named(field, world.agents.iter().map(|agent| agent.name));
                }
                ("skills", Some(world)) => {
                    let skills = world.agents.iter().flat_map(|agent| agent.skills);
                    named(field, skills.map(AsRef::as_ref));
                }
                ("issuers" | "issuer", Some(world)) => {
                    named(field, world.issuers.iter().map(|issuer| &*issuer.name));
                }
                ("require" | "when" | "unless", Some(_)) => {
                    close(field, claims.as_ref());
                }
                _ => {}
            }
        }
    }
}

/// Each claim that a policy may name, with where it comes from.
fn claims(world: &World<'_>) -> BTreeMap<String, String> {
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for issuer in world.issuers {
        for claim in &issuer.claims {
            let says = format!("{} of `{}`", type_name(claim.kind), issuer.name);
            claims.entry(claim.name.to_string()).or_default().push(says);
        }
    }
    let declared = claims
        .into_iter()
        .map(|(name, says)| (name, says.join(", ")));
    let reserved = RESERVED_CLAIMS.into_iter().filter_map(|name| {
        let says = format!(
            "{}, of every issuer",
            type_name(Reserved::named(name)?.kind())
        );
        Some((name.to_owned(), says))
    });
    declared.chain(reserved).collect()
}

/// Lets a text, or each text of a list, be one of `names`.
fn named<'n>(field: &mut Value, names: impl Iterator<Item = &'n str>) {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        replace(field, &json!({ "enum": names }));
    }
}

fn replace(schema: &mut Value, with: &Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if members.get("type").is_some_and(|kind| kind == "string") {
        members.remove("type");
        members.remove("minLength");
        members.extend(with.as_object().cloned().unwrap_or_default());
        return;
    }
    if let Some(items) = members.get_mut("items") {
        replace(items, with);
    }
    for one in members
        .get_mut("anyOf")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        replace(one, with);
    }
}

/// Lets a condition have these claims and no others.
fn close(condition: &mut Value, claims: Option<&BTreeMap<String, String>>) {
    let Some(members) = condition.as_object_mut() else {
        return;
    };
    let matcher = members.insert("additionalProperties".to_owned(), json!(false));
    let matcher = matcher.unwrap_or(Value::Bool(true));
    let known = members
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let (Some(known), Some(claims)) = (known.as_object_mut(), claims) {
        for (name, says) in claims {
            let claim = json!({ "allOf": [matcher], "description": says });
            known.entry(name.clone()).or_insert(claim);
        }
    }
}
