//! What each profile takes: one row per product, one column per rule.
//!
//! A profile is a declared set of relaxations of RFC 9068 and of demands that tell the product's
//! access tokens from its other tokens. Everything that the table does not relax is judged alike
//! for all. Values only; the judgement is in `claims` and `header`.
//!
//! | Profile | `typ` (HD-5) | `aud` (CL-2) | `sub` (CL-7) | Token id (CL-8) | Client (CL-9) | Kind (CL-10) | Tenant (IS-4) |
//! |---|---|---|---|---|---|---|---|
//! | strict | `at+jwt` | always | text | `jti`, always | `client_id`, always | | `tid`, where listed |
//! | keycloak | `JWT`, or as listed | always | text | `jti` | `client_id` or `azp` | `typ` is `Bearer`, or `DPoP` with `cnf` | `tid`, where listed |
//! | entra | `JWT` | always | text | `uti` or `jti` | `azp` (v2) or `appid` (v1) | `ver` is `2.0` with `azp`, or `1.0` with `appid`; `idtyp` absent, `app` or `user` | `tid`, always, and part of `iss` |
//! | auth0 | `JWT`; `at+jwt` may be listed | always | text | `jti` | `client_id` or `azp` | `gty: client-credentials` and a `sub` that ends in `@clients` only together with the client's own name | `org_id`, where listed |
//! | okta | none; `JWT`, `at+jwt` may be listed | always | text | `jti`, always | `cid` | `ver` is 1, `jti` begins with `AT.` | `tid`, where listed |
//! | cognito | none; `JWT` may be listed | or `clients` | text | `jti` | `client_id` | `token_use` is `access` | `tid`, where listed |
//! | spiffe | `JWT`, `JOSE` or none | always | SPIFFE ID in `trust_domain` | `jti` | none | | none: the trust domain |
//!
//! `iat` (CL-5) may be absent under keycloak and spiffe only. Other header members (HD-10) are
//! ignored, but under spiffe, which takes `alg`, `kid` and `typ` alone and no Ed25519.

use super::issuer::{Algorithm, Profile, Typ};

/// One row of the table.
#[derive(Debug, PartialEq)]
pub struct Rules {
    /// Its name in configuration.
    pub name: &'static str,
    /// Accepted header `typ` values (HD-5).
    pub typ: Choice<Typ>,
    /// Accepted signature algorithms (HD-2).
    pub algorithms: Choice<Algorithm>,
    /// The only header members, where others are refused (HD-10).
    pub header: Option<&'static [&'static str]>,
    /// Whether `iat` must be there (CL-5).
    pub issued_at: bool,
    /// Whether an entry may name its clients instead of audiences (CL-2).
    pub clients_for_audience: bool,
    /// What `sub` is (CL-7).
    pub subject: Subject,
    /// Where the token's own name stands (CL-8).
    pub token_id: Named,
    /// Where the client stands (CL-9).
    pub client: Named,
    /// What marks an access token (CL-10).
    pub kind: &'static [Marker],
    /// The tenant claim (IS-4, CL-11); `None` where entries can have no `tenants`.
    pub tenant: Option<Tenant>,
    /// Where the scopes stand, for the name `scopes` in policies.
    pub scopes: Scopes,
}

/// Values of which an entry may choose.
#[derive(Debug, PartialEq)]
pub struct Choice<T: 'static> {
    /// When the entry lists none.
    pub default: &'static [T],
    /// What it may list; empty: it has no choice.
    pub may_list: &'static [T],
}

/// What `sub` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// 1 to 255 characters.
    Text,
    /// The same, and a SPIFFE ID of the entry's trust domain.
    SpiffeId,
}

/// A name that stands in one of several claims.
#[derive(Debug, PartialEq)]
pub struct Named {
    /// The claims; the first that is there gives the name.
    pub claims: &'static [&'static str],
    /// Whether one of them must be there.
    pub required: bool,
}

/// What a token of the right kind says (CL-10).
#[derive(Debug, PartialEq)]
pub enum Marker {
    /// The claim is one of these strings.
    Text {
        /// The claim.
        claim: &'static str,
        /// Its values.
        values: &'static [&'static str],
        /// Values that only count beside `cnf`.
        with_cnf: &'static [&'static str],
        /// Whether it may be absent.
        optional: bool,
    },
    /// The claim is this number, as it stands in JSON.
    Number {
        /// The claim.
        claim: &'static str,
        /// Its digits.
        value: &'static str,
    },
    /// The claim begins so.
    Prefix {
        /// The claim.
        claim: &'static str,
        /// Its beginning.
        prefix: &'static str,
    },
    /// A token with this value has that other claim too.
    Pair {
        /// The claim.
        claim: &'static str,
        /// The value that asks for the other.
        value: &'static str,
        /// The other claim.
        other: &'static str,
    },
    /// A client that acts for itself is its own subject: `CLIENT@clients`. The grant type
    /// `client-credentials` in this claim, a string or an array of strings, says so too, and
    /// neither stands without the other's truth.
    ClientSubject {
        /// The claim of the grant type.
        claim: &'static str,
        /// The grant type of such a client.
        grant_type: &'static str,
        /// The end of its subject.
        suffix: &'static str,
    },
}

/// The claim that names a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant {
    /// The claim.
    pub claim: &'static str,
    /// Whether entries must list `tenants`, each of which is a segment of the `iss` path.
    pub in_issuer: bool,
}

/// The claim with the scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scopes {
    /// A string, split at spaces.
    Words(&'static str),
    /// An array of strings.
    List(&'static str),
}

const EVERY_TYP: &[Typ] = &[Typ::AtJwt, Typ::Jwt, Typ::Jose, Typ::Absent];
const EVERY_ALGORITHM: &[Algorithm] = &[
    Algorithm::Es256,
    Algorithm::Es384,
    Algorithm::Rs256,
    Algorithm::Rs384,
    Algorithm::Rs512,
    Algorithm::Ps256,
    Algorithm::Ps384,
    Algorithm::Ps512,
    Algorithm::EdDsa,
    Algorithm::Ed25519,
];
const ANY_ALGORITHM: Choice<Algorithm> = Choice {
    default: &Algorithm::DEFAULT,
    may_list: EVERY_ALGORITHM,
};
const RS256: Choice<Algorithm> = Choice {
    default: &[Algorithm::Rs256],
    may_list: EVERY_ALGORITHM,
};
const TID: Option<Tenant> = Some(Tenant {
    claim: "tid",
    in_issuer: false,
});

/// RFC 9068; the other rows say only where they differ.
const STRICT: Rules = Rules {
    name: "strict",
    typ: Choice {
        default: &[Typ::AtJwt],
        may_list: &[],
    },
    algorithms: ANY_ALGORITHM,
    header: None,
    issued_at: true,
    clients_for_audience: false,
    subject: Subject::Text,
    token_id: Named {
        claims: &["jti"],
        required: true,
    },
    client: Named {
        claims: &["client_id"],
        required: true,
    },
    kind: &[],
    tenant: TID,
    scopes: Scopes::Words("scope"),
};

/// For products whose documentation promises no `jti`.
const TOKEN_ID: Named = Named {
    claims: &["jti"],
    required: false,
};

static TABLE: [Rules; 7] = [
    STRICT,
    Rules {
        name: "keycloak",
        typ: Choice {
            default: &[Typ::Jwt],
            may_list: EVERY_TYP,
        },
        issued_at: false,
        token_id: TOKEN_ID,
        client: Named {
            claims: &["client_id", "azp"],
            required: true,
        },
        kind: &[Marker::Text {
            claim: "typ",
            values: &["Bearer"],
            with_cnf: &["DPoP"],
            optional: false,
        }],
        ..STRICT
    },
    // https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
    Rules {
        name: "entra",
        typ: Choice {
            default: &[Typ::Jwt],
            may_list: &[],
        },
        algorithms: RS256,
        token_id: Named {
            claims: &["uti", "jti"],
            required: false,
        },
        client: Named {
            claims: &["azp", "appid"],
            required: true,
        },
        kind: &[
            Marker::Text {
                claim: "ver",
                values: &["1.0", "2.0"],
                with_cnf: &[],
                optional: false,
            },
            // ID tokens have the same versions and neither claim.
            Marker::Pair {
                claim: "ver",
                value: "2.0",
                other: "azp",
            },
            Marker::Pair {
                claim: "ver",
                value: "1.0",
                other: "appid",
            },
            Marker::Text {
                claim: "idtyp",
                values: &["app", "user"],
                with_cnf: &[],
                optional: true,
            },
        ],
        tenant: Some(Tenant {
            claim: "tid",
            in_issuer: true,
        }),
        scopes: Scopes::Words("scp"),
        ..STRICT
    },
    // https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles
    Rules {
        name: "auth0",
        typ: Choice {
            default: &[Typ::Jwt],
            may_list: &[Typ::Jwt, Typ::AtJwt],
        },
        algorithms: RS256,
        token_id: TOKEN_ID,
        client: Named {
            claims: &["client_id", "azp"],
            required: true,
        },
        kind: &[Marker::ClientSubject {
            claim: "gty",
            grant_type: "client-credentials",
            suffix: "@clients",
        }],
        tenant: Some(Tenant {
            claim: "org_id",
            in_issuer: false,
        }),
        ..STRICT
    },
    // https://developer.okta.com/docs/api/openapi/okta-oauth/guides/overview/
    Rules {
        name: "okta",
        typ: Choice {
            default: &[Typ::Absent],
            may_list: &[Typ::Absent, Typ::Jwt, Typ::AtJwt],
        },
        algorithms: RS256,
        client: Named {
            claims: &["cid"],
            required: true,
        },
        kind: &[
            Marker::Number {
                claim: "ver",
                value: "1",
            },
            // ID tokens begin with `ID.`.
            Marker::Prefix {
                claim: "jti",
                prefix: "AT.",
            },
        ],
        scopes: Scopes::List("scp"),
        ..STRICT
    },
    // https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html
    Rules {
        name: "cognito",
        typ: Choice {
            default: &[Typ::Absent],
            may_list: &[Typ::Absent, Typ::Jwt],
        },
        algorithms: RS256,
        clients_for_audience: true,
        token_id: TOKEN_ID,
        kind: &[Marker::Text {
            claim: "token_use",
            values: &["access"],
            with_cnf: &[],
            optional: false,
        }],
        ..STRICT
    },
    // https://github.com/spiffe/spiffe/blob/main/standards/JWT-SVID.md
    Rules {
        name: "spiffe",
        typ: Choice {
            default: &[Typ::Jwt, Typ::Jose, Typ::Absent],
            may_list: &[Typ::Jwt, Typ::Jose, Typ::Absent],
        },
        algorithms: Choice {
            default: &[Algorithm::Es256, Algorithm::Rs256],
            may_list: &[
                Algorithm::Es256,
                Algorithm::Es384,
                Algorithm::Rs256,
                Algorithm::Rs384,
                Algorithm::Rs512,
                Algorithm::Ps256,
                Algorithm::Ps384,
                Algorithm::Ps512,
            ],
        },
        header: Some(&["alg", "kid", "typ"]),
        issued_at: false,
        subject: Subject::SpiffeId,
        token_id: TOKEN_ID,
        client: Named {
            claims: &[],
            required: false,
        },
        tenant: None,
        ..STRICT
    },
];

impl Profile {
    /// Every profile, in the order of the table.
    pub const ALL: [Profile; 7] = [
        Profile::Strict,
        Profile::Keycloak,
        Profile::Entra,
        Profile::Auth0,
        Profile::Okta,
        Profile::Cognito,
        Profile::Spiffe,
    ];

    /// Its row.
    pub fn rules(self) -> &'static Rules {
        let [strict, keycloak, entra, auth0, okta, cognito, spiffe] = &TABLE;
        match self {
            Profile::Strict => strict,
            Profile::Keycloak => keycloak,
            Profile::Entra => entra,
            Profile::Auth0 => auth0,
            Profile::Okta => okta,
            Profile::Cognito => cognito,
            Profile::Spiffe => spiffe,
        }
    }

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.rules().name == name)
    }
}

/// Whether the tenant is a whole segment of the issuer's path, which is what ties the two (IS-4).
pub fn is_in_issuer(tenant: &str, issuer: &str) -> bool {
    let path = issuer.split_once("://").map_or("", |(_, rest)| rest);
    !tenant.is_empty() && path.split('/').skip(1).any(|segment| segment == tenant)
}
