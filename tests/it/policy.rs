//! Policies: golden messages, case files, examples, and what holds for every policy.

#![allow(clippy::unwrap_used)]

mod cases;
mod content;
mod diff;
mod files;
mod matchers;
mod properties;
mod redundant;
mod reference;
mod replay;
mod shadow;
mod trap;
mod webhooks;

pub(crate) use files::{two_policies_of_one_name, wrong_policies};
pub(crate) use shadow::expired_shadow;

use portcullis::a2a::Operation;
use portcullis::identity::issuer::{
    Algorithm, ClaimDeclaration, ClaimKind, Grant, IssuerConfig, KeyFile, KeyOrigin, Profile, Typ,
};
use portcullis::identity::{ClaimState, ClaimValue, Confirmation, Principal};
use portcullis::policy::{
    self, AgentFacts, Asked, AskedSkill, Decision, Effect, PolicySet, Question, World,
};
use portcullis::source::{Document, Problems};
use std::sync::Arc;

/// Agents and issuers that the rules of these tests are about.
struct Site {
    agents: Vec<(&'static str, Vec<Box<str>>, bool)>,
    issuers: Vec<Arc<IssuerConfig>>,
}

/// One claim of each type at `corp`; `partner` has a `role` too, and a `level` of another type.
fn site() -> Site {
    let skills = |names: &[&str]| names.iter().map(|n| Box::from(*n)).collect();
    let corp = [
        ("role", ClaimKind::String),
        ("groups", ClaimKind::StringArray),
        ("level", ClaimKind::Number),
        ("verified", ClaimKind::Boolean),
        ("teams", ClaimKind::SpaceString),
    ];
    let partner = [("level", ClaimKind::String), ("role", ClaimKind::String)];
    Site {
        agents: vec![
            ("pr-agent", skills(&["review-diff", "hello"]), true),
            ("weather", skills(&["forecast"]), false),
            ("plain", skills(&[]), false),
        ],
        issuers: vec![issuer("corp", &corp), issuer("partner", &partner)],
    }
}

/// The same with `corp` alone, so that rules need no `issuers`.
fn corp_site() -> Site {
    let mut site = site();
    site.issuers.truncate(1);
    site
}

fn issuer(name: &str, claims: &[(&str, ClaimKind)]) -> Arc<IssuerConfig> {
    let declare = |(name, kind): &(&str, ClaimKind)| ClaimDeclaration {
        name: (*name).into(),
        path: vec![(*name).into()],
        kind: *kind,
    };
    Arc::new(IssuerConfig {
        name: name.into(),
        issuer: format!("https://{name}.example").into(),
        audiences: vec!["https://gateway.example".into()],
        keys: KeyOrigin::File(KeyFile {
            path: "jwks.json".into(),
            content: Box::default(),
        }),
        profile: Profile::Strict,
        algorithms: vec![Algorithm::Es256],
        rsa_alg: Algorithm::Rs256,
        typ: vec![Typ::AtJwt],
        max_lifetime: 3600,
        leeway: 30,
        not_before: None,
        clients: Vec::new(),
        tenants: Vec::new(),
        trust_domain: None,
        shared_keys: Vec::new(),
        delegated_full: false,
        allow_missing_kid: false,
        ignore_header: Vec::new(),
        grants: Vec::new(),
        claims: claims.iter().map(declare).collect(),
        dpop: None,
        development: false,
    })
}

impl Site {
    fn compile_files(&self, files: &[(&str, &str)]) -> (PolicySet, Problems) {
        let mut documents = Vec::new();
        for (name, text) in files {
            match Document::parse(name, text) {
                Ok(document) => documents.push(document),
                Err(problems) => return (PolicySet::default(), problems),
            }
        }
        let agents = self.agents.iter().map(|(name, skills, paths)| AgentFacts {
            name,
            skills,
            has_backend_paths: *paths,
        });
        let world = World {
            agents: agents.collect(),
            issuers: &self.issuers,
            complete: true,
        };
        policy::compile(&documents, &world)
    }

    /// Rules that must be without error.
    fn rules(&self, rules: &str) -> PolicySet {
        let text = format!("version: 1\npolicy: p\nrules:\n{rules}");
        let (policies, problems) = self.compile_files(&[("policy.yaml", &text)]);
        assert!(!problems.has_errors(), "{problems}\n{text}");
        policies
    }

    /// A token of the issuer at `index` that has no claim.
    fn principal(&self, index: usize) -> Principal {
        let issuer = &self.issuers[index];
        Principal {
            issuer_index: index,
            issuer: Arc::from(&*issuer.name),
            subject: "alice".into(),
            client: Some("console".into()),
            token_id: None,
            session: None,
            scopes: Vec::new(),
            actors: Vec::new(),
            grant: Some(Grant::Agent),
            claims: vec![ClaimState::Missing; issuer.claims.len()],
            expires: 0,
            not_before: None,
            issued: None,
            key: [0; 32],
            algorithm: portcullis::identity::issuer::Algorithm::Es256,
            signing_input: [0; 32],
            confirmation: Confirmation::default(),
        }
    }

    /// The same with one claim.
    fn with(&self, claim: &str, state: ClaimState) -> Principal {
        let mut principal = self.principal(0);
        let mut claims = self.issuers[0].claims.iter();
        let position = claims.position(|c| *c.name == *claim).unwrap();
        principal.claims[position] = state;
        principal
    }
}

fn text(value: &str) -> ClaimState {
    ClaimState::Value(ClaimValue::String(value.into()))
}

fn texts(values: &[&str]) -> ClaimState {
    let values = values.iter().map(|v| Box::from(*v)).collect();
    ClaimState::Value(ClaimValue::Strings(values))
}

fn message<'a>(agent: usize, skill: &'a str, principal: &'a Principal) -> Question<'a> {
    Question {
        agent,
        asked: Asked::Operation(Operation::SendMessage),
        skill: AskedSkill::Known(skill),
        principal,
        memo: None,
        content: None,
    }
}

/// Whether `pr-agent` may be sent a `review-diff`.
fn allowed(policies: &PolicySet, principal: &Principal) -> bool {
    decide(policies, principal).effect == Effect::Allow
}

fn decide(policies: &PolicySet, principal: &Principal) -> Decision {
    policy::decide(policies, &message(0, "review-diff", principal))
}

/// Compares with a golden file, or writes it when `UPDATE_EXPECT` is set.
fn expect_file(path: &std::path::Path, found: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        found,
        expected,
        "{} differs; look, then run with UPDATE_EXPECT=1",
        path.display()
    );
}
