//! A compact JWS taken apart: size, three segments, base64url, strict JSON (TR-6, FM-1 to FM-5).

use super::fault::{self, TokenFault};
use crate::a2a::strict_json::{Value, parse_value};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longest token in characters (TR-6).
const MAX_TOKEN: usize = 8192;
/// Largest decoded header in bytes (FM-5).
const MAX_HEADER: usize = 2048;
/// Most top-level claims (FM-5).
const MAX_CLAIMS: usize = 200;
/// Most elements of an array (FM-5).
const MAX_ELEMENTS: usize = 1024;
const HEADER_DEPTH: usize = 8;
const PAYLOAD_DEPTH: usize = 16;

/// A token in parts. The payload is read from the very bytes whose signature is checked (FM-6).
pub(super) struct Token<'t> {
    /// The protected header; an object.
    pub(super) header: Value,
    /// The claims; an object. Nobody has vouched for them yet.
    pub(super) payload: Value,
    /// `header.payload`, as it stood.
    pub(super) signing_input: &'t str,
    /// The signature's bytes.
    pub(super) signature: Vec<u8>,
}

impl<'t> Token<'t> {
    /// Takes a token apart, cheapest first.
    pub(super) fn parse(token: &'t str) -> Result<Token<'t>, TokenFault> {
        if token.len() > MAX_TOKEN {
            return Err(fault::TOO_LONG);
        }
        let mut segments = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) = (
            segments.next(),
            segments.next(),
            segments.next(),
            segments.next(),
        ) else {
            return Err(fault::NOT_THREE_SEGMENTS);
        };
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return Err(fault::NOT_THREE_SEGMENTS);
        }
        let decode = |segment| base64url(segment).ok_or(fault::NOT_BASE64URL);
        let (header, payload, signing) = (decode(header)?, decode(payload)?, signature.len());
        let signature = decode(signature)?;
        if header.len() > MAX_HEADER {
            return Err(fault::HEADER_TOO_LARGE);
        }
        Ok(Token {
            header: object(&header, HEADER_DEPTH)?,
            payload: claims(&payload)?,
            signing_input: &token[..token.len() - signing - 1],
            signature,
        })
    }
}

/// Canonical base64url (FM-2): no padding, no white space, spare bits zero.
pub(super) fn base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn object(json: &[u8], depth: usize) -> Result<Value, TokenFault> {
    let value = parse_value(json, depth).map_err(|_| fault::NOT_STRICT_JSON)?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(fault::NOT_AN_OBJECT)
        }
    }
}

fn claims(json: &[u8]) -> Result<Value, TokenFault> {
    let value = object(json, PAYLOAD_DEPTH)?;
    if value.as_object().is_some_and(|m| m.len() > MAX_CLAIMS) {
        return Err(fault::TOO_MANY_CLAIMS);
    }
    // An element takes two bytes at least.
    if json.len() > 2 * MAX_ELEMENTS && has_long_array(&value) {
        return Err(fault::ARRAY_TOO_LONG);
    }
    Ok(value)
}

/// Recursion as deep as the payload, which is bounded.
fn has_long_array(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.len() > MAX_ELEMENTS || items.iter().any(has_long_array),
        Value::Object(members) => members.iter().any(|(_, v)| has_long_array(v)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
