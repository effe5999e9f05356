//! [`Lifecycle`]: when an issuer's keys are fetched, and for how long they serve.
//!
//! Values only: time and chance come in as arguments, and what is to be done goes out.

use aws_lc_rs::digest::{SHA256, digest};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// From the last attempt to one that an unknown `kid` may cause (LC-8).
pub const COOLDOWN: Duration = Duration::from_secs(30);
/// Fetches that unknown `kid`s may cause within [`BUDGET_WINDOW`], over all issuers (LC-8).
pub const BUDGET: usize = 10;
/// What [`BUDGET`] counts over.
pub const BUDGET_WINDOW: Duration = Duration::from_secs(60);
/// `kid`s of one issuer that are remembered not to exist (LC-8).
pub const REMEMBERED: usize = 1024;
/// Longest pause after a failure (LC-10).
pub const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The range of [`Rhythm::refresh`] (LC-6).
const REFRESH: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// How often, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Between two fetches.
    pub refresh: Duration,
    /// Whether a longer `max-age` may stretch that.
    pub may_wait: bool,
    /// How long a set serves after it was fetched.
    pub stale: Duration,
}

impl Rhythm {
    /// LC-6: what the reply says counts inside the range only, and never against an operator who
    /// chose how soon a removed key is noticed.
    fn pause(&self, max_age: Option<Duration>) -> Duration {
        let asked = match max_age {
            Some(age) if self.may_wait || age < self.refresh => age,
            Some(_) | None => self.refresh,
        };
        asked.clamp(REFRESH.0, REFRESH.1)
    }
}

/// Ten percent more or less, by 32 random bits.
fn jittered(pause: Duration, chance: u32) -> Duration {
    let share = f64::from(chance) / f64::from(u32::MAX);
    pause.mul_f64(0.9 + 0.2 * share)
}

/// What becomes of a token with a key that the present set does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// A fetch is to begin for it.
    Fetch,
    /// One runs already, and its result may help.
    Wait,
    /// A fetch has shown a moment ago that there is no such key.
    Remembered,
    /// The last attempt is too short a while ago.
    TooSoon,
    /// All issuers together have had their share of such fetches.
    Spent,
}

impl Unknown {
    /// For metrics.
    pub fn label(self) -> &'static str {
        match self {
            Unknown::Fetch => "fetched",
            Unknown::Wait => "waited",
            Unknown::Remembered => "remembered",
            Unknown::TooSoon => "too_soon",
            Unknown::Spent => "budget_spent",
        }
    }
}

/// The fetches that unknown `kid`s have caused lately, of all issuers. Refreshes do not count, so
/// that a flood of forged tokens cannot keep an issuer from changing its keys.
#[derive(Debug, Default)]
pub struct Budget(VecDeque<Duration>);

impl Budget {
    fn take(&mut self, now: Duration) -> bool {
        while self
            .0
            .front()
            .is_some_and(|at| now.saturating_sub(*at) >= BUDGET_WINDOW)
        {
            self.0.pop_front();
        }
        let left = self.0.len() < BUDGET;
        if left {
            self.0.push_back(now);
        }
        left
    }
}

/// `kid`s that a fetch did not bring. Their digests, so that an entry has one size.
#[derive(Debug, Default)]
struct Missing {
    until: HashMap<[u8; 16], Duration>,
    order: VecDeque<[u8; 16]>,
}

impl Missing {
    fn name(kid: &str) -> [u8; 16] {
        let mut name = [0; 16];
        for (to, from) in name
            .iter_mut()
            .zip(digest(&SHA256, kid.as_bytes()).as_ref())
        {
            *to = *from;
        }
        name
    }

    fn knows(&self, kid: &str, now: Duration) -> bool {
        let until = self.until.get(&Missing::name(kid));
        until.is_some_and(|until| now < *until)
    }

    /// Asking again prolongs nothing: a key that is published late must be found in the end.
    fn add(&mut self, kid: &str, until: Duration) {
        let name = Missing::name(kid);
        if self.until.insert(name, until).is_none() {
            self.order.push_back(name);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.until.remove(&oldest);
        }
    }
}

/// The state of one issuer's key set.
#[derive(Debug)]
pub struct Lifecycle {
    rhythm: Rhythm,
    /// When the set that is held was asked for.
    success: Option<Duration>,
    attempt: Option<Duration>,
    due: Duration,
    failures: u32,
    running: bool,
    missing: Missing,
}

impl Lifecycle {
    /// Without keys, and with a first fetch that is due.
    pub fn new(rhythm: Rhythm, now: Duration) -> Lifecycle {
        Lifecycle {
            rhythm,
            success: None,
            attempt: None,
            due: now,
            failures: 0,
            running: false,
            missing: Missing::default(),
        }
    }

    /// Begins a fetch unless one runs (LC-7); whether it is to be made.
    pub fn begin(&mut self, now: Duration) -> bool {
        if self.running {
            return false;
        }
        self.running = true;
        self.attempt = Some(now);
        true
    }

    /// Begins the refresh that is due; whether it is to be made.
    pub fn begin_due(&mut self, now: Duration) -> bool {
        now >= self.due && self.begin(now)
    }

    /// A token names a key that the set does not have; its header and claims would pass (LC-9).
    pub fn unknown(&mut self, kid: &str, now: Duration, budget: &mut Budget) -> Unknown {
        if self.missing.knows(kid, now) {
            return Unknown::Remembered;
        }
        if self.running {
            return Unknown::Wait;
        }
        let early = |at: Duration| now.saturating_sub(at) < COOLDOWN;
        if self.attempt.is_some_and(early) {
            return Unknown::TooSoon;
        }
        if !budget.take(now) {
            return Unknown::Spent;
        }
        self.begin(now);
        Unknown::Fetch
    }

    /// The fetch that ended last did not bring this key.
    pub fn missed(&mut self, kid: &str) {
        if let Some(attempt) = self.attempt {
            self.missing.add(kid, attempt + COOLDOWN);
        }
    }

    /// The fetch brought a set; returns until when it serves.
    pub fn succeeded(&mut self, now: Duration, max_age: Option<Duration>, chance: u32) -> Duration {
        // What came is at least as old as the question.
        let asked = self.attempt.unwrap_or(now);
        self.running = false;
        self.failures = 0;
        self.success = Some(asked);
        self.due = now + jittered(self.rhythm.pause(max_age), chance);
        asked + self.rhythm.stale
    }

    /// The fetch brought nothing; the set that is held goes on serving until its time.
    pub fn failed(&mut self, now: Duration, chance: u32) {
        self.running = false;
        let doubled = 1u64 << self.failures.min(6);
        self.failures = self.failures.saturating_add(1);
        let pause = Duration::from_secs(doubled).min(MAX_BACKOFF);
        self.due = now + jittered(pause, chance);
    }

    /// Whether a fetch runs.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// When the next refresh is due.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// When the set that is held was asked for.
    pub fn success(&self) -> Option<Duration> {
        self.success
    }

    /// Failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests;
