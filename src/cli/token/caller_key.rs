//! The key of a caller, to which tokens can be bound (RFC 9449), and certificates (RFC 8705).

use super::{Trouble, warn};
use crate::cli::dev_issuer::{DevAlgorithm, DevIssuer, KeyError};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::path::Path;

/// Reads a key file.
pub(super) fn load(path: &Path) -> Result<DevIssuer, Trouble> {
    let (key, exposed) = DevIssuer::load(path).map_err(|error| unusable(path, error))?;
    if exposed {
        warn(format!(
            "other users of this machine may open `{0}`; run `chmod 600 {0}`",
            path.display()
        ));
    }
    Ok(key)
}

/// Reads a key file, or makes one where there is none.
fn load_or_make(path: &Path) -> Result<DevIssuer, Trouble> {
    let missing =
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if !missing {
        return load(path);
    }
    let key = DevIssuer::generate(DevAlgorithm::Es256).map_err(|error| unusable(path, error))?;
    key.save(path).map_err(|error| unusable(path, error))?;
    eprintln!(
        "wrote {} (private: the caller's key, which proves that the token is its own)",
        path.display()
    );
    Ok(key)
}

fn unusable(path: &Path, error: KeyError) -> Trouble {
    Trouble::file(
        path,
        error,
        "name a private key as `portcullis token mint --dpop-key` makes it: PKCS#8 PEM",
    )
}

/// The members of `cnf` for a key, a thumbprint and a certificate, as far as they are given.
pub(super) fn confirmation(
    key: Option<&Path>,
    thumbprint: Option<&str>,
    certificate: Option<&Path>,
) -> Result<Map<String, Value>, Trouble> {
    let mut members = Map::new();
    if let Some(path) = key {
        members.insert("jkt".into(), json!(load_or_make(path)?.kid()));
    }
    if let Some(thumbprint) = thumbprint {
        members.insert("jkt".into(), json!(thumbprint));
    }
    if let Some(path) = certificate {
        let leaf = CertificateDer::from_pem_file(path).map_err(|_| {
            Trouble::file(
                path,
                "there is no certificate in it",
                "name the PEM file with the client's own certificate, first if there are several",
            )
        })?;
        let print = URL_SAFE_NO_PAD.encode(digest(&SHA256, &leaf));
        members.insert("x5t#S256".into(), json!(print));
    }
    Ok(members)
}

/// A thumbprint as it stands in tokens.
pub(super) fn thumbprint(text: &str) -> Result<String, String> {
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(bytes) if bytes.len() == 32 => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err("it is the base64url of a SHA-256: 43 characters, no padding".into()),
    }
}
