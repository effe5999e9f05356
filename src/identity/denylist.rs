//! [`Denylist`]: tokens that are refused although they have not expired (RV-1, RV-2).
//!
//! Looked up at every request, so each kind of entry is one lookup in a table of its own. Entries
//! of one issuer never touch tokens of another (IS-5); only keys and signing inputs, which no two
//! issuers can have in common by chance, stand for themselves.

use super::fault::{self, TokenFault};
use super::{Finding, Principal};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What an entry revokes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Denied {
    /// One token, by its `jti`.
    Token {
        /// The configured name of the issuer entry.
        issuer: Box<str>,
        /// `jti`.
        id: Box<str>,
    },
    /// The tokens of a subject, and those with which it acts for others.
    Subject {
        /// The configured name of the issuer entry.
        issuer: Box<str>,
        /// `sub`.
        subject: Box<str>,
        /// Only those issued before this instant, in seconds since the epoch; a token that does
        /// not say when it was issued is one of them.
        issued_before: Option<i64>,
    },
    /// The tokens of a client.
    Client {
        /// The configured name of the issuer entry.
        issuer: Box<str>,
        /// `client_id`, or `azp` where the profile says so.
        client: Box<str>,
    },
    /// The tokens of a session.
    Session {
        /// The configured name of the issuer entry.
        issuer: Box<str>,
        /// `sid`.
        session: Box<str>,
    },
    /// The tokens that a key signed, by its RFC 7638 thumbprint, whoever publishes it.
    Key([u8; 32]),
    /// One token, by the SHA-256 of its signing input, `header.payload`: the whole token would
    /// not do, since anybody can give it a second valid signature (RV-2).
    SigningInput([u8; 32]),
}

impl Denied {
    /// The issuer entry that it is about; `None` when it stands for itself.
    pub fn issuer(&self) -> Option<&str> {
        match self {
            Denied::Token { issuer, .. }
            | Denied::Subject { issuer, .. }
            | Denied::Client { issuer, .. }
            | Denied::Session { issuer, .. } => Some(issuer),
            Denied::Key(_) | Denied::SigningInput(_) => None,
        }
    }

    /// Whether nothing that it could meet is good any more once the tokens that exist now have
    /// expired. The other kinds name who gets tokens, and go on to do so.
    pub fn ends_with_tokens(&self) -> bool {
        match self {
            Denied::Token { .. } | Denied::Session { .. } | Denied::SigningInput(_) => true,
            Denied::Subject { issued_before, .. } => issued_before.is_some(),
            Denied::Client { .. } | Denied::Key(_) => false,
        }
    }

    /// What [`Denied::kind`] may say.
    pub const KINDS: [&str; 6] = ["jti", "sub", "client_id", "sid", "key", "signing_input"];

    /// For logs, records, metrics and listings.
    pub fn kind(&self) -> &'static str {
        match self {
            Denied::Token { .. } => "jti",
            Denied::Subject { .. } => "sub",
            Denied::Client { .. } => "client_id",
            Denied::Session { .. } => "sid",
            Denied::Key(_) => "key",
            Denied::SigningInput(_) => "signing_input",
        }
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What it revokes.
    pub denied: Denied,
    /// From this second since the epoch on it has no effect; `None`: it stays.
    pub until: Option<i64>,
}

/// The entries in force, by what they name.
#[derive(Default)]
pub struct Denylist {
    issuers: HashMap<Box<str>, OfIssuer>,
    keys: HashMap<[u8; 32], i64>,
    inputs: HashMap<[u8; 32], i64>,
    entries: usize,
}

/// Entries of one issuer, each with the second from which on it has no effect.
#[derive(Default)]
struct OfIssuer {
    tokens: HashMap<Box<str>, i64>,
    subjects: HashMap<Box<str>, Vec<Cutoff>>,
    clients: HashMap<Box<str>, i64>,
    sessions: HashMap<Box<str>, i64>,
}

struct Cutoff {
    issued_before: Option<i64>,
    until: i64,
}

impl fmt::Debug for Denylist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.entries)
    }
}

impl Denylist {
    /// Indexes entries. Of two that name the same, the one that lasts longer counts.
    pub fn new<'e>(entries: impl IntoIterator<Item = &'e Denial>) -> Denylist {
        let mut list = Denylist::default();
        for entry in entries {
            list.add(entry);
        }
        list
    }

    fn add(&mut self, entry: &Denial) {
        self.entries += 1;
        let until = entry.until.unwrap_or(i64::MAX);
        let longer = |old: &mut i64| *old = until.max(*old);
        match &entry.denied {
            Denied::Token { issuer, id } => {
                let tokens = &mut self.of(issuer).tokens;
                tokens.entry(id.clone()).and_modify(longer).or_insert(until);
            }
            Denied::Subject {
                issuer,
                subject,
                issued_before,
            } => {
                let subjects = &mut self.of(issuer).subjects;
                subjects.entry(subject.clone()).or_default().push(Cutoff {
                    issued_before: *issued_before,
                    until,
                });
            }
            Denied::Client { issuer, client } => {
                let clients = &mut self.of(issuer).clients;
                let entry = clients.entry(client.clone());
                entry.and_modify(longer).or_insert(until);
            }
            Denied::Session { issuer, session } => {
                let sessions = &mut self.of(issuer).sessions;
                let entry = sessions.entry(session.clone());
                entry.and_modify(longer).or_insert(until);
            }
            Denied::Key(print) => {
                let entry = self.keys.entry(*print);
                entry.and_modify(longer).or_insert(until);
            }
            Denied::SigningInput(hash) => {
                let entry = self.inputs.entry(*hash);
                entry.and_modify(longer).or_insert(until);
            }
        }
    }

    fn of(&mut self, issuer: &str) -> &mut OfIssuer {
        self.issuers.entry(issuer.into()).or_default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Judges a verified caller; `now` is in seconds since the epoch.
    ///
    /// # Errors
    /// The kind of entry that revokes its token.
    pub fn judge(&self, principal: &Principal, now: i64) -> Result<(), TokenFault> {
        if self.is_empty() {
            return Ok(());
        }
        let holds = |until: Option<&i64>| until.is_some_and(|until| now < *until);
        if holds(self.keys.get(&principal.key)) {
            return Err(fault::REVOKED_KEY);
        }
        if holds(self.inputs.get(&principal.signing_input)) {
            return Err(fault::REVOKED_INPUT);
        }
        let Some(of) = self.issuers.get(&*principal.issuer) else {
            return Ok(());
        };
        let named = |table: &HashMap<Box<str>, i64>, name: &Option<Box<str>>| {
            name.as_ref().is_some_and(|name| holds(table.get(name)))
        };
        if named(&of.tokens, &principal.token_id) {
            return Err(fault::REVOKED_TOKEN);
        }
        let before = |cutoff| principal.issued.is_none_or(|issued| issued < cutoff);
        let cut_off = |subject: &str| {
            let mut cutoffs = of.subjects.get(subject).into_iter().flatten();
            cutoffs.any(|c| now < c.until && c.issued_before.is_none_or(before))
        };
        // Who acts now is one of the issuer's own subjects, unless its token says whose else.
        let actor = principal.actors.first();
        let actor = actor.filter(|actor| actor.issuer.is_none());
        if cut_off(&principal.subject) || actor.is_some_and(|actor| cut_off(&actor.subject)) {
            return Err(fault::REVOKED_SUBJECT);
        }
        if named(&of.clients, &principal.client) {
            return Err(fault::REVOKED_CLIENT);
        }
        if named(&of.sessions, &principal.session) {
            return Err(fault::REVOKED_SESSION);
        }
        Ok(())
    }

    /// The same in words for an operator; `None` when nothing revokes the token.
    pub fn explain(&self, principal: &Principal, now: i64) -> Option<Finding> {
        let fault = self.judge(principal, now).err()?;
        let what = match fault {
            fault::REVOKED_KEY => "the key that signed it",
            fault::REVOKED_INPUT => "the SHA-256 of its signing input",
            fault::REVOKED_TOKEN => "its `jti`",
            fault::REVOKED_SUBJECT => "its `sub`",
            fault::REVOKED_CLIENT => "its client",
            _ => "its `sid`",
        };
        let issuer: &Arc<str> = &principal.issuer;
        Some(Finding {
            rule: fault.rule,
            refuses: true,
            text: format!(
                "it is revoked: an entry of the denylist names {what} (issuer `{issuer}`); \
                 `portcullis revoke --list` shows the entries"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::principal::Actor;

    fn principal(issuer: &str) -> Principal {
        Principal {
            issuer_index: 0,
            issuer: issuer.into(),
            subject: "alice".into(),
            client: Some("console".into()),
            token_id: Some("t1".into()),
            session: Some("s1".into()),
            scopes: Vec::new(),
            actors: Vec::new(),
            grant: None,
            claims: Vec::new(),
            expires: 2_000,
            not_before: None,
            issued: Some(1_000),
            key: [7; 32],
            algorithm: crate::identity::issuer::Algorithm::Es256,
            signing_input: [9; 32],
            confirmation: Default::default(),
        }
    }

    fn judged(denied: Denied, until: Option<i64>, who: &Principal) -> Option<&'static str> {
        let list = Denylist::new(&[Denial { denied, until }]);
        list.judge(who, 1_500).err().map(|fault| fault.code)
    }

    fn kinds(issuer: &str) -> [(Denied, &'static str); 5] {
        let issuer: Box<str> = issuer.into();
        [
            (
                Denied::Token {
                    issuer: issuer.clone(),
                    id: "t1".into(),
                },
                "revoked_token",
            ),
            (
                Denied::Subject {
                    issuer: issuer.clone(),
                    subject: "alice".into(),
                    issued_before: None,
                },
                "revoked_subject",
            ),
            (
                Denied::Subject {
                    issuer: issuer.clone(),
                    subject: "alice".into(),
                    issued_before: Some(1_001),
                },
                "revoked_subject",
            ),
            (
                Denied::Client {
                    issuer: issuer.clone(),
                    client: "console".into(),
                },
                "revoked_client",
            ),
            (
                Denied::Session {
                    issuer,
                    session: "s1".into(),
                },
                "revoked_session",
            ),
        ]
    }

    #[test]
    fn each_kind_revokes_at_its_own_issuer_only_and_until_its_end() {
        for (denied, code) in kinds("corp") {
            assert_eq!(judged(denied.clone(), None, &principal("corp")), Some(code));
            assert_eq!(judged(denied.clone(), None, &principal("partner")), None);
            assert_eq!(
                judged(denied.clone(), Some(1_501), &principal("corp")),
                Some(code)
            );
            assert_eq!(judged(denied, Some(1_500), &principal("corp")), None);
        }
        let key = Denied::Key([7; 32]);
        assert_eq!(judged(key, None, &principal("corp")), Some("revoked_key"));
        let input = Denied::SigningInput([9; 32]);
        assert_eq!(
            judged(input, None, &principal("corp")),
            Some("revoked_signing_input")
        );
    }

    #[test]
    fn a_cutoff_leaves_what_was_issued_at_it_or_later() {
        let cutoff = |at| Denied::Subject {
            issuer: "corp".into(),
            subject: "alice".into(),
            issued_before: Some(at),
        };
        assert_eq!(judged(cutoff(1_000), None, &principal("corp")), None);
        let undated = Principal {
            issued: None,
            ..principal("corp")
        };
        assert_eq!(
            judged(cutoff(1_000), None, &undated),
            Some("revoked_subject")
        );
    }

    #[test]
    fn a_revoked_subject_does_not_act_for_others_either() {
        let acting = |actors: &[(&str, Option<&str>)]| Principal {
            subject: "bob".into(),
            actors: actors
                .iter()
                .map(|(subject, issuer)| Actor {
                    subject: (*subject).into(),
                    issuer: issuer.map(Box::from),
                })
                .collect(),
            ..principal("corp")
        };
        let alice = Denied::Subject {
            issuer: "corp".into(),
            subject: "alice".into(),
            issued_before: None,
        };
        let judge = |who: &Principal| judged(alice.clone(), None, who);
        assert_eq!(judge(&acting(&[("alice", None)])), Some("revoked_subject"));
        assert_eq!(judge(&acting(&[("alice", Some("elsewhere"))])), None);
        // Inner actors are history.
        assert_eq!(judge(&acting(&[("carol", None), ("alice", None)])), None);
    }

    #[test]
    fn of_two_entries_for_one_name_the_longer_counts() {
        for order in [[1_400, 1_600], [1_600, 1_400]] {
            let entries: Vec<Denial> = order
                .iter()
                .flat_map(|until| {
                    kinds("corp").map(|(denied, _)| Denial {
                        denied,
                        until: Some(*until),
                    })
                })
                .collect();
            let list = Denylist::new(&entries);
            assert!(list.judge(&principal("corp"), 1_599).is_err());
            assert!(list.judge(&principal("corp"), 1_600).is_ok());
            assert_eq!(list.len(), 10);
        }
    }
}
