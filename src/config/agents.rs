//! `agents`: what is guarded, and where callers find it.

use super::address::parse_url;
use super::backends::Transport;
use super::capture::Capture;
use super::check::{list_of, name_of, unique, words};
use super::document;
use super::path::canonical;
use super::snapshot::{
    Agent, BackendPath, Contexts, Interfaces, Limits, Listener, SigningKeys, Tenant,
};
use super::{backend_identity, cards, grpc, interfaces, skills, tenants};
use crate::identity::issuer::IssuerConfig;
use crate::source::{Kind, Mapping, Value, codes};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Both well-known names of a card, the current one first.
pub(super) const WELL_KNOWN: [&str; 2] =
    ["/.well-known/agent-card.json", "/.well-known/agent.json"];

const METHODS: [(&str, &str); 7] = [
    ("GET", "GET"),
    ("HEAD", "HEAD"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
    ("OPTIONS", "OPTIONS"),
];

const LIMITS: Limits = Limits {
    body: 10 << 20,
    idle_stream: Duration::from_secs(15 * 60),
    max_stream: Duration::from_secs(4 * 3600),
    unary_timeout: Duration::from_secs(10 * 60),
    connect_timeout: Duration::from_secs(5),
    send_timeout: Duration::from_secs(30),
};

/// Reads all agents.
pub(super) fn read(
    value: &Value<'_, '_>,
    capture: &Capture,
    listeners: &[Arc<Listener>],
    issuers: &[Arc<IssuerConfig>],
    keys: &SigningKeys,
) -> Vec<Arc<Agent>> {
    let mut names = HashMap::new();
    let mut doors = grpc::Doors::new(listeners);
    let mut agents = Vec::new();
    let mut routes = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::AGENT) else {
            continue;
        };
        let name = fields.get("name");
        if let Some(name) = &name {
            unique(&mut names, name, codes::DUPLICATE_NAME, "agent");
        }
        let name = name.and_then(|v| name_of(&v)).unwrap_or_default();
        let place = fields
            .get("route")
            .and_then(|v| v.fields(&document::ROUTE))
            .and_then(|f| f.get("path"));
        let route = place.as_ref().and_then(route);
        if let (Some(place), Some(route)) = (place, &route) {
            routes.push((place, route.clone(), name.clone()));
        }
        cards::needs_key(&fields, keys);
        let route = route.unwrap_or_default();
        let mut agent = one(&fields, capture, keys, agents.len(), name, route);
        if let Some(place) = fields.get("tenant") {
            agent.tenant = tenants::read(&place, issuers, &agent.interfaces);
        }
        agent.grpc = fields.get("grpc").and_then(|v| doors.read(&v, &agent.name));
        grpc::reachable(&fields, &agent);
        agents.push(Arc::new(agent));
    }
    overlaps(&routes);
    agents
}

fn one(
    fields: &Mapping<'_, '_>,
    capture: &Capture,
    keys: &SigningKeys,
    index: usize,
    name: Box<str>,
    route: Box<str>,
) -> Agent {
    let flag = |name, default| {
        let value = fields.get(name).and_then(|v: Value<'_, '_>| v.boolean());
        value.unwrap_or(default)
    };
    let place = fields.get("backend");
    let transport = Transport::new(place.as_ref(), capture);
    let backend = transport.backend();
    let url_path: Box<str> = backend
        .as_ref()
        .map_or(Box::default(), |(_, path)| path.clone());
    let skills = fields
        .get("skills")
        .map(|v| list_of(&v))
        .unwrap_or_default();
    let public_skills = fields
        .get("public_skills")
        .map(|v| cards::public_skills(&v, &skills));
    let interfaces = fields
        .get("interfaces")
        .map(|v| interfaces::read(&v, &url_path, &transport));
    let (interfaces, other_backends) = interfaces.unwrap_or((Interfaces::Auto, Vec::new()));
    transport.unused();
    let calls = skills::of_calls(fields, &skills, &interfaces);
    let contexts = fields.get("contexts").and_then(|v| {
        v.word(&[
            ("claimable", Contexts::Claimable),
            ("issued", Contexts::Issued),
        ])
    });
    let backend = backend.map(|(backend, _)| backend).unwrap_or_default();
    let backends: Vec<_> = std::iter::once(&backend).chain(&other_backends).collect();
    let identity = backend_identity::read(
        fields,
        transport.fields(),
        &backends,
        capture,
        keys,
        calls.rules.as_deref(),
    );
    Agent {
        index,
        name,
        route,
        publish: flag("publish", false),
        identity,
        forward_token: backend_identity::forward_token(fields, &backend),
        backend,
        other_backends,
        interfaces,
        grpc: None,
        skills,
        skill_rules: calls.rules,
        skill_paths: calls.paths,
        skill_default: calls.default,
        tenant: Tenant::None,
        stamp: fields
            .get("stamp")
            .and_then(|v| v.switch())
            .unwrap_or(false),
        contexts: contexts.unwrap_or(Contexts::Claimable),
        backend_paths: fields
            .get("backend_paths")
            .map(|v| backend_paths(&v))
            .unwrap_or_default(),
        one_time: flag("one_time", false),
        deny_status: fields.get("deny_status").map_or(403, |v| deny_status(&v)),
        reply_guard: flag("reply_guard", true),
        also_origins: fields
            .get("also_origins")
            .map(|v| origins(&v))
            .unwrap_or_default(),
        verify: fields
            .get("verify")
            .and_then(|v| cards::verify(&v, capture)),
        sign: flag("sign", false),
        public_skills,
        limits: fields.get("limits").map_or(LIMITS, |v| limits(&v)),
    }
}

/// A canonical path prefix: empty for `/`.
fn route(value: &Value<'_, '_>) -> Option<Box<str>> {
    let path = canonical_path(value)?;
    if path.split('/').nth(1) == Some(".well-known") {
        value.error(
            codes::BAD_PATH,
            "`/.well-known` is kept for the gateway's own documents",
            "choose another path, such as `/agents/NAME`",
        );
    }
    Some(path)
}

/// A path that is already in its one spelling; one trailing slash is dropped.
pub(super) fn canonical_path(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    let (message, hint) = match canonical(text) {
        Ok(path) if text.strip_suffix('/').unwrap_or(text) == path.as_str() => {
            return Some(path.as_str().into());
        }
        Ok(path) => (
            "the path is not in its canonical spelling".to_owned(),
            format!("write `{}`", path.as_str()),
        ),
        Err(fault) => (
            format!("not a usable path: {fault}"),
            "write an absolute path such as `/agents/weather`".to_owned(),
        ),
    };
    value.error(codes::BAD_PATH, message, hint);
    None
}

/// A path on the backend, sent as it is written: it may have escapes that ours may not (FC-20).
pub(super) fn sent_path(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    let fault = match text.strip_prefix('/') {
        None => "it does not start with `/`",
        Some(_) if text.contains(['?', '#']) => "it has a query or fragment",
        Some(rest) if rest.split('/').any(|s| matches!(s, "." | "..")) => {
            "it has a segment `.` or `..`"
        }
        Some(rest) if !rest.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') => {
            "it has a character that must be percent-encoded"
        }
        Some(_) => return Some(text.into()),
    };
    value.error(
        codes::BAD_PATH,
        format!("not a usable path: {fault}"),
        "write a path on the backend's origin, such as `/a2a`",
    );
    None
}

/// Reports each route that lies below another agent's: which agent a path leads to would depend
/// on which interfaces the outer one's card happens to name.
fn overlaps(routes: &[(Value<'_, '_>, Box<str>, Box<str>)]) {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for (place, route, name) in routes {
        if let Some(other) = owners.insert(route, name) {
            place.error(
                codes::ROUTE_OVERLAP,
                format!("agent `{other}` already has this route"),
                "give each agent a route of its own",
            );
        }
    }
    for (place, route, _) in routes {
        let starts = route.match_indices('/').map(|(i, _)| i);
        let outer = starts
            .filter_map(|i| route.get(..i))
            .find_map(|prefix| Some((prefix, owners.get(prefix)?)));
        if let Some((prefix, other)) = outer {
            let shown = if prefix.is_empty() { "/" } else { prefix };
            place.error(
                codes::ROUTE_OVERLAP,
                format!("this route lies below `{shown}`, the route of agent `{other}`"),
                "a path of the outer agent could be one of the inner: put the agents side by side, such as `/agents/a` and `/agents/b`",
            );
        }
    }
}

fn backend_paths(value: &Value<'_, '_>) -> Vec<BackendPath> {
    let mut paths: Vec<BackendPath> = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::BACKEND_PATH) else {
            continue;
        };
        let place = fields.get("path");
        let path = place.as_ref().and_then(canonical_path);
        if let (Some(place), Some(path)) = (&place, &path) {
            not_well_known(place, path);
            if paths.iter().any(|p| p.path == *path) {
                place.error(
                    codes::DUPLICATE_VALUE,
                    format!("a second entry for `{path}`"),
                    "list all its methods in one entry",
                );
            }
        }
        let methods = fields
            .get("methods")
            .map(|v| words(&v, &METHODS))
            .unwrap_or_default();
        paths.extend(path.map(|path| BackendPath {
            path,
            methods: methods.into_iter().map(Box::from).collect(),
        }));
    }
    paths
}

/// Cards are looked for before anything else, so such a path would never be reached.
pub(super) fn not_well_known(place: &Value<'_, '_>, path: &str) {
    if WELL_KNOWN.contains(&path) {
        place.error(
            codes::BAD_PATH,
            "the well-known paths of cards are answered by the gateway",
            "remove it; `publish: true` makes the card public",
        );
    }
}

fn deny_status(value: &Value<'_, '_>) -> u16 {
    match value.node.kind {
        Kind::Int(403) => 403,
        Kind::Int(200) => 200,
        Kind::Int(_) => {
            value.error(
                codes::NOT_ALLOWED,
                "this status is not allowed here",
                "allowed: 403, or 200 for clients that read a JSON-RPC error only from a 200",
            );
            403
        }
        _ => {
            value.wrong_type("a whole number");
            403
        }
    }
}

fn origins(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let mut origins = Vec::new();
    for (place, text) in value.texts().unwrap_or_default() {
        let fault = match parse_url(text) {
            Ok(url) if url.path.is_empty() || url.path == "/" => {
                origins.push(url.origin().into());
                continue;
            }
            Ok(_) => "it has a path".to_owned(),
            Err(fault) => fault.to_string(),
        };
        place.error(
            codes::BAD_URL,
            format!("not an origin: {fault}"),
            "write scheme, host and, if need be, port, as the agent's card has them",
        );
    }
    origins
}

fn limits(value: &Value<'_, '_>) -> Limits {
    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(86_400);
    let Some(fields) = value.fields(&document::LIMITS) else {
        return LIMITS;
    };
    let duration = |name, longest, default| {
        let value = fields.get(name).and_then(|v| v.duration(SECOND..=longest));
        value.unwrap_or(default)
    };
    let body = fields.get("body").and_then(|v| v.size(1 << 10..=100 << 20));
    Limits {
        body: body
            .and_then(|b| usize::try_from(b).ok())
            .unwrap_or(LIMITS.body),
        idle_stream: duration("idle_stream", DAY, LIMITS.idle_stream),
        max_stream: duration("max_stream", 30 * DAY, LIMITS.max_stream),
        unary_timeout: duration("unary_timeout", DAY, LIMITS.unary_timeout),
        connect_timeout: duration("connect_timeout", 60 * SECOND, LIMITS.connect_timeout),
        send_timeout: duration("send_timeout", 600 * SECOND, LIMITS.send_timeout),
    }
}
