//! A small issuer for development and tests: a key, and tokens in the shape of RFC 9068.
//!
//! The private key is kept as unencrypted PKCS#8 PEM (RFC 5208), which other tools read as well;
//! the algorithm follows from the kind of key. Time and `jti` come from the ports, so tests can
//! choose both. Keys and signatures are AWS-LC's.

use crate::identity::issuer::GrantForm;
use crate::pipeline::ports::{Clock, Random};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// What a development key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DevAlgorithm {
    /// ECDSA on P-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256, 2048 bits.
    Rs256,
    /// Ed25519.
    EdDsa,
}

impl DevAlgorithm {
    /// Every algorithm by its JOSE name.
    pub const NAMES: [(&'static str, DevAlgorithm); 3] = [
        ("ES256", DevAlgorithm::Es256),
        ("RS256", DevAlgorithm::Rs256),
        ("EdDSA", DevAlgorithm::EdDsa),
    ];

    /// Its JOSE name.
    pub fn name(self) -> &'static str {
        match self {
            DevAlgorithm::Es256 => "ES256",
            DevAlgorithm::Rs256 => "RS256",
            DevAlgorithm::EdDsa => "EdDSA",
        }
    }
}

/// Why a key cannot be used. No variant carries key material.
#[derive(Debug)]
pub enum KeyError {
    /// The file could not be read or written.
    File(std::io::Error),
    /// The file is longer than any key.
    TooLong,
    /// There is no `BEGIN PRIVATE KEY` block in it.
    NotPem,
    /// The block is not a private key that signs ES256, RS256 or EdDSA.
    NotAKey,
    /// AWS-LC could not make a key or a signature.
    Crypto,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::File(error) => error.fmt(f),
            KeyError::TooLong => f.write_str("it is too long to be a private key"),
            KeyError::NotPem => f.write_str("there is no `BEGIN PRIVATE KEY` block in it"),
            KeyError::NotAKey => f.write_str(
                "it is no private key for ES256 (P-256), RS256 (RSA, 2048 bits or more) or EdDSA (Ed25519)",
            ),
            KeyError::Crypto => f.write_str("the cryptographic library refused"),
        }
    }
}

impl std::error::Error for KeyError {}

enum Key {
    Es256(EcdsaKeyPair),
    Rs256(Box<RsaKeyPair>),
    EdDsa(Ed25519KeyPair),
}

/// An issuer with one key.
pub struct DevIssuer {
    key: Key,
    kid: String,
}

/// Shows the key's name, nothing of the key.
impl fmt::Debug for DevIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevIssuer")
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

/// What a token says.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// `iss`.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// `sub`.
    pub subject: String,
    /// `client_id`.
    pub client: String,
    /// `scope`, words with spaces between; left out when empty.
    pub scope: String,
    /// Seconds from `iat` to `exp`.
    pub lifetime: u64,
    /// Laid over the payload: adds claims, and replaces those above.
    pub extra: Map<String, Value>,
    /// Laid over the JOSE header in the same way.
    pub header: Map<String, Value>,
    /// Claims to leave out.
    pub without: Vec<String>,
    /// Header members to leave out.
    pub header_without: Vec<String>,
}

/// Longest key file that is read, in bytes.
const MAX_KEY_FILE: u64 = 65_536;
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

impl DevIssuer {
    /// Makes a new key.
    pub fn generate(algorithm: DevAlgorithm) -> Result<DevIssuer, KeyError> {
        let key = match algorithm {
            DevAlgorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .map(Key::Es256)
                .map_err(|_| KeyError::Crypto)?,
            DevAlgorithm::Rs256 => RsaKeyPair::generate(KeySize::Rsa2048)
                .map(|key| Key::Rs256(Box::new(key)))
                .map_err(|_| KeyError::Crypto)?,
            DevAlgorithm::EdDsa => Ed25519KeyPair::generate()
                .map(Key::EdDsa)
                .map_err(|_| KeyError::Crypto)?,
        };
        Ok(DevIssuer::with(key))
    }

    /// Reads a key from PKCS#8 PEM.
    pub fn from_pem(pem: &str) -> Result<DevIssuer, KeyError> {
        let (_, rest) = pem.split_once(BEGIN).ok_or(KeyError::NotPem)?;
        let (body, _) = rest.split_once(END).ok_or(KeyError::NotPem)?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::NotPem)?;
        let key = if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
        {
            Key::Es256(key)
        } else if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der) {
            Key::EdDsa(key)
        } else if let Ok(key) = RsaKeyPair::from_pkcs8(&der) {
            Key::Rs256(Box::new(key))
        } else {
            return Err(KeyError::NotAKey);
        };
        Ok(DevIssuer::with(key))
    }

    /// Reads a key file; also whether anyone but its owner may read it, which deserves a warning.
    pub fn load(path: &Path) -> Result<(DevIssuer, bool), KeyError> {
        let meta = std::fs::metadata(path).map_err(KeyError::File)?;
        if meta.len() > MAX_KEY_FILE {
            return Err(KeyError::TooLong);
        }
        let bytes = std::fs::read(path).map_err(KeyError::File)?;
        let pem = String::from_utf8(bytes).map_err(|_| KeyError::NotPem)?;
        let exposed = meta.permissions().mode() & 0o077 != 0;
        Ok((DevIssuer::from_pem(&pem)?, exposed))
    }

    /// Writes the private key to a new file that only its owner may read; never replaces one.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        let pem = self.private_pem()?;
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(KeyError::File)?;
        file.write_all(pem.as_bytes()).map_err(|error| {
            // Half a key would only stand in the way of the next try.
            let _ = std::fs::remove_file(path);
            KeyError::File(error)
        })
    }

    fn private_pem(&self) -> Result<String, KeyError> {
        let der = match &self.key {
            Key::Es256(key) => key.to_pkcs8v1().map(|d| d.as_ref().to_vec()),
            Key::EdDsa(key) => key.to_pkcs8v1().map(|d| d.as_ref().to_vec()),
            Key::Rs256(key) => AsDer::<Pkcs8V1Der>::as_der(&**key).map(|d| d.as_ref().to_vec()),
        };
        let body = STANDARD.encode(der.map_err(|_| KeyError::Crypto)?);
        let mut pem = format!("{BEGIN}\n");
        let mut rest = body.as_str();
        while !rest.is_empty() {
            // RFC 7468 section 2: lines of 64 characters; base64 is ASCII.
            let (line, tail) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = tail;
        }
        pem.push_str(END);
        pem.push('\n');
        Ok(pem)
    }

    fn with(key: Key) -> DevIssuer {
        DevIssuer {
            kid: thumbprint(&public_members(&key)),
            key,
        }
    }

    /// The key's name in tokens and key sets: its thumbprint (RFC 7638).
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// What it signs with.
    pub fn algorithm(&self) -> DevAlgorithm {
        match self.key {
            Key::Es256(_) => DevAlgorithm::Es256,
            Key::Rs256(_) => DevAlgorithm::Rs256,
            Key::EdDsa(_) => DevAlgorithm::EdDsa,
        }
    }

    /// The public key as a JWK, with the members alone that make its thumbprint.
    pub fn public_jwk(&self) -> Value {
        public_members(&self.key)
    }

    /// The public key as a key set with one entry (RFC 7517 section 5).
    pub fn jwks(&self) -> String {
        let mut entry = public_members(&self.key);
        entry["kid"] = json!(self.kid);
        entry["use"] = json!("sig");
        entry["alg"] = json!(self.algorithm().name());
        format!("{:#}\n", json!({ "keys": [entry] }))
    }

    /// A signed token that is valid from now on.
    pub fn mint(
        &self,
        claims: &Claims,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<String, KeyError> {
        let now = clock.now() / 1000;
        let mut id = [0; 16];
        random.fill(&mut id);
        let mut payload = json!({
            "iss": claims.issuer,
            "aud": claims.audience,
            "sub": claims.subject,
            "client_id": claims.client,
            "iat": now,
            "exp": now.saturating_add(claims.lifetime),
            "jti": URL_SAFE_NO_PAD.encode(id),
        });
        if !claims.scope.is_empty() {
            payload["scope"] = json!(claims.scope);
        }
        let mut header = json!({
            "typ": "at+jwt", "alg": self.algorithm().name(), "kid": self.kid,
        });
        for (whole, over) in [(&mut payload, &claims.extra), (&mut header, &claims.header)] {
            for (name, value) in over {
                whole[name] = value.clone();
            }
        }
        if let Some(payload) = payload.as_object_mut() {
            payload.retain(|name, _| !claims.without.contains(name));
        }
        if let Some(header) = header.as_object_mut() {
            header.retain(|name, _| !claims.header_without.contains(name));
        }
        self.sign(
            header.to_string().as_bytes(),
            payload.to_string().as_bytes(),
        )
    }

    /// A token over these very bytes, which need not be JSON: for tests of what must be refused.
    pub fn sign(&self, header: &[u8], payload: &[u8]) -> Result<String, KeyError> {
        let mut token = URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(payload));
        let input = token.as_bytes();
        let signature = match &self.key {
            Key::Es256(key) => key
                .sign(&SystemRandom::new(), input)
                .map(|s| s.as_ref().to_vec()),
            Key::EdDsa(key) => key.try_sign(input).map(|s| s.as_ref().to_vec()),
            Key::Rs256(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    input,
                    &mut signature,
                )
                .map(|()| signature)
            }
        };
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature.map_err(|_| KeyError::Crypto)?));
        Ok(token)
    }
}

impl Claims {
    /// Adds a grant marker at a claim's path, in the form in which the issuer's entry reads it
    /// (GR-5). False when something else stands in the way there.
    pub fn mark(&mut self, path: &[Box<str>], form: GrantForm, value: &str) -> bool {
        if let ([name], GrantForm::SpaceString) = (path, form)
            && **name == *"scope"
        {
            add_word(&mut self.scope, value);
            return true;
        }
        let Some((last, above)) = path.split_last() else {
            return false;
        };
        let mut place = &mut self.extra;
        for name in above {
            let next = place
                .entry(name.to_string())
                .or_insert_with(|| Value::Object(Map::new()));
            match next {
                Value::Object(members) => place = members,
                _ => return false,
            }
        }
        let claim = place.entry(last.to_string()).or_insert_with(|| match form {
            GrantForm::SpaceString => json!(""),
            GrantForm::StringArray | GrantForm::Either => json!([]),
        });
        match (claim, form) {
            (Value::String(words), GrantForm::SpaceString) => add_word(words, value),
            (Value::Array(list), GrantForm::StringArray | GrantForm::Either) => {
                list.push(json!(value));
            }
            _ => return false,
        }
        true
    }
}

fn add_word(words: &mut String, word: &str) {
    if words.split(' ').any(|w| w == word) {
        return;
    }
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(word);
}

/// RFC 7638 section 3.2: a digest over the required members, in lexicographic order, no spaces.
fn thumbprint(members: &Value) -> String {
    let text = members.to_string();
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// The members that make the thumbprint, in lexicographic order.
fn public_members(key: &Key) -> Value {
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match key {
        Key::Es256(key) => {
            // SEC 1 section 2.3.3: 0x04, then x and y of 32 bytes each.
            let point = key.public_key().as_ref();
            let coordinate = |range| part(point.get(range).unwrap_or_default());
            json!({ "crv": "P-256", "kty": "EC", "x": coordinate(1..33), "y": coordinate(33..65) })
        }
        Key::EdDsa(key) => {
            json!({ "crv": "Ed25519", "kty": "OKP", "x": part(key.public_key().as_ref()) })
        }
        Key::Rs256(key) => {
            let (n, e) = rsa_numbers(key.public_key().as_ref()).unwrap_or_default();
            json!({ "e": part(e), "kty": "RSA", "n": part(n) })
        }
    }
}

/// Modulus and exponent of an `RSAPublicKey` (RFC 8017 A.1.1), without leading zeros.
fn rsa_numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (sequence, _) = element(der, 0x30)?;
    let (modulus, rest) = element(sequence, 0x02)?;
    let (exponent, _) = element(rest, 0x02)?;
    let bare = |number: &'_ [u8]| number.iter().take_while(|b| **b == 0).count();
    Some((&modulus[bare(modulus)..], &exponent[bare(exponent)..]))
}

/// The content of the DER element that `der` starts with, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], mut rest) = der.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let mut size = usize::from(length);
    if length & 0x80 != 0 {
        let count = usize::from(length & 0x7f);
        size = 0;
        for &byte in rest.get(..count)? {
            size = size.checked_mul(256)?.checked_add(usize::from(byte))?;
        }
        rest = &rest[count..];
    }
    rest.split_at_checked(size)
}

#[cfg(test)]
mod tests;
