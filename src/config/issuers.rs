//! `issuers`: from the tree to [`IssuerConfig`].

use super::capture::Capture;
use super::check::{is_later, list_of, name_of, seconds, unique, words};
use super::{document, keys};
use crate::identity::issuer::{
    Algorithm, ClaimDeclaration, ClaimKind, Grant, GrantForm, GrantMark, IgnoredHeader,
    IssuerConfig, KeyFile, Profile, RESERVED_CLAIMS, Typ,
};
use crate::source::{Kind, Mapping, Value, codes};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest `max_lifetime` in seconds (CL-6).
const MAX_LIFETIME: u64 = 86_400;
/// Longest `leeway` in seconds (CL-13).
const MAX_LEEWAY: u64 = 60;
/// Largest NumericDate (CL-14): the last second of the year 9999.
const LAST_INSTANT: i64 = 253_402_300_799;
/// Most names in the path of a claim; deeper payloads are refused (FM-3).
const MAX_PATH: usize = 16;

const PROFILES: [(&str, Profile); 2] =
    [("strict", Profile::Strict), ("keycloak", Profile::Keycloak)];
const LATER_PROFILES: [&str; 5] = ["entra", "auth0", "okta", "cognito", "spiffe"];
const TYPS: [(&str, Typ); 4] = [
    ("JWT", Typ::Jwt),
    ("JOSE", Typ::Jose),
    ("at+jwt", Typ::AtJwt),
    ("absent", Typ::Absent),
];
const IGNORED: [(&str, IgnoredHeader); 4] = [
    ("jwk", IgnoredHeader::Jwk),
    ("jku", IgnoredHeader::Jku),
    ("x5u", IgnoredHeader::X5u),
    ("x5c", IgnoredHeader::X5c),
];
const FORMS: [(&str, GrantForm); 3] = [
    ("space_string", GrantForm::SpaceString),
    ("string_array", GrantForm::StringArray),
    ("either", GrantForm::Either),
];
const GRANTS: [(&str, Grant); 2] = [("agent", Grant::Agent), ("full", Grant::Full)];
const KINDS: [(&str, ClaimKind); 5] = [
    ("string", ClaimKind::String),
    ("number", ClaimKind::Number),
    ("boolean", ClaimKind::Boolean),
    ("string_array", ClaimKind::StringArray),
    ("space_string", ClaimKind::SpaceString),
];

/// Reads all entries.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> Vec<Arc<IssuerConfig>> {
    let mut names = HashMap::new();
    let mut issuers = HashMap::new();
    let mut read = Vec::new();
    let mut files = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::ISSUER) else {
            continue;
        };
        if let Some(name) = fields.get("name") {
            unique(&mut names, &name, codes::DUPLICATE_NAME, "issuer entry");
        }
        if let Some(issuer) = fields.get("issuer") {
            unique(
                &mut issuers,
                &issuer,
                codes::DUPLICATE_ISSUER,
                "entry for issuer",
            );
        }
        let file = fields
            .get("keys")
            .and_then(|v| v.fields(&document::KEYS)?.get("file"));
        if let (Some(config), Some(file)) = (one(&fields, capture), file) {
            read.push(Arc::new(config));
            files.push(file);
        }
    }
    keys::check(&read, &files);
    read
}

fn one(fields: &Mapping<'_, '_>, capture: &Capture) -> Option<IssuerConfig> {
    let name = fields.get("name").and_then(|v| name_of(&v));
    let issuer = fields.get("issuer").and_then(|v| v.text().map(Box::from));
    let keys = fields.get("keys").and_then(|v| key_file(&v, capture));
    let profile = match fields.get("profile") {
        Some(value) if is_later(&value, &LATER_PROFILES, "use `strict` or `keycloak`") => None,
        Some(value) => value.word(&PROFILES),
        None => Some(Profile::Strict),
    };
    let clients = fields
        .get("clients")
        .map(|v| list_of(&v))
        .unwrap_or_default();
    let audiences = fields
        .get("audiences")
        .map(|v| list_of(&v))
        .unwrap_or_default();
    if !fields.has("audiences") && !fields.has("clients") {
        fields.whole().error(
            codes::MISSING_FIELD,
            "`audiences` is missing",
            "name the audience that tokens for this gateway carry; without one, a token for any other service would do",
        );
    }
    let (algorithms, rsa_alg) = algorithms(fields);
    let development = flag(fields, "development");
    if development {
        fields.whole().warn(
            codes::DEVELOPMENT_ISSUER,
            format!(
                "`{}` is a development issuer",
                name.as_deref().unwrap_or("?")
            ),
            "remove it before others can reach the gateway",
        );
    }
    let max_lifetime = fields
        .get("max_lifetime")
        .and_then(|v| seconds(&v, 1..=MAX_LIFETIME));
    let leeway = fields
        .get("leeway")
        .and_then(|v| seconds(&v, 0..=MAX_LEEWAY));
    let config = IssuerConfig {
        name: name.unwrap_or_default(),
        issuer: issuer.unwrap_or_default(),
        audiences,
        keys: keys?,
        profile: profile?,
        algorithms,
        rsa_alg,
        typ: typ(fields, profile?),
        max_lifetime: max_lifetime.unwrap_or(3600),
        leeway: leeway.unwrap_or(30),
        not_before: fields.get("not_before").and_then(|v| instant(&v)),
        clients,
        allow_missing_kid: flag(fields, "allow_missing_kid"),
        ignore_header: fields
            .get("ignore_header")
            .map(|v| words(&v, &IGNORED))
            .unwrap_or_default(),
        grants: fields.get("grants").map(|v| grants(&v)).unwrap_or_default(),
        claims: fields.get("claims").map(|v| claims(&v)).unwrap_or_default(),
        development,
    };
    Some(config)
}

fn flag(fields: &Mapping<'_, '_>, name: &str) -> bool {
    fields.get(name).and_then(|v| v.boolean()).unwrap_or(false)
}

fn key_file(value: &Value<'_, '_>, capture: &Capture) -> Option<KeyFile> {
    let fields = value.fields(&document::KEYS)?;
    let file = fields.get("file")?;
    let path = capture.resolve(file.text()?);
    let content = capture.files.get(&path)?;
    let bytes = match &content.bytes {
        Ok(bytes) => bytes,
        Err(why) => {
            file.error(
                codes::KEY_FILE,
                format!("the key file cannot be read: {why}"),
                "paths are relative to the gateway file; check the permissions too",
            );
            return None;
        }
    };
    if content.world_writable {
        file.error(
            codes::KEY_FILE,
            "every user of this machine may write the key file",
            "run `chmod o-w` on it; whoever can write it can admit anybody",
        );
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        file.error(
            codes::KEY_FILE,
            "the key file is empty",
            "put the issuer's JWKS in it",
        );
    }
    Some(KeyFile {
        path,
        content: bytes.as_slice().into(),
    })
}

fn algorithms(fields: &Mapping<'_, '_>) -> (Vec<Algorithm>, Algorithm) {
    let listed = fields
        .get("algorithms")
        .map(|v| words(&v, &Algorithm::NAMES));
    let rsa: Vec<(&str, Algorithm)> = Algorithm::NAMES
        .iter()
        .copied()
        .filter(|(_, a)| a.is_rsa())
        .collect();
    let rsa_value = fields.get("rsa_alg");
    let chosen = rsa_value.as_ref().and_then(|v| v.word(&rsa));
    let accepted = listed.unwrap_or_else(|| Algorithm::DEFAULT.to_vec());
    let rsa_alg = chosen.unwrap_or(Algorithm::Rs256);
    // KY-5: a key has one algorithm, so RSA keys without `alg` need one that is accepted.
    let missing = !accepted.contains(&rsa_alg);
    if let (Some(value), true, true) = (&rsa_value, chosen.is_some(), missing) {
        value.error(
            codes::ALGORITHMS,
            "`rsa_alg` is not among `algorithms`",
            "add it there, or choose one that is listed",
        );
    } else if let (Some(value), None, true) = (fields.get("algorithms"), &rsa_value, missing)
        && accepted.iter().any(|a| a.is_rsa())
    {
        value.error(
            codes::ALGORITHMS,
            "RSA keys that name no algorithm would be RS256, which is not listed",
            "say with `rsa_alg` which of the listed algorithms they have",
        );
    }
    (accepted, rsa_alg)
}

fn typ(fields: &Mapping<'_, '_>, profile: Profile) -> Vec<Typ> {
    let given = fields.get("typ");
    match (profile, given) {
        (Profile::Strict, Some(value)) => {
            value.error(
                codes::PROFILE,
                "`typ` cannot be chosen under `profile: strict`",
                "strict takes `at+jwt` (RFC 9068); remove the line, or choose the profile of the issuer's product",
            );
            vec![Typ::AtJwt]
        }
        (Profile::Strict, None) => vec![Typ::AtJwt],
        (Profile::Keycloak, Some(value)) => words(&value, &TYPS),
        (Profile::Keycloak, None) => vec![Typ::Jwt],
    }
}

/// Names from a payload's top down.
fn claim_path(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let names: Vec<Box<str>> = match value.list() {
        // The same name may stand twice in a path.
        Some(names) => names
            .iter()
            .filter_map(|n| n.text().map(Box::from))
            .collect(),
        None => return Vec::new(),
    };
    if names.len() > MAX_PATH {
        value.error(
            codes::OUT_OF_RANGE,
            format!("the path has {} names", names.len()),
            format!("a path has at most {MAX_PATH} names; deeper tokens are refused"),
        );
    }
    names
}

fn grants(value: &Value<'_, '_>) -> Vec<GrantMark> {
    let mut marks = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::GRANT) else {
            continue;
        };
        let path = fields
            .get("path")
            .map(|v| claim_path(&v))
            .unwrap_or_default();
        let form = fields.get("form").and_then(|v| v.word(&FORMS));
        let mut map = Vec::new();
        for (key, grant) in fields
            .get("map")
            .and_then(|v| v.entries())
            .unwrap_or_default()
        {
            // GR-5: such a value is split before it is compared, so it could never match.
            if form == Some(GrantForm::SpaceString)
                && (key.name.is_empty() || key.name.contains(' '))
            {
                grant.error(
                    codes::NOT_ALLOWED,
                    "a value with a space never matches under `form: space_string`",
                    "write the single words, each with its grant",
                );
            }
            map.extend(
                grant
                    .word(&GRANTS)
                    .map(|g| (Box::from(key.name.as_str()), g)),
            );
        }
        marks.extend(form.map(|form| GrantMark { path, form, map }));
    }
    marks
}

fn claims(value: &Value<'_, '_>) -> Vec<ClaimDeclaration> {
    let mut claims = Vec::new();
    for (key, entry) in value.entries().unwrap_or_default() {
        let name = key.name.as_str();
        if RESERVED_CLAIMS.contains(&name) {
            entry.error(
                codes::RESERVED_CLAIM,
                format!("`{name}` is a name that policies know already"),
                "declare the claim under another name, such as `my_…`",
            );
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.bytes().all(plain) {
            entry.error(
                codes::BAD_NAME,
                "a claim's name starts with a letter and has letters, digits, `_` and `-`",
                "choose a plain name; the token's own spelling goes into `path`",
            );
        }
        let Some(fields) = entry.fields(&document::CLAIM) else {
            continue;
        };
        let path = fields
            .get("path")
            .map(|v| claim_path(&v))
            .unwrap_or_default();
        let kind = fields.get("type").and_then(|v| v.word(&KINDS));
        claims.extend(kind.map(|kind| ClaimDeclaration {
            name: name.into(),
            path,
            kind,
        }));
    }
    claims
}

/// RFC 3339, or seconds since the epoch.
fn instant(value: &Value<'_, '_>) -> Option<i64> {
    if matches!(value.node.kind, Kind::Int(_)) {
        return value.integer(0..=LAST_INSTANT);
    }
    let text = value.text()?;
    let instant = parse_instant(text);
    if instant.is_none() {
        value.error(
            codes::BAD_INSTANT,
            "not an instant",
            "write RFC 3339, `2027-01-31T00:00:00Z`, or whole seconds since 1970",
        );
    }
    instant
}

/// `YYYY-MM-DDThh:mm:ss` with `Z` or an offset (RFC 3339 section 5.6), without fractions.
fn parse_instant(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let sign = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|b| wanted.contains(b));
    let marks =
        sign(4, b"-") && sign(7, b"-") && sign(10, b"Tt") && sign(13, b":") && sign(16, b":");
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let offset = match text.get(19..)? {
        "Z" | "z" => 0,
        zone if zone.len() == 6 && sign(19, b"+-") && sign(22, b":") => {
            let (hours, minutes) = (number(20..22)?, number(23..25)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if zone.starts_with('-') {
                -offset
            } else {
                offset
            }
        }
        _ => return None,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    let good = marks
        && (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !good {
        return None;
    }
    // Days since the epoch in the proleptic Gregorian calendar, years beginning in March so that
    // the leap day is the last of a year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

#[cfg(test)]
mod tests {
    use super::parse_instant;

    #[test]
    fn instants_are_rfc_3339() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2027-01-31T00:00:00+01:00", Some(1_801_350_000)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799)),
            ("2001-02-29T00:00:00Z", None),
            ("2027-13-01T00:00:00Z", None),
            ("2027-01-31", None),
            ("2027-01-31T00:00:00", None),
            ("2027-01-31 00:00:00Z", None),
            ("2027-01-31T00:00:00+0100", None),
            ("+027-01-31T00:00:00Z", None),
            ("2027-01-31T24:00:00Z", None),
        ];
        for (text, instant) in cases {
            assert_eq!(parse_instant(text), instant, "{text}");
        }
    }
}
