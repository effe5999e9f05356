//! A rule's tree, written as a person would.

use crate::source::{Key, Kind, Node, Position};

/// A rule as an item of `rules`, with a line feed at its end.
pub(super) fn rule(rule: &Node) -> String {
    let Kind::Map(members) = &rule.kind else {
        return String::new();
    };
    let mut text = String::new();
    for (i, (key, value)) in members.iter().enumerate() {
        let lead = if i == 0 { "  - " } else { "    " };
        text += &format!("{lead}{}: {}\n", scalar(&key.name, false), flow(value));
    }
    text
}

fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Seq(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Map(members) => {
            let member = |(key, value): &(Key, Node)| {
                format!("{}: {}", scalar(&key.name, false), flow(value))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        Kind::Str(text) => scalar(text, node.quoted),
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => node.written.to_string(),
        Kind::Null | Kind::Reported => "null".to_owned(),
    }
}

/// Plain where that is read as the same text, in quotes elsewhere.
fn scalar(text: &str, quoted: bool) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'));
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if plain && !quoted && !words.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    // A JSON string is one of YAML as well.
    serde_json::Value::from(text).to_string()
}

/// Text that nobody wrote.
pub(super) fn text(text: &str) -> Node {
    Node {
        kind: Kind::Str(text.to_owned()),
        position: Position::default(),
        quoted: false,
        written: text.into(),
    }
}

/// A list of it.
pub(super) fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> Node {
    Node {
        kind: Kind::Seq(texts.into_iter().map(text).collect()),
        position: Position::default(),
        quoted: false,
        written: Box::default(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::source::Document;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let head = "version: 1\npolicy: p\nrules:\n";
        let text = "  - id: r1
    allow: {agents: [a, \"b c\"], operations: any, skills: [x/y]}
    grant: agent
    require: {role: {any_of: [\"5\", \"yes\", \"a: b\", \"*\", \"-\"]}, level: {between: [1, 2.50]}, \"a b\": {equals: true}}
";
        let read = |text: &str| Document::parse("p.yaml", text).unwrap().root;
        let whole = read(&format!("{head}{text}"));
        let Kind::Seq(rules) = &whole.get("rules").unwrap().kind else {
            panic!("no rules")
        };
        assert_eq!(rule(&rules[0]), text);
    }
}
