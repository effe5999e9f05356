//! An agent that speaks HTTP/2 and does exactly what its script says, one act per stream.

mod stream;

use super::{loopback, within};
use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// What the agent does with one stream.
pub enum H2Act {
    /// Reads the request and answers.
    Answer(H2Answer),
    /// Answers before the body, then goes on reading it.
    Early(H2Answer),
    /// Answers before the body, which it never reads.
    EarlyUnread(H2Answer),
    /// Refuses the stream without looking at it: `REFUSED_STREAM`.
    Refuse,
    /// At the connection's first stream says that it processed none: `GOAWAY` below it.
    GoAwayBelow,
    /// Says `GOAWAY` that covers the stream, then closes the connection.
    GoAwayAndClose,
    /// Closes the connection without a word, the body unread.
    HeadThenClose,
    /// Reads the request, then closes the connection without a word.
    ReadThenClose,
    /// Reads the request, then resets the stream.
    ReadThenReset(Reason),
    /// Reads the request, sends this much of an answer, then resets the stream.
    AnswerThenReset(H2Answer),
    /// Reads the request, sends this much of an answer, then says nothing more.
    AnswerThenHang(H2Answer),
    /// Reads the request and says nothing.
    Hang,
    /// Never opens a window for the body, and says nothing.
    NeverRead,
    /// Reads the request, then sends what the test sends, until it drops the sender; then ends or
    /// resets the stream.
    Fed(H2Answer, mpsc::UnboundedReceiver<Vec<u8>>, H2Then),
}

/// What follows an [`H2Act::Fed`] answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum H2Then {
    End,
    Reset,
}

/// A reply.
#[derive(Debug, Clone, Default)]
pub struct H2Answer {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub trailers: Option<Vec<(&'static str, String)>>,
}

impl H2Answer {
    /// A JSON reply.
    pub fn json(status: u16, body: &str) -> H2Answer {
        H2Answer {
            status,
            fields: vec![("content-type", "application/json".to_owned())],
            body: body.as_bytes().to_vec(),
            trailers: None,
        }
    }

    /// A gRPC reply: frames, then trailers.
    pub fn grpc(body: Vec<u8>, trailers: &[(&'static str, &str)]) -> H2Answer {
        H2Answer {
            status: 200,
            fields: vec![("content-type", "application/grpc".to_owned())],
            body,
            trailers: Some(
                trailers
                    .iter()
                    .map(|(n, v)| (*n, (*v).to_owned()))
                    .collect(),
            ),
        }
    }
}

/// A request as far as it arrived.
#[derive(Debug, Clone)]
pub struct H2Seen {
    pub connection: u64,
    pub method: String,
    pub scheme: String,
    pub authority: String,
    pub path: String,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
    pub complete: bool,
    /// The other side reset the stream.
    pub reset: bool,
}

impl H2Seen {
    /// The only field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|v| v.to_str().ok())
    }
}

/// What the agent saw.
#[derive(Debug, Clone, Default)]
pub struct H2Counts {
    pub connections: u64,
    /// TLS handshakes that failed.
    pub failed_handshakes: u64,
    pub seen: Vec<H2Seen>,
    /// Who asked for the card; not among `seen`.
    pub cards: Vec<H2Seen>,
}

impl H2Counts {
    /// Requests that came to their end.
    pub fn requests(&self) -> usize {
        self.seen.iter().filter(|seen| seen.complete).count()
    }
}

struct Shared {
    counts: Mutex<H2Counts>,
    script: Mutex<VecDeque<H2Act>>,
    card: Mutex<Option<H2Answer>>,
    bell: watch::Sender<u64>,
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut H2Counts) -> T) -> T {
        let done = change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.send_modify(|n| *n += 1);
        done
    }

    fn next(&self) -> Option<H2Act> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front()
    }

    fn show(&self, respond: &mut SendResponse<Bytes>) {
        let card = self.card.lock().unwrap_or_else(PoisonError::into_inner);
        let card = card.clone().unwrap_or(H2Answer::json(404, "{}"));
        // Whoever asked may have left.
        if let Ok(mut body) = respond.send_response(head(&card), false) {
            let _ = body.send_data(card.body.into(), true);
        }
    }

    fn is_next(&self, is: impl FnOnce(&H2Act) -> bool) -> bool {
        let script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.front().is_some_and(is)
    }
}

/// A running agent. Dropping it closes its port and every connection.
pub struct H2Agent {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl H2Agent {
    /// Plaintext, by prior knowledge.
    pub async fn start(script: impl IntoIterator<Item = H2Act>) -> H2Agent {
        H2Agent::start_with(None, script).await
    }

    /// Over TLS.
    pub async fn start_with(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl IntoIterator<Item = H2Act>,
    ) -> H2Agent {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (bell, changed) = watch::channel(0);
        let shared = Arc::new(Shared {
            counts: Mutex::default(),
            script: Mutex::new(script.into_iter().collect()),
            card: Mutex::default(),
            bell,
        });
        let acceptor = tls.map(TlsAcceptor::from);
        let task = tokio::spawn(accept(listener, acceptor, shared.clone()));
        H2Agent {
            address,
            shared,
            changed,
            task,
        }
    }

    /// More of the script.
    pub fn play(&self, acts: impl IntoIterator<Item = H2Act>) {
        let script = self.shared.script.lock();
        script.unwrap_or_else(PoisonError::into_inner).extend(acts);
    }

    /// What it answers a gateway that asks for its card; until then 404.
    pub fn show(&self, card: H2Answer) {
        let shown = self.shared.card.lock();
        *shown.unwrap_or_else(PoisonError::into_inner) = Some(card);
    }

    /// What it saw so far.
    pub fn counts(&self) -> H2Counts {
        self.shared.note(|counts| counts.clone())
    }

    /// Awaits a condition on what it saw.
    pub async fn until(&self, what: &str, is: impl Fn(&H2Counts) -> bool) -> H2Counts {
        let mut changed = self.changed.clone();
        let shared = &self.shared;
        within(what, async {
            loop {
                changed.mark_unchanged();
                let counts = shared
                    .counts
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                if is(&counts) {
                    return counts;
                }
                changed.changed().await.unwrap();
            }
        })
        .await
    }
}

impl Drop for H2Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = shared.note(|counts| {
            counts.connections += 1;
            counts.connections - 1
        });
        let (tls, shared) = (tls.clone(), shared.clone());
        connections.spawn(async move {
            match tls {
                None if shared.is_next(|act| matches!(act, H2Act::GoAwayBelow)) => {
                    shared.next();
                    go_away_below(stream).await;
                }
                None => connection(stream, number, shared).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => connection(stream, number, shared).await,
                    Err(_) => shared.note(|counts| counts.failed_handshakes += 1),
                },
            }
        });
    }
}

/// Reads to the first HEADERS frame and says that no stream was processed.
async fn go_away_below(mut stream: TcpStream) {
    let mut preface = [0u8; 24];
    if stream.read_exact(&mut preface).await.is_err() {
        return;
    }
    // An empty SETTINGS frame.
    let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    for _ in 0..16 {
        let mut head = [0u8; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).await.is_err() {
            return;
        }
        if head[3] == 1 {
            break;
        }
    }
    // GOAWAY, last stream 0, NO_ERROR.
    let frame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let _ = stream.write_all(&frame).await;
    let mut rest = [0u8; 1024];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn connection<S>(stream: S, number: u64, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut options = h2::server::Builder::new();
    // Small enough that a large body must wait for us.
    options
        .initial_window_size(65_535)
        .initial_connection_window_size(1 << 20);
    let Ok(mut connection) = options.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let mut streams = JoinSet::new();
    let (closing, mut close) = mpsc::unbounded_channel();
    let pings = connection.ping_pong().unwrap();
    let pings = Arc::new(tokio::sync::Mutex::new(pings));
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, mut respond))) = accepted else { return };
                if request.headers().get("portcullis-purpose").is_some_and(|p| p == "card") {
                    shared.note(|counts| counts.cards.push(seen(number, &request)));
                    shared.show(&mut respond);
                    continue;
                }
                let Some(act) = shared.next() else { continue };
                let index = shared.note(|counts| {
                    counts.seen.push(seen(number, &request));
                    counts.seen.len() - 1
                });
                let one = Stream {
                    index,
                    shared: shared.clone(),
                    closing: closing.clone(),
                    pings: pings.clone(),
                };
                streams.spawn(one.play(act, request.into_body(), respond));
            }
            Some(closing) = close.recv() => {
                if closing == Closing::SaysSo {
                    say_goodbye(&mut connection).await;
                }
                return;
            }
        }
    }
}

/// GOAWAY that covers what was accepted, then the end.
async fn say_goodbye<S>(connection: &mut Connection<S, Bytes>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    connection.graceful_shutdown();
    // Writes the frame; there is nothing to accept.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(20), connection.accept()).await;
}

fn seen(connection: u64, request: &Request<RecvStream>) -> H2Seen {
    let uri = request.uri();
    H2Seen {
        connection,
        method: request.method().to_string(),
        scheme: uri.scheme_str().unwrap_or_default().to_owned(),
        authority: uri.authority().map(ToString::to_string).unwrap_or_default(),
        path: uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        fields: request.headers().clone(),
        body: Vec::new(),
        complete: false,
        reset: false,
    }
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    SaysSo,
    Silently,
}

fn head(answer: &H2Answer) -> Response<()> {
    let mut response = Response::builder().status(answer.status).body(()).unwrap();
    *response.headers_mut() = fields(&answer.fields);
    response
}

/// Fields as a map.
pub fn fields(list: &[(&'static str, String)]) -> HeaderMap {
    list.iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}
