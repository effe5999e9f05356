//! A local issuer for end-to-end tests: good tokens, and tokens with one thing wrong.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{Claims, DevIssuer};
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

pub use portcullis::cli::dev_issuer::DevAlgorithm;
pub use portcullis::identity::issuer::Grant;

/// The `aud` value that the entry accepts.
pub const AUDIENCE: &str = "https://agents.example.test";
/// The `client_id` of its tokens.
pub const CLIENT: &str = "test-client";
/// Marker of the agent grant in `scope`.
pub const AGENT_SCOPE: &str = "a2a.agent";
/// Marker of the full grant in `scope`.
pub const FULL_SCOPE: &str = "a2a.full";

/// An issuer with one key.
pub struct Issuer {
    key: DevIssuer,
    iss: String,
}

impl Issuer {
    /// An issuer with a new key; its `iss` value is `https://issuer.example.test`.
    pub fn new(algorithm: DevAlgorithm) -> Issuer {
        Issuer::named(algorithm, "https://issuer.example.test")
    }

    /// An issuer with a new key and this `iss` value.
    pub fn named(algorithm: DevAlgorithm, iss: &str) -> Issuer {
        Issuer {
            key: DevIssuer::generate(algorithm).unwrap(),
            iss: iss.to_owned(),
        }
    }

    /// Its `iss` value.
    pub fn iss(&self) -> &str {
        &self.iss
    }

    /// The key.
    pub fn key(&self) -> &DevIssuer {
        &self.key
    }

    /// Its public keys.
    pub fn jwks(&self) -> String {
        self.key.jwks()
    }

    /// Writes [`Issuer::jwks`] to `NAME.jwks.json` in `dir` and returns the file's name.
    pub fn write_jwks(&self, dir: &Path, name: &str) -> String {
        let file = format!("{name}.jwks.json");
        std::fs::write(dir.join(&file), self.jwks()).unwrap();
        file
    }

    /// Its entry for the list under `issuers:`, indented by two spaces, with a line feed at the
    /// end. `jwks` is relative to the gateway file; `claims` is YAML, such as
    /// `{role: {path: [role], type: string}}`, or empty.
    pub fn yaml_entry(&self, name: &str, jwks: &str, claims: &str) -> String {
        let claims = match claims {
            "" => String::new(),
            claims => format!("    claims: {claims}\n"),
        };
        format!(
            "  - name: {name}\n    issuer: {}\n    audiences: [{AUDIENCE}]\n    \
             keys: {{file: {jwks}}}\n    grants:\n      - path: [scope]\n        \
             form: space_string\n        map: {{{AGENT_SCOPE}: agent, {FULL_SCOPE}: full}}\n\
             {claims}    development: true\n",
            self.iss
        )
    }

    /// The claims of a good token: ten minutes, this grant, and `extra` (a JSON object or null).
    pub fn claims(&self, sub: &str, grant: Grant, extra: Value) -> Claims {
        let scope = match grant {
            Grant::Agent => AGENT_SCOPE,
            Grant::Full => FULL_SCOPE,
        };
        Claims {
            issuer: self.iss.clone(),
            audience: AUDIENCE.to_owned(),
            subject: sub.to_owned(),
            client: CLIENT.to_owned(),
            scope: scope.to_owned(),
            lifetime: 600,
            extra: match extra {
                Value::Object(extra) => extra,
                Value::Null => Map::new(),
                other => panic!("claims are an object, not {other}"),
            },
            ..Claims::default()
        }
    }

    /// A good token by the system's clock.
    pub fn token(&self, sub: &str, grant: Grant, extra: Value) -> String {
        self.mint(&self.claims(sub, grant, extra))
    }

    /// A token with these claims, by the system's clock.
    pub fn mint(&self, claims: &Claims) -> String {
        let clock = SystemClock::new();
        let token = self.key.mint(claims, &clock, &SystemRandom).unwrap();
        note_secret(&token);
        token
    }

    /// A token for `sub` with one thing wrong.
    pub fn bad_token(&self, sub: &str, wrong: Wrong) -> String {
        let mut claims = self.claims(sub, Grant::Full, Value::Null);
        match wrong {
            Wrong::Audience => claims.audience.push('/'),
            Wrong::Expired => {
                // Far beyond every leeway.
                claims.extra.insert("iat".into(), json!(1_700_000_000));
                claims.extra.insert("exp".into(), json!(1_700_000_600));
            }
            Wrong::Signature => return flip_signature_bit(&self.mint(&claims)),
            Wrong::Issuer => claims.issuer.push('/'),
            Wrong::Key => {
                let other = DevIssuer::generate(self.key.algorithm()).unwrap();
                claims.header.insert("kid".into(), json!(self.key.kid()));
                let clock = SystemClock::new();
                let token = other.mint(&claims, &clock, &SystemRandom).unwrap();
                note_secret(&token);
                return token;
            }
            Wrong::UnknownKid => {
                claims.header.insert("kid".into(), json!("nobody"));
            }
            Wrong::Typ => {
                claims.header.insert("typ".into(), json!("JWT"));
            }
            Wrong::AlgNone => {
                claims.header.insert("alg".into(), json!("none"));
                let token = self.mint(&claims);
                return token[..=token.rfind('.').unwrap()].to_owned();
            }
            Wrong::Payload => {
                let (header, rest) = split(&self.mint(&claims));
                let (_, signature) = rest.split_once('.').map(own).unwrap();
                let mut other = self.claims("root", Grant::Full, Value::Null);
                other.lifetime = 601;
                let (_, rest) = split(&self.mint(&other));
                let (payload, _) = rest.split_once('.').map(own).unwrap();
                return format!("{header}.{payload}.{signature}");
            }
            Wrong::Lacks(claim) => claims.without.push(claim.to_owned()),
            Wrong::NoGrant => claims.scope = "openid".to_owned(),
        }
        self.mint(&claims)
    }
}

/// What is wrong with a token. All but [`Wrong::NoGrant`] (403 everywhere) are `invalid_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// An audience that differs by a slash (CL-2).
    Audience,
    /// It ended in 2023 (CL-3).
    Expired,
    /// One bit of the signature is flipped.
    Signature,
    /// An issuer that differs by a slash and has no entry (IS-1).
    Issuer,
    /// Signed by another key under this one's `kid`.
    Key,
    /// A `kid` that is in no key set (KY-1).
    UnknownKid,
    /// `typ` is `JWT`, which strict issuers refuse (HD-5).
    Typ,
    /// `alg` is `none`, with an empty signature (HD-3, FM-1).
    AlgNone,
    /// The signature is that of another payload.
    Payload,
    /// Without this claim (CL-1 to CL-9).
    Lacks(&'static str),
    /// Good, and worth nothing (GR-1).
    NoGrant,
}

impl Wrong {
    /// Everything that makes a token invalid under a strict entry.
    pub const INVALID: [Wrong; 16] = [
        Wrong::Audience,
        Wrong::Expired,
        Wrong::Signature,
        Wrong::Issuer,
        Wrong::Key,
        Wrong::UnknownKid,
        Wrong::Typ,
        Wrong::AlgNone,
        Wrong::Payload,
        Wrong::Lacks("iss"),
        Wrong::Lacks("aud"),
        Wrong::Lacks("exp"),
        Wrong::Lacks("iat"),
        Wrong::Lacks("sub"),
        Wrong::Lacks("jti"),
        Wrong::Lacks("client_id"),
    ];
}

/// The token with one bit of its signature flipped; its form stays good.
pub fn flip_signature_bit(token: &str) -> String {
    let (input, signature) = token.rsplit_once('.').unwrap();
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// Appends a token to the file that `PORTCULLIS_TEST_SECRETS` names, if any: `tests/run` then looks
/// for each of them in everything that the tests wrote.
pub fn note_secret(token: &str) {
    let Some(path) = std::env::var_os("PORTCULLIS_TEST_SECRETS") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One write, so that lines of tests that run at the same time do not mix.
    let line = format!("{token}\n");
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

fn split(token: &str) -> (String, String) {
    token.split_once('.').map(own).unwrap()
}

fn own((one, other): (&str, &str)) -> (String, String) {
    (one.to_owned(), other.to_owned())
}
