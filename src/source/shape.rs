//! Tables of the fields that a file may have: one source for the walker and for JSON Schema.
//!
//! A field that is in no table is a problem; a field that is in a table is in the schema. The two
//! cannot drift apart because there is nothing to drift.

use serde_json::{Map, Value, json};

/// The fields of one kind of mapping.
#[derive(Debug)]
pub struct Fields {
    /// Name of the definition in the schema, such as `agent`.
    pub title: &'static str,
    /// What the mapping describes; one sentence for editors.
    pub doc: &'static str,
    /// What may stand in it.
    pub fields: &'static [Field],
    /// Names that exist in the design and are not built yet, each with what to do instead. They
    /// are refused, never ignored, and are not in the schema.
    pub later: &'static [(&'static str, &'static str)],
}

/// One field.
#[derive(Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it means, with its default; shown by editors.
    pub doc: &'static str,
    /// What it holds.
    pub shape: Shape,
}

/// What a field holds.
#[derive(Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range, both ends included.
    Integer(i64, i64),
    /// Any number.
    Number,
    /// One of these whole numbers.
    Numbers(&'static [i64]),
    /// A duration such as `15m`.
    Duration,
    /// A size such as `10MiB`.
    Size,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list with at least one element.
    List(&'static Shape),
    /// A mapping from names that the operator chooses.
    Named(&'static Shape),
    /// The same, but for these fields, which have a meaning of their own.
    NamedWith(&'static Shape, &'static [Field]),
    /// A mapping with whatever its own format has.
    Raw,
    /// A mapping with declared fields.
    Object(&'static Fields),
    /// Any of these.
    Either(&'static [Shape]),
}

/// An optional field.
pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: false,
        doc,
        shape,
    }
}

/// A field that must be there.
pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: true,
        doc,
        shape,
    }
}

impl Fields {
    /// The field called `name`.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// A draft-07 JSON Schema of a whole document.
    pub fn json_schema(&self) -> Value {
        let mut definitions = Map::new();
        let root = self.object(&mut definitions);
        let mut schema = Map::new();
        schema.insert(
            "$schema".to_owned(),
            json!("http://json-schema.org/draft-07/schema#"),
        );
        schema.insert("title".to_owned(), json!(self.title));
        if let Value::Object(root) = root {
            schema.extend(root);
        }
        schema.insert("definitions".to_owned(), Value::Object(definitions));
        Value::Object(schema)
    }

    fn object(&self, definitions: &mut Map<String, Value>) -> Value {
        let mut properties = Map::new();
        for field in self.fields {
            properties.insert(field.name.to_owned(), field.json_schema(definitions));
        }
        let required: Vec<&str> = self
            .fields
            .iter()
            .filter(|f| f.required)
            .map(|f| f.name)
            .collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("description".to_owned(), json!(self.doc));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
        Value::Object(schema)
    }
}

impl Field {
    fn json_schema(&self, definitions: &mut Map<String, Value>) -> Value {
        let mut schema = self.shape.json_schema(definitions);
        if let Value::Object(members) = &mut schema {
            // Draft-07 ignores what stands beside `$ref`, so the reference moves inside.
            if let Some(reference) = members.remove("$ref") {
                members.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
            members.insert("description".to_owned(), json!(self.doc));
        }
        schema
    }
}

impl Shape {
    /// The draft-07 schema of a value; definitions that it refers to are added to `definitions`.
    pub fn json_schema(&self, definitions: &mut Map<String, Value>) -> Value {
        match self {
            Shape::Text => json!({"type": "string", "minLength": 1}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Integer(min, max) => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            Shape::Number => json!({"type": "number"}),
            Shape::Numbers(numbers) => json!({"enum": numbers}),
            Shape::Duration => {
                json!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$", "examples": ["15m"]})
            }
            Shape::Size => {
                json!({"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB|TiB)$", "examples": ["10MiB"]})
            }
            Shape::Raw => json!({"type": "object"}),
            Shape::Word(words) => json!({"enum": words}),
            Shape::List(item) => {
                json!({"type": "array", "minItems": 1, "items": item.json_schema(definitions)})
            }
            Shape::Named(value) => {
                json!({"type": "object", "additionalProperties": value.json_schema(definitions)})
            }
            Shape::NamedWith(value, fields) => {
                let value = value.json_schema(definitions);
                let fields = fields.iter();
                let fields = fields.map(|f| (f.name.to_owned(), f.json_schema(definitions)));
                let fields: Map<String, Value> = fields.collect();
                json!({"type": "object", "properties": fields, "additionalProperties": value})
            }
            Shape::Object(fields) => {
                if !definitions.contains_key(fields.title) {
                    // Claimed first, so that a mapping may contain itself.
                    definitions.insert(fields.title.to_owned(), Value::Null);
                    let schema = fields.object(definitions);
                    definitions.insert(fields.title.to_owned(), schema);
                }
                json!({"$ref": format!("#/definitions/{}", fields.title)})
            }
            Shape::Either(shapes) => {
                let any: Vec<Value> = shapes.iter().map(|s| s.json_schema(definitions)).collect();
                json!({ "anyOf": any })
            }
        }
    }
}
