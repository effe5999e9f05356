//! TLS of listeners and backends: files of certificates and keys, compiled to what rustls takes.

use super::capture::Capture;
use super::document;
use super::snapshot::{BackendTls, ClientCa, ListenerTls};
use crate::source::{Value, codes};
use aws_lc_rs::digest::{Context, SHA256};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provided};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// The one provider of cryptography; nothing depends on what other crates would choose.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(provided::default_provider())
}

/// Reads `tls` and `client_ca` of a listener.
pub(super) fn listener(
    tls: &Value<'_, '_>,
    client_ca: Option<&Value<'_, '_>>,
    capture: &Capture,
) -> Option<Arc<ListenerTls>> {
    let fields = tls.fields(&document::LISTENER_TLS)?;
    let place = fields.get("certificates")?;
    let mut keys = Vec::new();
    for entry in place.list().unwrap_or_default() {
        let pair = entry.fields(&document::CERTIFICATE);
        let Some((cert, key)) = pair.and_then(|f| Some((f.get("cert")?, f.get("key")?))) else {
            continue;
        };
        keys.extend(certified(&cert, &key, capture).map(Arc::new));
    }
    let verifier = match client_ca {
        Some(value) => Some(verifier(value, capture)?),
        None => None,
    };
    if keys.is_empty() {
        return None;
    }
    let client_ca = verifier.as_ref().map(|(_, mode)| *mode);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .ok()?;
    let builder = match verifier {
        Some((verifier, _)) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName(keys)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Some(Arc::new(ListenerTls {
        config: Arc::new(config),
        client_ca,
    }))
}

/// The certificate that is for the name that a caller asks for; the first one for all others.
#[derive(Debug)]
struct ByName(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let first = self.0.first()?;
        let name = hello
            .server_name()
            .and_then(|n| ServerName::try_from(n).ok());
        let named = name.filter(|_| self.0.len() > 1).and_then(|name| {
            self.0.iter().find(|key| {
                let leaf = key.cert.first().map(ParsedCertificate::try_from);
                leaf.and_then(Result::ok)
                    .is_some_and(|leaf| rustls::client::verify_server_name(&leaf, &name).is_ok())
            })
        });
        Some(named.unwrap_or(first).clone())
    }
}

fn verifier(
    value: &Value<'_, '_>,
    capture: &Capture,
) -> Option<(Arc<dyn ClientCertVerifier>, ClientCa)> {
    let fields = value.fields(&document::CLIENT_CA)?;
    let mode = fields.get("mode").and_then(|v| {
        v.word(&[
            ("optional", ClientCa::Optional),
            ("required", ClientCa::Required),
        ])
    });
    let file = fields.get("file")?;
    let roots = authorities(&file, capture)?.0;
    let mode = mode?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    let builder = match mode {
        ClientCa::Optional => builder.allow_unauthenticated(),
        ClientCa::Required => builder,
    };
    match builder.build() {
        Ok(verifier) => Some((verifier, mode)),
        Err(error) => {
            unusable(&file, &error.to_string());
            None
        }
    }
}

/// How connections to an agent are secured, apart from whose name its certificate must have.
pub(super) struct Trust {
    config: Arc<ClientConfig>,
    server_name: Option<Box<str>>,
    digest: [u8; 32],
}

impl Trust {
    /// Reads `backend.tls`; without it the machine's authorities are trusted. `place` is where
    /// the need for TLS stands.
    pub(super) fn read(
        tls: Option<&Value<'_, '_>>,
        place: &Value<'_, '_>,
        capture: &Capture,
    ) -> Option<Trust> {
        let fields = match tls {
            Some(tls) => Some(tls.fields(&document::BACKEND_TLS)?),
            None => None,
        };
        let get = |name: &str| fields.as_ref().and_then(|f| f.get(name));
        let mut seen = Context::new(&SHA256);
        let server_name = get("server_name").and_then(|v| server_name(&v));
        let roots = match get("ca") {
            Some(file) => {
                let (roots, bytes) = authorities(&file, capture)?;
                seen.update(bytes);
                roots
            }
            None => machine_authorities(place)?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(roots);
        let config = match get("client") {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let pair = client.fields(&document::CERTIFICATE)?;
                let (cert, key) = (pair.get("cert")?, pair.get("key")?);
                let certified = certified(&cert, &key, capture)?;
                for der in &certified.cert {
                    seen.update(der);
                }
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                    certified,
                )))
            }
        };
        let mut digest = [0; 32];
        digest.copy_from_slice(seen.finish().as_ref());
        Some(Trust {
            config: Arc::new(config),
            server_name,
            digest,
        })
    }

    /// For connections whose server is known by its URL.
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// For the origin with this host, a name or an IP literal: its certificate must be for that,
    /// or for the configured name.
    pub(super) fn towards(&self, host: &str) -> Arc<BackendTls> {
        let server_name = self.server_name.clone().unwrap_or_else(|| host.into());
        let mut seen = Context::new(&SHA256);
        seen.update(&self.digest);
        seen.update(server_name.as_bytes());
        let mut key = [0; 8];
        for (to, from) in key.iter_mut().zip(seen.finish().as_ref()) {
            *to = *from;
        }
        Arc::new(BackendTls {
            server_name,
            config: self.config.clone(),
            key: u64::from_be_bytes(key),
        })
    }
}

fn server_name(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    if ServerName::try_from(text).is_ok() {
        return Some(text.to_ascii_lowercase().into());
    }
    value.error(
        codes::BAD_HOST,
        "not a host name or IP address",
        "write the name that the agent's certificate is for, such as `agent.internal`",
    );
    None
}

fn machine_authorities(place: &Value<'_, '_>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        place.error(
            codes::CERTIFICATE,
            "this machine has no certificate authorities, so the server's certificate cannot be verified",
            "name the server's own with `tls: {ca: FILE}`",
        );
        return None;
    }
    Some(roots)
}

/// Certificate authorities, and the bytes that they were read from.
fn authorities<'c>(
    file: &Value<'_, '_>,
    capture: &'c Capture,
) -> Option<(RootCertStore, &'c [u8])> {
    let bytes = content(file, capture)?;
    let mut roots = RootCertStore::empty();
    for certificate in chain(file, bytes)? {
        if let Err(error) = roots.add(certificate) {
            unusable(file, &error.to_string());
            return None;
        }
    }
    Some((roots, bytes))
}

/// Certificate authorities in DER, each of which can be one.
pub(super) fn bundle(file: &Value<'_, '_>, capture: &Capture) -> Option<Vec<Box<[u8]>>> {
    let (_, bytes) = authorities(file, capture)?;
    let certificates = chain(file, bytes)?;
    Some(certificates.iter().map(|der| Box::from(&**der)).collect())
}

/// A certificate chain with its key, checked to belong together.
fn certified(cert: &Value<'_, '_>, key: &Value<'_, '_>, capture: &Capture) -> Option<CertifiedKey> {
    let certificates = content(cert, capture).and_then(|bytes| chain(cert, bytes));
    let private = content(key, capture).and_then(|bytes| private_key(key, bytes));
    let (certificates, private) = (certificates?, private?);
    match CertifiedKey::from_der(certificates, private, &provided::default_provider()) {
        Ok(certified) => Some(certified),
        Err(rustls::Error::InconsistentKeys(_)) => {
            key.error(
                codes::CERTIFICATE,
                "the key does not belong to the certificate",
                "name the key that the certificate was made for; the first certificate of the file is the server's own",
            );
            None
        }
        Err(error) => {
            unusable(cert, &error.to_string());
            None
        }
    }
}

fn chain(file: &Value<'_, '_>, bytes: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let certificates = match read {
        Ok(certificates) => certificates,
        Err(error) => {
            unusable(file, &format!("it is not PEM: {error}"));
            return None;
        }
    };
    if certificates.is_empty() {
        unusable(file, "it holds no certificate");
        return None;
    }
    for certificate in &certificates {
        if let Err(error) = ParsedCertificate::try_from(certificate) {
            unusable(
                file,
                &format!("a certificate in it cannot be read: {error}"),
            );
            return None;
        }
    }
    Some(certificates)
}

fn unusable(file: &Value<'_, '_>, why: &str) {
    file.error(
        codes::CERTIFICATE,
        format!("the certificate file cannot be used: {why}"),
        "write X.509 certificates in PEM: `-----BEGIN CERTIFICATE-----`",
    );
}

fn private_key(file: &Value<'_, '_>, bytes: &[u8]) -> Option<PrivateKeyDer<'static>> {
    match PrivateKeyDer::from_pem_slice(bytes) {
        Ok(key) => Some(key),
        Err(_) => {
            // Not even the parser's words: they may quote the key.
            file.error(
                codes::CERTIFICATE,
                "the key file holds no private key in PEM",
                "write it without a passphrase: `-----BEGIN PRIVATE KEY-----`",
            );
            None
        }
    }
}

fn content<'c>(file: &Value<'_, '_>, capture: &'c Capture) -> Option<&'c [u8]> {
    let path = capture.resolve(file.text()?);
    let content = capture.files.get(&path)?;
    match &content.bytes {
        Ok(bytes) => {
            if content.world_writable {
                file.error(
                    codes::CERTIFICATE,
                    "every user of this machine may write the file",
                    "run `chmod o-w` on it; whoever can write it can be anybody",
                );
            }
            Some(bytes)
        }
        Err(why) => {
            file.error(
                codes::CERTIFICATE,
                format!("the file cannot be read: {why}"),
                "paths are relative to the gateway file; check the permissions too",
            );
            None
        }
    }
}
