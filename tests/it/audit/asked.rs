//! Questions about calls, tokens, bodies and configurations.

use super::made::{Made, POLICY, command, request, sha256};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn calls_are_found_by_intent_and_outcome_together() {
    let made = Made::usual();
    let found = made.audit(&["query", "subject=alice", "delivery=responded", "--json"]);
    assert_eq!(found.code, 0, "{}", found.err);
    let calls = found.json_lines();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["kind"], "intent");
    assert_eq!(calls[0]["outcome"]["intent"], calls[0]["seq"]);
    // In the order in which calls began, though bob's ended last.
    let csv = made.audit(&["query", "--csv", "--columns", "caller,delivery,rule"]);
    let expected = "caller,delivery,rule\r\nalice,responded,reviewers\r\ncarol,not_attempted,\r\nbob,responded,reviewers\r\nalice,sent_partial,reviewers\r\n";
    assert_eq!(csv.out, expected);
    let newest = made.audit(&[
        "query",
        "--csv",
        "--columns",
        "caller",
        "--order",
        "newest",
        "--limit",
        "2",
    ]);
    assert_eq!(newest.out, "caller\r\nalice\r\nbob\r\n");
    let table = made.audit(&["query", "reason=no_rule"]);
    let mut lines = table.out.lines();
    assert!(lines.next().unwrap().starts_with("time "), "{}", table.out);
    assert!(lines.next().unwrap().contains("carol"), "{}", table.out);
    assert_eq!(lines.next(), None);
}

#[test]
fn calls_are_counted_by_fields() {
    let made = Made::usual();
    let counted = made.audit(&["query", "--by", "caller,delivery", "--csv"]);
    let rows: Vec<Vec<&str>> = counted
        .out
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows[0], ["count", "caller", "delivery", "first", "last"]);
    assert_eq!(rows.len(), 5);
    let json = made
        .audit(&["query", "effect=allow", "--by", "agent", "--json"])
        .json();
    assert_eq!(
        (&json["count"], &json["by"]),
        (&json!(3), &json!({"agent": "pr-agent"}))
    );
}

#[test]
fn records_are_looked_at_by_themselves_when_asked_for() {
    let made = Made::usual();
    let found = made.audit(&["query", "--records", "kind=config", "--json"]);
    let lines = found.json_lines();
    assert_eq!(lines.len(), 2);
    assert!(found.out.contains(r#""policy_digest":"d2d2""#));
    let refused = made.audit(&["query", "trigger=start"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("`--records` looks at each"),
        "{}",
        refused.err
    );
    let refused = made.audit(&["query", "agnt=x"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("did you mean `agent`?"),
        "{}",
        refused.err
    );
}

#[test]
fn times_bound_calls_by_when_they_began() {
    let made = Made::usual();
    let of = |arguments: &[&str]| {
        let all = [&["query", "--csv", "--columns", "request"], arguments].concat();
        let said = made.audit(&all);
        said.out
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (alice, carol, bob, again) = (request(4), request(5), request(6), request(11));
    assert_eq!(of(&[]), [&*alice, &carol, &bob, &again]);
    // 12:00 and 10 seconds for each record; bob's outcome is behind the end, and found.
    assert_eq!(
        of(&["--until", "2026-11-30T12:01:10"]),
        [&*alice, &carol, &bob]
    );
    assert_eq!(
        of(&["--since", "2026-11-30T12:01:00", "delivery=responded"]),
        [&*bob]
    );
    assert_eq!(of(&["--since", "2026-11-30T12:01:10Z"]), [&*again]);
    let nothing = made.audit(&["query", "--until", "2026-11-30"]);
    assert_eq!((nothing.code, &*nothing.out), (1, ""));
    let wrong = made.audit(&["query", "--since", "soon"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("7d (that long ago)"), "{}", wrong.err);
}

#[test]
fn a_claim_that_was_not_recorded_is_counted_and_not_guessed() {
    let made = Made::usual();
    let found = made.audit(&[
        "query",
        "skill=review",
        "claims.role!=reviewer",
        "--csv",
        "--columns",
        "caller,claims.role",
    ]);
    assert_eq!(found.out, "caller,claims.role\r\ncarol,(missing)\r\n");
    assert!(
        found.err.contains("not recorded: 1 further calls"),
        "{}",
        found.err
    );
}

#[test]
fn what_is_no_record_is_told_and_makes_another_exit_code() {
    let made = Made::usual();
    let path = made.segment(8);
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    fs::write(&path, format!("{first}\ngarbage\n{rest}")).unwrap();
    let found = made.audit(&["query", "subject=alice", "--csv", "--columns", "caller"]);
    assert_eq!(found.code, 5);
    assert_eq!(found.out, "caller\r\nalice\r\nalice\r\n");
    let place = "journal-00000000000000000008.jsonl, line 2: not a record";
    assert!(found.err.contains(place), "{}", found.err);
    fs::remove_file(&path).unwrap();
    let found = made.audit(&["query", "subject=alice"]);
    assert_eq!(found.code, 5);
    assert!(
        found.err.contains("stands where record 8 belongs"),
        "{}",
        found.err
    );
}

#[test]
fn everything_about_a_request_is_shown() {
    let made = Made::usual();
    let shown = made.audit(&["show", &request(4)]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    for expected in [
        "caller      alice of corp",
        "claims      role=reviewer",
        "decision    allowed: allowed",
        "its text    policy.yaml",
        "                require: {role: {equals: reviewer}}",
        "attempt     127.0.0.1:9999 at 1.0 ms, 2.0 ms, to stage response, 5 of 5 bytes",
        "delivery    responded; reached the agent: yes",
        "task        t-4 (named by the reply)",
        "policy      d1d1, in force since 2026-11-30T12:00:30.000Z",
        "records     4 and 9",
        "covered by  the checkpoint at record 13 of",
    ] {
        assert!(
            shown.out.contains(expected),
            "`{expected}` is not in:\n{}",
            shown.out
        );
    }
    let refused = made.audit(&["show", &request(5)]);
    for expected in [
        "no value    role=missing",
        "decision    refused: no_rule",
        "nearest     reviewers: role missing",
        "answer      HTTP 403, forbidden",
        "delivery    not_attempted; reached the agent: no",
    ] {
        assert!(
            refused.out.contains(expected),
            "`{expected}` is not in:\n{}",
            refused.out
        );
    }
    let json = made.audit(&["show", &request(4), "--json"]).json();
    assert_eq!(json[0]["records"].as_array().unwrap().len(), 2);
    assert_eq!(json[0]["checkpoint"]["seq"], 13);
    let nobody = made.audit(&["show", "01JZZZZZZZZZZZZZZZZZZZZZZZ"]);
    assert_eq!((nobody.code, &*nobody.out), (1, ""));
}

#[test]
fn a_body_and_a_token_lead_to_their_calls() {
    let made = Made::usual();
    let body = made.file("body");
    fs::write(&body, "hello").unwrap();
    let found = made.audit(&["hash", "--body", body.to_str().unwrap()]);
    assert_eq!(found.code, 0);
    assert!(
        found
            .out
            .starts_with(&format!("sha256 {}\n", sha256(b"hello")))
    );
    assert!(found.out.ends_with("4 calls\n"), "{}", found.out);
    fs::write(&body, "hallo").unwrap();
    let found = made.audit(&["hash", "--body", body.to_str().unwrap()]);
    assert_eq!((found.code, found.out.ends_with("0 calls\n")), (1, true));
    let key = made.file("fingerprint.key");
    fs::write(&key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    let key = key.to_str().unwrap();
    let found = made.audit_with(&["hash", "--token", "--key", key], "Bearer aa.bb.cc\n");
    // HMAC-SHA-256 of `aa.bb` under a key of zeros.
    assert!(found.out.starts_with("fingerprint f"), "{}", found.out);
    assert!(!found.out.contains("aa.bb"));
    let found = made.audit_with(&["hash", "--token", "--key", key], "what\n");
    assert_eq!(found.code, 3);
    let one = made.audit_with(&["hash", "--key", key], "alice\n");
    let other = made.audit(&["hash", "--key", key, "alice"]);
    assert_eq!(one.out, other.out);
    assert_eq!(one.out.lines().count(), 3);
    assert!(one.out.starts_with("subject  hmac:"), "{}", one.out);
}

#[test]
fn the_configuration_of_a_time_is_found_with_its_texts() {
    let made = Made::usual();
    let at = made.audit(&["policy", "--at", "2026-11-30T12:01", "--text"]);
    assert_eq!(at.code, 0, "{}", at.err);
    assert!(at.out.starts_with("digest      d1d1\n"), "{}", at.out);
    assert!(
        at.out.contains(
            "since       2026-11-30T12:00:30.000Z\nuntil       2026-11-30T12:01:40.000Z\n"
        ),
        "{}",
        at.out
    );
    assert!(
        at.out.contains(&format!("--- policy.yaml\n{POLICY}")),
        "{}",
        at.out
    );
    let last = made.audit(&["policy", "--json"]).json();
    assert_eq!(
        (&last[0]["digest"], &last[0]["until"]),
        (&json!("d2d2"), &json!(null))
    );
    let none = made.audit(&["policy", "--at", "2026-11-30T12:00"]);
    assert_eq!(none.code, 1);
    let text = made.dir().join("texts").join(sha256(POLICY.as_bytes()));
    fs::write(text, POLICY.replace("deny", "allow")).unwrap();
    let changed = made.audit(&["policy", "--digest", "d1", "--text"]);
    assert_eq!(changed.code, 5);
    assert!(
        changed.out.contains("not the one of then"),
        "{}",
        changed.out
    );
}

#[test]
fn the_last_calls_are_printed_and_those_that_come_followed_across_segments() {
    let mut made = Made::usual();
    let last = made.audit(&["tail", "-n", "2"]);
    assert_eq!(last.code, 0, "{}", last.err);
    let lines: Vec<&str> = last.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[1].contains("alice") && lines[1].ends_with("sent_partial"),
        "{lines:?}"
    );
    let mut child = command(&["tail", "-f", "-n", "1", "effect=allow"], &made.dir())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(out.next().unwrap().unwrap().ends_with("sent_partial"));
    made.open();
    let intent = made.intent("dora", &json!({}));
    made.refusal("carol", &json!({}));
    made.rotate();
    made.outcome(intent, "connect_failed");
    let line = out.next().unwrap().unwrap();
    assert!(
        line.contains("dora") && line.ends_with("connect_failed"),
        "{line}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}
