//! The policy's answer with 10 rules for one agent, 1,000 for a hundred, and 10,000 for a thousand:
//! it must not cost twice as much. What loading them takes, and a condition on the content.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod fixture;

use criterion::{BenchmarkId, Criterion, criterion_group};
use fixture::{Fixture, RULES_PER_AGENT, fixture};
use portcullis::a2a::content::Content;
use portcullis::a2a::{Binding, Call, Dialect, Operation, Version};
use portcullis::cli::dev_issuer::DevAlgorithm;
use portcullis::config::check::load;
use portcullis::identity::{Issuers, Principal, accept};
use portcullis::policy::{
    AgentFacts, Asked, AskedSkill, Effect, Memo, PolicySet, Question, World, compile, decide,
};
use portcullis::source::Document;
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
            content: None,
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

fn sites() -> [Site; 4] {
    [1, 10, 100, 1000].map(|agents| match site(agents) {
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
    load_files(c, &sites);
    content(c, &sites[0]);
    let [few, _, _, many] = sites.map(|site| site.least().as_secs_f64());
    println!(
        "decide: 10,000 rules over 1,000 agents take {:.2}x of 10 rules",
        many / few
    );
}

/// Gateway file and policies, from disk to the compiled rules.
fn load_files(c: &mut Criterion, sites: &[Site]) {
    let file = |site: &Site| site.fixture.folder.path().join("gateway.yaml");
    let mut group = c.benchmark_group("load");
    group.sample_size(10);
    for site in sites {
        let rules = site.agents * RULES_PER_AGENT;
        group.bench_function(BenchmarkId::new("rules", rules), |b| {
            b.iter(|| load(&file(site)).map(|loaded| loaded.snapshot.generation));
        });
    }
    group.finish();
    let took = |site: &Site| {
        let run = || {
            let began = Instant::now();
            let _ = black_box(load(&file(site)));
            began.elapsed()
        };
        (0..5).map(|_| run()).min().unwrap_or_default()
    };
    if let [_, some, _, many] = sites {
        let (some, many) = (took(some), took(many));
        let ratio = many.as_secs_f64() / some.as_secs_f64();
        println!("load: 10,000 rules take {many:?}, {ratio:.1}x of 100");
    }
}

/// A rule for one agent, with and without a condition on the content of a message of 1 KB.
fn content(c: &mut Criterion, site: &Site) {
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [
            {"text": "x".repeat(800)},
            {"data": {"repo": "sandbox/a", "branch": "main", "lines": [1, 2, 3]}},
        ]},
    }});
    let body = body.to_string();
    let dialect = Dialect {
        binding: Binding::JsonRpc,
        version: Version::V1_0,
    };
    let call = Call::bare(dialect, Operation::SendMessage);
    let path = r#"content: [{path: "$.message.parts[1].data.repo", each: {matches: "sandbox/*"}}]"#;
    let mut group = c.benchmark_group("decide");
    for (name, more) in [("claims", ""), ("claims_and_content", path)] {
        let policies = one_rule(site, more);
        let memo = Memo::default();
        let judged = || {
            let content = Content::of(&call, body.as_bytes());
            let question = Question {
                agent: 0,
                asked: Asked::Operation(Operation::SendMessage),
                skill: AskedSkill::Known("review-diff"),
                principal: &site.caller,
                memo: Some(&memo),
                content: Some(&content),
            };
            decide(&policies, black_box(&question)).effect
        };
        assert_eq!(judged(), Effect::Allow);
        group.bench_function(BenchmarkId::new("condition", name), |b| b.iter(judged));
    }
    group.finish();
}

fn one_rule(site: &Site, more: &str) -> PolicySet {
    let text = format!(
        "version: 1\npolicy: p\nrules:\n  - id: a\n    allow: {{agents: [agent-0], operations: [messages], skills: any}}\n    grant: agent\n    require:\n      role: {{equals: reviewer}}\n      {more}\n"
    );
    let snapshot = &site.fixture.snapshot;
    let facts = snapshot.agents.iter().map(|agent| AgentFacts {
        name: &agent.name,
        skills: &agent.skills,
        has_backend_paths: false,
    });
    let world = World {
        agents: facts.collect(),
        issuers: &snapshot.issuers,
        complete: true,
    };
    let compiled = Document::parse("p.yaml", &text).map(|document| compile(&[document], &world));
    match compiled {
        Ok((policies, problems)) if !problems.has_errors() => policies,
        Ok((_, problems)) | Err(problems) => panic!("{problems}"),
    }
}

criterion_group!(benches, bench);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
