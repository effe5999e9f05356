//! One request to an agent, on a connection of its own, in the HTTP version that is set for it.
//!
//! Nothing is repeated and nothing asked twice in another version. The first bytes that come back
//! tell an agent that speaks another version from one that is broken.

use crate::pipeline::cards::{BackendHttp, Speaks};
use bytes::{Bytes, BytesMut};
use h2::{Reason, RecvStream};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Largest head of a reply in HTTP/2; HTTP/1.1 has a bound of its own.
const MAX_HEAD: u32 = 64 * 1024;
/// What an agent may send ahead of us in HTTP/2.
const WINDOW: u32 = 256 * 1024;
/// Of what comes back first: a frame's head in HTTP/2.
const FIRST: usize = 9;

/// Where an agent is, and how it is spoken to.
pub struct Place<'a> {
    /// What goes into `Host` or `:authority`.
    pub authority: &'a str,
    /// Host name or IP literal, without brackets, to connect to.
    pub host: &'a str,
    /// TCP port.
    pub port: u16,
    /// The name that its certificate must be for, and whom we trust; `None` is plaintext.
    pub tls: Option<(&'a str, &'a ClientConfig)>,
    /// The HTTP version.
    pub speaks: Speaks,
}

/// How long it may take.
pub struct Bounds {
    /// To connect to one address.
    pub connect: Duration,
    /// For everything, from the lookup to the last byte of the body.
    pub total: Duration,
}

/// What went wrong, for those who look into it.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// No connection.
    Unreachable(Cause),
    /// No TLS on it: an end does not trust the other one, or they have no version in common.
    Tls(Cause),
    /// The time is over.
    TimedOut {
        /// Whether somebody had taken the connection by then.
        connected: bool,
    },
    /// The agent speaks another version of HTTP than this one, in which it was asked.
    OtherHttp(BackendHttp),
    /// Asked in this version, on which nobody agreed, the agent closed without a byte.
    Closed(BackendHttp),
    /// The connection broke, or what came is no HTTP.
    Broken(Cause),
    /// The body is larger than it may be.
    TooLarge,
}

/// An answer, of which the body is still to be read.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub headers: HeaderMap,
    body: Body,
    until: Instant,
}

enum Body {
    H1(Incoming),
    H2(RecvStream),
}

/// Asks once. The request's URI is a path, with a query or without.
///
/// # Errors
/// Why there is no answer.
pub async fn ask(
    place: &Place<'_>,
    request: Request<Bytes>,
    bounds: &Bounds,
) -> Result<Answer, Unanswered> {
    let until = Instant::now() + bounds.total;
    let heard = Heard::default();
    let asking = exchange(place, request, bounds.connect, until, &heard);
    match timeout_at(until, asking).await {
        Ok(asked) => asked,
        // Some servers go on waiting for what they understand.
        Err(_) => Err(heard.other_http().unwrap_or(Unanswered::TimedOut {
            connected: heard.asked().is_some(),
        })),
    }
}

impl Answer {
    /// The body, if it is of at most `bound` bytes.
    ///
    /// # Errors
    /// Why it did not come whole.
    pub async fn body(self, bound: usize) -> Result<Bytes, Unanswered> {
        let timed_out = Unanswered::TimedOut { connected: true };
        let reading = timeout_at(self.until, whole(self.body, bound));
        reading.await.unwrap_or(Err(timed_out))
    }
}

async fn whole(mut body: Body, bound: usize) -> Result<Bytes, Unanswered> {
    let mut read = BytesMut::new();
    while let Some(chunk) = body.chunk().await {
        let chunk = chunk.map_err(Unanswered::Broken)?;
        if read.len() + chunk.len() > bound {
            return Err(Unanswered::TooLarge);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

impl Body {
    async fn chunk(&mut self) -> Option<Result<Bytes, Cause>> {
        match self {
            Body::H1(body) => loop {
                match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
                    // Trailers are passed over.
                    Ok(frame) => {
                        if let Ok(data) = frame.into_data() {
                            return Some(Ok(data));
                        }
                    }
                    Err(error) => return Some(Err(error.into())),
                }
            },
            Body::H2(body) => {
                let read = body.data().await?.and_then(|data| {
                    body.flow_control().release_capacity(data.len())?;
                    Ok(data)
                });
                Some(read.map_err(Cause::from))
            }
        }
    }
}

async fn exchange(
    place: &Place<'_>,
    request: Request<Bytes>,
    connect: Duration,
    until: Instant,
    heard: &Heard,
) -> Result<Answer, Unanswered> {
    let tcp = connected(place, connect).await?;
    let Some((name, config)) = place.tls else {
        let version = match place.speaks {
            Speaks::H1 | Speaks::Agreed => BackendHttp::H1,
            Speaks::H2 => BackendHttp::H2,
        };
        heard.asking(version, false);
        return sent(tcp, place, version, request, until, heard).await;
    };
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = place.speaks.protocols();
    let name = ServerName::try_from(name.to_owned());
    let name = name.map_err(|error| Unanswered::Tls(error.into()))?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    let secured = match timeout(connect, secured).await {
        Ok(Ok(secured)) => secured,
        Ok(Err(error)) => return Err(untrusted(place.speaks, error)),
        Err(_) => return Err(Unanswered::TimedOut { connected: true }),
    };
    let agreed = secured.get_ref().1.alpn_protocol();
    let version = match (place.speaks, agreed == Some(b"h2")) {
        (Speaks::H2 | Speaks::Agreed, true) => BackendHttp::H2,
        // An agent that agrees on nothing speaks the version that knows no agreement.
        (Speaks::H2, false) => return Err(Unanswered::OtherHttp(BackendHttp::H2)),
        (Speaks::H1, _) | (Speaks::Agreed, false) => BackendHttp::H1,
    };
    heard.asking(version, agreed.is_some());
    sent(secured, place, version, request, until, heard).await
}

/// The first of the host's addresses that takes a connection.
async fn connected(place: &Place<'_>, bound: Duration) -> Result<TcpStream, Unanswered> {
    let in_vain = Unanswered::TimedOut { connected: false };
    let found = match timeout(bound, lookup_host((place.host, place.port))).await {
        Ok(found) => found.map_err(|error| Unanswered::Unreachable(error.into()))?,
        Err(_) => return Err(in_vain),
    };
    let mut last = Unanswered::Unreachable("the name has no address".into());
    for address in found.take(MAX_ADDRESSES) {
        match timeout(bound, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Otherwise each opening of a window waits for an acknowledgement.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = Unanswered::Unreachable(error.into()),
            Err(_) => last = Unanswered::TimedOut { connected: false },
        }
    }
    Err(last)
}

/// Why TLS failed: also because the other end speaks nothing of what we offered (RFC 7301).
fn untrusted(speaks: Speaks, error: io::Error) -> Unanswered {
    let tls = error.get_ref().and_then(|e| e.downcast_ref());
    let no_version = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    match speaks {
        Speaks::H1 if tls == Some(&no_version) => Unanswered::OtherHttp(BackendHttp::H1),
        Speaks::H2 if tls == Some(&no_version) => Unanswered::OtherHttp(BackendHttp::H2),
        Speaks::H1 | Speaks::H2 | Speaks::Agreed => Unanswered::Tls(error.into()),
    }
}

async fn sent<S>(
    stream: S,
    place: &Place<'_>,
    version: BackendHttp,
    request: Request<Bytes>,
    until: Instant,
    heard: &Heard,
) -> Result<Answer, Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = Overheard {
        stream,
        heard: heard.clone(),
    };
    let answer = match version {
        BackendHttp::H1 => h1(stream, place, request, until).await,
        BackendHttp::H2 => h2(stream, place, request, until).await,
    };
    let (status, headers, body) = answer.map_err(|error| heard.judge(error))?;
    Ok(Answer {
        status,
        headers,
        body,
        until,
    })
}

type Parts = (StatusCode, HeaderMap, Body);

async fn h1<S>(
    stream: Overheard<S>,
    place: &Place<'_>,
    mut request: Request<Bytes>,
    until: Instant,
) -> Result<Parts, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let host = HeaderValue::from_str(place.authority)?;
    request.headers_mut().insert(HOST, host);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the exchange, and with its time.
    tokio::spawn(timeout_at(until, connection));
    let response = sender
        .send_request(request.map(reqwest::Body::from))
        .await?;
    let (head, body) = response.into_parts();
    Ok((head.status, head.headers, Body::H1(body)))
}

async fn h2<S>(
    stream: Overheard<S>,
    place: &Place<'_>,
    request: Request<Bytes>,
    until: Instant,
) -> Result<Parts, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut head, body) = request.into_parts();
    // A `Host` beside `:authority` could only differ from it.
    let scheme = if place.tls.is_some() { "https" } else { "http" };
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = Uri::builder()
        .scheme(scheme)
        .authority(place.authority)
        .path_and_query(path)
        .build()?;
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .max_header_list_size(MAX_HEAD)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let (sender, connection) = builder.handshake::<_, Bytes>(stream).await?;
    tokio::spawn(timeout_at(until, connection));
    let mut sender = sender.ready().await?;
    let (response, mut rest) =
        sender.send_request(Request::from_parts(head, ()), body.is_empty())?;
    if !body.is_empty() {
        rest.send_data(body, true)?;
    }
    let (head, body) = response.await?.into_parts();
    Ok((head.status, head.headers, Body::H2(body)))
}

/// What is known of a connection when it fails.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// The version that is spoken, and whether TLS agreed on it.
    asked: Option<(BackendHttp, bool)>,
    first: Vec<u8>,
    /// In TLS 1.3, what an agent thinks of our certificate comes behind the handshake. HTTP/2 keeps
    /// it as words only.
    tls: Option<rustls::Error>,
}

impl Heard {
    fn with<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn asking(&self, version: BackendHttp, agreed: bool) {
        self.with(|known| known.asked = Some((version, agreed)));
    }

    fn asked(&self) -> Option<(BackendHttp, bool)> {
        self.with(|known| known.asked)
    }

    fn note(&self, bytes: &[u8]) {
        self.with(|known| {
            let room = FIRST.saturating_sub(known.first.len());
            known.first.extend(bytes.iter().take(room));
        });
    }

    /// Whether what came first belongs to the version that was not asked for.
    fn other_http(&self) -> Option<Unanswered> {
        self.with(|known| match known.asked? {
            (BackendHttp::H1, _) => is_settings(&known.first).then_some(BackendHttp::H1),
            (BackendHttp::H2, _) => known
                .first
                .starts_with(b"HTTP/1")
                .then_some(BackendHttp::H2),
        })
        .map(Unanswered::OtherHttp)
    }

    fn judge(&self, error: Cause) -> Unanswered {
        let reason = error.downcast_ref().and_then(h2::Error::reason);
        if reason == Some(Reason::HTTP_1_1_REQUIRED) {
            return Unanswered::OtherHttp(BackendHttp::H2);
        }
        if let Some(other) = self.other_http() {
            return other;
        }
        if let Some(tls) = self.with(|known| known.tls.take()) {
            return Unanswered::Tls(tls.into());
        }
        match self.with(|known| (known.asked, known.first.is_empty())) {
            (Some((version, false)), true) => Unanswered::Closed(version),
            _ => Unanswered::Broken(error),
        }
    }
}

/// The head of a SETTINGS frame, with which every server of HTTP/2 begins (RFC 9113 section 3.4).
fn is_settings(first: &[u8]) -> bool {
    matches!(first, [0, _, _, 4, 0, 0, 0, 0, 0])
}

/// A connection whose first bytes are kept.
struct Overheard<S> {
    stream: S,
    heard: Heard,
}

impl<S: AsyncRead + Unpin> AsyncRead for Overheard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.heard.note(&buffer.filled()[before..]);
        if let Err(error) = &read {
            let tls = error.get_ref().and_then(|e| e.downcast_ref());
            self.heard.with(|known| known.tls = tls.cloned());
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Overheard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
