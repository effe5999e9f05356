#![allow(clippy::unwrap_used)]

use super::*;
use crate::source::shape::{Shape, optional, required};

static INNER: Fields = Fields {
    title: "route",
    doc: "where",
    fields: &[required("path", Shape::Text, "the path")],
    later: &[("host", "use `path`")],
};

static OUTER: Fields = Fields {
    title: "thing",
    doc: "a thing",
    fields: &[
        required("name", Shape::Text, "its name"),
        optional("route", Shape::Object(&INNER), "its route"),
        optional("wait", Shape::Duration, "how long"),
    ],
    later: &[],
};

fn walk(text: &str, read: impl Fn(&Mapping<'_, '_>)) -> Vec<(&'static str, String, String)> {
    let document = Document::parse("t.yaml", text).unwrap();
    let walker = Walker::new(&document);
    if let Some(mapping) = walker.root().fields(&OUTER) {
        read(&mapping);
    }
    walker
        .into_problems()
        .0
        .into_iter()
        .map(|p| (p.code, p.path, p.hint.unwrap_or_default()))
        .collect()
}

#[test]
fn undeclared_missing_and_future_fields_are_told_apart() {
    let problems = walk("nam: x\nroute: {host: a}\nzzzzzzzz: 1\n", |m| {
        let route = m.get("route").unwrap();
        assert_eq!(route.path(), "route");
        route.fields(&INNER);
    });
    let codes: Vec<_> = problems.iter().map(|p| p.0).collect();
    assert_eq!(
        codes,
        [
            codes::UNKNOWN_FIELD,
            codes::MISSING_FIELD,
            codes::NOT_AVAILABLE,
            codes::UNKNOWN_FIELD
        ]
    );
    assert_eq!(problems[0].2, "did you mean `name`?");
    assert_eq!(problems[2].1, "route");
    assert_eq!(problems[3].2, "thing has: name, route, wait");
}

#[test]
fn a_broken_value_is_reported_once() {
    let problems = walk("name: yes\n", |m| {
        assert_eq!(m.get("name").unwrap().text(), None);
    });
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].0, codes::AMBIGUOUS_WORD);
}

#[test]
fn durations_and_sizes_need_a_unit_that_exists() {
    let millis = |s| parse_duration(s).map(|d| d.as_millis());
    assert_eq!(millis("500ms"), Some(500));
    assert_eq!(millis("30d"), Some(2_592_000_000));
    for wrong in [
        "",
        "5",
        "m",
        "5 m",
        "-5m",
        "5M",
        "1h30m",
        "99999999999999999999s",
        "٣s",
    ] {
        assert_eq!(millis(wrong), None, "{wrong}");
    }
    assert_eq!(parse_size("10MiB"), Some(10 << 20));
    for wrong in ["10", "10MB", "10mib", "18446744073709551615KiB"] {
        assert_eq!(parse_size(wrong), None, "{wrong}");
    }
    assert_eq!(show_duration(Duration::from_secs(5400)), "90m");
    assert_eq!(show_size(3 << 20), "3MiB");
}

#[test]
fn suggestions_are_near_and_never_wild() {
    let names = ["route", "publish", "tls", "max_bytes"];
    let near = |w| suggest(w, names.into_iter());
    assert_eq!(near("Route"), Some("route"));
    assert_eq!(near("max-bytes"), Some("max_bytes"));
    assert_eq!(near("pubilsh"), Some("publish"));
    assert_eq!(near("tl"), Some("tls"));
    assert_eq!(near("t"), None);
    assert_eq!(near("backend"), None);
    assert_eq!(near(&"x".repeat(100_000)), None);
}
