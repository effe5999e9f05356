//! Where a request leads: the agent, the surface, the interface (`design.md` section 4).
//!
//! The canonical path that decides is the one that is forwarded. Nothing here says whether the
//! caller may go there.

use super::{Live, Rejection};
use crate::a2a::card::Interface;
use crate::a2a::card::serve::Document;
use crate::a2a::{
    Binding, Dialect, Fault, ReadRules, Versions, dialect_of_unserved, is_served, wire,
};
use crate::audit::record::Surface;
use crate::config::path::{CanonicalPath, PathFault, canonical};
use crate::config::snapshot::{Agent, GrpcDoor, Interfaces, Listener, Tenant};
use http::Method;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Names under which a card is asked for, below an agent's route.
pub const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// What a reader must know of an agent and one of its interfaces.
pub(super) fn read_rules(agent: &Agent, interface: &Interface) -> ReadRules {
    ReadRules {
        versions: versions_of(agent, interface),
        tenants: agent.tenant != Tenant::None,
        skills: agent.skill_rules.clone(),
        stamp: agent.stamp,
    }
}

/// The versions that are served. 0.3 has no tenant, so its callers' could not be told.
fn versions_of(agent: &Agent, interface: &Interface) -> Versions {
    Versions {
        v0_3: interface.versions.v0_3 && agent.tenant == Tenant::None,
        ..interface.versions
    }
}

pub use crate::identity::signing_key::KEY_SET;

/// What a path leads to.
#[derive(Debug, Clone)]
pub enum Place {
    /// The card of an agent that publishes it; needs no token.
    Card(Arc<Agent>),
    /// The public parts of our own keys; needs no token.
    KeySet,
    /// The metadata of one of the listener's audiences (RFC 9728); needs no token.
    ResourceMetadata(Document),
    /// Where a card would be, under no route or of an agent that does not publish it: the same 404
    /// to everybody (I-6).
    NoCard,
    /// An interface of an agent.
    Interface {
        /// The agent.
        agent: Arc<Agent>,
        /// Which of its interfaces.
        interface: Interface,
        /// The canonical path below the interface's public path; empty in JSON-RPC.
        path: Box<str>,
        /// The path is also declared as a backend path: a card can never lower a path's surface.
        full_only: bool,
    },
    /// A declared path of an agent's backend.
    Backend {
        /// The agent.
        agent: Arc<Agent>,
        /// The path on the backend, without the query.
        path: Box<str>,
    },
    /// An agent's interfaces are not known yet, so no path of it can be judged.
    NotReady(Arc<Agent>),
    /// The health service of an agent's gRPC interface, which we answer; needs no token.
    Health(Arc<Agent>),
    /// Below an interface, but none of its operations: refused in its form.
    Unserved {
        /// The agent.
        agent: Arc<Agent>,
        /// How its callers speak.
        dialect: Dialect,
    },
    /// Nowhere.
    Nowhere,
}

/// The one method of the health service that is answered.
const HEALTH: &str = "/grpc.health.v1.Health/Check";

impl Place {
    /// The surface, for records and metrics.
    pub fn surface(&self) -> Surface {
        match self {
            Place::Card(_) | Place::KeySet | Place::ResourceMetadata(_) | Place::NoCard => {
                Surface::Card
            }
            Place::Interface { .. } | Place::NotReady(_) => Surface::Agent,
            Place::Health(_) => Surface::Health,
            Place::Backend { .. } => Surface::Backend,
            Place::Unserved { .. } | Place::Nowhere => Surface::None,
        }
    }

    /// The agent, if there is one.
    pub fn agent(&self) -> Option<&Arc<Agent>> {
        match self {
            Place::Card(agent)
            | Place::Interface { agent, .. }
            | Place::Backend { agent, .. }
            | Place::Health(agent)
            | Place::NotReady(agent)
            | Place::Unserved { agent, .. } => Some(agent),
            Place::KeySet | Place::ResourceMetadata(_) | Place::NoCard | Place::Nowhere => None,
        }
    }
}

/// A path, and where it leads.
pub struct Located {
    /// The canonical path.
    pub path: Box<str>,
    /// Where it leads.
    pub place: Place,
}

/// Where a request knocks.
#[derive(Debug, Clone, Copy)]
pub struct Knock<'a> {
    /// The listener.
    pub listener: &'a Listener,
    /// The `Host`, checked to be one of the listener's.
    pub host: &'a [u8],
    /// The HTTP method.
    pub method: &'a Method,
    /// The path as it came, without the query.
    pub target: &'a [u8],
}

/// Finds where a request leads.
pub fn locate(live: &Live, knock: &Knock<'_>) -> Result<Located, Rejection> {
    let Knock { target, .. } = *knock;
    let text = std::str::from_utf8(target).map_err(|_| bad_path("path_not_utf8"))?;
    let path = canonical(text).map_err(|fault| bad_path(code_of(fault)))?;
    Ok(Located {
        place: behind_door(live, knock, &path).unwrap_or_else(|| place(live, knock, &path)),
        path: path.as_str().into(),
    })
}

/// The URI under which callers see what they ask for, without its query: from the configuration,
/// never from `Host` (SC-4).
pub fn visible_uri(live: &Live, knock: &Knock<'_>) -> String {
    let url = &*knock.listener.public_url;
    let host = std::str::from_utf8(knock.host).unwrap_or_default();
    let agent = live.snapshot.routes.grpc_host(knock.listener, host);
    let origin = match agent.and_then(|agent| agent.grpc.as_ref()) {
        // As configured, whatever the spelling that chose it.
        Some(grpc) => match (&grpc.door, url.split_once("://")) {
            (GrpcDoor::Host(host), Some((scheme, _))) => format!("{scheme}://{host}"),
            (GrpcDoor::Host(_) | GrpcDoor::Listener(_), _) => url.to_owned(),
        },
        None => url.to_owned(),
    };
    // What is no UTF-8 leads nowhere, and equals nothing that a proof can name.
    origin + &String::from_utf8_lossy(knock.target)
}

fn bad_path(code: &'static str) -> Rejection {
    Rejection::plain(Fault::BadRequest, code)
}

fn code_of(fault: PathFault) -> &'static str {
    match fault {
        PathFault::NotAbsolute => "path_not_absolute",
        PathFault::EmptySegment => "path_empty_segment",
        PathFault::DotSegment => "path_dot_segment",
        PathFault::Separator => "path_separator",
        PathFault::Control => "path_control",
        PathFault::Parameter => "path_parameter",
        PathFault::BadEscape => "path_bad_escape",
        PathFault::DoubleEncoded => "path_double_encoded",
        PathFault::NotUtf8 => "path_not_utf8",
        PathFault::BadCharacter => "path_bad_character",
    }
}

/// The place of a path at an agent's gRPC door. Behind a host of its own there is nothing else;
/// on a listener of its own there are the routes too.
fn behind_door(live: &Live, knock: &Knock<'_>, path: &CanonicalPath<'_>) -> Option<Place> {
    let routes = &live.snapshot.routes;
    let host = std::str::from_utf8(knock.host).unwrap_or_default();
    if let Some(agent) = routes.grpc_host(knock.listener, host) {
        let place = grpc_place(live, agent, path.as_str());
        let reads = *knock.method == Method::GET || *knock.method == Method::HEAD;
        return Some(place.unwrap_or(match reads && is_card_name(path.as_str()) {
            true => Place::NoCard,
            false => Place::Nowhere,
        }));
    }
    let agent = routes.grpc_listener(&knock.listener.name)?;
    grpc_place(live, agent, path.as_str())
}

fn grpc_place(live: &Live, agent: &Arc<Agent>, path: &str) -> Option<Place> {
    if path == HEALTH && agent.grpc.as_ref().is_some_and(|grpc| grpc.health) {
        return Some(Place::Health(agent.clone()));
    }
    let spelling = wire::grpc(path)?;
    let interfaces = live.cards.interfaces(agent.index);
    let speaks = |i: &&Interface| i.binding == Binding::Grpc;
    let found = interfaces
        .iter()
        .filter(speaks)
        .find(|i| i.versions.contains(spelling.version))
        .or_else(|| interfaces.iter().find(speaks));
    if let Some(interface) = found {
        return Some(Place::Interface {
            agent: agent.clone(),
            interface: interface.clone(),
            path: path.into(),
            full_only: false,
        });
    }
    if agent.interfaces == Interfaces::Auto && !live.cards.has_card(agent.index) {
        return Some(Place::NotReady(agent.clone()));
    }
    Some(Place::Nowhere)
}

fn place(live: &Live, knock: &Knock<'_>, path: &CanonicalPath<'_>) -> Place {
    let method = knock.method;
    let reads = *method == Method::GET || *method == Method::HEAD;
    if reads && path.as_str() == KEY_SET && live.key_set {
        return Place::KeySet;
    }
    if reads && let Some(resource) = knock.listener.resources.described_at(path.as_str()) {
        return Place::ResourceMetadata(resource.document.clone());
    }
    let Some((agent, rest)) = live.snapshot.routes.match_agent(path) else {
        return match reads && is_card_name(path.as_str()) {
            true => Place::NoCard,
            false => Place::Nowhere,
        };
    };
    // At the root the path itself is the rest.
    let rest = if rest == "/" { "" } else { rest };
    if reads {
        let exact =
            WELL_KNOWN.contains(&rest) || agent.backend.card_paths.iter().any(|p| **p == *rest);
        if exact && agent.publish {
            return Place::Card(agent.clone());
        }
        // A card's own path of an unpublished agent is a path like any other: were it a 404
        // without a token, it would show that the agent is there (I-6).
        if is_card_name(rest) {
            return Place::NoCard;
        }
    }
    let declared = agent.backend_paths.iter().find(|b| *b.path == *rest);
    let interfaces = live.cards.interfaces(agent.index);
    let found = interface(agent, &interfaces, rest);
    if found.is_none()
        && declared.is_none()
        && agent.interfaces == Interfaces::Auto
        && !live.cards.has_card(agent.index)
    {
        return Place::NotReady(agent.clone());
    }
    match (found, declared) {
        (Some((interface, below)), declared) => Place::Interface {
            agent: agent.clone(),
            interface: interface.clone(),
            path: below.into(),
            full_only: declared.is_some(),
        },
        (None, Some(declared)) if declared.methods.iter().any(|m| **m == *method.as_str()) => {
            Place::Backend {
                agent: agent.clone(),
                path: declared.path.clone(),
            }
        }
        (None, _) => match unserved(&interfaces, rest) {
            Some(dialect) => Place::Unserved {
                agent: agent.clone(),
                dialect,
            },
            None => Place::Nowhere,
        },
    }
}

/// What of a path below an agent's route lies below an interface's.
fn below<'p>(interface: &Interface, rest: &'p str) -> Option<&'p str> {
    let below = rest.strip_prefix(&*interface.public_path)?;
    (below.is_empty() || below.starts_with('/')).then_some(below)
}

/// The interface that a path below an agent's route leads to, and the path below that: of several
/// the one with the longest path.
fn interface<'i, 'p>(
    agent: &Agent,
    interfaces: &'i [Interface],
    rest: &'p str,
) -> Option<(&'i Interface, &'p str)> {
    interfaces
        .iter()
        // gRPC has a door of its own.
        .filter(|interface| interface.binding != Binding::Grpc)
        .filter_map(|interface| {
            let below = below(interface, rest)?;
            let tenants = agent.tenant != Tenant::None;
            let versions = versions_of(agent, interface);
            let served = is_served(interface.binding, below, versions, tenants);
            served.then_some((interface, below))
        })
        .min_by_key(|(_, below)| below.len())
}

/// The dialect of the interface below which a path lies that leads nowhere.
fn unserved(interfaces: &[Interface], rest: &str) -> Option<Dialect> {
    interfaces
        .iter()
        .filter_map(|interface| {
            let below = below(interface, rest)?;
            let dialect = dialect_of_unserved(interface.binding, below, interface.versions)?;
            Some((dialect, below.len()))
        })
        .min_by_key(|(_, length)| *length)
        .map(|(dialect, _)| dialect)
}

fn is_card_name(path: &str) -> bool {
    WELL_KNOWN.iter().any(|name| path.ends_with(name))
}

/// Whether a `Host` value is one of the listener's, or a gRPC host. On a loopback listener every
/// loopback name is.
pub fn is_our_host(live: &Live, listener: &Listener, host: &[u8]) -> bool {
    if listener
        .hosts
        .iter()
        .any(|ours| ours.as_bytes().eq_ignore_ascii_case(host))
    {
        return true;
    }
    if listener.bind.ip().is_loopback() && is_loopback_name(host) {
        return true;
    }
    let host = std::str::from_utf8(host).unwrap_or_default();
    live.snapshot.routes.grpc_host(listener, host).is_some()
}

/// Whether a `Host` value names loopback.
pub fn is_loopback_name(host: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(host) else {
        return false;
    };
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => text,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    match bare {
        Some(six) => six.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback()),
        None => name
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|ip| ip.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names() {
        for yes in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.1.2.3:9",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_loopback_name(yes.as_bytes()), "{yes}");
        }
        for no in [
            "localhost.evil",
            "evil:80",
            "127.0.0.1.evil",
            "::1:80:x",
            "",
            "[::2]",
            "10.0.0.1",
        ] {
            assert!(!is_loopback_name(no.as_bytes()), "{no}");
        }
    }
}
