//! Records as rows of CSV (RFC 4180), safe to be opened by spreadsheets.

use super::at;
use serde_json::Value;
use std::borrow::Cow;

/// The columns, and where their values are in a record. What a kind of record does not have is
/// empty; lists are separated by spaces, objects are JSON.
pub const COLUMNS: &[(&str, &str)] = &[
    ("seq", "seq"),
    ("time", "time"),
    ("kind", "kind"),
    ("instance", "instance"),
    ("generation", "generation"),
    ("policy_digest", "policy_digest"),
    ("request_id", "request_id"),
    ("trace_id", "trace_id"),
    ("source", "source.addr"),
    ("listener", "source.listener"),
    ("issuer", "caller.issuer"),
    ("subject", "caller.subject"),
    ("client", "caller.client"),
    ("actors", "caller.actors"),
    ("fingerprint", "caller.fingerprint"),
    ("grant", "caller.grant"),
    ("proof", "caller.proof"),
    ("scopes", "caller.scopes"),
    ("claims", "caller.claims"),
    ("no_claims", "caller.no_claims"),
    ("agent", "agent"),
    ("surface", "surface"),
    ("binding", "binding"),
    ("version", "version"),
    ("operation", "operation"),
    ("skill", "skill.id"),
    ("skill_source", "skill.source"),
    ("assurance", "skill.assurance"),
    ("message_id", "message_id"),
    ("task_id", "task_id"),
    ("context_id", "context_id"),
    ("effect", "decision.effect"),
    ("reason", "decision.reason"),
    ("rule", "decision.rule"),
    ("near_rule", "decision.near.rule"),
    ("near_why", "decision.near.why"),
    ("http_status", "http_status"),
    ("fault", "fault"),
    ("token_reason", "token_reason"),
    ("body_bytes", "request.bytes"),
    ("body_sha256", "request.sha256"),
    ("intent", "intent"),
    ("delivery", "delivery"),
    ("reached", "reached"),
    ("response_status", "response.http_status"),
    ("rpc_code", "response.rpc_code"),
    ("states", "response.states"),
    ("response_bytes", "response.bytes"),
    ("events", "response.events"),
    ("judged", "response.judged"),
    ("ended", "ended"),
    ("ms_total", "ms.total"),
    ("note", "note"),
    ("detail", "detail"),
    ("error", "error"),
    ("prev", "prev"),
];

/// The line of names.
pub fn head(out: &mut String) {
    row(out, COLUMNS.iter().map(|(name, _)| Cow::Borrowed(*name)));
}

/// A record's line.
pub fn record(record: &Value, out: &mut String) {
    let values = COLUMNS.iter().map(|(_, path)| at(record, path));
    row(
        out,
        values.map(|value| value.map_or(Cow::Borrowed(""), text)),
    );
}

fn row<'a>(out: &mut String, fields: impl Iterator<Item = Cow<'a, str>>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        let quoted = field.contains(['"', ',', '\r', '\n']);
        if quoted {
            out.push('"');
        }
        for (at, piece) in field.split('"').enumerate() {
            if at > 0 {
                out.push_str("\"\"");
            }
            out.push_str(piece);
        }
        if quoted {
            out.push('"');
        }
    }
    out.push_str("\r\n");
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => defused(Cow::Borrowed(text)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            defused(Cow::Owned(items.join(" ")))
        }
        // No number is a formula, nor is what begins with a bracket.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// A spreadsheet takes a text that begins so for a formula, and does what it says.
fn defused(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{text}")),
        false => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The fields of a row, as any reader of RFC 4180 sees them.
    fn fields(row: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        let mut chars = row.strip_suffix("\r\n").unwrap().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    fields.last_mut().unwrap().push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                c => fields.last_mut().unwrap().push(c),
            }
        }
        assert!(!quoted);
        fields
    }

    #[test]
    fn every_row_has_every_column_and_nothing_in_it_is_a_formula() {
        let mut out = String::new();
        head(&mut out);
        let names = fields(&out);
        let mut out = String::new();
        record(
            &json!({
                "seq": 7, "caller": {
                    "subject": "=HYPERLINK(\"http://evil\")", "scopes": ["a", "b"],
                    "client": "+1", "claims": {"role": "x,\"y\""}, "actors": [{"subject": "-b"}],
                },
                "agent": "line\nfeed", "response": {"rpc_code": -32001, "states": ["@x"]},
                "detail": null,
            }),
            &mut out,
        );
        let fields = fields(&out);
        assert_eq!(fields.len(), names.len());
        let of = |name: &str| {
            let at = names.iter().position(|n| n == name).unwrap();
            fields[at].as_str()
        };
        assert_eq!(of("subject"), "'=HYPERLINK(\"http://evil\")");
        assert_eq!(of("client"), "'+1");
        assert_eq!(of("states"), "'@x");
        assert_eq!(of("scopes"), "a b");
        assert_eq!(of("claims"), r#"{"role":"x,\"y\""}"#);
        assert_eq!(of("actors"), r#"[{"subject":"-b"}]"#);
        assert_eq!(of("agent"), "line\nfeed");
        assert_eq!(of("rpc_code"), "-32001");
        assert_eq!((of("seq"), of("detail"), of("rule")), ("7", "", ""));
    }

    /// No column speaks of a member that records do not have.
    #[test]
    fn every_column_is_in_the_schema() {
        let schema = crate::audit::record::schema();
        for (name, path) in COLUMNS {
            let found = crate::audit::fields::paths(&schema);
            assert!(found.contains_key(*path), "{name}: {path}");
        }
    }
}
