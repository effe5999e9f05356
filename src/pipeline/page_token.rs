//! [`PageTokens`]: an agent's place in its list, sealed for the one caller who was given it.

use super::ports::Random;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longer texts are none of our tokens: an agent's own has at most 2048 bytes.
const MAX_TEXT: usize = 4096;
/// Bytes of the number before the agent's token.
const SKIP: usize = 4;

/// Where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceInList {
    /// The agent's token for the page; `None` for its first one.
    pub token: Option<Box<str>>,
    /// How many tasks of that page were dealt with before.
    pub skip: u32,
}

/// Seals and opens tokens under a key of this process: those of an earlier run are not known.
pub struct PageTokens {
    key: Option<LessSafeKey>,
}

impl PageTokens {
    /// With a fresh key.
    pub fn new(random: &dyn Random) -> PageTokens {
        let mut key = [0; 32];
        random.fill(&mut key);
        // A key of the right length is always taken; without one no token is.
        let key = UnboundKey::new(&AES_256_GCM, &key).ok();
        PageTokens {
            key: key.map(LessSafeKey::new),
        }
    }

    /// A token that is good only together with `bound`.
    pub fn seal(&self, random: &dyn Random, place: &PlaceInList, bound: &[u8]) -> Option<Box<str>> {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let token = place.token.as_deref().unwrap_or_default();
        let mut sealed = Vec::with_capacity(SKIP + token.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&place.skip.to_be_bytes());
        sealed.extend_from_slice(token.as_bytes());
        self.key
            .as_ref()?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound),
                &mut sealed,
            )
            .ok()?;
        let mut text = URL_SAFE_NO_PAD.encode(nonce);
        URL_SAFE_NO_PAD.encode_string(&sealed, &mut text);
        Some(text.into())
    }

    /// What was sealed; `None` for anything that was not, or not with `bound`.
    pub fn open(&self, text: &str, bound: &[u8]) -> Option<PlaceInList> {
        /// Characters of the nonce.
        const NONCE: usize = NONCE_LEN / 3 * 4;
        if text.len() > MAX_TEXT || !text.is_ascii() || text.len() < NONCE {
            return None;
        }
        let (nonce, sealed) = text.split_at(NONCE);
        let nonce = URL_SAFE_NO_PAD.decode(nonce).ok()?.try_into().ok()?;
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.key.as_ref()?;
        let opened = key
            .open_in_place(nonce, Aad::from(bound), &mut sealed)
            .ok()?;
        let (skip, token) = opened.split_first_chunk::<SKIP>()?;
        let token = std::str::from_utf8(token).ok()?;
        Some(PlaceInList {
            token: (!token.is_empty()).then(|| token.into()),
            skip: u32::from_be_bytes(*skip),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::pipeline::ports::Random;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// No two fills are alike.
    #[derive(Default)]
    struct Counting(AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    #[test]
    fn a_token_is_good_for_what_it_was_made_for_and_nothing_else() {
        let random = Counting::default();
        let tokens = PageTokens::new(&random);
        for place in [
            PlaceInList {
                token: Some("next: ü\"".into()),
                skip: 3,
            },
            PlaceInList {
                token: None,
                skip: u32::MAX,
            },
        ] {
            let text = tokens.seal(&random, &place, b"alice").unwrap();
            assert_eq!(tokens.open(&text, b"alice"), Some(place.clone()));
            assert_eq!(tokens.open(&text, b"bob"), None);
            assert_ne!(tokens.seal(&random, &place, b"alice").unwrap(), text);
            assert_eq!(PageTokens::new(&random).open(&text, b"alice"), None);
            let again = |text: &str| tokens.open(text, b"alice");
            for cut in 0..text.len() {
                assert_eq!(again(&text[..cut]), None, "{cut}");
            }
            for at in 0..text.len() {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                assert_eq!(again(std::str::from_utf8(&bytes).unwrap()), None, "{at}");
            }
            assert_eq!(again(&format!("{text}A")), None);
            assert_eq!(again(&format!("{text}=")), None);
        }
        for text in ["", "2", "MA", "é", "next: ü", &"A".repeat(9000)] {
            assert_eq!(tokens.open(text, b"alice"), None, "{text}");
        }
    }
}
