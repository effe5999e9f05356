//! Every field table against the packages' own descriptors, so that no number is from memory.

use crate::support::proto::{DESCRIPTOR, fields_of};
use portcullis::a2a::proto_fields::{EMPTY, card, v0_3, v1_0};
use portcullis::a2a::strict_proto::{Field, Kind, Message, Occurs};
use serde_json::{Value, json};

/// Every message that is read, other than within another one, with its package.
fn roots() -> Vec<(&'static str, &'static Message)> {
    let new: [&Message; 16] = [
        &v1_0::SEND_MESSAGE_REQUEST,
        &v1_0::GET_TASK_REQUEST,
        &v1_0::LIST_TASKS_REQUEST,
        &v1_0::CANCEL_TASK_REQUEST,
        &v1_0::SUBSCRIBE_TO_TASK_REQUEST,
        &v1_0::TASK_PUSH_NOTIFICATION_CONFIG,
        &v1_0::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v1_0::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST,
        &v1_0::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v1_0::GET_EXTENDED_AGENT_CARD_REQUEST,
        &v1_0::SEND_MESSAGE_RESPONSE,
        &v1_0::STREAM_RESPONSE,
        &v1_0::LIST_TASKS_RESPONSE,
        &v1_0::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE,
        &card::v1_0::CARD,
        &EMPTY,
    ];
    let old: [&Message; 14] = [
        &v0_3::SEND_MESSAGE_REQUEST,
        &v0_3::GET_TASK_REQUEST,
        &v0_3::CANCEL_TASK_REQUEST,
        &v0_3::TASK_SUBSCRIPTION_REQUEST,
        &v0_3::CREATE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v0_3::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v0_3::LIST_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v0_3::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        &v0_3::GET_AGENT_CARD_REQUEST,
        &v0_3::SEND_MESSAGE_RESPONSE,
        &v0_3::STREAM_RESPONSE,
        &v0_3::LIST_TASK_PUSH_NOTIFICATION_CONFIG_RESPONSE,
        &card::v0_3::CARD,
        &EMPTY,
    ];
    let new = new.into_iter().map(|message| ("lf.a2a.v1", message));
    new.chain(old.into_iter().map(|message| ("a2a.v1", message)))
        .collect()
}

/// All tables that the roots reach.
fn all() -> Vec<(&'static str, &'static Message)> {
    let mut found = roots();
    let mut at = 0;
    while let Some((package, message)) = found.get(at).copied() {
        at += 1;
        for field in message.fields {
            if let Kind::Message(inner) = field.kind
                && !found.iter().any(|(_, known)| std::ptr::eq(*known, inner))
            {
                found.push((package, inner));
            }
        }
    }
    found
}

fn shown(field: &Field, said: &Value) -> Value {
    let kind = match (field.kind, said[2].as_str().unwrap()) {
        (Kind::Text, _) => "string",
        (Kind::Bytes, _) => "bytes",
        (Kind::Double, _) => "double",
        (Kind::Varint, varint @ ("bool" | "enum" | "int32" | "int64")) => varint,
        (Kind::Varint, _) => "varint",
        (Kind::Message(inner), _) => inner.name,
    };
    let occurs = match field.occurs {
        Occurs::Once => "once",
        Occurs::Many => "many",
        Occurs::OneOf => "one_of",
    };
    json!([field.number, field.name, kind, occurs])
}

#[test]
fn tables_say_what_the_packages_say() {
    let all = all();
    assert!(all.len() > 45, "{}", all.len());
    for (package, message) in all {
        let said = fields_of(package, message.name).iter();
        // Of the schemes of a card only ours are written, and the others are not read.
        let ours = [
            "http_auth_security_scheme",
            "open_id_connect_security_scheme",
        ];
        let said = said.filter(|said| {
            message.name != "SecurityScheme" || ours.contains(&said[1].as_str().unwrap())
        });
        let said: Vec<_> = said.collect();
        assert_eq!(
            said.len(),
            message.fields.len(),
            "{package}.{}",
            message.name
        );
        assert!(message.fields.len() <= 64);
        for (field, said) in message.fields.iter().zip(said) {
            assert_eq!(&shown(field, said), said, "{package}.{}", message.name);
        }
        let entry = [package, "google.protobuf"]
            .iter()
            .any(|package| DESCRIPTOR[*package]["messages"][message.name]["map_entry"] == true);
        assert_eq!(message.map_entry, entry, "{package}.{}", message.name);
    }
}

#[test]
fn every_method_has_its_tables() {
    let all = all();
    for package in ["lf.a2a.v1", "a2a.v1"] {
        let methods = DESCRIPTOR[package]["services"]["A2AService"].as_array();
        for method in methods.unwrap() {
            for message in [&method[1], &method[2]] {
                let name = message.as_str().unwrap();
                let found = all
                    .iter()
                    .any(|(of, known)| known.name == name && (*of == package || name == "Empty"));
                assert!(found, "{package}: {method}");
            }
        }
    }
}

#[test]
fn what_a_request_decides_by_is_closed() {
    for (package, message) in all() {
        let is_request = message.name.ends_with("Request")
            || message.name == "TaskPushNotificationConfig"
            || [
                "Message",
                "SendMessageConfiguration",
                "PushNotificationConfig",
                "AuthenticationInfo",
                "Struct",
                "Struct.FieldsEntry",
                "Value",
                "ListValue",
                "Timestamp",
                "Empty",
            ]
            .contains(&message.name);
        // An entry of a map has a key and a value, and nothing else.
        let is_closed = is_request || message.map_entry;
        assert_eq!(message.closed, is_closed, "{package}.{}", message.name);
    }
}
