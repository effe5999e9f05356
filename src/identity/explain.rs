//! [`explain`]: why a token is accepted or not, in words for an operator.
//!
//! It runs the very rules of [`super::accept`](mod@super::accept), going on past the first refusal
//! as far as the token can still be read. It says what the token holds, cut short and escaped, and
//! never the token itself.

mod fix;

use super::accept::{self, Entry, Issuers, Refusals};
use super::fault::{self, TokenFault};
use super::issuer::Grant;
use super::token::Token;
use super::{Confirmation, Principal, claims, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// One thing that acceptance found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule behind it, such as `HD-5`.
    pub rule: &'static str,
    /// Whether the token is refused for it.
    pub refuses: bool,
    /// What was found, and how to mend it where it refuses.
    pub text: String,
}

/// What a refusal is explained with.
pub(super) struct Scene<'a> {
    pub(super) token: Option<&'a Token<'a>>,
    pub(super) entry: Option<&'a Entry>,
    pub(super) issuers: &'a Issuers,
    /// Seconds since the epoch.
    pub(super) now: i64,
}

/// Collects every refusal.
#[derive(Default)]
struct Every(Vec<TokenFault>);

impl Refusals for Every {
    fn refuse(&mut self, fault: TokenFault) -> Result<(), TokenFault> {
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
        Ok(())
    }
}

/// Explains a token; it is accepted exactly when no finding refuses. `now` is in seconds since
/// the epoch.
pub fn explain(issuers: &Issuers, token: &str, now: i64) -> Vec<Finding> {
    let mut every = Every::default();
    every.0.extend(claims::judge_clock(now).err());
    let mut scene = Scene {
        token: None,
        entry: None,
        issuers,
        now,
    };
    let token = match Token::parse(token) {
        Ok(token) => token,
        Err(fault) => {
            every.0.push(fault);
            return refusals(&every, &scene);
        }
    };
    scene.token = Some(&token);
    let mut good = Vec::new();
    // `Every` never stops a judgement, so an error here cannot come; if one did, it would be told.
    let judged = header::judge(&token.header, &mut every).and_then(|header| {
        let issuer = claims::issuer(&token.payload)?;
        let (index, entry) = issuers.chosen(issuer).ok_or(fault::UNKNOWN_ISSUER)?;
        scene.entry = Some(entry);
        good.push(finding(
            "IS-1",
            format!("`iss` chooses the issuer entry `{}`", entry.name),
        ));
        let keys = entry.keys.current();
        let key = accept::key(keys.as_deref(), &header);
        let principal = accept::judge(&token, &header, index, entry, now, &mut every)?;
        if let (Ok(key), false) = (key, every.0.contains(&fault::BAD_SIGNATURE)) {
            let name = key
                .kid
                .as_deref()
                .map_or("without `kid`".into(), fix::quoted);
            good.push(finding(
                "KY-1",
                format!(
                    "the signature is good: {} with the key {name}",
                    fix::alg(key.algorithm)
                ),
            ));
        }
        Ok(principal)
    });
    let mut findings = good;
    match judged {
        Ok(principal) if every.0.is_empty() => findings.extend(accepted(&principal, now)),
        Ok(_) => {}
        Err(fault) => every.0.push(fault),
    }
    findings.extend(refusals(&every, &scene));
    findings
}

fn finding(rule: &'static str, text: String) -> Finding {
    Finding {
        rule,
        refuses: false,
        text,
    }
}

fn refusals(every: &Every, scene: &Scene<'_>) -> Vec<Finding> {
    let told = |fault: &TokenFault| Finding {
        rule: fault.rule,
        refuses: true,
        text: fix::words(*fault, scene),
    };
    every.0.iter().map(told).collect()
}

fn accepted(principal: &Principal, now: i64) -> Vec<Finding> {
    let left = principal.expires.saturating_sub(now);
    let until = if left >= 0 {
        format!("it expires in {left} s")
    } else {
        format!("it expired {} s ago and still passes by leeway", -left)
    };
    let client = match &principal.client {
        Some(client) => format!(" through the client {}", fix::quoted(client)),
        None => String::new(),
    };
    let reach = match principal.grant {
        Some(Grant::Agent) => "its grant is `agent`: it may call agents, as policies allow",
        Some(Grant::Full) => {
            "its grant is `full`: agents, the rest of the backend, and the admin surface"
        }
        None => {
            "it has no grant, so it reaches nothing and every request gets 403: give it a claim \
             value that the issuer's `grants` name, or map one that it has"
        }
    };
    let caller = format!("the caller is {}{client}", fix::quoted(&principal.subject));
    let mut findings = vec![
        finding("CL-7", caller),
        finding("CL-3", until),
        finding("GR-1", reach.to_owned()),
    ];
    if let Some(actor) = principal.actors.first() {
        let chain: Vec<String> = principal
            .actors
            .iter()
            .map(|actor| fix::quoted(&actor.subject))
            .collect();
        let foreign = match &actor.issuer {
            Some(issuer) => format!(
                ", of the issuer {}, so that no rule can compare its name",
                fix::quoted(issuer)
            ),
            None => String::new(),
        };
        findings.push(finding(
            "GR-8",
            format!(
                "it is delegated: {} acts for the caller{foreign}; the grant is `agent` at most, unless the entry says `delegated_full`; the chain is {}",
                fix::quoted(&actor.subject),
                chain.join(", ")
            ),
        ));
    }
    findings.extend(needs(&principal.confirmation));
    findings
}

/// What every request with the token must show beside it.
fn needs(confirmation: &Confirmation) -> impl Iterator<Item = Finding> {
    let certificate = confirmation.certificate.map(|print| {
        let text = format!(
            "it is bound to a client certificate: it is accepted only on a TLS connection that was \
             made with the certificate whose SHA-256 is `{}` (base64url), so the listener needs \
             `client_ca`",
            URL_SAFE_NO_PAD.encode(print)
        );
        finding("SC-2", text)
    });
    let key = confirmation.key.map(|print| {
        let text = format!(
            "it is bound to a key: send it as `Authorization: DPoP`, with a new proof in the field \
             `DPoP` each time, signed by the key whose thumbprint is `{}` (`portcullis token dpop` \
             makes one)",
            URL_SAFE_NO_PAD.encode(print)
        );
        finding("SC-3", text)
    });
    certificate.into_iter().chain(key)
}
