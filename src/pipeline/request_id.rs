//! [`RequestId`]: the name of one request in records, logs, headers and answers.

use super::ports::{Clock, Random, UnixMillis};
use std::fmt;

/// A ULID: 48 bits of milliseconds and 80 random bits in 26 characters of Crockford's base 32.
/// Ids of different milliseconds sort by time. Kept as text, so that showing one costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId([u8; 26]);

impl RequestId {
    /// A new id for now.
    pub fn new(clock: &dyn Clock, random: &dyn Random) -> RequestId {
        let mut random_bits = [0; 10];
        random.fill(&mut random_bits);
        RequestId::of(clock.now(), random_bits)
    }

    /// The id of a time (milliseconds since the Unix epoch) and 80 random bits.
    pub fn of(now: UnixMillis, random: [u8; 10]) -> RequestId {
        let mut bits = [0; 16];
        bits[..10].copy_from_slice(&random);
        let mut text = [b'0'; 26];
        let id = ulid::Ulid::from_parts(now, u128::from_le_bytes(bits));
        id.array_to_str(&mut text);
        RequestId(text)
    }

    /// The 26 characters.
    pub fn as_str(&self) -> &str {
        // The encoding is ASCII by construction.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct At(u64);

    impl Clock for At {
        fn now(&self) -> u64 {
            self.0
        }
        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    struct Fill(u8);

    impl Random for Fill {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn an_id_is_time_then_randomness_in_26_characters() {
        // The time is the example of the ULID specification.
        let id = RequestId::new(&At(1_469_918_176_385), &Fill(0));
        assert_eq!(id.as_str(), "01ARYZ6S410000000000000000");
        let id = RequestId::new(&At(1_469_918_176_385), &Fill(0xff));
        assert_eq!(id.to_string(), "01ARYZ6S41ZZZZZZZZZZZZZZZZ");
        assert!(RequestId::new(&At(1_469_918_176_386), &Fill(0)) > id);
    }
}
