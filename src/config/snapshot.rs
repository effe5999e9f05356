//! The compiled, immutable configuration of one generation.

mod own;

pub use crate::a2a::card::Interface;

pub use own::{Audit, CheckpointCopies, Durability, SigningKeys, SourceRole, SourceText};

pub use super::backend_identity::{BackendIdentity, Credential};
use super::route::Routes;
use super::telemetry::Telemetry;
use crate::a2a::skill_rules::SkillRules;
use crate::audit::redact::Secret;
use crate::audit::redact::hidden::Redact;
use crate::identity::Denial;
use crate::identity::issuer::{Algorithm, IssuerConfig};
use crate::identity::keys::KeySet;
use crate::identity::resource::Resources;
use crate::policy::PolicySet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One compiled configuration. A request takes one at its start and keeps it to its end.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts from 1 at start, plus one per successful reload.
    pub generation: u64,
    /// Hex SHA-256 over the gateway file and every policy file, in load order.
    pub digest: Box<str>,
    /// Listeners; their addresses need a restart.
    pub listeners: Vec<Arc<Listener>>,
    /// The admin listener.
    pub admin: Admin,
    /// Agents, in file order; [`Agent::index`] is the position here.
    pub agents: Vec<Arc<Agent>>,
    /// The same agents by their routes.
    pub routes: Routes,
    /// Trusted issuers, in file order.
    pub issuers: Vec<Arc<IssuerConfig>>,
    /// How they are asked about tokens, in the same order; `None`: not at all.
    pub introspection: Vec<Option<Arc<Introspection>>>,
    /// Policy files, in load order.
    pub policies: Vec<PolicyFile>,
    /// The texts of which [`Snapshot::digest`] is the digest, in this order.
    pub sources: Vec<SourceText>,
    /// The rules of the policy files, compiled; without a policy file it denies everything.
    pub policy: Arc<PolicySet>,
    /// Policies that must be there: one that vanishes is an error.
    pub policy_names: Vec<Box<str>>,
    /// What is revoked before it expires.
    pub revocation: Revocation,
    /// The settings of the ownership store.
    pub ownership: Ownership,
    /// The journal's settings.
    pub audit: Audit,
    /// Where our own private keys are.
    pub keys: SigningKeys,
    /// Where records are shipped to.
    pub telemetry: Telemetry,
    /// What records hide.
    pub redact: Redact,
}

/// Whose signature an agent's card has.
#[derive(Debug, Clone)]
pub struct Verify {
    /// Public keys whose signatures count.
    pub keys: Arc<KeySet>,
    /// URLs of further key sets, by which signatures may name them (`jku`).
    pub key_sets: Vec<Box<str>>,
    /// Whether a card without a signature that counts is not published.
    pub required: bool,
    /// Algorithms that count.
    pub algorithms: Vec<Algorithm>,
}

/// A policy file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: Box<str>,
}

/// A public listener.
#[derive(Debug)]
pub struct Listener {
    /// Its configured name.
    pub name: Box<str>,
    /// Where it listens.
    pub bind: SocketAddr,
    /// The only source of URLs in cards; no trailing slash.
    pub public_url: Box<str>,
    /// Accepted `Host` values, lower case, with a port where it is not the scheme's own; other
    /// values get 421. Loopback names with any port are accepted when `bind` is loopback.
    pub hosts: Vec<Box<str>>,
    /// Whether `plaintext: i_understand` was given.
    pub plaintext: bool,
    /// How connections are secured; `None` is plaintext.
    pub tls: Option<Arc<ListenerTls>>,
    /// Whether plaintext callers may speak HTTP/2 by prior knowledge.
    pub h2c: bool,
    /// Where load balancers ask whether we are ready; canonical.
    pub health_path: Option<Box<str>>,
    /// Audiences of ours on its origin, where callers learn who gives them tokens.
    pub resources: Resources,
    /// Origins whose pages may call from browsers, exactly as browsers send them.
    pub cors: Vec<Box<str>>,
}

/// TLS of a listener.
#[derive(Debug)]
pub struct ListenerTls {
    /// Who we are, and whose client certificates are verified; offers HTTP/2 and HTTP/1.1.
    pub config: Arc<rustls::ServerConfig>,
    /// Whether client certificates are asked for.
    pub client_ca: Option<ClientCa>,
}

/// Whether callers must have a client certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCa {
    /// Who has one must have a good one.
    Optional,
    /// Nobody else gets as far as a request.
    Required,
}

/// The admin listener.
#[derive(Debug)]
pub struct Admin {
    /// Where it listens; loopback by default.
    pub bind: SocketAddr,
    /// The Unix socket of the admin API; `None`: there is none.
    pub socket: Option<PathBuf>,
}

/// An agent we guard.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Position in [`Snapshot::agents`].
    pub index: usize,
    /// Its configured name.
    pub name: Box<str>,
    /// Canonical public path prefix: empty for `/`, else starts with `/` and has no trailing one.
    pub route: Box<str>,
    /// Whether its card is public.
    pub publish: bool,
    /// Where it really is.
    pub backend: Backend,
    /// Other origins at which it has interfaces; [`Interface::backend`] counts on from these.
    pub other_backends: Vec<Backend>,
    /// Where its interfaces come from.
    pub interfaces: Interfaces,
    /// Where callers find its gRPC interface, if it offers one.
    pub grpc: Option<Grpc>,
    /// Declared skills.
    pub skills: Vec<Box<str>>,
    /// Where calls name their skill; `None` without `skill_from`.
    pub skill_rules: Option<Arc<SkillRules>>,
    /// The paths that stand for skills.
    pub skill_paths: Vec<SkillPath>,
    /// The skill of a call that names none.
    pub skill_default: Option<Box<str>>,
    /// For which of its tenants calls are made.
    pub tenant: Tenant,
    /// Whether messages get our stamp.
    pub stamp: bool,
    /// How it can tell that a call comes through us.
    pub identity: BackendIdentity,
    /// Whether the caller's token goes on to [`Agent::backend`].
    pub forward_token: bool,
    /// Whether callers may bring context ids of their own.
    pub contexts: Contexts,
    /// Paths of the `backend` surface.
    pub backend_paths: Vec<BackendPath>,
    /// Whether a token is good for one call only (RV-4).
    pub one_time: bool,
    /// HTTP status of a policy refusal in JSON-RPC: 403, or 200 for clients that must see the body.
    pub deny_status: u16,
    /// Whether malformed replies are withheld.
    pub reply_guard: bool,
    /// Other origins by which the agent names itself in its card: scheme and authority, lower
    /// case, without the scheme's own port.
    pub also_origins: Vec<Box<str>>,
    /// Whose signature its card has; `None`: signatures are not looked at.
    pub verify: Option<Verify>,
    /// Whether its published card is signed with our key.
    pub sign: bool,
    /// The skills that its public card shows; `None`: all that policy could allow anybody.
    pub public_skills: Option<Vec<Box<str>>>,
    /// Limits.
    pub limits: Limits,
}

impl Agent {
    /// All its backends, in the order of [`Interface::backend`].
    pub fn backends(&self) -> impl Iterator<Item = &Backend> {
        std::iter::once(&self.backend).chain(&self.other_backends)
    }

    /// The skill for which the path of an interface stands, if it stands for one.
    pub fn skill_of(&self, interface: &Interface) -> Option<&str> {
        let mut paths = self.skill_paths.iter();
        let found = paths.find(|candidate| candidate.path == interface.public_path)?;
        if !interface.binding.has_path() {
            return None;
        }
        Some(&found.skill)
    }

    /// The backend of an interface: 0 is [`Agent::backend`].
    pub fn backend_of(&self, index: usize) -> &Backend {
        self.backends().nth(index).unwrap_or(&self.backend)
    }
}

/// For which tenant of an agent a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenant {
    /// The agent has none: a call that names one is not found.
    None,
    /// Always this one.
    Fixed(Box<str>),
    /// The one that the caller's token names.
    Claim {
        /// The declared name of the claim.
        name: Box<str>,
        /// Its position among the claims of each issuer, in the order of [`Snapshot::issuers`].
        positions: Vec<Option<usize>>,
    },
}

/// A public path below an agent's route that stands for one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPath {
    /// The path of one of the agent's interfaces.
    pub path: Box<str>,
    /// The skill.
    pub skill: Box<str>,
}

/// Where an agent really is. Nothing in a card changes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backend {
    /// Host name or IP literal, without brackets.
    pub host: Box<str>,
    /// TCP port.
    pub port: u16,
    /// `host:port` as it goes into `Host`, bracketed for IPv6, port left out when it is 80.
    pub authority: Box<str>,
    /// Base path, byte for byte as configured: empty, or starts with `/` and has no trailing one.
    pub base_path: Box<str>,
    /// Paths to fetch the card from, absolute on the backend's origin, in order; the next is tried
    /// on 404 and 405 only.
    pub card_paths: Vec<Box<str>>,
    /// The HTTP version of its card and of calls other than gRPC's, which are always HTTP/2;
    /// `None`: HTTP/1.1, and over TLS what is agreed on.
    pub http: Option<BackendHttp>,
    /// How connections are secured; `None` is plaintext.
    pub tls: Option<Arc<BackendTls>>,
}

/// A version of HTTP towards an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendHttp {
    /// HTTP/1.1.
    H1,
    /// HTTP/2; in plaintext by prior knowledge.
    H2,
}

/// Which version of HTTP is spoken on a connection to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    H1,
    /// HTTP/2; in plaintext by prior knowledge (RFC 9113 section 3.3).
    H2,
    /// What TLS agrees on.
    Agreed,
}

impl Speaks {
    /// What TLS offers (ALPN, RFC 7301), the best first.
    pub fn protocols(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Speaks::H1 => &[b"http/1.1"],
            Speaks::H2 => &[b"h2"],
            Speaks::Agreed => &[b"h2", b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

impl Backend {
    /// The HTTP version of everything that needs no particular one: calls and cards alike.
    pub fn speaks(&self) -> Speaks {
        match (self.http, &self.tls) {
            (Some(BackendHttp::H1), _) | (None, None) => Speaks::H1,
            (Some(BackendHttp::H2), _) => Speaks::H2,
            (None, Some(_)) => Speaks::Agreed,
        }
    }
}

/// TLS towards an agent.
#[derive(Debug)]
pub struct BackendTls {
    /// The name that its certificate must be for.
    pub server_name: Box<str>,
    /// Whom we trust and who we are; without ALPN.
    pub config: Arc<rustls::ClientConfig>,
    /// Differs where anything of this differs, so that no connection is shared across.
    pub key: u64,
}

impl PartialEq for BackendTls {
    fn eq(&self, other: &BackendTls) -> bool {
        self.key == other.key
    }
}

impl Eq for BackendTls {}

/// Where an agent's interfaces come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interfaces {
    /// From its card, those on the backend's own origin and below its base path.
    Auto,
    /// Listed by the operator.
    Listed(Vec<Interface>),
}

/// How an agent's gRPC interface is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grpc {
    /// Where callers find it.
    pub door: GrpcDoor,
    /// Whether `grpc.health.v1` is answered, by us.
    pub health: bool,
}

/// Where callers find a gRPC interface: gRPC has no path prefix. No two agents have the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrpcDoor {
    /// Under this `Host` value, on every listener: lower case, with a port where it is not the
    /// scheme's own. Nothing but gRPC is served under it.
    Host(Box<str>),
    /// On the listener of this name, under any of its hosts.
    Listener(Box<str>),
}

/// Whether a caller may bring its own context id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contexts {
    /// An unknown id becomes the caller's.
    Claimable,
    /// Only ids that the agent gave out.
    Issued,
}

/// A declared path of the backend that is no A2A interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendPath {
    /// Path on the backend's origin; public path is route + this path.
    pub path: Box<str>,
    /// Upper-case methods.
    pub methods: Vec<Box<str>>,
}

/// Limits of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body in bytes.
    pub body: usize,
    /// Longest silence of a stream.
    pub idle_stream: Duration,
    /// Longest life of a stream.
    pub max_stream: Duration,
    /// Longest wait for a unary reply.
    pub unary_timeout: Duration,
    /// Longest wait for a TCP connection.
    pub connect_timeout: Duration,
    /// Longest time for which a write to the agent may be stuck.
    pub send_timeout: Duration,
}

/// How an issuer is asked about its tokens (RV-3).
#[derive(Debug)]
pub struct Introspection {
    /// Its introspection endpoint, an `https` URL.
    pub url: Box<str>,
    /// What the issuer calls us; signed answers name it as their audience.
    pub client_id: Box<str>,
    /// How we show who we are; `None`: by our certificate.
    pub secret: Option<Secret<Box<str>>>,
    /// Whether only signed answers count (RFC 9701).
    pub signed: bool,
    /// How long a positive answer may be relied on; at most 30 s.
    pub cache: Duration,
    /// Whom we trust, and who we are.
    pub tls: Arc<rustls::ClientConfig>,
}

/// What is revoked before it expires (RV-1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revocation {
    /// The entries of the configured files.
    pub listed: Arc<[Denial]>,
    /// Where the entries that operators add are kept; `None`: none can be added. Changing it needs
    /// a restart.
    pub state: Option<PathBuf>,
}

/// The settings of the ownership store; changing them needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// How long an id stays its caller's after its last use.
    pub ttl: Duration,
}
