//! A reply that is an event stream: lines, events, and when each may leave.
//!
//! WHATWG HTML section 9.2.6: lines end in LF, CRLF or CR; the `data` lines of an event join with
//! LF; an event ends with a blank line. What the stream's bytes were is what leaves.

use super::byte_run::run_length;
use super::reader::{Event, Flaws, Hold, Piece};
use super::reply_json::Probe;
use bytes::Bytes;

/// The state of one stream; [`super::reader::Reader`] says what comes out when.
#[derive(Debug)]
pub(super) struct EventStream {
    max_event: usize,
    lines: Lines,
    held: Hold,
    /// Bytes of the present event in earlier chunks, released or not.
    size: usize,
    /// Whether a line other than a comment came since the last event.
    open: bool,
    data_lines: usize,
}

impl EventStream {
    pub(super) fn new(max_event: usize) -> EventStream {
        EventStream {
            max_event,
            lines: Lines::new(),
            held: Hold::default(),
            size: 0,
            open: false,
            data_lines: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: Bytes,
        probe: &mut Probe,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) {
        let mut at = 0;
        let mut start = 0;
        loop {
            let found = match self.lines.next(&chunk, &mut at) {
                Ok(None) => break,
                Ok(Some(found)) => found,
                Err(code) => {
                    if flaws.end(code, out) {
                        return;
                    }
                    continue;
                }
            };
            match found {
                Found::DataLine => {
                    self.open = true;
                    // The join counts for nothing before the first line.
                    if self.data_lines > 0 {
                        probe.feed(b"\n");
                    }
                    self.data_lines += 1;
                    if self.flawed(self.size + at - start, probe, flaws, out) {
                        return;
                    }
                }
                Found::Data(from, to) => {
                    let read = probe.read();
                    probe.feed(&chunk[from..to]);
                    let end = from + (probe.read() - read) as usize;
                    if self.flawed(self.size + end - start, probe, flaws, out) {
                        return;
                    }
                }
                Found::LineEnd => self.open = true,
                Found::CommentEnd | Found::LateLineFeed if self.open => {}
                Found::CommentEnd | Found::LateLineFeed => {
                    let bytes = self.held.take_with(chunk.slice(start..at));
                    self.size = 0;
                    start = at;
                    out.push(Piece::Pass(bytes));
                }
                Found::Blank { line_feed } => {
                    // A line feed that comes in the next chunk is not the event's; nor is this.
                    let size = self.size + (at - start) - usize::from(line_feed);
                    let bytes = self.held.take_with(chunk.slice(start..at));
                    start = at;
                    if self.dispatch(bytes, size, probe, flaws, out) {
                        return;
                    }
                }
            }
        }
        if start < chunk.len() {
            self.size += chunk.len() - start;
            self.held.push(chunk.slice(start..));
        }
        if self.size > self.max_event && self.held.len() > 0 {
            out.push(Piece::Part(self.held.take()));
        }
    }

    /// What a stream ends with behind its last blank line. An event without one is told by some
    /// clients and discarded by others, so that it may be no event.
    pub(super) fn finish(&mut self, probe: &mut Probe, flaws: &mut Flaws, out: &mut Vec<Piece>) {
        let tail = self.held.take();
        if self.data_lines > 0 {
            if flaws.guards()
                && let Some(event) = self.shown(self.size, probe)
            {
                out.push(Piece::Unjudged(Bytes::new(), event));
            }
            if flaws.end("truncated", out) {
                return;
            }
            if let Some(event) = probe.partial() {
                out.push(Piece::Event(tail, event));
                return;
            }
        }
        if !tail.is_empty() {
            out.push(Piece::Pass(tail));
        }
    }

    /// What an event named of which a part is out when it breaks off at `size` bytes: the agent
    /// has that task, so it is bound even though nobody gets the event whole.
    fn shown(&self, size: usize, probe: &mut Probe) -> Option<Event> {
        if size > self.max_event {
            probe.partial()
        } else {
            None
        }
    }

    /// With the guard on, ends the stream if the present event is flawed, at `size` bytes.
    fn flawed(
        &self,
        size: usize,
        probe: &mut Probe,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) -> bool {
        let Some(code) = probe.flaw().filter(|_| flaws.guards()) else {
            return false;
        };
        if let Some(event) = self.shown(size, probe) {
            out.push(Piece::Unjudged(Bytes::new(), event));
        }
        flaws.end(code, out)
    }

    /// The event is whole. True when the guard ends the stream with it.
    fn dispatch(
        &mut self,
        bytes: Bytes,
        size: usize,
        probe: &mut Probe,
        flaws: &mut Flaws,
        out: &mut Vec<Piece>,
    ) -> bool {
        let has_data = self.data_lines > 0;
        self.size = 0;
        self.open = false;
        self.data_lines = 0;
        if !has_data {
            out.push(Piece::Pass(bytes));
            return false;
        }
        let event = match probe.conclude() {
            Ok(event) => Some(event),
            Err(code) => {
                if flaws.guards()
                    && let Some(event) = self.shown(size, probe)
                {
                    out.push(Piece::Unjudged(Bytes::new(), event));
                }
                if flaws.end(code, out) {
                    return true;
                }
                probe.partial()
            }
        };
        probe.reset();
        out.push(match event {
            Some(event) if size > self.max_event => Piece::Unjudged(bytes, event),
            Some(event) => Piece::Event(bytes, event),
            None => Piece::Pass(bytes),
        });
        false
    }
}

/// What a step through the lines found.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// A `data` line began.
    DataLine,
    /// Some of its value: a range of the chunk.
    Data(usize, usize),
    /// A line with a field ended.
    LineEnd,
    /// A comment ended.
    CommentEnd,
    /// The second half of a CRLF whose first half ended the chunk before.
    LateLineFeed,
    /// A blank line ended, CRLF in one piece or not.
    Blank { line_feed: bool },
}

#[derive(Debug, Clone, Copy)]
enum Line {
    Start,
    Name,
    /// Behind the colon of a `data` field, where one space is dropped.
    Space,
    Data,
    OtherField,
    Comment,
}

/// Cuts any chunks into lines and fields.
#[derive(Debug)]
struct Lines {
    line: Line,
    name: [u8; 4],
    name_length: usize,
    /// The last byte of the chunk before was a CR.
    after_cr: bool,
    /// In the stream's first line.
    first: bool,
}

impl Lines {
    fn new() -> Lines {
        Lines {
            line: Line::Start,
            name: [0; 4],
            name_length: 0,
            after_cr: false,
            first: true,
        }
    }

    /// Errors with a code; the line then counts as one without meaning.
    fn next(&mut self, chunk: &[u8], at: &mut usize) -> Result<Option<Found>, &'static str> {
        while let Some(&byte) = chunk.get(*at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                *at += 1;
                return Ok(Some(Found::LateLineFeed));
            }
            match (self.line, byte) {
                (Line::Start, b'\n' | b'\r') => {
                    let line_feed = self.end_line(chunk, at);
                    return Ok(Some(Found::Blank { line_feed }));
                }
                (Line::Start, b':') => self.line = Line::Comment,
                // A page or a bare document under this media type; no field begins like that.
                (Line::Start, b'<' | b'{' | b'[' | b'"') => {
                    self.line = Line::OtherField;
                    return Err("not_event_stream");
                }
                (Line::Start, _) => {
                    self.line = Line::Name;
                    self.name_length = 0;
                }
                (Line::Name, b'\n' | b'\r' | b':') => {
                    let is_data = self.name_length == 4 && self.name == *b"data";
                    *at += usize::from(byte == b':');
                    if is_data {
                        self.line = Line::Space;
                        return Ok(Some(Found::DataLine));
                    }
                    self.line = Line::OtherField;
                }
                (Line::Name, _) => {
                    if let Some(slot) = self.name.get_mut(self.name_length) {
                        *slot = byte;
                    }
                    self.name_length = self.name_length.saturating_add(1);
                    *at += 1;
                    if self.first && self.name_length == 3 && self.name.starts_with(b"\xEF\xBB\xBF")
                    {
                        // Clients drop it and read the line (WHATWG Encoding, UTF-8 decode);
                        // with the guard off so do we.
                        self.line = Line::Start;
                        self.first = false;
                        return Err("bom");
                    }
                }
                (Line::Space, _) => {
                    *at += usize::from(byte == b' ');
                    self.line = Line::Data;
                }
                (Line::Data, b'\n' | b'\r') | (Line::OtherField, b'\n' | b'\r') => {
                    self.end_line(chunk, at);
                    return Ok(Some(Found::LineEnd));
                }
                (Line::Comment, b'\n' | b'\r') => {
                    self.end_line(chunk, at);
                    return Ok(Some(Found::CommentEnd));
                }
                (Line::Data, _) => {
                    let from = *at;
                    *at = end_of_run(chunk, from);
                    return Ok(Some(Found::Data(from, *at)));
                }
                (Line::OtherField | Line::Comment, _) => *at = end_of_run(chunk, *at),
            }
        }
        Ok(None)
    }

    /// Steps over a line end; true when it was a CRLF in one piece.
    fn end_line(&mut self, chunk: &[u8], at: &mut usize) -> bool {
        self.line = Line::Start;
        self.first = false;
        let cr = chunk.get(*at) == Some(&b'\r');
        *at += 1;
        if !cr {
            return false;
        }
        match chunk.get(*at) {
            None => {
                self.after_cr = true;
                false
            }
            Some(b'\n') => {
                *at += 1;
                true
            }
            Some(_) => false,
        }
    }
}

/// Where the line ends, or the chunk.
fn end_of_run(chunk: &[u8], from: usize) -> usize {
    from + run_length(&chunk[from..], |byte| (byte == b'\n') | (byte == b'\r'))
}
