//! [`DemoAgent`]: a small honest A2A agent inside the program, with counters of its own.
//!
//! `portcullis demo` puts the gateway in front of it, and tests do the same. The first word of a
//! message chooses what happens: `ask` leaves the task waiting for input, `wait` leaves it working
//! until it is canceled or continued, `fail` fails it, `message` answers without a task, anything
//! else completes at once. It lists everybody's tasks to everybody, and keeps push configurations
//! without delivering anything.
//!
//! Answers: what really reached an agent. May import: `a2a`. Invariants: it knows nothing of
//! gateways, serves whoever reaches it, and counts before it acts, so that its counts are proof.
//! Start reading at [`DemoAgent::start`].

mod http;
mod push;
mod service;
mod shapes;

pub use shapes::CardShape;

use http::{Connection, Request};
use service::{Answer, Service};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What every good answer says.
pub const GREETING: &str = "hello from the agent behind the gate";

/// How an agent presents itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// The card's name.
    pub name: String,
    /// Which versions' fields the card has.
    pub card: CardShape,
    /// Ids of its skills.
    pub skills: Vec<String>,
    /// Path of its JSON-RPC interface.
    pub path: String,
    /// More paths where it speaks JSON-RPC, which its card does not name.
    pub more_paths: Vec<String>,
    /// Paths beside the protocol that it answers with 200 to any method.
    pub other_paths: Vec<String>,
    /// Whether it has an extended card, which is its card.
    pub extended_card: bool,
    /// Whether every request is kept, for [`DemoAgent::requests`]. Grows without bound.
    pub keep_requests: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: "Demo agent".to_owned(),
            card: CardShape::Hybrid,
            skills: vec!["review-diff".to_owned(), "hello".to_owned()],
            path: "/a2a".to_owned(),
            more_paths: Vec::new(),
            other_paths: ["/a2a/status", "/config", "/nodes/devices"]
                .map(str::to_owned)
                .to_vec(),
            extended_card: false,
            keep_requests: false,
        }
    }
}

/// What the agent counted itself.
#[derive(Debug, Default)]
pub struct Counters {
    connections: AtomicU64,
    bytes: AtomicU64,
    cards: AtomicU64,
    requests: AtomicU64,
    executions: AtomicU64,
}

impl Counters {
    /// Accepted connections.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    /// Bytes that arrived, card requests included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Requests for its card.
    pub fn cards(&self) -> u64 {
        self.cards.load(Ordering::SeqCst)
    }

    /// All other requests that arrived, whatever became of them.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Messages that it acted on, and calls of paths beside the protocol.
    pub fn executions(&self) -> u64 {
        self.executions.load(Ordering::SeqCst)
    }
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Request line and header fields, with their line ends.
    pub head: Vec<u8>,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
}

/// A running agent. Dropping it closes its port and every connection.
pub struct DemoAgent {
    address: SocketAddr,
    counters: Arc<Counters>,
    kept: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl DemoAgent {
    /// Starts the agent with [`Options::default`] at `bind`; port 0 picks a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(bind: SocketAddr) -> io::Result<DemoAgent> {
        DemoAgent::start_with(bind, Options::default()).await
    }

    /// Starts the agent at `bind`.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start_with(bind: SocketAddr, options: Options) -> io::Result<DemoAgent> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Shared {
            service: Service::new(&options, address),
            counters: Arc::clone(&counters),
            kept: options.keep_requests.then(|| Arc::clone(&kept)),
            options,
        });
        Ok(DemoAgent {
            address,
            counters,
            kept,
            task: tokio::spawn(accept(listener, shared)),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and the address, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Every request so far but those for the card, in order of arrival; empty unless
    /// [`Options::keep_requests`].
    pub fn requests(&self) -> Vec<Received> {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Closes the port and every connection, and waits until that is done.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for DemoAgent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    service: Service,
    options: Options,
    counters: Arc<Counters>,
    kept: Option<Arc<Mutex<Vec<Received>>>>,
}

/// Owns every connection: aborting this task ends them all.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                shared.counters.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // An error means that the other side is gone or speaks no HTTP: there is nobody to tell.
    let _ = converse(stream, &shared).await;
}

async fn converse(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection::new(stream);
    let mut counted = 0;
    loop {
        let request = connection.read_request().await;
        let bytes = connection.bytes_read();
        shared
            .counters
            .bytes
            .fetch_add(bytes - counted, Ordering::SeqCst);
        counted = bytes;
        let Some(request) = request? else {
            return Ok(());
        };
        answer(&mut connection, shared, &request).await?;
        if request.close {
            return Ok(());
        }
    }
}

async fn answer(connection: &mut Connection, shared: &Shared, request: &Request) -> io::Result<()> {
    const JSON: &str = "application/json";
    let counters = &shared.counters;
    let path = request.path();
    if matches!(
        path,
        "/.well-known/agent-card.json" | "/.well-known/agent.json"
    ) {
        counters.cards.fetch_add(1, Ordering::SeqCst);
        return connection
            .respond(request, 200, JSON, shared.service.card())
            .await;
    }
    if path == "/counters" {
        let counts = serde_json::json!({
            "requests": counters.requests(),
            "executions": counters.executions(),
            "cards": counters.cards(),
        });
        return connection
            .respond(request, 200, JSON, counts.to_string().as_bytes())
            .await;
    }
    counters.requests.fetch_add(1, Ordering::SeqCst);
    if let Some(kept) = &shared.kept {
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Received {
                head: request.head.clone(),
                body: request.body.clone(),
            });
    }
    if path == shared.options.path || shared.options.more_paths.iter().any(|p| p == path) {
        if request.method() != "POST" {
            return connection.respond(request, 405, JSON, b"{}").await;
        }
        let executed = || {
            counters.executions.fetch_add(1, Ordering::SeqCst);
        };
        return match shared.service.call(request, executed) {
            Answer::Whole(body) => {
                let body = body.to_string();
                connection
                    .respond(request, 200, JSON, body.as_bytes())
                    .await
            }
            Answer::Stream(mut events) => {
                connection.begin_stream(request).await?;
                while let Some(event) = connection.unless_closed(events.next()).await? {
                    connection.write_event(&event).await?;
                }
                connection.end_stream().await
            }
        };
    }
    if shared.options.other_paths.iter().any(|known| known == path) {
        counters.executions.fetch_add(1, Ordering::SeqCst);
        let body = serde_json::json!({"path": path, "says": GREETING}).to_string();
        return connection
            .respond(request, 200, JSON, body.as_bytes())
            .await;
    }
    connection.respond(request, 404, JSON, b"{}").await
}
