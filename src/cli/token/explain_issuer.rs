//! `portcullis token explain-issuer`: what there is at an issuer, by the rules of the gateway, and
//! the entry that would trust it.

mod entry;
mod product;

use super::inspect::looked;
use super::show::safe;
use super::{Trouble, quoted};
use crate::a2a::strict_json::{Value as Json, parse_value};
use crate::adapters::fetch::keys::Look;
use crate::cli::exit;
use crate::identity::issuer::{Algorithm, DiscoveryForm, KeyLocation, RemoteKeys};
use crate::identity::keys::{EntryNote, Key, KeySet};
use crate::identity::metadata::MetadataFault;
use crate::pipeline::issuer_keys::KeyFetchFault;
use crate::source::tree::clip;
use product::Judged;
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
    #[arg(long, value_name = "TEXT")]
    audience: Option<String>,
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
    let found = Found::of(arguments, looked(&remote));
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

/// Deepest nesting of metadata (FM-3).
const MAX_DEPTH: usize = 16;

/// What there is.
struct Found<'a> {
    arguments: &'a Arguments,
    /// Where the key set is.
    url: Option<Box<str>>,
    keys: Vec<Key>,
    unusable: Vec<EntryNote>,
    fault: Option<KeyFetchFault>,
    /// As it came, and whoever's it is.
    metadata: Option<Json>,
    judged: Judged,
}

impl<'a> Found<'a> {
    fn of(arguments: &'a Arguments, look: Look) -> Found<'a> {
        let metadata = look.metadata.as_deref();
        let metadata = metadata.and_then(|bytes| parse_value(bytes, MAX_DEPTH).ok());
        let url = look.keys.as_ref().ok().map(|fetched| fetched.url.clone());
        let rsa = rsa_alg(&supported(metadata.as_ref()));
        let read = look
            .keys
            .and_then(|fetched| KeySet::parse(&fetched.body, rsa).map_err(KeyFetchFault::KeySet));
        let (keys, unusable, fault) = match read {
            Ok((set, unusable)) => (set.keys().to_vec(), unusable, None),
            Err(fault) => (Vec::new(), Vec::new(), Some(fault)),
        };
        Found {
            arguments,
            url,
            keys,
            unusable,
            fault,
            judged: Judged::of(&arguments.issuer, metadata.as_ref()),
            metadata,
        }
    }

    /// What an operator has to see to.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(fault) = &self.fault {
            notes.push(format!("no keys: {fault}"));
            notes.extend(self.elsewhere(fault));
        } else if self.keys.is_empty() {
            notes.push("no key of its set can be used: every token would be refused".to_owned());
        }
        if self.keys.iter().any(|key| key.kid.is_none()) {
            notes.push(
                "a key without `kid` serves only with `allow_missing_kid: true`, and alone".into(),
            );
        }
        notes.extend(self.signing());
        notes.extend(self.judged.doubts.iter().cloned());
        notes.push(
            "no metadata proves a profile: try a token with `portcullis token inspect --config`"
                .to_owned(),
        );
        notes
    }

    /// What the metadata says instead.
    fn elsewhere(&self, fault: &KeyFetchFault) -> Option<String> {
        let says = |member: &str| self.metadata.as_ref()?.get(member)?.as_str();
        match fault {
            KeyFetchFault::Metadata(MetadataFault::OtherIssuer) => {
                let issuer = clip(says("issuer")?);
                Some(format!(
                    "its metadata is that of {}",
                    safe(&quoted(&issuer))
                ))
            }
            KeyFetchFault::Metadata(MetadataFault::OtherHost) => {
                let uri = Url::parse(says("jwks_uri")?).ok()?;
                let host = clip(uri.host_str()?);
                Some(format!(
                    "if {host} is the issuer's as well, add `--host {host}`"
                ))
            }
            _ => None,
        }
    }

    /// Where what it says that it signs with, and its keys, do not fit.
    fn signing(&self) -> Option<String> {
        let supported = supported(self.metadata.as_ref());
        if supported.is_empty() || self.keys.is_empty() {
            return None;
        }
        let fits = |key: &Key| {
            let same = |algorithm: &Algorithm| match key.algorithm {
                // One algorithm under two names.
                Algorithm::EdDsa | Algorithm::Ed25519 => {
                    matches!(algorithm, Algorithm::EdDsa | Algorithm::Ed25519)
                }
                other => *algorithm == other,
            };
            supported.iter().any(same)
        };
        (!self.keys.iter().any(fits)).then(|| {
            "no key of its set has an algorithm that its metadata says tokens are signed with"
                .to_owned()
        })
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
        let product = self.judged.product;
        let profile = product.profile.rules().name;
        text.push_str(&format!("profile  {profile} ({})\n", product.name));
        for because in &self.judged.because {
            text.push_str(&format!("  because {because}\n"));
        }
        for note in self.notes() {
            text.push_str(&format!("  note: {note}\n"));
        }
        if self.keys.is_empty() {
            return text;
        }
        for missing in entry::missing(self) {
            text.push_str(&format!("missing  {}: {}\n", missing.field, missing.says));
        }
        text.push_str(&format!(
            "\npaste this into the gateway file, with the grants of your issuer:\n\n{}",
            entry::entry(self)
        ));
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
        let missing = entry::missing(self).into_iter().map(|missing| {
            json!({ "field": missing.field, "placeholder": missing.placeholder, "says": missing.says })
        });
        json!({
            "issuer": self.arguments.issuer,
            "jwks_uri": self.url,
            "error": self.fault.as_ref().map(KeyFetchFault::label),
            "keys": keys.collect::<Vec<_>>(),
            "unusable": unusable.collect::<Vec<_>>(),
            "profile": self.judged.product.profile.rules().name,
            "because": self.judged.because,
            "notes": self.notes(),
            "missing": missing.collect::<Vec<_>>(),
            "entry": (!self.keys.is_empty()).then(|| entry::entry(self)),
        })
    }
}

/// What the metadata says that tokens are signed with, as far as we know it. It is said of ID
/// tokens, whose keys the others have as well.
fn supported(metadata: Option<&Json>) -> Vec<Algorithm> {
    let listed = metadata.and_then(|m| m.get("id_token_signing_alg_values_supported"));
    let listed = listed.and_then(Json::as_array).unwrap_or_default();
    let known = listed.iter().filter_map(|name| {
        let known = Algorithm::NAMES
            .iter()
            .find(|(n, _)| Some(*n) == name.as_str());
        known.map(|(_, algorithm)| *algorithm)
    });
    known.collect()
}

/// That of RSA keys which name none (KY-5).
fn rsa_alg(supported: &[Algorithm]) -> Algorithm {
    let rsa = supported.iter().find(|algorithm| algorithm.is_rsa());
    match supported.contains(&Algorithm::Rs256) {
        true => Algorithm::Rs256,
        false => rsa.copied().unwrap_or(Algorithm::Rs256),
    }
}

/// Name and algorithm; a `kid` is printable ASCII, and still somebody else's text.
fn shown(key: &Key) -> (String, &'static str) {
    let kid = key.kid.as_deref().map_or("without kid".to_owned(), quoted);
    let named = Algorithm::NAMES.iter().find(|(_, a)| *a == key.algorithm);
    (kid, named.map_or("", |(name, _)| name))
}
