//! `portcullis token` as a user runs it: exit codes, messages, files.
//!
//! `tests/cases/cli/*.txt` are transcripts. `$ ` starts a command, `< ` is its standard input;
//! `= ` is its exit code, `1 ` and `2 ` are lines of its two outputs. `{dir}` is a folder with
//! [`Fixture`]'s files, and `{name}` the text of the file `name` in it. `UPDATE_EXPECT=1` rewrites
//! the results.

mod bound;
mod shaped;
mod verdicts;

use super::support::issuer::{AUDIENCE, DevAlgorithm, Grant, Issuer, Wrong};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CASES: &str = "tests/cases/cli";

/// A folder with a key, a gateway file that trusts it, and files that are wrong.
pub(super) struct Fixture {
    dir: tempfile::TempDir,
    pub(super) issuer: Issuer,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let fixture = Fixture { dir, issuer };
        let at = |name: &str| fixture.path(name);
        fixture.issuer.key().save(&at("dev.private.pem")).unwrap();
        Issuer::new(DevAlgorithm::EdDsa)
            .key()
            .save(&at("other.private.pem"))
            .unwrap();
        fixture.issuer.write_jwks(fixture.dir.path(), "dev");
        fs::write(
            at("broken.pem"),
            "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
        )
        .unwrap();
        fs::copy(at("dev.private.pem"), at("open.pem")).unwrap();
        fs::set_permissions(at("open.pem"), fs::Permissions::from_mode(0o644)).unwrap();
        let one = fixture.issuer.yaml_entry(
            "dev",
            "dev.jwks.json",
            "{role: {path: [role], type: string}}",
        );
        // An entry that is for another product and gives only one of the grants.
        let two = format!(
            "{one}  - name: kc\n    issuer: https://kc.example.test\n    audiences: [kc-gateway]\n    \
             keys: {{file: dev.jwks.json}}\n    profile: keycloak\n    clients: [console]\n    \
             grants:\n      - path: [realm_access, roles]\n        form: string_array\n        \
             map: {{agents: agent}}\n    development: true\n"
        );
        fs::write(at("gateway.yaml"), gateway(&one)).unwrap();
        fs::write(at("two.yaml"), gateway(&two)).unwrap();
        fs::write(at("broken.yaml"), "version: [\n").unwrap();
        // Readable tokens that say no time, so that transcripts do not depend on today.
        let timeless = |header: &str, payload: &str| {
            fixture
                .issuer
                .key()
                .sign(header.as_bytes(), payload.as_bytes())
                .unwrap()
        };
        let plain = timeless(
            r#"{"alg":"ES256"}"#,
            r#"{"sub":"al\u001bice","scope":"a2a.agent"}"#,
        );
        fs::write(at("plain"), &plain).unwrap();
        fs::write(at("twice"), timeless("{}", r#"{"sub":"a","sub":"b"}"#)).unwrap();
        fixture
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(super) fn good(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `{dir}` and `{name}` filled in.
    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{dir}", self.dir.path().to_str().unwrap());
        for name in ["plain", "twice"] {
            let token = fs::read_to_string(self.path(name)).unwrap();
            text = text.replace(&format!("{{{name}}}"), &token);
        }
        text
    }
}

fn gateway(issuers: &str) -> String {
    format!(
        "version: 1\nlisteners:\n  - {{name: public, bind: 127.0.0.1:8080, public_url: http://localhost:8080}}\n\
         agents:\n  - name: demo\n    route: {{path: /agents/demo}}\n    backend: {{url: \"http://127.0.0.1:9999\"}}\n\
         issuers:\n{issuers}audit: {{journal: {{dir: state}}}}\n"
    )
}

/// Splits a command line at spaces; single quotes keep them.
fn arguments(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}

/// Runs a transcript's commands and returns it with what came out.
pub(super) fn replay(fixture: &Fixture, transcript: &str) -> String {
    let mut result = String::new();
    let mut lines = transcript
        .lines()
        .filter(|l| !l.starts_with(['=', '1', '2']))
        .peekable();
    while let Some(line) = lines.next() {
        result.push_str(line);
        result.push('\n');
        let Some(command) = line.strip_prefix("$ portcullis ") else {
            continue;
        };
        let mut input = String::new();
        while let Some(line) = lines.next_if(|l| l.starts_with('<')) {
            input.push_str(&fixture.fill(line[1..].trim_start()));
            result.push_str(line);
            result.push('\n');
        }
        let filled: Vec<String> = arguments(command).iter().map(|a| fixture.fill(a)).collect();
        let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
        let output = fixture.run(&filled, &input);
        result.push_str(&format!("= {}\n", output.status.code().unwrap()));
        for (mark, bytes) in [("1", output.stdout), ("2", output.stderr)] {
            let text = String::from_utf8(bytes).unwrap();
            for line in text
                .replace(fixture.dir.path().to_str().unwrap(), "{dir}")
                .lines()
            {
                result.push_str(format!("{mark} {line}").trim_end());
                result.push('\n');
            }
        }
    }
    result
}

#[test]
fn every_transcript_comes_out_as_written() {
    let mut wrong = 0;
    let mut paths: Vec<_> = fs::read_dir(CASES)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let transcript = fs::read_to_string(&path).unwrap();
        let fixture = Fixture::new();
        let found = replay(&fixture, &transcript);
        for name in ["plain", "twice"] {
            let token = fs::read_to_string(fixture.path(name)).unwrap();
            let signature = token.rsplit('.').next().unwrap();
            assert!(
                !found.contains(signature),
                "{}: a token is shown",
                path.display()
            );
        }
        wrong += found
            .lines()
            .filter(|l| l.starts_with("= ") && *l != "= 0")
            .count();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, found).unwrap();
        } else {
            assert_eq!(
                found,
                transcript,
                "{}; look, then UPDATE_EXPECT=1",
                path.display()
            );
        }
    }
    assert!(wrong >= 12, "{wrong}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn keygen_writes_a_private_file_once_and_an_entry_that_works() {
    let fixture = Fixture::new();
    for (alg, _) in DevAlgorithm::NAMES {
        let out = fixture.path(alg);
        let out_text = out.to_str().unwrap();
        let entry = fixture.good(&["token", "keygen", "--out", out_text, "--alg", alg], "");
        let key = out.join("dev.private.pem");
        assert_eq!(mode(&key), 0o600);
        let before = fs::read(&key).unwrap();
        let again = fixture.run(&["token", "keygen", "--out", out_text], "");
        assert_eq!(again.status.code(), Some(3));
        assert_eq!(fs::read(&key).unwrap(), before, "overwritten");
        // Not even where the private key is gone but the public one is in use.
        let moved = fixture.path("moved.pem");
        fs::rename(&key, &moved).unwrap();
        let again = fixture.run(&["token", "keygen", "--out", out_text], "");
        assert_eq!(again.status.code(), Some(3));
        assert!(!key.exists());

        let issuers = entry.strip_prefix("issuers:\n").unwrap();
        let config = fixture.path("pasted.yaml");
        fs::write(&config, gateway(issuers)).unwrap();
        let config = config.to_str().unwrap();
        let check = fixture.run(&["check", "--config", config], "");
        let said = String::from_utf8(check.stderr).unwrap();
        assert_eq!(check.status.code(), Some(0), "{said}");
        assert!(said.contains("`dev` is a development issuer"), "{said}");
        let minted = fixture.run(
            &[
                "token",
                "mint",
                "--key",
                moved.to_str().unwrap(),
                "--config",
                config,
                "--sub",
                "alice",
            ],
            "",
        );
        assert_eq!(minted.status.code(), Some(0));
        assert_eq!(String::from_utf8(minted.stderr).unwrap(), "", "{alg}");
    }
}

/// The header and payload that `inspect --json` shows of what this mints.
fn minted(fixture: &Fixture, options: &[&str]) -> (Value, Value) {
    let key = fixture.path("dev.private.pem");
    let mut arguments = vec!["token", "mint", "--key", key.to_str().unwrap()];
    arguments.extend(options);
    let token = fixture.good(&arguments, "");
    assert_eq!(token.matches('\n').count(), 1, "more than the token");
    let shown = fixture.good(&["token", "inspect", "--json"], &token);
    let signature = token.trim_end().rsplit('.').next().unwrap();
    assert!(!shown.contains(signature));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["signature"], "not_verified");
    (shown["header"].clone(), shown["payload"].clone())
}

#[test]
fn what_mint_makes_inspect_shows() {
    let fixture = Fixture::new();
    let (header, payload) = minted(
        &fixture,
        &[
            "--issuer",
            "https://i.test",
            "--audience",
            "https://a.test",
            "--sub",
            "alice",
            "--grant",
            "full",
            "--scope",
            "openid  email",
            "--claim",
            "role=reviewer",
            "--claim",
            "a.b=c=d",
            "--claim-json",
            "groups=[\"staff\"]",
            "--ttl",
            "90s",
        ],
    );
    let expected = json!({ "typ": "at+jwt", "alg": "ES256", "kid": fixture.issuer.key().kid() });
    assert_eq!(header, expected);
    let iat = payload["iat"].as_u64().unwrap();
    let expected = json!({
        "iss": "https://i.test", "aud": "https://a.test", "sub": "alice",
        "client_id": "portcullis-dev", "iat": iat, "exp": iat + 90, "jti": payload["jti"],
        "scope": "openid email a2a.full", "role": "reviewer", "a.b": "c=d", "groups": ["staff"],
    });
    assert_eq!(payload, expected);
}

#[test]
fn mint_takes_from_the_gateway_file_what_its_entry_wants() {
    let fixture = Fixture::new();
    let one = fixture.path("gateway.yaml");
    let two = fixture.path("two.yaml");
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let (_, payload) = minted(
        &fixture,
        &["--config", one, "--sub", "a", "--grant", "agent"],
    );
    assert_eq!(payload["iss"], fixture.issuer.iss());
    assert_eq!(payload["aud"], AUDIENCE);
    assert_eq!(payload["scope"], "a2a.agent");
    let (header, payload) = minted(
        &fixture,
        &[
            "--config",
            two,
            "--issuer-name",
            "kc",
            "--sub",
            "a",
            "--grant",
            "agent",
            "--claim-json",
            "realm_access={\"roles\":[\"x\"]}",
        ],
    );
    assert_eq!(header["typ"], "JWT");
    assert_eq!(payload["typ"], "Bearer");
    assert_eq!(payload["azp"], "console");
    assert!(payload["client_id"].is_null());
    assert_eq!(payload["realm_access"], json!({ "roles": ["x", "agents"] }));
    assert!(payload.get("scope").is_none());
}

#[test]
fn bad_tokens_of_the_fixture_are_bad_in_one_way() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let fixture = Fixture::new();
    let good = issuer.token("alice", Grant::Full, Value::Null);
    let read = |token: &str| -> Value {
        serde_json::from_str(&fixture.good(&["token", "inspect", "--json"], token)).unwrap()
    };
    let normal = read(&good);
    for wrong in Wrong::INVALID.into_iter().chain([Wrong::NoGrant]) {
        let token = issuer.bad_token("alice", wrong);
        assert_ne!(token, good);
        if wrong == Wrong::AlgNone {
            assert!(token.ends_with('.'));
            continue;
        }
        let shown = read(&token);
        // What differs beside the times and the id, which differ anyhow.
        let mut different: Vec<String> = Vec::new();
        for part in ["header", "payload"] {
            let names = [
                "typ",
                "alg",
                "kid",
                "iss",
                "aud",
                "sub",
                "client_id",
                "scope",
            ];
            different.extend(
                names
                    .iter()
                    .filter(|n| shown[part][**n] != normal[part][**n])
                    .map(|n| (*n).to_owned()),
            );
        }
        let expected: &[&str] = match wrong {
            Wrong::Audience => &["aud"],
            Wrong::Issuer => &["iss"],
            Wrong::UnknownKid => &["kid"],
            Wrong::Typ => &["typ"],
            Wrong::NoGrant => &["scope"],
            Wrong::Payload => &["sub"],
            Wrong::Lacks(claim @ ("iss" | "aud" | "sub" | "client_id")) => &[claim],
            Wrong::Lacks(claim) => {
                assert!(shown["payload"].get(claim).is_none(), "{claim}");
                &[]
            }
            Wrong::Expired | Wrong::Signature | Wrong::Key | Wrong::AlgNone => &[],
        };
        assert_eq!(different, expected, "{wrong:?}");
    }
}

#[test]
fn mint_says_beforehand_why_the_gateway_would_refuse() {
    let fixture = Fixture::new();
    let config = fixture.path("two.yaml");
    let config = config.to_str().unwrap();
    for (key, options, wanted) in [
        ("open.pem", &["--issuer-name", "dev"][..], "run `chmod 600 "),
        (
            "other.private.pem",
            &["--issuer-name", "dev"],
            "the key is not in `",
        ),
        (
            "dev.private.pem",
            &["--issuer-name", "dev", "--ttl", "2h"],
            "takes tokens of at most 1h; choose a shorter --ttl",
        ),
        (
            "dev.private.pem",
            &["--issuer-name", "dev", "--audience", "https://x.test"],
            "does not take this audience; leave out --audience",
        ),
        (
            "dev.private.pem",
            &["--issuer-name", "kc", "--client", "me"],
            "does not take this client; leave out --client",
        ),
    ] {
        let key = fixture.path(key);
        let mut arguments = vec!["token", "mint", "--sub", "a", "--config", config];
        arguments.extend(["--key", key.to_str().unwrap()]);
        arguments.extend(options);
        let output = fixture.run(&arguments, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.starts_with("warning: ") && said.contains(wanted),
            "{said}"
        );
        assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    }
}
