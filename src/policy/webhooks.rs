//! [`Webhooks`]: the hosts at which agents may be told to deliver push notifications.
//!
//! `design.md` sections 8 and 10. A URL is read here as strictly as the laxest client on the
//! agent's side could misread it: one scheme, one spelling of a host, nothing before it.

use super::compile::any_or_texts;
use super::document::{WEBHOOK, WEBHOOKS};
use super::names::Names;
use super::public_address::is_public;
use crate::source::tree::clip;
use crate::source::{Value, codes};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longer URLs are refused.
const MAX_URL: usize = 2048;
/// The port of `https`.
const HTTPS: u16 = 443;

/// The allow-list of every policy file together. The default allows nothing.
#[derive(Debug, Default)]
pub struct Webhooks {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// `None`: any.
    agents: Option<Vec<usize>>,
    host: Listed,
    port: u16,
}

#[derive(Debug)]
enum Listed {
    Name(Box<str>),
    Address(IpAddr),
}

/// Where a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'u> {
    /// Its host.
    pub host: Host<'u>,
    /// Its port.
    pub port: u16,
}

/// A host, in one of the spellings that every client reads alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host<'u> {
    /// A name, as it was written; case means nothing.
    Name(&'u str),
    /// An address literal.
    Address(IpAddr),
}

/// Why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostFault {
    /// Not labels of letters, digits and hyphens.
    Name,
    /// Only digits at its end, and not an IPv4 address in its usual spelling.
    OddAddress,
}

impl Webhooks {
    /// Whether an agent may be told any webhook at all.
    pub fn any_for(&self, agent: usize) -> bool {
        self.entries.iter().any(|entry| entry.concerns(agent))
    }

    /// Whether an agent may be told this one.
    pub fn allows(&self, agent: usize, target: &Target<'_>) -> bool {
        self.entries.iter().any(|entry| {
            entry.concerns(agent)
                && entry.port == target.port
                && match (&entry.host, target.host) {
                    (Listed::Name(listed), Host::Name(name)) => listed.eq_ignore_ascii_case(name),
                    (Listed::Address(listed), Host::Address(address)) => *listed == address,
                    (Listed::Name(_), Host::Address(_)) | (Listed::Address(_), Host::Name(_)) => {
                        false
                    }
                }
        })
    }

    /// The hosts of an agent, each with its port.
    pub(super) fn listed(&self, agent: usize) -> impl Iterator<Item = String> {
        let entries = self
            .entries
            .iter()
            .filter(move |entry| entry.concerns(agent));
        entries.map(|entry| match &entry.host {
            Listed::Name(name) => format!("{name}:{}", entry.port),
            Listed::Address(IpAddr::V6(address)) => format!("[{address}]:{}", entry.port),
            Listed::Address(address) => format!("{address}:{}", entry.port),
        })
    }

    /// Reads the section of one policy file and adds what it allows.
    pub(super) fn read(&mut self, value: &Value<'_, '_>, names: &Names<'_>) {
        let Some(fields) = value.fields(&WEBHOOKS) else {
            return;
        };
        let entries = fields.get("allow").and_then(|v| v.list());
        for value in entries.unwrap_or_default() {
            let Some(fields) = value.fields(&WEBHOOK) else {
                continue;
            };
            let agents = fields.get("agents").map(|value| {
                let named = any_or_texts(&value)?;
                let found = named
                    .iter()
                    .filter_map(|(place, name)| names.agent(place, name));
                Some(found.collect())
            });
            let port = match fields.get("port") {
                None => Some(HTTPS),
                Some(value) => value.integer(1..=65535).and_then(|p| u16::try_from(p).ok()),
            };
            let host = fields.get("host").and_then(|value| listed(&value));
            if let (Some(agents), Some(host), Some(port)) = (agents, host, port) {
                self.entries.push(Entry { agents, host, port });
            }
        }
    }
}

impl Entry {
    fn concerns(&self, agent: usize) -> bool {
        self.agents.as_ref().is_none_or(|all| all.contains(&agent))
    }
}

/// The host of an entry, in its one spelling.
fn listed(value: &Value<'_, '_>) -> Option<Listed> {
    let text = value.text()?;
    let shown = clip(text);
    let wrong = |message: String, hint: &str| {
        value.error(codes::BAD_WEBHOOK_HOST, message, hint);
        None
    };
    if text.contains("://") || text.contains(['/', '?', '#', '@']) {
        return wrong(
            format!("`{shown}` is more than a host"),
            "write the host alone: `hooks.example.com`; the scheme is always https, and paths are the caller's",
        );
    }
    if text.contains('*') {
        return wrong(
            format!("`{shown}` is a pattern"),
            "hosts are compared exactly: write an entry for each",
        );
    }
    if !text.is_ascii() {
        return wrong(
            format!("`{shown}` is not in ASCII"),
            "write an international name in its ASCII form, which starts with `xn--`",
        );
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return wrong(
            format!("`{shown}` is an address without brackets"),
            "write it as it stands in a URL: `\"[2606:4700::1]\"`",
        );
    }
    if let Some((host, port)) = text.rsplit_once(':')
        && !text.ends_with(']')
    {
        let hint = format!("write `host: {}` and `port: {}`", clip(host), clip(port));
        return wrong(format!("`{shown}` has a port"), &hint);
    }
    if text.ends_with('.') {
        return wrong(
            format!("`{shown}` ends in a dot"),
            "write it without: such URLs are refused",
        );
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        let hint = format!("write `{}`", clip(&text.to_ascii_lowercase()));
        return wrong(format!("`{shown}` is not in lower case"), &hint);
    }
    let never = |message: String| {
        value.error(
            codes::NEVER_MATCHES,
            message,
            "webhooks lead to public addresses only: name a host that has one",
        );
        None
    };
    match host(text) {
        Ok(Host::Address(address)) if !is_public(address) => {
            never(format!("`{shown}` is not a public address"))
        }
        Ok(Host::Address(address)) => Some(Listed::Address(address)),
        Ok(Host::Name(name)) if name == "localhost" || name.ends_with(".localhost") => {
            never(format!("`{shown}` is this machine"))
        }
        Ok(Host::Name(name)) => Some(Listed::Name(name.into())),
        Err(HostFault::OddAddress) => wrong(
            format!("`{shown}` is an address in an unusual spelling"),
            "write four numbers from 0 to 255 with dots between, or an IPv6 address in its shortest form",
        ),
        Err(HostFault::Name) => wrong(
            format!("`{shown}` is not a host"),
            "write a name of letters, digits, `-` and dots",
        ),
    }
}

/// Every code of [`target`]. Codes are never renamed: records keep them.
pub const URL_CODES: [&str; 6] = [
    "webhook_too_long",
    "webhook_characters",
    "webhook_scheme",
    "webhook_userinfo",
    "webhook_host",
    "webhook_port",
];

/// Where a webhook's URL leads.
///
/// # Errors
/// One of [`URL_CODES`]: not `https://`, in lower case; characters that a URL does not have, or
/// that parsers disagree on (a backslash, white space, anything outside ASCII); a fragment; a user
/// name; a host with percent escapes or a trailing dot; an address in any but its usual spelling;
/// a port that is empty, zero, or begins with one.
pub fn target(url: &str) -> Result<Target<'_>, &'static str> {
    if url.len() > MAX_URL {
        return Err("webhook_too_long");
    }
    if !url.bytes().all(|b| {
        b.is_ascii_graphic()
            && !matches!(
                b,
                b'\\' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'|' | b'^' | b'#'
            )
    }) {
        return Err("webhook_characters");
    }
    let rest = url.strip_prefix("https://").ok_or("webhook_scheme")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("webhook_userinfo");
    }
    let (written, port) = match authority.rsplit_once(':') {
        Some((written, port)) if !authority.ends_with(']') => (written, self::port(port)?),
        Some(_) | None => (authority, HTTPS),
    };
    let host = host(written).map_err(|_| "webhook_host")?;
    Ok(Target { host, port })
}

fn port(digits: &str) -> Result<u16, &'static str> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse() {
        Ok(port) if plain => Ok(port),
        Ok(_) | Err(_) => Err("webhook_port"),
    }
}

fn host(text: &str) -> Result<Host<'_>, HostFault> {
    if let Some(rest) = text.strip_prefix('[') {
        let inner = rest.strip_suffix(']').ok_or(HostFault::Name)?;
        let address: Ipv6Addr = inner.parse().map_err(|_| HostFault::OddAddress)?;
        // One address has many spellings; only the usual one (RFC 5952) is taken.
        if address.to_string() != inner {
            return Err(HostFault::OddAddress);
        }
        return Ok(Host::Address(address.into()));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() > 253 || !text.split('.').all(label) {
        return Err(HostFault::Name);
    }
    let last = text.rsplit('.').next().unwrap_or_default();
    if is_number(last) {
        // Some clients take `2130706433`, `0177.1` and `0x7f.1` for addresses.
        let address: Ipv4Addr = text.parse().map_err(|_| HostFault::OddAddress)?;
        return Ok(Host::Address(address.into()));
    }
    Ok(Host::Name(text))
}

/// Whether a label is what URL parsers take for a part of an IPv4 address.
fn is_number(label: &str) -> bool {
    let hex = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// The host that a URL seems to name, however wrong the URL: for records, where nothing else of a
/// webhook may stand. `None` where that cannot be told from a user name or other text.
pub fn shown_host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => host.split(':').next()?,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'%');
    (!host.is_empty() && host.bytes().all(plain)).then_some(host)
}

/// [`shown_host`] with its port, where the URL is good and has another than the usual one.
pub fn shown_place(url: &str) -> Option<Box<str>> {
    let host = shown_host(url)?;
    Some(match target(url) {
        Ok(Target { port, host: of }) if port != HTTPS => match of {
            Host::Address(IpAddr::V6(_)) => format!("[{host}]:{port}").into(),
            Host::Address(IpAddr::V4(_)) | Host::Name(_) => format!("{host}:{port}").into(),
        },
        Ok(_) | Err(_) => host.into(),
    })
}
