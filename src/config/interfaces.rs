//! `agents[].interfaces`: which bindings an agent speaks, and where.

use super::address::parse_url;
use super::agents::{canonical_path, not_well_known, sent_path};
use super::backends::Transport;
use super::check::words;
use super::document;
use super::snapshot::{Backend, Interface, Interfaces};
use crate::a2a::{Binding, Version, Versions};
use crate::source::{Kind, Mapping, Value, codes};

/// Reads the list, and the origins besides the backend's own that it names. `url_path` is the path
/// of the backend's URL as written.
pub(super) fn read(
    value: &Value<'_, '_>,
    url_path: &str,
    transport: &Transport<'_, '_, '_>,
) -> (Interfaces, Vec<Backend>) {
    if matches!(value.node.kind, Kind::Str(_)) {
        value.word(&[("auto", ())]);
        return (Interfaces::Auto, Vec::new());
    }
    let mut listed: Vec<Interface> = Vec::new();
    let mut others = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::INTERFACE) else {
            continue;
        };
        let interface = one(&fields, url_path, transport, &mut others);
        if listed.iter().any(|known| overlap(known, &interface)) {
            let (message, hint) = match interface.binding.has_path() {
                true => (
                    "a second interface on the same public path",
                    "give each interface a `public_path` of its own, or list both versions in one",
                ),
                false => (
                    "a second gRPC interface of this version",
                    "the package in the path decides which interface is meant: list each version once",
                ),
            };
            entry.error(codes::INTERFACE_OVERLAP, message, hint);
        }
        listed.push(interface);
    }
    (Interfaces::Listed(listed), others)
}

/// Whether callers could mean either of two interfaces.
fn overlap(a: &Interface, b: &Interface) -> bool {
    match (a.binding.has_path(), b.binding.has_path()) {
        // JSON-RPC is at the path itself, and REST below it.
        (true, true) => a.binding == b.binding && a.public_path == b.public_path,
        (false, false) => a.versions.meets(b.versions),
        (true, false) | (false, true) => false,
    }
}

fn one(
    fields: &Mapping<'_, '_>,
    url_path: &str,
    transport: &Transport<'_, '_, '_>,
    others: &mut Vec<Backend>,
) -> Interface {
    let binding = fields.get("binding").and_then(|v| binding(&v));
    let binding = binding.unwrap_or(Binding::JsonRpc);
    let versions = fields
        .get("version")
        .map(|v| versions(&v))
        .unwrap_or_default();
    let (backend, backend_path) = match fields.get("backend") {
        Some(value) => backend(&value, binding, transport, others),
        None if !binding.has_path() => (0, Box::default()),
        None if url_path.is_empty() => (0, "/".into()),
        None => (0, url_path.into()),
    };
    let place = fields.get("public_path");
    if let Some(place) = &place
        && !binding.has_path()
    {
        place.error(
            codes::BAD_PATH,
            "gRPC has no path prefix",
            "remove it; the agent's `grpc` says where callers find it",
        );
    }
    let public_path = place.as_ref().and_then(canonical_path).unwrap_or_default();
    if let Some(place) = &place {
        not_well_known(place, &public_path);
    }
    Interface {
        public_path,
        backend_path,
        binding,
        versions,
        backend,
    }
}

fn binding(value: &Value<'_, '_>) -> Option<Binding> {
    value.word(&[
        ("JSONRPC", Binding::JsonRpc),
        ("HTTP+JSON", Binding::Rest),
        ("GRPC", Binding::Grpc),
    ])
}

/// Which backend, and the path there: `backend` is a path on the agent's own origin, or a URL on
/// another one. gRPC has no path.
fn backend(
    value: &Value<'_, '_>,
    binding: Binding,
    transport: &Transport<'_, '_, '_>,
    others: &mut Vec<Backend>,
) -> (usize, Box<str>) {
    let Some(text) = value.text() else {
        return (0, Box::default());
    };
    if !text.contains("://") {
        if !binding.has_path() {
            value.error(
                codes::BAD_URL,
                "gRPC has no path prefix",
                "write the origin at which the agent speaks gRPC, such as `http://127.0.0.1:50051`; without it, `backend.url` is used",
            );
        }
        return (0, sent_path(value).unwrap_or_default());
    }
    let url = match parse_url(text) {
        Ok(url) => url,
        Err(fault) => {
            value.error(
                codes::BAD_URL,
                format!("not a usable URL: {fault}"),
                "write scheme, host, port and path: `http://127.0.0.1:9998/a2a`",
            );
            return (0, Box::default());
        }
    };
    let path = match (binding.has_path(), url.path) {
        (false, "" | "/") => "",
        (false, _) => {
            value.error(
                codes::BAD_URL,
                "gRPC has no path prefix",
                "write scheme, host and port only: `http://127.0.0.1:50051`",
            );
            ""
        }
        (true, "") => "/",
        (true, path) => path,
    };
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        value.error(
            codes::BAD_PATH,
            "not a usable path: it has a segment `.` or `..`",
            "write the path as the agent expects it, without them",
        );
    }
    let origin = transport.origin(value, &url);
    let index = others.iter().position(|known| *known == origin);
    let index = index.unwrap_or_else(|| {
        others.push(origin);
        others.len() - 1
    });
    (index + 1, path.into())
}

fn versions(value: &Value<'_, '_>) -> Versions {
    let allowed = [("0.3", Version::V0_3), ("1.0", Version::V1_0)];
    let mut versions = Versions::default();
    let named = match value.node.kind {
        Kind::Seq(_) => words(value, &allowed),
        _ => value.word(&allowed).into_iter().collect(),
    };
    for version in named {
        versions.insert(version);
    }
    versions
}
