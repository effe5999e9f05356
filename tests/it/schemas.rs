//! The schemas that editors check files with: complete, and true of every file that ships.

use portcullis::config::{self, schema};
use portcullis::policy::schema as policy_schema;
use portcullis::source::Document;
use portcullis::source::examples::json_of;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files
}

fn json(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    let document = Document::parse("", &text).unwrap_or_else(|problems| panic!("{problems}"));
    json_of(&document.root)
}

/// A draft-07 schema, as far as ours use it: another keyword fails the test.
struct Validator(Value);

fn validator(schema: &str) -> Validator {
    Validator(serde_json::from_str(schema).unwrap())
}

impl Validator {
    fn errors(&self, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(&self.0, value, "", &mut errors);
        errors
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        if let Some(all) = schema.as_bool() {
            if !all {
                errors.push(format!("{at}: not allowed"));
            }
            return;
        }
        let schema = schema.as_object().unwrap();
        for (keyword, says) in schema {
            let good = match keyword.as_str() {
                "$schema" | "title" | "description" | "definitions" | "examples" => true,
                "$ref" => {
                    let name = says
                        .as_str()
                        .unwrap()
                        .strip_prefix("#/definitions/")
                        .unwrap();
                    self.check(&self.0["definitions"][name], value, at, errors);
                    true
                }
                "allOf" => {
                    for one in says.as_array().unwrap() {
                        self.check(one, value, at, errors);
                    }
                    true
                }
                "anyOf" => says.as_array().unwrap().iter().any(|one| {
                    let mut inner = Vec::new();
                    self.check(one, value, at, &mut inner);
                    inner.is_empty()
                }),
                "type" => match says.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64(),
                    "boolean" => value.is_boolean(),
                    other => panic!("{other}"),
                },
                "enum" => says.as_array().unwrap().contains(value),
                "minLength" => value.as_str().is_none_or(|text| !text.is_empty()),
                "minItems" => value.as_array().is_none_or(|items| !items.is_empty()),
                "minimum" => value.as_f64().is_none_or(|n| n >= says.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|n| n <= says.as_f64().unwrap()),
                // Of durations and sizes: a number, then a unit.
                "pattern" => value.as_str().is_none_or(|text| {
                    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
                    unit.len() < text.len() && says.as_str().unwrap().contains(unit)
                }),
                "required" => says.as_array().unwrap().iter().all(|name| {
                    value
                        .as_object()
                        .is_none_or(|o| o.contains_key(name.as_str().unwrap()))
                }),
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(says, item, &format!("{at}[{i}]"), errors);
                    }
                    true
                }
                "properties" | "additionalProperties" => {
                    let known = schema.get("properties").and_then(Value::as_object);
                    for (name, member) in value.as_object().into_iter().flatten() {
                        let at = format!("{at}.{name}");
                        match known.and_then(|known| known.get(name)) {
                            Some(field) if keyword == "properties" => {
                                self.check(field, member, &at, errors);
                            }
                            None if keyword == "additionalProperties" => {
                                self.check(says, member, &at, errors);
                            }
                            _ => {}
                        }
                    }
                    true
                }
                other => panic!("the keyword `{other}`"),
            };
            if !good {
                errors.push(format!("{at}: {keyword} {says}"));
            }
        }
    }
}

#[track_caller]
fn assert_fits(validator: &Validator, value: &Value, what: &str) {
    let errors = validator.errors(value);
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}

/// The names that a gateway file declares.
fn narrowed(file: &Path) -> Validator {
    let loaded = config::load(file).unwrap_or_else(|problems| panic!("{problems}"));
    validator(&policy_schema::policy(Some(&loaded.snapshot.world())))
}

#[test]
fn every_file_that_ships_fits_its_schema() {
    let gateways = validator(&schema::gateway());
    let mut seen = 0;
    for folder in ["config", "config/issuers", "config/examples"] {
        for file in yaml_files(folder)
            .iter()
            .filter(|file| !file.ends_with("denylist.yaml") && !file.ends_with("policy.yaml"))
        {
            assert_fits(&gateways, &json(file), &file.display().to_string());
            seen += 1;
        }
    }
    assert!(seen >= 14, "{seen}");
    let policies = validator(&policy_schema::policy(None));
    for file in yaml_files("policies") {
        assert_fits(&policies, &json(&file), &file.display().to_string());
        let example = Path::new("config/examples").join(file.file_name().unwrap());
        if example.exists() {
            let what = format!("{} for {}", file.display(), example.display());
            assert_fits(&narrowed(&example), &json(&file), &what);
        }
    }
}

#[test]
fn the_schema_of_one_gateway_knows_its_names() {
    let gateway = narrowed(Path::new("config/examples/keycloak-groups.yaml"));
    let policy = fs::read_to_string("policies/keycloak-groups.yaml").unwrap();
    for (is, was) in [
        ("agents: [docs-agnet]", "agents: [docs-agent]"),
        ("skills: [serach]", "skills: [search]"),
        ("issuers: [keyclock]", "issuers: [keycloak]"),
        ("operations: [mesages]", "operations: [messages]"),
        (
            "{group: {contains: /staff}}",
            "{groups: {contains: /staff}}",
        ),
    ] {
        let wrong = policy.replacen(was, is, 1);
        assert_ne!(wrong, policy, "{was}");
        let document = Document::parse("", &wrong).unwrap();
        assert!(!gateway.errors(&json_of(&document.root)).is_empty(), "{is}");
    }
}

/// An editor has something to say about each field, and something to show for each mapping.
#[test]
fn everything_has_a_description_and_every_mapping_an_example() {
    for text in [schema::gateway(), policy_schema::policy(None)] {
        let whole = validator(&text);
        let schema: Value = serde_json::from_str(&text).unwrap();
        let definitions = schema["definitions"].as_object().unwrap();
        for (title, definition) in definitions {
            let described =
                |value: &Value| value["description"].as_str().is_some_and(|d| !d.is_empty());
            assert!(described(definition), "{title}");
            for (name, field) in definition["properties"].as_object().unwrap() {
                assert!(described(field), "{title}.{name}");
            }
            let examples = definition["examples"].as_array();
            let examples = examples.unwrap_or_else(|| panic!("{title} has no example"));
            let mut alone = schema.clone();
            alone["allOf"] = serde_json::json!([{ "$ref": format!("#/definitions/{title}") }]);
            for member in ["type", "properties", "required", "additionalProperties"] {
                alone.as_object_mut().unwrap().remove(member);
            }
            let alone = validator(&alone.to_string());
            for example in examples {
                assert_fits(&alone, example, title);
            }
        }
        assert!(!whole.errors(&serde_json::json!({})).is_empty());
    }
}
