//! The gateway file: golden messages, examples, the schema, reloading.

#![allow(clippy::unwrap_used)]

mod reloading;

use portcullis::a2a::skill_rules::Selector;
use portcullis::config::{self, canonical};
use portcullis::source::{Document, Kind, Node, Position, Problems, Walker, codes};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CASES: &str = "tests/cases/config";

/// Compares with a golden file, or writes it when `UPDATE_EXPECT` is set.
pub(crate) fn expect_file(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        found,
        expected,
        "{} differs; look, then run with UPDATE_EXPECT=1",
        path.display()
    );
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(CASES)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .collect();
    cases.sort();
    cases
}

fn problems_of(file: &Path) -> Problems {
    match config::load(file) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => {
            assert!(
                problems.has_errors(),
                "{}: refused for nothing",
                file.display()
            );
            problems
        }
    }
}

/// Each case with what is wrong with it.
pub(crate) fn wrong_files() -> Vec<(PathBuf, Problems)> {
    let problems = |case: PathBuf| {
        let problems = problems_of(&case);
        (case, problems)
    };
    cases().into_iter().map(problems).collect()
}

/// What a running gateway says to another address of its listener.
pub(crate) fn changed_address() -> Problems {
    reloading::changed_address()
}

#[test]
fn every_wrong_file_has_its_message() {
    for (case, problems) in wrong_files() {
        expect_file(&case.with_extension("expected"), &problems.to_string());
    }
}

#[test]
fn the_examples_load_without_a_problem() {
    let of_issuers = ["keycloak", "entra", "auth0", "okta", "cognito", "spiffe"];
    let of_issuers = of_issuers.map(|product| format!("config/issuers/{product}.yaml"));
    let others = ["config/gateway.yaml", "config/reference.yaml"].map(str::to_owned);
    for file in others.iter().chain(&of_issuers) {
        match config::load(Path::new(file)) {
            Ok(loaded) => assert_eq!(loaded.warnings.to_string(), "", "{file}"),
            Err(problems) => panic!("{problems}"),
        }
    }
}

#[test]
fn the_schema_is_the_one_that_is_checked_in() {
    expect_file(
        Path::new("config/gateway.schema.json"),
        &config::schema::gateway(),
    );
}

/// The reference file has every field of the schema, so the next test speaks of all of them.
#[test]
fn the_reference_file_shows_every_field() {
    let text = fs::read_to_string("config/reference.yaml").unwrap();
    let schema: serde_json::Value = serde_json::from_str(&config::schema::gateway()).unwrap();
    let mut definitions = vec![&schema];
    definitions.extend(schema["definitions"].as_object().unwrap().values());
    for definition in definitions {
        for name in definition["properties"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("{name}:")), "{name} is not shown");
        }
    }
}

/// A field that is declared but never read would be silently ignored: with nonsense in any one
/// place of the reference file, the file must be refused.
#[test]
fn no_value_of_the_reference_file_is_ignored() {
    let text = fs::read_to_string("config/reference.yaml").unwrap();
    let document = Document::parse("reference.yaml", &text).unwrap();
    let mut places = Vec::new();
    collect(&document.root, &mut Vec::new(), &mut places);
    assert!(places.len() > 100);
    for place in places {
        let mut changed = Document::parse("config/reference.yaml", &text).unwrap();
        *reach(&mut changed.root, &place) = nonsense();
        let mut capture = config::Capture::take(Path::new("config/reference.yaml"));
        capture.document = Ok(changed);
        let result = config::compile(&capture, 1, None);
        assert!(result.is_err(), "{place:?} is ignored");
    }
}

fn nonsense() -> Node {
    Document::parse("n", "[[{nonsense: 1}]]").unwrap().root
}

fn collect(node: &Node, path: &mut Vec<usize>, places: &mut Vec<Vec<usize>>) {
    let children: Vec<&Node> = match &node.kind {
        Kind::Seq(items) => items.iter().collect(),
        Kind::Map(entries) => entries.iter().map(|(_, v)| v).collect(),
        _ => Vec::new(),
    };
    for (i, child) in children.into_iter().enumerate() {
        path.push(i);
        places.push(path.clone());
        collect(child, path, places);
        path.pop();
    }
}

fn reach<'n>(node: &'n mut Node, path: &[usize]) -> &'n mut Node {
    let Some((first, rest)) = path.split_first() else {
        return node;
    };
    match &mut node.kind {
        Kind::Seq(items) => reach(&mut items[*first], rest),
        Kind::Map(entries) => reach(&mut entries[*first].1, rest),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_problems_come_at_once_and_in_file_order() {
    let problems = problems_of(Path::new("tests/cases/config/many-at-once.yaml"));
    let lines: Vec<usize> = problems.0.iter().map(|p| p.line).collect();
    assert!(lines.len() >= 6 && lines.is_sorted(), "{lines:?}");
}

#[test]
fn a_file_compiles_to_what_it_says() {
    let loaded = config::load(Path::new("config/reference.yaml")).unwrap();
    let snapshot = loaded.snapshot;
    let agent = &snapshot.agents[0];
    assert_eq!(&*agent.route, "/agents/pr-agent");
    assert_eq!(&*agent.backend.authority, "127.0.0.1:9999");
    assert_eq!(&*agent.backend.base_path, "/a2a");
    let selectors = agent.skill_rules.as_ref().unwrap().selectors();
    assert_eq!(selectors[1], Selector::RequestMetadata("skill_id".into()));
    assert_eq!(agent.limits.max_stream, Duration::from_secs(4 * 3600));
    let config::snapshot::Interfaces::Listed(listed) = &agent.interfaces else {
        panic!("{:?}", agent.interfaces)
    };
    assert_eq!(
        (&*listed[0].public_path, &*listed[0].backend_path),
        ("/v1", "/a2a/")
    );
    assert!(listed[1].public_path.is_empty() && listed[1].versions.v0_3);
    assert_eq!(agent.skill_of(&listed[1]), None);
    assert_eq!(agent.skill_of(&listed[2]), Some("review-diff"));
    assert_eq!(listed[3].public_path, listed[1].public_path);
    assert_eq!(&*listed[3].backend_path, "/a2a/rest");
    let weather = &snapshot.agents[1];
    assert_eq!(
        weather
            .backend
            .card_paths
            .iter()
            .map(|p| &**p)
            .collect::<Vec<_>>(),
        ["/.well-known/agent-card.json", "/.well-known/agent.json"]
    );
    assert_eq!(&*snapshot.listeners[0].hosts[0], "agents.example.com");
    assert_eq!(&*snapshot.listeners[1].hosts[0], "localhost:8081");
    assert_eq!(snapshot.issuers[0].not_before, Some(1_767_225_600));
    assert_eq!(snapshot.policies.len(), 1);
    assert_eq!(snapshot.digest.len(), 64);
}

#[test]
fn a_path_leads_to_the_agent_of_its_segments() {
    let loaded = config::load(Path::new("config/reference.yaml")).unwrap();
    let routes = &loaded.snapshot.routes;
    let cases = [
        ("/agents/weather", Some(("weather", ""))),
        ("/agents/weather/", Some(("weather", ""))),
        ("/agents/%77eather/tasks/x", Some(("weather", "/tasks/x"))),
        ("/agents/pr-agent/v1", Some(("pr-agent", "/v1"))),
        ("/agents/weather2", None),
        ("/agents/Weather", None),
        ("/agents/weather.", None),
        ("/agents", None),
        ("/", None),
        ("/x/agents/weather", None),
    ];
    for (raw, expected) in cases {
        let path = canonical(raw).unwrap();
        let found = routes
            .match_agent(&path)
            .map(|(agent, rest)| (&*agent.name, rest));
        assert_eq!(found, expected, "{raw}");
    }
}

#[test]
fn one_agent_may_have_the_whole_origin() {
    let folder = Folder::new();
    folder.write("gateway.yaml", &gateway("/", "127.0.0.1:0", "j"));
    let loaded = config::load(&folder.path("gateway.yaml")).unwrap();
    for raw in ["/", "/a/b"] {
        let path = canonical(raw).unwrap();
        let (agent, rest) = loaded.snapshot.routes.match_agent(&path).unwrap();
        assert_eq!((&*agent.name, rest), ("a", raw.trim_end_matches('/')));
    }
}

#[test]
fn a_thousand_agents_are_told_apart() {
    let folder = Folder::new();
    let agents: String = (0..1000)
        .map(|i| {
            let route = "/x".repeat(i % 5) + &format!("/agent-{i}");
            format!(
                "  - {{name: a{i}, route: {{path: {route}}}, backend: {{url: \"http://h\"}}}}\n"
            )
        })
        .collect();
    let text = gateway("/first", "127.0.0.1:0", "j");
    let start = text.find("agents:").unwrap();
    let end = text.find("audit:").unwrap();
    let text = format!("{}agents:\n{agents}{}", &text[..start], &text[end..]);
    folder.write("gateway.yaml", &text);
    let loaded = config::load(&folder.path("gateway.yaml")).unwrap();
    let routes = &loaded.snapshot.routes;
    for agent in loaded.snapshot.agents.iter() {
        for rest in ["", "/tasks/1", &"/y".repeat(1000)] {
            let raw = format!("{}{rest}", agent.route);
            let path = canonical(&raw).unwrap();
            let (found, below) = routes.match_agent(&path).unwrap();
            assert_eq!((found.index, below), (agent.index, rest));
        }
        let raw = format!("{}0x", agent.route);
        assert!(routes.match_agent(&canonical(&raw).unwrap()).is_none());
    }
}

#[test]
fn a_key_file_that_anybody_may_write_is_refused() {
    let folder = Folder::new();
    let issuer = "issuers: [{name: i, issuer: x, audiences: [y], keys: {file: k.json}, \
                  grants: [{path: [scope], form: either, map: {a: agent}}]}]\n";
    folder.write("k.json", "{\"keys\": []}");
    folder.write(
        "gateway.yaml",
        &(gateway("/a", "127.0.0.1:0", "j") + issuer),
    );
    let file = folder.path("gateway.yaml");
    assert!(config::load(&file).is_ok());
    let mode = fs::Permissions::from_mode(0o666);
    fs::set_permissions(folder.path("k.json"), mode).unwrap();
    let problems = config::load(&file).unwrap_err();
    assert!(
        problems.0.iter().any(|p| p.code == codes::KEY_FILE),
        "{problems}"
    );
}

/// A directory that vanishes with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }
}

fn gateway(route: &str, bind: &str, journal: &str) -> String {
    format!(
        "version: 1\n\
         listeners: [{{name: l, bind: \"{bind}\", public_url: \"http://localhost\"}}]\n\
         agents: [{{name: a, route: {{path: {route}}}, backend: {{url: \"http://127.0.0.1:1\"}}}}]\n\
         audit: {{journal: {{dir: {journal}}}}}\n"
    )
}

#[test]
fn a_walker_starts_with_what_the_reading_found() {
    let document = Document::parse("t", "a: 1\na: 2\n").unwrap();
    let walker = Walker::new(&document);
    walker.root().error(codes::BAD_NAME, "x", "y");
    let found: Vec<_> = walker
        .into_problems()
        .0
        .into_iter()
        .map(|p| (p.code, p.line))
        .collect();
    assert_eq!(found, [(codes::BAD_NAME, 1), (codes::DUPLICATE_KEY, 2)]);
    assert_eq!(document.root.position, Position { line: 1, column: 1 });
}
