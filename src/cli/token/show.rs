//! What a token says, readable, and safe for a terminal.

use crate::a2a::strict_json::{JsonFault, Value, parse_value};
use crate::audit::record::Time;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt::Write;

/// Nesting of header and payload (FM-3).
const DEPTHS: [usize; 2] = [8, 16];
/// The largest NumericDate (CL-14).
const LAST_INSTANT: f64 = 253_402_300_799.0;

/// The readable parts of a token.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) header: Value,
    pub(super) payload: Value,
}

/// Takes a token apart, without a look at its signature. The error names the rule and carries
/// nothing of the token.
pub(super) fn take_apart(token: &str) -> Result<Shown, String> {
    let segments: Vec<&str> = token.split('.').take(6).collect();
    let [header, payload, signature] = segments[..] else {
        return Err(match segments.len() {
            1 => "not a JWT: there is no dot in it (FM-1)".to_owned(),
            5 => "it is encrypted (JWE, five segments); only signed tokens are accepted (FM-1)"
                .to_owned(),
            6 => "not a JWT: it has more than five segments, not three (FM-1)".to_owned(),
            n => format!("not a JWT: it has {n} segments, not three (FM-1)"),
        });
    };
    if segments.contains(&"") {
        return Err("a segment is empty; an unsigned token is never accepted (FM-1)".to_owned());
    }
    URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| "the signature is not base64url without padding (FM-2)".to_owned())?;
    let part = |name: &str, segment: &str, depth| {
        let bytes = URL_SAFE_NO_PAD
            .decode(segment)
            .map_err(|_| format!("the {name} is not base64url without padding (FM-2)"))?;
        let value = parse_value(&bytes, depth)
            .map_err(|fault| format!("the {name} is not strict JSON: {} (FM-3)", words(fault)))?;
        match value {
            Value::Object(_) => Ok(value),
            _ => Err(format!("the {name} is not a JSON object (FM-4)")),
        }
    };
    Ok(Shown {
        header: part("header", header, DEPTHS[0])?,
        payload: part("payload", payload, DEPTHS[1])?,
    })
}

fn words(fault: JsonFault) -> &'static str {
    match fault {
        JsonFault::BadUtf8 => "it is not UTF-8",
        JsonFault::Bom => "it begins with a byte order mark",
        JsonFault::TooLong => "it is too long",
        JsonFault::Truncated => "it ends too early",
        JsonFault::Syntax => "it is not JSON",
        JsonFault::ControlCharacter => "a string has a bare control character",
        JsonFault::TrailingData => "something follows the value",
        JsonFault::TooDeep => "it is nested too deeply",
        JsonFault::DuplicateKey => "a name occurs twice in one object",
        JsonFault::LoneSurrogate => "a string has half of a surrogate pair",
        JsonFault::Number => "a number is out of range",
    }
}

/// Indented JSON in which nothing can move a cursor or reorder text.
///
/// Recursive: values come from [`take_apart`], which bounds their depth.
pub(super) fn pretty(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    write_value(&mut text, value, indent);
    text
}

fn write_value(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => out.push_str(text),
        Value::String(text) => write_string(out, text),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(members) if members.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                new_line(out, i, indent + 2);
                write_value(out, item, indent + 2);
            }
            end_line(out, indent);
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (name, member)) in members.iter().enumerate() {
                new_line(out, i, indent + 2);
                write_string(out, name);
                out.push_str(": ");
                write_value(out, member, indent + 2);
            }
            end_line(out, indent);
            out.push('}');
        }
    }
}

fn new_line(out: &mut String, item: usize, indent: usize) {
    if item > 0 {
        out.push(',');
    }
    end_line(out, indent);
}

fn end_line(out: &mut String, indent: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(&safe(&text.replace('\\', "\\\\").replace('"', "\\\"")));
    out.push('"');
}

/// Text with `\uXXXX` for every character that could deceive its reader.
pub(in crate::cli) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !deceives(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Controls, and characters that have no width or change the direction of what follows.
fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A time of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The claim.
    pub(super) claim: &'static str,
    /// RFC 3339; absent when the claim is no time.
    pub(super) at: Option<String>,
    /// What it means now.
    pub(super) words: String,
}

/// The times in a payload, as they are seen at `now` (seconds since the epoch).
pub(super) fn moments(payload: &Value, now: i64) -> Vec<Moment> {
    let mut moments = Vec::new();
    for (claim, past, future) in [
        ("iat", "issued", "issued in the future:"),
        ("nbf", "valid since", "not valid yet:"),
        ("exp", "expired", "expires"),
        ("auth_time", "logged in", "logged in in the future:"),
    ] {
        let Some(value) = payload.get(claim) else {
            continue;
        };
        let seconds = value
            .as_number()
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|n| *n > 0.0 && *n <= LAST_INSTANT);
        moments.push(match seconds {
            None => Moment {
                claim,
                at: None,
                words: "not a time in seconds since 1970 (CL-14)".to_owned(),
            },
            Some(seconds) => {
                // In range by the filter above; a fraction of a second does not show in words.
                let seconds = seconds as i64;
                let lead = if seconds > now { future } else { past };
                Moment {
                    claim,
                    at: Some(rfc3339(seconds)),
                    words: format!("{lead} {}", distance(seconds - now)),
                }
            }
        });
    }
    moments
}

fn rfc3339(seconds: i64) -> String {
    let millis = u64::try_from(seconds).unwrap_or(0) * 1000;
    let text = serde_json::to_string(&Time(millis)).unwrap_or_default();
    text.trim_matches('"').replace(".000Z", "Z")
}

/// `in 5 minutes`, `2 hours ago`: the largest unit of which there are at least two.
fn distance(seconds: i64) -> String {
    let size = seconds.unsigned_abs();
    let (count, unit) = match size {
        0 => return "just now".to_owned(),
        1 => (1, "second"),
        2..=119 => (size, "seconds"),
        120..=7199 => (size / 60, "minutes"),
        7200..=172_799 => (size / 3600, "hours"),
        _ => (size / 86_400, "days"),
    };
    if seconds > 0 {
        format!("in {count} {unit}")
    } else {
        format!("{count} {unit} ago")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn token(header: &str, payload: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.c2ln", part(header), part(payload))
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_rule() {
        let good = token("{}", "{}");
        let deep = format!("{}1{}", "[".repeat(17), "]".repeat(17));
        for (text, wanted) in [
            ("", "no dot in it (FM-1)"),
            ("abc", "no dot in it (FM-1)"),
            ("a.b", "it has 2 segments, not three (FM-1)"),
            ("a.b.c.d", "it has 4 segments, not three (FM-1)"),
            ("a.b.c.d.e", "it is encrypted"),
            (&".".repeat(100), "more than five segments"),
            (&good[..good.len() - 4], "a segment is empty"),
            (&format!("{good}="), "the signature is not base64url"),
            (&format!("+{good}"), "the header is not base64url"),
            (
                &token("{", "{}"),
                "the header is not strict JSON: it ends too early (FM-3)",
            ),
            (
                &token("{}", "[]"),
                "the payload is not a JSON object (FM-4)",
            ),
            (
                &token("{}", r#"{"a":1,"\u0061":2}"#),
                "a name occurs twice in one object (FM-3)",
            ),
            (&token("{}", &deep), "it is nested too deeply (FM-3)"),
        ] {
            let error = take_apart(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(take_apart(&good).is_ok());
    }

    #[test]
    fn what_is_printed_is_json_and_moves_no_cursor() {
        let payload = "{\"e\":\"\\u001b[2J\\u009b\\u202e\\\"\\\\\",\"n\":1.50,\"l\":[1,[]],\"t\":{\"\":true},\"u\":\"ü\u{e0041}\"}";
        let shown = take_apart(&token("{}", payload)).unwrap();
        let text = pretty(&shown.payload, 0);
        let expected = "{\n  \"e\": \"\\u001b[2J\\u009b\\u202e\\\"\\\\\",\n  \"n\": 1.50,\n  \"l\": [\n    1,\n    []\n  ],\n  \"t\": {\n    \"\": true\n  },\n  \"u\": \"ü\\udb40\\udc41\"\n}";
        assert_eq!(text, expected);
        assert_eq!(parse_value(text.as_bytes(), 16), Ok(shown.payload));
    }

    #[test]
    fn times_are_told_in_words() {
        let now = 1_700_000_000;
        for (claim, value, at, words) in [
            (
                "exp",
                "1700000600",
                Some("2023-11-14T22:23:20Z"),
                "expires in 10 minutes",
            ),
            (
                "exp",
                "1700000000",
                Some("2023-11-14T22:13:20Z"),
                "expired just now",
            ),
            (
                "exp",
                "1699999999.5",
                Some("2023-11-14T22:13:19Z"),
                "expired 1 second ago",
            ),
            (
                "iat",
                "1699990000",
                Some("2023-11-14T19:26:40Z"),
                "issued 2 hours ago",
            ),
            (
                "iat",
                "1700000090",
                Some("2023-11-14T22:14:50Z"),
                "issued in the future: in 90 seconds",
            ),
            (
                "nbf",
                "1700864000",
                Some("2023-11-24T22:13:20Z"),
                "not valid yet: in 10 days",
            ),
            (
                "exp",
                "\"1700000600\"",
                None,
                "not a time in seconds since 1970 (CL-14)",
            ),
            (
                "exp",
                "-1",
                None,
                "not a time in seconds since 1970 (CL-14)",
            ),
            (
                "exp",
                "253402300800",
                None,
                "not a time in seconds since 1970 (CL-14)",
            ),
            (
                "exp",
                "null",
                None,
                "not a time in seconds since 1970 (CL-14)",
            ),
        ] {
            let payload = format!("{{\"{claim}\":{value}}}");
            let payload = parse_value(payload.as_bytes(), 4).unwrap();
            let expected = Moment {
                claim,
                at: at.map(str::to_owned),
                words: words.to_owned(),
            };
            assert_eq!(moments(&payload, now), [expected], "{claim} {value}");
        }
    }
}
