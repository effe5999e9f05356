//! The words of each refusal: what stands in the token, what was wanted, what to do.

use super::Scene;
use crate::a2a::strict_json::Value;
use crate::identity::fault::{self, TokenFault};
use crate::identity::issuer::{Algorithm, IssuerConfig, Profile, Typ};
use crate::identity::kind;
use crate::identity::profile::Marker;

/// Longest quoted text in characters (LG-4).
const QUOTED: usize = 64;

/// Untrusted text in backticks, escaped and cut short.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (count, c) in text.chars().enumerate() {
        if count == QUOTED {
            out.push('…');
            break;
        }
        // Beside control characters this escapes what turns or hides text.
        if c.is_ascii() && !c.is_ascii_control() || c.is_alphanumeric() {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out.push('`');
    out
}

/// The JOSE name of an algorithm.
pub(super) fn alg(algorithm: Algorithm) -> &'static str {
    Algorithm::NAMES
        .iter()
        .find(|(_, known)| *known == algorithm)
        .map_or("?", |(name, _)| name)
}

/// A value of a token, for reading.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".into(),
        Some(Value::Null) => "`null`".into(),
        Some(Value::Bool(flag)) => format!("`{flag}`"),
        Some(Value::Number(number)) => quoted(number),
        Some(Value::String(text)) => quoted(text),
        Some(Value::Array(items)) => {
            let texts: Vec<String> = items
                .iter()
                .take(4)
                .filter_map(Value::as_str)
                .map(quoted)
                .collect();
            match items.len() {
                n if n == texts.len() => format!("[{}]", texts.join(", ")),
                n => format!("an array of {n}"),
            }
        }
        Some(Value::Object(_)) => "an object".into(),
    }
}

fn listed<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("`{text}`")).collect();
    if texts.is_empty() {
        return "none".into();
    }
    texts.join(", ")
}

fn typ(typ: Typ) -> &'static str {
    match typ {
        Typ::AtJwt => "at+jwt",
        Typ::Jwt => "JWT",
        Typ::Jose => "JOSE",
        Typ::Absent => "absent",
    }
}

/// Claims with what stands in them.
fn each(claims: &[&str], shown: impl Fn(&str) -> String) -> String {
    let told: Vec<String> = claims
        .iter()
        .map(|claim| format!("`{claim}` is {}", shown(claim)))
        .collect();
    told.join(", ")
}

/// What a marker of access tokens wants, and what the token says instead.
fn wanted(marker: &Marker, shown: impl Fn(&str) -> String) -> String {
    match marker {
        Marker::Text {
            claim,
            values,
            optional,
            ..
        } => {
            let or = if *optional { ", or no such claim" } else { "" };
            let values = listed(values.iter().copied());
            format!("`{claim}` is {}, wanted {values}{or}", shown(claim))
        }
        Marker::Number { claim, value } => {
            format!("`{claim}` is {}, wanted the number {value}", shown(claim))
        }
        Marker::Prefix { claim, prefix } => {
            format!("`{claim}` is {}, wanted `{prefix}…`", shown(claim))
        }
        Marker::Pair {
            claim,
            value,
            other,
        } => format!(
            "`{other}` is {}, wanted where `{claim}` is `{value}`",
            shown(other)
        ),
        Marker::ClientSubject {
            claim,
            grant_type,
            suffix,
        } => format!(
            "`{claim}` is {} and `sub` {}: `{grant_type}` and the client's own name with `{suffix}` go together",
            shown(claim),
            shown("sub")
        ),
    }
}

/// What to do where the keys may be old ones.
fn renew(config: Option<&IssuerConfig>) -> &'static str {
    match config.and_then(|c| c.keys.remote()) {
        Some(_) => {
            "the gateway finds new keys when it refreshes; those that are not usable are in its log and metrics"
        }
        None => {
            "put its present JWKS into the key file, and see `portcullis check` for keys that are not usable"
        }
    }
}

/// What is wrong and how to mend it.
pub(super) fn words(fault: TokenFault, scene: &Scene<'_>) -> String {
    let head = |name: &str| shown(scene.token.and_then(|t| t.header.get(name)));
    let claim = |name: &str| shown(scene.token.and_then(|t| t.payload.get(name)));
    let config = scene.entry.map(|entry| &*entry.config);
    let leeway = config.map_or(0, |c| c.leeway);
    let now = scene.now;
    let keys = scene.entry.and_then(|entry| entry.keys.current());
    match fault {
        fault::TOO_LONG => "the token is longer than 8192 characters; have the issuer put fewer claims into it".into(),
        fault::NOT_THREE_SEGMENTS => "it is not three segments with dots between (a compact JWS); encrypted tokens and opaque tokens are not read here".into(),
        fault::NOT_BASE64URL => "a segment is not canonical base64url without padding; was the token cut off, or copied with a line break".into(),
        fault::NOT_STRICT_JSON => "header or payload is not strict JSON: look for a member that stands twice, a byte order mark, bytes after the object, or too deep nesting".into(),
        fault::NOT_AN_OBJECT => "header or payload is no JSON object".into(),
        fault::HEADER_TOO_LARGE => "the header is larger than 2 KiB".into(),
        fault::TOO_MANY_CLAIMS => "there are more than 200 claims".into(),
        fault::ARRAY_TOO_LONG => "an array has more than 1024 elements".into(),
        fault::BAD_SIGNATURE => format!(
            "the signature is not one of the key {}; if the issuer changed its keys under that name, {}",
            head("kid"),
            renew(config)
        ),
        fault::CONTROL_CHARACTER => "a name in it (`iss`, `sub`, `aud`, `jti`, a client, an actor) holds a control character".into(),
        fault::NO_ALG => "the header has no `alg`".into(),
        fault::ALG_NOT_LISTED => format!(
            "the header's `alg` is {}, this issuer takes {}; add it to `algorithms` if the issuer really signs with it",
            head("alg"),
            listed(config.iter().flat_map(|c| c.algorithms.iter().map(|a| alg(*a))))
        ),
        fault::ALG_SYMMETRIC_OR_NONE => format!(
            "the header's `alg` is {}: unsigned tokens and shared secrets are never accepted; sign with a key pair",
            head("alg")
        ),
        fault::CRITICAL => "the header has `crit` or `b64`; no such extension is understood".into(),
        fault::TYP => format!(
            "the header's `typ` is {}, this issuer takes {}; {}",
            head("typ"),
            listed(config.iter().flat_map(|c| c.typ.iter().map(|t| typ(*t)))),
            match config.map(|c| c.profile) {
                Some(Profile::Strict) | None => "have the issuer write access tokens as in RFC 9068, or set the `profile` of its product, such as `keycloak`",
                Some(profile) if profile.rules().typ.may_list.len() > 1 => "list the value under `typ` if this issuer's access tokens carry it",
                Some(_) => "this product's access tokens carry no other; send the access token",
            }
        ),
        fault::KID_MISSING => "the header has no `kid`; have the issuer send it, or set `allow_missing_kid: true` if it has just one key".into(),
        fault::KID_FORM => "`kid` is not 1 to 256 printable ASCII characters".into(),
        fault::KEY_IN_HEADER => "the header carries or names a key (`jwk`, `jku`, `x5u`, `x5c`), which is never used; if the issuer always sends it, list it under `ignore_header`".into(),
        fault::ENCRYPTION_MEMBER => "the header has a member of encrypted or compressed tokens".into(),
        fault::NESTED => "the header has `cty`: a token within a token is not read".into(),
        fault::HEADER_TYPE => "a header member has the wrong type (`alg`, `typ`, `kid`, `x5t` are strings)".into(),
        fault::REPLICATED_CLAIM => "the header repeats a claim with another value".into(),
        fault::KEYS_UNAVAILABLE => match config.and_then(|c| c.keys.remote()) {
            Some(_) => "the issuer's keys could not be fetched; until they are, its tokens get 503".into(),
            None => "the issuer's key file cannot be used; run `portcullis check`".into(),
        },
        fault::UNKNOWN_KID => format!(
            "no usable key of this issuer is named {}; it has {}; {}",
            head("kid"),
            listed(
                keys.iter().flat_map(|keys| keys.keys()).filter_map(|k| k.kid.as_deref())
            ),
            renew(config)
        ),
        fault::ALG_OF_KEY => format!(
            "the header's `alg` is {}, the key {} is for another algorithm; one key has one",
            head("alg"),
            head("kid")
        ),
        fault::NO_SINGLE_KEY => format!(
            "without `kid` the issuer must have exactly one usable key for {}",
            head("alg")
        ),
        fault::ISSUER => format!("`iss` is {}, a string is needed", claim("iss")),
        fault::UNKNOWN_ISSUER => format!(
            "`iss` is {}, which is no configured issuer, byte for byte; configured: {}",
            claim("iss"),
            listed(scene.issuers.configured())
        ),
        fault::NO_AUDIENCE | fault::AUDIENCE_FORM | fault::AUDIENCE => format!(
            "`aud` is {}, this issuer's `audiences` are {}; one must be equal byte for byte: have the issuer put it there, or add the audience that stands for this gateway",
            claim("aud"),
            listed(config.iter().flat_map(|c| c.audiences.iter().map(|a| &**a)))
        ),
        fault::NO_EXPIRY => "`exp` is missing; a token without an end is never accepted".into(),
        fault::EXPIRED => format!(
            "`exp` is {}, now is {now} and the leeway {leeway} s; ask for a new token, and compare the clocks if it is new",
            claim("exp")
        ),
        fault::NOT_YET => format!(
            "`nbf` is {}, now is {now} and the leeway {leeway} s; compare the clocks",
            claim("nbf")
        ),
        fault::NO_ISSUED_AT => "`iat` is missing, which RFC 9068 demands".into(),
        fault::ISSUED_IN_FUTURE => format!(
            "`iat` is {}, now is {now} and the leeway {leeway} s; compare the clocks",
            claim("iat")
        ),
        fault::ISSUED_AFTER_EXPIRY => "`iat` is after `exp`".into(),
        fault::LIFETIME => format!(
            "it lives longer than `max_lifetime`, {} s; have the issuer give shorter tokens, or raise it (24 h at most)",
            config.map_or(0, |c| c.max_lifetime)
        ),
        fault::NEVER_VALID => "`nbf` is not before `exp`".into(),
        fault::SUBJECT => format!("`sub` is {}, a string of 1 to 255 characters is needed", claim("sub")),
        fault::SPIFFE_ID => format!(
            "`sub` is {}, which is no SPIFFE ID of a workload in the entry's `trust_domain`, {}",
            claim("sub"),
            quoted(config.and_then(|c| c.trust_domain.as_deref()).unwrap_or_default())
        ),
        fault::TOKEN_ID => format!(
            "{}; a string of 1 to 255 characters is needed",
            each(config.map_or(&["jti"], |c| c.profile.rules().token_id.claims), claim)
        ),
        fault::CLIENT => {
            let claims = config.map_or(&["client_id"][..], |c| c.profile.rules().client.claims);
            let others = ["client_id", "azp"].into_iter().filter(|c| !claims.contains(c));
            let all: Vec<&str> = claims.iter().copied().chain(others).collect();
            format!(
                "{}; a client is a string of 1 to 255 characters, and this profile reads it from {}",
                each(&all, claim),
                listed(claims.iter().copied())
            )
        }
        fault::CLIENTS_DIFFER => format!(
            "the token names more than one client: {}",
            each(&["client_id", "azp", "appid", "cid"], claim)
        ),
        fault::TENANT => {
            let of = config.and_then(|c| c.profile.rules().tenant).map_or("tid", |t| t.claim);
            format!(
                "`{of}` is {}, this issuer's `tenants` are {}; have the caller use its own tenant's account, or list the tenant",
                claim(of),
                listed(config.iter().flat_map(|c| c.tenants.iter().map(|t| &**t)))
            )
        }
        fault::CLIENT_NOT_LISTED => format!(
            "the client is not among the issuer's `clients`: {}",
            listed(config.iter().flat_map(|c| c.clients.iter().map(|a| &**a)))
        ),
        fault::OTHER_KIND => "it holds a claim of ID tokens, logout tokens or event tokens (`nonce`, `at_hash`, `c_hash`, `s_hash`, `events`, `token_introspection`); send the access token, and take the mapper for it out if the issuer adds one".into(),
        fault::TOKEN_KIND => {
            let missing = config
                .zip(scene.token)
                .map(|(config, token)| kind::missing(&token.payload, config));
            let told: Vec<String> = missing
                .into_iter()
                .flatten()
                .map(|marker| wanted(marker, claim))
                .collect();
            format!(
                "{}; send the access token, not the ID or refresh token",
                told.join("; ")
            )
        }
        fault::ISSUED_TOO_EARLY => "it was issued before the entry's `not_before`, or does not say when".into(),
        fault::CLOCK_NOT_SET => "this machine's clock is before 2024, so no time can be judged; set it".into(),
        fault::NOT_A_DATE => format!(
            "`exp` {}, `nbf` {}, `iat` {}: a date is a positive number of seconds, up to the year 9999, and no string",
            claim("exp"),
            claim("nbf"),
            claim("iat")
        ),
        fault::HEADER_MEMBER => format!(
            "the header has a member that this profile does not take; it takes {}",
            listed(config.and_then(|c| c.profile.rules().header).unwrap_or_default().iter().copied())
        ),
        fault::ACTOR => "`act` is not an object with a string `sub` of 1 to 255 characters, or its `iss` is no such string, at some depth; have the issuer write it as in RFC 8693".into(),
        fault::TOO_MANY_ACTORS => "more than four actors stand in `act`; shorten the chain of delegations".into(),
        fault::CONFIRMATION_FORM => "`cnf` is there and is no object with members; the issuer must say what the token is bound to, or leave it out".into(),
        fault::CONFIRMATION_MEMBER => "`cnf` has a member other than `x5t#S256` and `jkt`; a binding that cannot be enforced is refused".into(),
        fault::CERTIFICATE_PRINT => "`x5t#S256` in `cnf` is not the base64url of a SHA-256 (43 characters, no padding); hexadecimal will not do".into(),
        fault::KEY_PRINT => "`jkt` in `cnf` is not the base64url of a SHA-256 (43 characters, no padding); it is the RFC 7638 thumbprint of the caller's key".into(),
        // Transport and cache: a token alone never has them.
        other => other.to_string(),
    }
}
