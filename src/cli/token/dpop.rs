//! `portcullis token dpop`: a proof of possession on standard output, and nothing else there.

use super::{Trouble, caller_key, inspect};
use crate::adapters::clock::SystemClock;
use crate::adapters::random::SystemRandom;
use crate::cli::dev_proof::ProofClaims;
use crate::cli::exit;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the proof is for.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The caller's private key, to which `portcullis token mint --dpop-key` bound the token
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The HTTP method of the request
    #[arg(long, value_name = "METHOD")]
    method: String,
    /// The URL of the request as callers see it; its query does not count
    #[arg(long, value_name = "URL", value_parser = url)]
    url: String,
    /// A file with the token that goes with the proof; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// The nonce that the gateway's last reply gave in `DPoP-Nonce`
    #[arg(long, value_name = "NONCE")]
    nonce: Option<String>,
}

fn url(text: &str) -> Result<String, String> {
    match text.starts_with("https://") || text.starts_with("http://") {
        true => Ok(text.to_owned()),
        false => Err("write it in full, with `https://` or `http://`".into()),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    let key = caller_key::load(&arguments.key)?;
    let text = arguments.token.as_deref().map(token).transpose()?;
    let proof = key.prove(
        &ProofClaims {
            method: &arguments.method,
            url: &arguments.url,
            token: text.as_deref().map(inspect::bare),
            nonce: arguments.nonce.as_deref(),
            ..ProofClaims::default()
        },
        &SystemClock::new(),
        &SystemRandom,
    );
    let proof = proof.map_err(|error| Trouble::file(&arguments.key, error, "make a new key"))?;
    println!("{proof}");
    Ok(exit::YES)
}

fn token(path: &Path) -> Result<String, Trouble> {
    if path == Path::new("-") {
        return inspect::from_input();
    }
    let unread = |what: String| Trouble::file(path, what, "name the file that holds the token");
    let file = std::fs::File::open(path).map_err(|error| unread(error.to_string()))?;
    let mut text = String::new();
    file.take(inspect::MAX_INPUT)
        .read_to_string(&mut text)
        .map_err(|error| unread(error.to_string()))?;
    Ok(text)
}
