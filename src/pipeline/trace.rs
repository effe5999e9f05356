//! [`Trace`]: the trace that a request is a part of (W3C Trace Context level 1).
//!
//! A caller's valid `traceparent` is continued: its trace id goes into records and, with a parent id
//! of our own, to the agent. One that is malformed or doubled says nothing, so a new trace begins,
//! as where none came (sections 3.2.2.3 and 4.3).

use http::HeaderMap;
use http::header::HeaderName;

/// Trace id, parent id and flags (section 3.2).
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What tracing systems note about a trace (section 3.3); travels only with a valid `traceparent`.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// What a caller's valid `traceparent` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    trace_id: [u8; 32],
    sampled: bool,
}

impl Parent {
    /// Reads the field of a request; `None` when there is none, or none that is valid.
    ///
    /// Of a later version only what version 00 has is read, as section 4.3 says.
    pub fn of(headers: &HeaderMap) -> Option<Parent> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?.as_bytes();
        if values.next().is_some() {
            return None;
        }
        let (known, rest) = value.split_at_checked(LENGTH)?;
        let dashes = [2, 35, 52].iter().all(|&at| known[at] == b'-');
        let (version, trace_id) = (&known[..2], &known[3..35]);
        let (parent_id, flags) = (&known[36..52], &known[53..]);
        let mut digits = [version, trace_id, parent_id, flags].into_iter().flatten();
        let hex = digits.all(|&byte| is_lower_hex(byte));
        let version_fits = match version {
            b"00" => rest.is_empty(),
            b"ff" => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if !(dashes && hex && version_fits) || is_zero(trace_id) || is_zero(parent_id) {
            return None;
        }
        Some(Parent {
            trace_id: trace_id.try_into().ok()?,
            // The last of eight bits.
            sampled: char::from(flags[1]).to_digit(16)? & 1 == 1,
        })
    }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_zero(digits: &[u8]) -> bool {
    digits.iter().all(|&digit| digit == b'0')
}

/// The trace of one request, and our place in it. Kept as text: showing it costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    trace_id: [u8; 32],
    span_id: [u8; 16],
    sampled: bool,
    continued: bool,
}

impl Trace {
    /// Continues the caller's trace, or begins one; `random` is the span id and, where it is needed,
    /// the trace id. One that we begin is sampled: whether to keep it is for others to say, and an
    /// agent that follows its parent would otherwise trace nothing any more.
    pub fn new(parent: Option<Parent>, random: &[u8; 24]) -> Trace {
        let (id, span) = random.split_at(16);
        let trace_id = match parent {
            Some(parent) => parent.trace_id,
            None => hex(id),
        };
        Trace {
            trace_id,
            span_id: hex(span),
            sampled: parent.is_none_or(|parent| parent.sampled),
            continued: parent.is_some(),
        }
    }

    /// The trace id: 32 digits, not all of them 0.
    pub fn id(&self) -> &str {
        // Digits by construction.
        std::str::from_utf8(&self.trace_id).unwrap_or_default()
    }

    /// Whether it is a trace that the caller is in.
    pub fn is_continued(&self) -> bool {
        self.continued
    }

    /// The `traceparent` towards the agent: the same trace, with us as the parent.
    pub fn parent(&self) -> [u8; LENGTH] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        text[3..35].copy_from_slice(&self.trace_id);
        text[36..52].copy_from_slice(&self.span_id);
        text[54] = if self.sampled { b'1' } else { b'0' };
        text
    }
}

/// Lower-case hexadecimal digits, never all 0, which would be no id.
fn hex<const N: usize>(bytes: &[u8]) -> [u8; N] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'0'; N];
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    if is_zero(&text) {
        text[N - 1] = b'1';
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(values: &[&str]) -> Option<Parent> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        Parent::of(&headers)
    }

    #[test]
    fn a_valid_parent_is_continued_with_another_parent_id() {
        let trace = Trace::new(read(&[GOOD]), &[0x5a; 24]);
        assert!(trace.is_continued());
        assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let parent = trace.parent();
        assert_eq!(
            std::str::from_utf8(&parent),
            Ok("00-4bf92f3577b34da6a3ce929d0e0e4736-5a5a5a5a5a5a5a5a-01")
        );
    }

    #[test]
    fn whether_it_is_sampled_stays() {
        for (flags, sampled) in [("00", "00"), ("01", "01"), ("03", "01"), ("fe", "00")] {
            let text = format!("{}{flags}", &GOOD[..53]);
            let parent = Trace::new(read(&[&text]), &[1; 24]).parent();
            assert_eq!(&parent[53..], sampled.as_bytes(), "{flags}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for more in ["", "-", "-more-of-it"] {
            let text = format!("01{}{more}", &GOOD[2..]);
            assert!(read(&[&text]).is_some(), "{text}");
        }
        for wrong in [format!("01{}.x", &GOOD[2..]), format!("ff{}", &GOOD[2..])] {
            assert_eq!(read(&[&wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_malformed_or_doubled_begins_a_new_trace() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_parent = format!("{}{}-01", &GOOD[..36], "0".repeat(16));
        let longer = format!("{GOOD}-x");
        let upper = GOOD.to_uppercase();
        let mut table: Vec<String> = [
            "",
            "00",
            "x",
            &zero_trace,
            &zero_parent,
            &longer,
            &upper,
            &GOOD[..54],
        ]
        .map(str::to_owned)
        .to_vec();
        // Any other byte at any place.
        table.extend((0..LENGTH).map(|at| format!("{}g{}", &GOOD[..at], &GOOD[at + 1..])));
        for text in &table {
            assert_eq!(read(&[text]), None, "{text}");
        }
        assert_eq!(read(&[GOOD, GOOD]), None);
        assert_eq!(read(&[]), None);
        let trace = Trace::new(None, &[7; 24]);
        assert!(!trace.is_continued());
        assert_eq!(trace.id(), "07".repeat(16));
        assert_eq!(&trace.parent()[53..], b"01");
    }

    #[test]
    fn no_id_is_zero() {
        let trace = Trace::new(None, &[0; 24]);
        assert!(read(&[std::str::from_utf8(&trace.parent()).unwrap()]).is_some());
    }
}
