//! `agents[].backend.identity` and `forward_token`: how an agent can tell that it is us, and
//! whether it gets the caller's token (`design.md` 11, TR-10).

use super::capture::Capture;
use super::document;
use super::secrets;
use super::skills::is_free;
use super::snapshot::{Backend, SigningKeys};
use crate::a2a::skill_rules::{Selector, SkillRules};
use crate::audit::redact::Secret;
use crate::source::tree::clip;
use crate::source::{Kind, Mapping, Value, codes};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::net::IpAddr;

/// How an agent can tell that a call comes through us.
#[derive(Debug, Clone, Default)]
pub enum BackendIdentity {
    /// It cannot.
    #[default]
    None,
    /// Each call carries a JWT that we sign for it.
    Assertion,
    /// By our client certificate.
    Mtls,
    /// Each call carries a shared secret.
    Header(Credential),
}

/// A header field with a secret that agent and gateway share.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Its name; what a caller sends under it, in any spelling, does not travel.
    pub name: HeaderName,
    /// Its value; marked sensitive, so that HTTP/2 keeps it in no table.
    pub value: Secret<HeaderValue>,
}

impl BackendIdentity {
    /// The shared secret, if there is one.
    pub fn credential(&self) -> Option<&Credential> {
        match self {
            BackendIdentity::Header(credential) => Some(credential),
            BackendIdentity::None | BackendIdentity::Assertion | BackendIdentity::Mtls => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Word {
    None,
    Assertion,
    Mtls,
}

/// Reads `backend.identity` of an agent.
///
/// `backend` are the fields of `backend`, and `backends` all origins that they lead to.
pub(super) fn read(
    agent: &Mapping<'_, '_>,
    backend: Option<&Mapping<'_, '_>>,
    backends: &[&Backend],
    capture: &Capture,
    keys: &SigningKeys,
    skills: Option<&SkillRules>,
) -> BackendIdentity {
    let Some(value) = backend.and_then(|fields| fields.get("identity")) else {
        return BackendIdentity::None;
    };
    if matches!(value.node.kind, Kind::Str(_)) {
        let words = [
            ("none", Word::None),
            ("assertion", Word::Assertion),
            ("mtls", Word::Mtls),
        ];
        return match value.word(&words) {
            Some(Word::Assertion) => {
                if keys.assertion_file().is_none() {
                    value.error(
                        codes::MISSING_FIELD,
                        "calls are to carry an assertion, and no key for it is configured",
                        "add `keys: {dir: state/keys}` to the gateway file; the key is made on the first start",
                    );
                }
                BackendIdentity::Assertion
            }
            Some(Word::Mtls) => {
                let tls = backend.and_then(|fields| fields.get("tls"));
                let client = tls.is_some_and(|tls| tls.node.get("client").is_some());
                if !client || backends.iter().any(|b| b.tls.is_none()) {
                    value.error(
                        codes::BACKEND_IDENTITY,
                        "`mtls` means our client certificate, and not every origin of the agent gets one",
                        "write `https://` for each, and `tls: {client: {cert: FILE, key: FILE}}` beside `identity`",
                    );
                }
                BackendIdentity::Mtls
            }
            Some(Word::None) | None => BackendIdentity::None,
        };
    }
    let header = value
        .fields(&document::IDENTITY)
        .and_then(|f| f.get("header"));
    let fields = header.and_then(|v| v.fields(&document::IDENTITY_HEADER));
    let Some(fields) = fields else {
        return BackendIdentity::None;
    };
    let name = fields.get("name").and_then(|v| name(&v, agent, skills));
    let secret = fields.get("value").and_then(|v| secrets::read(&v, capture));
    if let Some(insecure) = insecure(backends) {
        fields.whole().warn(
            codes::SECRET_EXPOSED,
            format!("the secret goes to `{insecure}` in plain text"),
            "write `https://` in `url`; whoever reads the wire can be the gateway",
        );
    }
    let (Some(name), Some(secret)) = (name, secret) else {
        return BackendIdentity::None;
    };
    let Ok(mut value) = HeaderValue::from_str(secret.reveal()) else {
        // The reader of secrets takes nothing that no field can carry.
        return BackendIdentity::None;
    };
    value.set_sensitive(true);
    BackendIdentity::Header(Credential {
        name,
        value: Secret::new(value),
    })
}

fn name(
    value: &Value<'_, '_>,
    agent: &Mapping<'_, '_>,
    skills: Option<&SkillRules>,
) -> Option<HeaderName> {
    let text = value.text()?;
    let name = HeaderName::try_from(text).ok();
    let names_skill = |name: &HeaderName| {
        let mut selectors = skills.map_or(&[][..], SkillRules::selectors).iter();
        selectors.any(|s| matches!(s, Selector::Header(header) if header == name))
    };
    let fault = match &name {
        None => "it is no name of a header field",
        Some(name) if name.as_str().contains('_') => "servers of the CGI kind read `_` as `-`",
        Some(name) if name.as_str().ends_with("-bin") => "in gRPC its value would be base64",
        Some(name) if names_skill(name) => "callers name a skill by it",
        Some(name) if *name == AUTHORIZATION => match agent.get("forward_token") {
            Some(forward) if forward.node.kind == Kind::Bool(true) => {
                "the caller's token is forwarded in it"
            }
            Some(_) | None => return Some(AUTHORIZATION),
        },
        Some(name) if !is_free(name.as_str()) => "it has a meaning of its own",
        Some(name) => return Some(name.clone()),
    };
    value.error(
        codes::BACKEND_IDENTITY,
        format!("`{}` cannot carry the secret: {fault}", clip(text)),
        "write the name of a field of your own, such as `X-Api-Key`, or `Authorization`",
    );
    None
}

/// Reads `forward_token` of an agent.
pub(super) fn forward_token(agent: &Mapping<'_, '_>, backend: &Backend) -> bool {
    let Some(value) = agent.get("forward_token") else {
        return false;
    };
    let forward = value.boolean().unwrap_or(false);
    if forward && let Some(insecure) = insecure(&[backend]) {
        value.warn(
            codes::SECRET_EXPOSED,
            format!("callers' tokens go to `{insecure}` in plain text"),
            "write `https://` in `backend.url`; whoever reads the wire can be any caller",
        );
    }
    forward
}

/// An origin beyond this machine that is reached without TLS.
fn insecure<'b>(backends: &[&'b Backend]) -> Option<&'b str> {
    let local = |host: &str| {
        let address: Option<IpAddr> = host.parse().ok();
        host == "localhost" || address.is_some_and(|ip| ip.is_loopback())
    };
    backends
        .iter()
        .find(|b| b.tls.is_none() && !b.host.is_empty() && !local(&b.host))
        .map(|b| &*b.authority)
}
