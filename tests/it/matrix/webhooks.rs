//! Webhooks in replies: those of another task than the one that was judged never reach the caller,
//! in any dialect.

use super::agent::Whose;
use super::client::Said;
use super::{BINDINGS, Situation, Stand, VERSIONS};
use portcullis::a2a::{Binding, Dialect, Operation, Version};

const OPERATIONS: [Operation; 3] = [
    Operation::CreateTaskPushNotificationConfig,
    Operation::GetTaskPushNotificationConfig,
    Operation::ListTaskPushNotificationConfigs,
];

#[tokio::test]
async fn webhooks_of_another_task_are_withheld() {
    let stand = Stand::new().await;
    for binding in BINDINGS {
        for version in VERSIONS {
            let dialect = Dialect { binding, version };
            let task = stand.task(dialect).await;
            for operation in OPERATIONS {
                for whose in [
                    Whose::Another,
                    Whose::Asked,
                    Whose::AnotherToo,
                    Whose::Unsaid,
                ] {
                    let what = format!("{operation:?}, {dialect:?}, {whose:?}");
                    stand.agent.answer_of(whose);
                    let before = stand.agent.executed();
                    let allowed = Situation::Allowed;
                    let (said, records) = stand.ask(dialect, operation, allowed, &task).await;
                    assert_eq!(stand.agent.executed() - before, 1, "{what}");
                    let outcome = records.iter().find(|r| r["kind"] == "outcome").unwrap();
                    let response = &outcome["response"];
                    match whose {
                        Whose::Asked | Whose::Unsaid => {
                            assert!(matches!(said, Said::Good(_)), "{what}: {said:?}");
                            assert_eq!(response["judged"], "ok", "{what}: {outcome}");
                        }
                        Whose::Another | Whose::AnotherToo => {
                            assert_invalid(&said, dialect, &what);
                            assert_eq!(response["malformed"], "other_task", "{what}: {outcome}");
                            assert_eq!(outcome["ended"], "malformed", "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[track_caller]
fn assert_invalid(said: &Said, dialect: Dialect, what: &str) {
    let Said::Bad { reason, .. } = said else {
        panic!("{what}: {said:?}");
    };
    let expected = match (dialect.binding, dialect.version) {
        (Binding::JsonRpc, Version::V0_3) => "-32006",
        (Binding::Rest, Version::V0_3) => "InvalidAgentResponseError",
        _ => "INVALID_AGENT_RESPONSE",
    };
    assert_eq!(reason, expected, "{what}");
}
