//! Tokens that are bound to a key or a certificate, through the whole gateway.
//!
//! Answers: who can use such a token, and who cannot although it has it. Invariants: every refusal
//! asserts that the agent saw nothing. Start reading at [`dpop`].

mod dpop;
mod grpc;
mod mtls;

use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{DevAlgorithm, DevIssuer};
use portcullis::cli::dev_proof::ProofClaims;
use serde_json::{Value, json};

/// A caller with a key of its own.
struct Holder(DevIssuer);

impl Holder {
    fn new() -> Holder {
        Holder(DevIssuer::generate(DevAlgorithm::Es256).unwrap())
    }

    /// The claims of a token that is bound to the key.
    fn bound(&self) -> Value {
        json!({"role": "reviewer", "cnf": {"jkt": self.0.kid()}})
    }

    /// A new proof for `POST`.
    fn proof(&self, url: &str, token: &str) -> String {
        self.prove(&ProofClaims {
            method: "POST",
            url,
            token: Some(token),
            ..ProofClaims::default()
        })
    }

    fn prove(&self, claims: &ProofClaims<'_>) -> String {
        self.0
            .prove(claims, &SystemClock::new(), &SystemRandom)
            .unwrap()
    }
}
