//! What the ids that a call names are to its caller.

use super::{Watched, agent, owned, owner, wait};
use portcullis::a2a::{Binding, Call, Dialect, Fault, Operation, Version};
use portcullis::config::snapshot::Contexts;
use portcullis::identity::Principal;
use portcullis::pipeline::ports::IdKind;
use portcullis::pipeline::relate::{Offered, Related, Unrelated, relate, release, unavailable};
use portcullis::pipeline::tenant::{TenantRefused, settle};

pub fn call(operation: Operation) -> Call {
    let dialect = Dialect {
        binding: Binding::JsonRpc,
        version: Version::V1_0,
    };
    Call::bare(dialect, operation)
}

pub fn named(operation: Operation, task: Option<&str>, context: Option<&str>) -> Call {
    Call {
        task_id: task.map(Box::from),
        context_id: context.map(Box::from),
        ..call(operation)
    }
}

fn ask(store: &Watched, contexts: Contexts, name: &str, call: &Call) -> Result<Related, Unrelated> {
    wait(relate(store, &agent(contexts), &owner(name), call))
}

/// Alice has task t1 in context c1 and t2 in no known context; nameless (the empty subject) has t0.
fn store() -> Watched {
    let store = Watched::new();
    let (c1, c0) = (Some("c1"), Some("c0"));
    store.own(IdKind::Task, "t1", &owned("alice", Some("review"), c1));
    store.own(IdKind::Context, "c1", &owned("alice", None, None));
    store.own(IdKind::Context, "c2", &owned("alice", None, None));
    store.own(IdKind::Task, "t2", &owned("alice", None, None));
    store.own(IdKind::Task, "t0", &owned("", None, c0));
    store.own(IdKind::Context, "c0", &owned("", None, None));
    store
}

const NOT_OWNER: Unrelated = Unrelated::TaskNotFound("not_owner");
const UNKNOWN: Unrelated = Unrelated::TaskNotFound("unknown_task");

/// FC-50, FC-51, FC-54: every operation that names a task, in every position, for every caller.
#[test]
fn a_task_exists_for_its_owner_only() {
    let store = store();
    let about_task = [
        Operation::SendMessage,
        Operation::SendStreamingMessage,
        Operation::GetTask,
        Operation::CancelTask,
        Operation::SubscribeToTask,
        Operation::CreateTaskPushNotificationConfig,
        Operation::GetTaskPushNotificationConfig,
        Operation::ListTaskPushNotificationConfigs,
        Operation::DeleteTaskPushNotificationConfig,
    ];
    for operation in about_task {
        for (caller, task, expected) in [
            ("alice", "t1", None),
            ("alice", "t0", Some(NOT_OWNER)),
            ("alice", "t9", Some(UNKNOWN)),
            ("alice", "T1", Some(UNKNOWN)),
            ("alice", "c1", Some(UNKNOWN)),
            ("bob", "t1", Some(NOT_OWNER)),
            ("bob", "t0", Some(NOT_OWNER)),
            ("bob", "t9", Some(UNKNOWN)),
            ("", "t1", Some(NOT_OWNER)),
            ("", "t0", None),
        ] {
            let direct = named(operation, Some(task), None);
            let referring = Call {
                reference_task_ids: vec![task.into()],
                ..call(operation)
            };
            for call in [direct, referring] {
                let answer = ask(&store, Contexts::Claimable, caller, &call);
                assert_eq!(answer.err(), expected, "{operation:?} {caller} {task}");
            }
        }
    }
    let related = ask(
        &store,
        Contexts::Claimable,
        "alice",
        &named(Operation::GetTask, Some("t1"), None),
    );
    let related = related.unwrap();
    assert_eq!(
        related.task,
        Some(owned("alice", Some("review"), Some("c1")))
    );
    assert_eq!(related.skill_of_task.as_deref(), Some("review"));
    assert_eq!(related.claimed_context, None);
}

#[test]
fn a_foreign_task_and_an_unknown_one_cost_and_answer_the_same() {
    let store = store();
    let answers = ["t1", "t9"].map(|task| {
        let call = Call {
            reference_task_ids: vec!["t1".into(), "t9".into()],
            ..named(Operation::SendMessage, Some(task), Some("c1"))
        };
        let answer = ask(&store, Contexts::Claimable, "bob", &call).unwrap_err();
        let mut told = answer.rejection();
        told.code = "";
        (told, store.asked())
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0.fault, Fault::TaskNotFound);
    assert_eq!(store.asked(), 0);
}

/// FC-52.
#[test]
fn a_context_is_used_by_its_owner_and_an_unknown_one_as_configured() {
    let refused = |code| Err(Unrelated::ContextRefused(code));
    for (contexts, caller, task, context, expected) in [
        (Contexts::Claimable, "alice", None, "c1", Ok(false)),
        (Contexts::Claimable, "alice", None, "new", Ok(true)),
        (
            Contexts::Claimable,
            "alice",
            None,
            "c0",
            refused("foreign_context"),
        ),
        (
            Contexts::Claimable,
            "bob",
            None,
            "c1",
            refused("foreign_context"),
        ),
        (Contexts::Claimable, "bob", None, "new", Ok(true)),
        (Contexts::Issued, "alice", None, "c1", Ok(false)),
        (
            Contexts::Issued,
            "alice",
            None,
            "new",
            refused("unknown_context"),
        ),
        (
            Contexts::Issued,
            "bob",
            None,
            "c1",
            refused("foreign_context"),
        ),
        (
            Contexts::Issued,
            "bob",
            None,
            "new",
            refused("unknown_context"),
        ),
        // With a task: from our table, if the task's context is in it.
        (Contexts::Issued, "alice", Some("t1"), "c1", Ok(false)),
        (
            Contexts::Claimable,
            "alice",
            Some("t1"),
            "c2",
            refused("context_mismatch"),
        ),
        (
            Contexts::Claimable,
            "alice",
            Some("t1"),
            "c0",
            refused("context_mismatch"),
        ),
        (
            Contexts::Claimable,
            "alice",
            Some("t1"),
            "new",
            refused("context_mismatch"),
        ),
        (Contexts::Claimable, "alice", Some("t2"), "c2", Ok(false)),
        (
            Contexts::Claimable,
            "alice",
            Some("t2"),
            "c0",
            refused("foreign_context"),
        ),
    ] {
        for operation in [Operation::SendMessage, Operation::SendStreamingMessage] {
            let store = store();
            let call = named(operation, task, Some(context));
            let answer = ask(&store, contexts, caller, &call);
            let claimed = answer.map(|related| related.claimed_context.is_some());
            assert_eq!(
                claimed, expected,
                "{contexts:?} {caller} {task:?} {context}"
            );
            let now = store.owner_of(IdKind::Context, context);
            match expected {
                Ok(_) => assert_eq!(now, Some(owner(caller))),
                Err(_) => assert_ne!(now, Some(owner("bob")), "{context}"),
            }
        }
    }
}

/// A context may expire before its task does; what became of it since decides.
#[test]
fn the_context_of_a_task_is_not_taken_on_trust() {
    for (contexts, taken, expected) in [
        (Contexts::Issued, false, Ok(false)),
        (Contexts::Claimable, false, Ok(true)),
        (Contexts::Issued, true, Err("foreign_context")),
        (Contexts::Claimable, true, Err("foreign_context")),
    ] {
        let store = Watched::new();
        store.own(IdKind::Task, "t", &owned("alice", None, Some("c")));
        if taken {
            store.own(IdKind::Context, "c", &owned("bob", None, None));
        }
        let call = named(Operation::SendMessage, Some("t"), Some("c"));
        let claimed = ask(&store, contexts, "alice", &call).map(|r| r.claimed_context.is_some());
        let expected = expected.map_err(Unrelated::ContextRefused);
        assert_eq!(claimed, expected, "{contexts:?} {taken}");
    }
}

#[test]
fn a_refused_call_claims_nothing_and_an_unsent_one_gives_its_claim_back() {
    let store = store();
    let foreign = named(Operation::SendMessage, Some("t1"), Some("new"));
    assert_eq!(
        ask(&store, Contexts::Claimable, "bob", &foreign),
        Err(NOT_OWNER)
    );
    assert_eq!(store.owner_of(IdKind::Context, "new"), None);

    let fresh = named(Operation::SendMessage, None, Some("new"));
    let related = ask(&store, Contexts::Claimable, "bob", &fresh).unwrap();
    let refused = ask(&store, Contexts::Claimable, "alice", &fresh);
    assert_eq!(refused, Err(Unrelated::ContextRefused("foreign_context")));
    wait(release(
        &store,
        &agent(Contexts::Claimable),
        &owner("bob"),
        &related,
    ));
    assert!(ask(&store, Contexts::Claimable, "alice", &fresh).is_ok());
}

/// FC-55: a store that does not answer refuses; nothing opens.
#[test]
fn without_the_store_nothing_that_needs_it_goes_on() {
    let store = store();
    store.set_broken(true);
    for call in [
        named(Operation::GetTask, Some("t1"), None),
        named(Operation::SendMessage, None, Some("c1")),
        named(Operation::SendMessage, None, None),
        Call {
            reference_task_ids: vec!["t1".into()],
            ..call(Operation::SendMessage)
        },
    ] {
        let answer = ask(&store, Contexts::Claimable, "alice", &call);
        assert_eq!(answer, Err(Unrelated::StoreUnavailable), "{call:?}");
    }
    let told = Unrelated::StoreUnavailable.rejection();
    assert_eq!(
        (told.fault, told.retry_after),
        (Fault::Unavailable, Some(1))
    );
}

#[test]
fn a_call_that_names_nothing_asks_nothing() {
    let store = store();
    let related = ask(
        &store,
        Contexts::Issued,
        "bob",
        &call(Operation::SendMessage),
    );
    assert_eq!(related, Ok(Related::default()));
    assert_eq!(store.asked(), 0);
}

/// What is not offered is refused, whoever asks: push notifications where no webhook is allowed,
/// the extended card where the agent announces none.
#[test]
fn what_is_not_offered_is_refused() {
    let push = Some((Fault::PushNotificationNotSupported, "push_unavailable"));
    let card = Some((
        Fault::ExtendedCardNotConfigured,
        "extended_card_unavailable",
    ));
    for (webhooks, extended_card) in [(false, false), (false, true), (true, false), (true, true)] {
        let offered = Offered {
            extended_card,
            webhooks,
        };
        for operation in Operation::ALL {
            let expected = match operation {
                Operation::SendMessage
                | Operation::SendStreamingMessage
                | Operation::GetTask
                | Operation::ListTasks
                | Operation::CancelTask
                | Operation::SubscribeToTask => None,
                Operation::CreateTaskPushNotificationConfig
                | Operation::GetTaskPushNotificationConfig
                | Operation::ListTaskPushNotificationConfigs
                | Operation::DeleteTaskPushNotificationConfig => push.filter(|_| !webhooks),
                Operation::GetExtendedAgentCard => card.filter(|_| !extended_card),
            };
            assert_eq!(unavailable(&call(operation), offered), expected);
        }
        let inline = Call {
            inline_push: true,
            ..call(Operation::SendMessage)
        };
        assert_eq!(unavailable(&inline, offered), push.filter(|_| !webhooks));
    }
}

/// An agent without tenants: one that a call names is not there, whatever the operation.
#[test]
fn a_tenant_that_is_not_ours_is_not_found() {
    let agent = agent(Contexts::Claimable);
    let caller = Principal {
        issuer_index: 0,
        issuer: "corp".into(),
        subject: "alice".into(),
        client: None,
        token_id: None,
        session: None,
        scopes: Vec::new(),
        actors: Vec::new(),
        grant: None,
        claims: Vec::new(),
        expires: 0,
        not_before: None,
        issued: None,
        key: [0; 32],
        algorithm: portcullis::identity::issuer::Algorithm::Es256,
        signing_input: [0; 32],
        confirmation: Default::default(),
    };
    for operation in Operation::ALL {
        for (task, fault) in [
            (Some("t1"), Fault::TaskNotFound),
            (None, Fault::InvalidParams),
        ] {
            let mut call = named(operation, task, None);
            assert_eq!(settle(&agent, &caller, &call), Ok(None));
            call.tenant = Some("".into());
            assert_eq!(settle(&agent, &caller, &call), Ok(None));
            call.tenant = Some("acme".into());
            let refused = TenantRefused::NotFound(fault, "tenant_not_ours");
            assert_eq!(settle(&agent, &caller, &call), Err(refused));
        }
    }
}
