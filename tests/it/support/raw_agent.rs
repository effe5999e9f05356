//! An agent on a raw socket that does exactly what its script says.
//!
//! A polite server cannot show how far a request got: these close, reset, hang and die at chosen
//! points, and count what they saw.

use super::http1::{self, Fields, Framing, Reader, sha256};
use super::{loopback, within};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// What the agent does with one connection or request.
pub enum Act {
    /// Reads the request, answers these bytes, keeps the connection.
    Answer(Vec<u8>),
    /// Reads the request, answers these bytes, closes. With a cut body this is dying mid-stream.
    AnswerThenClose(Vec<u8>),
    /// The same, but with a reset.
    AnswerThenReset(Vec<u8>),
    /// Answers after the header and before the body, then closes without reading on.
    EarlyThenClose(Vec<u8>),
    /// Answers after the header and before the body, then goes on reading.
    Early(Vec<u8>),
    /// Accepts and closes.
    Close,
    /// Accepts and resets.
    Reset,
    /// Reads the header, closes.
    HeadThenClose,
    /// Reads the request, closes without a byte.
    ReadThenClose,
    /// Reads the request, resets without a byte.
    ReadThenReset,
    /// Reads the request, answers these bytes, then says nothing until the other side leaves.
    AnswerThenHang(Vec<u8>),
    /// Reads the request and says nothing until the other side leaves.
    Hang,
    /// Accepts and never reads.
    NeverRead,
    /// Reads the request, answers in pieces of this many bytes with this pause between.
    Drip(Vec<u8>, usize, Duration),
    /// Reads the request, then writes what the test sends, until it drops the sender; then closes
    /// unless told to keep the connection.
    Fed(mpsc::UnboundedReceiver<Vec<u8>>, Then),
}

/// What follows a [`Act::Fed`] answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
    Reset,
}

/// A request as far as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Number of its connection, from 0.
    pub connection: u64,
    /// Header block as it came.
    pub head: Vec<u8>,
    /// Body as far as it came, without chunk framing.
    pub body: Vec<u8>,
    /// Whether it came to its end.
    pub complete: bool,
}

impl Seen {
    /// First line and fields.
    pub fn fields(&self) -> (String, Fields) {
        http1::parse_head(&self.head)
    }

    /// The first field called `name` (lower case).
    pub fn field(&self, name: &str) -> Option<String> {
        http1::field(&self.fields().1, name).map(str::to_owned)
    }

    /// Hex SHA-256 of the body.
    pub fn body_hash(&self) -> String {
        sha256(&self.body)
    }
}

/// What the agent saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted connections.
    pub connections: u64,
    /// Connections that the other side left while the agent still wanted something from it.
    pub left: u64,
    /// Connections that ended, for whatever reason.
    pub ended: u64,
    /// Requests of which the whole header came, in that order.
    pub seen: Vec<Seen>,
    /// Bytes that arrived on all connections.
    pub bytes: u64,
}

impl Counts {
    /// Requests that came to their end.
    pub fn requests(&self) -> usize {
        self.seen.iter().filter(|seen| seen.complete).count()
    }
}

/// A running agent. Dropping it closes its port and every connection.
pub struct RawAgent {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

struct Shared {
    counts: Mutex<Counts>,
    script: Mutex<VecDeque<Act>>,
    bell: watch::Sender<u64>,
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        let done = change(&mut lock(&self.counts));
        self.bell.send_modify(|n| *n += 1);
        done
    }

    /// What comes next when it happens before anything is read.
    fn at_accept(&self) -> Option<Act> {
        let mut script = lock(&self.script);
        match script.front()? {
            Act::Close | Act::Reset | Act::NeverRead => script.pop_front(),
            _ => None,
        }
    }
}

impl RawAgent {
    /// Plays `script`, one act per connection or request in order of arrival. Whoever comes after
    /// its end is refused by closing at once.
    pub async fn start(script: impl IntoIterator<Item = Act>) -> RawAgent {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let (bell, changed) = watch::channel(0);
        let shared = Arc::new(Shared {
            counts: Mutex::default(),
            script: Mutex::new(script.into_iter().collect()),
            bell,
        });
        RawAgent {
            address: listener.local_addr().unwrap(),
            task: tokio::spawn(accept(listener, Arc::clone(&shared))),
            shared,
            changed,
        }
    }

    /// Adds acts to the end of the script.
    pub fn play(&self, acts: impl IntoIterator<Item = Act>) {
        lock(&self.shared.script).extend(acts);
    }

    /// What it saw so far.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.counts).clone()
    }

    /// Waits until what it saw satisfies `condition`.
    pub async fn until(&self, what: &str, condition: impl Fn(&Counts) -> bool) -> Counts {
        let mut changed = self.changed.clone();
        within(what, async {
            loop {
                changed.borrow_and_update();
                let counts = self.counts();
                if condition(&counts) {
                    return counts;
                }
                changed.changed().await.unwrap();
            }
        })
        .await
    }

    /// Closes the port and every connection, and waits until that is done.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for RawAgent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A port at which nobody listens, kept from others as long as this lives.
pub struct RefusingPort {
    pub address: SocketAddr,
    _socket: TcpSocket,
}

impl RefusingPort {
    pub fn new() -> RefusingPort {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(loopback()).unwrap();
        RefusingPort {
            address: socket.local_addr().unwrap(),
            _socket: socket,
        }
    }
}

/// A complete JSON answer with a length.
pub fn json_answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Header of a chunked event stream.
pub fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_vec()
}

/// One chunk.
pub fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// The last chunk.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let number = shared.note(|counts| {
                    counts.connections += 1;
                    counts.connections - 1
                });
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let mut reader = Reader::new(stream);
                    let left = serve(number, &mut reader, &shared).await.is_err();
                    drop(reader);
                    shared.note(|counts| {
                        counts.left += u64::from(left);
                        counts.ended += 1;
                    });
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// `Err` when the other side left first.
async fn serve(number: u64, reader: &mut Reader<TcpStream>, shared: &Shared) -> io::Result<()> {
    reader.inner_mut().set_nodelay(true)?;
    match shared.at_accept() {
        Some(Act::Close) => return Ok(()),
        Some(Act::Reset) => return reset(reader),
        Some(Act::NeverRead) => {
            // Without reading, the only way to learn that the other side left is an error event.
            reader.inner_mut().ready(tokio::io::Interest::ERROR).await?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        _ => {}
    }
    let mut counted = 0;
    loop {
        let head = reader.head().await;
        count(reader, &mut counted, shared);
        let Some(head) = head? else { return Ok(()) };
        let (_, fields) = http1::parse_head(&head);
        let index = shared.note(|counts| {
            counts.seen.push(Seen {
                connection: number,
                head,
                body: Vec::new(),
                complete: false,
            });
            counts.seen.len() - 1
        });
        let act = lock(&shared.script).pop_front();
        match &act {
            None | Some(Act::HeadThenClose | Act::Close) => return Ok(()),
            Some(Act::Reset) => return reset(reader),
            Some(Act::NeverRead) => {
                reader.inner_mut().ready(tokio::io::Interest::ERROR).await?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Some(Act::EarlyThenClose(bytes)) => return write(reader, bytes).await,
            Some(Act::Early(bytes)) => write(reader, bytes).await?,
            Some(_) => {}
        }
        let mut framing = http1::framing(&fields, Framing::Length(0));
        loop {
            let piece = reader.piece(&mut framing).await;
            count(reader, &mut counted, shared);
            let Some(piece) = piece? else { break };
            shared.note(|counts| counts.seen[index].body.extend_from_slice(&piece));
        }
        shared.note(|counts| counts.seen[index].complete = true);
        let Some(act) = act else { return Ok(()) };
        if !answer(act, reader).await? {
            return Ok(());
        }
    }
}

/// Whether the connection goes on.
async fn answer(act: Act, reader: &mut Reader<TcpStream>) -> io::Result<bool> {
    match act {
        Act::Answer(bytes) => write(reader, &bytes).await?,
        Act::AnswerThenClose(bytes) => {
            write(reader, &bytes).await?;
            return Ok(false);
        }
        Act::AnswerThenReset(bytes) => {
            write(reader, &bytes).await?;
            reset(reader)?;
            return Ok(false);
        }
        Act::Drip(bytes, size, pause) => {
            for piece in bytes.chunks(size) {
                write(reader, piece).await?;
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = reader.gone() => return Err(io::ErrorKind::ConnectionReset.into()),
                }
            }
        }
        Act::Fed(mut pieces, then) => {
            loop {
                let piece = tokio::select! {
                    biased;
                    piece = pieces.recv() => piece,
                    () = reader.gone() => return Err(io::ErrorKind::ConnectionReset.into()),
                };
                let Some(piece) = piece else { break };
                write(reader, &piece).await?;
            }
            match then {
                Then::Keep => {}
                Then::Close => return Ok(false),
                Then::Reset => {
                    reset(reader)?;
                    return Ok(false);
                }
            }
        }
        Act::Hang => {
            reader.gone().await;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Act::ReadThenClose => return Ok(false),
        Act::ReadThenReset => {
            reset(reader)?;
            return Ok(false);
        }
        Act::AnswerThenHang(bytes) => {
            write(reader, &bytes).await?;
            reader.gone().await;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        // These acted before the body was read.
        Act::Early(_) => {}
        Act::EarlyThenClose(_) | Act::HeadThenClose | Act::Close | Act::Reset | Act::NeverRead => {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn write(reader: &mut Reader<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    reader.inner_mut().write_all(bytes).await
}

/// Makes the coming close a reset.
fn reset(reader: &mut Reader<TcpStream>) -> io::Result<()> {
    reader.inner_mut().set_zero_linger()
}

fn count(reader: &Reader<TcpStream>, counted: &mut u64, shared: &Shared) {
    let new = reader.bytes - *counted;
    *counted = reader.bytes;
    shared.note(|counts| counts.bytes += new);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
