//! What travels, and what does not.

use super::*;
use crate::config::skills::is_free;

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    map
}

fn added(trace: &Trace) -> Added<'_> {
    Added {
        secure: false,
        authority: "agent:9",
        request_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        trace,
        a2a_version: Some(Version::V1_0),
        extensions: None,
        content_length: Some(0),
        assertion: None,
        credential: None,
        token: false,
        grpc: None,
    }
}

#[test]
fn only_what_may_travel_travels() {
    let headers = map(&[
        ("host", "public"),
        ("authorization", "Bearer x"),
        ("dpop", "x"),
        ("cookie", "a=b"),
        ("proxy-authorization", "x"),
        ("portcullis-request-id", "forged"),
        ("portcullis_request_id", "forged"),
        ("portcullis-assertion", "forged"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x_forwarded_for", "1.2.3.4"),
        ("forwarded", "for=1.2.3.4"),
        ("client-cert", ":AAAA:"),
        ("client_cert", ":AAAA:"),
        ("x-ssl-client-cert", "AAAA"),
        ("x-forwarded-client-cert", "Hash=00"),
        ("accept-encoding", "gzip"),
        ("a2a-version", "9"),
        ("expect", "100-continue"),
        ("te", "trailers"),
        ("connection", "keep-alive, x-drop-me"),
        ("x-drop-me", "1"),
        ("content-type", "application/json"),
        ("a2a-extensions", "https://example.com/e1"),
        ("x-custom", "kept"),
        ("traceparent", "forged"),
        ("tracestate", "of=another"),
    ]);
    let trace = Trace::new(None, &[0xab; 24]);
    let wire = upstream_head(&Method::POST, "/a", &headers, added(&trace), 0).unwrap();
    let text = String::from_utf8(wire.to_vec()).unwrap();
    assert_eq!(
        text,
        "POST /a HTTP/1.1\r\nhost: agent:9\r\ncontent-type: application/json\r\n\
         a2a-extensions: https://example.com/e1\r\nx-custom: kept\r\n\
         accept-encoding: identity\r\nportcullis-request-id: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n\
             traceparent: 00-abababababababababababababababab-abababababababab-01\r\n\
         a2a-version: 1.0\r\ncontent-length: 0\r\n\r\n"
    );
}

#[test]
fn connection_must_not_delete_what_decides() {
    for name in [
        "authorization",
        "Host",
        "content-type",
        "a2a-version",
        "portcullis-x",
        "X-Forwarded-For",
    ] {
        let headers = map(&[("connection", name)]);
        assert!(check_connection(&headers).is_err(), "{name}");
    }
    assert!(check_connection(&map(&[("connection", "close, x-other")])).is_ok());
}

/// A skill is not read from a field that the agent does not get as it came.
#[test]
fn fields_that_may_name_a_skill_travel() {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
        "host",
        "content-length",
        "http2-settings",
        "authorization",
        "dpop",
        "cookie",
        "accept-encoding",
        "a2a-version",
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "true-client-ip",
        "x-forwarded-for",
        "x-forwarded-client-cert",
        "client-cert",
        "client-cert-chain",
        "x-client-cert",
        "x-ssl-client-cert",
        "ssl-client-verify",
        "x-amzn-mtls-clientcert-leaf",
        "x-arr-clientcert",
        "x-original-url",
        "x-rewrite-url",
        "portcullis-request-id",
        "traceparent",
    ] {
        assert!(!travels_to_agent(name), "{name}");
        assert!(!is_free(name), "{name}");
    }
    for name in ["x-skill", "skill", "x-agent-skill-id"] {
        assert!(travels_to_agent(name) && is_free(name), "{name}");
    }
}

#[test]
fn the_agent_speaks_for_itself_to_nobody() {
    let mut upstream = ResponseHeader::build(200, None).unwrap();
    for (name, value) in [
        ("content-type", "application/json"),
        ("www-authenticate", "Basic"),
        ("set-cookie", "a=b"),
        ("server", "uvicorn"),
        ("location", "http://agent:9/"),
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("portcullis-request-id", "forged"),
        ("a2a-extensions", "e1"),
        ("dpop-nonce", "theirs"),
    ] {
        upstream.append_header(name, value).unwrap();
    }
    let head = downstream_head(&upstream, "id", false).unwrap();
    let mut names: Vec<_> = head.headers.keys().map(|n| n.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["a2a-extensions", "content-type", "portcullis-request-id"]
    );
    assert_eq!(head.headers["portcullis-request-id"], "id");
}
