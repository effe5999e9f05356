//! The words of each refusal: what stands in the token, what was wanted, what to do.

use super::Scene;
use crate::a2a::strict_json::Value;
use crate::identity::fault::{self, TokenFault};
use crate::identity::issuer::{Algorithm, Profile, Typ};
use crate::identity::keys::KeySet;

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

/// What is wrong and how to mend it.
pub(super) fn words(fault: TokenFault, scene: &Scene<'_>) -> String {
    let head = |name| shown(scene.token.and_then(|t| t.header.get(name)));
    let claim = |name| shown(scene.token.and_then(|t| t.payload.get(name)));
    let config = scene.entry.map(|entry| &*entry.config);
    let leeway = config.map_or(0, |c| c.leeway);
    let now = scene.now;
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
            "the signature is not one of the key {} in the key file; if the issuer changed its keys, put its present JWKS there",
            head("kid")
        ),
        fault::CONTROL_CHARACTER => "a name in it (`iss`, `sub`, `aud`, `jti`, `client_id`, `azp`) holds a control character".into(),
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
                Some(Profile::Strict) | None => "have the issuer write access tokens as in RFC 9068, or, if it is Keycloak, set `profile: keycloak`",
                Some(Profile::Keycloak) => "list the value under `typ` if this issuer's access tokens carry it",
            }
        ),
        fault::KID_MISSING => "the header has no `kid`; have the issuer send it, or set `allow_missing_kid: true` if it has just one key".into(),
        fault::KID_FORM => "`kid` is not 1 to 256 printable ASCII characters".into(),
        fault::KEY_IN_HEADER => "the header carries or names a key (`jwk`, `jku`, `x5u`, `x5c`), which is never used; if the issuer always sends it, list it under `ignore_header`".into(),
        fault::ENCRYPTION_MEMBER => "the header has a member of encrypted or compressed tokens".into(),
        fault::NESTED => "the header has `cty`: a token within a token is not read".into(),
        fault::HEADER_TYPE => "a header member has the wrong type (`alg`, `typ`, `kid`, `x5t` are strings)".into(),
        fault::REPLICATED_CLAIM => "the header repeats a claim with another value".into(),
        fault::KEYS_UNAVAILABLE => "the issuer's key file cannot be used; run `portcullis check`".into(),
        fault::UNKNOWN_KID => format!(
            "no usable key of this issuer is named {}; it has {}; put the issuer's present JWKS into the key file, and see `portcullis check` for keys that are not usable",
            head("kid"),
            listed(
                scene.entry.iter().filter_map(|e| e.keys.as_ref()).flat_map(KeySet::keys).filter_map(|k| k.kid.as_deref())
            )
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
        fault::TOKEN_ID => format!("`jti` is {}, a string of 1 to 255 characters is needed", claim("jti")),
        fault::CLIENT => format!(
            "`client_id` is {} and `azp` {}; {}",
            claim("client_id"),
            claim("azp"),
            match config.map(|c| c.profile) {
                Some(Profile::Keycloak) => "one of them is needed, as a string",
                Some(Profile::Strict) | None => "`client_id` is needed, as a string",
            }
        ),
        fault::CLIENTS_DIFFER => "`client_id` and `azp` differ".into(),
        fault::CLIENT_NOT_LISTED => format!(
            "the client is not among the issuer's `clients`: {}",
            listed(config.iter().flat_map(|c| c.clients.iter().map(|a| &**a)))
        ),
        fault::OTHER_KIND => "it holds a claim of ID tokens, logout tokens or event tokens (`nonce`, `at_hash`, `c_hash`, `s_hash`, `events`, `token_introspection`); send the access token, and take the mapper for it out if the issuer adds one".into(),
        fault::PAYLOAD_TYP => format!(
            "the payload's `typ` is {}, access tokens of Keycloak say `Bearer`; send the access token, not the ID or refresh token",
            claim("typ")
        ),
        fault::ISSUED_TOO_EARLY => "it was issued before the entry's `not_before`, or does not say when".into(),
        fault::CLOCK_NOT_SET => "this machine's clock is before 2024, so no time can be judged; set it".into(),
        fault::NOT_A_DATE => format!(
            "`exp` {}, `nbf` {}, `iat` {}: a date is a positive number of seconds, up to the year 9999, and no string",
            claim("exp"),
            claim("nbf"),
            claim("iat")
        ),
        fault::CONSTRAINED => "it is bound to a key or certificate (`cnf`), which cannot be enforced here, so it is refused".into(),
        fault::DELEGATED => "it is a delegated token (`act`), which is not supported here".into(),
        // Transport and cache: a token alone never has them.
        other => other.to_string(),
    }
}
