//! Keys of what records hide: one is in force, and the ones before it are still known.

use super::{Book, text};
use portcullis::audit::redact::hidden::{Class, HidingKey};
use std::process::Command;

#[test]
fn a_name_is_found_under_each_key_that_there_was() {
    let book = Book::new();
    // Each is 32 equal bytes in base64.
    book.put("new.key", &("BwcH".repeat(10) + "Bwc=\n"));
    book.put("old.key", &("CAgI".repeat(10) + "CAg=\n"));
    let config = book.put(
        "gateway.yaml",
        "version: 1
listeners: [{name: public, bind: 127.0.0.1:8080, public_url: http://localhost:8080}]
agents: [{name: demo, route: {path: /agents/demo}, backend: {url: \"http://127.0.0.1:9999\"}}]
keys: {fingerprint: [{file: new.key}, {file: old.key}]}
audit: {journal: {dir: journal}, redact: {subjects: hmac}}
",
    );
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["audit", "hash", "--config", &config, "alice"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for key in [[7; 32], [8; 32]] {
        for class in Class::ALL {
            let token = HidingKey::new(&key).hide(class, "alice");
            assert!(said.contains(&token), "{class:?}: {said}");
        }
    }
    assert_eq!(said.lines().count(), 6);
}
