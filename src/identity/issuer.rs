//! A trusted issuer as it was configured: which tokens it may issue and what they are worth.
//!
//! Values only; `config` reads them from the gateway file, token verification takes them. Rule
//! numbers are those of the token acceptance rules.

use std::path::PathBuf;
use std::time::Duration;

/// One entry of `issuers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerConfig {
    /// The entry's own name, as policies and records say it.
    pub name: Box<str>,
    /// The `iss` value, compared byte for byte (CL-1); unique among entries (IS-3).
    pub issuer: Box<str>,
    /// Accepted audiences, compared byte for byte (CL-2). Empty only under a profile that lets an
    /// entry name its `clients` instead.
    pub audiences: Vec<Box<str>>,
    /// Where its keys come from.
    pub keys: KeyOrigin,
    /// Which relaxations hold.
    pub profile: Profile,
    /// Accepted signature algorithms (HD-2).
    pub algorithms: Vec<Algorithm>,
    /// The algorithm of RSA keys that do not name one (KY-5).
    pub rsa_alg: Algorithm,
    /// Accepted `typ` header values (HD-5).
    pub typ: Vec<Typ>,
    /// Longest lifetime in seconds (CL-6); at most 86,400.
    pub max_lifetime: u64,
    /// Tolerance for clocks that differ, in seconds (CL-13); at most 60.
    pub leeway: u64,
    /// Tokens issued before this instant are refused; seconds since the epoch (CL-12).
    pub not_before: Option<i64>,
    /// Accepted clients; empty means any (CL-9).
    pub clients: Vec<Box<str>>,
    /// Accepted tenants (IS-4); empty means that the tenant claim is not looked at, which the
    /// profile may not allow.
    pub tenants: Vec<Box<str>>,
    /// The trust domain of SPIFFE IDs (CL-7); only under [`Profile::Spiffe`].
    pub trust_domain: Option<Box<str>>,
    /// Names of entries that may hold the same keys (IS-3).
    pub shared_keys: Vec<Box<str>>,
    /// Whether a delegated token keeps the full grant (GR-8).
    pub delegated_full: bool,
    /// Whether a token without `kid` may pass (KY-11).
    pub allow_missing_kid: bool,
    /// Header members that are ignored instead of refused (HD-7).
    pub ignore_header: Vec<IgnoredHeader>,
    /// Which claims give which grant (GR-2).
    pub grants: Vec<GrantMark>,
    /// The claims that policies may use, by name.
    pub claims: Vec<ClaimDeclaration>,
    /// How its tokens are bound to keys of callers; `None` says nothing to callers about it.
    pub dpop: Option<Dpop>,
    /// Whether this is an issuer for development, to be named as such wherever it shows.
    pub development: bool,
}

impl IssuerConfig {
    /// Whether both entries say that they may hold the same keys (IS-3); one alone says nothing.
    pub fn shares_keys_with(&self, other: &IssuerConfig) -> bool {
        let names = |one: &IssuerConfig, name: &str| one.shared_keys.iter().any(|n| **n == *name);
        names(self, &other.name) && names(other, &self.name)
    }
}

/// Where an issuer's keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrigin {
    /// A file, read together with the configuration.
    File(KeyFile),
    /// The network.
    Remote(RemoteKeys),
}

impl KeyOrigin {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&KeyFile> {
        match self {
            KeyOrigin::File(file) => Some(file),
            KeyOrigin::Remote(_) => None,
        }
    }

    /// The place on the network, if it is one.
    pub fn remote(&self) -> Option<&RemoteKeys> {
        match self {
            KeyOrigin::File(_) => None,
            KeyOrigin::Remote(remote) => Some(remote),
        }
    }
}

/// A key set on the network, and the rules for fetching it (LC-1 to LC-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteKeys {
    /// Where.
    pub location: KeyLocation,
    /// Hosts, in lower case, that `jwks_uri` may have beside the issuer's own (LC-4).
    pub hosts: Vec<Box<str>>,
    /// Whether the addresses of private networks will do (LC-4).
    pub private: bool,
    /// Whether this machine's own addresses will do, and plain `http` to them (LC-1).
    pub loopback: bool,
    /// DER certificates of the only authorities to trust; `None` for the machine's.
    pub authorities: Option<Vec<Box<[u8]>>>,
    /// How often the set is fetched (LC-6).
    pub refresh: Duration,
    /// Whether a longer `max-age` may put that off.
    pub may_wait: bool,
    /// How long after the last success the set serves (LC-10).
    pub stale: Duration,
    /// For a connection (LC-2).
    pub connect: Duration,
    /// For the whole exchange (LC-2).
    pub total: Duration,
}

impl RemoteKeys {
    /// Whether both would be the same set, fetched by the same rules, at whatever times.
    pub fn same_source(&self, other: &RemoteKeys) -> bool {
        self.location == other.location
            && self.hosts == other.hosts
            && self.private == other.private
            && self.loopback == other.loopback
            && self.authorities == other.authorities
    }
}

/// Where a key set is on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// At this URL.
    Url(Box<str>),
    /// Where this issuer's metadata says.
    Discovery {
        /// The issuer, which the metadata must name byte for byte (LC-5).
        issuer: Box<str>,
        /// Where the metadata is.
        form: DiscoveryForm,
    },
}

/// Where an issuer's metadata is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryForm {
    /// OpenID Connect Discovery's place, or else, when there is none, that of RFC 8414.
    Either,
    /// OpenID Connect Discovery: below the issuer.
    OpenId,
    /// RFC 8414: between host and path.
    OAuth,
}

/// A file with a JWKS and what it held when the configuration was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The file.
    pub path: PathBuf,
    /// Its bytes. Public keys only; private members make an entry unusable (KY-9).
    pub content: Box<[u8]>,
}

/// Settings of sender-constrained tokens by DPoP (RFC 9449). Tokens that are bound are judged as
/// such without them too (SC-1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dpop {
    /// Whether proofs must have a nonce of ours (RFC 9449 section 9).
    pub nonce: bool,
}

/// A declared set of relaxations; [`super::profile`] has the table of what each takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// RFC 9068.
    Strict,
    /// Keycloak.
    Keycloak,
    /// Microsoft Entra ID, tokens of version 1.0 and 2.0.
    Entra,
    /// Auth0.
    Auth0,
    /// Okta, a custom authorization server.
    Okta,
    /// Amazon Cognito user pools.
    Cognito,
    /// JWT-SVIDs of a SPIFFE trust domain.
    Spiffe,
}

/// A signature algorithm of a token (HD-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// Ed25519 under its older name (RFC 8037).
    EdDsa,
    /// Ed25519 (RFC 9864).
    Ed25519,
}

impl Algorithm {
    /// Every algorithm by its JOSE name.
    pub const NAMES: [(&'static str, Algorithm); 10] = [
        ("ES256", Algorithm::Es256),
        ("ES384", Algorithm::Es384),
        ("RS256", Algorithm::Rs256),
        ("RS384", Algorithm::Rs384),
        ("RS512", Algorithm::Rs512),
        ("PS256", Algorithm::Ps256),
        ("PS384", Algorithm::Ps384),
        ("PS512", Algorithm::Ps512),
        ("EdDSA", Algorithm::EdDsa),
        ("Ed25519", Algorithm::Ed25519),
    ];

    /// Accepted when an entry lists none (HD-2).
    pub const DEFAULT: [Algorithm; 4] = [
        Algorithm::Es256,
        Algorithm::Rs256,
        Algorithm::EdDsa,
        Algorithm::Ed25519,
    ];

    /// Whether it needs an RSA key.
    pub fn is_rsa(self) -> bool {
        match self {
            Algorithm::Rs256
            | Algorithm::Rs384
            | Algorithm::Rs512
            | Algorithm::Ps256
            | Algorithm::Ps384
            | Algorithm::Ps512 => true,
            Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa | Algorithm::Ed25519 => false,
        }
    }
}

/// An accepted `typ` header (HD-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typ {
    /// `at+jwt` or `application/at+jwt`.
    AtJwt,
    /// `JWT`.
    Jwt,
    /// `JOSE`.
    Jose,
    /// No `typ` at all.
    Absent,
}

/// A header member that an issuer always sends and that may be ignored (HD-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredHeader {
    /// `jwk`.
    Jwk,
    /// `jku`.
    Jku,
    /// `x5u`.
    X5u,
    /// `x5c`.
    X5c,
}

/// The reach of a token (GR-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grant {
    /// The A2A surface.
    Agent,
    /// That, the declared rest of the backend, and the admin surface.
    Full,
}

/// A claim whose values give a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantMark {
    /// Names from the payload's top down; a dot in a name is literal (GR-6).
    pub path: Vec<Box<str>>,
    /// How the claim's value is read (GR-5).
    pub form: GrantForm,
    /// Values, compared byte for byte (GR-7), and what each is worth.
    pub map: Vec<(Box<str>, Grant)>,
}

/// How a claim with grants is read (GR-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantForm {
    /// A string, split on U+0020 only.
    SpaceString,
    /// An array of strings, not split further.
    StringArray,
    /// An array, or a string that counts as one element.
    Either,
}

/// A claim that policies may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDeclaration {
    /// Its name in policies.
    pub name: Box<str>,
    /// Names from the payload's top down.
    pub path: Vec<Box<str>>,
    /// Its type; a value of another type is no value.
    pub kind: ClaimKind,
}

/// The type of a declared claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// A string.
    String,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// An array of strings.
    StringArray,
    /// A string, split on U+0020 only.
    SpaceString,
}

/// Names that policies know without a declaration.
pub const RESERVED_CLAIMS: [&str; 7] = [
    "sub",
    "client_id",
    "actor_sub",
    "scopes",
    "proof",
    "delegated",
    "content",
];
