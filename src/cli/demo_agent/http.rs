//! As much of HTTP/1.1 as a small server needs, over one connection.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Largest header block.
const MAX_HEAD: usize = 64 * 1024;
/// Largest body: above what a gateway lets through by default.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// One request, read to its end.
pub(super) struct Request {
    /// Request line and fields, with their line ends.
    pub(super) head: Vec<u8>,
    /// Without chunk framing.
    pub(super) body: Vec<u8>,
    /// The connection ends after the answer.
    pub(super) close: bool,
    line: String,
    fields: Vec<(String, String)>,
}

impl Request {
    pub(super) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Without its query.
    pub(super) fn path(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        target.split('?').next().unwrap_or_default()
    }

    /// The first field of this lower-case name.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Connection {
        Connection {
            stream,
            buffer: Vec::new(),
            bytes: 0,
        }
    }

    /// Bytes that arrived so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// The next request, or `None` when the other side closed between two.
    pub(super) async fn read_request(&mut self) -> io::Result<Option<Request>> {
        let Some(head) = self.read_head().await? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&head).map_err(|_| bad("header block is not text"))?;
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let fields: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut request = Request {
            close: line.ends_with("HTTP/1.0"),
            head: head.clone(),
            body: Vec::new(),
            line,
            fields,
        };
        if let Some(value) = request.field("connection") {
            request.close = value.eq_ignore_ascii_case("close");
        }
        if request.field("expect").is_some() {
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
        }
        request.body = if request.field("transfer-encoding").is_some() {
            self.read_chunks().await?
        } else {
            let length = request.field("content-length").unwrap_or("0");
            let length = length.parse().map_err(|_| bad("content-length"))?;
            self.take(length).await?
        };
        Ok(Some(request))
    }

    async fn read_head(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = find(&self.buffer[searched..], b"\r\n\r\n") {
                let rest = self.buffer.split_off(searched + at + 4);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(bad("header block is too long"));
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    async fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad("chunk size"))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(body);
            }
            if body.len() + size > MAX_BODY {
                return Err(bad("body is too long"));
            }
            body.extend_from_slice(&self.take(size).await?);
            self.take(2).await?;
        }
    }

    async fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line = self.take(at + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(bad("line is too long"));
            }
            self.need().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(bad("body is too long"));
        }
        while self.buffer.len() < length {
            self.need().await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn need(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let n = self.stream.read_buf(&mut self.buffer).await?;
        self.bytes += n as u64;
        Ok(n)
    }

    /// Writes a whole answer.
    pub(super) async fn respond(
        &mut self,
        request: &Request,
        status: u16,
        content_type: &str,
        body: &[u8],
    ) -> io::Result<()> {
        let reason = match status {
            200 => "OK",
            404 => "Not Found",
            405 => "Method Not Allowed",
            _ => "Answer",
        };
        let connection = if request.close { "close" } else { "keep-alive" };
        let mut bytes = format!(
            "HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
             connection: {connection}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        if request.method() != "HEAD" {
            bytes.extend_from_slice(body);
        }
        self.stream.write_all(&bytes).await
    }

    /// Begins an answer of events.
    pub(super) async fn begin_stream(&mut self, request: &Request) -> io::Result<()> {
        let connection = if request.close { "close" } else { "keep-alive" };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\
             transfer-encoding: chunked\r\nconnection: {connection}\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await
    }

    /// One `data:` event in one chunk.
    pub(super) async fn write_event(&mut self, data: &serde_json::Value) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        self.stream.write_all(chunk.as_bytes()).await
    }

    /// Ends an answer of events.
    pub(super) async fn end_stream(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n").await
    }

    /// Waits for `work`, and fails as soon as the other side is gone.
    pub(super) async fn unless_closed<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> io::Result<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                read = self.stream.read_buf(&mut self.buffer) => match read? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    // The next request came early; it waits in the buffer.
                    n => self.bytes += n as u64,
                },
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
