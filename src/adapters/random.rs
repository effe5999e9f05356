//! The system's cryptographic generator.

use crate::pipeline::ports::Random;
use aws_lc_rs::rand;

/// Randomness from AWS-LC, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // AWS-LC aborts the process rather than report that the system has no entropy, so an
        // error here means a broken build; zeros would pass as random, hence no way on.
        #[allow(clippy::expect_used)]
        rand::fill(bytes).expect("the system has randomness");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_fills_differ() {
        let (mut one, mut other) = ([0; 16], [0; 16]);
        SystemRandom.fill(&mut one);
        SystemRandom.fill(&mut other);
        assert_ne!(one, other);
    }
}
