//! `telemetry`: where records are shipped to.

use super::address::parse_url;
use super::capture::Capture;
use super::document;
use super::secrets;
use crate::audit::redact::Secret;
use crate::source::tree::clip;
use crate::source::{Value, codes};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue};
use std::net::IpAddr;

/// The port of OTLP over gRPC, which we do not speak.
const GRPC: u16 = 4317;
/// Where the logs of OTLP over HTTP are, below the endpoint.
const LOGS: &str = "/v1/logs";

/// Where records are shipped to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// A collector for logs.
    pub otlp: Option<Otlp>,
}

/// A collector that is reached by OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    /// The URL to which logs are posted.
    pub url: Box<str>,
    /// Fields of each request, such as a token.
    pub headers: Vec<(HeaderName, Secret<HeaderValue>)>,
}

/// Reads the settings.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> Telemetry {
    let otlp = value
        .fields(&document::TELEMETRY)
        .and_then(|f| f.get("otlp"));
    Telemetry {
        otlp: otlp.and_then(|otlp| collector(&otlp, capture)),
    }
}

fn collector(value: &Value<'_, '_>, capture: &Capture) -> Option<Otlp> {
    let fields = value.fields(&document::OTLP)?;
    let logs = fields.get("logs").and_then(|v| v.boolean());
    let headers = fields.get("headers");
    let secret = headers.is_some();
    let headers = headers.map(|v| fields_of(&v, capture)).unwrap_or_default();
    let url = url(&fields.get("endpoint")?, secret)?;
    logs.unwrap_or(true).then_some(Otlp { url, headers })
}

fn url(value: &Value<'_, '_>, secret: bool) -> Option<Box<str>> {
    let text = value.text()?;
    let url = match parse_url(text) {
        Ok(url) => url,
        Err(fault) => {
            value.error(
                codes::BAD_URL,
                format!("this URL cannot be used: {fault}"),
                "write the collector's base URL, such as `http://otel:4318`",
            );
            return None;
        }
    };
    if url.port == GRPC {
        value.warn(
            codes::TELEMETRY,
            "4317 is the port of OTLP over gRPC; records are sent by HTTP",
            "use the collector's HTTP receiver, which is at port 4318 by default",
        );
    }
    if !url.https && !is_private(url.host) {
        value.warn(
            codes::SECRET_EXPOSED,
            match secret {
                true => format!("records and `headers` go to `{}` in plain text", url.host),
                false => format!("records go to `{}` in plain text", url.host),
            },
            "write `https://`: records say who called whom",
        );
    }
    let base = text.trim_end_matches('/');
    Some(match base.ends_with(LOGS) {
        true => base.into(),
        false => format!("{base}{LOGS}").into(),
    })
}

/// Whether a host is this machine or one of a private network. A name without dots is looked up
/// there.
fn is_private(host: &str) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => !host.contains('.') || host.ends_with(".internal") || host.ends_with(".local"),
    }
}

fn fields_of(value: &Value<'_, '_>, capture: &Capture) -> Vec<(HeaderName, Secret<HeaderValue>)> {
    let mut fields = Vec::new();
    for (key, secret) in value.entries().unwrap_or_default() {
        let ours = [
            CONTENT_TYPE,
            CONTENT_LENGTH,
            CONTENT_ENCODING,
            HOST,
            TRANSFER_ENCODING,
        ];
        let name = HeaderName::try_from(&*key.name).ok();
        let name = name.filter(|name| !ours.contains(name));
        if name.is_none() {
            secret.error(
                codes::TELEMETRY,
                format!("`{}` is no header field that can be added", clip(&key.name)),
                "write the name of a field such as `Authorization` or `X-Api-Key`",
            );
        }
        let read = secrets::read(&secret, capture);
        let read = read.and_then(|text| HeaderValue::from_str(text.reveal()).ok());
        if let (Some(name), Some(mut read)) = (name, read) {
            read.set_sensitive(true);
            fields.push((name, Secret::new(read)));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn names_without_dots_and_private_addresses_stay_inside() {
        for host in [
            "otel",
            "localhost",
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "fd00::1",
            "::1",
        ] {
            assert!(is_private(host), "{host}");
        }
        for host in ["otel.example.com", "203.0.113.9", "2001:db8::1"] {
            assert!(!is_private(host), "{host}");
        }
    }
}
