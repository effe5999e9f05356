//! Policy files: what is wrong with them, the schema, the examples.

use super::{allowed, corp_site, expect_file, message, site, text, texts};
use portcullis::a2a::Operation;
use portcullis::config;
use portcullis::identity::Principal;
use portcullis::identity::issuer::Grant;
use portcullis::policy::decision::why;
use portcullis::policy::{self, AgentFacts, Asked, AskedSkill, PolicySet, Question, World, schema};
use portcullis::source::{Document, Problems, Severity, codes};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files
}

/// Each case with what is wrong with it.
pub fn wrong_policies() -> Vec<(PathBuf, Problems)> {
    let site = site();
    let problems = |case: PathBuf| {
        let text = fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_str().unwrap();
        let (_, problems) = site.compile_files(&[(name, &text)]);
        (case, problems)
    };
    let cases = yaml_files("tests/cases/policy/wrong");
    cases.into_iter().map(problems).collect()
}

#[test]
fn every_wrong_policy_has_its_message() {
    for (case, problems) in wrong_policies() {
        let name = case.display();
        assert!(!problems.0.is_empty(), "{name}: nothing is wrong with it");
        for problem in &problems.0 {
            assert!(problem.hint.is_some(), "{name}: {problem}");
            assert!(
                problem.line > 0 || problem.code == codes::EMPTY,
                "{name}: {problem}"
            );
        }
        expect_file(&case.with_extension("expected"), &problems.to_string());
    }
}

/// A policy file with one rule, about an agent of its own.
fn one_rule(policy: &str, id: &str) -> String {
    let agent = if id == "closed" { "plain" } else { "weather" };
    format!(
        "version: 1\npolicy: {policy}\nrules:\n  - id: {id}\n    deny: {{agents: [{agent}], operations: [tasks]}}\n    always: true\n"
    )
}

/// What is wrong with two files of one policy.
pub fn two_policies_of_one_name() -> Problems {
    let (a, b) = (one_rule("a", "closed"), one_rule("a", "open"));
    let (_, problems) = site().compile_files(&[("a.yaml", &a), ("b.yaml", &b)]);
    problems
}

#[test]
fn names_are_unique_across_files_and_the_second_says_where_the_first_is() {
    let site = site();
    let (a, b) = (one_rule("a", "closed"), one_rule("b", "closed"));
    let (_, problems) = site.compile_files(&[("a.yaml", &a), ("b.yaml", &b)]);
    let [only] = problems.0.as_slice() else {
        panic!("{problems}")
    };
    assert_eq!(
        (only.code, only.file.as_str()),
        (codes::DUPLICATE_RULE, "b.yaml")
    );
    assert_eq!(only.hint.as_deref(), Some("the first one is at a.yaml:4"));
    let problems = two_policies_of_one_name();
    assert_eq!(problems.0.len(), 1, "{problems}");
    assert_eq!(problems.0[0].code, codes::DUPLICATE_POLICY);
}

#[test]
fn the_schema_is_the_one_that_is_checked_in() {
    expect_file(
        Path::new("config/policy.schema.json"),
        &schema::policy(None),
    );
    let tests = schema::tests(None);
    expect_file(Path::new("config/tests.schema.json"), &tests);
}

/// Every file under `policies/` is loaded by an example, without an error or a warning.
#[test]
fn every_example_policy_loads_with_its_configuration() {
    let mut loaded: BTreeSet<PathBuf> = BTreeSet::new();
    let mut configurations = yaml_files("config/examples");
    configurations.push("config/gateway.yaml".into());
    for file in configurations {
        match config::load(&file) {
            Ok(found) => {
                assert_eq!(found.warnings.to_string(), "", "{}", file.display());
                let files = found.snapshot.policies.iter();
                loaded.extend(files.map(|p| fs::canonicalize(&p.path).unwrap()));
            }
            Err(problems) => panic!("{}\n{problems}", file.display()),
        }
    }
    for policy in yaml_files("policies") {
        let path = fs::canonicalize(&policy).unwrap();
        assert!(
            loaded.contains(&path),
            "{} is never loaded",
            policy.display()
        );
    }
}

#[test]
fn a_snapshot_decides_by_the_policies_that_it_loaded() {
    let loaded = config::load(Path::new("config/gateway.yaml")).unwrap();
    let policies = &loaded.snapshot.policy;
    let site = corp_site();
    assert!(allowed(policies, &site.with("role", text("reviewer"))));
    assert!(!allowed(policies, &site.with("role", text("contractor"))));
    assert!(!allowed(policies, &site.principal(0)));
    assert!(!allowed(
        &PolicySet::default(),
        &site.with("role", text("reviewer"))
    ));
}

/// The two surfaces of the device mesh: each needs its grant and a rule.
#[test]
fn the_mesh_keeps_its_surfaces_apart() {
    let file = Path::new("config/examples/agent-full.yaml");
    let loaded = config::load(file).unwrap();
    let mut caller = corp_site().principal(0);
    caller.claims = vec![texts(&["mesh-operators"])];
    let decide = |asked, caller: &Principal| {
        let question = Question {
            agent: 0,
            asked,
            skill: AskedSkill::Unknown,
            principal: caller,
            memo: None,
            content: None,
        };
        let decision = policy::decide(&loaded.snapshot.policy, &question);
        (decision.rule, decision.near.map(|near| near.why))
    };
    let message = Asked::Operation(Operation::SendMessage);
    let rule = |id: &str| Some(Arc::from(id));
    assert_eq!(decide(message, &caller), (rule("talk-to-the-mesh"), None));
    assert_eq!(decide(Asked::Backend, &caller), (None, Some(why::GRANT)));
    caller.grant = Some(Grant::Full);
    assert_eq!(decide(message, &caller), (rule("talk-to-the-mesh"), None));
    let found = decide(Asked::Backend, &caller);
    assert_eq!(found, (rule("operators-see-the-backend"), None));
    caller.client = None;
    let found = decide(Asked::Backend, &caller);
    assert_eq!(
        found,
        (rule("no-robots-on-the-backend"), Some(why::MISSING))
    );
    caller.grant = None;
    assert_eq!(decide(message, &caller), (None, Some(why::GRANT)));
    assert!(!policy::may_ever(&loaded.snapshot.policy, &caller, None, 0));
}

/// 10,000 rules over 1,000 agents load, and each agent keeps its own.
#[test]
fn ten_thousand_rules_over_a_thousand_agents() {
    let names: Vec<String> = (0..1000).map(|i| format!("agent-{i}")).collect();
    let skills: Vec<Box<str>> = (0..5).map(|i| format!("skill-{i}").into()).collect();
    let facts = names.iter().map(|name| AgentFacts {
        name,
        skills: &skills,
        has_backend_paths: false,
    });
    let site = corp_site();
    let world = World {
        agents: facts.collect(),
        issuers: &site.issuers,
        complete: true,
    };
    let mut documents = Vec::new();
    for file in 0..20 {
        let mut text = format!("version: 1\npolicy: p{file}\nrules:\n");
        for agent in file * 50..file * 50 + 50 {
            for skill in 0..5 {
                let scope = format!(
                    "{{agents: [agent-{agent}], operations: [messages, tasks], skills: [skill-{skill}]}}"
                );
                text += &format!(
                    "  - id: a{agent}-{skill}\n    allow: {scope}\n    grant: agent\n    require: {{role: {{equals: r{agent}}}}}\n  - id: d{agent}-{skill}\n    deny: {scope}\n    unless: {{groups: {{contains: staff}}}}\n"
                );
            }
        }
        documents.push(Document::parse(&format!("p{file}.yaml"), &text).unwrap());
    }
    let (policies, problems) = policy::compile(&documents, &world);
    assert_eq!(problems.to_string(), "");
    for agent in [0, 1, 499, 999] {
        let mut caller = site.with("role", super::text(&format!("r{agent}")));
        caller.claims[1] = texts(&["staff"]);
        for skill in ["skill-0", "skill-4"] {
            let rule = |agent| policy::decide(&policies, &message(agent, skill, &caller)).rule;
            assert_eq!(
                rule(agent).unwrap(),
                format!("a{agent}-{}", &skill[6..]).into()
            );
            assert_eq!(rule((agent + 1) % 1000), None);
        }
    }
}

/// A broken gateway file does not make its names look unknown in policies.
#[test]
fn problems_of_the_gateway_file_do_not_hide_or_invent_those_of_policies() {
    let folder = std::env::temp_dir().join(format!("policy-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let gateway = folder.join("gateway.yaml");
    fs::write(
        &gateway,
        "version: 1\nlisteners: [{name: l, bind: \"127.0.0.1:0\", public_url: \"http://localhost\"}]\nagents: []\naudit: {journal: {dir: j}}\npolicies: {files: [p.yaml]}\n",
    )
    .unwrap();
    fs::write(
        folder.join("p.yaml"),
        "version: 1\npolicy: p\nrules:\n  - id: a\n    deny: {agents: [pr-agent], operations: [task]}\n    always: true\n",
    )
    .unwrap();
    let problems = config::load(&gateway).unwrap_err();
    fs::remove_dir_all(&folder).unwrap();
    let errors: Vec<_> = problems
        .0
        .iter()
        .filter(|p| p.severity == Severity::Error)
        .map(|p| p.code)
        .collect();
    assert_eq!(errors, [codes::EMPTY_VALUE, codes::UNKNOWN_OPERATION]);
}
