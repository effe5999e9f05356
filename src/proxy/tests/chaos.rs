//! Agents that do anything at any point, and callers that may leave: no message is ever sent twice,
//! and what the records say is what the agent saw.

use super::{ANSWER, Exchange, backend_at, h2_at, quick};
use crate::config::snapshot::Backend;
use crate::test_support::client::{Client, request_head};
use crate::test_support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::test_support::raw_agent::{Act, RawAgent, json_answer};
use h2::Reason;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

const CALLS: usize = 200;
const CALLERS: usize = 8;

/// A sequence of numbers that looks random and is the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % many
    }
}

/// Whether agents hang in this run. In such a one only the callers of reads leave: we wait long for
/// the answer to a message whose caller has left.
fn hangs(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

fn h1_act(dice: &mut Dice, hangs: bool) -> Act {
    let answer = json_answer(200, ANSWER);
    let half = answer[..answer.len() - 9].to_vec();
    match dice.below(100) {
        0..50 => Act::Answer(answer),
        50..58 => Act::AnswerThenClose(answer),
        58..64 => Act::AnswerThenReset(answer),
        64..70 => Act::ReadThenClose,
        70..76 => Act::ReadThenReset,
        76..82 => Act::HeadThenClose,
        82..87 => Act::Close,
        87..92 => Act::Reset,
        92..97 => Act::AnswerThenClose(half),
        _ if hangs => Act::Hang,
        _ => Act::Reset,
    }
}

fn h2_act(dice: &mut Dice, hangs: bool) -> H2Act {
    let answer = H2Answer::json(200, ANSWER);
    match dice.below(100) {
        0..50 => H2Act::Answer(answer),
        50..62 => H2Act::Refuse,
        62..68 => H2Act::GoAwayAndClose,
        68..74 => H2Act::ReadThenReset(Reason::INTERNAL_ERROR),
        74..80 => H2Act::ReadThenReset(Reason::CANCEL),
        80..86 => H2Act::HeadThenClose,
        86..91 => H2Act::ReadThenClose,
        91..96 => H2Act::AnswerThenReset(H2Answer::json(200, &ANSWER[..40])),
        _ if hangs => H2Act::Hang,
        _ => H2Act::Refuse,
    }
}

/// Sends one call; its caller may leave at once.
async fn send(exchange: &Exchange, number: usize, dice: &mut Dice, hangs: bool) {
    let (method, params) = match dice.below(4) {
        0 => ("GetTask", format!(r#"{{"id":"t{number}"}}"#)),
        _ => (
            "SendMessage",
            format!(
                r#"{{"message":{{"messageId":"m{number}","role":"ROLE_USER","parts":[{{"text":"x"}}]}}}}"#
            ),
        ),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let fields = [("Content-Type", "application/json")];
    let head = request_head("POST", "/", &fields, Some(body.len()));
    let mut client = Client::connect(exchange.address).await.unwrap();
    client.send((head + &body).as_bytes()).await.unwrap();
    let stays = hangs && method == "SendMessage";
    if dice.below(20) > 0 || stays {
        client.response().await.unwrap();
    }
}

/// Plays them, and joins intents with outcomes when all are there.
async fn play(backend: Backend, seed: u64) -> Vec<(Value, Value)> {
    let exchange = Arc::new(Exchange::to(backend, quick()));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let exchange = exchange.clone();
            tokio::spawn(async move {
                let mut dice = Dice(seed ^ (caller as u64 + 1) << 32);
                for number in 0..CALLS / CALLERS {
                    send(&exchange, caller * CALLS + number, &mut dice, hangs(seed)).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let of = |records: &[Value], kind: &str| {
        let mut of: Vec<_> = records
            .iter()
            .filter(|r| r["kind"] == kind)
            .cloned()
            .collect();
        of.sort_by_key(|r| r["request_id"].as_str().map(str::to_owned));
        of
    };
    let all = |records: &[Value]| {
        let intents = of(records, "intent").len();
        intents == CALLS && of(records, "outcome").len() == intents
    };
    let records = exchange.journal.until("all outcomes", all).await;
    let (intents, outcomes) = (of(&records, "intent"), of(&records, "outcome"));
    intents.into_iter().zip(outcomes).collect()
}

/// How often each request was read from end to end, and how often its head came.
type Log = HashMap<String, (u64, u64)>;

fn agree(pairs: &[(Value, Value)], log: &Log, seed: u64) {
    let mut deliveries = HashMap::<&str, u64>::new();
    for (intent, outcome) in pairs {
        assert_eq!(intent["request_id"], outcome["request_id"]);
        let shown = || format!("seed {seed}: {outcome:#}");
        let id = outcome["request_id"].as_str().unwrap();
        let (executed, began) = log.get(id).copied().unwrap_or_default();
        let delivery = outcome["delivery"].as_str().unwrap();
        *deliveries.entry(delivery).or_default() += 1;
        let is_message = intent["operation"] == "SendMessage";
        if is_message {
            assert!(executed <= 1, "sent twice, {}", shown());
        }
        match outcome["reached"].as_str().unwrap() {
            "no" => assert_eq!(executed, 0, "{}", shown()),
            "maybe" => assert!(executed <= 2, "{}", shown()),
            "yes" => assert!(executed >= 1, "{}", shown()),
            other => panic!("`{other}`"),
        }
        if delivery == "responded" && is_message {
            assert_eq!(executed, 1, "{}", shown());
        }
        // Whatever arrived was tried.
        let attempts = outcome["attempts"].as_array().unwrap();
        assert!(began <= attempts.len() as u64, "{}", shown());
    }
    for delivery in ["responded", "sent_no_response", "response_partial"] {
        assert!(deliveries.contains_key(delivery), "{deliveries:?}");
    }
}

#[tokio::test]
async fn no_message_is_sent_twice_whatever_an_agent_does() {
    for seed in [1, 2] {
        let mut dice = Dice(seed);
        let script: Vec<_> = (0..CALLS * 3)
            .map(|_| h1_act(&mut dice, hangs(seed)))
            .collect();
        let agent = RawAgent::start(script).await;
        let pairs = play(backend_at(agent.address), seed).await;
        let mut log = Log::new();
        for seen in agent.counts().seen {
            let entry = log.entry(seen.field("portcullis-request-id").unwrap());
            let (executed, began) = entry.or_default();
            *executed += u64::from(seen.complete);
            *began += 1;
        }
        agree(&pairs, &log, seed);
    }
}

#[tokio::test]
async fn no_message_is_sent_twice_whatever_an_agent_does_in_http2() {
    for seed in [3, 4] {
        let mut dice = Dice(seed);
        let script: Vec<_> = (0..CALLS * 3)
            .map(|_| h2_act(&mut dice, hangs(seed)))
            .collect();
        let agent = H2Agent::start(script).await;
        let pairs = play(h2_at(agent.address), seed).await;
        let mut log = Log::new();
        for seen in agent.counts().seen {
            let id = seen.field("portcullis-request-id").unwrap();
            let (executed, began) = log.entry(id.to_owned()).or_default();
            *executed += u64::from(seen.complete);
            *began += 1;
        }
        agree(&pairs, &log, seed);
    }
}
