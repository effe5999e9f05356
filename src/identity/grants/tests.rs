//! Forms of grants and states of declared claims, from payload to value.

use super::*;
use crate::a2a::strict_json::parse_value;

fn path(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| Box::from(*name)).collect()
}

fn grant_of(payload: &str, form: GrantForm, names: &[&str]) -> Option<Grant> {
    let payload = parse_value(payload.as_bytes(), 16).unwrap();
    let map = vec![("use".into(), Grant::Agent), ("all".into(), Grant::Full)];
    let path = path(names);
    grant(&payload, &[GrantMark { path, form, map }])
}

#[test]
fn a_claim_gives_a_grant_only_in_its_own_form() {
    use GrantForm::{Either, SpaceString, StringArray};
    let (agent, full) = (Some(Grant::Agent), Some(Grant::Full));
    let cases = [
        (r#""use""#, agent, None, agent),
        (r#""x use""#, agent, None, None),
        (r#""use all""#, full, None, None),
        ("\"use\\tall\"", None, None, None),
        (r#"" ""#, None, None, None),
        (r#""""#, None, None, None),
        (r#"["use"]"#, None, agent, agent),
        (r#"["x use"]"#, None, None, None),
        (r#"["use", "all"]"#, None, full, full),
        (r#"["all", 1]"#, None, None, None),
        ("[]", None, None, None),
        ("null", None, None, None),
        (r#"{"use": true}"#, None, None, None),
        ("5", None, None, None),
        ("true", None, None, None),
    ];
    for (value, space, array, either) in cases {
        let payload = format!(r#"{{"s": {value}}}"#);
        let of = |form| grant_of(&payload, form, &["s"]);
        assert_eq!(
            [of(SpaceString), of(StringArray), of(Either)],
            [space, array, either],
            "{value}"
        );
    }
}

#[test]
fn a_path_is_a_list_of_names() {
    let form = GrantForm::StringArray;
    let cases = [
        (
            r#"{"a": {"b": ["use"]}}"#,
            &["a", "b"][..],
            Some(Grant::Agent),
        ),
        (r#"{"a.b": ["use"]}"#, &["a", "b"], None),
        (r#"{"a.b": ["use"]}"#, &["a.b"], Some(Grant::Agent)),
        (r#"{"a": [{"b": ["use"]}]}"#, &["a", "b"], None),
        (r#"{"a": "b"}"#, &["a", "b"], None),
        (r#"{"A": ["use"]}"#, &["a"], None),
        ("{}", &["a", "b"], None),
    ];
    for (payload, names, expected) in cases {
        assert_eq!(grant_of(payload, form, names), expected, "{payload}");
    }
}

#[test]
fn a_declared_claim_is_a_value_of_its_own_type_or_none() {
    use ClaimKind::{Boolean, Number, SpaceString, String, StringArray};
    let text = |t: &str| ClaimState::Value(ClaimValue::String(t.into()));
    let number = |n| ClaimState::Value(ClaimValue::Number(n));
    let texts = |t: &[&str]| ClaimState::Value(ClaimValue::Strings(path(t)));
    let cases = [
        (r#"{"c": {"n": "x"}}"#, String, text("x")),
        (r#"{"c": {"n": ""}}"#, String, text("")),
        (r#"{"c": {"n": ["x"]}}"#, String, ClaimState::WrongType),
        (r#"{"c": {"n": 3.0}}"#, Number, number(3.0)),
        (r#"{"c": {"n": "3"}}"#, Number, ClaimState::WrongType),
        (r#"{"c": {"n": true}}"#, Number, ClaimState::WrongType),
        (
            r#"{"c": {"n": true}}"#,
            Boolean,
            ClaimState::Value(ClaimValue::Boolean(true)),
        ),
        (r#"{"c": {"n": "true"}}"#, Boolean, ClaimState::WrongType),
        (
            r#"{"c": {"n": ["a", "b c"]}}"#,
            StringArray,
            texts(&["a", "b c"]),
        ),
        (r#"{"c": {"n": []}}"#, StringArray, texts(&[])),
        (
            r#"{"c": {"n": ["a", 1]}}"#,
            StringArray,
            ClaimState::WrongType,
        ),
        (r#"{"c": {"n": "a"}}"#, StringArray, ClaimState::WrongType),
        (r#"{"c": {"n": " a  b"}}"#, SpaceString, texts(&["a", "b"])),
        (r#"{"c": {"n": ["a"]}}"#, SpaceString, ClaimState::WrongType),
        (r#"{"c": {"n": null}}"#, String, ClaimState::Null),
        (r#"{"c": {}}"#, String, ClaimState::Missing),
        ("{}", String, ClaimState::Missing),
        (r#"{"c": null}"#, String, ClaimState::Null),
        // Mangled on the way is not the same as missing.
        (r#"{"c": "n"}"#, String, ClaimState::WrongType),
        (r#"{"c": [{"n": "x"}]}"#, String, ClaimState::WrongType),
    ];
    for (payload, kind, expected) in cases {
        let declaration = ClaimDeclaration {
            name: "c".into(),
            path: path(&["c", "n"]),
            kind,
        };
        let value = parse_value(payload.as_bytes(), 16).unwrap();
        assert_eq!(state(&value, &declaration), expected, "{payload} {kind:?}");
    }
}

#[test]
fn scopes_are_the_pieces_of_a_string_only() {
    for (payload, expected) in [
        (r#"{"scope": " a  b "}"#, &["a", "b"][..]),
        (r#"{"scope": ["a"]}"#, &[]),
        (r#"{"scope": null}"#, &[]),
        ("{}", &[]),
    ] {
        let value = parse_value(payload.as_bytes(), 16).unwrap();
        let found = scopes(&value, Scopes::Words("scope"));
        assert_eq!(found, path(expected), "{payload}");
    }
}

#[test]
fn scopes_of_a_list_are_its_elements() {
    for (payload, expected) in [
        (r#"{"scp": ["a", "b c"]}"#, &["a", "b c"][..]),
        (r#"{"scp": ["a", 1]}"#, &[]),
        (r#"{"scp": "a"}"#, &[]),
        (r#"{"scope": "a"}"#, &[]),
    ] {
        let value = parse_value(payload.as_bytes(), 16).unwrap();
        let found = scopes(&value, Scopes::List("scp"));
        assert_eq!(found, path(expected), "{payload}");
    }
}
