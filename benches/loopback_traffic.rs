//! The callers and the agent: both run in the driver's thread, away from the servers' core.

use super::Fallible;
use serde_json::json;
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Callers, each with one connection and one call at a time.
pub(crate) const CALLERS: usize = 32;
/// Bytes of a call's body.
pub(crate) const BODY: usize = 1024;
/// Ids that calls and replies name in turn: all of them belong to the one caller.
pub(crate) const IDS: u32 = 4096;

/// A call whose id and context differ from one time to the next, at the same length.
pub(crate) struct Call {
    pub(crate) bytes: Vec<u8>,
    id: usize,
    context: usize,
}

const ID_AT: usize = r#"{"jsonrpc":"2.0","id":1"#.len();
/// Digits of an id after its leading 1, which JSON numbers need.
const DIGITS: usize = 6;

impl Call {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Call {
        let start = r#"{"jsonrpc":"2.0","id":1000000,"method":"SendMessage","params":{"message":{"messageId":"m-5f1c9a2e","contextId":"ctx-"#;
        let rest =
            r#"000000","role":"ROLE_USER","metadata":{"skillId":"review-diff"},"parts":[{"text":""#;
        let end = r#""}]},"configuration":{"acceptedOutputModes":["text/plain"]}}}"#;
        let text = "Please review this diff. ".repeat(BODY);
        let body = format!(
            "{start}{rest}{}{end}",
            &text[..BODY - start.len() - rest.len() - end.len()]
        );
        let head = format!(
            "POST /agents/bench/a2a HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: loopback\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Call {
            id: head.len() + ID_AT,
            context: head.len() + start.len(),
            bytes: format!("{head}{body}").into_bytes(),
        }
    }

    pub(crate) fn number(&mut self, number: u32) {
        let digits = format!("{number:06}");
        for at in [self.id, self.context] {
            self.bytes[at..at + DIGITS].copy_from_slice(digits.as_bytes());
        }
    }
}

pub(crate) async fn keep_calling(
    address: SocketAddr,
    mut call: Call,
    first: u32,
    answered: Rc<Cell<u64>>,
) -> Fallible<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let expected = reply(&[b'0'; DIGITS]).len();
    let mut buffer = vec![0; 16 * 1024];
    let mut number = first;
    loop {
        call.number(number);
        number = (number + 1) % IDS;
        stream.write_all(&call.bytes).await?;
        let (head, whole) = read_message(&mut stream, &mut buffer, 0)
            .await?
            .ok_or("the server closed")?;
        if !buffer.starts_with(b"HTTP/1.1 200") || whole - head != expected {
            let answer = String::from_utf8_lossy(&buffer[..whole]);
            return Err(format!("an answer that is not the agent's:\n{answer}").into());
        }
        answered.set(answered.get() + 1);
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

pub(crate) async fn start_agent() -> Fallible<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                // A connection that breaks is the proxies' to notice.
                let _ = serve_agent(stream, address).await;
            });
        }
    });
    Ok(address)
}

/// A valid answer that names a task and a context after the call's id.
fn reply(digits: &[u8]) -> String {
    let id = String::from_utf8_lossy(digits);
    format!(
        r#"{{"jsonrpc":"2.0","id":1{id},"result":{{"task":{{"id":"task-{id}","contextId":"ctx-{id}","status":{{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-31T12:00:00Z"}},"artifacts":[{{"artifactId":"review","name":"review","parts":[{{"text":"{}"}}]}}],"metadata":{{}}}}}}}}"#,
        "Looks good to me; two small remarks. ".repeat(8)
    )
}

async fn serve_agent(mut stream: TcpStream, me: SocketAddr) -> Fallible<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    let mut answer = Vec::new();
    while let Some((head, _)) = read_message(&mut stream, &mut buffer, 0).await? {
        let body = if buffer.starts_with(b"POST") {
            reply(&buffer[head + ID_AT..head + ID_AT + DIGITS])
        } else {
            json!({
                "name": "bench", "description": "answers", "version": "1",
                "supportedInterfaces": [{"url": format!("http://{me}/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                "skills": [{"id": "review-diff", "name": "review", "description": "reviews", "tags": ["code"]}],
            })
            .to_string()
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
