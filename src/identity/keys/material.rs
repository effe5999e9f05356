//! The numbers of a JWK, and what makes them sound (KY-6 to KY-8).

use super::Unusable;
use crate::a2a::strict_json::Value;
use crate::identity::issuer::Algorithm;
use crate::identity::token::base64url;
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
};

/// Public numbers whose form is good; [`Material::public_key`] judges their strength.
pub(super) struct Material {
    numbers: Numbers,
    /// The members that RFC 7638 section 3.2 hashes, in its form.
    pub(super) canonical: String,
}

enum Numbers {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Reads the numbers by `kty` and `crv`. Every number is canonical base64url, so each key has one
/// spelling and one thumbprint.
pub(super) fn material(entry: &Value) -> Result<Material, Unusable> {
    let text = |name| {
        entry
            .get(name)
            .and_then(Value::as_str)
            .ok_or(Unusable::Form)
    };
    let number = |name, fault| base64url(text(name)?).ok_or(fault);
    entry.as_object().ok_or(Unusable::Form)?;
    match text("kty")? {
        "RSA" => Ok(Material {
            numbers: Numbers::Rsa {
                n: number("n", Unusable::Rsa)?,
                e: number("e", Unusable::Rsa)?,
            },
            canonical: format!(
                r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#,
                text("e")?,
                text("n")?
            ),
        }),
        "EC" => {
            let (crv, length) = match text("crv")? {
                "P-256" => ("P-256", 32),
                "P-384" => ("P-384", 48),
                _ => return Err(Unusable::Kind),
            };
            let (x, y) = (number("x", Unusable::Point)?, number("y", Unusable::Point)?);
            if x.len() != length || y.len() != length {
                return Err(Unusable::Point);
            }
            // SEC 1 section 2.3.3: an uncompressed point.
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            Ok(Material {
                numbers: if length == 32 {
                    Numbers::P256(point)
                } else {
                    Numbers::P384(point)
                },
                canonical: format!(
                    r#"{{"crv":"{crv}","kty":"EC","x":"{}","y":"{}"}}"#,
                    text("x")?,
                    text("y")?
                ),
            })
        }
        "OKP" if text("crv")? == "Ed25519" => Ok(Material {
            numbers: Numbers::Ed25519(number("x", Unusable::Ed25519)?),
            canonical: format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, text("x")?),
        }),
        "oct" => Err(Unusable::Symmetric),
        _ => Err(Unusable::Kind),
    }
}

impl Material {
    /// The algorithm of a key that names none (KY-5).
    pub(super) fn default_algorithm(&self, rsa_alg: Algorithm) -> Algorithm {
        match self.numbers {
            Numbers::Rsa { .. } => rsa_alg,
            Numbers::P256(_) => Algorithm::Es256,
            Numbers::P384(_) => Algorithm::Es384,
            Numbers::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Judges the numbers and binds them to the one algorithm.
    pub(super) fn public_key(&self, algorithm: Algorithm) -> Result<ParsedPublicKey, Unusable> {
        match (&self.numbers, algorithm) {
            (Numbers::Rsa { n, e }, algorithm) => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
                    Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa | Algorithm::Ed25519 => {
                        return Err(Unusable::Algorithm);
                    }
                };
                if !is_rsa_sound(n, e) {
                    return Err(Unusable::Rsa);
                }
                PublicKeyComponents { n, e }
                    .to_parsed_public_key(parameters)
                    .map_err(|_| Unusable::Rsa)
            }
            (Numbers::P256(point), Algorithm::Es256) => {
                ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).map_err(|_| Unusable::Point)
            }
            (Numbers::P384(point), Algorithm::Es384) => {
                ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).map_err(|_| Unusable::Point)
            }
            (Numbers::Ed25519(x), Algorithm::EdDsa | Algorithm::Ed25519) => {
                if !is_ed25519_sound(x) {
                    return Err(Unusable::Ed25519);
                }
                ParsedPublicKey::new(&ED25519, x).map_err(|_| Unusable::Ed25519)
            }
            (Numbers::P256(_) | Numbers::P384(_) | Numbers::Ed25519(_), _) => {
                Err(Unusable::Algorithm)
            }
        }
    }
}

/// KY-6: modulus odd, of 2048 to 8192 bits; exponent odd, from 65537 and below 2^33. A leading
/// zero byte is not the number's one spelling (RFC 7518 section 2).
fn is_rsa_sound(n: &[u8], e: &[u8]) -> bool {
    let (Some(first), Some(last)) = (n.first(), n.last()) else {
        return false;
    };
    if *first == 0 || e.first().is_none_or(|b| *b == 0) || e.len() > 5 {
        return false;
    }
    let bits = n.len() * 8 - first.leading_zeros() as usize;
    let exponent = e.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    (2048..=8192).contains(&bits)
        && last % 2 == 1
        && exponent % 2 == 1
        && (65_537..1 << 33).contains(&exponent)
}

/// The encoded y of the points of small order, without the sign bit of x: of order 4, 1, 2 and
/// twice 8. With such a key one signature fits every message (LB-8).
const SMALL_ORDER: [[u8; 32]; 5] = [
    [0; 32],
    {
        let mut one = [0; 32];
        one[0] = 1;
        one
    },
    {
        let mut minus_one = [0xff; 32];
        minus_one[0] = 0xec;
        minus_one[31] = 0x7f;
        minus_one
    },
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// KY-8 (RFC 8032 section 5.1.3): 32 bytes, y below 2^255 - 19, not of small order.
fn is_ed25519_sound(x: &[u8]) -> bool {
    let Ok(mut y) = <[u8; 32]>::try_from(x) else {
        return false;
    };
    y[31] &= 0x7f;
    let at_least_p = y[0] >= 0xed && y[1..31].iter().all(|b| *b == 0xff) && y[31] == 0x7f;
    !at_least_p && !SMALL_ORDER.contains(&y)
}

#[cfg(test)]
mod tests {
    use super::is_rsa_sound;

    #[test]
    fn rsa_numbers_have_bounds() {
        let modulus = |first: u8, bytes: usize, last: u8| {
            let mut n = vec![0; bytes];
            n[0] = first;
            n[bytes - 1] = last;
            n
        };
        let usual = [1, 0, 1];
        for (n, e, good) in [
            (modulus(0x80, 256, 1), &usual[..], true),
            (modulus(0x7f, 256, 1), &usual, false),
            (modulus(0x80, 256, 2), &usual, false),
            (modulus(0x80, 1024, 1), &usual, true),
            (modulus(0x01, 1025, 1), &usual, false),
            (modulus(0x00, 257, 1), &usual, false),
            (modulus(0x80, 256, 1), &[3], false),
            (modulus(0x80, 256, 1), &[0xff, 0xff], false),
            (modulus(0x80, 256, 1), &[1, 0, 2], false),
            (modulus(0x80, 256, 1), &[0, 1, 0, 1], false),
            (modulus(0x80, 256, 1), &[1, 0xff, 0xff, 0xff, 0xff], true),
            (modulus(0x80, 256, 1), &[2, 0, 0, 0, 1], false),
            (modulus(0x80, 256, 1), &[1, 0, 0, 0, 0, 1], false),
            (modulus(0x80, 256, 1), &[], false),
            (Vec::new(), &usual, false),
        ] {
            assert_eq!(is_rsa_sound(&n, e), good, "{:?} {e:?}", n.first());
        }
    }
}
