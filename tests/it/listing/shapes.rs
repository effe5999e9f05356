//! Requests and pages as callers and agents of each binding write them.

use bytes::Bytes;
use portcullis::a2a::Binding;
use portcullis::a2a::listing::read;
use serde_json::{Value, json};

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(&mut out, bytes.len());
    out.extend_from_slice(bytes);
    out
}

pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// One task as an agent of `binding` writes it, with `note` beside what we read.
pub fn task(binding: Binding, id: &str, context: Option<&str>, note: &str) -> Vec<u8> {
    if binding != Binding::Grpc {
        let context = context.map_or(String::new(), |c| format!("\"contextId\":{},", json!(c)));
        let (id, note) = (json!(id), json!(note));
        return format!(
            "{{{context} \"note\" :{note}, \"id\":{id},\"metadata\":{{\"id\":\"x\"}}}}"
        )
        .into_bytes();
    }
    let mut task = field(1, id.as_bytes());
    task.extend(context.map(|c| field(2, c.as_bytes())).unwrap_or_default());
    // Status with a timestamp, and a field that only a later version knows.
    task.extend(field(3, &[8, 2]));
    task.extend(field(15, note.as_bytes()));
    task
}

/// A page of an agent's.
pub fn page(binding: Binding, tasks: &[Vec<u8>], next: &str) -> Bytes {
    if binding == Binding::Grpc {
        let mut message: Vec<u8> = tasks.iter().flat_map(|task| field(1, task)).collect();
        if !next.is_empty() {
            message.extend(field(2, next.as_bytes()));
        }
        message.extend([3 << 3, 50, 4 << 3, 0xe7, 7]);
        return frame(&message).into();
    }
    let tasks: Vec<&str> = tasks
        .iter()
        .map(|t| std::str::from_utf8(t).unwrap())
        .collect();
    let next = json!(next);
    let result = format!(
        r#"{{"totalSize":999,"nextPageToken":{next},"tasks":[{}],"pageSize":50,"more":"secret"}}"#,
        tasks.join(", ")
    );
    match binding {
        Binding::Rest => result.into(),
        _ => format!(r#"{{"jsonrpc":"2.0","result":{result},"id":"r1"}}"#).into(),
    }
}

/// Our page: tasks as bytes, our token, page size and total.
pub fn shown(binding: Binding, body: &Bytes) -> (Vec<Vec<u8>>, Option<String>, u64, u64) {
    let page = read(binding, body).unwrap();
    let tasks = page.tasks.iter().map(|task| task.raw.to_vec()).collect();
    let next = page.next.map(|next| next.into_owned());
    let size = u64::from(page.size.unwrap());
    let total = match binding {
        Binding::Grpc => {
            // The last field, and below 128.
            let last = &body[body.len() - 2..];
            if last[0] == 4 << 3 {
                u64::from(last[1])
            } else {
                0
            }
        }
        Binding::JsonRpc | Binding::Rest => {
            let json: Value = serde_json::from_slice(body).unwrap();
            let result = json.get("result").unwrap_or(&json);
            result["totalSize"].as_u64().unwrap()
        }
    };
    (tasks, next, size, total)
}

/// A request as a caller sends it.
pub fn request(binding: Binding, token: Option<&str>) -> (String, Bytes) {
    match binding {
        Binding::JsonRpc => {
            let params = token.map_or(
                json!({"pageSize": 2}),
                |t| json!({"pageSize": 2, "pageToken": t}),
            );
            let body =
                json!({"jsonrpc": "2.0", "id": "r1", "method": "ListTasks", "params": params});
            (String::new(), body.to_string().into())
        }
        Binding::Rest => {
            let token = token.map_or(String::new(), |t| format!("&pageToken={t}"));
            (format!("/tasks?pageSize=2{token}"), Bytes::new())
        }
        Binding::Grpc => {
            let mut message = vec![4 << 3, 2];
            message.extend(token.map(|t| field(5, t.as_bytes())).unwrap_or_default());
            (
                "/lf.a2a.v1.A2AService/ListTasks".into(),
                frame(&message).into(),
            )
        }
    }
}

/// The page token of a request as it goes to the agent.
pub fn asked_for(binding: Binding, path: &str, body: &Bytes) -> String {
    match binding {
        Binding::JsonRpc => {
            let json: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(json["params"]["pageSize"], 2);
            json["params"]["pageToken"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }
        Binding::Rest => {
            assert!(path.starts_with("/tasks?pageSize=2"), "{path}");
            let token = path.split("pageToken=").nth(1).unwrap_or_default();
            token.replace("%20", " ").replace("%26", "&")
        }
        Binding::Grpc => {
            // The frame, then two bytes of page size, then the token.
            match body.get(9..) {
                Some(token) if body[7] == 5 << 3 | 2 => String::from_utf8(token.to_vec()).unwrap(),
                _ => String::new(),
            }
        }
    }
}
