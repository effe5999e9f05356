//! Signatures of cards: checking those that came, making ours (A2A 1.0 section 8.4, RFC 7515).
//!
//! Keys are the caller's: here it is only known which bytes a signature covers.

use super::canonical::{Canonical, canonical};
use super::read::{Member, Node, find, read};
use crate::a2a::strict_json::parse_value;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// More signatures than any rotation needs; it bounds the work that a card can ask for.
const MAX_SIGNATURES: usize = 8;
/// Largest decoded protected header in bytes.
const MAX_HEADER: usize = 4096;
const HEADER_DEPTH: usize = 8;

/// The protected header of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// `alg`.
    pub alg: Box<str>,
    /// `kid`.
    pub kid: Option<Box<str>>,
    /// `jku`: a hint that the signer gives and nobody has vouched for.
    pub jku: Option<Box<str>>,
}

/// Why a signature does not count; the later, the further it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BadSignature {
    /// `signatures` or a protected header cannot be read, or demands what is not understood.
    Unreadable,
    /// The card has no canonical form of 1.0, so nothing can be a signature over it.
    NotCanonical,
    /// No trusted key has its `kid`.
    UnknownKey,
    /// Its algorithm is not allowed, or not its key's.
    Algorithm,
    /// It does not fit the card.
    Mismatch,
}

impl BadSignature {
    /// For records and metrics.
    pub fn label(self) -> &'static str {
        match self {
            BadSignature::Unreadable => "signature_unreadable",
            BadSignature::NotCanonical => "signature_not_canonical",
            BadSignature::UnknownKey => "signature_unknown_key",
            BadSignature::Algorithm => "signature_algorithm",
            BadSignature::Mismatch => "signature_mismatch",
        }
    }
}

/// What a card's signatures are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attested {
    /// It has none.
    Unsigned,
    /// None of them counts; the reason of the one that got furthest.
    Bad(BadSignature),
    /// At least one fits.
    Good {
        /// Over the form of the specification (S).
        spec: bool,
        /// Over the form without anything empty (E).
        stripped: bool,
        /// The key of the first that fits.
        kid: Box<str>,
    },
}

impl Attested {
    /// For records and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Attested::Unsigned => "unsigned",
            Attested::Bad(why) => why.label(),
            Attested::Good {
                spec: true,
                stripped: false,
                ..
            } => "verified_spec",
            Attested::Good {
                spec: false,
                stripped: true,
                ..
            } => "verified_stripped",
            Attested::Good { .. } => "verified",
        }
    }

    /// Whether the card is vouched for.
    pub fn is_good(&self) -> bool {
        match self {
            Attested::Good { .. } => true,
            Attested::Unsigned | Attested::Bad(_) => false,
        }
    }
}

/// Whether a signature (last) fits a signing input by a trusted key for a header.
pub type Check<'c> = &'c dyn Fn(&Protected, &[u8], &[u8]) -> Result<(), BadSignature>;

/// Tries every signature of a card over both forms.
pub fn attest(card: &[u8], check: Check<'_>) -> Attested {
    let members = match read(card) {
        Ok(Node::Object(members)) => members,
        Ok(Node::Array(_) | Node::Text(..) | Node::Scalar(_)) | Err(_) => {
            return Attested::Bad(BadSignature::Unreadable);
        }
    };
    let signatures = match find(&members, "signatures") {
        None => return Attested::Unsigned,
        Some(Node::Array(signatures)) if signatures.is_empty() => return Attested::Unsigned,
        Some(Node::Array(signatures)) => signatures,
        Some(Node::Object(_) | Node::Text(..) | Node::Scalar(_)) => {
            return Attested::Bad(BadSignature::Unreadable);
        }
    };
    let Ok(forms) = canonical(&members) else {
        return Attested::Bad(BadSignature::NotCanonical);
    };
    let mut worst = BadSignature::Unreadable;
    let (mut spec, mut stripped, mut by) = (false, false, None);
    for signature in signatures.iter().take(MAX_SIGNATURES) {
        match fits(signature, &forms, check) {
            Ok((fits_spec, fits_stripped, kid)) => {
                spec |= fits_spec;
                stripped |= fits_stripped;
                by = by.or(Some(kid));
            }
            Err(why) => worst = worst.max(why),
        }
    }
    match by {
        Some(kid) => Attested::Good {
            spec,
            stripped,
            kid,
        },
        None => Attested::Bad(worst),
    }
}

/// The `jku` of each signature, as they stand.
pub fn named_key_sets(card: &[u8]) -> Vec<Box<str>> {
    let Ok(Node::Object(members)) = read(card) else {
        return Vec::new();
    };
    let Some(Node::Array(signatures)) = find(&members, "signatures") else {
        return Vec::new();
    };
    let signatures = signatures.iter().take(MAX_SIGNATURES);
    signatures
        .filter_map(|signature| parts(signature).ok()?.0.jku)
        .collect()
}

/// Which forms a signature fits, and by which key.
fn fits(
    signature: &Node<'_>,
    forms: &Canonical,
    check: Check<'_>,
) -> Result<(bool, bool, Box<str>), BadSignature> {
    let (header, protected, signature) = parts(signature)?;
    let kid = header.kid.clone().ok_or(BadSignature::UnknownKey)?;
    let over = |form: &str| {
        check(
            &header,
            signing_input(protected, form).as_bytes(),
            &signature,
        )
    };
    let spec = over(&forms.spec);
    if forms.spec == forms.stripped {
        return spec.map(|()| (true, true, kid));
    }
    match (spec, over(&forms.stripped)) {
        (Err(why), Err(_)) => Err(why),
        (spec, stripped) => Ok((spec.is_ok(), stripped.is_ok(), kid)),
    }
}

/// Header, its encoded form, and the signature's bytes.
fn parts<'n>(signature: &'n Node<'_>) -> Result<(Protected, &'n str, Vec<u8>), BadSignature> {
    let Node::Object(members) = signature else {
        return Err(BadSignature::Unreadable);
    };
    let text = |name| match find(members, name) {
        Some(Node::Text(_, text)) => Ok(text.as_ref()),
        Some(_) | None => Err(BadSignature::Unreadable),
    };
    let decode = |text: &str| {
        URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| BadSignature::Unreadable)
    };
    let protected = text("protected")?;
    let header = decode(protected)?;
    if header.len() > MAX_HEADER {
        return Err(BadSignature::Unreadable);
    }
    let header = parse_value(&header, HEADER_DEPTH).map_err(|_| BadSignature::Unreadable)?;
    // Nothing that must be understood is (RFC 7515 section 4.1.11, RFC 7797).
    if header.get("crit").is_some() || header.get("b64").is_some() {
        return Err(BadSignature::Unreadable);
    }
    let member = |name| match header.get(name) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.into())),
            None => Err(BadSignature::Unreadable),
        },
    };
    Ok((
        Protected {
            alg: member("alg")?.ok_or(BadSignature::Unreadable)?,
            kid: member("kid")?,
            jku: member("jku")?,
        },
        protected,
        decode(text("signature")?)?,
    ))
}

fn signing_input(protected: &str, form: &str) -> String {
    format!("{protected}.{}", URL_SAFE_NO_PAD.encode(form))
}

/// How published cards are signed.
#[derive(Clone, Copy)]
pub struct Signer<'a> {
    /// The protected header, in base64url.
    pub protected: &'a str,
    /// The signature over a signing input.
    pub sign: &'a dyn Fn(&[u8]) -> Vec<u8>,
}

/// The `signatures` of a card of 1.0: one that fits both forms where they are the same, else one
/// for each. `None` when the card has no canonical form.
pub(super) fn sign(card: &[Member<'_>], signer: &Signer<'_>) -> Option<String> {
    let forms = canonical(card).ok()?;
    let one = |form: &str| {
        let signature = (signer.sign)(signing_input(signer.protected, form).as_bytes());
        format!(
            r#"{{"protected":"{}","signature":"{}"}}"#,
            signer.protected,
            URL_SAFE_NO_PAD.encode(signature)
        )
    };
    Some(if forms.spec == forms.stripped {
        format!("[{}]", one(&forms.spec))
    } else {
        format!("[{},{}]", one(&forms.spec), one(&forms.stripped))
    })
}
