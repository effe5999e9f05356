//! Problems as SARIF 2.1.0, for the tools that show findings beside the lines of a change.

use crate::source::{Problem, Problems, Severity, codes};
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// One log with one run; the rules are the codes that occur.
pub(super) fn log(problems: &Problems) -> Value {
    let occurs = |code: &&codes::Code| problems.0.iter().any(|p| p.code == code.code);
    let occurring: Vec<&codes::Code> = codes::ALL.iter().filter(occurs).collect();
    let rules: Vec<Value> = occurring.iter().map(|code| rule(code)).collect();
    let results: Vec<Value> = problems
        .0
        .iter()
        .map(|problem| {
            let index = occurring.iter().position(|code| code.code == problem.code);
            result(problem, index)
        })
        .collect();
    let driver =
        json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    let run = json!({ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints",
        "results": results });
    json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
}

fn rule(code: &codes::Code) -> Value {
    json!({ "id": code.code, "name": code.title(), "shortDescription": { "text": code.title() },
        "fullDescription": { "text": code.meaning() },
        "defaultConfiguration": { "level": if code.is_warning() { "warning" } else { "error" } } })
}

fn result(problem: &Problem, rule_index: Option<usize>) -> Value {
    let level = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let text = match &problem.hint {
        Some(hint) => format!("{}: {hint}", problem.message),
        None => problem.message.clone(),
    };
    let mut place = json!({ "artifactLocation": { "uri": uri(&problem.file) } });
    if problem.line > 0
        && let Some(place) = place.as_object_mut()
    {
        let region = json!({ "startLine": problem.line, "startColumn": problem.column.max(1),
            "snippet": { "text": problem.source_line } });
        place.insert("region".to_owned(), region);
    }
    let mut result = json!({ "ruleId": problem.code, "level": level, "message": { "text": text },
        "locations": [{ "physicalLocation": place }] });
    if let (Some(result), Some(index)) = (result.as_object_mut(), rule_index) {
        result.insert("ruleIndex".to_owned(), index.into());
    }
    result
}

/// A path as a relative reference (RFC 3986 section 4.2), or a `file` URL.
fn uri(file: &str) -> String {
    let mut uri = String::with_capacity(file.len());
    if file.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_reference() {
        assert_eq!(uri("policies/a b.yaml"), "policies/a%20b.yaml");
        assert_eq!(uri("/etc/p:1.yaml"), "file:///etc/p%3A1.yaml");
    }

    #[test]
    fn each_problem_is_a_result_at_its_place() {
        let problem = Problem {
            line: 3,
            column: 5,
            source_line: "    rolee: x".to_owned(),
            ..Problem::of_file("p.yaml", codes::UNKNOWN_FIELD, "unknown field `rolee`")
        }
        .hint("did you mean `role`?");
        let whole = Problem::of_file("q.yaml", codes::NO_POLICY, "no policy").warning();
        let log = log(&Problems(vec![whole, problem]));
        let run = &log["runs"][0];
        let ids: Vec<_> = run["tool"]["driver"]["rules"]
            .as_array()
            .map(|rules| rules.iter().map(|rule| rule["id"].as_str()).collect())
            .unwrap_or_default();
        assert_eq!(ids, [Some("PC020"), Some("PC111")]);
        let (first, second) = (&run["results"][0], &run["results"][1]);
        assert_eq!(first["ruleIndex"], 1);
        assert_eq!(first["level"], "warning");
        assert!(
            first["locations"][0]["physicalLocation"]
                .get("region")
                .is_none()
        );
        assert_eq!(second["ruleIndex"], 0);
        let text = "unknown field `rolee`: did you mean `role`?";
        assert_eq!(second["message"]["text"], text);
        let region = &second["locations"][0]["physicalLocation"]["region"];
        assert_eq!(
            (&region["startLine"], &region["startColumn"]),
            (&json!(3), &json!(5))
        );
    }
}
