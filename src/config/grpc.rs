//! `agents[].grpc`: where callers find an agent's gRPC interface, which has no path prefix.

use super::address::split_host;
use super::document;
use super::snapshot::{Agent, Grpc, GrpcDoor, Interfaces, Listener};
use crate::a2a::Binding;
use crate::source::tree::clip;
use crate::source::{Mapping, Value, codes, quantity::suggest};
use std::collections::HashMap;
use std::sync::Arc;

/// Which doors are taken, and by whom.
pub(super) struct Doors<'l> {
    listeners: &'l [Arc<Listener>],
    taken: HashMap<GrpcDoor, Box<str>>,
}

impl<'l> Doors<'l> {
    /// None are taken.
    pub(super) fn new(listeners: &'l [Arc<Listener>]) -> Doors<'l> {
        Doors {
            listeners,
            taken: HashMap::new(),
        }
    }

    /// Reads `grpc` of the agent called `agent`.
    pub(super) fn read(&mut self, value: &Value<'_, '_>, agent: &str) -> Option<Grpc> {
        let fields = value.fields(&document::GRPC)?;
        let health = fields.get("health").and_then(|v| v.boolean());
        let place = match (fields.get("host"), fields.get("listener")) {
            (Some(host), None) => host,
            (None, Some(listener)) => listener,
            (Some(_), Some(_)) => {
                value.error(
                    codes::GRPC_DOOR,
                    "both a host and a listener",
                    "keep one: a host of its own on every listener, or a listener of its own",
                );
                return None;
            }
            (None, None) => {
                value.error(
                    codes::GRPC_DOOR,
                    "neither a host nor a listener",
                    "add `host: weather.grpc.example.com`, or `listener: NAME`",
                );
                return None;
            }
        };
        let door = match fields.has("host") {
            true => self.host(&place)?,
            false => self.listener(&place)?,
        };
        self.speaks_http2(&place, &door);
        if let Some(other) = self.taken.insert(door.clone(), agent.into()) {
            place.error(
                codes::GRPC_DOOR,
                format!("agent `{other}` already has its gRPC interface here"),
                "gRPC has no path prefix: give each agent a host or a listener of its own",
            );
        }
        Some(Grpc {
            door,
            health: health.unwrap_or(false),
        })
    }

    /// Reports a door at which no gRPC client can knock.
    fn speaks_http2(&self, place: &Value<'_, '_>, door: &GrpcDoor) {
        let mut reached = self.listeners.iter().filter(|listener| match door {
            GrpcDoor::Host(_) => true,
            GrpcDoor::Listener(name) => listener.name == *name,
        });
        if !reached.any(|listener| listener.h2c || listener.tls.is_some()) {
            place.error(
                codes::GRPC_DOOR,
                "gRPC needs HTTP/2, which no listener here accepts",
                "add `h2c: true` to the listener, or `tls`",
            );
        }
    }

    fn host(&self, place: &Value<'_, '_>) -> Option<GrpcDoor> {
        let text = place.text()?;
        if let Err(fault) = split_host(text) {
            place.error(
                codes::BAD_HOST,
                format!("not a Host value: {fault}"),
                "write a host name, with a port if it is not the scheme's own: `weather.grpc.example.com:8443`",
            );
            return None;
        }
        let host: Box<str> = text.to_ascii_lowercase().into();
        let other = self.listeners.iter().find(|l| l.hosts.contains(&host));
        if let Some(other) = other {
            place.error(
                codes::GRPC_DOOR,
                format!("this is a host of listener `{}`", other.name),
                "under a gRPC host nothing but gRPC is served: choose another name, or write `listener:` instead",
            );
        }
        Some(GrpcDoor::Host(host))
    }

    fn listener(&self, place: &Value<'_, '_>) -> Option<GrpcDoor> {
        let name = place.text()?;
        if self.listeners.iter().any(|l| *l.name == *name) {
            return Some(GrpcDoor::Listener(name.into()));
        }
        let hint = match suggest(name, self.listeners.iter().map(|l| &*l.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name one of `listeners`".to_owned(),
        };
        place.error(
            codes::GRPC_DOOR,
            format!("there is no listener `{}`", clip(name)),
            hint,
        );
        None
    }
}

/// Reports an agent with a door and no interface behind it, or the other way round.
pub(super) fn reachable(fields: &Mapping<'_, '_>, agent: &Agent) {
    let Interfaces::Listed(listed) = &agent.interfaces else {
        return;
    };
    let speaks = listed.iter().any(|i| i.binding == Binding::Grpc);
    match (fields.get("grpc"), fields.get("interfaces")) {
        (Some(place), _) if !speaks => place.error(
            codes::GRPC_DOOR,
            "none of the agent's listed interfaces is gRPC",
            "add one: `{binding: GRPC, version: \"1.0\", backend: http://127.0.0.1:50051}`",
        ),
        (None, Some(place)) if speaks => place.error(
            codes::GRPC_DOOR,
            "a gRPC interface, and no place at which callers find it",
            "add `grpc: {host: weather.grpc.example.com}` or `grpc: {listener: NAME}` to the agent",
        ),
        (Some(_) | None, _) => {}
    }
}
