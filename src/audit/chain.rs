//! The hash chain over the journal's lines: sealing records and checking them.
//!
//! Each line starts `{"v":1,"seq":N,"prev":"H"`, where `H` is the SHA-256 of the line before
//! without its line feed. A change to any line but the last breaks the line after it; the last one
//! is covered by the chain's end, which checkpoints sign.

use super::redact::hex;
use aws_lc_rs::digest::{SHA256, digest};
use std::fmt;

const OPENING: &[u8] = br#"{"v":1,"seq":"#;
const PREV: &[u8] = br#","prev":""#;

/// Where a chain stands: the last record's sequence number and its hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain {
    sequence: u64,
    head: [u8; 32],
}

impl Chain {
    /// Before the first record.
    pub const START: Chain = Chain {
        sequence: 0,
        head: [0; 32],
    };

    /// After record `sequence`, whose hash is `head` in 64 hex digits; `None` when it is no hash.
    pub fn at(sequence: u64, head: &str) -> Option<Chain> {
        let head = digest_of(head.as_bytes()).filter(|_| head.len() == 64)?;
        Some(Chain { sequence, head })
    }

    /// The sequence number of the last record; 0 when there is none.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// SHA-256 of the last line without its line feed; zeros when there is none.
    pub fn head(&self) -> [u8; 32] {
        self.head
    }

    /// Appends the next line, with its line feed, to `out`, and moves on to it. `members` are a
    /// JSON object's members without braces.
    pub fn seal(&mut self, members: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let mut number = [0; 20];
        let mut digits = [0; 64];
        out.extend_from_slice(OPENING);
        out.extend_from_slice(decimal(self.sequence + 1, &mut number));
        out.extend_from_slice(PREV);
        out.extend_from_slice(hex(&self.head, &mut digits).as_bytes());
        out.push(b'"');
        if !members.is_empty() {
            out.push(b',');
            let at = out.len();
            out.extend_from_slice(members);
            // Inside JSON strings a line feed is escaped, so a raw one is mere white space.
            if out[at..].contains(&b'\n') {
                for byte in out[at..].iter_mut().filter(|byte| **byte == b'\n') {
                    *byte = b' ';
                }
            }
        }
        out.push(b'}');
        self.advance(&out[start..]);
        out.push(b'\n');
    }

    fn advance(&mut self, line: &[u8]) {
        self.sequence += 1;
        for (to, from) in self.head.iter_mut().zip(digest(&SHA256, line).as_ref()) {
            *to = *from;
        }
    }
}

/// Checks lines one after the other.
#[derive(Debug, Clone)]
pub struct Checker {
    chain: Chain,
    line: u64,
}

impl Checker {
    /// Expects the line after `chain`.
    pub fn after(chain: Chain) -> Checker {
        Checker { chain, line: 0 }
    }

    /// Expects `line` first, whatever it names as its predecessor: for journals whose beginning
    /// was pruned, and for a segment whose predecessor is checked elsewhere.
    ///
    /// # Errors
    /// The line does not start like a record.
    pub fn before(line: &[u8]) -> Result<Checker, Broken> {
        let (sequence, head) = beginning(line)
            .filter(|(sequence, _)| *sequence > 0)
            .ok_or(Broken {
                line: 1,
                why: Why::NotARecord,
            })?;
        Ok(Checker::after(Chain {
            sequence: sequence - 1,
            head,
        }))
    }

    /// Checks the next line, given without its line feed, and moves on to it.
    ///
    /// # Errors
    /// The line is no record, or does not follow from what came before; the checker stays where
    /// it was.
    pub fn take(&mut self, line: &[u8]) -> Result<(), Broken> {
        let broken = |why| Broken {
            line: self.line + 1,
            why,
        };
        let (sequence, head) = beginning(line).ok_or(broken(Why::NotARecord))?;
        if sequence != self.chain.sequence + 1 {
            return Err(broken(Why::Sequence {
                expected: self.chain.sequence + 1,
                found: sequence,
            }));
        }
        if head != self.chain.head {
            return Err(broken(Why::Previous));
        }
        self.chain.advance(line);
        self.line += 1;
        Ok(())
    }

    /// Where the chain stands after the lines taken so far.
    pub fn chain(&self) -> Chain {
        self.chain
    }
}

/// Checks a whole journal, from its first record, and says where it ends.
///
/// # Errors
/// The first line that breaks the chain.
pub fn check<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Chain, Broken> {
    let mut checker = Checker::after(Chain::START);
    for line in lines {
        checker.take(line)?;
    }
    Ok(checker.chain())
}

/// The first line that breaks a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Which line of those that were checked, counting from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It does not look like a record of a known version.
    NotARecord,
    /// A record is missing, doubled or misplaced.
    Sequence {
        /// The sequence number that it should have.
        expected: u64,
        /// The one that it has.
        found: u64,
    },
    /// It does not name the hash of the line before: one of the two was changed.
    Previous,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match self.why {
            Why::NotARecord => f.write_str("not a journal record"),
            Why::Sequence { expected, found } => {
                write!(f, "record {found} stands where record {expected} belongs")
            }
            Why::Previous => f.write_str(
                "its `prev` is not the hash of the line before; one of the two was changed",
            ),
        }
    }
}

impl std::error::Error for Broken {}

/// The sequence number of a line that starts and ends as [`Chain::seal`] writes it.
pub fn sequence(line: &[u8]) -> Option<u64> {
    beginning(line).map(|(sequence, _)| sequence)
}

/// The sequence number of a line and what stands behind its `prev` (`,"kind":…}`), for those who
/// look for records and do not ask whether the chain holds. `None`: it does not look like a record.
pub fn glance(line: &[u8]) -> Option<(u64, &[u8])> {
    let (sequence, rest) = numbered(line)?;
    let members = rest.strip_prefix(PREV)?.get(65..)?;
    (members.ends_with(b"}")).then_some((sequence, members))
}

/// Sequence number and previous hash, when a line starts and ends exactly as [`Chain::seal`]
/// writes it: a second spelling of the same values would be a change.
fn beginning(line: &[u8]) -> Option<(u64, [u8; 32])> {
    let (sequence, rest) = numbered(line)?;
    let (digits, rest) = rest.strip_prefix(PREV)?.split_at_checked(64)?;
    let head = digest_of(digits)?;
    let whole = rest == br#""}"# || (rest.starts_with(br#"","#) && rest.ends_with(b"}"));
    whole.then_some((sequence, head))
}

/// The digest that 64 lower-case hex digits say.
fn digest_of(digits: &[u8]) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(digest)
}

/// The sequence number, in its one spelling, and what follows it.
fn numbered(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(OPENING)?;
    let width = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(width)?;
    if width == 0 || width > 20 || (number[0] == b'0' && width > 1) {
        return None;
    }
    let mut sequence: u64 = 0;
    for digit in number {
        sequence = sequence
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some((sequence, rest))
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn decimal(mut value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        // A remainder of ten fits a byte.
        buffer[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 || at == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn journal(bodies: &[String]) -> (Vec<Vec<u8>>, Chain) {
        let mut chain = Chain::START;
        let mut out = Vec::new();
        for body in bodies {
            chain.seal(body.as_bytes(), &mut out);
        }
        (lines(&out), chain)
    }

    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        assert_eq!(lines.pop().unwrap(), b"");
        lines
    }

    fn end(lines: &[Vec<u8>]) -> Result<Chain, Broken> {
        check(lines.iter().map(Vec::as_slice))
    }

    #[test]
    fn the_first_line_follows_zeros_and_the_second_follows_the_first() {
        let (lines, chain) = journal(&[r#""kind":"note""#.into(), String::new()]);
        let zeros = "0".repeat(64);
        assert_eq!(
            String::from_utf8(lines[0].clone()).unwrap(),
            format!(r#"{{"v":1,"seq":1,"prev":"{zeros}","kind":"note"}}"#)
        );
        let mut digits = [0; 64];
        let first = digest(&SHA256, &lines[0]);
        assert_eq!(
            String::from_utf8(lines[1].clone()).unwrap(),
            format!(
                r#"{{"v":1,"seq":2,"prev":"{}"}}"#,
                hex(first.as_ref(), &mut digits)
            )
        );
        assert_eq!(chain.sequence(), 2);
        assert_eq!(end(&lines), Ok(chain));
    }

    #[test]
    fn a_line_feed_in_a_body_does_not_split_the_line() {
        let (lines, chain) = journal(&["\"a\":\n1".into()]);
        assert_eq!(lines.len(), 1);
        assert_eq!(end(&lines), Ok(chain));
    }

    #[test]
    fn the_first_broken_line_is_named_with_what_is_wrong() {
        let bodies: Vec<String> = (0..5).map(|n| format!("\"n\":{n}")).collect();
        let (lines, _) = journal(&bodies);
        let mut missing = lines.clone();
        missing.remove(2);
        assert_eq!(
            end(&missing).unwrap_err().to_string(),
            "line 3: record 4 stands where record 3 belongs"
        );
        let mut changed = lines.clone();
        let at = changed[1].len() - 2;
        changed[1][at] = b'7';
        assert_eq!(
            end(&changed),
            Err(Broken {
                line: 3,
                why: Why::Previous
            })
        );
        let mut garbage = lines;
        garbage[0] = b"{}".to_vec();
        assert_eq!(
            end(&garbage),
            Err(Broken {
                line: 1,
                why: Why::NotARecord
            })
        );
    }

    #[test]
    fn numbers_have_one_spelling() {
        for value in [0, 9, 10, 4711, u64::MAX] {
            assert_eq!(decimal(value, &mut [0; 20]), value.to_string().as_bytes());
        }
        let zeros = "0".repeat(64);
        for number in ["01", "", "-1", "18446744073709551616", "1.0", "1e0", " 1"] {
            let line = format!(r#"{{"v":1,"seq":{number},"prev":"{zeros}"}}"#);
            assert_eq!(beginning(line.as_bytes()), None, "{number}");
        }
    }

    proptest! {
        /// A changed last line keeps the chain whole but not its end, which is what checkpoints sign.
        #[test]
        fn any_change_to_any_byte_is_found(
            bodies in prop::collection::vec("\"[a-z]{1,5}\":[0-9]{1,9}", 1..12),
            at in any::<prop::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let mut chain = Chain::START;
            let mut bytes = Vec::new();
            for body in &bodies {
                chain.seal(body.as_bytes(), &mut bytes);
            }
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = check(bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()));
            // Losing the very last line feed loses nothing that the chain speaks about.
            prop_assert!(found != Ok(chain) || at == bytes.len() - 1);
        }

        #[test]
        fn removing_swapping_or_doubling_lines_is_found(
            bodies in prop::collection::vec("\"[a-z]{1,5}\":[0-9]{1,9}", 2..12),
            one in any::<prop::sample::Index>(),
            other in any::<prop::sample::Index>(),
        ) {
            let (lines, chain) = journal(&bodies);
            prop_assert_eq!(end(&lines), Ok(chain));
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            let mut removed = lines.clone();
            removed.remove(one);
            prop_assert_ne!(end(&removed), Ok(chain));
            let mut doubled = lines.clone();
            doubled.insert(one, lines[other].clone());
            prop_assert_ne!(end(&doubled), Ok(chain));
            if one != other {
                let mut swapped = lines;
                swapped.swap(one, other);
                prop_assert_ne!(end(&swapped), Ok(chain));
            }
        }
    }
}
