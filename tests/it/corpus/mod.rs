//! The token corpus over HTTP, against a live gateway with an agent behind it.
//!
//! Answers: does every case get its status and its error, and does nothing of a refused one reach
//! the agent, by the agent's own counter? Start reading at [`stand`].

mod request;
mod stand;
mod stateless;
mod steps;

use serde::Deserialize;
use std::collections::HashMap;

/// What the generator made: the issuers' key sets, client certificates, and requests.
#[derive(Deserialize)]
pub struct Corpus {
    pub now: i64,
    /// Key sets by issuer and variant.
    pub jwks: HashMap<String, HashMap<String, String>>,
    /// Client certificates by name.
    pub clients: HashMap<String, ClientPem>,
    pub cases: Vec<Case>,
}

/// A client certificate and its key in PEM.
#[derive(Deserialize)]
pub struct ClientPem {
    pub cert: String,
    pub key: String,
}

/// One request and what becomes of it.
#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub title: String,
    pub expect: Expect,
    /// Variants of key sets by issuer.
    #[serde(default)]
    pub jwks: HashMap<String, String>,
    pub policy: Option<String>,
    /// What one of our own cases changes in its issuer.
    #[serde(default)]
    pub settings: HashMap<String, serde_json::Value>,
    /// Which issuer that is, by name.
    pub issuer: Option<String>,
    #[serde(flatten)]
    pub request: Request,
}

/// A request as its bytes go.
#[derive(Deserialize, Clone)]
pub struct Request {
    pub headers: Vec<(String, String)>,
    pub path: String,
    pub surface: String,
    pub method: Option<String>,
    /// The client certificate, by its name.
    pub tls_client: Option<String>,
    /// The skill that the message names.
    pub skill: Option<String>,
    /// The versions of HTTP that can say it: `any`, or `h1`.
    pub http: Option<String>,
    pub expect: Option<Expect>,
}

#[derive(Deserialize, Clone, Debug)]
pub struct Expect {
    pub outcome: String,
    pub status: u16,
    pub error: Option<String>,
}

impl Corpus {
    pub fn load() -> Corpus {
        let text = include_str!("../../cases/tokens/concrete.json");
        serde_json::from_str(text).unwrap()
    }
}
