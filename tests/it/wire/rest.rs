//! What holds for every request of the REST binding.

use super::properties::rewritten;
use super::{Case, cases};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::{
    self, Binding, Call, Malformed, OperationGroup, ReadRules, Reading, Request, Versions,
};
use portcullis::config::path::canonical;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

/// The cases of REST.
fn rest() -> Vec<Case> {
    let of = |case: &Case| case.binding == Binding::Rest;
    cases().into_iter().filter(of).collect()
}

#[test]
fn every_endpoint_has_a_good_case() {
    let cases = rest();
    for endpoint in a2a::wire::REST {
        let good = |case: &&Case| {
            case.method == endpoint.method
                && case.read().is_ok_and(|reading| {
                    reading.call.operation == endpoint.operation
                        && reading.call.dialect.version == endpoint.version
                })
        };
        let named = cases.iter().any(|case| good(&case));
        assert!(named, "{} {}", endpoint.method, endpoint.template);
        if endpoint.version == a2a::Version::V1_0 {
            let named = cases
                .iter()
                .any(|case| good(&case) && case.path.starts_with("/acme/"));
            assert!(
                named,
                "with a tenant: {} {}",
                endpoint.method, endpoint.template
            );
        }
    }
}

/// What goes out is the call that was judged: read as a request it is the same one.
#[test]
fn what_is_forwarded_reads_the_same() {
    let mut read = 0;
    for case in rest() {
        let Ok(reading) = case.read() else { continue };
        let (path, query) = match reading.path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (&*reading.path, None),
        };
        let mut headers = case.headers.clone();
        headers.remove("a2a-version");
        if let Some(version) = reading.a2a_version {
            headers.insert("a2a-version", version.label().parse().unwrap());
        }
        let again = Case {
            name: case.name.clone(),
            headers,
            query,
            binding: case.binding,
            method: case.method.clone(),
            path: path.to_owned(),
            body: reading.body.clone().unwrap_or_else(|| case.body.clone()),
            rules: case.rules.clone(),
            expect: case.expect.clone(),
        };
        let again = again.read().unwrap();
        assert_eq!(again.call, reading.call, "{}", case.name);
        assert_eq!(again.path, reading.path, "{}", case.name);
        assert_eq!(again.a2a_version, reading.a2a_version, "{}", case.name);
        assert_eq!(again.body, None, "{}: respelled twice", case.name);
        read += 1;
    }
    assert!(read > 60, "only {read} cases were read");
}

#[test]
fn no_order_of_keys_and_no_white_space_changes_a_call() {
    for mut case in rest() {
        let Ok(reading) = case.read() else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(&case.body) else {
            continue;
        };
        for turn in 0..24 {
            let mut text = String::new();
            rewritten(&value, turn, &mut text);
            case.body = text.into();
            let again = case.read().unwrap();
            let placeless = |reading: &Reading| Call {
                spots: None,
                ..reading.call.clone()
            };
            assert_eq!(placeless(&again), placeless(&reading), "{}", case.name);
            // What is respelled stays respelled: names only, wherever they stand.
            let sent = |reading: &Reading, body: &Bytes| {
                let body = reading.body.as_ref().unwrap_or(body);
                serde_json::from_slice::<Value>(body).unwrap()
            };
            let as_it_came = value.to_string().into();
            assert_eq!(sent(&again, &case.body), {
                case.body = as_it_came;
                sent(&case.read().unwrap(), &case.body)
            });
        }
    }
}

/// Paths that are the same to some server are the same to us or refused.
#[test]
fn fc_81_a_path_leads_where_its_canonical_spelling_leads() {
    let spellings = [
        ("/message%3Asend", "/message:send"),
        ("/%6dessage:send", "/message:send"),
        ("/tasks/t%2D1%3Acancel", "/tasks/t-1:cancel"),
        ("/tasks/t-1/", "/tasks/t-1"),
        ("/v1/tasks/t-1%3asubscribe", "/v1/tasks/t-1:subscribe"),
    ];
    for (raw, path) in spellings {
        assert_eq!(canonical(raw).unwrap().as_str(), path);
        assert!(served(path), "{path}");
    }
    for refused in [
        "/tasks//t-1",
        "/tasks/%2e%2e/message:send",
        "/tasks/t-1%2Fx",
        "/tasks/t-1;x:cancel",
        "/tasks/t-1\\:cancel",
        "/message:send%00",
    ] {
        assert!(canonical(refused).is_err(), "{refused}");
    }
    for path in ["/Message:send", "/TASKS/t-1", "/v2/message:send", "/v1", ""] {
        assert!(!served(path), "{path}");
    }
}

#[test]
fn methods_of_a_path_are_told() {
    let allowed = |path| a2a::allowed_methods(Binding::Rest, path, BOTH, false);
    for (path, methods) in [
        ("/message:send", "POST"),
        ("/tasks", "GET"),
        ("/tasks/t", "GET"),
        ("/tasks/t:cancel", "POST"),
        ("/tasks/t:subscribe", "GET, POST"),
        ("/v1/tasks/t:subscribe", "GET, POST"),
        ("/tasks/t/pushNotificationConfigs", "GET, POST"),
        ("/tasks/t/pushNotificationConfigs/c", "GET, DELETE"),
        ("/v1/tasks/t/pushNotificationConfigs/c", "GET, DELETE"),
        ("/v1/card", "GET"),
        ("/nope", ""),
    ] {
        assert_eq!(allowed(path), methods, "{path}");
    }
    assert_eq!(
        a2a::allowed_methods(Binding::JsonRpc, "", BOTH, false),
        "POST"
    );
}

const BOTH: Versions = Versions {
    v0_3: true,
    v1_0: true,
};

fn served(path: &str) -> bool {
    a2a::is_served(Binding::Rest, path, BOTH, false)
}

/// One request of any kind.
#[derive(Debug, Clone)]
struct Any {
    method: &'static str,
    path: String,
    query: Option<String>,
    body: Vec<u8>,
    version: Option<&'static str>,
    tenants: bool,
}

impl Any {
    fn read(&self) -> Result<Reading, Malformed> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some(version) = self.version {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        let request = Request {
            method: &Method::from_bytes(self.method.as_bytes()).unwrap(),
            path: &self.path,
            query: self.query.as_deref(),
            headers: &headers,
            body: &Bytes::copy_from_slice(&self.body),
        };
        let rules = ReadRules {
            versions: BOTH,
            tenants: self.tenants,
            skills: None,
            stamp: false,
        };
        a2a::parse(Binding::Rest, &request, &rules)
    }
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        8 => select(vec![
            "v1", "tasks", "message:send", "message:stream", "pushNotificationConfigs",
            "extendedAgentCard", "card", "t-1", "t-1:cancel", "t-1:subscribe", "acme", "c-1",
        ]).prop_map(str::to_owned),
        1 => "[a-c%2-5F:;é. ]{0,6}",
    ];
    prop::collection::vec(segment, 0..6)
        .prop_map(|segments| segments.iter().flat_map(|s| ["/", s]).collect())
}

fn query() -> impl Strategy<Value = Option<String>> {
    let pair = prop_oneof![
        6 => (select(vec![
            "contextId", "status", "pageSize", "pageToken", "historyLength", "includeArtifacts",
            "statusTimestampAfter", "A2A-Version", "tenant", "id", "context_id", "%63ontextId",
        ]), select(vec!["1", "c-1", "true", "a%20b", "a+b", "TASK_STATE_WORKING", "1.0", "0.3", ""]))
            .prop_map(|(name, value)| format!("{name}={value}")),
        1 => "[a%=&+.0-9é]{0,8}",
    ];
    let query = prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&"));
    prop_oneof![Just(None), query.prop_map(Some)]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    thread_local! {
        static BODIES: Vec<Vec<u8>> = rest().into_iter().map(|case| case.body.to_vec()).collect();
    }
    let edit = (any::<Index>(), any::<Index>(), any::<u8>(), any::<bool>());
    prop_oneof![
        1 => Just(Vec::new()),
        3 => edit.prop_map(|(seed, at, byte, change)| BODIES.with(|bodies| {
            let mut body = bodies[seed.index(bodies.len())].clone();
            if change && !body.is_empty() {
                let at = at.index(body.len());
                body[at] = byte;
            }
            body
        })),
    ]
}

fn request() -> impl Strategy<Value = Any> {
    let methods = select(vec!["GET", "POST", "DELETE", "PUT", "HEAD"]);
    let versions = select(vec![None, Some("1.0"), Some("0.3"), Some("9")]);
    (methods, path(), query(), body(), versions, any::<bool>()).prop_map(
        |(method, path, query, body, version, tenants)| Any {
            method,
            path,
            query,
            body: if method == "POST" { body } else { Vec::new() },
            version,
            tenants,
        },
    )
}

/// What another parser finds in an accepted body must be what the call says.
fn assert_serde_json_sees_the_same(body: &[u8], reading: &Reading) {
    let seen: Value = serde_json::from_slice(body).unwrap();
    let call = &reading.call;
    // Elsewhere `message` is a member that nobody knows.
    if call.operation.group() == OperationGroup::Messages {
        let message = &seen["message"];
        assert_eq!(call.task_id.as_deref(), message["taskId"].as_str());
        assert_eq!(call.context_id.as_deref(), message["contextId"].as_str());
        assert_eq!(call.message_id.as_deref(), message["messageId"].as_str());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_request_is_refused_or_read_alike_when_it_is_forwarded(any in request()) {
        // Only canonical paths come to the reader.
        let Ok(asked) = canonical(&any.path).map(|path| path.as_str().to_owned()) else {
            return Ok(());
        };
        let any = Any { path: asked, ..any };
        if let Ok(reading) = any.read() {
            let (path, query) = match reading.path.split_once('?') {
                Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
                None => (reading.path.to_string(), None),
            };
            prop_assert_eq!(&path, &any.path, "a canonical path goes out as it came");
            let canonical = canonical(&path).unwrap();
            prop_assert_eq!(canonical.as_str(), &path);
            let body = reading.body.as_ref().map_or(any.body.clone(), |body| body.to_vec());
            if !body.is_empty() {
                assert_serde_json_sees_the_same(&body, &reading);
            }
            let version = reading.a2a_version.map(a2a::Version::label);
            let again = Any { path, query, body, version, ..any }.read().unwrap();
            prop_assert_eq!(&again.call, &reading.call);
            prop_assert_eq!(&again.path, &reading.path);
            prop_assert_eq!(again.body, None);
        }
    }

    #[test]
    fn arbitrary_paths_queries_and_bodies_never_panic(
        path in ".{0,40}", query in ".{0,40}", body in prop::collection::vec(any::<u8>(), 0..60),
        method in select(vec!["GET", "POST", "DELETE"]), tenants in any::<bool>(),
    ) {
        let any = Any { method, path, query: Some(query), body, version: None, tenants };
        let _ = any.read();
    }
}
