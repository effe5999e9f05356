//! The keys that an auditor trusts: from a file that was got elsewhere, or from the gateway's own.

use crate::audit::checkpoint::public_keys;
use crate::audit::redact::hidden::HidingKey;
use crate::cli::exit;
use crate::identity::SigningKey;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longest file of public keys, in bytes.
const MAX_KEYS: u64 = 1 << 20;
/// Longest file of a key for fingerprints, in bytes.
const MAX_KEY: u64 = 4 << 10;

/// What stands before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The keys of a file: a JWKS, or an Ed25519 key in PEM.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn read(path: &Path) -> Result<KeySet, u8> {
    let wrong = |why: &str| {
        eprintln!(
            "error: `{}`: {why}\n  = help: a JWKS, as the gateway has at /.well-known/jwks.json, or an Ed25519 key in PEM",
            path.display()
        );
        exit::INVALID
    };
    let text = text_of(path, MAX_KEYS).map_err(|error| wrong(&error.to_string()))?;
    of(&text).map_err(wrong)
}

/// The text of a file that was named on the command line.
fn text_of(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is too long for a file of keys",
        ));
    }
    Ok(text)
}

fn of(text: &str) -> Result<KeySet, &'static str> {
    if text.contains("PRIVATE KEY-----") {
        let key = SigningKey::from_pem(text).ok_or("it holds no Ed25519 key")?;
        return public_keys(&key).ok_or("its key cannot be read");
    }
    if !text.contains("-----BEGIN PUBLIC KEY-----") {
        let keys = KeySet::parse(text.as_bytes(), Algorithm::EdDsa);
        return keys
            .map(|(keys, _)| keys)
            .map_err(|_| "it is no set of keys");
    }
    let lines = text.lines().map(str::trim);
    let base64: String = lines.filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(base64).map_err(|_| "it is not base64")?;
    let raw = der
        .strip_prefix(&SPKI)
        .filter(|raw| raw.len() == 32)
        .ok_or("it holds no Ed25519 key")?;
    let x = URL_SAFE_NO_PAD.encode(raw);
    // RFC 7638 section 3: the required members in this order, without white space.
    let thumbprint = digest(
        &SHA256,
        format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes(),
    );
    let kid = URL_SAFE_NO_PAD.encode(thumbprint.as_ref());
    let document = format!(
        r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"{kid}","use":"sig"}}]}}"#
    );
    KeySet::parse(document.as_bytes(), Algorithm::EdDsa)
        .map(|(keys, _)| keys)
        .map_err(|_| "its key cannot be read")
}

/// The key in a file: 32 bytes in base64.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn fingerprint_key(path: &Path) -> Result<HidingKey, u8> {
    let wrong = |why: &str| {
        eprintln!("error: `{}`: {why}", path.display());
        exit::INVALID
    };
    let text = text_of(path, MAX_KEY).map_err(|error| wrong(&error.to_string()))?;
    let bytes = STANDARD.decode(text.trim_ascii()).ok();
    let bytes = bytes.filter(|bytes| bytes.len() == 32);
    let bytes = bytes.ok_or_else(|| wrong("it does not hold 32 bytes in base64"))?;
    Ok(HidingKey::new(&bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::audit::checkpoint::{Signed, sign};
    use crate::audit::record::{Head, Time};
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

    #[test]
    fn one_key_is_the_same_in_every_form() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let der = [&SPKI[..], pair.public_key().as_ref()].concat();
        let public = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(der)
        );
        let key = SigningKey::new(pair);
        let jwks = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
        let time = Time(1_798_675_199_007);
        let of_record = Head {
            time,
            instance: "gw",
            generation: 1,
            policy_digest: "d",
        };
        let signature = sign(&key, "j", (4, [3; 32]), of_record);
        let head = "03".repeat(32);
        let line = format!(
            r#"{{"v":1,"seq":5,"prev":"{head}","kind":"checkpoint","time":"{time}","instance":"gw","generation":1,"policy_digest":"d","journal":"j","size":4,"chain_head":"{head}","key_id":"{}","signature":"{signature}"}}"#,
            key.kid()
        );
        let signed = Signed::of(line.as_bytes()).unwrap();
        for text in [public, key.to_pem().unwrap(), jwks] {
            assert_eq!(signed.verify(&of(&text).unwrap()), Ok(()), "{text}");
        }
        for wrong in [
            "",
            "{}",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
