//! Length-prefixed messages: a flag byte, four bytes of length, big-endian, and the message.
//!
//! Compressed messages are refused both ways: what we cannot read, we cannot judge, and we ask
//! agents for none.

use super::super::reader::Hold;
use bytes::Bytes;

/// Bytes before each message.
pub const PREFIX: usize = 5;

/// What is wrong with framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// The flag says that the message is compressed.
    Compressed,
    /// The flag is neither 0 nor 1.
    Flag,
    /// There is no message, or only a part of one, or more than one where one is due.
    Length,
}

impl FrameFault {
    /// The stable code for logs and records.
    pub fn code(self) -> &'static str {
        match self {
            FrameFault::Compressed => "compressed_message",
            FrameFault::Flag => "frame_flag",
            FrameFault::Length => "frame_length",
        }
    }
}

/// The message of a body that must be exactly one frame.
///
/// # Errors
/// [`FrameFault`]: compressed, cut, followed by something, or none.
pub fn single(body: &[u8]) -> Result<&[u8], FrameFault> {
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(FrameFault::Length);
    };
    if length(*prefix)? != message.len() as u64 {
        return Err(FrameFault::Length);
    }
    Ok(message)
}

/// A frame whose prefix is still zero: writes the message's length into it.
///
/// # Errors
/// [`FrameFault::Length`]: the prefix cannot tell it.
pub fn finish(mut frame: Vec<u8>) -> Result<Bytes, FrameFault> {
    let length = frame.len().checked_sub(PREFIX);
    let length = length.and_then(|length| u32::try_from(length).ok());
    match (length, frame.get_mut(1..PREFIX)) {
        (Some(length), Some(place)) => place.copy_from_slice(&length.to_be_bytes()),
        _ => return Err(FrameFault::Length),
    }
    Ok(frame.into())
}

fn length(prefix: [u8; PREFIX]) -> Result<u64, FrameFault> {
    let [flag, length @ ..] = prefix;
    match flag {
        0 => Ok(u64::from(u32::from_be_bytes(length))),
        1 => Err(FrameFault::Compressed),
        _ => Err(FrameFault::Flag),
    }
}

/// What a [`FrameReader`] yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framed {
    /// A whole frame, prefix included; [`Framed::message`] is what it carries.
    Whole(Bytes),
    /// A piece of a frame that is too long to be held.
    Part {
        /// The bytes; those of the first piece begin with the prefix.
        bytes: Bytes,
        /// Whether the frame begins here.
        first: bool,
        /// Whether the frame ends here.
        last: bool,
    },
}

impl Framed {
    /// The message, or the piece of one, without the prefix.
    pub fn message(&self) -> &[u8] {
        let (bytes, skipped) = match self {
            Framed::Whole(bytes) => (bytes, PREFIX),
            Framed::Part { bytes, first, .. } => (bytes, if *first { PREFIX } else { 0 }),
        };
        bytes.get(skipped..).unwrap_or_default()
    }
}

/// Cuts a reply into frames: chunks of any size in, whole frames out; any chunking gives the same
/// frames. Memory is bounded by `max_held` and one chunk.
///
/// The bytes that come out, one after another, are those that went in.
#[derive(Debug)]
pub struct FrameReader {
    max_held: u64,
    held: Hold,
    /// The prefix of the frame that is being read, as far as it came.
    prefix: [u8; PREFIX],
    have: usize,
    /// Of a frame that is too long: how much of it is still to come.
    passing: Option<u64>,
}

impl FrameReader {
    /// A reader that holds messages of up to `max_held` bytes.
    pub fn new(max_held: usize) -> FrameReader {
        FrameReader {
            max_held: max_held as u64,
            held: Hold::default(),
            prefix: [0; PREFIX],
            have: 0,
            passing: None,
        }
    }

    /// Takes one chunk; what became whole goes to `out`.
    ///
    /// # Errors
    /// [`FrameFault::Compressed`] or [`FrameFault::Flag`]; frames before it were given out, and the
    /// reader is of no more use.
    pub fn push(
        &mut self,
        mut chunk: Bytes,
        mut out: impl FnMut(Framed),
    ) -> Result<(), FrameFault> {
        while !chunk.is_empty() {
            if let Some(left) = self.passing {
                let bytes = cut(&mut chunk, left);
                self.part(bytes, left, false, &mut out);
                continue;
            }
            self.peek(&chunk);
            if self.have < PREFIX {
                // Judged at once: nothing is held for a flag that will be refused.
                if self.have > 0 {
                    length([self.prefix[0], 0, 0, 0, 0])?;
                }
                self.held.push(chunk);
                return Ok(());
            }
            let length = length(self.prefix)?;
            let whole = PREFIX as u64 + length;
            let left = whole - self.held.len() as u64;
            if length > self.max_held {
                // The first part has the whole prefix, even if that came in pieces.
                let now = match self.held.len() {
                    0 => cut(&mut chunk, whole),
                    held => cut(&mut chunk, (PREFIX - held.min(PREFIX)) as u64),
                };
                let bytes = self.held.take_with(now);
                self.part(bytes, whole, true, &mut out);
                continue;
            }
            if (chunk.len() as u64) < left {
                self.held.push(chunk);
                return Ok(());
            }
            let last = chunk.split_to(usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len()));
            out(Framed::Whole(self.held.take_with(last)));
            self.have = 0;
        }
        Ok(())
    }

    /// The reply has ended.
    ///
    /// # Errors
    /// [`FrameFault::Length`]: within a frame.
    pub fn finish(&self) -> Result<(), FrameFault> {
        match self.held.len() == 0 && self.passing.is_none() {
            true => Ok(()),
            false => Err(FrameFault::Length),
        }
    }

    /// Bytes of an unfinished frame that are held.
    pub fn take_held(&mut self) -> Bytes {
        self.have = 0;
        self.held.take()
    }

    /// Completes the prefix as far as `chunk` goes, which is not consumed.
    fn peek(&mut self, chunk: &[u8]) {
        let missing = self.prefix.iter_mut().skip(self.have);
        let came = missing.zip(chunk).map(|(slot, byte)| *slot = *byte).count();
        self.have += came;
    }

    /// Gives out a part of a frame of which `left` bytes were to come.
    fn part(&mut self, bytes: Bytes, left: u64, first: bool, out: &mut impl FnMut(Framed)) {
        let left = left - bytes.len() as u64;
        if left == 0 {
            self.have = 0;
        }
        self.passing = (left > 0).then_some(left);
        out(Framed::Part {
            bytes,
            first,
            last: left == 0,
        });
    }
}

/// At most `most` bytes from the front of `chunk`.
fn cut(chunk: &mut Bytes, most: u64) -> Bytes {
    let length = usize::try_from(most).unwrap_or(usize::MAX);
    chunk.split_to(length.min(chunk.len()))
}
