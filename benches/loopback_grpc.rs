//! gRPC callers and agent: HTTP/2 without TLS.

use super::Fallible;
use super::loopback_traffic::{BODY, DIGITS, IDS, Tally, card};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::net::TcpStream;

const PATH: &str = "/lf.a2a.v1.A2AService/SendMessage";
/// The name that leads to the agent's gRPC.
pub(crate) const HOST: &str = "bench.grpc.test";

/// A field of bytes; no length here needs more than two bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let mut out = vec![number << 3 | 2];
    if length < 128 {
        out.push(length as u8);
    } else {
        out.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
    }
    out.extend_from_slice(value);
    out
}

fn frame(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend((message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// A call, and where the digits of its context stand.
fn call() -> (Vec<u8>, Option<usize>) {
    let value = field(3, b"review-diff");
    let entry = [field(1, b"skillId"), field(2, &value)].concat();
    let text = "Please review this diff. ".repeat(BODY);
    let part = field(1, &text.as_bytes()[..BODY - 80]);
    let message = [
        field(1, b"m-5f1c9a2e"),
        field(2, b"ctx-000000"),
        vec![4 << 3, 1],
        field(5, &part),
        field(6, &field(1, &entry)),
    ]
    .concat();
    let bytes = frame(&field(2, &message));
    let at = bytes.windows(4).position(|w| w == b"ctx-").map(|at| at + 4);
    (bytes, at)
}

/// Calls again and again on a connection of its own.
pub(crate) async fn keep_calling(
    address: SocketAddr,
    token: &str,
    first: u32,
    tally: Rc<Tally>,
) -> Fallible<()> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = h2::client::handshake(stream).await?;
    let connection = tokio::task::spawn_local(connection);
    let (mut bytes, at) = call();
    let mut number = first;
    let ended = loop {
        if let Some(at) = at {
            bytes[at..at + DIGITS].copy_from_slice(format!("{number:06}").as_bytes());
        }
        number = (number + 1) % IDS;
        let since = Instant::now();
        match one(&mut sender, token, Bytes::copy_from_slice(&bytes)).await {
            Ok(()) => tally.add_one(since),
            Err(error) => break error,
        }
    };
    connection.abort();
    Err(ended)
}

async fn one(
    sender: &mut h2::client::SendRequest<Bytes>,
    token: &str,
    body: Bytes,
) -> Fallible<()> {
    let request = Request::post(format!("http://{HOST}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("a2a-version", "1.0")
        .header("authorization", format!("Bearer {token}"))
        .body(())?;
    std::future::poll_fn(|context| sender.poll_ready(context)).await?;
    let (response, mut send) = sender.send_request(request, false)?;
    send.send_data(body, true)?;
    let response = response.await?;
    let (head, mut stream) = response.into_parts();
    let mut read = 0;
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        read += piece.len();
    }
    let trailers = stream.trailers().await?;
    let status = trailers.as_ref().and_then(|t| t.get("grpc-status"));
    if read == 0 || status.is_none_or(|s| s != "0") {
        return Err(format!("an answer that is not the agent's: {head:?} {trailers:?}").into());
    }
    Ok(())
}

/// Until one call passes.
pub(crate) async fn answers(address: SocketAddr, token: &str) -> Fallible<()> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = h2::client::handshake(stream).await?;
    let connection = tokio::task::spawn_local(connection);
    let answer = one(&mut sender, token, call().0.into()).await;
    connection.abort();
    answer
}

/// Answers the card over HTTP/1.1 and calls over HTTP/2, told apart by their first bytes.
pub(crate) async fn serve_agent(stream: TcpStream, me: SocketAddr) -> Fallible<()> {
    stream.set_nodelay(true)?;
    let mut start = [0; 4];
    while stream.peek(&mut start).await? < start.len() {
        tokio::task::yield_now().await;
    }
    if start != *b"PRI " {
        return serve_card(stream, me).await;
    }
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, mut respond) = accepted?;
        tokio::task::spawn_local(async move {
            let mut stream = request.into_body();
            let mut body = BytesMut::new();
            while let Some(Ok(piece)) = stream.data().await {
                let _ = stream.flow_control().release_capacity(piece.len());
                body.extend_from_slice(&piece);
            }
            answer(&mut respond, &body).map_err(drop)
        });
    }
    Ok(())
}

async fn serve_card(mut stream: TcpStream, me: SocketAddr) -> Fallible<()> {
    use tokio::io::AsyncWriteExt;
    let mut buffer = vec![0; 16 * 1024];
    while super::loopback_traffic::read_message(&mut stream, &mut buffer, 0)
        .await?
        .is_some()
    {
        let body = card(me).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
    }
    Ok(())
}

fn answer(respond: &mut h2::server::SendResponse<Bytes>, body: &[u8]) -> Fallible<()> {
    let at = body
        .windows(4)
        .position(|w| w == b"ctx-")
        .ok_or("no context")?
        + 4;
    let digits = body.get(at..at + DIGITS).ok_or("no digits")?;
    let id = |prefix: &[u8]| [prefix, digits].concat();
    let text = "Looks good to me; two small remarks. ".repeat(8);
    let part = field(1, text.as_bytes());
    let artifact = [field(1, b"review"), field(2, b"review"), field(4, &part)].concat();
    let task = [
        field(1, &id(b"task-")),
        field(2, &id(b"ctx-")),
        field(3, &[1 << 3, 3]),
        field(4, &artifact),
    ]
    .concat();
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .body(())?;
    let mut send = respond.send_response(head, false)?;
    send.send_data(frame(&field(1, &task)).into(), false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    send.send_trailers(trailers)?;
    Ok(())
}
