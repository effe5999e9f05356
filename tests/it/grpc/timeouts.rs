//! `grpc-timeout`.

use http::{HeaderMap, HeaderValue};
use portcullis::a2a::grpc::timeout::{BadTimeout, declared, parse};
use std::time::Duration;

#[test]
fn one_to_eight_digits_and_a_unit() {
    for (value, time) in [
        ("0n", Duration::ZERO),
        ("1n", Duration::from_nanos(1)),
        ("20u", Duration::from_micros(20)),
        ("300m", Duration::from_millis(300)),
        ("005S", Duration::from_secs(5)),
        ("2M", Duration::from_secs(120)),
        ("1H", Duration::from_secs(3600)),
        ("99999999H", Duration::from_secs(99_999_999 * 3600)),
    ] {
        assert_eq!(parse(value.as_bytes()), Ok(time), "{value}");
    }
    for value in [
        "",
        "S",
        "1",
        "1s",
        "1 S",
        " 1S",
        "1S ",
        "-1S",
        "+1S",
        "1.5S",
        "1SS",
        "123456789m",
        "0x1S",
        "１S",
        "1h",
        "1\u{b5}",
    ] {
        assert_eq!(parse(value.as_bytes()), Err(BadTimeout), "{value}");
    }
}

#[test]
fn it_is_declared_once_or_not_at_all() {
    let mut headers = HeaderMap::new();
    assert_eq!(declared(&headers), Ok(None));
    headers.append("grpc-timeout", HeaderValue::from_static("3S"));
    assert_eq!(declared(&headers), Ok(Some(Duration::from_secs(3))));
    headers.append("grpc-timeout", HeaderValue::from_static("3S"));
    assert_eq!(declared(&headers), Err(BadTimeout));
}
