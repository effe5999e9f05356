//! `portcullis token mint`: a token on standard output, and nothing else there.

use super::{Trouble, caller_key, gateway, shaped, warn};
use crate::adapters::clock::SystemClock;
use crate::adapters::random::SystemRandom;
use crate::cli::dev_issuer::{Claims, DevIssuer};
use crate::cli::exit;
use crate::identity::issuer::{Algorithm, Grant, GrantForm, IssuerConfig, Profile};
use crate::identity::profile::Subject;
use crate::pipeline::ports::Random;
use crate::source::quantity::{parse_duration, show_duration};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the token says.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The private key that `portcullis token keygen` wrote
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Take issuer, audience and grant marker from this gateway file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which of its issuer entries; not needed when there is one
    #[arg(long, value_name = "NAME")]
    issuer_name: Option<String>,
    /// The `iss` claim
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "config",
        value_parser = nonempty,
        conflicts_with = "config"
    )]
    issuer: Option<String>,
    /// The `aud` claim; with --config, by default the entry's first audience
    #[arg(long, value_name = "URL", required_unless_present = "config", value_parser = nonempty)]
    audience: Option<String>,
    /// The `sub` claim: who the token is for
    #[arg(long, value_name = "NAME", value_parser = nonempty)]
    sub: String,
    /// Write the token as this product would; with --config, by default the entry's profile
    #[arg(long, value_name = "NAME", value_parser = profile)]
    profile: Option<Profile>,
    /// Who acts for the subject, for the `act` claim; repeated, the outermost comes first
    #[arg(long = "actor", value_name = "NAME", value_parser = nonempty)]
    actors: Vec<String>,
    /// The client, in the claim where the profile has it [default: portcullis-dev, or the entry's first client]
    #[arg(long, value_name = "ID", value_parser = nonempty)]
    client: Option<String>,
    /// Reach of the token [default: none; such a token can do nothing]
    #[arg(long, value_enum)]
    grant: Option<Reach>,
    /// Words for the `scope` claim
    #[arg(long, value_name = "WORDS")]
    scope: Vec<String>,
    /// A claim that is a string; the name is taken as it stands, dots and all
    #[arg(long = "claim", value_name = "NAME=TEXT", value_parser = text_claim)]
    claims: Vec<(String, Value)>,
    /// A claim that is any JSON value
    #[arg(long = "claim-json", value_name = "NAME=JSON", value_parser = json_claim)]
    json_claims: Vec<(String, Value)>,
    /// Bind the token to this key of the caller's, for `portcullis token dpop`; made if it is not
    /// there
    #[arg(long, value_name = "FILE", conflicts_with = "cnf_jkt")]
    dpop_key: Option<PathBuf>,
    /// Bind the token to the key with this thumbprint (RFC 7638)
    #[arg(long, value_name = "THUMBPRINT", value_parser = caller_key::thumbprint)]
    cnf_jkt: Option<String>,
    /// Bind the token to the client certificate in this PEM file
    #[arg(long, value_name = "FILE")]
    client_cert: Option<PathBuf>,
    /// How long the token is valid
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = lifetime)]
    ttl: Duration,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Reach {
    /// The agents
    Agent,
    /// The agents, the declared rest of their backends, and the admin surface
    Full,
}

/// Claims that options of their own set.
const SET_BY_OPTION: [(&str, &str); 9] = [
    ("iss", "use --issuer"),
    ("aud", "use --audience"),
    ("sub", "use --sub"),
    ("client_id", "use --client"),
    ("scope", "use --scope"),
    ("exp", "use --ttl"),
    ("iat", "it is the present time"),
    ("jti", "every token gets a new one"),
    ("act", "use --actor"),
];
/// Longest lifetime in seconds that an entry can allow (CL-6).
const LONGEST: u64 = 86_400;

fn nonempty(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=255 => Ok(text.to_owned()),
        _ => Err("it has 1 to 255 characters".into()),
    }
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::named(text).ok_or_else(|| {
        let names = Profile::ALL.map(|p| p.rules().name);
        format!("there are the profiles {}", names.join(", "))
    })
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)
        .ok_or("not a duration; write a whole number and a unit, such as `10m` or `1h`")?;
    if !(1..=LONGEST).contains(&duration.as_secs()) {
        return Err("a token is valid for `1s` to `24h`".into());
    }
    Ok(duration)
}

fn named(text: &str) -> Result<(&str, &str), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write the claim's name, `=`, and its value")?;
    match SET_BY_OPTION.iter().find(|(set, _)| *set == name) {
        Some((_, instead)) => Err(format!("`{name}` is not set this way; {instead}")),
        None => Ok((name, value)),
    }
}

fn text_claim(text: &str) -> Result<(String, Value), String> {
    named(text).map(|(name, value)| (name.to_owned(), json!(value)))
}

fn json_claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) = named(text)?;
    let value = serde_json::from_str(value)
        .map_err(|_| "the value is not JSON; for a plain string use --claim, else quote it for the shell, such as 'groups=[\"staff\"]'")?;
    Ok((name.to_owned(), value))
}

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    // The parser's own check of this gives way to that --config and --issuer exclude each other.
    if arguments.issuer_name.is_some() && arguments.config.is_none() {
        return Err(Trouble::usage(
            "--issuer-name names an entry of a gateway file, and no file is given",
            "name it with --config",
        ));
    }
    let (key, exposed) = DevIssuer::load(&arguments.key).map_err(|error| {
        Trouble::file(
            &arguments.key,
            error,
            "name the `.private.pem` file that `portcullis token keygen` wrote",
        )
    })?;
    if exposed {
        warn(format!(
            "other users of this machine may open `{0}`; run `chmod 600 {0}`",
            arguments.key.display()
        ));
    }
    let mut claims = plain_claims(arguments)?;
    bind(arguments, &mut claims)?;
    let mut id = [0; 16];
    SystemRandom.fill(&mut id);
    let id = URL_SAFE_NO_PAD.encode(id);
    match &arguments.config {
        None => {
            let profile = arguments.profile.unwrap_or(Profile::Strict);
            shaped::shape(&mut claims, profile, None, &id);
            if let Some(grant) = arguments.grant {
                let marker = match grant {
                    Reach::Agent => "a2a.agent",
                    Reach::Full => "a2a.full",
                };
                claims.mark(&["scope".into()], GrantForm::SpaceString, marker);
            }
        }
        Some(config) => {
            let issuers = gateway(config)?.issuers;
            let entry = choose(&issuers, arguments.issuer_name.as_deref())?;
            by_entry(arguments, entry, &mut claims, &id)?;
            for doubt in doubts(arguments, &key, entry, &claims) {
                warn(doubt);
            }
        }
    }
    let token = key
        .mint(&claims, &SystemClock::new(), &SystemRandom)
        .map_err(|error| Trouble::file(&arguments.key, error, "make a new key"))?;
    println!("{token}");
    Ok(exit::YES)
}

/// What the command line says.
fn plain_claims(arguments: &Arguments) -> Result<Claims, Trouble> {
    let mut claims = Claims {
        issuer: arguments.issuer.clone().unwrap_or_default(),
        audience: arguments.audience.clone().unwrap_or_default(),
        subject: arguments.sub.clone(),
        client: arguments
            .client
            .clone()
            .unwrap_or_else(|| "portcullis-dev".to_owned()),
        lifetime: arguments.ttl.as_secs(),
        scope: arguments
            .scope
            .iter()
            .flat_map(|words| words.split(' '))
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
        ..Claims::default()
    };
    for (name, value) in arguments.claims.iter().chain(&arguments.json_claims) {
        if claims.extra.insert(name.clone(), value.clone()).is_some() {
            return Err(Trouble::usage(
                format!("claim `{name}` is given twice"),
                "for a list of values write --claim-json 'NAME=[\"one\",\"other\"]'",
            ));
        }
    }
    if let Some(act) = shaped::act(&arguments.actors) {
        claims.extra.insert("act".to_owned(), act);
    }
    Ok(claims)
}

/// Writes `cnf`, as the options say.
fn bind(arguments: &Arguments, claims: &mut Claims) -> Result<(), Trouble> {
    let members = caller_key::confirmation(
        arguments.dpop_key.as_deref(),
        arguments.cnf_jkt.as_deref(),
        arguments.client_cert.as_deref(),
    )?;
    if members.is_empty() {
        return Ok(());
    }
    match claims.extra.insert("cnf".into(), members.into()) {
        None => Ok(()),
        Some(_) => Err(Trouble::usage(
            "claim `cnf` is given twice",
            "write it with --claim-json alone, or leave it to --dpop-key, --cnf-jkt and --client-cert",
        )),
    }
}

fn choose<'a>(
    issuers: &'a [Arc<IssuerConfig>],
    name: Option<&str>,
) -> Result<&'a IssuerConfig, Trouble> {
    let names: Vec<_> = issuers.iter().map(|i| format!("`{}`", i.name)).collect();
    let known = format!("the gateway file has {}", names.join(", "));
    match (name, issuers) {
        (Some(name), _) => issuers
            .iter()
            .find(|entry| *entry.name == *name)
            .map(|entry| &**entry)
            .ok_or_else(|| Trouble::usage(format!("no issuer entry is named `{name}`"), known)),
        (None, [only]) => Ok(only),
        (None, []) => Err(Trouble::usage(
            "the gateway file has no issuer entry",
            "add the one that `portcullis token keygen` prints",
        )),
        (None, _) => Err(Trouble::usage(
            "there are several issuer entries",
            format!("choose one with --issuer-name; {known}"),
        )),
    }
}

/// Fills in what the entry says, so that a token is what the entry wants.
fn by_entry(
    arguments: &Arguments,
    entry: &IssuerConfig,
    claims: &mut Claims,
    id: &str,
) -> Result<(), Trouble> {
    claims.issuer = entry.issuer.to_string();
    if arguments.audience.is_none() {
        match entry.audiences.first() {
            Some(audience) => claims.audience = audience.to_string(),
            // CL-2: such an entry goes by its clients, and an `aud` that is there must match.
            None => claims.without.push("aud".to_owned()),
        }
    }
    if let (None, Some(client)) = (&arguments.client, entry.clients.first()) {
        claims.client = client.to_string();
    }
    shaped::shape(
        claims,
        arguments.profile.unwrap_or(entry.profile),
        Some(entry),
        id,
    );
    let Some(grant) = arguments.grant else {
        return Ok(());
    };
    let grant = match grant {
        Reach::Agent => Grant::Agent,
        Reach::Full => Grant::Full,
    };
    let marker = entry.grants.iter().find_map(|mark| {
        let value = mark.map.iter().find(|(_, worth)| *worth == grant);
        value.map(|(value, _)| (mark, value))
    });
    let Some((mark, value)) = marker else {
        return Err(Trouble::usage(
            format!("no claim gives this grant at issuer entry `{}`", entry.name),
            "choose the other --grant, or add a value for it under `grants` of the entry",
        ));
    };
    if claims.mark(&mark.path, mark.form, value) {
        return Ok(());
    }
    Err(Trouble::usage(
        format!("claim `{}` already has another value", mark.path.join(".")),
        format!(
            "the grant goes into that claim; leave it out, or put `{value}` into it and leave out --grant"
        ),
    ))
}

/// Why the gateway would not take a token by this key and entry, as far as it shows beforehand.
fn doubts(
    arguments: &Arguments,
    key: &DevIssuer,
    entry: &IssuerConfig,
    claims: &Claims,
) -> Vec<String> {
    let mut doubts = Vec::new();
    let name = &entry.name;
    if !entry.development {
        doubts.push(format!(
            "issuer entry `{name}` is not marked `development: true`; mark it, so that nobody takes it for a real one"
        ));
    }
    let file = entry.keys.file();
    let content = file.map_or(&[][..], |file| &file.content);
    let keys: Value = serde_json::from_slice(content).unwrap_or_default();
    let listed = keys["keys"]
        .as_array()
        .is_some_and(|keys| keys.iter().any(|k| k["kid"] == key.kid()));
    match file {
        Some(_) if listed => {}
        Some(file) => doubts.push(format!(
            "the key is not in `{}` of issuer entry `{name}`, so the gateway will refuse the token; name the `jwks.json` that was written beside the key",
            file.path.display()
        )),
        None => doubts.push(format!(
            "the keys of issuer entry `{name}` are fetched, so the gateway will refuse the token unless this key is among them; name the `jwks.json` that was written beside the key"
        )),
    }
    let algorithm = key.algorithm().name();
    if !Algorithm::NAMES
        .iter()
        .any(|(name, a)| *name == algorithm && entry.algorithms.contains(a))
    {
        doubts.push(format!(
            "issuer entry `{name}` does not take {algorithm}; add it to `algorithms`, or make another key"
        ));
    }
    if claims.lifetime > entry.max_lifetime {
        doubts.push(format!(
            "issuer entry `{name}` takes tokens of at most {}; choose a shorter --ttl",
            show_duration(Duration::from_secs(entry.max_lifetime))
        ));
    }
    let rules = entry.profile.rules();
    let full = matches!(arguments.grant, Some(Reach::Full));
    if claims.extra.contains_key("act") && full && !entry.delegated_full {
        doubts.push(format!(
            "issuer entry `{name}` takes delegated tokens at the grant `agent` at most; `delegated_full: true` there would lift that"
        ));
    }
    if rules.subject == Subject::SpiffeId && !claims.subject.starts_with("spiffe://") {
        doubts.push("the subject is no SPIFFE ID; give --sub spiffe://DOMAIN/WORKLOAD".to_owned());
    }
    if !entry.audiences.is_empty() && !entry.audiences.iter().any(|a| **a == *claims.audience) {
        doubts.push(format!(
            "issuer entry `{name}` does not take this audience; leave out --audience"
        ));
    }
    if !entry.clients.is_empty() && !entry.clients.iter().any(|c| **c == *claims.client) {
        doubts.push(format!(
            "issuer entry `{name}` does not take this client; leave out --client"
        ));
    }
    doubts
}
