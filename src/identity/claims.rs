//! The claims of a payload whose signature is good (CL-1 to CL-14, FM-7, IS-4, SC-1).

use super::accept::Refusals;
use super::confirmation::Confirmation;
use super::fault::{self, TokenFault};
use super::issuer::IssuerConfig;
use super::profile::{Named, Subject};
use super::{kind, spiffe};
use crate::a2a::strict_json::Value;

/// Largest NumericDate (CL-14): the last second of the year 9999.
const LAST_INSTANT: i64 = 253_402_300_799;
/// The first second of 2024: a clock before it was never set (CL-13).
const FIRST_NOW: i64 = 1_704_067_200;
/// Most elements of `aud` (CL-2).
const MAX_AUDIENCES: usize = 16;
/// Longest `sub`, `jti` and client in characters (CL-7, CL-8).
pub(super) const MAX_NAME: usize = 255;
/// What acceptance takes from a payload.
#[derive(Default)]
pub(super) struct Claims<'v> {
    pub(super) subject: &'v str,
    pub(super) client: Option<&'v str>,
    pub(super) token_id: Option<&'v str>,
    pub(super) times: Times,
    pub(super) confirmation: Confirmation,
}

/// Instants in seconds, rounded against the holder (CL-14).
#[derive(Default, Clone, Copy)]
pub(super) struct Times {
    pub(super) expires: i64,
    pub(super) not_before: Option<i64>,
    pub(super) issued: Option<i64>,
}

/// CL-13: refuses everything while nobody has set the clock.
pub(super) fn judge_clock(now: i64) -> Result<(), TokenFault> {
    if now < FIRST_NOW {
        return Err(fault::CLOCK_NOT_SET);
    }
    Ok(())
}

/// `iss` as it stands: a string of printable characters (CL-1).
pub(super) fn issuer(payload: &Value) -> Result<&str, TokenFault> {
    let issuer = payload
        .get("iss")
        .and_then(Value::as_str)
        .ok_or(fault::ISSUER)?;
    if has_control(issuer) {
        return Err(fault::CONTROL_CHARACTER);
    }
    Ok(issuer)
}

/// Judges everything that a payload says about whom it is for, when, and whose it is.
pub(super) fn judge<'v, R: Refusals>(
    payload: &'v Value,
    config: &IssuerConfig,
    now: i64,
    refusals: &mut R,
) -> Result<Claims<'v>, TokenFault> {
    let confirmation = Confirmation::read(payload, refusals)?;
    kind::judge(payload, config, refusals)?;
    audience(payload, config, refusals)?;
    let times = times(payload, config, refusals)?;
    if let Some(times) = &times {
        judge_times(times, config, now, refusals)?;
    }
    let rules = config.profile.rules();
    let subject = subject(payload, config, refusals)?;
    let token_id = token_id(payload, &rules.token_id, refusals)?;
    let client = client(payload, config, refusals)?;
    Ok(Claims {
        subject: subject.unwrap_or_default(),
        client,
        token_id,
        times: times.unwrap_or_default(),
        confirmation,
    })
}

/// The text of a claim that names something: 1 to 255 characters, none of them for control (FM-7).
/// `None` when it is not there, or is no such text, which was refused then.
fn text<'v, R: Refusals>(
    payload: &'v Value,
    claim: &str,
    fault: TokenFault,
    refusals: &mut R,
) -> Result<Option<&'v str>, TokenFault> {
    let Some(value) = payload.get(claim) else {
        return Ok(None);
    };
    let fault = match value.as_str() {
        Some(text) if has_control(text) => fault::CONTROL_CHARACTER,
        Some(text) if !text.is_empty() && text.chars().nth(MAX_NAME).is_none() => {
            return Ok(Some(text));
        }
        Some(_) | None => fault,
    };
    refusals.refuse(fault).map(|()| None)
}

/// CL-7.
fn subject<'v, R: Refusals>(
    payload: &'v Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<Option<&'v str>, TokenFault> {
    if payload.get("sub").is_none() {
        return refusals.refuse(fault::SUBJECT).map(|()| None);
    }
    let subject = text(payload, "sub", fault::SUBJECT, refusals)?;
    match config.profile.rules().subject {
        Subject::Text => {}
        Subject::SpiffeId => {
            let domain = config.trust_domain.as_deref().unwrap_or_default();
            if subject.is_some_and(|id| !spiffe::is_workload_of(id, domain)) {
                refusals.refuse(fault::SPIFFE_ID)?;
            }
        }
    }
    Ok(subject)
}

/// CL-8. A `jti` is well formed wherever it stands.
fn token_id<'v, R: Refusals>(
    payload: &'v Value,
    rule: &Named,
    refusals: &mut R,
) -> Result<Option<&'v str>, TokenFault> {
    let mut found = None;
    for claim in rule.claims {
        let id = text(payload, claim, fault::TOKEN_ID, refusals)?;
        found = found.or(id);
    }
    let there = rule.claims.iter().any(|claim| payload.get(claim).is_some());
    if rule.required && !there {
        refusals.refuse(fault::TOKEN_ID)?;
    }
    Ok(found)
}

/// CL-2: one element equal to a configured audience, byte for byte. Where the profile lets an entry
/// name its clients instead, an `aud` would match nothing, and is refused.
fn audience<R: Refusals>(
    payload: &Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<(), TokenFault> {
    let may = config.profile.rules().clients_for_audience;
    let by_clients = may && config.audiences.is_empty() && !config.clients.is_empty();
    let elements = match payload.get("aud") {
        None if by_clients => return Ok(()),
        None => return refusals.refuse(fault::NO_AUDIENCE),
        Some(Value::Array(elements)) => elements.as_slice(),
        Some(value) => std::slice::from_ref(value),
    };
    if elements.is_empty()
        || elements.len() > MAX_AUDIENCES
        || elements.iter().any(|element| element.as_str().is_none())
    {
        return refusals.refuse(fault::AUDIENCE_FORM);
    }
    let mut texts = elements.iter().filter_map(Value::as_str);
    if texts.clone().any(has_control) {
        return refusals.refuse(fault::CONTROL_CHARACTER);
    }
    if !texts.any(|text| config.audiences.iter().any(|ours| **ours == *text)) {
        return refusals.refuse(fault::AUDIENCE);
    }
    Ok(())
}

/// `None` when there is no end to judge the other instants by; that was refused then.
fn times<R: Refusals>(
    payload: &Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<Option<Times>, TokenFault> {
    let mut date = |claim, round: Round| match payload.get(claim) {
        None => Ok(None),
        Some(value) => match value.as_number().and_then(|n| numeric_date(n, round)) {
            Some(instant) => Ok(Some(instant)),
            None => refusals.refuse(fault::NOT_A_DATE).map(|()| None),
        },
    };
    let expires = date("exp", Round::Down)?;
    let not_before = date("nbf", Round::Up)?;
    let issued = date("iat", Round::Up)?;
    if payload.get("exp").is_none() {
        refusals.refuse(fault::NO_EXPIRY)?;
    }
    if payload.get("iat").is_none() && config.profile.rules().issued_at {
        refusals.refuse(fault::NO_ISSUED_AT)?;
    }
    Ok(expires.map(|expires| Times {
        expires,
        not_before,
        issued,
    }))
}

fn judge_times<R: Refusals>(
    times: &Times,
    config: &IssuerConfig,
    now: i64,
    refusals: &mut R,
) -> Result<(), TokenFault> {
    let expires = times.expires;
    if let Err(fault) = judge_validity(times, leeway(config), now) {
        refusals.refuse(fault)?;
    }
    let longest = i64::try_from(config.max_lifetime).unwrap_or(i64::MAX);
    if let Some(issued) = times.issued {
        if now.saturating_add(leeway(config)) < issued {
            refusals.refuse(fault::ISSUED_IN_FUTURE)?;
        }
        if issued > expires {
            refusals.refuse(fault::ISSUED_AFTER_EXPIRY)?;
        }
        if expires.saturating_sub(issued) > longest {
            refusals.refuse(fault::LIFETIME)?;
        }
    }
    if expires.saturating_sub(now) > longest.saturating_add(leeway(config)) {
        refusals.refuse(fault::LIFETIME)?;
    }
    if times.not_before.is_some_and(|start| start >= expires) {
        refusals.refuse(fault::NEVER_VALID)?;
    }
    // Nothing says that a token without `iat` is younger than the cut-off.
    if let Some(cutoff) = config.not_before
        && times.issued.is_none_or(|issued| issued < cutoff)
    {
        refusals.refuse(fault::ISSUED_TOO_EARLY)?;
    }
    Ok(())
}

/// CL-13, in seconds.
pub(super) fn leeway(config: &IssuerConfig) -> i64 {
    // The configuration bounds it to 60; a larger one would be no leeway but a hole.
    i64::try_from(config.leeway).map_or(0, |seconds| seconds.min(60))
}

/// CL-3 and CL-4: what must hold at every use of a token.
pub(super) fn judge_validity(times: &Times, leeway: i64, now: i64) -> Result<(), TokenFault> {
    if now >= times.expires.saturating_add(leeway) {
        return Err(fault::EXPIRED);
    }
    if times
        .not_before
        .is_some_and(|start| now.saturating_add(leeway) < start)
    {
        return Err(fault::NOT_YET);
    }
    Ok(())
}

/// CL-9: the first of the profile's claims. `client_id`, `azp` and the profile's own are the same
/// thing under several names: whichever are there must be equal.
fn client<'v, R: Refusals>(
    payload: &'v Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<Option<&'v str>, TokenFault> {
    let rule = &config.profile.rules().client;
    let mut client = None;
    let mut any = None;
    let mut differ = false;
    let others = ["client_id", "azp"];
    let others = others.iter().filter(|name| !rule.claims.contains(name));
    for (claim, counts) in rule
        .claims
        .iter()
        .map(|claim| (claim, true))
        .chain(others.map(|claim| (claim, false)))
    {
        let Some(found) = text(payload, claim, fault::CLIENT, refusals)? else {
            continue;
        };
        differ |= *any.get_or_insert(found) != found;
        if counts && client.is_none() {
            client = Some(found);
        }
    }
    if differ {
        refusals.refuse(fault::CLIENTS_DIFFER)?;
    }
    if rule.required && client.is_none() {
        refusals.refuse(fault::CLIENT)?;
    }
    let listed = |client: &str| config.clients.iter().any(|known| **known == *client);
    if !config.clients.is_empty() && !client.is_some_and(listed) {
        refusals.refuse(fault::CLIENT_NOT_LISTED)?;
    }
    Ok(client)
}

/// FM-7: U+0000 to U+001F and U+007F to U+009F.
pub(super) fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// Which way a fraction goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

/// CL-14: a positive number up to the year 9999. Read from its digits: a double would round the
/// wrong way near whole seconds.
pub(super) fn numeric_date(number: &str, round: Round) -> Option<i64> {
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(at) => (&number[..at], number[at + 1..].parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let given = i64::try_from(whole.len() + fraction.len()).ok()?;
    // How many digits stand before the point once the exponent is applied.
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent);
    let mut seconds: i64 = 0;
    let mut rest = false;
    for (digit, position) in whole.bytes().chain(fraction.bytes()).zip(0..) {
        // A sign is no digit: negative numbers end here.
        let digit = i64::from(digit.checked_sub(b'0').filter(|d| *d < 10)?);
        if position < point {
            seconds = seconds * 10 + digit;
            if seconds > LAST_INSTANT {
                return None;
            }
        } else {
            rest |= digit != 0;
        }
    }
    if seconds > 0 {
        for _ in given..point {
            seconds *= 10;
            if seconds > LAST_INSTANT {
                return None;
            }
        }
    }
    match (seconds, rest) {
        (0, false) | (LAST_INSTANT, true) => None,
        (seconds, true) if round == Round::Up => Some(seconds + 1),
        (seconds, _) => Some(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::{Round, numeric_date};

    #[test]
    fn dates_are_read_exactly_and_rounded_against_the_holder() {
        let cases = [
            ("1", Some((1, 1))),
            ("1700000000", Some((1_700_000_000, 1_700_000_000))),
            ("1700000000.0", Some((1_700_000_000, 1_700_000_000))),
            ("1700000000.5", Some((1_700_000_000, 1_700_000_001))),
            // A double would make both of these whole.
            (
                "1700000000.00000000001",
                Some((1_700_000_000, 1_700_000_001)),
            ),
            (
                "1699999999.99999999999",
                Some((1_699_999_999, 1_700_000_000)),
            ),
            ("1.7e9", Some((1_700_000_000, 1_700_000_000))),
            ("17E+8", Some((1_700_000_000, 1_700_000_000))),
            ("17000000005e-1", Some((1_700_000_000, 1_700_000_001))),
            ("0.5", Some((0, 1))),
            ("1e-9", Some((0, 1))),
            ("253402300799", Some((253_402_300_799, 253_402_300_799))),
            ("253402300799.1", None),
            ("253402300800", None),
            ("1e300", None),
            ("0", None),
            ("0e300", None),
            ("0.000", None),
            ("-1", None),
            ("-0", None),
            ("99999999999999999999999999", None),
        ];
        for (text, expected) in cases {
            let read = numeric_date(text, Round::Down).zip(numeric_date(text, Round::Up));
            assert_eq!(read, expected, "{text}");
        }
    }
}
