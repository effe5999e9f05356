//! The callers and the agent: both run in the driver's thread, away from the servers' core.

use super::Fallible;
use super::loopback_grpc;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Callers, each with one call at a time.
pub(crate) const CALLERS: usize = 32;
/// Streams that are open at a time when events are measured.
pub(crate) const STREAMS: usize = 20;
/// Time between two events of a stream: all streams together have 1,000 events a second.
const EVENT_EVERY: Duration = Duration::from_millis(20);
/// Bytes of a call's body.
pub(crate) const BODY: usize = 1024;
/// Ids that calls and replies name in turn: all of them belong to the one caller.
pub(crate) const IDS: u32 = 4096;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// SendMessage in JSON-RPC.
    JsonRpc,
    /// SendMessage in HTTP+JSON.
    Rest,
    /// SendMessage in gRPC, HTTP/2 on both sides.
    Grpc,
    /// Events of SendStreamingMessage in JSON-RPC.
    Sse,
}

impl Traffic {
    pub(crate) fn named(name: &str) -> Fallible<Traffic> {
        match name {
            "jsonrpc" => Ok(Traffic::JsonRpc),
            "rest" => Ok(Traffic::Rest),
            "grpc" => Ok(Traffic::Grpc),
            "sse" => Ok(Traffic::Sse),
            other => Err(format!("no traffic is called `{other}`").into()),
        }
    }

    /// What one of the counted things is.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Traffic::JsonRpc | Traffic::Rest | Traffic::Grpc => "request",
            Traffic::Sse => "event",
        }
    }

    pub(crate) fn title(self) -> String {
        let kind = match self {
            Traffic::JsonRpc => "JSON-RPC",
            Traffic::Rest => "HTTP+JSON",
            Traffic::Grpc => "gRPC",
            Traffic::Sse => {
                let rate = STREAMS as u128 * 1000 / EVENT_EVERY.as_millis();
                return format!("{STREAMS} streams, {rate} events/s in all");
            }
        };
        format!("{BODY} B SendMessage in {kind}")
    }

    pub(crate) fn callers(self) -> usize {
        match self {
            Traffic::JsonRpc | Traffic::Rest | Traffic::Grpc => CALLERS,
            Traffic::Sse => STREAMS,
        }
    }

    /// The agent's interface, as the gateway's configuration lists it.
    pub(crate) fn interface(self) -> &'static str {
        match self {
            Traffic::JsonRpc | Traffic::Sse => {
                "{binding: JSONRPC, version: '1.0', backend: /a2a, public_path: /a2a}"
            }
            Traffic::Rest => {
                "{binding: HTTP+JSON, version: '1.0', backend: /rest, public_path: /rest}"
            }
            Traffic::Grpc => "{binding: GRPC, version: '1.0'}",
        }
    }
}

/// A call whose id and context differ from one time to the next, at the same length.
pub(crate) struct Call {
    pub(crate) bytes: Vec<u8>,
    /// Where the digits of ids stand.
    digits: Vec<usize>,
    streams: bool,
}

const ID_AT: usize = r#"{"jsonrpc":"2.0","id":1"#.len();
/// Digits of an id after its leading 1, which JSON numbers need.
pub(crate) const DIGITS: usize = 6;
const CONTEXT: &str = "\"contextId\":\"ctx-";

impl Call {
    pub(crate) fn new(traffic: Traffic, address: SocketAddr, token: &str) -> Call {
        let streams = traffic == Traffic::Sse;
        let rest = traffic == Traffic::Rest;
        let method = if streams {
            "SendStreamingMessage"
        } else {
            "SendMessage"
        };
        let (start, tail, path) = match rest {
            true => (String::new(), "", "/rest/message:send"),
            false => (
                format!(r#"{{"jsonrpc":"2.0","id":1000000,"method":"{method}","params":"#),
                "}",
                "/a2a",
            ),
        };
        let message = format!(
            r#"{start}{{"message":{{"messageId":"m-5f1c9a2e",{CONTEXT}000000","role":"ROLE_USER","metadata":{{"skillId":"review-diff"}},"parts":[{{"text":""#
        );
        let end =
            format!(r#""}}]}},"configuration":{{"acceptedOutputModes":["text/plain"]}}}}{tail}"#);
        let text = "Please review this diff. ".repeat(BODY);
        let body = format!(
            "{message}{}{end}",
            &text[..BODY - message.len() - end.len()]
        );
        let head = format!(
            "POST /agents/bench{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: loopback\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let context = body.find(CONTEXT).map(|at| head.len() + at + CONTEXT.len());
        let id = (!rest).then_some(head.len() + ID_AT);
        Call {
            digits: id.into_iter().chain(context).collect(),
            bytes: format!("{head}{body}").into_bytes(),
            streams,
        }
    }

    pub(crate) fn number(&mut self, number: u32) {
        let digits = format!("{number:06}");
        for &at in &self.digits {
            self.bytes[at..at + DIGITS].copy_from_slice(digits.as_bytes());
        }
    }
}

/// What the callers of one round have got.
#[derive(Default)]
pub(crate) struct Tally {
    answered: Cell<u64>,
    /// How long each answer took, in microseconds.
    waits: RefCell<Vec<u32>>,
}

impl Tally {
    pub(crate) fn answered(&self) -> u64 {
        self.answered.get()
    }

    pub(crate) fn add(&self, answers: u64) {
        self.answered.set(self.answered.get() + answers);
    }

    /// One answer to what was sent at `since`.
    pub(crate) fn add_one(&self, since: Instant) {
        self.add(1);
        let took = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.waits.borrow_mut().push(took);
    }

    /// Takes the waits since the last time.
    pub(crate) fn waits(&self) -> Vec<u32> {
        self.waits.take()
    }
}

/// One caller: calls again and again, or follows one stream; `first` is its first id.
pub(crate) async fn keep_calling(
    traffic: Traffic,
    address: SocketAddr,
    token: String,
    first: u32,
    tally: Rc<Tally>,
) -> Fallible<()> {
    if traffic == Traffic::Grpc {
        return loopback_grpc::keep_calling(address, &token, first, tally).await;
    }
    let mut call = Call::new(traffic, address, &token);
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    let mut number = first;
    if call.streams {
        call.number(number);
        stream.write_all(&call.bytes).await?;
        return count_events(stream, &mut buffer, &tally).await;
    }
    let expected = reply(traffic, &[b'0'; DIGITS]).len();
    loop {
        call.number(number);
        number = (number + 1) % IDS;
        let since = Instant::now();
        stream.write_all(&call.bytes).await?;
        let (head, whole) = read_message(&mut stream, &mut buffer, 0)
            .await?
            .ok_or("the server closed")?;
        if !buffer.starts_with(b"HTTP/1.1 200") || whole - head != expected {
            let answer = String::from_utf8_lossy(&buffer[..whole]);
            return Err(format!("an answer that is not the agent's:\n{answer}").into());
        }
        tally.add_one(since);
    }
}

async fn count_events(mut stream: TcpStream, buffer: &mut [u8], tally: &Tally) -> Fallible<()> {
    loop {
        let read = stream.read(buffer).await?;
        if read == 0 {
            return Err("a stream ended".into());
        }
        // No event has a second one of these in it.
        let events = buffer[..read].windows(5).filter(|w| w == b"data:").count();
        tally.add(events as u64);
    }
}

/// Reads one message with a `Content-Length`: where its head ends, and where it ends. `None` at the
/// end of the connection.
pub(crate) async fn read_message(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    mut filled: usize,
) -> Fallible<Option<(usize, usize)>> {
    loop {
        if let Some(at) = buffer[..filled].windows(4).position(|w| w == b"\r\n\r\n") {
            let head = at + 4;
            let length = std::str::from_utf8(&buffer[..at])?
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
            while filled < head + length {
                match stream.read(&mut buffer[filled..]).await? {
                    0 => return Err("a message broke off".into()),
                    read => filled += read,
                }
            }
            return Ok(Some((head, head + length)));
        }
        match stream.read(&mut buffer[filled..]).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err("a message broke off".into()),
            read => filled += read,
        }
    }
}

pub(crate) async fn start_agent(traffic: Traffic) -> Fallible<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                // A connection that breaks is the proxies' to notice.
                let _ = match traffic {
                    Traffic::Grpc => loopback_grpc::serve_agent(stream, address).await,
                    _ => serve_agent(traffic, stream, address).await,
                };
            });
        }
    });
    Ok(address)
}

/// A valid answer that names a task and a context after the call's id.
fn reply(traffic: Traffic, digits: &[u8]) -> String {
    let id = String::from_utf8_lossy(digits);
    let result = format!(
        r#"{{"task":{{"id":"task-{id}","contextId":"ctx-{id}","status":{{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-31T12:00:00Z"}},"artifacts":[{{"artifactId":"review","name":"review","parts":[{{"text":"{}"}}]}}],"metadata":{{}}}}}}"#,
        "Looks good to me; two small remarks. ".repeat(8)
    );
    match traffic {
        Traffic::Rest => result,
        _ => format!(r#"{{"jsonrpc":"2.0","id":1{id},"result":{result}}}"#),
    }
}

/// Its card; the gateway's configuration lists the interface.
pub(crate) fn card(me: SocketAddr) -> Value {
    json!({
        "name": "bench", "description": "answers", "version": "1",
        "supportedInterfaces": [{"url": format!("http://{me}/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "review-diff", "name": "review", "description": "reviews", "tags": ["code"]}],
    })
}

async fn serve_agent(traffic: Traffic, mut stream: TcpStream, me: SocketAddr) -> Fallible<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    let mut answer = Vec::new();
    while let Some((head, whole)) = read_message(&mut stream, &mut buffer, 0).await? {
        let post = buffer.starts_with(b"POST");
        let body = &buffer[head..whole];
        let digits = match traffic {
            _ if !post => None,
            Traffic::Rest => body
                .windows(CONTEXT.len())
                .position(|w| w == CONTEXT.as_bytes())
                .map(|at| at + CONTEXT.len()),
            _ => Some(ID_AT),
        };
        let digits = digits.and_then(|at| body.get(at..at + DIGITS));
        if let (Traffic::Sse, Some(digits)) = (traffic, digits) {
            return send_events(stream, digits).await;
        }
        let body = match digits {
            Some(digits) => reply(traffic, digits),
            None => card(me).to_string(),
        };
        answer.clear();
        std::io::Write::write_fmt(
            &mut answer,
            format_args!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )?;
        stream.write_all(&answer).await?;
    }
    Ok(())
}

/// A task, then artifact updates for ever.
async fn send_events(mut stream: TcpStream, digits: &[u8]) -> Fallible<()> {
    let id = String::from_utf8_lossy(digits).into_owned();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        .await?;
    let first = format!("data: {}\n\n", reply(Traffic::JsonRpc, digits));
    let next = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":1{id},\"result\":{{\"artifactUpdate\":{{\"taskId\":\"task-{id}\",\"contextId\":\"ctx-{id}\",\"artifact\":{{\"artifactId\":\"review\",\"parts\":[{{\"text\":\"a few more words of the answer, as a model gives them\"}}]}},\"append\":true}}}}}}\n\n"
    );
    let mut ticks = tokio::time::interval(EVENT_EVERY);
    let mut event = &first;
    loop {
        ticks.tick().await;
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        stream.write_all(chunk.as_bytes()).await?;
        event = &next;
    }
}
