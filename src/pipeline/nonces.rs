//! [`Nonces`]: values that a proof must repeat, so that none can be made in advance (RFC 9449
//! section 9).
//!
//! Nothing is stored: a nonce is a keyed hash of the minute that it is for. The key is this
//! process's own, so behind several gateways a caller must come back to the one that it asked; a
//! proof that was used at one is then of no use at another.

use super::ports::Random;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// How long one nonce is given out, in seconds. It is taken as long again.
pub const WINDOW: i64 = 60;

/// Makes and knows nonces.
pub struct Nonces {
    key: hmac::Key,
}

impl Nonces {
    /// With a key of its own.
    pub fn new(random: &dyn Random) -> Nonces {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Nonces {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        }
    }

    /// The nonces that are taken at `now`, in seconds since the epoch; the first is the one to
    /// give out.
    pub fn at(&self, now: i64) -> [Box<str>; 2] {
        let window = now.div_euclid(WINDOW);
        [self.of(window), self.of(window - 1)]
    }

    fn of(&self, window: i64) -> Box<str> {
        let tag = hmac::sign(&self.key, &window.to_be_bytes());
        URL_SAFE_NO_PAD.encode(&tag.as_ref()[..16]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u8);

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn a_nonce_is_taken_for_one_to_two_windows() {
        let nonces = Nonces::new(&Fixed(1));
        let [given, _] = nonces.at(6000);
        for (now, good) in [(5999, false), (6000, true), (6119, true), (6120, false)] {
            assert_eq!(nonces.at(now).contains(&given), good, "{now}");
        }
        assert!(!Nonces::new(&Fixed(2)).at(6000).contains(&given));
        // RFC 9449 section 8.1: NQCHAR.
        assert!(given.len() == 22 && given.bytes().all(|b| b.is_ascii_graphic()));
    }
}
