//! `listeners`: where callers connect.

use super::address::{parse_url, split_host};
use super::capture::Capture;
use super::check::{name_of, unique};
use super::path::canonical;
use super::snapshot::{Listener, SigningKeys};
use super::{document, tls};
use crate::identity::issuer::IssuerConfig;
use crate::identity::resource::{Facts, Resources};
use crate::identity::signing_key::KEY_SET;
use crate::source::{Mapping, Value, codes};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Reads all listeners.
pub(super) fn read(
    value: &Value<'_, '_>,
    capture: &Capture,
    issuers: &[Arc<IssuerConfig>],
    keys: &SigningKeys,
) -> Vec<Arc<Listener>> {
    let mut names = HashMap::new();
    let mut listeners: Vec<Arc<Listener>> = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::LISTENER) else {
            continue;
        };
        let name = fields.get("name");
        if let Some(name) = &name {
            unique(&mut names, name, codes::DUPLICATE_NAME, "listener");
        }
        let name = name.and_then(|v| name_of(&v)).unwrap_or_default();
        let plaintext = fields
            .get("plaintext")
            .and_then(|v| v.word(&[("i_understand", ())]))
            .is_some();
        let place = fields.get("bind");
        let bind = place.as_ref().and_then(address);
        if let (Some(place), Some(bind)) = (&place, bind) {
            if !bind.ip().is_loopback() && !fields.has("plaintext") && !fields.has("tls") {
                place.error(
                    codes::PLAINTEXT,
                    "tokens would travel unencrypted beyond this machine",
                    "add `tls`, bind to a loopback address, or let a TLS terminator stand in front and add `plaintext: i_understand`",
                );
            }
            if let Some(other) = listeners.iter().find(|l| collide(l.bind, bind)) {
                place.error(
                    codes::ADDRESS_TAKEN,
                    format!(
                        "`{bind}` is already the address of listener `{}`",
                        other.name
                    ),
                    "give each listener a port of its own",
                );
            }
        }
        let public_url = fields.get("public_url").and_then(|v| origin(&v));
        let own = public_url.as_ref().map(|(_, authority)| &**authority);
        let hosts = match fields.get("hosts") {
            Some(value) => hosts(&value, own),
            None => own.into_iter().map(Box::from).collect(),
        };
        let place = fields.get("tls");
        let client_ca = fields.get("client_ca");
        let tls = place
            .as_ref()
            .and_then(|v| tls::listener(v, client_ca.as_ref(), capture));
        let h2c = fields.get("h2c").and_then(|v| v.boolean());
        excluded(&fields, place.is_some(), h2c);
        let public_url = public_url.map(|(origin, _)| origin).unwrap_or_default();
        let facts = Facts {
            key_set: keys.card_file().map(|_| KEY_SET),
            client_certificates: tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()),
        };
        listeners.push(Arc::new(Listener {
            name,
            bind: bind.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
            resources: Resources::of(&public_url, issuers, &facts),
            public_url,
            hosts,
            plaintext,
            tls,
            h2c: h2c.unwrap_or(false),
            health_path: fields.get("health_path").and_then(|v| health_path(&v)),
            cors: fields.get("cors").map(|v| cors(&v)).unwrap_or_default(),
        }));
    }
    listeners
}

/// Reports settings that exclude each other.
fn excluded(fields: &Mapping<'_, '_>, secure: bool, h2c: Option<bool>) {
    let says = |name, message, hint| {
        if let Some(place) = fields.get(name) {
            place.error(codes::TRANSPORT, message, hint);
        }
    };
    if secure {
        says(
            "plaintext",
            "the listener has `tls`, so nothing is plaintext on it",
            "remove it",
        );
        if h2c == Some(true) {
            says(
                "h2c",
                "the listener has `tls`, which agrees on HTTP/2 by itself",
                "remove it",
            );
        }
    } else {
        says(
            "client_ca",
            "client certificates exist only in TLS",
            "add `tls`, or remove it",
        );
    }
}

fn health_path(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    match canonical(text) {
        Ok(path) if path.as_str() == text && text != "/" => Some(text.into()),
        Ok(_) | Err(_) => {
            value.error(
                codes::BAD_PATH,
                "not a path in its canonical spelling, other than `/`",
                "write one that no agent has, such as `/healthz`",
            );
            None
        }
    }
}

/// Origins as browsers send them: scheme, host and, unless it is the scheme's own, port.
fn cors(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let origins = value
        .fields(&document::CORS)
        .and_then(|f| f.get("origins"))
        .and_then(|v| v.texts());
    let mut listed = Vec::new();
    for (place, text) in origins.unwrap_or_default() {
        match parse_url(text) {
            Ok(url) if url.origin() == text => listed.push(text.into()),
            Ok(url) => place.error(
                codes::BAD_URL,
                "not an origin as browsers send it",
                format!("write `{}`", url.origin()),
            ),
            Err(fault) => place.error(
                codes::BAD_URL,
                format!("not an origin: {fault}"),
                "write each origin out, such as `https://console.example.com`; there is no `*`",
            ),
        }
    }
    listed
}

/// An IP address with a port; 0 takes a free one.
pub(super) fn address(value: &Value<'_, '_>) -> Option<SocketAddr> {
    let text = value.text()?;
    let address = text.parse().ok();
    if address.is_none() {
        value.error(
            codes::BAD_ADDRESS,
            "not an IP address with a port",
            "write `127.0.0.1:8080` or `[::1]:8080`; names are not looked up",
        );
    }
    address
}

/// Whether two listeners cannot both have their address.
pub(super) fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (everywhere || a.ip() == b.ip())
}

/// An origin as it goes into cards, and its authority as a `Host` value.
fn origin(value: &Value<'_, '_>) -> Option<(Box<str>, Box<str>)> {
    let text = value.text()?;
    let fault = match parse_url(text) {
        Ok(url) if url.path.is_empty() || url.path == "/" => {
            return Some((url.origin().into(), url.authority().into()));
        }
        Ok(_) => "it has a path".to_owned(),
        Err(fault) => fault.to_string(),
    };
    value.error(
        codes::BAD_URL,
        format!("not an origin: {fault}"),
        "write scheme, host and, if need be, port: `https://agents.example.com`",
    );
    None
}

/// Accepted `Host` values; `own` is that of the URLs in our cards.
fn hosts(value: &Value<'_, '_>, own: Option<&str>) -> Vec<Box<str>> {
    let mut hosts: Vec<Box<str>> = Vec::new();
    for (place, text) in value.texts().unwrap_or_default() {
        match split_host(text) {
            Ok(_) => hosts.push(text.to_ascii_lowercase().into()),
            Err(fault) => place.error(
                codes::BAD_HOST,
                format!("not a Host value: {fault}"),
                "write a host name, with a port if it is not the scheme's own: `agents.example.com:8443`; patterns are not read",
            ),
        }
    }
    if let Some(own) = own
        && !hosts.iter().any(|h| **h == *own)
    {
        value.error(
            codes::BAD_HOST,
            format!("the host of `public_url`, `{own}`, is not among them"),
            "add it: callers who follow a card come with it",
        );
    }
    hosts
}
