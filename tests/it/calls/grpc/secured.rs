//! gRPC over TLS, where ALPN agrees on HTTP/2.

use super::{NEW, POLICY, Stand, assert_status, good, head, message, path, reply, request, task};
use crate::support::h2_client::H2Client;
use crate::support::pki::Authority;
use serde_json::json;

#[tokio::test]
async fn calls_streams_and_refusals_go_over_tls() {
    let authority = Authority::new();
    let own = authority.pair(&["localhost"]);
    let unary = reply(NEW, "SendMessage", &json!([["task", task()]]));
    let event = reply(NEW, "SendStreamingMessage", &json!([["task", task()]]));
    let events = event.repeat(3);
    let script = [good(unary.clone()), good(events.clone())];
    let files = [("own.pem", &*own.cert), ("own.key", &*own.key)];
    let stand = Stand::with("{listener: public}", script, POLICY, &files, |yaml| {
        let tls =
            "tls: {certificates: [{cert: own.pem, key: own.key}]}, hosts: [PUBLIC, localhost]";
        yaml.replacen("h2c: true", tls, 1)
    })
    .await;
    let mut client =
        H2Client::connect_tls(stand.gateway.address, "localhost", authority.client(None))
            .await
            .unwrap();
    let token = stand.token("alice");
    let sent = message(NEW, &[]);
    for (method, body) in [("SendMessage", unary), ("SendStreamingMessage", events)] {
        let answer = client
            .request(
                "POST",
                &path(NEW, method),
                &head(Some(&token), &[]),
                &request(NEW, method, &sent),
            )
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{method}");
        assert_eq!(answer.body, body, "{method}");
        assert_eq!(answer.trailer("grpc-status"), Some("0"), "{method}");
    }
    assert_eq!(stand.agent.counts().requests(), 2);
    let guest = stand
        .issuer
        .bad_token("alice", crate::support::issuer::Wrong::Expired);
    for method in ["SendMessage", "SendStreamingMessage"] {
        for (token, status) in [(None, "16"), (Some(&*guest), "16"), (Some(&*token), "5")] {
            let theirs = message(NEW, &[("task_id", "no-such-task")]);
            let refused = client
                .request(
                    "POST",
                    &path(NEW, method),
                    &head(token, &[]),
                    &request(NEW, method, &theirs),
                )
                .await
                .unwrap();
            assert_status(&refused, status, method);
        }
    }
    assert_eq!(stand.agent.counts().seen.len(), 2, "the agent was touched");
}
