//! Examples for the definitions of a schema, from files that are tested to be good.

use super::shape::{Fields, Shape};
use super::tree::{Document, Kind, Node};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Most examples of one definition.
const MOST: usize = 3;

/// Adds to each definition of `schema`, which was made from `fields`, the first mappings of its
/// kind that stand in `texts`. A text that cannot be read has none.
pub fn put(schema: &mut Value, fields: &'static Fields, texts: &[&str]) {
    let mut found = BTreeMap::new();
    for text in texts {
        if let Ok(document) = Document::parse("", text) {
            in_mapping(fields, &document.root, &mut found);
        }
    }
    let definitions = schema.get_mut("definitions").and_then(Value::as_object_mut);
    for (title, definition) in definitions.into_iter().flatten() {
        if let (Some(examples), Some(definition)) =
            (found.remove(title.as_str()), definition.as_object_mut())
        {
            definition.insert("examples".to_owned(), json!(examples));
        }
    }
}

type Found = BTreeMap<&'static str, Vec<Value>>;

fn in_mapping(fields: &'static Fields, node: &Node, found: &mut Found) {
    let Kind::Map(entries) = &node.kind else {
        return;
    };
    let examples = found.entry(fields.title).or_default();
    let example = json_of(node);
    if examples.len() < MOST && !examples.contains(&example) {
        examples.push(example);
    }
    for (key, value) in entries {
        if let Some(field) = fields.get(&key.name) {
            in_value(&field.shape, value, found);
        }
    }
}

fn in_value(shape: &'static Shape, node: &Node, found: &mut Found) {
    match (shape, &node.kind) {
        (Shape::List(shape), Kind::Seq(items)) => {
            items.iter().for_each(|item| in_value(shape, item, found));
        }
        (Shape::Named(shape), Kind::Map(entries)) => {
            entries
                .iter()
                .for_each(|(_, value)| in_value(shape, value, found));
        }
        (Shape::NamedWith(shape, fields), Kind::Map(entries)) => {
            for (key, value) in entries {
                let field = fields.iter().find(|field| field.name == key.name);
                in_value(field.map_or(*shape, |field| &field.shape), value, found);
            }
        }
        (Shape::Object(fields), Kind::Map(entries))
            if entries
                .iter()
                .all(|(key, _)| fields.get(&key.name).is_some()) =>
        {
            in_mapping(fields, node, found);
        }
        (Shape::Either(shapes), _) => {
            shapes.iter().for_each(|shape| in_value(shape, node, found));
        }
        _ => {}
    }
}

/// A value as JSON.
pub fn json_of(node: &Node) -> Value {
    match &node.kind {
        // Such as an unquoted `on`, which is text.
        Kind::Reported if !node.written.is_empty() => json!(node.written),
        Kind::Null | Kind::Reported => Value::Null,
        Kind::Bool(value) => json!(value),
        Kind::Int(value) => json!(value),
        Kind::Float(value) => json!(value),
        Kind::Str(value) => json!(value),
        Kind::Seq(items) => items.iter().map(json_of).collect(),
        Kind::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.name.clone(), json_of(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
