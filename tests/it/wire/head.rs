//! What the head says besides whether the body may be read.

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis::a2a::{Version, head};
use proptest::prelude::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.append("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in pairs {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

#[test]
fn a_version_is_stated_once_or_not_at_all() {
    let read = |pairs: &[(&'static str, &str)], query| {
        head::read(&headers(pairs), query).map(|head| head.version)
    };
    assert_eq!(read(&[], None), Ok(None));
    assert_eq!(read(&[("a2a-version", "")], Some("A2A-Version=")), Ok(None));
    assert_eq!(
        read(&[("a2a-version", " 1.0\t")], None),
        Ok(Some(Version::V1_0))
    );
    assert_eq!(
        read(&[], Some("a=b&A2A-Version=0%2E3&c")),
        Ok(Some(Version::V0_3))
    );
    assert!(read(&[], Some("A2A-Version=%FF")).is_err());
    assert!(read(&[], Some("A2A-Version=%31.%")).is_err());
    assert!(read(&[], Some("A2A-Version=1.0&A2A%2dversion=1.0")).is_err());
}

/// FC-44: under both names, on several lines, each once, in order of the newer name first.
#[test]
fn extensions_of_both_names_are_one_list() {
    let fits = format!("y:{}", "y".repeat(254));
    let found = head::read(
        &headers(&[
            ("x-a2a-extensions", "https://c.example, https://a.example"),
            ("a2a-extensions", " https://a.example ,,\thttps://b.example"),
            ("a2a-extensions", ""),
            ("a2a-extensions", &fits),
        ]),
        None,
    );
    let extensions = found.unwrap().extensions;
    let expected = [
        "https://a.example",
        "https://b.example",
        &fits,
        "https://c.example",
    ];
    assert!(extensions.iter().map(|uri| &**uri).eq(expected));
    let uris = |count: usize| {
        let uris: Vec<_> = (0..count)
            .map(|n| format!("https://m.example/{n}"))
            .collect();
        head::read(&headers(&[("a2a-extensions", &uris.join(","))]), None)
    };
    assert_eq!(uris(32).unwrap().extensions.len(), 32);
    assert_eq!(uris(33).unwrap_err().code, "too_many_extensions");
    let same = vec!["https://m.example"; 100].join(",");
    let found = head::read(&headers(&[("x-a2a-extensions", &same)]), None);
    assert_eq!(found.unwrap().extensions.len(), 1);
}

#[test]
fn what_is_no_uri_is_no_extension() {
    for uri in [
        "x",
        "example.com/e1",
        ":e1",
        "1x:e1",
        "https:",
        "https://a b",
        "https://a;\"b\"",
        "urn:<x>",
        "urn:x\\y",
        "https://é.example",
        &format!("y:{}", "y".repeat(255)),
    ] {
        for name in ["a2a-extensions", "x-a2a-extensions"] {
            let found = head::read(&headers(&[(name, uri)]), None);
            assert_eq!(found.unwrap_err().code, "extension_uri", "{uri}");
        }
    }
    for uri in ["urn:a2a:ext", "https://e.example/x?y=z#v1", "tag:e,2026:x"] {
        let found = head::read(&headers(&[("a2a-extensions", uri)]), None);
        assert_eq!(found.is_ok(), !uri.contains(','), "{uri}");
    }
}

proptest! {
    #[test]
    fn any_query_and_header_is_read_without_panic(
        query in "[A2a%\\-Version=&.0-3é]{0,40}",
        bytes in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut headers = headers(&[]);
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            for name in ["content-type", "content-encoding", "a2a-version", "a2a-extensions"] {
                headers.insert(HeaderName::from_static(name), value.clone());
                let _ = head::read(&headers, Some(&query));
            }
        }
        let _ = head::read(&headers, Some(&query));
    }
}
