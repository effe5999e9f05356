//! Streams that outlive their time: they end with a status, between whole messages.

use super::{
    NEW, OLD, POLICY, Stand, assert_status, good, head, message, path, reply, request, task,
};
use crate::support::h2_agent::{H2Act, H2Answer, H2Then};
use crate::support::h2_client::{H2Client, H2Reply};
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedSender};

/// A stand whose agent has these limits beside its body limit.
async fn limited(limits: &str) -> Stand {
    let listener = "{listener: public}";
    Stand::with(listener, [], POLICY, &[], |yaml| {
        yaml.replace("limits: {body: 8MiB}", &format!("limits: {{{limits}}}"))
    })
    .await
}

/// A stream that says what is sent, for as long as the sender lives.
fn fed(stand: &Stand) -> UnboundedSender<Vec<u8>> {
    let (agent, pieces) = mpsc::unbounded_channel();
    let answer = H2Answer::grpc(Vec::new(), &[("grpc-status", "0")]);
    stand.agent.play([H2Act::Fed(answer, pieces, H2Then::End)]);
    agent
}

async fn open(
    stand: &Stand,
    client: &mut H2Client,
    package: &str,
    more: &[(&'static str, &str)],
) -> H2Reply {
    let method = "SendStreamingMessage";
    let body = request(package, method, &message(package, &[]));
    let token = stand.token("alice");
    let reply = client
        .begin(
            "POST",
            &path(package, method),
            &head(Some(&token), more),
            &body,
        )
        .await
        .unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.fields.get("grpc-status"), None);
    reply
}

fn event(package: &str) -> Vec<u8> {
    reply(package, "SendStreamingMessage", &json!([["task", task()]]))
}

#[tokio::test]
async fn a_silent_stream_over_its_time_ends_with_a_status() {
    for package in [NEW, OLD] {
        for (limits, more, ended) in [
            ("body: 8MiB", &[("grpc-timeout", "500m")][..], "max_stream"),
            ("idle_stream: 1s", &[], "idle_timeout"),
            ("max_stream: 1s", &[], "max_stream"),
        ] {
            let stand = limited(limits).await;
            let mut client = stand.client().await;
            let agent = fed(&stand);
            agent.send(event(package)).unwrap();
            // The beginning of a message never leaves.
            agent.send(event(package)[..9].to_vec()).unwrap();
            let stream = open(&stand, &mut client, package, more).await;
            let what = format!("{package}, {limits}");
            let answer = stream.rest().await.expect(&what);
            assert_eq!(answer.body, event(package), "{what}");
            assert_eq!(answer.trailer("grpc-status"), Some("4"), "{what}");
            assert!(answer.trailer("grpc-message").is_some(), "{what}");
            assert!(
                answer.trailer("grpc-status-details-bin").is_some(),
                "{what}"
            );
            let outcome = stand.outcome(1).await;
            assert_eq!(outcome["ended"], ended, "{what}: {outcome}");
            assert_eq!(outcome["delivery"], "response_partial", "{outcome}");
            // The agent is told that nobody listens, and the connection goes on.
            stand
                .agent
                .until("the reset", |c| c.seen.iter().any(|s| s.reset))
                .await;
            let whole = reply(package, "GetTask", &task());
            stand.agent.play([good(whole.clone())]);
            let fields = match package {
                OLD => json!([["name", "tasks/t-1"]]),
                _ => json!([["id", "t-1"]]),
            };
            let next = client
                .request(
                    "POST",
                    &path(package, "GetTask"),
                    &head(Some(&stand.token("alice")), &[]),
                    &request(package, "GetTask", &fields),
                )
                .await
                .unwrap();
            assert_eq!(next.body, whole, "{what}");
        }
    }
}

/// A status behind half a message would be a lie about what came.
#[tokio::test]
async fn within_a_message_a_stream_over_its_time_is_reset() {
    let stand = limited("idle_stream: 1s").await;
    let mut client = stand.client().await;
    let agent = fed(&stand);
    let mut large = vec![0];
    large.extend((5_u32 << 20).to_be_bytes());
    large.extend([0x0a]);
    agent.send(large.clone()).unwrap();
    let stream = open(&stand, &mut client, NEW, &[]).await;
    assert!(stream.rest().await.is_err());
    assert_eq!(stand.outcome(1).await["ended"], "idle_timeout");
}

/// The message of a unary reply is here, and what says how the call went is not.
#[tokio::test]
async fn trailers_that_do_not_come_are_waited_for_until_the_deadline() {
    let stand = limited("body: 8MiB").await;
    let mut client = stand.client().await;
    let agent = fed(&stand);
    let whole = reply(NEW, "SendMessage", &json!([["task", task()]]));
    agent.send(whole).unwrap();
    let answer = client
        .request(
            "POST",
            &path(NEW, "SendMessage"),
            &head(Some(&stand.token("alice")), &[("grpc-timeout", "500m")]),
            &request(NEW, "SendMessage", &message(NEW, &[])),
        )
        .await
        .unwrap();
    assert_status(&answer, "4", "no trailers in time");
}
