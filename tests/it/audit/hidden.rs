//! Questions about values that the journal hides.

use super::made::{Made, Said, command_on, request};
use portcullis::audit::redact::hidden::{Class, HidingKey};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const CONFIG: &str = "version: 1
listeners: [{name: public, bind: 127.0.0.1:8080, public_url: http://localhost:8080}]
agents: [{name: pr-agent, route: {path: /agents/pr-agent}, backend: {url: \"http://127.0.0.1:9999\"}}]
keys: {fingerprint: [{file: new.key}, {file: old.key}]}
";

/// Calls of alice as she is, then under an old key, then under a new one; one of bob's under that;
/// all from one address, plain, hidden, and as a network.
fn made() -> Made {
    let mut made = Made::new();
    made.open();
    let (old, new) = (HidingKey::new(&[8; 32]), HidingKey::new(&[7; 32]));
    let address = |key: &HidingKey| key.hide(Class::Address, "192.0.2.1");
    for (subject, addr, task) in [
        (
            "alice".to_owned(),
            "192.0.2.1:4711".to_owned(),
            "t-1".to_owned(),
        ),
        (
            old.hide(Class::Subject, "alice"),
            address(&old),
            old.hide(Class::Id, "t-1"),
        ),
        (
            new.hide(Class::Subject, "alice"),
            address(&new),
            new.hide(Class::Id, "t-2"),
        ),
        (
            new.hide(Class::Subject, "bob"),
            "192.0.2.0/24".to_owned(),
            "t-3".to_owned(),
        ),
    ] {
        made.put(
            "refusal",
            json!({
                "request_id": request(made.next()), "agent": "pr-agent", "task_id": task,
                "source": {"addr": addr, "listener": "public"},
                "caller": {"issuer": "corp", "subject": subject, "claims": {"who": subject}},
                "decision": {"effect": "deny", "reason": "no_rule"},
                "delivery": "not_attempted", "reached": "no",
            }),
        );
        made.rotate();
    }
    made.close();
    // Each is 32 equal bytes in base64.
    fs::write(made.file("new.key"), "BwcH".repeat(10) + "Bwc=\n").unwrap();
    fs::write(made.file("old.key"), "CAgI".repeat(10) + "CAg=\n").unwrap();
    made
}

fn keys(made: &Made, names: &[&str]) -> Vec<String> {
    let file = |name: &&str| made.file(name).to_str().unwrap().to_owned();
    names
        .iter()
        .flat_map(|name| ["--key".to_owned(), file(name)])
        .collect()
}

fn ask(made: &Made, condition: &str, names: &[&str]) -> (usize, Said) {
    let keys = keys(made, names);
    let mut arguments = vec!["query", condition, "--json"];
    arguments.extend(keys.iter().map(String::as_str));
    let said = made.audit(&arguments);
    (said.json_lines().len(), said)
}

#[test]
fn a_value_is_found_as_it_is_and_under_each_key() {
    let made = made();
    let both = ["old.key", "new.key"];
    for (condition, names, found) in [
        ("subject=alice", &both[..], 3),
        ("subject!=alice", &both, 1),
        ("subject=alice", &both[..1], 2),
        ("subject=bob", &both, 1),
        ("caller.subject=carol", &both, 0),
        ("claims.who=alice", &both, 3),
        ("task=t-1", &both, 2),
        ("task=t-2", &both, 1),
        ("source=192.0.2.1", &both, 3),
        ("source=192.0.2.0/24", &both, 1),
        ("agent=pr-agent", &[], 4),
    ] {
        let (many, said) = ask(&made, condition, names);
        assert_eq!(many, found, "{condition} {names:?}: {}", said.err);
        assert_eq!(said.code, i32::from(many == 0));
    }
    let token = HidingKey::new(&[7; 32]).hide(Class::Subject, "bob");
    let (many, said) = ask(&made, &format!("subject={token}"), &[]);
    assert_eq!((many, &*said.err), (1, ""));
}

#[test]
fn hidden_values_that_cannot_be_looked_for_are_told() {
    let made = made();
    let (old, new) = (HidingKey::new(&[8; 32]), HidingKey::new(&[7; 32]));
    let (many, said) = ask(&made, "subject=alice", &[]);
    assert_eq!(many, 1);
    for id in [old.to_string(), new.to_string()] {
        assert!(said.err.contains(&id), "{}", said.err);
    }
    assert!(
        said.err.contains("`subject` may not find all"),
        "{}",
        said.err
    );
    let (_, said) = ask(&made, "subject=alice", &["new.key"]);
    let unknown = (
        said.err.contains(&old.to_string()),
        said.err.contains(&new.to_string()),
    );
    assert_eq!(unknown, (true, false), "{}", said.err);
    let (_, said) = ask(&made, "source=192.0.2.1", &["old.key", "new.key"]);
    assert!(
        said.err.contains("has networks for addresses"),
        "{}",
        said.err
    );
    for condition in ["agent=pr-agent", "claims.who=alice", "subject="] {
        assert_eq!(ask(&made, condition, &[]).1.err, "", "{condition}");
    }
}

#[test]
fn a_key_that_is_none_is_told_and_nothing_is_looked_for() {
    let made = made();
    fs::write(made.file("mistyped.key"), "alice\n").unwrap();
    fs::write(made.file("short.key"), "BwcHBwc=\n").unwrap();
    fs::write(made.file("empty.key"), "").unwrap();
    fs::write(made.file("long.key"), "BwcH".repeat(1 << 20)).unwrap();
    fs::write(made.file("binary.key"), [0xff; 32]).unwrap();
    for (name, told) in [
        ("no.key", "No such file"),
        ("mistyped.key", "32 bytes in base64"),
        ("short.key", "32 bytes in base64"),
        ("empty.key", "32 bytes in base64"),
        ("long.key", "too long"),
        ("binary.key", "UTF-8"),
    ] {
        let (many, said) = ask(&made, "subject=alice", &["new.key", name]);
        assert_eq!((many, said.code), (0, 3), "{name}");
        assert!(
            said.err.contains(name) && said.err.contains(told),
            "{}",
            said.err
        );
    }
    // The same one twice is one.
    let (many, said) = ask(&made, "subject=alice", &["new.key", "new.key"]);
    assert_eq!((many, said.code), (2, 0));
}

#[test]
fn the_gateway_files_keys_are_for_its_own_journal() {
    let made = made();
    let config = |name: &str, redact: &str| -> PathBuf {
        let dir = made.dir();
        let audit = format!("audit: {{journal: {{dir: {}}}{redact}}}\n", dir.display());
        let path = made.file(name);
        fs::write(&path, format!("{CONFIG}{audit}")).unwrap();
        path
    };
    let hides = config("gateway.yaml", ", redact: {subjects: hmac}");
    let shows = config("open.yaml", "");
    let found = |path: &PathBuf| {
        let mut command = command_on(&["query", "subject=alice", "--json"], "--config", path);
        Said::of(command.output().unwrap())
    };
    for path in [&hides, &shows] {
        let said = found(path);
        assert_eq!((said.json_lines().len(), &*said.err), (3, ""), "{path:?}");
    }
    // Without a key that it should have nobody is told that there is nothing.
    fs::remove_file(made.file("old.key")).unwrap();
    assert_eq!(found(&hides).code, 3);
    let said = found(&shows);
    assert_eq!(said.json_lines().len(), 2);
    assert!(said.err.contains("may not find all"), "{}", said.err);
}

#[test]
fn addresses_that_are_hidden_are_still_counted() {
    let made = made();
    let counted = made.audit(&["query", "--by", "source", "--json"]);
    assert_eq!(counted.json_lines().len(), 4, "{}", counted.out);
}
