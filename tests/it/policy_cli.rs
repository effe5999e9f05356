//! The commands about policies as a user runs them. `tests/cases/cli/policy/*.txt` are transcripts
//! in the format of `token_cli`, run in a folder with a copy of `tests/cases/cli/policy/files`.

use super::support::issuer::{Grant, Wrong};
use super::token_cli::{Fixture, replay};
use serde_json::json;
use std::fs;
use std::path::Path;

const CASES: &str = "tests/cases/cli/policy";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files of the token commands, and those of the cases.
pub(super) fn fixture_of(cases: &str) -> Fixture {
    let fixture = Fixture::new();
    copy(&Path::new(cases).join("files"), &fixture.path(""));
    fixture
}

pub(super) fn fixture() -> Fixture {
    fixture_of(CASES)
}

/// Replays each transcript in a folder, with files of its own; returns how many there are.
pub(super) fn transcripts(cases: &str) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(cases).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if !path.is_file() {
            continue;
        }
        count += 1;
        let transcript = fs::read_to_string(&path).unwrap();
        let found = replay(&fixture_of(cases), &transcript);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, found).unwrap();
        } else {
            let path = path.display();
            assert_eq!(found, transcript, "{path}; look, then UPDATE_EXPECT=1");
        }
    }
    count
}

#[test]
fn every_policy_transcript_comes_out_as_written() {
    let count = transcripts(CASES);
    assert!(count >= 1, "{count}");
}

/// What a build server reads is well-formed and says what failed.
#[test]
fn the_junit_report_says_what_failed() {
    let fixture = fixture();
    let (config, folder, report) = (
        fixture.path("gate.yaml"),
        fixture.path("failing"),
        fixture.path("report.xml"),
    );
    let run = |paths: &[&str]| {
        let mut arguments = vec!["test", "--config", config.to_str().unwrap()];
        arguments.extend(["--junit", report.to_str().unwrap()]);
        arguments.extend(paths);
        fixture.run(&arguments, "").status.code()
    };
    assert_eq!(run(&[folder.to_str().unwrap()]), Some(4));
    let text = fs::read_to_string(&report).unwrap();
    let name = "name=\"only reviewers &amp; &lt;friends&gt; review\"";
    for wanted in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n",
        "tests=\"2\" failures=\"1\"",
        name,
        "<failure message=\"effect: expected deny, got allow; ",
        ">rule `everybody` allows it</failure>",
        "name=\"everybody says hello\"",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert_eq!(run(&[]), Some(0));
    let text = fs::read_to_string(&report).unwrap();
    assert_eq!(text.matches("<testsuite ").count(), 2, "{text}");
    assert!(!text.contains("<failure"));
    // A report that cannot be written is no success.
    fs::remove_file(&report).unwrap();
    fs::create_dir(&report).unwrap();
    assert_eq!(run(&[]), Some(3));
}

/// A policy of one rule, with tests of it.
struct Weakened {
    /// The rule's scope and grant, its condition, and other rules.
    rule: &'static str,
    tests: &'static [&'static str],
    /// What takes the place of what.
    weaker: &'static [(&'static str, &'static str)],
}

const SCOPE: &str =
    "{agents: [pr-agent], operations: [messages], skills: [review-diff], issuers: [corp]}";

/// Of each kind of matcher and scope: a policy whose tests mutate clean, and weaker ones for which
/// the same tests still pass, and of which some mutant must survive.
const WEAKENED: &[Weakened] = &[
    Weakened {
        rule: "grant: agent\n    require: {role: {equals: reviewer}}",
        tests: &["{role: reviewer}"],
        weaker: &[
            ("{equals: reviewer}", "{exists: true}"),
            ("{equals: reviewer}", "{matches: \"*\"}"),
            ("{equals: reviewer}", "{matches: \"review*\"}"),
            ("{equals: reviewer}", "{any_of: [reviewer, admin]}"),
            ("require: {role: {equals: reviewer}}", ""),
            ("issuers: [corp]", "issuers: any"),
            ("skills: [review-diff]", "skills: any"),
            ("skills: [review-diff]", "skills: [review-diff, hello]"),
            ("agents: [pr-agent]", "agents: any"),
            ("operations: [messages]", "operations: any"),
            ("operations: [messages]", "operations: [messages, tasks]"),
            (
                "operations: [messages]",
                "operations: [messages, GetExtendedAgentCard]",
            ),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {role: {any_of: [admin, reviewer]}}",
        tests: &["{role: reviewer}", "{role: admin}"],
        weaker: &[
            ("[admin, reviewer]", "[admin, owner, reviewer]"),
            ("{any_of: [admin, reviewer]}", "{matches: \"*\"}"),
            ("{any_of: [admin, reviewer]}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {role: {matches: \"team/*\"}}",
        tests: &["{role: team/a}", "{role: team/b}"],
        weaker: &[
            ("{matches: \"team/*\"}", "{matches: \"*/*\"}"),
            ("{matches: \"team/*\"}", "{matches: \"t*/*\"}"),
            ("{matches: \"team/*\"}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {groups: {contains: ops}}",
        tests: &["{realm_access: {roles: [ops]}}"],
        weaker: &[
            ("{contains: ops}", "{any_of: [ops, staff]}"),
            ("{contains: ops}", "{exists: true}"),
            ("require: {groups: {contains: ops}}", ""),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {groups: {any_of: [eu, ops]}}",
        tests: &[
            "{realm_access: {roles: [ops]}}",
            "{realm_access: {roles: [eu]}}",
        ],
        weaker: &[
            ("[eu, ops]", "[eu, ops, us]"),
            ("{any_of: [eu, ops]}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {groups: {all_of: [eu, ops]}}",
        tests: &["{realm_access: {roles: [ops, eu]}}"],
        weaker: &[
            ("{all_of: [eu, ops]}", "{contains: ops}"),
            ("{all_of: [eu, ops]}", "{any_of: [eu, ops]}"),
            ("{all_of: [eu, ops]}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {equals: 3}}",
        tests: &["{level: 3}"],
        weaker: &[
            ("{equals: 3}", "{gte: 3}"),
            ("{equals: 3}", "{lte: 3}"),
            ("{equals: 3}", "{between: [3, 4]}"),
            ("{equals: 3}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {gte: 3}}",
        tests: &["{level: 3}", "{level: 7}"],
        weaker: &[("{gte: 3}", "{gte: 2}"), ("{gte: 3}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {gt: 2}}",
        tests: &["{level: 3}", "{level: 7}"],
        weaker: &[("{gt: 2}", "{gt: 1}"), ("{gt: 2}", "{gte: 2}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {lte: 3}}",
        tests: &["{level: 3}", "{level: 1}"],
        weaker: &[("{lte: 3}", "{lte: 4}"), ("{lte: 3}", "{lt: 5}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {lt: 4}}",
        tests: &["{level: 3}", "{level: 1}"],
        weaker: &[("{lt: 4}", "{lt: 5}"), ("{lt: 4}", "{lte: 4}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {level: {between: [3, 5]}}",
        tests: &["{level: 3}", "{level: 5}"],
        weaker: &[
            ("[3, 5]", "[2, 5]"),
            ("[3, 5]", "[3, 6]"),
            ("{between: [3, 5]}", "{exists: true}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {verified: {equals: true}}",
        tests: &["{verified: true}"],
        weaker: &[("{equals: true}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {teams: {contains: red}}",
        tests: &["{teams: red}"],
        weaker: &[
            ("{contains: red}", "{exists: true}"),
            ("{contains: red}", "{any_of: [red, blue]}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {sub: {equals: alice}}",
        tests: &["{sub: alice}"],
        weaker: &[
            ("{equals: alice}", "{matches: \"*\"}"),
            ("{equals: alice}", "{any_of: [alice, bob]}"),
        ],
    },
    Weakened {
        rule: "grant: agent\n    require: {client_id: {equals: console}}",
        tests: &["{client_id: console}"],
        weaker: &[("{equals: console}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {actor_sub: {equals: robot}}",
        tests: &["{act: {sub: robot}}"],
        weaker: &[("{equals: robot}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {scopes: {contains: review}}",
        tests: &["{scope: review}"],
        weaker: &[("{contains: review}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {proof: {equals: dpop}}",
        tests: &["{cnf: {jkt: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}}"],
        weaker: &[("{equals: dpop}", "{any_of: [dpop, none]}")],
    },
    Weakened {
        rule: "grant: agent\n    require: {delegated: {equals: false}, role: {equals: reviewer}}",
        tests: &["{role: reviewer}"],
        weaker: &[(
            "{delegated: {equals: false}, ",
            "{delegated: {exists: true}, ",
        )],
    },
    Weakened {
        rule: "grant: agent\n    require: {role: {equals: reviewer}, level: {exists: false}}",
        tests: &["{role: reviewer}"],
        weaker: &[("{equals: reviewer}", "{exists: true}")],
    },
    Weakened {
        rule: "grant: full\n    require: {role: {equals: reviewer}}",
        tests: &["{role: reviewer, scope: a2a.full}"],
        weaker: &[("grant: full", "grant: agent")],
    },
    Weakened {
        rule: "grant: agent\n    require: {role: {equals: reviewer}}\n  - id: staff\n    deny: {agents: any, operations: any, skills: any}\n    unless: {groups: {contains: staff}}",
        tests: &["{role: reviewer, realm_access: {roles: [staff]}}"],
        weaker: &[
            ("{contains: staff}", "{exists: true}"),
            ("{contains: staff}", "{any_of: [staff, guests]}"),
            (
                "unless: {groups: {contains: staff}}",
                "unless: {role: {equals: reviewer}}",
            ),
        ],
    },
];

impl Weakened {
    fn yaml(&self) -> String {
        let mut text = format!(
            "version: 1\npolicy: p\nrules:\n  - id: r\n    allow: {SCOPE}\n    {}\ntests:\n",
            self.rule
        );
        for (i, claims) in self.tests.iter().enumerate() {
            let grant = match claims.contains("a2a.") {
                true => "",
                false => "grant: agent, ",
            };
            text += &format!(
                "  - name: t{i}\n    as: {{issuer: corp, {grant}claims: {claims}}}\n    call: {{agent: pr-agent, operation: SendMessage, skill: review-diff}}\n    expect: {{effect: allow, rule: r}}\n"
            );
        }
        text
    }
}

#[test]
fn a_mutant_survives_wherever_a_rule_is_weakened() {
    let fixture = fixture();
    let (config, policy) = (fixture.path("gate.yaml"), fixture.path("p.yaml"));
    let run = |yaml: &str| {
        fs::write(&policy, yaml).unwrap();
        let arguments = ["mutate", "--config", config.to_str().unwrap()];
        let output = fixture.run(&[&arguments[..], &[policy.to_str().unwrap()]].concat(), "");
        let mut said = String::from_utf8(output.stdout).unwrap();
        said += &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in WEAKENED {
        let strict = case.yaml();
        let (code, said) = run(&strict);
        if code != Some(0) {
            wrong.push(format!("not clean: {code:?}\n{strict}{said}"));
        }
        for (from, to) in case.weaker {
            count += 1;
            let weaker = strict.replacen(from, to, 1);
            assert_ne!(weaker, strict, "{from}");
            let (code, said) = run(&weaker);
            if code != Some(4) || !said.contains("SURVIVED") {
                wrong.push(format!("{from} -> {to}: {code:?}\n{weaker}{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
    assert!(count >= 50, "{count}");
}

/// The same of what messages say.
#[test]
fn a_mutant_survives_wherever_a_condition_on_content_is_weakened() {
    let fixture = fixture();
    let (config, policy) = (fixture.path("gate.yaml"), fixture.path("p.yaml"));
    let mutate = |yaml: &str| {
        fs::write(&policy, yaml).unwrap();
        let (config, policy) = (config.to_str().unwrap(), policy.to_str().unwrap());
        let output = fixture.run(&["mutate", "--config", config, policy], "");
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let condition =
        "content: [{path: \"$.message.parts[*].data.repo\", each: {matches: \"sandbox/*\"}}]";
    let mut strict = format!(
        "version: 1\npolicy: p\nrules:\n  - id: r\n    allow: {SCOPE}\n    grant: agent\n    require:\n      role: {{equals: reviewer}}\n      {condition}\ntests:\n"
    );
    for repo in ["a", "b"] {
        strict += &format!(
            "  - name: {repo}\n    as: {{issuer: corp, grant: agent, claims: {{role: reviewer}}}}\n    call:\n      agent: pr-agent\n      operation: SendMessage\n      skill: review-diff\n      message: {{parts: [{{data: {{repo: sandbox/{repo}}}}}, {{text: see above}}]}}\n    expect: {{effect: allow, rule: r}}\n"
        );
    }
    let elsewhere = "  - name: elsewhere\n    as: {issuer: corp, grant: agent, claims: {role: reviewer}}\n    call: {agent: pr-agent, operation: SendMessage, skill: review-diff, message: {parts: [{data: {repo: prod/a}}]}}\n    expect: {effect: deny, near: {rule: r, content: \"$.message.parts[*].data.repo\", why: value_differs}}\n";
    let (code, said) = mutate(&(strict.clone() + elsewhere));
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("content parts.0.data.repo with more behind it: see `b`"),
        "{said}"
    );
    for weaker in [
        "{matches: \"*/*\"}",
        "{matches: \"*box/*\"}",
        "{exists: true}",
    ] {
        let weaker = match weaker {
            "{exists: true}" => {
                strict.replacen("each: {matches: \"sandbox/*\"}", "some: {exists: true}", 1)
            }
            _ => strict.replacen("{matches: \"sandbox/*\"}", weaker, 1),
        };
        assert_ne!(weaker, strict);
        let (code, said) = mutate(&weaker);
        assert_eq!(code, Some(4), "{weaker}\n{said}");
        assert!(
            said.contains("SURVIVED    content parts.0.data.repo"),
            "{said}"
        );
    }
    let (code, said) = mutate(&strict.replacen(condition, "", 1));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("SURVIVED    content any"), "{said}");
}

/// A token is verified as the gateway verifies it, and then judged as a described caller is.
#[test]
fn a_token_is_judged_by_what_it_really_says() {
    let fixture = Fixture::new();
    let config = fixture.path("gateway.yaml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("    route:", "    publish: true\n    route:");
    let text = text + "policies: {files: [demo.yaml]}\n";
    fs::write(&config, text).unwrap();
    fs::write(
        fixture.path("demo.yaml"),
        "version: 1\npolicy: demo\nrules:\n  - id: r\n    allow: {agents: [demo], operations: [tasks]}\n    grant: agent\n    require: {role: {equals: reviewer}}\n",
    )
    .unwrap();
    let ask = |command: &[&str], token: &str| {
        let mut arguments = command.to_vec();
        arguments.extend(["GetTask", "--agent", "demo", "--token", "-", "--config"]);
        arguments.push(config.to_str().unwrap());
        let output = fixture.run(&arguments, token);
        let said = String::from_utf8(output.stdout).unwrap();
        let signature = token.rsplit('.').next().unwrap();
        assert!(!said.contains(signature), "a token is shown");
        (output.status.code(), said)
    };
    let issuer = &fixture.issuer;
    let reviewer = issuer.token("alice", Grant::Agent, json!({"role": "reviewer"}));
    let plain = issuer.token("bob", Grant::Agent, json!({}));
    let expired = issuer.bad_token("alice", Wrong::Expired);
    let (code, said) = ask(&["can-i"], &reviewer);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "yes: rule `r` allows it\n")
    );
    let (code, said) = ask(&["can-i"], &plain);
    let nearest = "no: no rule allows it; nearest is `r`, but the token has no claim `role`\n";
    assert_eq!((code, said.as_str()), (Some(1), nearest));
    let (code, said) = ask(&["can-i"], &expired);
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "no: the token is refused by CL-3 (expired)\n")
    );
    let (code, said) = ask(&["explain"], &reviewer);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("caller    alice of issuer dev,"), "{said}");
    assert!(said.contains("role equals reviewer: true"), "{said}");
    let (code, said) = ask(&["explain"], &expired);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("decision  deny (expired), HTTP 401"),
        "{said}"
    );
}
