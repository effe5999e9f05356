//! TLS of the probe: what it would not trust is noted, and asked all the same, since nothing secret
//! is sent. What the other end refuses is told apart from what cannot be reached.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs as provided;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Why this machine does not trust a certificate that was shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Option<String>>>);

impl Seen {
    pub(super) fn distrust(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn note(&self, why: &Error) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get_or_insert_with(|| why.to_string());
    }
}

/// Takes every certificate and notes what is wrong with it.
#[derive(Debug)]
struct Noting {
    /// None where this machine has no authorities.
    strict: Option<Arc<WebPkiServerVerifier>>,
    seen: Seen,
}

/// The settings of a connection that shows no certificate of its own.
pub(super) fn config(seen: &Seen) -> Result<ClientConfig, Error> {
    let provider = Arc::new(provided::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
    let noting = Noting {
        strict: verifier.build().ok(),
        seen: seen.clone(),
    };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(noting))
        .with_no_client_auth())
}

impl ServerCertVerifier for Noting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = match &self.strict {
            Some(strict) => {
                strict.verify_server_cert(end_entity, intermediates, server_name, ocsp, now)
            }
            None => Err(Error::General("no certificate authorities here".to_owned())),
        };
        if let Err(why) = verified {
            self.seen.note(&why);
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let supported = provided::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, &supported)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let supported = provided::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, &supported)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provided::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What went wrong with a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other end wants a client certificate, or ends TLS for another reason of its own.
    Refused(String),
    /// It speaks no TLS, or none that we do.
    NoTls(String),
    /// It accepted the connection and closed it.
    Closed,
    /// Anything else: most likely there is no connection.
    Other,
}

/// Looks for the reason at the bottom of an error.
pub(super) fn broken(error: &(dyn StdError + 'static)) -> Broken {
    let mut next = Some(error);
    let mut closed = false;
    while let Some(error) = next {
        let http2 = error.downcast_ref().and_then(h2::Error::get_io);
        let inner = http2.or(error.downcast_ref::<io::Error>()).and_then(|e| {
            closed |= matches!(
                e.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::BrokenPipe
            );
            e.get_ref()?.downcast_ref::<Error>()
        });
        if let Some(tls) = inner.or_else(|| error.downcast_ref::<Error>()) {
            return match tls {
                Error::AlertReceived(AlertDescription::CertificateRequired) => {
                    Broken::Refused("TLS: it wants a client certificate".to_owned())
                }
                Error::AlertReceived(alert) => Broken::Refused(format!("TLS alert: {alert:?}")),
                other => Broken::NoTls(format!("no TLS that we speak: {other}")),
            };
        }
        next = error.source();
    }
    match closed {
        true => Broken::Closed,
        false => Broken::Other,
    }
}
