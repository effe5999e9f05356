#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn codes_of(text: &str) -> Vec<(&'static str, usize, usize)> {
    let problems = match Document::parse("t.yaml", text) {
        Ok(document) => document.problems,
        Err(problems) => problems,
    };
    let place = |p: &Problem| (p.code, p.line, p.column);
    problems.0.iter().map(place).collect()
}

#[test]
fn what_yaml_readers_disagree_on_is_a_problem_with_its_place() {
    let deep = format!("a: {}1{}", "[".repeat(40), "]".repeat(40));
    let many = format!("a: [{}]", "1,".repeat(MAX_NODES + 1));
    let cases: &[(&str, &str, usize, usize)] = &[
        ("a: &x 1\n", codes::ANCHOR, 1, 4),
        ("a: 1\nb: *x\n", codes::SYNTAX, 2, 4),
        ("a: &x 1\nb: *x\n", codes::ANCHOR, 1, 4),
        ("a:\n  <<: {b: 1}\n", codes::ANCHOR, 2, 3),
        ("a: !!str 1\n", codes::TAG, 1, 4),
        ("a: 1\n---\nb: 2\n", codes::MANY_DOCUMENTS, 2, 1),
        ("a: 1\nb: 2\na: 3\n", codes::DUPLICATE_KEY, 3, 1),
        ("a: 1\n\"a\": 3\n", codes::DUPLICATE_KEY, 2, 1),
        ("x:\n  - Yes\n", codes::AMBIGUOUS_WORD, 2, 5),
        ("x: OFF\n", codes::AMBIGUOUS_WORD, 1, 4),
        ("? [a]\n: 1\n", codes::KEY_NOT_TEXT, 1, 3),
        ("", codes::EMPTY, 0, 0),
        ("# only a comment\n", codes::EMPTY, 0, 0),
        ("---\n...\n", codes::EMPTY, 0, 0),
        ("rules: [\n", codes::SYNTAX, 2, 1),
        (&deep, codes::TOO_LARGE, 1, 35),
        (&many, codes::TOO_LARGE, 1, 399_999),
    ];
    for (text, code, line, column) in cases {
        let shown: String = text.chars().take(30).collect();
        let found = codes_of(text);
        assert_eq!(found.first(), Some(&(*code, *line, *column)), "{shown:?}");
    }
    let large = "a".repeat(MAX_BYTES + 1);
    assert_eq!(codes_of(&large), [(codes::TOO_LARGE, 0, 0)]);
}

#[test]
fn every_recoverable_problem_is_found_in_one_reading() {
    let found = codes_of("a: yes\nb: !!int 3\na: 2\nc: &x no\n");
    let codes: Vec<_> = found.iter().map(|f| f.0).collect();
    assert_eq!(
        codes,
        [
            codes::AMBIGUOUS_WORD,
            codes::TAG,
            codes::DUPLICATE_KEY,
            codes::ANCHOR,
            codes::AMBIGUOUS_WORD
        ]
    );
}

#[test]
fn scalars_follow_the_core_schema() {
    let kind = |text: &str| {
        let document = Document::parse("t.yaml", &format!("v: {text}\n")).unwrap();
        document.root.get("v").unwrap().kind.clone()
    };
    let text = |s: &str| Kind::Str(s.to_owned());
    let cases = [
        ("~", Kind::Null),
        ("", Kind::Null),
        ("TRUE", Kind::Bool(true)),
        ("false", Kind::Bool(false)),
        ("-12", Kind::Int(-12)),
        ("0x1F", Kind::Int(31)),
        ("0o17", Kind::Int(15)),
        ("017", Kind::Int(17)),
        ("1.5e3", Kind::Float(1500.0)),
        ("99999999999999999999", Kind::Float(1e20)),
        ("1.2.3", text("1.2.3")),
        ("127.0.0.1:80", text("127.0.0.1:80")),
        ("15m", text("15m")),
        ("'yes'", text("yes")),
        ("\"1\"", text("1")),
        ("yes!", text("yes!")),
        ("tRUE", text("tRUE")),
    ];
    for (written, expected) in cases {
        assert_eq!(kind(written), expected, "{written}");
    }
}

#[test]
fn positions_count_characters_from_one() {
    let document = Document::parse("t.yaml", "ä: {b: [x, \"y\"]}\nc:\nd: z\n").unwrap();
    let root = &document.root;
    let list = root.get("ä").unwrap().get("b").unwrap();
    let Kind::Seq(items) = &list.kind else {
        panic!("{list:?}")
    };
    let at = |line, column| Position { line, column };
    assert_eq!(items[1].position, at(1, 12));
    assert!(items[1].quoted && !items[0].quoted);
    assert_eq!(root.get("c").unwrap().position, at(2, 1));
    let problem = document.problem(at(1, 12), codes::SYNTAX, "x");
    assert_eq!(problem.source_line, "ä: {b: [x, \"y\"]}");
}

#[test]
fn a_file_cannot_steer_the_terminal() {
    let problem = &codes_and_lines("a: yes # \u{1b}[2J\tb\n")[0];
    assert_eq!(problem.source_line, "a: yes #  [2J b");
    assert_eq!(clip("a\u{7}b"), "a\u{fffd}b");
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let problem = &codes_and_lines("a: [yes, \"http://u:p@h/x@y\", 'a://b@c', \"x@y\"]\n")[0];
    assert_eq!(
        problem.source_line,
        "a: [yes, \"http://***@h/x@y\", 'a://*@c', \"x@y\"]"
    );
}

fn codes_and_lines(text: &str) -> Vec<Problem> {
    match Document::parse("t.yaml", text) {
        Ok(document) => document.problems.0,
        Err(problems) => problems.0,
    }
}

proptest! {
    #[test]
    fn reading_never_panics(text in "[a-z0-9 :\\-\\[\\]{},\"'#&*!|>?%@\\n\\t~<.]{0,200}") {
        let _ = Document::parse("t.yaml", &text);
    }

    #[test]
    fn reading_never_panics_on_any_text(text in ".{0,200}") {
        let _ = Document::parse("t.yaml", &text);
    }
}
