//! The generated corpus as values, and the issuers that it assumes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis::identity::confirmation::Shown;
use portcullis::identity::issuer::{
    Algorithm, Grant, GrantForm, GrantMark, IgnoredHeader, IssuerConfig, KeyFile, KeyOrigin,
    Profile, Typ,
};
use portcullis::identity::{Issuers, Principal, TokenFault, accept, transport};
use portcullis::identity::{fault, transport::Presented};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

/// Where callers see the gateway.
pub const BASE: &str = "https://gateway.example";
pub const AUDIENCE: &str = "https://gateway.example/a2a";
pub const ISSUER_A: &str = "https://issuer-a.example";
const ISSUER_B: &str = "https://issuer-b.example";
const ISSUER_K: &str = "https://kc.example/realms/r";
const ISSUER_E: &str = "https://login.example/11111111-0000-0000-0000-000000000000/v2.0";
const ISSUER_C: &str = "https://cognito-idp.example/pool-1";
const ISSUER_O: &str = "https://okta.example/oauth2/aus1";
const ISSUER_U: &str = "https://auth0.example/";
const ISSUER_S: &str = "https://spire.example";

#[derive(Deserialize)]
pub struct World {
    pub now: i64,
    /// Documents by issuer and variant.
    pub jwks: HashMap<String, HashMap<String, String>>,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub rules: Vec<String>,
    pub title: String,
    pub expect: Expect,
    #[serde(default)]
    pub jwks: HashMap<String, String>,
    pub policy: Option<String>,
    #[serde(default)]
    pub settings: Settings,
    /// The code that one of our own cases is refused with.
    pub no: Option<String>,
    /// The grant that one of our own cases gives.
    #[serde(default, deserialize_with = "given")]
    pub grant: Option<Option<String>>,
    pub headers: Vec<(String, String)>,
    pub path: String,
    /// The method, where there is a proof.
    pub method: Option<String>,
    /// Thumbprint of the connection's client certificate, in base64url.
    certificate: Option<String>,
    pub surface: String,
}

/// Tells a `null` that is written from a member that is not there.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Deserialize)]
pub struct Expect {
    pub outcome: String,
    pub status: u16,
    pub error: Option<String>,
}

#[derive(Deserialize, Default)]
pub struct Settings {
    ignore_header: Option<Vec<String>>,
    algorithms: Option<Vec<String>>,
    allow_missing_kid: Option<bool>,
    audiences: Option<Vec<String>>,
    clients: Option<Vec<String>>,
    leeway: Option<u64>,
    not_before: Option<i64>,
    tenants: Option<Vec<String>>,
    delegated_full: Option<bool>,
}

impl World {
    pub fn load() -> World {
        let text = include_str!("../../cases/tokens/concrete.json");
        serde_json::from_str(text).unwrap()
    }

    pub fn case(&self, id: &str) -> &Case {
        self.cases.iter().find(|case| case.id == id).unwrap()
    }

    /// Issuers A, B, K, E and C as the corpus's `reference` describes them, and O (Okta), U (Auth0)
    /// and S (SPIFFE) of our own cases, with the case's changes.
    pub fn configs(&self, case: &Case) -> Vec<Arc<IssuerConfig>> {
        let space = |path: &[&str], map| mark(path, GrantForm::SpaceString, map);
        let array = |path: &[&str], map| mark(path, GrantForm::StringArray, map);
        let usual = [("a2a:use", Grant::Agent), ("gw:full", Grant::Full)];
        let kept = |name: &str| {
            let variant = case.jwks.get(name).map_or("default", String::as_str);
            self.jwks[name][variant].as_bytes().into()
        };
        let mut a = strict("a", ISSUER_A, kept("A"));
        a.not_before = Some(1_000_000_000);
        a.grants = vec![
            space(&["scope"], &usual),
            array(&["scp"], &usual),
            array(&["permissions"], &usual),
        ];
        if case.policy.as_deref() == Some("clients-listed") {
            a.clients = vec!["client-1".into()];
        }
        let mut b = strict("b", ISSUER_B, kept("B"));
        b.algorithms = vec![Algorithm::Es256];
        b.grants = vec![space(&["scope"], &usual)];
        let mut k = strict("k", ISSUER_K, kept("K"));
        k.profile = Profile::Keycloak;
        k.algorithms = vec![Algorithm::Rs256];
        k.typ = vec![Typ::Jwt];
        k.grants = vec![
            array(
                &["realm_access", "roles"],
                &[("a2a-agent", Grant::Agent), ("gw-full", Grant::Full)],
            ),
            array(
                &["resource_access", "gateway", "roles"],
                &[("full", Grant::Full)],
            ),
        ];
        let of = |name: &str, issuer, profile| of_profile(name, issuer, profile, kept(name));
        let mut e = of("E", ISSUER_E, Profile::Entra);
        e.tenants = vec!["11111111-0000-0000-0000-000000000000".into()];
        e.max_lifetime = 7200;
        e.grants = vec![
            space(&["scp"], &[("A2A.Use", Grant::Agent)]),
            array(&["roles"], &[("Gateway.Full", Grant::Full)]),
        ];
        let mut c = of("C", ISSUER_C, Profile::Cognito);
        c.audiences = Vec::new();
        c.clients = vec!["client-c".into()];
        c.grants = vec![
            space(&["scope"], &[("gateway/a2a", Grant::Agent)]),
            array(&["cognito:groups"], &[("gw-full", Grant::Full)]),
        ];
        let mut o = of("O", ISSUER_O, Profile::Okta);
        o.grants = vec![array(&["scp"], &[("a2a.agent", Grant::Agent)])];
        let mut u = of("U", ISSUER_U, Profile::Auth0);
        let permissions = [("gateway:a2a", Grant::Agent), ("gateway:full", Grant::Full)];
        u.grants = vec![array(&["permissions"], &permissions)];
        let mut s = of("S", ISSUER_S, Profile::Spiffe);
        s.trust_domain = Some("spiffe.example".into());
        s.grants = vec![space(&["scope"], &[("a2a.agent", Grant::Agent)])];
        let mut configs = [a, b, k, e, c, o, u, s];
        for config in &mut configs {
            case.settings.apply(config);
        }
        configs.map(Arc::new).to_vec()
    }

    pub fn issuers(&self, case: &Case) -> Issuers {
        Issuers::compile(&self.configs(case)).0
    }
}

impl Settings {
    fn apply(&self, config: &mut IssuerConfig) {
        let boxed = |texts: &[String]| texts.iter().map(|t| Box::from(t.as_str())).collect();
        if let Some(names) = &self.algorithms {
            let known = |name: &String| Algorithm::NAMES.iter().find(|(n, _)| n == name).unwrap().1;
            config.algorithms = names.iter().map(known).collect();
        }
        if let Some(names) = &self.ignore_header {
            assert_eq!(names, &["jwk"]);
            config.ignore_header = vec![IgnoredHeader::Jwk];
        }
        config.allow_missing_kid = self.allow_missing_kid.unwrap_or(config.allow_missing_kid);
        config.leeway = self.leeway.unwrap_or(config.leeway);
        config.not_before = self.not_before.or(config.not_before);
        if let Some(audiences) = &self.audiences {
            config.audiences = boxed(audiences);
        }
        if let Some(clients) = &self.clients {
            config.clients = boxed(clients);
        }
        if let Some(tenants) = &self.tenants {
            config.tenants = boxed(tenants);
        }
        config.delegated_full = self.delegated_full.unwrap_or(config.delegated_full);
    }
}

pub fn strict(name: &str, issuer: &str, jwks: Box<[u8]>) -> IssuerConfig {
    IssuerConfig {
        name: name.into(),
        issuer: issuer.into(),
        audiences: vec![AUDIENCE.into()],
        keys: KeyOrigin::File(KeyFile {
            path: "jwks.json".into(),
            content: jwks,
        }),
        profile: Profile::Strict,
        algorithms: Algorithm::DEFAULT.to_vec(),
        rsa_alg: Algorithm::Rs256,
        typ: vec![Typ::AtJwt],
        max_lifetime: 3600,
        leeway: 30,
        not_before: None,
        clients: Vec::new(),
        tenants: Vec::new(),
        trust_domain: None,
        shared_keys: Vec::new(),
        delegated_full: false,
        allow_missing_kid: false,
        ignore_header: Vec::new(),
        grants: Vec::new(),
        claims: Vec::new(),
        dpop: None,
        development: false,
    }
}

/// An entry with what its profile takes by itself.
pub fn of_profile(name: &str, issuer: &str, profile: Profile, jwks: Box<[u8]>) -> IssuerConfig {
    IssuerConfig {
        profile,
        algorithms: profile.rules().algorithms.default.to_vec(),
        typ: profile.rules().typ.default.to_vec(),
        ..strict(&name.to_lowercase(), issuer, jwks)
    }
}

fn mark(path: &[&str], form: GrantForm, map: &[(&str, Grant)]) -> GrantMark {
    GrantMark {
        path: path.iter().map(|name| Box::from(*name)).collect(),
        form,
        map: map.iter().map(|(v, g)| (Box::from(*v), *g)).collect(),
    }
}

impl Case {
    /// The header fields; `None` when HTTP itself refuses them.
    pub fn headers(&self) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
        }
        Some(headers)
    }

    pub fn query(&self) -> Option<&str> {
        self.path.split_once('?').map(|(_, query)| query)
    }

    /// The token, where the case presents just one in the ordinary way.
    pub fn token(&self) -> Option<String> {
        let headers = self.headers()?;
        match transport::presented(&headers, self.query()) {
            Ok(Presented::Bearer(token) | Presented::Dpop(token)) => Some(token.to_owned()),
            Err(_) => None,
        }
    }

    /// What becomes of the request, up to its principal.
    pub fn judge(&self, issuers: &Issuers, now: i64) -> Result<Principal, TokenFault> {
        let headers = self.headers().ok_or(bad_http())?;
        let presented = transport::presented(&headers, self.query())?;
        let (Presented::Bearer(token) | Presented::Dpop(token)) = presented;
        let principal = accept(issuers, token, now).map_err(|r| r.fault)?;
        let shown = Shown {
            presented,
            certificate: self.certificate(),
            headers: &headers,
            method: self.method.as_deref().unwrap_or("POST"),
            now,
            nonces: None,
        };
        let uri = || format!("{BASE}{}", self.path);
        principal.confirmation.judge(&shown, uri)?;
        Ok(principal)
    }

    /// SHA-256 of the connection's client certificate.
    pub fn certificate(&self) -> Option<[u8; 32]> {
        let text = self.certificate.as_ref()?;
        Some(URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap())
    }
}

/// Stands for HTTP's own 400.
fn bad_http() -> TokenFault {
    by_code("authorization_not_printable")
}

pub fn by_code(code: &str) -> TokenFault {
    *fault::ALL.iter().find(|f| f.code == code).unwrap()
}
