//! Calls as events of the Open Cybersecurity Schema Framework: API Activity (class 6003) of
//! version 1.3.0, with the profile `security_control` for what was decided.
//!
//! A call is one event: a refusal's own record, or an outcome with what its intent said. Records
//! that are about no call have no class of their own here and are left out.

use super::at;
use crate::audit::reconcile::log::moment;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The version of the schema.
pub const VERSION: &str = "1.3.0";
const CLASS: u64 = 6003;
const CATEGORY: u64 = 6;
/// Most intents that wait for their outcomes. One that was forgotten leaves an outcome without
/// caller, which its event says.
const OPEN: usize = 100_000;

/// Members of an intent that its outcome does not repeat.
const ASKED: [&str; 14] = [
    "time",
    "trace_id",
    "source",
    "caller",
    "surface",
    "binding",
    "version",
    "skill",
    "message_id",
    "task_id",
    "context_id",
    "decision",
    "request",
    "tenant",
];
/// Members that have a place in the event; the others stand under `unmapped`.
const MAPPED: [&str; 11] = [
    "v",
    "time",
    "request_id",
    "source",
    "agent",
    "operation",
    "decision",
    "http_status",
    "version",
    "kind",
    "instance",
];

/// Makes events of records that come in the order of the journal.
#[derive(Debug, Default)]
pub struct Events {
    open: BTreeMap<u64, Map<String, Value>>,
}

impl Events {
    /// Takes a record; a call where it ends one.
    pub fn take(&mut self, record: &Value) -> Option<Call> {
        let number = record.get("seq").and_then(Value::as_u64)?;
        match record.get("kind").and_then(Value::as_str)? {
            "intent" => {
                let mut asked = Map::new();
                for name in ASKED {
                    if let Some(value) = record.get(name) {
                        asked.insert(name.to_owned(), value.clone());
                    }
                }
                self.open.insert(number, asked);
                if self.open.len() > OPEN {
                    self.open.pop_first();
                }
                None
            }
            "outcome" => {
                let mut call = record.clone();
                let intent = record.get("intent").and_then(Value::as_u64)?;
                let asked = self.open.remove(&intent);
                let started = asked.as_ref().and_then(|asked| asked.get("time").cloned());
                let members = call.as_object_mut()?;
                for (name, value) in asked.into_iter().flatten() {
                    // What the reply named stays.
                    members.entry(name).or_insert(value);
                }
                Some(Call { call, started })
            }
            "refusal" => Some(Call {
                call: record.clone(),
                started: None,
            }),
            _ => None,
        }
    }

    /// The oldest intent whose outcome did not come yet: from there on records must be taken again
    /// to go on later.
    pub fn oldest_open(&self) -> Option<u64> {
        self.open.keys().next().copied()
    }
}

/// A call: a refusal's record, or an outcome's with what its intent said.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// All that is known of it, as one record.
    pub call: Value,
    started: Option<Value>,
}

impl Call {
    /// As an event.
    pub fn event(&self) -> Value {
        event(&self.call, self.started.as_ref())
    }
}

fn event(call: &Value, started: Option<&Value>) -> Value {
    let text = |path: &str| at(call, path).and_then(Value::as_str);
    let refused = text("kind") == Some("refusal");
    let (activity, name) = activity(text("operation"), text("surface"));
    let millis = |value: Option<&str>| value.and_then(moment).unwrap_or(0);
    let time = millis(text("time"));
    let reached = text("reached").unwrap_or("no");
    let status = at(call, "response.http_status").or_else(|| call.get("http_status"));
    let code = status.and_then(Value::as_u64);
    let judged = text("response.judged");
    let good = !refused
        && text("delivery") == Some("responded")
        && code.is_some_and(|code| code < 400)
        && at(call, "response.rpc_code").is_none()
        && judged != Some("malformed");
    // A refusal is what the gateway is for; a call of which nobody knows whether it arrived is not.
    let (severity, severity_name) = match (refused, reached) {
        (true, _) => (2, "Low"),
        (false, "maybe") => (3, "Medium"),
        (false, _) => (1, "Informational"),
    };
    let (status_id, status_name) = match (good, refused, reached) {
        (true, _, _) => (1, "Success"),
        (false, false, "maybe") => (0, "Unknown"),
        (false, _, _) => (2, "Failure"),
    };
    let mut event = json!({
        "activity_id": activity,
        "activity_name": name,
        "category_uid": CATEGORY,
        "category_name": "Application Activity",
        "class_uid": CLASS,
        "class_name": "API Activity",
        "type_uid": CLASS * 100 + activity,
        "type_name": format!("API Activity: {name}"),
        "time": time,
        "severity_id": severity,
        "severity": severity_name,
        "status_id": status_id,
        "status": status_name,
        "status_detail": if refused { text("decision.reason") } else { text("delivery") },
        "action_id": if refused { 2 } else { 1 },
        "action": if refused { "Denied" } else { "Allowed" },
        "disposition_id": if refused { 2 } else { 1 },
        "disposition": if refused { "Blocked" } else { "Allowed" },
        "metadata": {
            "version": VERSION,
            "profiles": ["security_control"],
            "product": {
                "name": "Portcullis",
                "vendor_name": "Portcullis",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "uid": format!("{}-{}", text("instance").unwrap_or("-"), call["seq"]),
            "correlation_uid": text("request_id"),
            "sequence": call["seq"],
            "original_time": text("time"),
            "log_name": "journal",
        },
        "actor": actor(call),
        "api": api(call, name, code),
        "src_endpoint": source(call),
        "unmapped": unmapped(call),
    });
    let mut put = |name: &str, value: Value| {
        // It was made an object above.
        if let Some(members) = event.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(started) = started.and_then(Value::as_str).and_then(moment) {
        put("start_time", json!(started));
        put("end_time", json!(time));
        put("duration", json!(time.saturating_sub(started)));
    }
    if let Some(code) = code {
        put("status_code", json!(code.to_string()));
        put("http_response", json!({ "code": code }));
    }
    let mut request = json!({ "uid": text("request_id"), "http_method": text("request.method") });
    if let Some(path) = text("request.path") {
        request["url"] = json!({ "path": path });
    }
    put("http_request", request);
    if let Some(agent) = text("agent") {
        let attempts = call.get("attempts").and_then(Value::as_array);
        let peer = attempts.and_then(|all| all.last()?.get("peer")?.as_str());
        let mut target = json!({ "name": agent, "svc_name": agent });
        if let Some(address) = peer.and_then(|peer| peer.parse::<SocketAddr>().ok()) {
            target["ip"] = json!(address.ip().to_string());
            target["port"] = json!(address.port());
        }
        put("dst_endpoint", target);
        let skill = text("skill.id");
        let resource = skill.map(|skill| json!({ "type": "skill", "name": skill }));
        let agent = json!({ "type": "agent", "name": agent });
        let all: Vec<Value> = [Some(agent), resource].into_iter().flatten().collect();
        put("resources", Value::Array(all));
    }
    if let Some(rule) = text("decision.rule") {
        put(
            "policy",
            json!({ "name": rule, "uid": text("policy_digest") }),
        );
    }
    prune(&mut event);
    event
}

/// What the operation does to things, as far as the schema tells such apart.
fn activity(operation: Option<&str>, surface: Option<&str>) -> (u64, &'static str) {
    match operation {
        Some("SendMessage" | "SendStreamingMessage" | "CreateTaskPushNotificationConfig") => {
            (1, "Create")
        }
        Some(
            "GetTask"
            | "ListTasks"
            | "SubscribeToTask"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "GetExtendedAgentCard",
        ) => (2, "Read"),
        Some("CancelTask") => (3, "Update"),
        Some("DeleteTaskPushNotificationConfig") => (4, "Delete"),
        Some(_) => (99, "Other"),
        None if surface == Some("backend") => (99, "Other"),
        None => (0, "Unknown"),
    }
}

fn actor(call: &Value) -> Value {
    let text = |path: &str| at(call, path).and_then(Value::as_str);
    let Some(subject) = text("caller.subject") else {
        let name = match text("kind") {
            Some("refusal") => "unauthenticated",
            _ => "unknown",
        };
        return json!({ "user": { "name": name, "type_id": 0, "type": "Unknown" } });
    };
    let mut user = json!({ "uid": subject, "type_id": 0, "type": "Unknown" });
    if let Some(issuer) = text("caller.issuer") {
        user["domain"] = json!(issuer);
    }
    let mut actor = json!({
        "user": user,
        "session": { "uid": text("caller.fingerprint"), "issuer": text("caller.issuer") },
    });
    if let Some(client) = text("caller.client") {
        actor["app_uid"] = json!(client);
    }
    actor
}

fn api(call: &Value, activity: &str, code: Option<u64>) -> Value {
    let text = |path: &str| at(call, path).and_then(Value::as_str);
    let operation = text("operation").or(text("request.method"));
    let mut api = json!({
        "operation": operation.unwrap_or(activity),
        "service": { "name": text("agent").unwrap_or("portcullis"), "version": text("version") },
        "version": text("version"),
        "request": { "uid": text("request_id") },
    });
    if let Some(code) = code {
        let error = text("fault").or(text("decision.reason").filter(|_| text("fault").is_some()));
        api["response"] = json!({ "code": code, "error": error });
    }
    api
}

/// Where it came from. An address that is hidden or shortened is none that could stand under `ip`.
fn source(call: &Value) -> Value {
    let Some(text) = at(call, "source.addr").and_then(Value::as_str) else {
        return json!({ "name": "unknown" });
    };
    match text.parse::<SocketAddr>() {
        Ok(address) => json!({ "ip": address.ip().to_string(), "port": address.port() }),
        Err(_) => json!({ "uid": text }),
    }
}

fn unmapped(call: &Value) -> Value {
    let members = call.as_object().into_iter().flatten();
    let rest = members.filter(|(name, _)| !MAPPED.contains(&name.as_str()));
    let mut rest: Map<String, Value> = rest.map(|(n, v)| (n.clone(), v.clone())).collect();
    rest.insert("record_kind".into(), call["kind"].clone());
    json!({ "portcullis": rest })
}

/// Takes out members without a value.
fn prune(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        for (name, member) in members.iter_mut() {
            // What we did not map stays as it was.
            if name != "unmapped" {
                prune(member);
            }
        }
    }
}

#[cfg(test)]
#[path = "ocsf/tests.rs"]
mod tests;
