//! What a reply names is its caller's before the caller sees it.

use super::relating::{call, named};
use super::{Watched, agent, owned, owner, wait};
use portcullis::a2a::{Call, Event, EventKind, Expectation, Fault, Operation, Piece, Reader};
use portcullis::audit::record::Ended;
use portcullis::config::snapshot::Contexts;
use portcullis::pipeline::ports::{IdKind, Owner};
use portcullis::pipeline::relate::{Related, relate, release};
use portcullis::pipeline::{Binder, Observer, ReplyNote};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

type Refused = Option<(Ended, Fault, Option<&'static str>)>;

/// Relays `reply` as the proxy does; gives what left, and why it was cut.
fn relay(
    store: &Watched,
    name: &str,
    call: &Call,
    related: &Related,
    reply: &str,
) -> (String, Refused) {
    let event_stream = call.operation.is_streaming();
    let mut reader = Reader::new(Expectation {
        dialect: call.dialect,
        http_status: 200,
        operation: call.operation,
        rpc_id: call.rpc_id.clone(),
        event_stream,
        max_held: 1024,
        max_event: 1024,
        guard: true,
    });
    let mut pieces = Vec::new();
    reader.push(reply.as_bytes().to_vec().into(), &mut pieces);
    reader.finish(&mut pieces);

    let (agent, skill) = (agent(Contexts::Claimable), Some(Arc::from("hello")));
    let binder = Binder::new(store, &agent, &owner(name), call, related, skill);
    let mut note = ReplyNote::default();
    let mut observer = Observer::new(&mut note, Some(binder));
    let mut left = String::new();
    for piece in pieces {
        let (bytes, event) = match piece {
            Piece::Pass(bytes) | Piece::Part(bytes) => (bytes, None),
            Piece::Event(bytes, event) | Piece::Unjudged(bytes, event) => (bytes, Some(event)),
            Piece::Malformed(code) => panic!("malformed: {code} in {reply}"),
        };
        if let Some(event) = event
            && let Err((ended, fault)) = wait(observer.observe(&event))
        {
            return (left, Some((ended, fault, observer.note.malformed)));
        }
        left.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    (left, None)
}

fn agent_fault(code: &'static str) -> Refused {
    Some((Ended::Malformed, Fault::InvalidAgentResponse, Some(code)))
}

fn unary(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

fn sse(results: &[&str]) -> String {
    let event = |result: &&str| format!("data: {}\n\n", unary(result));
    results.iter().map(event).collect()
}

const TASK: &str =
    r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}"#;
const STATUS: &str =
    r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}"#;

#[test]
fn a_unary_reply_binds_task_context_and_skill() {
    let store = Watched::new();
    let call = call(Operation::SendMessage);
    let reply = unary(TASK);
    let (left, refused) = relay(&store, "alice", &call, &Related::default(), &reply);
    assert_eq!((left, refused), (reply.clone(), None));
    assert_eq!(store.asked(), 2);
    let get = named(Operation::GetTask, Some("t1"), None);
    let related = wait(relate(
        &store,
        &agent(Contexts::Issued),
        &owner("alice"),
        &get,
    ))
    .unwrap();
    assert_eq!(
        related.task,
        Some(owned("alice", Some("hello"), Some("c1")))
    );
    assert_eq!(store.owner_of(IdKind::Context, "c1"), Some(owner("alice")));

    // The same ids to somebody else: nothing leaves.
    let (left, refused) = relay(&store, "bob", &call, &Related::default(), &reply);
    assert_eq!((left.as_str(), refused), ("", agent_fault("foreign_id")));
    assert_eq!(store.owner_of(IdKind::Task, "t1"), Some(owner("alice")));
}

#[test]
fn a_bare_message_binds_its_context() {
    let store = Watched::new();
    let reply =
        unary(r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[],"contextId":"c7"}}"#);
    let (_, refused) = relay(
        &store,
        "alice",
        &call(Operation::SendMessage),
        &Related::default(),
        &reply,
    );
    assert_eq!(refused, None);
    assert_eq!(store.owner_of(IdKind::Context, "c7"), Some(owner("alice")));
}

#[test]
fn a_stream_is_bound_on_the_first_event_of_any_kind_and_once() {
    let store = Watched::new();
    let call = call(Operation::SendStreamingMessage);
    let reply = sse(&[STATUS; 1000]);
    let (left, refused) = relay(&store, "alice", &call, &Related::default(), &reply);
    assert_eq!((left.len(), refused), (reply.len(), None));
    assert_eq!(store.asked(), 2);
    assert_eq!(store.owner_of(IdKind::Task, "t1"), Some(owner("alice")));
}

#[test]
fn a_context_that_shows_late_is_added_to_its_task() {
    let store = Watched::new();
    let call = call(Operation::SendStreamingMessage);
    let early = r#"{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_WORKING"}}}"#;
    let reply = sse(&[early, early, STATUS, STATUS, early]);
    let (_, refused) = relay(&store, "alice", &call, &Related::default(), &reply);
    assert_eq!(refused, None);
    assert_eq!(store.asked(), 3);
    let get = named(Operation::GetTask, Some("t1"), None);
    let related = wait(relate(
        &store,
        &agent(Contexts::Issued),
        &owner("alice"),
        &get,
    ))
    .unwrap();
    assert_eq!(related.task.unwrap().context.as_deref(), Some("c1"));
}

#[test]
fn a_foreign_id_later_in_a_stream_cuts_it_before_that_event() {
    let store = Watched::new();
    store.own(IdKind::Context, "c1", &owned("bob", None, None));
    let early = r#"{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_WORKING"}}}"#;
    let reply = sse(&[early, STATUS, early]);
    let call = call(Operation::SendStreamingMessage);
    let (left, refused) = relay(&store, "alice", &call, &Related::default(), &reply);
    assert_eq!((left, refused), (sse(&[early]), agent_fault("foreign_id")));
    assert_eq!(store.owner_of(IdKind::Context, "c1"), Some(owner("bob")));
}

#[test]
fn an_answer_about_another_task_is_the_agents_fault() {
    let bare = |id: &str, context: &str| {
        unary(&format!(
            r#"{{"id":"{id}","contextId":"{context}","status":{{"state":"TASK_STATE_WORKING"}}}}"#
        ))
    };
    for (operation, reply, expected) in [
        (Operation::GetTask, bare("t1", "c1"), None),
        (
            Operation::GetTask,
            bare("t2", "c1"),
            agent_fault("other_task"),
        ),
        (
            Operation::CancelTask,
            bare("t9", "c1"),
            agent_fault("other_task"),
        ),
        (
            Operation::GetTask,
            bare("t1", "c9"),
            agent_fault("other_context"),
        ),
        (Operation::SendMessage, unary(TASK), None),
        (
            Operation::SendMessage,
            unary(&TASK.replace("t1", "t3")),
            agent_fault("other_task"),
        ),
        (Operation::SubscribeToTask, sse(&[TASK, STATUS]), None),
        (
            Operation::SubscribeToTask,
            sse(&[&TASK.replace("t1", "t2")]),
            agent_fault("other_task"),
        ),
    ] {
        let store = Watched::new();
        store.own(IdKind::Context, "c1", &owned("alice", None, None));
        for task in ["t1", "t2"] {
            store.own(IdKind::Task, task, &owned("alice", None, Some("c1")));
        }
        let call = named(operation, Some("t1"), None);
        let related = wait(relate(
            &store,
            &agent(Contexts::Issued),
            &owner("alice"),
            &call,
        ));
        let (left, refused) = relay(&store, "alice", &call, &related.unwrap(), &reply);
        assert_eq!(refused, expected, "{operation:?} {reply}");
        assert_eq!(
            left,
            if expected.is_none() {
                reply
            } else {
                String::new()
            }
        );
    }
}

#[test]
fn without_the_store_no_event_leaves() {
    let store = Watched::new();
    store.set_broken(true);
    for (operation, reply) in [
        (Operation::SendMessage, unary(TASK)),
        (Operation::SendStreamingMessage, sse(&[STATUS, STATUS])),
    ] {
        let (left, refused) = relay(
            &store,
            "alice",
            &call(operation),
            &Related::default(),
            &reply,
        );
        assert_eq!(left, "");
        assert_eq!(
            refused,
            Some((Ended::StoreFailed, Fault::Unavailable, None))
        );
    }
    // An error names nothing, so it needs no store.
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#;
    let (left, _) = relay(
        &store,
        "alice",
        &call(Operation::SendMessage),
        &Related::default(),
        error,
    );
    assert_eq!(left, error);
}

/// One call of one caller, and what a careless agent answers.
#[derive(Debug, Clone)]
struct Step {
    caller: usize,
    operation: Operation,
    task: Option<u8>,
    context: Option<u8>,
    /// `None`: nothing reached the agent.
    reply: Option<(Option<u8>, Option<u8>)>,
}

fn step() -> impl Strategy<Value = Step> {
    let id = || proptest::option::of(0..4u8);
    let operation = prop_oneof![
        3 => Just(Operation::SendMessage),
        1 => Just(Operation::SendStreamingMessage),
        1 => Just(Operation::GetTask),
        1 => Just(Operation::CancelTask),
    ];
    let reply = proptest::option::weighted(0.8, (id(), id()));
    (0..3usize, operation, id(), id(), reply).prop_map(
        |(caller, operation, task, context, reply)| Step {
            caller,
            operation,
            task,
            context,
            reply,
        },
    )
}

proptest! {
    /// Whatever callers ask and agents answer, an id that one caller was shown is never shown to
    /// another, nor may another's call name it.
    #[test]
    fn an_id_never_changes_hands(
        steps in proptest::collection::vec(step(), 1..60), issued in any::<bool>(),
    ) {
        let store = Watched::new();
        let agent = agent(if issued { Contexts::Issued } else { Contexts::Claimable });
        let mut shown: HashMap<(IdKind, Box<str>), Owner> = HashMap::new();
        for step in steps {
            let me = owner(["alice", "bob", "carol"][step.caller]);
            let text = |letter: char, id: Option<u8>| id.map(|n| format!("{letter}{n}"));
            let call = named(
                step.operation,
                text('t', step.task).as_deref(),
                text('c', step.context).as_deref(),
            );
            let Ok(related) = wait(relate(&store, &agent, &me, &call)) else {
                continue;
            };
            let asked = [(IdKind::Task, call.task_id.clone()), (IdKind::Context, call.context_id.clone())];
            for (kind, id) in asked {
                let whose = id.and_then(|id| shown.get(&(kind, id)));
                prop_assert!(whose.is_none_or(|whose| *whose == me));
            }
            let Some((task, context)) = step.reply else {
                wait(release(&store, &agent, &me, &related));
                continue;
            };
            let event = Event {
                kind: EventKind::Task,
                task_id: text('t', task).map(Into::into),
                context_id: text('c', context).map(Into::into),
                state: None,
                artifacts: Vec::new(),
            };
            let binder = Binder::new(&store, &agent, &me, &call, &related, None);
            let mut note = ReplyNote::default();
            if wait(Observer::new(&mut note, Some(binder)).observe(&event)).is_err() {
                continue;
            }
            for (kind, id) in [(IdKind::Task, event.task_id), (IdKind::Context, event.context_id)] {
                if let Some(id) = id {
                    let whose = shown.entry((kind, id)).or_insert_with(|| me.clone());
                    prop_assert_eq!(&*whose, &me);
                }
            }
        }
    }
}
