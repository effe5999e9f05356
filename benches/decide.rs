//! The policy's answer with 10 rules for one agent, and with 10,000 for a thousand: it must not
//! cost twice as much.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod fixture;

use criterion::{BenchmarkId, Criterion, criterion_group};
use fixture::{Fixture, RULES_PER_AGENT, fixture};
use portcullis::a2a::Operation;
use portcullis::cli::dev_issuer::DevAlgorithm;
use portcullis::identity::{Issuers, Principal, accept};
use portcullis::policy::{Asked, AskedSkill, Effect, Memo, Question, decide};
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct Site {
    fixture: Fixture,
    caller: Principal,
    memo: Memo,
    agents: usize,
}

fn site(agents: usize) -> Result<Site, Box<dyn Error>> {
    let fixture = fixture(agents, DevAlgorithm::Es256)?;
    let (issuers, _) = Issuers::compile(&fixture.snapshot.issuers);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let caller = accept(&issuers, &fixture.token, i64::try_from(now)?)
        .map_err(|refused| format!("the token is refused: {}", refused.fault.code))?;
    Ok(Site {
        fixture,
        caller,
        memo: Memo::default(),
        agents,
    })
}

impl Site {
    /// Decides for one agent after the other, a step apart that meets all of them.
    fn decide(&self, agent: &mut usize) -> Effect {
        *agent = (*agent + 7) % self.agents;
        let question = Question {
            agent: *agent,
            asked: Asked::Operation(Operation::SendMessage),
            skill: AskedSkill::Known("review-diff"),
            principal: &self.caller,
            memo: Some(&self.memo),
        };
        decide(&self.fixture.snapshot.policy, black_box(&question)).effect
    }

    /// Time for one decision: the least of many short runs, which other work disturbs least.
    fn least(&self) -> Duration {
        const CALLS: u32 = 20_000;
        let mut agent = 0;
        let run = |agent: &mut usize| {
            let began = Instant::now();
            for _ in 0..CALLS {
                black_box(self.decide(agent));
            }
            began.elapsed() / CALLS
        };
        (0..50).map(|_| run(&mut agent)).min().unwrap_or_default()
    }
}

fn sites() -> [Site; 2] {
    [1, 1000].map(|agents| match site(agents) {
        Ok(site) => site,
        Err(error) => panic!("{error}"),
    })
}

fn bench(c: &mut Criterion) {
    let sites = sites();
    let mut group = c.benchmark_group("decide");
    for site in &sites {
        let mut agent = 0;
        assert_eq!(site.decide(&mut agent), Effect::Allow);
        group.bench_function(
            BenchmarkId::new("rules", site.agents * RULES_PER_AGENT),
            |b| {
                b.iter(|| site.decide(&mut agent));
            },
        );
    }
    group.finish();
    let [few, many] = sites.map(|site| site.least().as_secs_f64());
    println!(
        "decide: 10,000 rules over 1,000 agents take {:.2}x of 10 rules",
        many / few
    );
}

criterion_group!(benches, bench);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
