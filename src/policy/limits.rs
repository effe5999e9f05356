//! How much callers may ask for. Read and checked here; nothing enforces it yet, and every file
//! that has limits is told so.

use super::compile::any_or_texts;
use super::document::LIMIT;
use super::names::Names;
use crate::source::quantity::parse_duration;
use crate::source::tree::clip;
use crate::source::{Value, codes};
use std::collections::HashMap;
use std::time::Duration;

/// Longest time in which requests are counted.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Most requests in it.
const MOST: u32 = 1_000_000;

/// How much one caller, client or agent may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Positions of the agents, each counted by itself; `None`: any.
    pub agents: Option<Box<[usize]>>,
    /// Whose calls count together.
    pub per: Per,
    /// How many requests in which time.
    pub requests: Option<Rate>,
    /// How many event streams at once.
    pub streams: Option<u32>,
}

/// Whose calls count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Per {
    /// Those of one caller: the owner key of a principal.
    Caller,
    /// Those of one client of an issuer.
    Client,
    /// All that an agent gets.
    Agent,
}

/// So many in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many; at least one.
    pub requests: u32,
    /// In which time; at least a second, at most a day.
    pub window: Duration,
}

/// The limits of all files.
#[derive(Default)]
pub(super) struct Limits<'d> {
    pub(super) read: Vec<Limit>,
    /// Where there is one for an agent, `None` for any agent; by whose calls count together.
    seen: HashMap<(Option<&'d str>, Per), String>,
    /// Where the first was of all with this.
    first: HashMap<Per, String>,
}

impl<'d> Limits<'d> {
    /// Reads the `limits` of one file.
    pub(super) fn read(&mut self, file: &str, value: &Value<'_, 'd>, names: &Names<'_>) {
        value.warn(
            codes::LIMITS_NOT_ENFORCED,
            "limits are not enforced by this version",
            "keep them for later, and limit callers in front of the gateway until then",
        );
        for entry in value.list().unwrap_or_default() {
            let limit = self.one(file, &entry, names);
            self.read.extend(limit);
        }
    }

    fn one(&mut self, file: &str, entry: &Value<'_, 'd>, names: &Names<'_>) -> Option<Limit> {
        let fields = entry.fields(&LIMIT)?;
        let per = fields.get("per").and_then(|v| {
            v.word(&[
                ("caller", Per::Caller),
                ("client", Per::Client),
                ("agent", Per::Agent),
            ])
        });
        let (requests, streams) = (fields.get("requests"), fields.get("streams"));
        if requests.is_none() && streams.is_none() {
            entry.error(
                codes::BAD_LIMIT,
                "the entry limits nothing",
                "add `requests: 60/1m`, `streams: 5`, or both",
            );
        }
        let requests = requests.map(|v| rate(&v));
        let streams = streams.map(|v| v.integer(1..=i64::from(MOST)));
        let named = any_or_texts(&fields.get("agents")?);
        let per = per?;
        let places = match &named {
            None => vec![(entry.clone(), None)],
            Some(named) => named.iter().map(|(v, n)| (v.clone(), Some(*n))).collect(),
        };
        for (place, agent) in places {
            let here = format!("{file}:{}", place.node.position.line);
            // What is for any agent is for this one too, and which of the two counts nobody says.
            let mut same = [(agent, per), (None, per)].into_iter();
            let first = match agent {
                Some(_) => same.find_map(|key| self.seen.get(&key)),
                None => self.first.get(&per),
            };
            match first {
                Some(first) => place.error(
                    codes::BAD_LIMIT,
                    "a second limit for the same calls",
                    format!("the first one is at {first}: make one of them"),
                ),
                None => {
                    self.first.entry(per).or_insert_with(|| here.clone());
                    self.seen.insert((agent, per), here);
                }
            }
        }
        let agents = named.map(|named| {
            let found = named.iter().filter_map(|(v, name)| names.agent(v, name));
            found.collect()
        });
        Some(Limit {
            agents,
            per,
            requests: requests.map_or(Some(None), |rate| rate.map(Some))?,
            streams: streams.map_or(Some(None), |streams| {
                streams.map(|streams| u32::try_from(streams).ok())
            })?,
        })
    }
}

/// Reads `60/1m`.
fn rate(value: &Value<'_, '_>) -> Option<Rate> {
    let text = value.text()?;
    let parts = text.split_once('/');
    let number = |digits: &str| {
        let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|n| plain && *n <= MOST)
    };
    let rate = parts.and_then(|(requests, window)| {
        Some(Rate {
            requests: number(requests)?,
            window: parse_duration(window)?,
        })
    });
    let rate = rate.filter(|rate| (Duration::from_secs(1)..=LONGEST).contains(&rate.window));
    if rate.is_none() {
        value.error(
            codes::BAD_LIMIT,
            format!("`{}` is no number of requests in a time", clip(text)),
            "write a number from 1 to 1000000 and a duration from 1s to 1d: `60/1m`",
        );
    }
    rate
}
