//! `grpc.health.v1.Health/Check`: what we answer for an agent, from a request's bytes.

use crate::support::proto::{delimited, framed};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::grpc::health::answer;
use portcullis::a2a::{Fault, Request, Versions};

const NONE: Versions = Versions {
    v0_3: false,
    v1_0: false,
};
const NEW: Versions = Versions { v1_0: true, ..NONE };

fn ask(body: Vec<u8>, media: &'static str, offered: Versions, ready: bool) -> Result<u8, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(media));
    let request = Request {
        method: &Method::POST,
        path: "",
        query: None,
        headers: &headers,
        body: &Bytes::from(body),
    };
    let frame = answer(&request, offered, ready).map_err(|malformed| malformed.fault)?;
    let status = frame.last().copied().unwrap();
    assert_eq!(frame, framed(&[0x08, status]), "one frame with one enum");
    Ok(status)
}

fn named(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    delimited(1, service.as_bytes(), &mut message);
    framed(&message)
}

#[test]
fn what_is_offered_and_ready_serves() {
    const SERVING: Result<u8, Fault> = Ok(1);
    const NOT_SERVING: Result<u8, Fault> = Ok(2);
    let grpc = |body, offered, ready| ask(body, "application/grpc", offered, ready);
    assert_eq!(grpc(framed(b""), NEW, true), SERVING);
    assert_eq!(grpc(framed(b""), NEW, false), NOT_SERVING);
    assert_eq!(grpc(framed(b""), NONE, true), NOT_SERVING);
    assert_eq!(grpc(named("lf.a2a.v1.A2AService"), NEW, true), SERVING);
    assert_eq!(grpc(named("a2a.v1.A2AService"), NEW, true), NOT_SERVING);
    for other in ["grpc.health.v1.Health", "LF.A2A.V1.A2AService", " "] {
        assert_eq!(grpc(named(other), NEW, true), Err(Fault::NoSuchService));
    }
}

#[test]
fn only_a_clear_request_is_answered() {
    for body in [
        b"".to_vec(),
        b"\0\0\0\0\x01".to_vec(),
        framed(b"\x0a\x01a\x0a\x01b"),
        framed(b"\x12\x01a"),
        framed(b"\x08\x01"),
        framed(b"\x0a\x01\xff"),
    ] {
        let found = ask(body.clone(), "application/grpc", NEW, true);
        assert_eq!(found, Err(Fault::InvalidRequest), "{body:x?}");
    }
    let mut compressed = framed(b"");
    compressed[0] = 1;
    assert!(ask(compressed, "application/grpc", NEW, true).is_err());
    for (media, fault) in [
        ("application/json", Fault::ContentTypeNotSupported),
        ("application/grpc+json", Fault::EncodingNotSupported),
    ] {
        assert_eq!(ask(framed(b""), media, NEW, true), Err(fault));
    }
}
