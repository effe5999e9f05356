//! `issuers[].keys`: a file, a URL, or whatever the issuer's metadata says.

use super::super::address::{UrlFault, parse_url, split_host};
use super::super::capture::Capture;
use super::super::{document, keys, tls};
use crate::identity::issuer::{DiscoveryForm, KeyFile, KeyLocation, KeyOrigin, RemoteKeys};
use crate::source::quantity::show_duration;
use crate::source::{Kind, Mapping, Value, codes};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// LC-6.
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(3600);
const REFRESH_DEFAULT: Duration = Duration::from_secs(300);
/// LC-10.
const STALE: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(86_400);
const STALE_DEFAULT: Duration = Duration::from_secs(3600);
/// LC-2.
const CONNECT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(10);
const CONNECT_DEFAULT: Duration = Duration::from_secs(3);
const TOTAL: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(30);
const TOTAL_DEFAULT: Duration = Duration::from_secs(5);

const FORMS: [(&str, DiscoveryForm); 2] = [
    ("openid", DiscoveryForm::OpenId),
    ("oauth", DiscoveryForm::OAuth),
];
/// What only means something on the network.
const REMOTE_OPTIONS: [&str; 8] = [
    "hosts",
    "private",
    "loopback",
    "ca",
    "refresh",
    "stale",
    "connect_timeout",
    "timeout",
];

/// Reads `keys` of an entry with this `issuer`.
pub(super) fn origin(
    value: &Value<'_, '_>,
    issuer: &Option<Value<'_, '_>>,
    capture: &Capture,
) -> Option<KeyOrigin> {
    let fields = value.fields(&document::KEYS)?;
    let places = ["file", "url", "discovery"].map(|name| fields.get(name));
    match places {
        [Some(file), None, None] => {
            for option in REMOTE_OPTIONS.iter().filter_map(|name| fields.get(name)) {
                option.error(
                    codes::KEY_ORIGIN,
                    "this is about fetching keys, and they are in a file",
                    "remove it; the file is looked at every second",
                );
            }
            key_file(&file, capture).map(KeyOrigin::File)
        }
        [None, Some(url), None] => {
            let loopback = flag(&fields, "loopback");
            let location = location(&url, loopback);
            if let Some(hosts) = fields.get("hosts") {
                hosts.error(
                    codes::KEY_ORIGIN,
                    "`hosts` is about the `jwks_uri` of metadata, and the URL is given",
                    "remove it",
                );
            }
            remote(&fields, location, capture)
        }
        [None, None, Some(discovery)] => {
            let location = discovered(&fields, &discovery, issuer.as_ref());
            remote(&fields, location, capture)
        }
        [None, None, None] => {
            value.error(
                codes::MISSING_FIELD,
                "no place for the keys",
                "write `{discovery: true}`, `{url: https://…}` or `{file: jwks.json}`",
            );
            None
        }
        [_, _, _] => {
            value.error(
                codes::KEY_ORIGIN,
                "more than one place for the keys",
                "keep one of `file`, `url` and `discovery`",
            );
            None
        }
    }
}

fn flag(fields: &Mapping<'_, '_>, name: &str) -> bool {
    fields.get(name).and_then(|v| v.boolean()).unwrap_or(false)
}

fn remote(
    fields: &Mapping<'_, '_>,
    location: Option<KeyLocation>,
    capture: &Capture,
) -> Option<KeyOrigin> {
    let within = |name: &str, range: RangeInclusive<Duration>| {
        fields.get(name).and_then(|v| v.duration(range))
    };
    let refresh = within("refresh", REFRESH);
    let stale = within("stale", STALE).unwrap_or(STALE_DEFAULT);
    let total = within("timeout", TOTAL).unwrap_or(TOTAL_DEFAULT);
    let connect = within("connect_timeout", CONNECT);
    if let (Some(place), Some(connect)) = (fields.get("connect_timeout"), connect)
        && connect > total
    {
        place.error(
            codes::OUT_OF_RANGE,
            "longer than the whole exchange may take",
            format!("give at most `timeout`, {}", show_duration(total)),
        );
    }
    let period = refresh.unwrap_or(REFRESH_DEFAULT);
    if stale < period + period / 10 {
        let place = fields.get("stale").or_else(|| fields.get("refresh"));
        place.as_ref().unwrap_or(fields.whole()).error(
            codes::OUT_OF_RANGE,
            "keys would be too old to be used before they are fetched again",
            format!(
                "`stale` is at least a tenth more than `refresh`, which is {}",
                show_duration(period)
            ),
        );
    }
    let authorities = match fields.get("ca") {
        Some(file) => Some(tls::bundle(&file, capture)?),
        None => None,
    };
    Some(KeyOrigin::Remote(RemoteKeys {
        location: location?,
        hosts: fields.get("hosts").map(|v| hosts(&v)).unwrap_or_default(),
        private: flag(fields, "private"),
        loopback: flag(fields, "loopback"),
        authorities,
        refresh: period,
        may_wait: refresh.is_none(),
        stale,
        connect: connect
            .unwrap_or(CONNECT_DEFAULT.min(total))
            .max(SECOND / 10),
        total,
    }))
}

fn hosts(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let mut hosts = Vec::new();
    for (place, text) in value.texts().unwrap_or_default() {
        match split_host(text) {
            Ok((host, None)) => hosts.push(host.to_ascii_lowercase().into()),
            Ok((_, Some(_))) | Err(_) => place.error(
                codes::BAD_HOST,
                "not a host name or IP address",
                "write the host of the issuer's `jwks_uri` without scheme and port: `keys.example.com`; patterns are not read",
            ),
        }
    }
    hosts
}

/// `keys.url`. Some issuers tell their policies apart by a query.
fn location(value: &Value<'_, '_>, loopback: bool) -> Option<KeyLocation> {
    let text = value.text()?;
    let (url, query) = text.split_once('?').unwrap_or((text, ""));
    let odd = !query
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'\\' | b'"' | b'<' | b'>'));
    let read = match odd {
        true => Err(UrlFault::Path),
        false => parse_url(url),
    };
    let usable = match read {
        Ok(url) => secure(value, url.https, url.host, loopback),
        Err(fault) => {
            value.error(
                codes::BAD_URL,
                format!("not the URL of a key set: {fault}"),
                "write the whole `https://` URL of the issuer's JWKS",
            );
            false
        }
    };
    usable.then(|| KeyLocation::Url(text.into()))
}

/// LC-1: `https`, or this machine with the flag for it.
fn secure(value: &Value<'_, '_>, https: bool, host: &str, loopback: bool) -> bool {
    let local = match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    if https || local && loopback {
        return true;
    }
    let hint = match local {
        true => "write `https://`; for an issuer on this machine, `loopback: true` takes `http://`",
        false => "write `https://`: whoever answers in between could admit anybody",
    };
    value.error(codes::BAD_URL, "keys over plain `http`", hint);
    false
}

fn discovered(
    fields: &Mapping<'_, '_>,
    value: &Value<'_, '_>,
    issuer: Option<&Value<'_, '_>>,
) -> Option<KeyLocation> {
    let form = match value.node.kind {
        Kind::Bool(true) => DiscoveryForm::Either,
        Kind::Bool(false) => {
            value.error(
                codes::KEY_ORIGIN,
                "without discovery there is no place for the keys",
                "write `discovery: true`, or `url` or `file` in its place",
            );
            return None;
        }
        _ => value.word(&FORMS)?,
    };
    let issuer = issuer?.text()?;
    match parse_url(issuer) {
        Ok(url) if secure(value, url.https, url.host, flag(fields, "loopback")) => {
            Some(KeyLocation::Discovery {
                issuer: issuer.into(),
                form,
            })
        }
        Ok(_) => None,
        Err(fault) => {
            value.error(
                codes::BAD_URL,
                format!("`issuer` is no URL below which metadata could be: {fault}"),
                "give the place of its JWKS with `url`",
            );
            None
        }
    }
}

fn key_file(file: &Value<'_, '_>, capture: &Capture) -> Option<KeyFile> {
    let bytes = keys::content(file, capture, "admit anybody")?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        file.error(
            codes::KEY_FILE,
            "the key file is empty",
            "put the issuer's JWKS in it",
        );
    }
    Some(KeyFile {
        path: capture.resolve(file.text()?),
        content: bytes.into(),
    })
}
