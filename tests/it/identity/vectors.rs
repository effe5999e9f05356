//! Wycheproof's vectors for every algorithm that we take, through our own key sets and verifier.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::{KeySet, Unusable};
use serde_json::{Value, json};
use wycheproof::{TestResult, ecdsa, eddsa, rsa_pkcs1_verify, rsa_pss_verify};

/// What became of a set: vectors that verified, that were refused, and that wait for a key which
/// our stricter rules do not take.
#[derive(Default)]
struct Count {
    good: usize,
    bad: usize,
    weak: usize,
}

impl Count {
    /// Judges the vectors of one key: message, signature, and what Wycheproof says.
    fn judge(&mut self, what: &str, entry: &Value, tests: &[(&[u8], &[u8], TestResult, usize)]) {
        let document = json!({"keys": [entry]}).to_string();
        let (set, notes) = KeySet::parse(document.as_bytes(), Algorithm::Rs256).unwrap();
        let [key] = set.keys() else {
            // KY-6: an exponent below 65537.
            assert_eq!(notes[0].why, Unusable::Rsa, "{what}: {entry}");
            self.weak += tests.len();
            return;
        };
        for (message, signature, result, id) in tests {
            let verified = key.verifies(message, signature);
            match result {
                TestResult::Valid => assert!(verified, "{what} {id}: refused"),
                // Encodings that one could take or leave: we leave them.
                TestResult::Invalid | TestResult::Acceptable => {
                    assert!(!verified, "{what} {id}: verified");
                }
            }
            if verified {
                self.good += 1;
            } else {
                self.bad += 1;
            }
        }
    }

    fn assert(&self, what: &str, good: usize, bad: usize) {
        assert!(
            self.good >= good && self.bad >= bad,
            "{what}: {} {} {}",
            self.good,
            self.bad,
            self.weak
        );
    }
}

fn part(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A number without leading zeros (RFC 7518 section 6.3.1).
fn number(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    part(&bytes[zeros..])
}

#[test]
fn ecdsa_vectors_come_out_as_they_should() {
    for (name, crv, size, good, bad) in [
        (
            ecdsa::TestName::EcdsaSecp256r1Sha256P1363,
            "P-256",
            32,
            150,
            80,
        ),
        (
            ecdsa::TestName::EcdsaSecp384r1Sha384P1363,
            "P-384",
            48,
            150,
            80,
        ),
    ] {
        let mut count = Count::default();
        for group in ecdsa::TestSet::load(name).unwrap().test_groups {
            // A public key in DER ends with the coordinates of its uncompressed point.
            let point = &group.der[group.der.len() - 2 * size..];
            let (x, y) = point.split_at(size);
            let entry = json!({"kty": "EC", "crv": crv, "x": part(x), "y": part(y)});
            let tests: Vec<_> = group
                .tests
                .iter()
                .map(|t| (&t.msg[..], &t.sig[..], t.result, t.tc_id))
                .collect();
            count.judge(crv, &entry, &tests);
        }
        count.assert(crv, good, bad);
        assert_eq!(count.weak, 0);
    }
}

#[test]
fn ed25519_vectors_come_out_as_they_should() {
    let mut count = Count::default();
    let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
    for group in set.test_groups {
        let x = &group.der[group.der.len() - 32..];
        let entry = json!({"kty": "OKP", "crv": "Ed25519", "x": part(x)});
        let tests: Vec<_> = group
            .tests
            .iter()
            .map(|t| (&t.msg[..], &t.sig[..], t.result, t.tc_id))
            .collect();
        count.judge("Ed25519", &entry, &tests);
    }
    count.assert("Ed25519", 80, 60);
    assert_eq!(count.weak, 0);
}

#[test]
fn rsa_vectors_come_out_as_they_should() {
    use rsa_pkcs1_verify::TestName::{Rsa2048Sha256, Rsa2048Sha384, Rsa2048Sha512, Rsa3072Sha256};
    for (name, alg) in [
        (Rsa2048Sha256, "RS256"),
        (Rsa2048Sha384, "RS384"),
        (Rsa2048Sha512, "RS512"),
        (Rsa3072Sha256, "RS256"),
    ] {
        let mut count = Count::default();
        for group in rsa_pkcs1_verify::TestSet::load(name).unwrap().test_groups {
            let jwk = group.jwk.unwrap();
            let (n, e) = (number(&jwk.n), number(&jwk.e));
            let entry = json!({"kty": "RSA", "alg": alg, "n": n, "e": e});
            let tests: Vec<_> = group
                .tests
                .iter()
                .map(|t| (&t.msg[..], &t.sig[..], t.result, t.tc_id))
                .collect();
            count.judge(alg, &entry, &tests);
        }
        count.assert(alg, 5, 200);
    }
}

#[test]
fn rsa_pss_vectors_come_out_as_they_should() {
    use rsa_pss_verify::TestName::{
        RsaPss2048Sha256Mgf1SaltLen32, RsaPss2048Sha384Mgf1SaltLen48, RsaPss4096Sha512Mgf1SaltLen64,
    };
    for (name, alg) in [
        (RsaPss2048Sha256Mgf1SaltLen32, "PS256"),
        (RsaPss2048Sha384Mgf1SaltLen48, "PS384"),
        (RsaPss4096Sha512Mgf1SaltLen64, "PS512"),
    ] {
        let mut count = Count::default();
        for group in rsa_pss_verify::TestSet::load(name).unwrap().test_groups {
            let jwk = group.jwk.unwrap();
            let (n, e) = (number(&jwk.n), number(&jwk.e));
            let entry = json!({"kty": "RSA", "alg": alg, "n": n, "e": e});
            let tests: Vec<_> = group
                .tests
                .iter()
                .map(|t| (&t.msg[..], &t.sig[..], t.result, t.tc_id))
                .collect();
            count.judge(alg, &entry, &tests);
        }
        count.assert(alg, 20, 20);
    }
}
