//! [`Asserter`]: tells an agent, signed, that a call comes through us, whose it is, and which rule
//! allowed it (`design.md` section 11).
//!
//! A JWT with a type of its own, so that nobody takes it for an access token. It is bound to one
//! agent, to the body and the target of one request, and is good for a minute.

use super::SigningKey;
use super::issuer::Grant;
use super::principal::Actor;
use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::sync::Arc;

/// The header's `typ` (RFC 8725 section 3.11).
pub const TYPE: &str = "portcullis-assertion+jwt";

/// How long it is good, in seconds.
pub const LIFETIME: i64 = 60;

/// What is asserted of one request.
#[derive(Debug, Clone, Copy)]
pub struct Assertion<'a> {
    /// The public URL of the gateway: `iss`.
    pub gateway: &'a str,
    /// The agent's configured name: `aud`.
    pub agent: &'a str,
    /// The caller's subject: `sub`.
    pub subject: &'a str,
    /// The configured name of the caller's issuer: a subject is nothing without it (IS-6).
    pub issuer: &'a str,
    /// The caller's client.
    pub client: Option<&'a str>,
    /// Who acts for the caller, outermost first (RFC 8693 section 4.1).
    pub actors: &'a [Actor],
    /// The reach of the caller's token.
    pub grant: Option<Grant>,
    /// The skill that was judged.
    pub skill: Option<&'a str>,
    /// The rule that allowed the call.
    pub rule: Option<&'a str>,
    /// Our request id.
    pub request_id: &'a str,
    /// Which of the requests that were sent under this id, from 1: only lists need several.
    pub part: u32,
    /// The HTTP method.
    pub method: &'a str,
    /// Path and query, as they are sent.
    pub target: &'a str,
    /// SHA-256 of the body as it is sent.
    pub body: &'a [u8; 32],
    /// Now, in seconds.
    pub issued: i64,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    issuer: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Chain::is_empty")]
    act: Chain<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    request_id: &'a str,
    jti: &'a str,
    target_sha256: &'a str,
    body_sha256: &'a str,
    iat: i64,
    exp: i64,
}

/// Actors as a token has them: each holds the one that it acts for before.
struct Chain<'a>(&'a [Actor]);

impl Chain<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Chain<'_> {
    // Recursion is bounded by the depth that a token may have (GR-8).
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some((actor, inner)) = self.0.split_first() {
            map.serialize_entry("sub", &*actor.subject)?;
            if let Some(issuer) = &actor.issuer {
                map.serialize_entry("iss", &**issuer)?;
            }
            if !inner.is_empty() {
                map.serialize_entry("act", &Chain(inner))?;
            }
        }
        map.end()
    }
}

/// Signs assertions.
#[derive(Debug)]
pub struct Asserter {
    key: Arc<SigningKey>,
    /// The header, encoded, with its dot.
    header: Box<str>,
}

impl Asserter {
    /// With our key for assertions.
    pub fn new(key: Arc<SigningKey>) -> Asserter {
        let header = format!(
            r#"{{"alg":"{}","typ":"{TYPE}","kid":"{}"}}"#,
            SigningKey::ALGORITHM,
            key.kid()
        );
        let mut encoded = URL_SAFE_NO_PAD.encode(header);
        encoded.push('.');
        Asserter {
            key,
            header: encoded.into(),
        }
    }

    /// The signed assertion, in compact form.
    pub fn sign(&self, assertion: &Assertion<'_>) -> String {
        let target = target_hash(assertion.method, assertion.target);
        let (mut target_hex, mut body_hex) = ([0; 64], [0; 64]);
        let mut part = String::new();
        let id = match assertion.part {
            0 | 1 => assertion.request_id,
            number => {
                // Writing to a string cannot fail.
                let _ = write!(part, "{}.{number}", assertion.request_id);
                &part
            }
        };
        let claims = Claims {
            iss: assertion.gateway,
            aud: assertion.agent,
            sub: assertion.subject,
            issuer: assertion.issuer,
            client_id: assertion.client,
            act: Chain(assertion.actors),
            grant: assertion.grant.map(|grant| match grant {
                Grant::Agent => "agent",
                Grant::Full => "full",
            }),
            skill: assertion.skill,
            rule: assertion.rule,
            request_id: assertion.request_id,
            jti: id,
            target_sha256: hex(&target, &mut target_hex),
            body_sha256: hex(assertion.body, &mut body_hex),
            iat: assertion.issued,
            exp: assertion.issued + LIFETIME,
        };
        let mut payload = Vec::with_capacity(640);
        // Texts and numbers always serialise.
        let _ = serde_json::to_writer(&mut payload, &claims);
        let mut token = String::with_capacity(self.header.len() + payload.len() * 4 / 3 + 96);
        token.push_str(&self.header);
        URL_SAFE_NO_PAD.encode_string(&payload, &mut token);
        let signature = self.key.signature(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }
}

/// SHA-256 of the method, a space, and the target.
fn target_hash(method: &str, target: &str) -> [u8; 32] {
    let mut seen = Context::new(&SHA256);
    seen.update(method.as_bytes());
    seen.update(b" ");
    seen.update(target.as_bytes());
    let mut hash = [0; 32];
    hash.copy_from_slice(seen.finish().as_ref());
    hash
}

fn hex<'b>(hash: &[u8; 32], buffer: &'b mut [u8; 64]) -> &'b str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in buffer.chunks_exact_mut(2).zip(hash) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    // Hex digits are ASCII.
    std::str::from_utf8(buffer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::issuer::Algorithm;
    use super::super::keys::KeySet;
    use super::*;
    use aws_lc_rs::digest::digest;
    use aws_lc_rs::signature::Ed25519KeyPair;
    use serde_json::{Value, json};

    fn part(token: &str, at: usize) -> Value {
        let text = token.split('.').nth(at).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn it_says_what_was_decided_and_verifies_by_the_public_key() {
        let key = SigningKey::new(Ed25519KeyPair::generate().unwrap());
        let document = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
        let (set, _) = KeySet::parse(document.as_bytes(), Algorithm::Rs256).unwrap();
        let kid = key.kid().to_owned();
        let mut body = [0; 32];
        body.copy_from_slice(digest(&SHA256, b"").as_ref());
        let asserted = Assertion {
            gateway: "https://agents.example.com",
            agent: "pr-agent",
            subject: "ali\"ce\u{e9}",
            issuer: "corp",
            client: None,
            actors: &[],
            grant: Some(Grant::Agent),
            skill: Some("hello"),
            rule: Some("hello-for-all"),
            request_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            part: 1,
            method: "POST",
            target: "/a2a",
            body: &body,
            issued: 1_000,
        };
        let asserter = Asserter::new(Arc::new(key));
        let token = asserter.sign(&asserted);
        assert_eq!(
            part(&token, 0),
            json!({"alg": "EdDSA", "typ": TYPE, "kid": kid})
        );
        assert_eq!(
            part(&token, 1),
            json!({
                "iss": "https://agents.example.com", "aud": "pr-agent", "sub": "ali\"ce\u{e9}",
                "issuer": "corp", "grant": "agent", "skill": "hello", "rule": "hello-for-all",
                "request_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "jti": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "target_sha256": "59a1992b140bf458d3fe62cb66e43be8572f849ddb1b7593d10760fcc073f707",
                "body_sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "iat": 1000, "exp": 1060,
            })
        );
        let (input, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = set.named(&kid).unwrap();
        assert!(public.takes(Algorithm::EdDsa) && public.verifies(input.as_bytes(), &signature));
        let actors = [("agent-7", None), ("a9", Some("https://other.example"))].map(
            |(subject, issuer): (&str, Option<&str>)| Actor {
                subject: subject.into(),
                issuer: issuer.map(Box::from),
            },
        );
        let delegated = asserter.sign(&Assertion {
            actors: &actors,
            ..asserted
        });
        let inner = json!({"sub": "a9", "iss": "https://other.example"});
        assert_eq!(
            part(&delegated, 1)["act"],
            json!({"sub": "agent-7", "act": inner})
        );
        let second = asserter.sign(&Assertion {
            part: 2,
            ..asserted
        });
        assert_eq!(part(&second, 1)["jti"], "01ARZ3NDEKTSV4RRFFQ69G5FAV.2");
        assert_eq!(part(&second, 1)["request_id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    }
}
