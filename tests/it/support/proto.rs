//! Protobuf for tests: an encoder that takes its numbers from the packages' own descriptors
//! (`tests/cases/grpc/descriptor.json`), and so knows nothing of the product's tables.
//!
//! A message is a list of fields `["name", value]`, in the order in which they are written, as
//! often as they are there. A value is a string (`string`, `bytes`), a number or boolean, or a list
//! (a message). `{"hex": …}` in a string's or message's place is its bytes, and in a field's place
//! stands as it is; `{"repeat": …, "times": n}` in a string's place repeats a text, and in a
//! field's place a field, with `#` for the count. `[7, {"hex": …}]` is field 7, delimited, whether
//! there is one or not. `{"struct": …}` is JSON as a `google.protobuf.Struct` or `Value`.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// What the two packages say of themselves.
pub static DESCRIPTOR: LazyLock<Value> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/grpc/descriptor.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
});

/// Number, name, type and occurrence of each field of a message of `package`.
pub fn fields_of<'a>(package: &str, message: &str) -> &'a Vec<Value> {
    [package, "google.protobuf"]
        .iter()
        .find_map(|package| DESCRIPTOR[*package]["messages"][message]["fields"].as_array())
        .unwrap_or_else(|| panic!("{package} has no {message}"))
}

/// Request, reply and whether it streams, of a method of `package`.
pub fn method_of(package: &str, method: &str) -> Option<(String, String, bool)> {
    let methods = DESCRIPTOR[package]["services"]["A2AService"].as_array()?;
    let found = methods.iter().find(|known| known[0] == method)?;
    Some((
        found[1].as_str()?.to_owned(),
        found[2].as_str()?.to_owned(),
        found[3].as_bool()?,
    ))
}

/// A message as bytes.
pub fn encode(package: &str, message: &str, fields: &Value) -> Vec<u8> {
    if let Some(raw) = raw(fields) {
        return raw;
    }
    let mut out = Vec::new();
    for field in fields.as_array().unwrap_or_else(|| panic!("{fields}")) {
        if let Some(times) = field["times"].as_u64() {
            let text = field["repeat"].to_string();
            for n in 0..times {
                let one: Value = serde_json::from_str(&text.replace('#', &n.to_string())).unwrap();
                out.extend(encode(package, message, &json!([one])));
            }
        } else if let Some(raw) = raw(field) {
            out.extend(raw);
        } else if let Some(number) = field[0].as_u64() {
            delimited(number, &raw_or_text(&field[1]), &mut out);
        } else {
            let name = field[0].as_str().unwrap();
            let known = fields_of(package, message).iter();
            let known = known.clone().find(|known| known[1] == name);
            let known = known.unwrap_or_else(|| panic!("{message} has no {name}"));
            one(package, known, &field[1], &mut out);
        }
    }
    out
}

fn one(package: &str, known: &Value, value: &Value, out: &mut Vec<u8>) {
    let number = known[0].as_u64().unwrap();
    match known[2].as_str().unwrap() {
        "string" | "bytes" => delimited(number, &raw_or_text(value), out),
        "bool" | "enum" | "int32" | "int64" => {
            varint(number << 3, out);
            let whole = value.as_i64().map(|value| value as u64);
            varint(whole.unwrap_or(u64::from(value == &json!(true))), out);
        }
        "double" => {
            varint(number << 3 | 1, out);
            out.extend(value.as_f64().unwrap().to_le_bytes());
        }
        inner => {
            let bytes = match value.get("struct") {
                Some(json) if inner == "Struct" => struct_of(json),
                Some(json) => value_of(json),
                None => encode(package, inner, value),
            };
            delimited(number, &bytes, out);
        }
    }
}

/// JSON as a `google.protobuf.Struct`.
pub fn struct_of(json: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in json.as_object().unwrap() {
        let mut entry = Vec::new();
        delimited(1, key.as_bytes(), &mut entry);
        delimited(2, &value_of(value), &mut entry);
        delimited(1, &entry, &mut out);
    }
    out
}

/// JSON as a `google.protobuf.Value`.
pub fn value_of(json: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match json {
        Value::Null => out.extend([0x08, 0]),
        Value::Number(number) => {
            out.push(0x11);
            out.extend(number.as_f64().unwrap().to_le_bytes());
        }
        Value::String(text) => delimited(3, text.as_bytes(), &mut out),
        Value::Bool(value) => out.extend([0x20, u8::from(*value)]),
        Value::Object(_) => delimited(5, &struct_of(json), &mut out),
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                delimited(1, &value_of(item), &mut list);
            }
            delimited(6, &list, &mut out);
        }
    }
    out
}

/// A length-delimited field.
pub fn delimited(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A varint in the fewest bytes.
pub fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A gRPC frame that carries `message`.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    out.extend_from_slice(message);
    out
}

fn raw(value: &Value) -> Option<Vec<u8>> {
    let hex: String = value.get("hex")?.as_str()?.split_whitespace().collect();
    let digits = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    Some(digits.collect::<Result<_, _>>().unwrap())
}

fn raw_or_text(value: &Value) -> Vec<u8> {
    if let Some(times) = value["times"].as_u64() {
        let text = value["repeat"].as_str().unwrap();
        return text.repeat(usize::try_from(times).unwrap()).into_bytes();
    }
    raw(value).unwrap_or_else(|| value.as_str().unwrap().as_bytes().to_vec())
}
