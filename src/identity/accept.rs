//! [`accept`]: from a token's text to a [`Principal`], or to the rule that refuses it.
//!
//! Cheapest first, and nothing unverified outlives the signature check. `iss` only chooses an
//! entry; from then on only that entry's keys and rules count (IS-1, IS-2).

use super::claims::{self, Times};
use super::fault::{self, TokenFault};
use super::header::{self, Header};
use super::issuer::{Algorithm, IssuerConfig};
use super::keys::{EntryNote, Fixed, Key, KeySet, KeySetFault, KeySource};
use super::token::Token;
use super::{Principal, delegation, grants};
use crate::a2a::strict_json::Value;
use aws_lc_rs::digest::{SHA256, digest};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

/// The trusted issuers of one generation, with their key sets.
pub struct Issuers {
    entries: Vec<Entry>,
    by_issuer: HashMap<Box<str>, usize>,
}

/// One entry.
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) config: Arc<IssuerConfig>,
    /// Its keys, whatever they are at the moment.
    pub(super) keys: Arc<dyn KeySource>,
}

/// Something about the keys of an issuer entry that an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyNote {
    /// The document cannot be used; the entry's tokens get 503.
    Document {
        /// The entry's position.
        issuer: usize,
        /// Why.
        fault: KeySetFault,
    },
    /// One key of the document is not used.
    Entry {
        /// The entry's position.
        issuer: usize,
        /// Which key, and why.
        note: EntryNote,
    },
    /// No usable key: every token of this issuer is refused (LC-12).
    NoKey {
        /// The entry's position.
        issuer: usize,
    },
    /// Two entries have the same key (IS-3): whoever holds it can speak for both.
    Shared {
        /// The earlier entry's position.
        issuer: usize,
        /// The later entry's position.
        other: usize,
    },
}

/// What another key set could change about a refusal (LC-8, LC-9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeks {
    /// The chosen entry's position.
    pub issuer: usize,
    /// The key that its set does not have; `None` while it has no set at all.
    pub kid: Option<Box<str>>,
}

/// A refused token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub fault: TokenFault,
    /// The configured name of the entry that the token's `iss` chose, if it chose one. The token
    /// may still be forged.
    pub issuer: Option<Arc<str>>,
    /// Set when nothing but a key is missing: header and claims would pass.
    pub seeks: Option<Seeks>,
}

/// Where refusals go: acceptance stops at the first, an explanation goes on.
pub(super) trait Refusals {
    /// Takes a refusal; an error stops the judgement.
    fn refuse(&mut self, fault: TokenFault) -> Result<(), TokenFault>;
}

/// Stops at the first refusal.
pub(super) struct First;

impl Refusals for First {
    fn refuse(&mut self, fault: TokenFault) -> Result<(), TokenFault> {
        Err(fault)
    }
}

impl Issuers {
    /// The entries, in their order, with somebody else's keys; `keys` has one for each.
    pub fn with_keys(
        configs: &[Arc<IssuerConfig>],
        keys: impl IntoIterator<Item = Arc<dyn KeySource>>,
    ) -> Issuers {
        let mut by_issuer = HashMap::new();
        let entries = configs.iter().zip(keys).enumerate();
        let entries = entries.map(|(index, (config, keys))| {
            // IS-3: the configuration refuses a second entry; the first one stays the only one.
            by_issuer.entry(config.issuer.clone()).or_insert(index);
            Entry {
                name: Arc::from(&*config.name),
                config: Arc::clone(config),
                keys,
            }
        });
        let entries = entries.collect();
        Issuers { entries, by_issuer }
    }

    /// Compiles the entries, in their order, with the keys of their files, and tells what is wrong
    /// with those. An entry whose document cannot be used, or is elsewhere, stays without keys.
    pub fn compile(configs: &[Arc<IssuerConfig>]) -> (Issuers, Vec<KeyNote>) {
        let mut notes = Vec::new();
        let mut sets: Vec<Option<Arc<KeySet>>> = Vec::with_capacity(configs.len());
        for (issuer, config) in configs.iter().enumerate() {
            let Some(file) = config.keys.file() else {
                sets.push(None);
                continue;
            };
            let keys = match KeySet::parse(&file.content, config.rsa_alg) {
                Ok((keys, unusable)) => {
                    notes.extend(
                        unusable
                            .into_iter()
                            .map(|note| KeyNote::Entry { issuer, note }),
                    );
                    if keys.keys().is_empty() {
                        notes.push(KeyNote::NoKey { issuer });
                    }
                    Some(Arc::new(keys))
                }
                Err(fault) => {
                    notes.push(KeyNote::Document { issuer, fault });
                    None
                }
            };
            let shares = |(theirs, entry): (&Option<Arc<KeySet>>, &Arc<IssuerConfig>)| {
                let both = keys.as_ref().zip(theirs.as_ref());
                !entry.shares_keys_with(config)
                    && both.is_some_and(|(keys, theirs)| keys.shares_with(theirs))
            };
            let shared = sets.iter().zip(configs).position(shares);
            notes.extend(shared.map(|earlier| KeyNote::Shared {
                issuer: earlier,
                other: issuer,
            }));
            sets.push(keys);
        }
        let fixed = |set| Arc::new(Fixed(set)) as Arc<dyn KeySource>;
        let issuers = Issuers::with_keys(configs, sets.into_iter().map(fixed));
        (issuers, notes)
    }

    /// The entry for exactly this `iss` (IS-1).
    pub(super) fn chosen(&self, issuer: &str) -> Option<(usize, &Entry)> {
        let index = *self.by_issuer.get(issuer)?;
        self.entries.get(index).map(|entry| (index, entry))
    }

    /// The entry at a position.
    pub(super) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// Every configured `iss`.
    pub(super) fn configured(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.config.issuer)
    }
}

/// Judges a token. `now` is in seconds since the epoch.
///
/// # Errors
/// The first rule that refuses it.
pub fn accept(issuers: &Issuers, token: &str, now: i64) -> Result<Principal, Refused> {
    let unknown = |fault| Refused {
        fault,
        issuer: None,
        seeks: None,
    };
    claims::judge_clock(now).map_err(unknown)?;
    let token = Token::parse(token).map_err(unknown)?;
    let header = header::judge(&token.header, &mut First).map_err(unknown)?;
    let issuer = claims::issuer(&token.payload).map_err(unknown)?;
    let (index, entry) = issuers
        .chosen(issuer)
        .ok_or_else(|| unknown(fault::UNKNOWN_ISSUER))?;
    judge(&token, &header, index, entry, now, &mut First).map_err(|fault| Refused {
        fault,
        issuer: Some(Arc::clone(&entry.name)),
        seeks: seeks(fault, &token, &header, index, entry, now),
    })
}

/// LC-9: only what the claims do not refuse as well is worth looking for.
fn seeks(
    fault: TokenFault,
    token: &Token<'_>,
    header: &Header<'_>,
    issuer: usize,
    entry: &Entry,
    now: i64,
) -> Option<Seeks> {
    let kid = match fault {
        fault::UNKNOWN_KID => Some(header.kid?.into()),
        fault::KEYS_UNAVAILABLE => None,
        _ => return None,
    };
    claims::judge(&token.payload, &entry.config, now, &mut First).ok()?;
    Some(Seeks { issuer, kid })
}

/// Everything from the chosen entry on. With refusals that do not stop, the principal means
/// nothing.
pub(super) fn judge<R: Refusals>(
    token: &Token<'_>,
    header: &Header<'_>,
    issuer_index: usize,
    entry: &Entry,
    now: i64,
    refusals: &mut R,
) -> Result<Principal, TokenFault> {
    let config = &*entry.config;
    header::judge_for(&token.header, header, &token.payload, config, refusals)?;
    let keys = entry.keys.current();
    let signed = token.signing_input.as_bytes();
    let (thumbprint, algorithm) = match key(keys.as_deref(), header) {
        Ok(key) => {
            if !key.verifies(signed, &token.signature) {
                refusals.refuse(fault::BAD_SIGNATURE)?;
            }
            (key.thumbprint, key.algorithm)
        }
        Err(fault) => {
            if fault == fault::UNKNOWN_KID {
                // A refusal takes as long as that of a bad signature, so that no clock tells which
                // names there are. The result is nobody's: no key is tried in another's place.
                let other = keys.as_ref().zip(header.alg);
                let other = other.and_then(|(keys, alg)| keys.any_for(alg));
                black_box(other.map(|key| key.verifies(signed, &token.signature)));
            }
            refusals.refuse(fault)?;
            ([0; 32], config.rsa_alg)
        }
    };
    let signed = Signed {
        key: thumbprint,
        algorithm,
        signing_input: sha256(signed),
    };
    let from = (issuer_index, &entry.name, config);
    whose(&token.payload, from, signed, now, refusals)
}

/// What verified a token.
pub(super) struct Signed {
    /// RFC 7638 thumbprint of the key.
    pub(super) key: [u8; 32],
    pub(super) algorithm: Algorithm,
    /// SHA-256 of the signing input.
    pub(super) signing_input: [u8; 32],
}

/// Whose a payload is, and how far it reaches, once its signature is good. `from` is the issuer
/// entry: its position, name and configuration.
pub(super) fn whose<R: Refusals>(
    payload: &Value,
    from: (usize, &Arc<str>, &IssuerConfig),
    signed: Signed,
    now: i64,
    refusals: &mut R,
) -> Result<Principal, TokenFault> {
    let (issuer_index, name, config) = from;
    let claims = claims::judge(payload, config, now, refusals)?;
    let actors = delegation::actors(payload, &config.issuer, refusals)?;
    Ok(Principal {
        issuer_index,
        issuer: Arc::clone(name),
        subject: claims.subject.into(),
        client: claims.client.map(Box::from),
        token_id: claims.token_id.map(Box::from),
        session: payload.get("sid").and_then(Value::as_str).map(Box::from),
        scopes: grants::scopes(payload, config.profile.rules().scopes),
        grant: grants::reach(payload, config, !actors.is_empty()),
        actors,
        claims: config
            .claims
            .iter()
            .map(|declaration| grants::state(payload, declaration))
            .collect(),
        expires: claims.times.expires,
        not_before: claims.times.not_before,
        issued: claims.times.issued,
        key: signed.key,
        algorithm: signed.algorithm,
        signing_input: signed.signing_input,
        confirmation: claims.confirmation,
    })
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// One lookup, one key, one algorithm (KY-1, KY-2, KY-5).
pub(super) fn key<'k>(
    keys: Option<&'k KeySet>,
    header: &Header<'_>,
) -> Result<&'k Key, TokenFault> {
    let keys = keys.ok_or(fault::KEYS_UNAVAILABLE)?;
    let alg = header.alg.ok_or(fault::ALG_NOT_LISTED)?;
    match header.kid {
        Some(kid) => {
            let key = keys.named(kid).ok_or(fault::UNKNOWN_KID)?;
            key.takes(alg).then_some(key).ok_or(fault::ALG_OF_KEY)
        }
        None => keys.only(alg).ok_or(fault::NO_SINGLE_KEY),
    }
}

/// Judges again what changes while a token is remembered (CA-2): its times, and whether the key
/// that verified it is still its issuer's. `now` is in seconds since the epoch.
///
/// # Errors
/// The rule that refuses it now.
pub fn still_good(issuers: &Issuers, principal: &Principal, now: i64) -> Result<(), TokenFault> {
    claims::judge_clock(now)?;
    let entry = issuers
        .entries
        .get(principal.issuer_index)
        .filter(|entry| entry.name == principal.issuer)
        .ok_or(fault::UNKNOWN_ISSUER)?;
    let times = Times {
        expires: principal.expires,
        not_before: principal.not_before,
        issued: principal.issued,
    };
    claims::judge_validity(&times, claims::leeway(&entry.config), now)?;
    let keys = entry.keys.current().ok_or(fault::KEYS_UNAVAILABLE)?;
    // The algorithm belongs to the key: under another one it is not the key that verified (KY-5).
    match keys.takes(&principal.key, principal.algorithm) {
        true => Ok(()),
        false => Err(fault::KEY_GONE),
    }
}
