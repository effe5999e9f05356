//! What the README says to run.

use super::{blocks, readme};
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_portcullis");
/// The ports that stand in the README, for its readers.
const PORTS: [&str; 3] = ["8080", "9901", "9999"];
/// Ends what a block prints.
const MARK: &str = "-- end of block";

/// `text` with ports of this machine that are free now.
struct Ports(Vec<(&'static str, String)>);

impl Ports {
    fn free() -> Ports {
        // All at once, so that they differ.
        let held: Vec<TcpListener> = PORTS
            .iter()
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let port = |l: &TcpListener| l.local_addr().unwrap().port().to_string();
        Ports(PORTS.into_iter().zip(held.iter().map(port)).collect())
    }

    fn used(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (named, free)| {
            text.replace(&format!("127.0.0.1:{named}"), &format!("127.0.0.1:{free}"))
        })
    }

    fn named(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (named, free)| {
            text.replace(&format!("127.0.0.1:{free}"), &format!("127.0.0.1:{named}"))
        })
    }
}

/// Runs `script` in `folder` and ends everything that it started.
fn run(script: &str, folder: &Path) -> Output {
    let bin = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    // Output goes to a file, which a program in the background cannot keep open for us.
    let said = folder.join(".said");
    let file = fs::File::create(&said).unwrap();
    let mut shell = Command::new("timeout")
        .args(["60", "bash", "-eu", "-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("PORTCULLIS_LOG")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let group = format!("-{}", shell.id());
    let status = shell.wait().unwrap();
    // Nothing may be left of the group; then there is nobody to tell.
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    Output {
        status,
        stdout: fs::read(said).unwrap(),
        stderr: Vec::new(),
    }
}

/// Whether `line` occurs in `said`, `…` standing for any text of one line or two.
fn occurs(line: &str, said: &str) -> bool {
    let mut parts = line.trim().split('…');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    said.match_indices(first).any(|(at, _)| {
        let mut from = at + first.len();
        rest.iter().all(|part| match said[from..].find(part) {
            Some(found) => {
                from += found + part.len();
                true
            }
            None => false,
        })
    })
}

fn has(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

#[test]
fn what_it_says_to_run_prints_what_it_shows() {
    let text = readme();
    let ports = Ports::free();
    let dir = tempfile::tempdir().unwrap();
    let mut script = String::new();
    // What each block that runs must print, in order.
    let mut expected: Vec<Vec<String>> = Vec::new();
    let mut skipped = false;
    for block in blocks(&text) {
        let words: Vec<&str> = block.info.split(' ').collect();
        match words.as_slice() {
            ["yaml", name] if name.ends_with(".yaml") => {
                fs::write(dir.path().join(name), ports.used(block.text)).unwrap();
            }
            ["sh", "run", tools @ ..] => {
                skipped = !tools.iter().all(|tool| has(tool));
                if !skipped {
                    script.push_str(&ports.used(block.text));
                    script.push_str(&format!("echo; echo '{MARK}'\n"));
                    expected.push(Vec::new());
                }
            }
            ["text", "output"] if !skipped => {
                let last = expected.last_mut().unwrap();
                last.extend(block.text.lines().map(str::to_owned));
            }
            _ => {}
        }
    }
    assert!(expected.len() > 6);
    let output = run(&script, dir.path());
    let said = ports.named(&String::from_utf8(output.stdout).unwrap());
    assert!(output.status.success(), "{}:\n{said}", output.status);
    assert!(!said.contains('\x1b'), "colors without a terminal:\n{said}");
    let parts: Vec<&str> = said.split(MARK).collect();
    assert_eq!(parts.len(), expected.len() + 1, "{said}");
    for (lines, part) in expected.iter().zip(parts) {
        for line in lines {
            assert!(occurs(line, part), "`{line}` is not in:\n{part}");
        }
    }
}

#[test]
fn the_table_is_the_demos() {
    let text = readme();
    let shown = blocks(&text)
        .into_iter()
        .find(|b| b.info == "text demo")
        .unwrap()
        .text;
    let output = Command::new(PROGRAM)
        .args(["demo", "--once"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = |text: &str| -> Vec<String> { text.lines().map(without_port).collect() };
    assert_eq!(lines(&said), lines(shown));
}

/// A line without the digits behind `127.0.0.1:`.
fn without_port(line: &str) -> String {
    match line.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}127.0.0.1:{after}")
        }
        None => line.to_owned(),
    }
}

#[test]
fn every_policy_in_it_loads_with_its_gateway_file() {
    let text = readme();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let blocks = blocks(&text);
    let gateway = blocks
        .iter()
        .find(|b| b.info == "yaml gateway.yaml")
        .unwrap()
        .text;
    let keys = Command::new(PROGRAM)
        .args(["token", "keygen", "--out", "keys"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(keys.status.success());
    let list = "{files: [policy.yaml], names: [mine]}";
    assert!(gateway.contains(list));
    fs::write(
        at("gateway.yaml"),
        gateway.replace(list, "{files: [policy.yaml]}"),
    )
    .unwrap();
    let mut loaded = 0;
    for block in blocks.iter().filter(|b| b.info.starts_with("yaml")) {
        if block.info == "yaml gateway.yaml" || block.info.ends_with("_test.yaml") {
            continue;
        }
        if block.info == "yaml part" {
            continue;
        }
        fs::write(at("policy.yaml"), block.text).unwrap();
        let loading = portcullis::config::check::load(&at("gateway.yaml"));
        assert!(loading.is_ok(), "{}\n{}", block.text, loading.unwrap_err());
        loaded += 1;
    }
    assert!(loaded > 1);
    let parts = blocks.iter().filter(|b| b.info == "yaml part");
    fs::write(at("otlp.token"), "t0ken").unwrap();
    let mut loaded = 0;
    for part in parts {
        let name = part.text.split_inclusive(':').next().unwrap();
        let mut others = true;
        let rest = gateway.replace(list, "{files: [policy.yaml]}");
        let rest = rest.lines().filter(|line| {
            if !line.starts_with([' ', '#']) {
                others = !line.starts_with(name);
            }
            others
        });
        let whole: Vec<&str> = rest.chain(part.text.lines()).collect();
        fs::write(at("part.yaml"), whole.join("\n")).unwrap();
        let loading = portcullis::config::check::load(&at("part.yaml"));
        assert!(loading.is_ok(), "{}\n{}", part.text, loading.unwrap_err());
        loaded += 1;
    }
    assert!(loaded > 1);
}

#[test]
fn the_shipped_files_are_good_where_it_says_so() {
    let check = Command::new(PROGRAM)
        .arg("check")
        .current_dir(super::root())
        .output()
        .unwrap();
    let said = String::from_utf8(check.stderr).unwrap();
    assert!(check.status.success(), "{said}");
    assert_eq!(said, "");
}

#[test]
fn an_expected_line_may_have_gaps() {
    for (line, said, found) in [
        ("a…c", "xabcx", true),
        ("a…c…", "a\nc", true),
        ("c…a", "abc", false),
        ("  a b", "a b", true),
        ("a b", "a  b", false),
    ] {
        assert_eq!(occurs(line, said), found, "{line}");
    }
}
