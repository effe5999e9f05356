//! [`Caller`]: whom a difference is about, as facts that a token can state.

use super::super::condition::{Reserved, Source, Test, Tri};
use crate::identity::issuer::{
    Algorithm, ClaimDeclaration, ClaimKind, Grant, GrantForm, GrantMark, IssuerConfig,
};
use crate::identity::profile::Scopes;
use crate::identity::{Actor, ClaimState, ClaimValue, Confirmation, Principal, ProofKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Caller {
    /// Its issuer's configured name.
    pub issuer: Arc<str>,
    /// The reach of its token.
    pub grant: Option<Grant>,
    /// `sub`.
    pub subject: Box<str>,
    /// Its client.
    pub client: Option<Box<str>>,
    /// Who acts for it; the outermost.
    pub actor: Option<Actor>,
    /// The pieces of its `scope`.
    pub scopes: Vec<Box<str>>,
    /// How it proves that the token is its own.
    pub proof: ProofKind,
    /// Its declared claims, by name; what is not here is missing.
    pub claims: BTreeMap<Arc<str>, ClaimState>,
}

impl Caller {
    /// The subject of somebody whose subject no rule looks at.
    pub const SUBJECT: &str = "somebody";
    /// The client of somebody whose client no rule looks at.
    pub const CLIENT: &str = "some-client";

    /// Somebody of whom nothing is known but where the token is from and how far it reaches.
    pub fn new(issuer: &str, grant: Option<Grant>) -> Caller {
        Caller {
            issuer: issuer.into(),
            grant,
            subject: Caller::SUBJECT.into(),
            client: Some(Caller::CLIENT.into()),
            actor: None,
            scopes: Vec::new(),
            proof: ProofKind::None,
            claims: BTreeMap::new(),
        }
    }

    /// The principal that policies judge, for the issuer entry at `index`.
    pub fn principal(&self, index: usize, issuer: &IssuerConfig) -> Principal {
        let state = |declared: &ClaimDeclaration| {
            let found = self.claims.get(&*declared.name);
            found.cloned().unwrap_or(ClaimState::Missing)
        };
        let bound = |kind| (self.proof == kind).then_some([0; 32]);
        Principal {
            issuer_index: index,
            issuer: Arc::clone(&self.issuer),
            subject: self.subject.clone(),
            client: self.client.clone(),
            token_id: None,
            session: None,
            scopes: self.scopes.clone(),
            actors: self.actor.iter().cloned().collect(),
            grant: self.grant,
            claims: issuer.claims.iter().map(state).collect(),
            expires: 0,
            not_before: None,
            issued: None,
            key: [0; 32],
            algorithm: Algorithm::Es256,
            signing_input: [0; 32],
            confirmation: Confirmation {
                certificate: bound(ProofKind::Mtls),
                key: bound(ProofKind::Dpop),
            },
        }
    }

    /// Whether a token that an entry accepts can state all this: a listed client, and nothing that
    /// gives it a wider grant.
    pub(super) fn can_be(&self, issuer: &IssuerConfig) -> bool {
        let client = match &self.client {
            Some(client) => issuer.clients.is_empty() || issuer.clients.contains(client),
            None => issuer.clients.is_empty() && !issuer.profile.rules().client.required,
        };
        let payload = Value::Object(self.payload(issuer));
        let wider = |mark: &GrantMark| {
            let mut path = mark.path.iter();
            let found = path.try_fold(&payload, |value, name| value.get(&**name));
            let pieces: Vec<&str> = match (found, mark.form) {
                (Some(Value::String(text)), GrantForm::SpaceString) => text.split(' ').collect(),
                (Some(Value::String(text)), _) => vec![text],
                (Some(Value::Array(all)), _) => all.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let mut worth = mark
                .map
                .iter()
                .filter(|(value, _)| pieces.contains(&&**value));
            worth.any(|(_, grant)| Some(*grant) > self.grant)
        };
        client && !issuer.grants.iter().any(wider)
    }

    /// The claims of such a token as they stand in its payload, without those that every token has
    /// and without what gives it its grant.
    pub fn payload(&self, issuer: &IssuerConfig) -> Map<String, Value> {
        let mut payload = Map::new();
        for declared in &issuer.claims {
            let value = match self.claims.get(&*declared.name) {
                None | Some(ClaimState::Missing) => continue,
                Some(ClaimState::Null) => Value::Null,
                Some(ClaimState::WrongType) => wrong(declared.kind),
                Some(ClaimState::Value(value)) => raw(declared.kind, value),
            };
            put(&mut payload, &declared.path, value);
        }
        let rules = issuer.profile.rules();
        if *self.subject != *Caller::SUBJECT {
            payload.insert("sub".to_owned(), json!(self.subject));
        }
        let client = self.client.as_deref().filter(|c| *c != Caller::CLIENT);
        if let (Some(client), Some(claim)) = (client, rules.client.claims.first()) {
            payload.insert((*claim).to_owned(), json!(client));
        }
        match rules.scopes {
            _ if self.scopes.is_empty() => {}
            Scopes::Words(claim) => {
                payload.insert(claim.to_owned(), json!(self.scopes.join(" ")));
            }
            Scopes::List(claim) => {
                payload.insert(claim.to_owned(), json!(self.scopes));
            }
        }
        if let Some(actor) = &self.actor {
            let mut act = json!({ "sub": actor.subject });
            if let (Some(issuer), Some(members)) = (&actor.issuer, act.as_object_mut()) {
                members.insert("iss".to_owned(), json!(issuer));
            }
            payload.insert("act".to_owned(), act);
        }
        payload
    }

    /// Sets what a variable stands for.
    pub(in crate::policy) fn set(&mut self, variable: &Variable, value: &Fact) {
        match (variable, value) {
            (Variable::Claim(name), Fact::Claim(state)) => {
                self.claims.insert(Arc::clone(name), state.clone());
            }
            (Variable::Subject, Fact::Text(Some(text))) => self.subject = text.clone(),
            (Variable::Client, Fact::Text(text)) => self.client = text.clone(),
            (Variable::Actor, Fact::Actor(actor)) => self.actor = actor.clone(),
            (Variable::Scopes, Fact::Texts(texts)) => self.scopes = texts.clone(),
            (Variable::Proof, Fact::Proof(kind)) => self.proof = *kind,
            // Values are made for their variable.
            _ => {}
        }
    }
}

/// What a rule may look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) enum Variable {
    Claim(Arc<str>),
    Subject,
    Client,
    /// Whether somebody acts for the subject, and who.
    Actor,
    Scopes,
    Proof,
    /// What a test finds in the message, which says nothing about the caller.
    Content(Arc<str>),
}

impl Variable {
    /// What a test looks at, when the subject is asked for.
    pub(in crate::policy) fn of(test: &Test) -> Variable {
        match &test.source {
            Source::Declared(_) => Variable::Claim(Arc::clone(&test.claim)),
            Source::Reserved(reserved) => match reserved {
                Reserved::Subject => Variable::Subject,
                Reserved::Client => Variable::Client,
                Reserved::Actor | Reserved::Delegated => Variable::Actor,
                Reserved::Scopes => Variable::Scopes,
                Reserved::Proof => Variable::Proof,
            },
        }
    }
}

/// A value of a [`Variable`].
#[derive(Debug, Clone, PartialEq)]
pub(in crate::policy) enum Fact {
    Claim(ClaimState),
    Text(Option<Box<str>>),
    Actor(Option<Actor>),
    Texts(Vec<Box<str>>),
    Proof(ProofKind),
    Content(Tri),
}

fn put(payload: &mut Map<String, Value>, path: &[Box<str>], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        payload.insert(first.to_string(), value);
        return;
    }
    let inner = payload
        .entry(first.to_string())
        .or_insert_with(|| json!({}));
    if let Some(inner) = inner.as_object_mut() {
        put(inner, rest, value);
    }
}

fn raw(kind: ClaimKind, value: &ClaimValue) -> Value {
    match (kind, value) {
        (ClaimKind::SpaceString, ClaimValue::Strings(all)) => json!(all.join(" ")),
        (_, ClaimValue::Strings(all)) => json!(all),
        (_, ClaimValue::String(text)) => json!(text),
        (_, ClaimValue::Boolean(flag)) => json!(flag),
        #[allow(clippy::cast_possible_truncation)]
        (_, ClaimValue::Number(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
            json!(*number as i64)
        }
        (_, ClaimValue::Number(number)) => json!(number),
    }
}

/// Something that is not of the type.
fn wrong(kind: ClaimKind) -> Value {
    match kind {
        ClaimKind::String | ClaimKind::SpaceString => json!(["a list"]),
        ClaimKind::Number | ClaimKind::Boolean | ClaimKind::StringArray => json!("a text"),
    }
}
