//! Records as OTLP log records, in OTLP's JSON encoding (`ExportLogsServiceRequest`).
//!
//! The body of a log record is the journal's own line, so that whoever keeps it has the evidence
//! itself: the chain can be followed in it, and a checkpoint in it is one that was kept elsewhere.

use super::reconcile::log::moment;
use serde_json::{Value, json};

/// Most records of one request.
pub const MAX_RECORDS: usize = 512;
/// Most bytes of one request; a single record may be larger.
pub const MAX_BYTES: usize = 1 << 20;

/// Members of records that become attributes of their own, beside the body that has them all.
const ATTRIBUTES: [(&str, &str); 19] = [
    ("seq", "portcullis.seq"),
    ("instance", "portcullis.instance"),
    ("generation", "portcullis.generation"),
    ("policy_digest", "portcullis.policy_digest"),
    ("request_id", "portcullis.request_id"),
    ("agent", "portcullis.agent"),
    ("operation", "portcullis.operation"),
    ("skill.id", "portcullis.skill"),
    ("caller.issuer", "portcullis.issuer"),
    ("caller.subject", "enduser.id"),
    ("caller.client", "portcullis.client"),
    ("caller.fingerprint", "portcullis.fingerprint"),
    ("decision.effect", "portcullis.effect"),
    ("decision.reason", "portcullis.reason"),
    ("decision.rule", "portcullis.rule"),
    ("delivery", "portcullis.delivery"),
    ("reached", "portcullis.reached"),
    ("http_status", "http.response.status_code"),
    ("note", "portcullis.note"),
];

/// A request that is being made.
#[derive(Debug)]
pub struct Request {
    text: String,
    records: usize,
}

impl Request {
    /// For records that this process ships.
    pub fn new(instance: &str) -> Request {
        let attributes = json!([
            attribute("service.name", &json!("portcullis")),
            attribute("service.version", &json!(env!("CARGO_PKG_VERSION"))),
            attribute("service.instance.id", &json!(instance)),
        ]);
        Request {
            text: format!(
                r#"{{"resourceLogs":[{{"resource":{{"attributes":{attributes}}},"scopeLogs":[{{"scope":{{"name":"portcullis.journal"}},"logRecords":["#
            ),
            records: 0,
        }
    }

    /// Whether there is no room for a line of so many bytes.
    pub fn is_full(&self, line: usize) -> bool {
        // Half of a line's bytes may have to be escaped, and attributes repeat some of them.
        let next = self.text.len() + 2 * line + 4096;
        self.records >= MAX_RECORDS || self.records > 0 && next > MAX_BYTES
    }

    /// Adds a record with its line; `now` is in milliseconds since the Unix epoch.
    pub fn add(&mut self, line: &str, record: &Value, now: u64) {
        if self.records > 0 {
            self.text.push(',');
        }
        self.records += 1;
        let kind = record.get("kind").and_then(Value::as_str);
        let kind = kind.unwrap_or("unknown");
        let time = record.get("time").and_then(Value::as_str).and_then(moment);
        let (number, severity) = severity(kind, record);
        let name = json!(format!("portcullis.{kind}"));
        let mut attributes = vec![attribute("event.name", &name)];
        for (path, name) in ATTRIBUTES {
            let value = super::export::at(record, path);
            attributes.extend(value.map(|value| attribute(name, value)));
        }
        let mut log = json!({
            "timeUnixNano": nanos(time.unwrap_or(now)),
            "observedTimeUnixNano": nanos(now),
            "severityNumber": number,
            "severityText": severity,
            "body": { "stringValue": line },
            "attributes": attributes,
        });
        for (member, field, width) in [("trace_id", "traceId", 32), ("span_id", "spanId", 16)] {
            let id = record.get(member).and_then(Value::as_str);
            // OTLP writes these two in hex, and not in base64 as other bytes.
            let hex = |id: &&str| id.len() == width && id.bytes().all(|b| b.is_ascii_hexdigit());
            if let Some(id) = id.filter(hex) {
                log[field] = json!(id);
            }
        }
        self.text.push_str(&log.to_string());
    }

    /// How many records it has.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The body to be sent.
    pub fn finish(mut self) -> String {
        self.text.push_str("]}]}]}");
        self.text
    }
}

/// 64-bit numbers are strings in the JSON of Protobuf.
fn nanos(millis: u64) -> String {
    u128::from(millis).saturating_mul(1_000_000).to_string()
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::String(text) => json!({ "stringValue": text }),
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) if !number.is_f64() => json!({ "intValue": number.to_string() }),
        Value::Number(number) => json!({ "doubleValue": number }),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            json!({ "stringValue": value.to_string() })
        }
    };
    json!({ "key": name, "value": value })
}

/// What operators should look at is a warning; what they must is an error.
fn severity(kind: &str, record: &Value) -> (u8, &'static str) {
    const DEBUG: (u8, &str) = (5, "DEBUG");
    const INFO: (u8, &str) = (9, "INFO");
    const WARN: (u8, &str) = (13, "WARN");
    const ERROR: (u8, &str) = (17, "ERROR");
    let has = |name: &str, value: &str| record.get(name).is_some_and(|v| v == value);
    let failed = record.get("error").is_some();
    match kind {
        "intent" => INFO,
        "outcome" if has("reached", "maybe") => WARN,
        "outcome" => INFO,
        "refusal" if failed => ERROR,
        "refusal" | "refusals" => WARN,
        "config" if has("result", "rejected") => ERROR,
        "config" => INFO,
        "fetch" | "card_changed" if failed => WARN,
        "fetch" | "checkpoint" => DEBUG,
        "note" if has("note", "recovered") => ERROR,
        _ => INFO,
    }
}

/// What a collector says of a request that it took: how many records it refused, and why.
pub fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = partial.get("rejectedLogRecords")?;
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
    let why = partial.get("errorMessage").and_then(Value::as_str);
    (count > 0).then(|| (count, why.unwrap_or_default().to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_its_line_and_gets_time_severity_and_attributes() {
        let line = r#"{"v":1,"seq":7,"kind":"outcome","time":"2026-12-30T23:59:59.007Z","instance":"gw-0","reached":"maybe","delivery":"sent_partial","trace_id":"0af7651916cd43dd8448eb211c80319c","agent":"a \"b\""}"#;
        let mut request = Request::new("gw-1");
        request.add(
            line,
            &serde_json::from_str(line).unwrap(),
            1_798_675_200_000,
        );
        request.add(r#"{"seq":8}"#, &json!({"seq": 8, "trace_id": "no"}), 5);
        assert_eq!(request.records(), 2);
        let body: Value = serde_json::from_str(&request.finish()).unwrap();
        let resource = &body["resourceLogs"][0];
        assert_eq!(
            resource["resource"]["attributes"][2],
            json!({"key": "service.instance.id", "value": {"stringValue": "gw-1"}})
        );
        let log = &resource["scopeLogs"][0]["logRecords"][0];
        assert_eq!(log["body"]["stringValue"], line);
        assert_eq!(log["timeUnixNano"], "1798675199007000000");
        assert_eq!(log["observedTimeUnixNano"], "1798675200000000000");
        assert_eq!(
            (&log["severityNumber"], &log["severityText"]),
            (&json!(13), &json!("WARN"))
        );
        assert_eq!(log["traceId"], "0af7651916cd43dd8448eb211c80319c");
        let attributes = log["attributes"].as_array().unwrap();
        for wanted in [
            json!({"key": "event.name", "value": {"stringValue": "portcullis.outcome"}}),
            json!({"key": "portcullis.seq", "value": {"intValue": "7"}}),
            json!({"key": "portcullis.agent", "value": {"stringValue": "a \"b\""}}),
        ] {
            assert!(attributes.contains(&wanted), "{wanted}: {attributes:?}");
        }
        let second = &resource["scopeLogs"][0]["logRecords"][1];
        assert_eq!(second.get("traceId"), None);
        assert_eq!(second["timeUnixNano"], "5000000");
    }

    #[test]
    fn a_request_is_bounded_and_never_empty_for_a_large_line() {
        let mut request = Request::new("gw-1");
        let line = "x".repeat(MAX_BYTES);
        assert!(!request.is_full(line.len()));
        request.add(&line, &json!({}), 0);
        assert!(request.is_full(1));
        let mut request = Request::new("gw-1");
        let line = "\"".repeat(1000);
        while !request.is_full(line.len()) {
            request.add(&line, &json!({ "agent": line }), 0);
        }
        assert!(request.finish().len() <= MAX_BYTES);
    }

    #[test]
    fn partial_success_is_read_in_both_spellings_of_numbers() {
        for (answer, expected) in [
            (
                r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"old"}}"#,
                Some(3),
            ),
            (r#"{"partialSuccess":{"rejectedLogRecords":3}}"#, Some(3)),
            (r#"{"partialSuccess":{}}"#, None),
            (
                r#"{"partialSuccess":{"rejectedLogRecords":0,"errorMessage":"hm"}}"#,
                None,
            ),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(
                rejected(answer.as_bytes()).map(|(count, _)| count),
                expected,
                "{answer}"
            );
        }
    }
}
