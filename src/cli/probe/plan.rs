//! What is asked, and where.

use crate::a2a::Version;
use reqwest::Url;
use serde_json::Value;
use std::collections::BTreeSet;

/// Interfaces that are asked at most; a card may name as many as it likes.
const MAX_PLACES: usize = 8;

const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Where calls may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) url: Url,
    /// The binding that the card says, where it says one.
    pub(super) binding: Option<Box<str>>,
}

/// One question to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Try {
    JsonRpc(Version),
    Rest(Version),
    Grpc(Version),
}

impl Try {
    pub(super) fn name(self) -> &'static str {
        match self {
            Try::JsonRpc(Version::V1_0) => "JSON-RPC 1.0",
            Try::JsonRpc(Version::V0_3) => "JSON-RPC 0.3",
            Try::Rest(Version::V1_0) => "HTTP+JSON 1.0",
            Try::Rest(Version::V0_3) => "HTTP+JSON 0.3",
            Try::Grpc(Version::V1_0) => "gRPC 1.0",
            Try::Grpc(Version::V0_3) => "gRPC 0.3",
        }
    }
}

/// Where a card may be: below the URL, then at its origin.
pub(super) fn card_urls(url: &Url) -> Vec<Url> {
    let base = url.path().trim_end_matches('/');
    let mut urls: Vec<Url> = Vec::new();
    for base in [base, ""] {
        for name in WELL_KNOWN {
            let at = with_path(url, &format!("{base}{name}"));
            if !urls.contains(&at) {
                urls.push(at);
            }
        }
    }
    urls
}

/// The URL itself, and the interfaces that cards name on its host: what is elsewhere is not
/// what was asked about.
pub(super) fn places(url: &Url, cards: &[Value]) -> Vec<Place> {
    let itself = Place {
        url: with_path(url, url.path()),
        binding: None,
    };
    let mut places = vec![itself];
    for card in cards {
        let lists = ["supportedInterfaces", "additionalInterfaces"];
        let listed = lists.iter().filter_map(|name| card[name].as_array());
        let listed = listed.flatten();
        let preferred = card["url"].as_str().map(|at| (at, "preferredTransport"));
        let named = listed
            .filter_map(|entry| {
                let binding = entry["protocolBinding"].as_str();
                Some((
                    entry["url"].as_str()?,
                    binding.or(entry["transport"].as_str()),
                ))
            })
            .chain(preferred.map(|(at, name)| (at, card[name].as_str())));
        for (at, binding) in named {
            let at = match binding {
                // Some cards name gRPC without a scheme.
                Some("GRPC") if !at.contains("://") => format!("{}://{at}", url.scheme()),
                Some(_) | None => at.to_owned(),
            };
            let Some(at) = Url::parse(&at).ok().filter(|at| at.host() == url.host()) else {
                continue;
            };
            let place = Place {
                url: with_path(&at, at.path()),
                binding: binding.map(Box::from),
            };
            if places.len() < MAX_PLACES
                && matches!(place.url.scheme(), "http" | "https")
                && !places.contains(&place)
            {
                places.push(place);
            }
        }
    }
    places
}

/// Every dialect where nothing is known, else both versions of the binding.
pub(super) fn tries(place: &Place) -> Vec<Try> {
    let wanted: BTreeSet<&str> = match &place.binding {
        Some(binding) => [&**binding].into(),
        None => ["JSONRPC", "HTTP+JSON", "GRPC"].into(),
    };
    let mut tries = Vec::new();
    for version in [Version::V1_0, Version::V0_3] {
        for (binding, question) in [
            ("JSONRPC", Try::JsonRpc(version)),
            ("HTTP+JSON", Try::Rest(version)),
            ("GRPC", Try::Grpc(version)),
        ] {
            if wanted.contains(binding) {
                tries.push(question);
            }
        }
    }
    tries
}

/// The same origin with another path, and nothing behind it.
fn with_path(url: &Url, path: &str) -> Url {
    let mut at = url.clone();
    at.set_path(path);
    at.set_query(None);
    at.set_fragment(None);
    at
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_host_that_was_named_is_asked() {
        let url = Url::parse("http://agent:9999/a?x=1").unwrap();
        let card = json!({
            "url": "http://agent:9999/a2a", "preferredTransport": "JSONRPC",
            "supportedInterfaces": [
                {"url": "http://elsewhere:9999/a2a", "protocolBinding": "JSONRPC"},
                {"url": "http://agent:9998/rest", "protocolBinding": "HTTP+JSON"},
                {"url": "agent:50051", "protocolBinding": "GRPC"},
                {"url": "file:///etc/passwd", "protocolBinding": "GRPC"},
                {"url": 7}],
        });
        let found = places(&url, &[card]);
        let urls: Vec<_> = found.iter().map(|p| p.url.as_str()).collect();
        let expected = [
            "http://agent:9999/a",
            "http://agent:9998/rest",
            "http://agent:50051/",
            "http://agent:9999/a2a",
        ];
        assert_eq!(urls, expected);
        assert_eq!(tries(&found[0]).len(), 6);
        assert_eq!(
            tries(&found[2]),
            [Try::Grpc(Version::V1_0), Try::Grpc(Version::V0_3)]
        );
        let cards: Vec<_> = card_urls(&url)
            .iter()
            .map(|u| u.path().to_owned())
            .collect();
        assert_eq!(cards[0], "/a/.well-known/agent-card.json");
        assert_eq!(cards[3], "/.well-known/agent.json");
    }
}
