//! What `deploy/dashboards` ships is whole: a dashboard that Grafana takes, rules about metrics that
//! there are, alerts that say what to do. `tests/dashboards/run` tries them with Prometheus.

use portcullis::source::{Document, Kind, Node};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join("deploy/dashboards").join(name)).unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(&text("portcullis.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |list| list)
}

#[test]
fn grafana_can_take_the_dashboard() {
    let board = dashboard();
    assert!(board["schemaVersion"].as_u64().unwrap() >= 36);
    assert_eq!(board["uid"], "portcullis");
    let variables = list(&board["templating"]["list"]);
    let variable = |name: &str| variables.iter().find(|v| v["name"] == name).unwrap();
    assert_eq!(variable("datasource")["type"], "datasource");
    assert_eq!(variable("agent")["type"], "query");
    let panels = list(&board["panels"]);
    assert!(panels.len() > 20);
    let (mut ids, mut taken) = (HashSet::new(), HashSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: id");
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(
            at("w") > 0 && at("h") > 0 && at("x") + at("w") <= 24,
            "{title}"
        );
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} lies over another panel");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            !panel["description"].as_str().unwrap().is_empty(),
            "{title}"
        );
        let targets = list(&panel["targets"]);
        assert!(!targets.is_empty(), "{title}");
        let mut references = HashSet::new();
        for target in targets.iter().chain([panel]) {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
        for target in targets {
            assert!(!target["expr"].as_str().unwrap().is_empty(), "{title}");
            assert!(
                references.insert(target["refId"].as_str().unwrap()),
                "{title}"
            );
        }
    }
}

fn rules(name: &str) -> Vec<Node> {
    let document = Document::parse(name, &text(name)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(document.problems.to_string(), "", "{name}");
    let mut rules = Vec::new();
    for group in items(document.root.get("groups").unwrap()) {
        rules.extend(items(group.get("rules").unwrap()).iter().cloned());
    }
    rules
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::Seq(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn member<'n>(node: &'n Node, name: &str) -> &'n str {
    let found = node.get(name);
    &found.unwrap_or_else(|| panic!("no `{name}`")).written
}

/// Every query of the dashboard and of the rules.
fn queries() -> Vec<String> {
    let board = dashboard();
    let targets = list(&board["panels"])
        .iter()
        .flat_map(|p| list(&p["targets"]));
    let notes = list(&board["annotations"]["list"]);
    let exprs = targets
        .chain(notes)
        .map(|q| q["expr"].as_str().unwrap().to_owned());
    let rules = [rules("recording.yml"), rules("alerts.yml")].concat();
    let of_rules = rules.iter().map(|rule| member(rule, "expr").to_owned());
    exprs.chain(of_rules).collect()
}

/// Names of metrics and of recorded series in a query.
fn names(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    let ours = words.filter(|w| w.starts_with("portcullis_") || w.starts_with("portcullis:"));
    ours.map(str::to_owned).collect()
}

fn sources(folder: PathBuf, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => sources(path, all),
            path => all.push_str(&fs::read_to_string(path).unwrap()),
        }
    }
}

#[test]
fn every_metric_that_they_ask_for_is_measured() {
    let recorded: HashSet<_> = rules("recording.yml")
        .iter()
        .map(|rule| member(rule, "record").to_owned())
        .collect();
    let mut measured = String::new();
    sources(root().join("src"), &mut measured);
    let mut asked = BTreeSet::new();
    for query in queries() {
        asked.extend(names(&query));
    }
    assert!(asked.len() > 25, "{asked:?}");
    for name in &asked {
        if name.contains(':') {
            assert!(recorded.contains(name), "`{name}` is not recorded");
            continue;
        }
        let plain = name.strip_suffix("_bucket").unwrap_or(name);
        let short = plain.strip_prefix("portcullis_").unwrap();
        let is_measured =
            measured.contains(&format!("\"{short}\"")) || measured.contains(&format!("{plain}{{"));
        assert!(is_measured, "nothing is called `{name}`");
    }
    for name in &recorded {
        assert!(asked.contains(name), "nobody asks for `{name}`");
    }
}

#[test]
fn every_alert_says_what_it_is_about_and_what_to_do() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let tests = text("tests.yml");
    let alerts = rules("alerts.yml");
    assert!(alerts.len() >= 10);
    for alert in alerts {
        let name = member(&alert, "alert");
        let severity = member(alert.get("labels").unwrap(), "severity");
        assert!(["critical", "warning"].contains(&severity), "{name}");
        let annotations = alert.get("annotations").unwrap();
        for part in ["summary", "description", "runbook"] {
            assert!(member(annotations, part).len() > 20, "{name}: {part}");
        }
        assert!(tests.contains(name), "`{name}` has no test");
        let row = format!("| `{name}` | {severity} |");
        assert!(readme.contains(&row), "README lacks `{row}`");
    }
}
