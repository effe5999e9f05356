//! Reading HTTP/1.1 messages without judging them.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Header fields as they came: names lower-cased, values trimmed, order kept.
pub type Fields = Vec<(String, String)>;

/// Where a message body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(usize),
    /// With the empty chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Bytes of one connection, read message by message.
pub struct Reader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Bytes that arrived so far.
    pub bytes: u64,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(inner: R) -> Reader<R> {
        Reader {
            inner,
            buffer: Vec::new(),
            bytes: 0,
        }
    }

    /// Header block with its final empty line; `None` at a clean end before its first byte.
    pub async fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut from = 0;
        loop {
            if let Some(at) = find(&self.buffer[from..], b"\r\n\r\n") {
                return Ok(Some(self.split(from + at + 4)));
            }
            from = self.buffer.len().saturating_sub(3);
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// The next piece of a body: a chunk, or what has arrived. `None` at its proper end.
    pub async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Vec<u8>>> {
        match framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.buffer.is_empty() {
                    self.need().await?;
                }
                let piece = self.split((*left).min(self.buffer.len()));
                *left -= piece.len();
                Ok(Some(piece))
            }
            Framing::Chunked => {
                let line = self.line().await?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(size, 16)
                    .map_err(|_| io::Error::other(format!("chunk size `{line}`")))?;
                if size == 0 {
                    while !self.line().await?.is_empty() {}
                    *framing = Framing::Length(0);
                    return Ok(None);
                }
                while self.buffer.len() < size + 2 {
                    self.need().await?;
                }
                let mut chunk = self.split(size + 2);
                chunk.truncate(size);
                Ok(Some(chunk))
            }
            Framing::UntilClose => {
                if self.buffer.is_empty() && self.fill().await? == 0 {
                    *framing = Framing::Length(0);
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
        }
    }

    /// Reads and forgets until the other side is gone.
    pub async fn drain(&mut self) -> io::Result<()> {
        while self.fill().await? > 0 {
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends when the other side is gone; keeps what else arrives.
    pub async fn gone(&mut self) {
        while let Ok(1..) = self.fill().await {}
    }

    /// The stream itself.
    pub fn inner_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line = self.split(at + 2);
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.need().await?;
        }
    }

    fn split(&mut self, at: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(at);
        std::mem::replace(&mut self.buffer, rest)
    }

    async fn need(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let n = self.inner.read_buf(&mut self.buffer).await?;
        self.bytes += n as u64;
        Ok(n)
    }
}

/// First line and fields of a header block.
pub fn parse_head(head: &[u8]) -> (String, Fields) {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let fields = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    (first, fields)
}

/// The first field called `name` (lower case).
pub fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(n, _)| n == name);
    found.map(|(_, value)| value.as_str())
}

/// What the fields say about the body; `otherwise` when they say nothing.
pub fn framing(fields: &Fields, otherwise: Framing) -> Framing {
    if field(fields, "transfer-encoding").is_some_and(|v| v.contains("chunked")) {
        return Framing::Chunked;
    }
    let length = field(fields, "content-length").and_then(|v| v.parse().ok());
    length.map_or(otherwise, Framing::Length)
}

/// `body` in chunks of at most `size` bytes, with the last chunk.
pub fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + body.len() / size * 8 + 16);
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// Lower-case hex SHA-256.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
