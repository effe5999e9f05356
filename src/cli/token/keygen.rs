//! `portcullis token keygen`: a new key, and the entry that makes the gateway trust it.

use super::{Trouble, quoted};
use crate::cli::dev_issuer::{DevAlgorithm, DevIssuer, KeyError};
use crate::cli::exit;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What key to make, and for whom.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Folder for the two files; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Signature algorithm
    #[arg(long, value_name = "ALG", default_value = "ES256", value_parser = ["ES256", "RS256", "EdDSA"])]
    alg: String,
    /// Name of the issuer's entry, and of the private key's file
    #[arg(long, value_name = "NAME", default_value = "dev", value_parser = name)]
    name: String,
    /// The `iss` value for the printed entry
    #[arg(long, value_name = "URL", default_value = "https://dev-issuer.test")]
    issuer: String,
    /// The `aud` value for the printed entry
    #[arg(long, value_name = "URL", default_value = "https://gateway.test")]
    audience: String,
}

/// It becomes a file's name and an entry's.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("a name has letters, digits, `-` and `_`, and starts with a letter or digit".into())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    let algorithm = DevAlgorithm::NAMES
        .iter()
        .find(|(name, _)| *name == arguments.alg)
        .map_or(DevAlgorithm::Es256, |(_, algorithm)| *algorithm);
    let out = &arguments.out;
    if out.exists() && !out.is_dir() {
        return Err(Trouble::file(
            out,
            "it is not a folder",
            "name the folder for the two files; it is made if it is not there",
        ));
    }
    fs::create_dir_all(out)
        .map_err(|error| Trouble::file(out, error, "name a folder that you may write to"))?;
    let private = out.join(format!("{}.private.pem", arguments.name));
    let public = out.join("jwks.json");
    for path in [&private, &public] {
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists(path));
        }
    }
    let issuer = DevIssuer::generate(algorithm)
        .map_err(|error| Trouble::file(&private, error, "try again"))?;
    issuer.save(&private).map_err(|error| match error {
        KeyError::File(error) => unwritten(&private, &error),
        other => Trouble::file(&private, other, "try again"),
    })?;
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&public)
        .and_then(|mut file| file.write_all(issuer.jwks().as_bytes()));
    if let Err(error) = written {
        // A private key whose public half is nowhere is of no use, and would block the next try.
        let _ = fs::remove_file(&private);
        return Err(unwritten(&public, &error));
    }
    eprintln!(
        "wrote {} (private: it signs tokens, keep it on this machine)",
        private.display()
    );
    eprintln!("wrote {} (public)", public.display());
    eprintln!("paste this into the gateway file:\n");
    print!("{}", entry(arguments, &public));
    eprintln!(
        "\nthen: portcullis token mint --key {} --config GATEWAY.yaml --issuer-name {} --sub alice --grant agent",
        private.display(),
        arguments.name
    );
    Ok(exit::YES)
}

fn exists(path: &Path) -> Trouble {
    Trouble::file(
        path,
        "it is there already, and keys are never overwritten",
        "choose another folder with --out, or move the old files away",
    )
}

fn unwritten(path: &Path, error: &std::io::Error) -> Trouble {
    if error.kind() == ErrorKind::AlreadyExists {
        return exists(path);
    }
    Trouble::file(
        path,
        error,
        "name a folder with --out that you may write to",
    )
}

/// The entry for `issuers`. The key file is named absolutely, since nobody knows yet where the
/// gateway file is.
fn entry(arguments: &Arguments, public: &Path) -> String {
    let public = fs::canonicalize(public).unwrap_or_else(|_| public.to_owned());
    format!(
        "issuers:\n  \
         - name: {}\n    \
           issuer: {}\n    \
           audiences: [{}]\n    \
           keys: {{file: {}}}\n    \
           grants:\n      \
             - {{path: [scope], form: space_string, map: {{a2a.agent: agent, a2a.full: full}}}}\n    \
           development: true\n",
        quoted(&arguments.name),
        quoted(&arguments.issuer),
        quoted(&arguments.audience),
        quoted(&public.display().to_string()),
    )
}
