//! Task lists: what may be seen of an agent's, in every binding (FC-53).
#![allow(clippy::unwrap_used)]

mod shapes;

use crate::support::gates::gate_for;

use crate::support::memory_journal::MemoryJournal;
use bytes::Bytes;
use portcullis::a2a::listing::with_page_token;
use portcullis::a2a::{Binding, Call, Dialect, ListQuery, Operation, Version};
use portcullis::config::snapshot::{Agent, Backend, Limits};
use portcullis::pipeline::Gate;
use portcullis::pipeline::listing::{ForeignToken, Listing, NoPage};
use portcullis::pipeline::ports::{Claimed, IdKind, Owned, Owner};
use proptest::prelude::*;
use shapes::{asked_for, field, frame, page, request, shown, task};
use std::sync::Arc;
use std::time::Duration;

const BINDINGS: [Binding; 3] = [Binding::JsonRpc, Binding::Rest, Binding::Grpc];

fn gate() -> (Arc<Gate>, Arc<Agent>) {
    let second = Duration::from_secs(1);
    let limits = Limits {
        body: 1024,
        idle_stream: second,
        max_stream: second,
        unary_timeout: second,
        connect_timeout: second,
        send_timeout: second,
    };
    let gate = gate_for(
        Backend::default(),
        limits,
        Arc::new(MemoryJournal::default()),
    );
    let agent = gate.live().snapshot.agents[0].clone();
    (gate, agent)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn owner(name: &str) -> Owner {
    Owner::new("corp", name)
}

fn bind(gate: &Gate, name: &str, task: &str, context: Option<&str>) {
    let owned = Owned {
        owner: owner(name),
        skill: None,
        context: context.map(Arc::from),
    };
    let bound = wait(gate.ownership.bind("raw", IdKind::Task, task, &owned));
    assert_ne!(bound, Ok(Claimed::Foreign));
    if let Some(context) = context {
        let bound = wait(gate.ownership.bind("raw", IdKind::Context, context, &owned));
        assert_ne!(bound, Ok(Claimed::Foreign));
    }
}

fn call(binding: Binding, query: ListQuery) -> Call {
    let dialect = Dialect {
        binding,
        version: Version::V1_0,
    };
    Call {
        rpc_id: (binding == Binding::JsonRpc).then(|| "\"r\\u0031\"".into()),
        list: Some(Box::new(query)),
        ..Call::bare(dialect, Operation::ListTasks)
    }
}

/// Asks for one page of ours; how many of the agent's it took.
fn one(
    gate: &Arc<Gate>,
    agent: &Arc<Agent>,
    binding: Binding,
    name: &str,
    token: Option<&str>,
    pages: &[Vec<Vec<u8>>],
) -> (Bytes, usize) {
    let query = ListQuery {
        page_token: token.map(Box::from),
        page_size: Some(2),
        filters: ",,".into(),
    };
    let mut listing = Listing::new(gate, agent, owner(name), &call(binding, query)).unwrap();
    let (path, body) = request(binding, token);
    for took in 1..=20 {
        let (path, body) = listing.asking(&path, &body).unwrap();
        let token = asked_for(binding, &path, &body);
        let number = match token.as_str() {
            "" => 0,
            token => token.strip_prefix("p &").unwrap().parse::<usize>().unwrap(),
        };
        let next = match number + 1 < pages.len() {
            true => format!("p &{}", number + 1),
            false => String::new(),
        };
        let reply = page(binding, &pages[number], &next);
        if let Some(body) = wait(listing.take(&reply)).unwrap() {
            assert!(!listing.is_open());
            return (body, took);
        }
        assert!(listing.is_open());
    }
    panic!("never a page");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// However an agent deals its tasks out, each caller finds all of its own, as their bytes
    /// stood and in order, and nothing else; what is nobody's is nobody's.
    #[test]
    fn a_filtered_list_holds_only_permitted_tasks(
        dealt in prop::collection::vec(
            prop::collection::vec((0_usize..3, "\\PC{0,8}", any::<bool>()), 0..5), 1..6),
        binding in prop::sample::select(&BINDINGS[..]),
    ) {
        let (gate, agent) = gate();
        let names = ["alice", "bob", "nobody"];
        let mut own: [Vec<Vec<u8>>; 3] = Default::default();
        let mut made = 0;
        let pages: Vec<Vec<Vec<u8>>> = dealt.iter().map(|tasks| {
            tasks.iter().map(|(whose, note, has_context)| {
                made += 1;
                let (id, context) = (format!("t\"{made}"), format!("c{whose}"));
                let context = has_context.then_some(context.as_str());
                if *whose < 2 {
                    bind(&gate, names[*whose], &id, context);
                }
                let task = task(binding, &id, context, note);
                own[*whose].push(task.clone());
                task
            }).collect()
        }).collect();
        for (whose, name) in names.iter().enumerate() {
            let expected: &[Vec<u8>] = if whose < 2 { &own[whose] } else { &[] };
            let mut found = Vec::new();
            let mut token: Option<String> = None;
            for turn in 0..20 {
                let (body, took) = one(&gate, &agent, binding, name, token.as_deref(), &pages);
                prop_assert!(took <= 10);
                let text = String::from_utf8_lossy(&body).into_owned();
                prop_assert!(!text.contains("secret") && !text.contains("999") && !text.contains("p &"));
                let (tasks, next, size, total) = shown(binding, &body);
                prop_assert!(tasks.len() <= 2);
                prop_assert_eq!((size, total), (2, expected.len() as u64), "turn {}", turn);
                found.extend(tasks);
                token = next;
                if token.is_none() {
                    break;
                }
                // Good for nobody else.
                let query = ListQuery {
                    page_token: token.as_deref().map(Box::from),
                    page_size: Some(2),
                    filters: ",,".into(),
                };
                let foreign = Listing::new(&gate, &agent, owner("mallory"), &call(binding, query));
                prop_assert_eq!(foreign.err(), Some(ForeignToken));
            }
            prop_assert_eq!(token, None);
            prop_assert_eq!(found.as_slice(), expected);
        }
    }
}

/// A token is for one list: another size, filter, agent or binding is another list.
#[test]
fn a_token_is_for_one_list() {
    let (gate, agent) = gate();
    let pages: Vec<Vec<Vec<u8>>> = (0..3)
        .map(|n| {
            bind(&gate, "alice", &format!("t{n}"), None);
            vec![task(Binding::JsonRpc, &format!("t{n}"), None, "")]
        })
        .collect();
    let (body, took) = one(&gate, &agent, Binding::JsonRpc, "alice", None, &pages);
    assert_eq!(took, 2);
    let (_, token, ..) = shown(Binding::JsonRpc, &body);
    let good = ListQuery {
        page_token: token.as_deref().map(Box::from),
        page_size: Some(2),
        filters: ",,".into(),
    };
    let new = |binding, agent: &Arc<Agent>, query: ListQuery| {
        Listing::new(&gate, agent, owner("alice"), &call(binding, query)).map(drop)
    };
    assert_eq!(new(Binding::JsonRpc, &agent, good.clone()), Ok(()));
    for binding in [Binding::Rest, Binding::Grpc] {
        assert_eq!(new(binding, &agent, good.clone()), Err(ForeignToken));
    }
    for query in [
        ListQuery {
            page_size: None,
            ..good.clone()
        },
        ListQuery {
            filters: "\"TASK_STATE_WORKING\",,".into(),
            ..good.clone()
        },
        ListQuery {
            filters: ",,c".into(),
            ..good.clone()
        },
        ListQuery {
            page_token: Some("p &1".into()),
            ..good.clone()
        },
        ListQuery {
            page_token: Some("".into()),
            ..good.clone()
        },
    ] {
        assert_eq!(
            new(Binding::JsonRpc, &agent, query.clone()),
            Err(ForeignToken),
            "{query:?}"
        );
    }
    let other = self::gate();
    let elsewhere = Listing::new(
        &other.0,
        &other.1,
        owner("alice"),
        &call(Binding::JsonRpc, good),
    );
    assert_eq!(elsewhere.err(), Some(ForeignToken), "another process");
}

/// A task that is the caller's is left out when what is said of it contradicts what is known.
#[test]
fn what_contradicts_a_binding_is_left_out() {
    for binding in BINDINGS {
        let (gate, agent) = gate();
        bind(&gate, "alice", "t1", Some("c1"));
        bind(&gate, "alice", "t2", None);
        bind(&gate, "bob", "t9", Some("c9"));
        let tasks = [
            task(binding, "t1", Some("c2"), ""),
            task(binding, "t2", Some("c9"), ""),
            task(binding, "t1", Some("c1"), ""),
            task(binding, "t1", None, ""),
            task(binding, "t2", Some("c7"), ""),
            task(binding, "c1", None, ""),
        ];
        let query = ListQuery::default();
        let mut listing =
            Listing::new(&gate, &agent, owner("alice"), &call(binding, query)).unwrap();
        let body = wait(listing.take(&page(binding, &tasks, "")))
            .unwrap()
            .unwrap();
        let (found, next, size, total) = shown(binding, &body);
        assert_eq!(found, tasks[2..5]);
        assert_eq!((next, size, total), (None, 50, 3));
        // What was learnt on the way holds.
        let owned = wait(gate.ownership.owned("raw", IdKind::Context, "c7")).unwrap();
        assert_eq!(owned.map(|o| o.owner), Some(owner("alice")));
        let owned = wait(gate.ownership.owned("raw", IdKind::Context, "c9")).unwrap();
        assert_eq!(owned.map(|o| o.owner), Some(owner("bob")));
    }
}

/// An agent that has no end of other callers' tasks is asked ten times, not for ever.
#[test]
fn at_most_ten_pages_make_one() {
    for binding in BINDINGS {
        let (gate, agent) = gate();
        let foreign = |n: usize| vec![task(binding, &format!("x{n}"), None, "")];
        let mut pages: Vec<_> = (0..14).map(foreign).collect();
        bind(&gate, "alice", "mine", None);
        pages[12] = vec![task(binding, "mine", None, "")];
        let (body, took) = one(&gate, &agent, binding, "alice", None, &pages);
        let (tasks, token, _, total) = shown(binding, &body);
        assert_eq!((took, tasks.len(), total), (10, 0, 1));
        let (body, took) = one(&gate, &agent, binding, "alice", token.as_deref(), &pages);
        let (tasks, token, ..) = shown(binding, &body);
        assert_eq!((took, tasks.len(), token), (4, 1, None));
    }
}

/// What cannot be read for certain is no list.
#[test]
fn unclear_pages_are_withheld() {
    let cases: [(Binding, &[u8], &str); 24] = [
        (Binding::JsonRpc, br#"{"result":[]}"#, "bad_result"),
        (Binding::JsonRpc, br#"{"result":null}"#, "bad_result"),
        (Binding::JsonRpc, br#"{"result":"x"}"#, "bad_result"),
        (Binding::JsonRpc, br#"{"id":1}"#, "no_result"),
        (Binding::JsonRpc, br#"[]"#, "bad_result"),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":{}}}"#,
            "bad_result",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[1]}}"#,
            "bad_result",
        ),
        (Binding::JsonRpc, br#"{"result":{"tasks":[{}]}}"#, "bad_id"),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":""}]}}"#,
            "bad_id",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":1}]}}"#,
            "bad_id",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":"a\u0000"}]}}"#,
            "bad_id",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":"a","contextId":1}]}}"#,
            "bad_id",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":"a","ID":"b"}]}}"#,
            "ambiguous",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[{"id":"a","id":"b"}]}}"#,
            "ambiguous",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[]},"result":{}}"#,
            "ambiguous",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[]},"Result":{}}"#,
            "ambiguous",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":[],"next_page_token":"x"}}"#,
            "ambiguous",
        ),
        (
            Binding::JsonRpc,
            br#"{"result":{"nextPageToken":5}}"#,
            "bad_result",
        ),
        (Binding::Rest, br#"[]"#, "bad_result"),
        (Binding::Rest, br#"{"tasks":[}"#, "not_json"),
        (Binding::Rest, br#"{"tasks":[]}x"#, "not_json"),
        (Binding::Grpc, b"\0\0\0\0\x02\x0a\0", "bad_id"),
        (Binding::Grpc, b"\0\0\0\0\x01\x0a", "truncated"),
        (Binding::Grpc, b"\x01\0\0\0\0", "compressed_message"),
    ];
    let (gate, agent) = gate();
    for (binding, reply, code) in cases {
        let call = call(binding, ListQuery::default());
        let mut listing = Listing::new(&gate, &agent, owner("alice"), &call).unwrap();
        let found = wait(listing.take(&Bytes::from_static(reply)));
        assert_eq!(
            found,
            Err(NoPage::Unclear(code)),
            "{}",
            reply.escape_ascii()
        );
    }
    // An empty list in the ways in which encoders write it.
    for (binding, reply) in [
        (Binding::JsonRpc, &br#"{"result":{}}"#[..]),
        (
            Binding::JsonRpc,
            br#"{"result":{"tasks":null,"nextPageToken":null}}"#,
        ),
        (Binding::Rest, b"{}"),
        (Binding::Grpc, b"\0\0\0\0\0"),
    ] {
        let call = call(binding, ListQuery::default());
        let mut listing = Listing::new(&gate, &agent, owner("alice"), &call).unwrap();
        let body = wait(listing.take(&Bytes::from_static(reply)))
            .unwrap()
            .unwrap();
        assert_eq!(shown(binding, &body), (Vec::new(), None, 50, 0));
    }
}

/// The agent's token takes the place of ours and nothing else changes.
#[test]
fn only_the_page_token_of_a_request_changes() {
    for (body, expected) in [
        (
            r#" {"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#,
            r#" {"params":{"pageToken":"a\"b"},"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#,
        ),
        (
            r#"{"params":null,"id":1}"#,
            r#"{"params":{"pageToken":"a\"b"},"id":1}"#,
        ),
        (
            r#"{"params": { } ,"id":1}"#,
            r#"{"params": {"pageToken":"a\"b" } ,"id":1}"#,
        ),
        (
            r#"{"params":{"pageSize" : 3, "x":{"pageToken":"y"}}}"#,
            r#"{"params":{"pageToken":"a\"b","pageSize" : 3, "x":{"pageToken":"y"}}}"#,
        ),
        (
            r#"{"params":{"pageToken" : null ,"pageSize":3}}"#,
            r#"{"params":{"pageToken" : "a\"b" ,"pageSize":3}}"#,
        ),
        (
            r#"{"p\u0061rams":{"pageT\u006fken":"ours"},"id":"pageToken"}"#,
            r#"{"p\u0061rams":{"pageT\u006fken":"a\"b"},"id":"pageToken"}"#,
        ),
    ] {
        let changed = with_page_token(Binding::JsonRpc, "", &Bytes::from(body), "a\"b");
        let (path, changed) = changed.unwrap();
        assert_eq!((&*path, &*changed), ("", expected.as_bytes()));
    }
    for (path, expected) in [
        ("/x/tasks", "/x/tasks?pageToken=a%20%26b%C3%BC"),
        ("/x/tasks?", "/x/tasks?pageToken=a%20%26b%C3%BC"),
        (
            "/tasks?pageToken=ours&contextId=c%20d",
            "/tasks?contextId=c%20d&pageToken=a%20%26b%C3%BC",
        ),
    ] {
        let first = with_page_token(Binding::Rest, path, &Bytes::new(), "")
            .unwrap()
            .0;
        assert!(
            !first.contains("Token") && !first.ends_with(['?', '&']),
            "{first}"
        );
        let changed = with_page_token(Binding::Rest, path, &Bytes::new(), "a &bü");
        assert_eq!(&*changed.unwrap().0, expected);
    }
    let mut message = field(2, b"ctx");
    message.extend(field(5, b"ours"));
    message.extend([4 << 3, 3]);
    let changed = with_page_token(Binding::Grpc, "/p", &frame(&message).into(), "next").unwrap();
    let mut expected = field(2, b"ctx");
    expected.extend([4 << 3, 3]);
    expected.extend(field(5, b"next"));
    assert_eq!(&*changed.1, frame(&expected));
}
