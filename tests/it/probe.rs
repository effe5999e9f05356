//! `portcullis probe`: what is open is called open, and nothing is executed by looking.

use crate::support::fake_agent;
use crate::support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::support::pki::Authority;
use crate::support::raw_agent::{Act, RawAgent, RefusingPort, json_answer};
use serde_json::Value;
use std::process::Command;

/// Exit code and report.
async fn probe(url: &str, more: &[&str]) -> (Option<i32>, Value) {
    let (url, more) = (url.to_owned(), more.join(" "));
    let run = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let command = command.args(["probe", &url, "--json"]);
        let done = command.args(more.split_whitespace()).output().unwrap();
        let said = serde_json::from_slice(&done.stdout);
        let report = said.unwrap_or_else(|_| panic!("{done:?}"));
        (done.status.code(), report)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn outcomes<'r>(report: &'r Value, question: &str) -> Vec<&'r str> {
    let tries = report["tries"].as_array().unwrap();
    let of = tries.iter().filter(|t| t["question"] == question);
    of.map(|t| t["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_agent_that_answers_anybody_is_open_and_executes_nothing() {
    let agent = fake_agent::start().await;
    let (code, report) = probe(&agent.url(), &[]).await;
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(
        (&report["verdict"], &report["closed"]),
        (&"open".into(), &false.into())
    );
    assert_eq!(outcomes(&report, "card"), ["answered"]);
    assert!(
        outcomes(&report, "JSON-RPC 1.0").contains(&"answered"),
        "{report:#}"
    );
    assert!(agent.counters().requests() > 0);
    assert_eq!(agent.counters().executions(), 0);
    for request in agent.requests() {
        let head = String::from_utf8(request.head).unwrap().to_lowercase();
        assert!(!head.contains("authorization"), "{head}");
    }
}

#[tokio::test]
async fn where_nobody_listens_it_is_closed() {
    let port = RefusingPort::new();
    let (code, report) = probe(&format!("http://{}", port.address), &[]).await;
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["verdict"], "unreachable");
}

#[tokio::test]
async fn an_agent_with_a_public_card_that_refuses_calls_is_closed() {
    let agent = RawAgent::start([]).await;
    let url = format!("http://{}", agent.address);
    let card = serde_json::json!({"name": "a", "url": format!("{url}/a2a")});
    agent.play([Act::AnswerThenClose(json_answer(200, &card.to_string()))]);
    agent.play((0..40).map(|_| Act::AnswerThenClose(json_answer(401, "{}"))));
    let (code, report) = probe(&url, &[]).await;
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["verdict"], "refuses");
    assert_eq!(outcomes(&report, "JSON-RPC 0.3"), ["refused", "refused"]);
}

/// Doubt is no proof that the way is closed.
#[tokio::test]
async fn what_answers_something_else_or_nothing_is_unclear() {
    let agent =
        RawAgent::start((0..40).map(|_| Act::AnswerThenClose(json_answer(404, "{}")))).await;
    let (code, report) = probe(&format!("http://{}", agent.address), &[]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (Some(1), &"unclear".into()),
        "{report:#}"
    );
    let silent = RawAgent::start((0..40).map(|_| Act::Hang)).await;
    let url = format!("http://{}", silent.address);
    let (code, report) = probe(&url, &["--timeout", "1"]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (Some(1), &"unclear".into()),
        "{report:#}"
    );
}

#[tokio::test]
async fn tls_that_wants_a_certificate_refuses_and_one_that_is_not_trusted_is_asked() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let own = authority.pair(&["agent.internal"]);
    for (wants, verdict, code) in [(true, "refuses", 0), (false, "open", 1)] {
        let server = Authority::server(&own, wants.then_some(&clients), &["h2", "http/1.1"]);
        let status = [("grpc-status", "5")];
        let answers = (0..8).map(|_| H2Act::Answer(H2Answer::grpc(Vec::new(), &status)));
        let agent = H2Agent::start_with(Some(server), answers).await;
        let (exit, report) = probe(&format!("https://{}", agent.address), &[]).await;
        assert_eq!(
            (exit, &report["verdict"]),
            (Some(code), &verdict.into()),
            "{report:#}"
        );
        assert!(report["certificate"].is_string(), "{report:#}");
        assert_eq!(agent.counts().requests() > 0, !wants);
    }
}

#[tokio::test]
async fn a_line_that_names_no_place_is_a_usage_error() {
    for url in [
        "agent:9999",
        "ftp://agent/",
        "http://user@agent/",
        "nothing",
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["probe", url])
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{url}");
    }
}

/// Both versions are asked in, so that an agent is not called closed for the one it does not speak.
#[tokio::test]
async fn an_agent_of_http2_alone_that_answers_anybody_is_open() {
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#;
    let own = Authority::new().pair(&["agent.internal"]);
    for (scheme, tls) in [
        ("http", None),
        ("https", Some(Authority::server(&own, None, &["h2"]))),
    ] {
        let answers = (0..40).map(|_| H2Act::Answer(H2Answer::json(404, error)));
        let agent = H2Agent::start_with(tls, answers).await;
        let (code, report) = probe(&format!("{scheme}://{}", agent.address), &[]).await;
        assert_eq!(
            (code, &report["verdict"]),
            (Some(1), &"open".into()),
            "{report:#}"
        );
        assert_eq!(outcomes(&report, "JSON-RPC 1.0"), ["answered"]);
        assert_eq!(outcomes(&report, "HTTP+JSON 0.3"), ["answered"]);
        for seen in agent.counts().seen {
            assert_eq!(seen.authority, agent.address.to_string());
            assert_eq!(seen.field("portcullis-purpose"), Some("probe"));
            assert_eq!(seen.field("authorization"), None);
        }
    }
}

/// It closes on HTTP/1.1 as on HTTP/2: that is no doubt.
#[tokio::test]
async fn what_closes_in_both_versions_refuses() {
    let agent = RawAgent::start((0..60).map(|_| Act::Close)).await;
    let (code, report) = probe(&format!("http://{}", agent.address), &[]).await;
    assert_eq!(outcomes(&report, "JSON-RPC 1.0"), ["refused"], "{report:#}");
    assert_eq!(code, Some(0), "{report:#}");
}
