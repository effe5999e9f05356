//! JSON that stands in YAML: payloads of tokens, and messages.

use crate::a2a::strict_json::Value as Json;
use crate::source::{Kind, Node, Value, codes};

/// A mapping as a JSON object. Numbers keep their values, and the depth is bounded by that of files.
pub(super) fn object(value: &Value<'_, '_>) -> Option<Json> {
    if !matches!(value.node.kind, Kind::Map(_)) {
        value.wrong_type("a mapping");
        return None;
    }
    let json = json(value.node);
    if json.is_none() && !holds_reported(value.node) {
        value.error(
            codes::TEST_CALLER,
            "a number here has no value in JSON",
            "write a finite number",
        );
    }
    json
}

fn json(node: &Node) -> Option<Json> {
    Some(match &node.kind {
        Kind::Null => Json::Null,
        Kind::Bool(value) => Json::Bool(*value),
        Kind::Int(number) => Json::Number(number.to_string().into()),
        Kind::Float(number) => {
            let number = serde_json::Number::from_f64(*number)?;
            Json::Number(number.to_string().into())
        }
        Kind::Str(text) => Json::String(text.as_str().into()),
        Kind::Seq(items) => Json::Array(items.iter().map(json).collect::<Option<_>>()?),
        Kind::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, node)| Some((key.name.as_str().into(), json(node)?)))
                .collect::<Option<_>>()?,
        ),
        Kind::Reported => return None,
    })
}

fn holds_reported(node: &Node) -> bool {
    match &node.kind {
        Kind::Reported => true,
        Kind::Seq(items) => items.iter().any(holds_reported),
        Kind::Map(entries) => entries.iter().any(|(_, node)| holds_reported(node)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str(_) => false,
    }
}
