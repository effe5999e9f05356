//! `portcullis token explain-issuer`: what there is at an issuer, by the rules of the gateway, and
//! the entry that would trust it.

use super::inspect::fetched;
use super::{Trouble, quoted};
use crate::cli::exit;
use crate::config::document;
use crate::identity::issuer::{Algorithm, DiscoveryForm, KeyLocation, RemoteKeys};
use crate::identity::keys::{EntryNote, Key, KeySet};
use crate::pipeline::issuer_keys::{FetchedKeys, KeyFetchFault};
use crate::source::shape::Shape;
use reqwest::Url;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Which issuer.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The exact `iss` value of its tokens
    #[arg(value_name = "URL")]
    issuer: String,
    /// Where its metadata is: OpenID's place, RFC 8414's, or the second if there is no first
    #[arg(long, value_name = "FORM", default_value = "either", value_parser = ["either", "openid", "oauth"])]
    discovery: String,
    /// The `aud` value for the printed entry
    #[arg(long, value_name = "URL", default_value = "https://gateway.test")]
    audience: String,
    /// Another host that its key set may be at; may be repeated
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// PEM file with the only authorities to trust; default: the machine's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Take addresses of private networks
    #[arg(long)]
    private: bool,
    /// Take addresses of this machine, and plain http to them
    #[arg(long)]
    loopback: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    let remote = remote(arguments)?;
    let found = Found::of(arguments, fetched(&remote));
    match arguments.json {
        true => println!("{:#}", found.as_json()),
        false => print!("{}", found.as_text()),
    }
    Ok(match found.keys.is_empty() {
        true => exit::NO,
        false => exit::YES,
    })
}

fn remote(arguments: &Arguments) -> Result<RemoteKeys, Trouble> {
    let form = match &*arguments.discovery {
        "openid" => DiscoveryForm::OpenId,
        "oauth" => DiscoveryForm::OAuth,
        _ => DiscoveryForm::Either,
    };
    if Url::parse(&arguments.issuer).is_err() {
        return Err(Trouble::usage(
            "the issuer is no URL",
            "write the whole `iss` value of its tokens, such as https://idp.example.com/realms/agents",
        ));
    }
    let authorities = match &arguments.ca {
        None => None,
        Some(path) => {
            let pem = std::fs::read(path)
                .map_err(|error| Trouble::file(path, error, "name a PEM file"))?;
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
            let read = read.map_err(|error| Trouble::file(path, error, "name a PEM file"))?;
            Some(read.iter().map(|der| Box::from(&**der)).collect())
        }
    };
    let hosts = arguments.hosts.iter();
    Ok(RemoteKeys {
        location: KeyLocation::Discovery {
            issuer: arguments.issuer.as_str().into(),
            form,
        },
        hosts: hosts.map(|host| host.to_ascii_lowercase().into()).collect(),
        private: arguments.private,
        loopback: arguments.loopback,
        authorities,
        refresh: Duration::from_secs(300),
        may_wait: true,
        stale: Duration::from_secs(3600),
        connect: Duration::from_secs(3),
        total: Duration::from_secs(5),
    })
}

/// What there is.
struct Found<'a> {
    arguments: &'a Arguments,
    /// Where the key set is.
    url: Option<Box<str>>,
    keys: Vec<Key>,
    unusable: Vec<EntryNote>,
    fault: Option<KeyFetchFault>,
    product: &'static Product,
}

/// Whose tokens have which profile, as far as the issuer's name shows it.
struct Product {
    profile: &'static str,
    name: &'static str,
    /// Whether an issuer is of this product; both in lower case.
    is: fn(host: &str, path: &str) -> bool,
}

const PRODUCTS: [Product; 6] = [
    Product {
        profile: "entra",
        name: "Microsoft Entra ID",
        is: |host, _| host == "login.microsoftonline.com" || host == "sts.windows.net",
    },
    Product {
        profile: "auth0",
        name: "Auth0",
        is: |host, _| host.ends_with(".auth0.com"),
    },
    Product {
        profile: "okta",
        name: "Okta",
        is: |host, path| {
            let own = host.ends_with(".okta.com") || host.ends_with(".oktapreview.com");
            own || path.starts_with("/oauth2/aus")
        },
    },
    Product {
        profile: "cognito",
        name: "Amazon Cognito",
        is: |host, _| host.starts_with("cognito-idp.") && host.contains(".amazonaws.com"),
    },
    Product {
        profile: "keycloak",
        name: "Keycloak",
        is: |_, path| path.starts_with("/realms/") || path.starts_with("/auth/realms/"),
    },
    Product {
        profile: "strict",
        name: "RFC 9068",
        is: |_, _| true,
    },
];

impl<'a> Found<'a> {
    fn of(arguments: &'a Arguments, fetched: Result<FetchedKeys, KeyFetchFault>) -> Found<'a> {
        let url = fetched.as_ref().ok().map(|fetched| fetched.url.clone());
        let read = fetched.and_then(|fetched| {
            KeySet::parse(&fetched.body, Algorithm::Rs256).map_err(KeyFetchFault::KeySet)
        });
        let (keys, unusable, fault) = match read {
            Ok((set, unusable)) => (set.keys().to_vec(), unusable, None),
            Err(fault) => (Vec::new(), Vec::new(), Some(fault)),
        };
        let place = Url::parse(&arguments.issuer).ok();
        let host = place.as_ref().and_then(Url::host_str).unwrap_or_default();
        let path = place.as_ref().map_or("", Url::path);
        // The last one fits everybody.
        let mut fitting = PRODUCTS.iter().filter(|product| (product.is)(host, path));
        Found {
            arguments,
            url,
            keys,
            unusable,
            fault,
            product: fitting.next().unwrap_or(&PRODUCTS[PRODUCTS.len() - 1]),
        }
    }

    /// Whether this version has the profile.
    fn is_built(&self) -> bool {
        let shape = document::ISSUER.get("profile").map(|field| &field.shape);
        matches!(shape, Some(Shape::Word(words)) if words.contains(&self.product.profile))
    }

    fn algorithms(&self) -> Vec<&'static str> {
        let of_keys = |(_, algorithm): &&(&str, Algorithm)| {
            self.keys.iter().any(|key| key.algorithm == *algorithm)
        };
        let found = Algorithm::NAMES.iter().filter(of_keys);
        found.map(|(name, _)| *name).collect()
    }

    /// What an operator has to see to.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(fault) = &self.fault {
            notes.push(format!("no keys: {fault}"));
        } else if self.keys.is_empty() {
            notes.push("no key of its set can be used: every token would be refused".to_owned());
        }
        if self.keys.iter().any(|key| key.kid.is_none()) {
            notes.push(
                "a key without `kid` serves only with `allow_missing_kid: true`, and alone".into(),
            );
        }
        if !self.is_built() {
            notes.push(format!(
                "the profile `{}` is not in this version; `strict` refuses what is not RFC 9068",
                self.product.profile
            ));
        }
        notes.push(
            "a name alone does not prove a profile: try a token with `portcullis token inspect --config`"
                .to_owned(),
        );
        notes
    }

    /// The entry for `issuers`.
    fn entry(&self) -> String {
        let arguments = self.arguments;
        let mut keys = vec![match &*arguments.discovery {
            "either" => "discovery: true".to_owned(),
            form => format!("discovery: {form}"),
        }];
        if !arguments.hosts.is_empty() {
            let hosts: Vec<String> = arguments.hosts.iter().map(|host| quoted(host)).collect();
            keys.push(format!("hosts: [{}]", hosts.join(", ")));
        }
        if let Some(ca) = &arguments.ca {
            let ca = std::fs::canonicalize(ca).unwrap_or_else(|_| ca.clone());
            keys.push(format!("ca: {}", quoted(&ca.display().to_string())));
        }
        for (name, on) in [
            ("private", arguments.private),
            ("loopback", arguments.loopback),
        ] {
            keys.extend(on.then(|| format!("{name}: true")));
        }
        let mut entry = format!(
            "issuers:\n  - name: idp\n    issuer: {}\n    audiences: [{}]\n    keys: {{{}}}\n",
            quoted(&arguments.issuer),
            quoted(&arguments.audience),
            keys.join(", ")
        );
        if self.is_built() && self.product.profile != "strict" {
            entry.push_str(&format!("    profile: {}\n", self.product.profile));
        }
        let algorithms = self.algorithms();
        if !algorithms.is_empty() {
            entry.push_str(&format!("    algorithms: [{}]\n", algorithms.join(", ")));
            let rsa = |key: &&Key| key.algorithm.is_rsa();
            let rsa = self.keys.iter().find(rsa).map(|key| key.algorithm);
            let named = Algorithm::NAMES.iter().find(|(_, a)| Some(*a) == rsa);
            if let Some((name, _)) = named.filter(|(name, _)| *name != "RS256") {
                entry.push_str(&format!("    rsa_alg: {name}\n"));
            }
        }
        entry.push_str(
            "    grants:\n      - {path: [scope], form: space_string, map: {a2a.agent: agent, a2a.full: full}}\n",
        );
        entry
    }

    fn as_text(&self) -> String {
        let url = self.url.as_deref().unwrap_or("none");
        let mut text = format!("issuer   {}\nkeys     {url}\n", self.arguments.issuer);
        for key in &self.keys {
            let (kid, algorithm) = shown(key);
            text.push_str(&format!("  good   {kid}, {algorithm}\n"));
        }
        for note in &self.unusable {
            let (number, rule) = (note.position + 1, note.why.rule());
            text.push_str(&format!("  unused key {number} {} ({rule})\n", note.why));
        }
        text.push_str(&format!(
            "profile  {} ({})\n",
            self.product.profile, self.product.name
        ));
        for note in self.notes() {
            text.push_str(&format!("  note: {note}\n"));
        }
        if !self.keys.is_empty() {
            text.push_str(&format!(
                "\npaste this into the gateway file, with the grants of your issuer:\n\n{}",
                self.entry()
            ));
        }
        text
    }

    fn as_json(&self) -> Value {
        let keys = self.keys.iter().map(|key| {
            let (_, algorithm) = shown(key);
            json!({ "kid": key.kid, "algorithm": algorithm })
        });
        let unusable = self.unusable.iter().map(|note| {
            json!({ "position": note.position, "rule": note.why.rule(), "reason": note.why.label(),
                "says": format!("key {} {}", note.position + 1, note.why) })
        });
        json!({
            "issuer": self.arguments.issuer,
            "jwks_uri": self.url,
            "error": self.fault.as_ref().map(KeyFetchFault::label),
            "keys": keys.collect::<Vec<_>>(),
            "unusable": unusable.collect::<Vec<_>>(),
            "profile": self.product.profile,
            "profile_available": self.is_built(),
            "notes": self.notes(),
            "entry": (!self.keys.is_empty()).then(|| self.entry()),
        })
    }
}

/// Name and algorithm; a `kid` is printable ASCII, and still somebody else's text.
fn shown(key: &Key) -> (String, &'static str) {
    let kid = key.kid.as_deref().map_or("without kid".to_owned(), quoted);
    let named = Algorithm::NAMES.iter().find(|(_, a)| *a == key.algorithm);
    (kid, named.map_or("", |(name, _)| name))
}
