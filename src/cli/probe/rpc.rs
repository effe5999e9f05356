//! The same question over gRPC, which is HTTP/2; in plaintext by prior knowledge.

use super::Outcome;
use super::http::{CONNECT_TIMEOUT, refusal};
use super::tls::{Broken, Seen, broken, config};
use crate::a2a::Version;
use bytes::Bytes;
use http::{HeaderMap, Request};
use reqwest::Url;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Asks for a task that is not there.
pub(super) async fn ask(url: &Url, seen: &Seen, version: Version, id: &str) -> Outcome {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Outcome::Unreachable("no address".to_owned());
    };
    let host = host.trim_matches(['[', ']']);
    let connecting = TcpStream::connect((host, port));
    let Ok(Ok(stream)) = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await else {
        return Outcome::Unreachable("no connection".to_owned());
    };
    let asked = if url.scheme() == "https" {
        let Ok(mut config) = config(seen) else {
            return Outcome::Unclear("no TLS that we speak".to_owned());
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let Ok(name) = ServerName::try_from(host.to_owned()) else {
            return Outcome::Unreachable("no address".to_owned());
        };
        match TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
        {
            Ok(stream) => exchange(stream, url, version, id).await,
            Err(error) => Err(Box::from(error)),
        }
    } else {
        exchange(stream, url, version, id).await
    };
    match asked {
        Ok(outcome) => outcome,
        Err(error) => match broken(&*error) {
            Broken::Refused(why) => Outcome::Refused(why),
            // A server of HTTP/1.1 alone closes, or answers what is no HTTP/2.
            Broken::NoTls(_) | Broken::Closed | Broken::Other => {
                Outcome::Unclear("no HTTP/2".to_owned())
            }
        },
    }
}

async fn exchange<S>(
    stream: S,
    url: &Url,
    version: Version,
    id: &str,
) -> Result<Outcome, Box<dyn Error>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = h2::client::handshake(stream).await?;
    // It ends with the stream, or with the runtime.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let (path, field, text) = match version {
        Version::V1_0 => ("/lf.a2a.v1.A2AService/GetTask", 2, id.to_owned()),
        Version::V0_3 => ("/a2a.v1.A2AService/GetTask", 1, format!("tasks/{id}")),
    };
    let mut at = url.clone();
    at.set_path(path);
    let request = Request::post(at.as_str())
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("portcullis-purpose", "probe")
        .body(())?;
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let (response, mut body) = sender.send_request(request, false)?;
    body.send_data(frame(field, &text), true)?;
    let (head, mut reply) = response.await?.into_parts();
    if let Some(refused) = refusal(head.status.as_u16()) {
        return Ok(refused);
    }
    let mut trailers = None;
    if status_of(&head.headers).is_none() {
        while let Some(data) = reply.data().await {
            reply.flow_control().release_capacity(data?.len())?;
        }
        trailers = reply.trailers().await?;
    }
    let status = status_of(&head.headers).or_else(|| trailers.as_ref().and_then(status_of));
    Ok(match status {
        Some(16 | 7) => Outcome::Refused(format!("gRPC status {}", status.unwrap_or(0))),
        Some(12) => Outcome::Unclear("no such gRPC service".to_owned()),
        // Such as 5: there is no such task.
        Some(status) => Outcome::Answered(format!("gRPC status {status}")),
        None => Outcome::Unclear(format!("no gRPC, status {}", head.status.as_u16())),
    })
}

fn status_of(headers: &HeaderMap) -> Option<u32> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}

/// A message with one text of fewer than 128 bytes, framed.
fn frame(field: u8, text: &str) -> Bytes {
    let mut frame = vec![
        0,
        0,
        0,
        0,
        text.len() as u8 + 2,
        (field << 3) | 2,
        text.len() as u8,
    ];
    frame.extend_from_slice(text.as_bytes());
    frame.into()
}
