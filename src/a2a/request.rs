//! One request as it came, and what the reader of its binding made of it.

use super::call::Call;
use super::head::Head;
use super::operation::Version;
use bytes::Bytes;
use http::{HeaderMap, Method};

/// A request to an interface of an agent, its body read whole.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The canonical path below the interface's public path: empty, or starts with `/`, without a
    /// trailing one. JSON-RPC has none; REST has `/message:send`; gRPC `/package.Service/Method`.
    pub path: &'a str,
    /// The raw query, without its question mark.
    pub query: Option<&'a str>,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a Bytes,
}

/// A request that is one clear call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What it asks for.
    pub call: Call,
    /// The version to declare to the agent: exactly one normalized header goes out with a 1.0
    /// spelling, and with a 0.3 spelling only when the caller declared it (`design.md` section 4).
    pub a2a_version: Option<Version>,
    /// The extensions that the caller declares in its header, each once.
    pub extensions: Vec<Box<str>>,
    /// What follows the interface's path on the backend: the canonical path with its query, built
    /// from what was understood. Empty in JSON-RPC.
    pub path: Box<str>,
    /// The body to forward in the place of the caller's, when names in it had to be respelled.
    pub body: Option<Bytes>,
}

impl Reading {
    /// Of a call whose head said `head`.
    pub(super) fn new(call: Call, head: &Head, path: Box<str>) -> Reading {
        let a2a_version = match (head.version, call.dialect.version) {
            (Some(version), _) => Some(version),
            (None, Version::V1_0) => Some(Version::V1_0),
            (None, Version::V0_3) => None,
        };
        Reading {
            call,
            a2a_version,
            extensions: head.extensions.clone(),
            path,
            body: None,
        }
    }
}
