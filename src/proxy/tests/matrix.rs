//! The table of deliveries (`design.md` section 9), played: what an agent does, in which version of
//! HTTP, on a new connection or a kept one; what the outcome then says; and whether the agent's own
//! log agrees with it.
//!
//! Two of its states need no agent: `not_attempted` is every refusal's, and `unknown` is what a start
//! finds after a crash.

mod play;

use super::{ANSWER, event, patient, quick};
use crate::config::snapshot::{Backend, Limits};
use crate::test_support::h2_agent::{H2Act, H2Answer};
use crate::test_support::raw_agent::{Act, LAST_CHUNK, chunk, json_answer, stream_head};
use h2::Reason;
use play::play;
use std::net::SocketAddr;
use std::time::Duration;

/// What one row plays.
struct Row {
    call: &'static str,
    padding: usize,
    limits: fn() -> Limits,
    leaves: Leaves,
    /// What the caller is answered; 0: nothing that can be waited for.
    status: u16,
    /// In HTTP/1.1, if it can be.
    h1: Option<Script>,
    /// In HTTP/2, if it can be.
    h2: Option<Script>,
    on: &'static [On],
    /// What the outcome may say, each as `delivery ended stage error`; more than one where the
    /// order of packets decides.
    says: &'static [&'static str],
    /// States and number of events.
    events: (&'static [&'static str], u64),
}

type Script = fn() -> Part;
/// The version in which an agent at an address is spoken to.
type Speaking = fn(SocketAddr) -> Backend;

/// What the agent does with the call.
enum Part {
    /// Nobody listens.
    Refuses,
    H1(Act),
    H2(H2Act),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    New,
    Kept,
}
use On::{Kept, New};

/// When the caller goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Never,
    /// The agent has the whole request.
    BeforeHeader,
    /// A part of the reply has arrived.
    AfterHeader,
}

/// A unary call to an agent that behaves.
const ROW: Row = Row {
    call: "SendMessage",
    padding: 1,
    limits: patient,
    leaves: Leaves::Never,
    status: 502,
    h1: None,
    h2: None,
    on: &[New, Kept],
    says: &[],
    events: (&[], 0),
};

/// The first `percent` of an answer.
fn cut(bytes: &[u8], percent: usize) -> Vec<u8> {
    bytes[..bytes.len() * percent / 100].to_vec()
}

fn refusal() -> &'static str {
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"too large"}}"#
}

/// A reply that is too long to be held.
fn large() -> String {
    let text = "y".repeat(3 << 20);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"id":"t1","contextId":"c1","status":{{"state":"TASK_STATE_WORKING"}},"history":"{text}"}}}}"#
    )
}

/// One event of a stream in each version, and what follows it.
fn h1_stream(rest: &[u8]) -> Vec<u8> {
    let first = chunk(&event("t1", "TASK_STATE_WORKING"));
    [&stream_head(), &first, rest].concat()
}

fn h2_stream(events: &[&str]) -> H2Answer {
    let events = events.iter().map(|state| event("t1", state));
    H2Answer {
        status: 200,
        fields: vec![("content-type", "text/event-stream".to_owned())],
        body: events.collect::<String>().into_bytes(),
        trailers: None,
    }
}

fn large_part() -> H2Answer {
    H2Answer::json(200, &large()[..2 << 20])
}

/// A stream that may be silent, but not live long.
fn short_lived() -> Limits {
    Limits {
        max_stream: Duration::from_millis(300),
        ..patient()
    }
}

macro_rules! rows {
    ($($name:ident: {$($member:ident: $value:expr),* $(,)?})*) => {$(
        #[tokio::test]
        async fn $name() {
            play(&Row {$($member: $value,)* ..ROW}).await;
        }
    )*};
}

const NEVER: &[&str] = &[
    "sent_no_response agent_closed wait closed",
    "sent_no_response agent_closed wait reset",
];
const RESET: &[&str] = &[
    NEVER[0],
    NEVER[1],
    "connect_failed agent_closed header reset",
];
const WORKING: (&[&str], u64) = (&["working"], 1);

rows! {
    refuses: {
        h1: Some(|| Part::Refuses),
        h2: Some(|| Part::Refuses),
        on: &[New],
        says: &["connect_failed other connect refused"],
    }
    accepts_and_closes: {
        h1: Some(|| Part::H1(Act::Close)),
        says: NEVER,
    }
    // HTTP/2 says more than one thing before its first request, so it may notice sooner.
    accepts_and_closes_h2: {
        h2: Some(|| Part::H1(Act::Close)),
        on: &[New],
        says: SOONER,
    }
    accepts_and_resets: {
        h1: Some(|| Part::H1(Act::Reset)),
        // The reset may be here before our first write is.
        says: RESET,
    }
    accepts_and_resets_h2: {
        h2: Some(|| Part::H1(Act::Reset)),
        on: &[New],
        says: SOONER,
    }
    reads_the_header_and_closes: {
        h1: Some(|| Part::H1(Act::HeadThenClose)),
        h2: Some(|| Part::H2(H2Act::HeadThenClose)),
        says: NEVER,
    }
    reads_all_and_closes: {
        h1: Some(|| Part::H1(Act::ReadThenClose)),
        h2: Some(|| Part::H2(H2Act::ReadThenClose)),
        says: NEVER,
    }
    reads_all_and_resets: {
        h1: Some(|| Part::H1(Act::ReadThenReset)),
        h2: Some(|| Part::H2(H2Act::ReadThenReset(Reason::INTERNAL_ERROR))),
        says: &["sent_no_response agent_closed wait reset"],
    }
    reads_all_and_hangs: {
        limits: quick,
        status: 504,
        h1: Some(|| Part::H1(Act::Hang)),
        h2: Some(|| Part::H2(H2Act::Hang)),
        says: &["sent_no_response unary_timeout wait timed_out"],
    }
    never_reads_a_large_body: {
        padding: 9_000_000,
        limits: quick,
        status: 504,
        h1: Some(|| Part::H1(Act::NeverRead)),
        h2: Some(|| Part::H2(H2Act::NeverRead)),
        says: &["sent_partial unary_timeout body timed_out"],
    }
    closes_under_a_large_body: {
        padding: 9_000_000,
        h1: Some(|| Part::H1(Act::HeadThenClose)),
        h2: Some(|| Part::H2(H2Act::HeadThenClose)),
        says: &[
            "sent_partial agent_closed body closed",
            "sent_partial agent_closed body reset",
            "sent_partial agent_closed header closed",
        ],
    }
    answers_half_and_closes: {
        h1: Some(|| Part::H1(Act::AnswerThenClose(cut(&json_answer(200, ANSWER), 90)))),
        says: &["response_partial agent_closed response none"],
    }
    answers_half_and_resets: {
        h1: Some(|| Part::H1(Act::AnswerThenReset(cut(&json_answer(200, ANSWER), 90)))),
        h2: Some(|| Part::H2(H2Act::AnswerThenReset(H2Answer::json(200, &ANSWER[..40])))),
        says: &["response_partial agent_closed response none"],
    }
    answers_half_and_hangs: {
        limits: quick,
        status: 504,
        h1: Some(|| Part::H1(Act::AnswerThenHang(cut(&json_answer(200, ANSWER), 90)))),
        h2: Some(|| Part::H2(H2Act::AnswerThenHang(H2Answer::json(200, &ANSWER[..40])))),
        says: &["response_partial unary_timeout response none"],
    }
    answers_all: {
        status: 200,
        h1: Some(|| Part::H1(Act::Answer(json_answer(200, ANSWER)))),
        h2: Some(|| Part::H2(H2Act::Answer(H2Answer::json(200, ANSWER)))),
        says: &["responded complete response none"],
        events: (&[], 1),
    }
    answers_all_and_closes: {
        status: 200,
        h1: Some(|| Part::H1(Act::AnswerThenClose(json_answer(200, ANSWER)))),
        says: &["responded complete response none"],
        events: (&[], 1),
    }
    refuses_before_it_has_read_the_body: {
        padding: 5_000_000,
        status: 413,
        h1: Some(|| Part::H1(Act::EarlyThenClose(json_answer(413, refusal())))),
        h2: Some(|| Part::H2(H2Act::EarlyUnread(H2Answer::json(413, refusal())))),
        says: &[
            "responded complete response none",
            "responded complete response closed",
            "responded complete response reset",
        ],
        events: (&[], 1),
    }
    answers_before_it_has_read_the_body: {
        padding: 5_000_000,
        status: 200,
        h1: Some(|| Part::H1(Act::Early(json_answer(200, ANSWER)))),
        h2: Some(|| Part::H2(H2Act::Early(H2Answer::json(200, ANSWER)))),
        says: &["responded complete response none"],
        events: (&[], 1),
    }
    caller_leaves_before_the_header: {
        call: "GetTask",
        leaves: Leaves::BeforeHeader,
        h1: Some(|| Part::H1(Act::Hang)),
        h2: Some(|| Part::H2(H2Act::Hang)),
        says: &["sent_no_response caller_left wait caller_left"],
    }
    caller_leaves_in_the_middle_of_a_reply: {
        call: "GetTask",
        leaves: Leaves::AfterHeader,
        h1: Some(|| Part::H1(Act::AnswerThenHang(cut(&json_answer(200, &large()), 66)))),
        h2: Some(|| Part::H2(H2Act::AnswerThenHang(large_part()))),
        says: &["response_partial caller_left response none"],
    }
    stream_closes_before_its_header: {
        call: "SendStreamingMessage",
        h1: Some(|| Part::H1(Act::ReadThenClose)),
        h2: Some(|| Part::H2(H2Act::ReadThenClose)),
        says: NEVER,
    }
    stream_hangs_before_its_header: {
        call: "SendStreamingMessage",
        limits: quick,
        status: 504,
        h1: Some(|| Part::H1(Act::Hang)),
        h2: Some(|| Part::H2(H2Act::Hang)),
        says: &["sent_no_response unary_timeout wait timed_out"],
    }
    stream_is_whole: {
        call: "SendStreamingMessage",
        status: 200,
        h1: Some(|| {
            let rest = [&chunk(&event("t1", "TASK_STATE_COMPLETED")), LAST_CHUNK].concat();
            Part::H1(Act::Answer(h1_stream(&rest)))
        }),
        h2: Some(|| {
            let states = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
            Part::H2(H2Act::Answer(h2_stream(&states)))
        }),
        says: &["responded complete response none"],
        events: (&["working", "completed"], 2),
    }
    stream_closes_in_the_middle: {
        call: "SendStreamingMessage",
        status: 200,
        h1: Some(|| Part::H1(Act::AnswerThenClose(h1_stream(b"")))),
        says: &["response_partial agent_closed response none"],
        events: WORKING,
    }
    stream_resets_in_the_middle: {
        call: "SendStreamingMessage",
        status: 200,
        h1: Some(|| Part::H1(Act::AnswerThenReset(h1_stream(b"")))),
        h2: Some(|| Part::H2(H2Act::AnswerThenReset(h2_stream(&["TASK_STATE_WORKING"])))),
        says: &["response_partial agent_closed response none"],
        events: WORKING,
    }
    stream_falls_silent: {
        call: "SendStreamingMessage",
        limits: quick,
        status: 200,
        h1: Some(|| Part::H1(Act::AnswerThenHang(h1_stream(b"")))),
        h2: Some(|| Part::H2(H2Act::AnswerThenHang(h2_stream(&["TASK_STATE_WORKING"])))),
        says: &["response_partial idle_timeout response none"],
        events: WORKING,
    }
    stream_lives_too_long: {
        call: "SendStreamingMessage",
        limits: short_lived,
        status: 200,
        h1: Some(|| Part::H1(Act::AnswerThenHang(h1_stream(b"")))),
        h2: Some(|| Part::H2(H2Act::AnswerThenHang(h2_stream(&["TASK_STATE_WORKING"])))),
        says: &["response_partial max_stream response none"],
        events: WORKING,
    }
    caller_leaves_before_the_header_of_a_stream: {
        call: "SendStreamingMessage",
        leaves: Leaves::BeforeHeader,
        h1: Some(|| Part::H1(Act::Hang)),
        h2: Some(|| Part::H2(H2Act::Hang)),
        says: &["sent_no_response caller_left wait caller_left"],
    }
    caller_leaves_in_the_middle_of_a_stream: {
        call: "SendStreamingMessage",
        leaves: Leaves::AfterHeader,
        h1: Some(|| Part::H1(Act::AnswerThenHang(h1_stream(b"")))),
        h2: Some(|| Part::H2(H2Act::AnswerThenHang(h2_stream(&["TASK_STATE_WORKING"])))),
        says: &["response_partial caller_left response none"],
        events: WORKING,
    }
}

const SOONER: &[&str] = &[
    "connect_failed other connect protocol",
    "connect_failed agent_closed header closed",
    "sent_partial agent_closed header closed",
    "sent_no_response agent_closed wait closed",
];
