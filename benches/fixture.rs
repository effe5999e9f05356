//! A compiled gateway without listeners, and a token that it accepts: what the unit benches run on.
#![allow(dead_code, reason = "each bench uses a part of it")]

use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{Claims, DevAlgorithm, DevIssuer};
use portcullis::config::check::load;
use portcullis::config::snapshot::Snapshot;
use serde_json::json;
use std::error::Error;
use std::fmt::Write as _;
use tempfile::TempDir;

const ISSUER: &str = "https://issuer.bench.invalid";
const AUDIENCE: &str = "https://agents.bench.invalid";
/// Rules for each agent; the last one lets the fixture's caller through.
pub const RULES_PER_AGENT: usize = 10;

/// A configuration and a token for it.
pub struct Fixture {
    /// The compiled configuration.
    pub snapshot: Snapshot,
    /// Accepted by it, with the agent grant and the role `reviewer`.
    pub token: String,
    /// Where its files are.
    pub folder: TempDir,
}

/// Agents whose rules stand in one policy file.
const AGENTS_PER_FILE: usize = 100;

/// Loads a configuration with so many agents, the same number of rules for each.
pub fn fixture(agents: usize, algorithm: DevAlgorithm) -> Result<Fixture, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let issuer = DevIssuer::generate(algorithm)?;
    std::fs::write(folder.path().join("jwks.json"), issuer.jwks())?;
    let mut gateway = format!(
        "version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://127.0.0.1:1}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
  - name: corp
    issuer: {ISSUER}
    audiences: [{AUDIENCE}]
    keys: {{file: jwks.json}}
    grants: [{{path: [scope], form: space_string, map: {{a2a.agent: agent, a2a.full: full}}}}]
    claims:
      role: {{path: [role], type: string}}
      groups: {{path: [realm_access, roles], type: string_array}}
    development: true
policies: {{files: [policy-*.yaml]}}
audit: {{journal: {{dir: journal}}}}
agents:
"
    );
    let mut policy = String::new();
    for agent in 0..agents {
        // A policy file may have 1 MiB, so that many rules stand in several.
        if agent % AGENTS_PER_FILE == 0 {
            policy = format!("version: 1\npolicy: bench-{agent:05}\nrules:\n");
        }
        writeln!(
            gateway,
            "  - name: agent-{agent}\n    route: {{path: /agents/agent-{agent}}}\n    backend: {{url: http://127.0.0.1:9}}\n    skills: [review-diff, hello]\n    skill_from: [{{metadata: skillId}}]"
        )?;
        for rule in 0..RULES_PER_AGENT - 2 {
            writeln!(
                policy,
                "  - id: r-{agent}-{rule}\n    allow: {{agents: [agent-{agent}], operations: [messages], skills: [review-diff]}}\n    grant: agent\n    require: {{role: {{equals: role-{rule}}}}}"
            )?;
        }
        writeln!(
            policy,
            "  - id: deny-{agent}\n    deny: {{agents: [agent-{agent}], operations: [messages], skills: [review-diff]}}\n    unless: {{groups: {{contains: staff}}}}"
        )?;
        writeln!(
            policy,
            "  - id: allow-{agent}\n    allow: {{agents: [agent-{agent}], operations: [messages, tasks], skills: [review-diff]}}\n    grant: agent\n    require: {{role: {{equals: reviewer}}}}"
        )?;
        if (agent + 1) % AGENTS_PER_FILE == 0 || agent + 1 == agents {
            std::fs::write(
                folder.path().join(format!("policy-{agent:05}.yaml")),
                &policy,
            )?;
        }
    }
    let file = folder.path().join("gateway.yaml");
    std::fs::write(&file, gateway)?;
    let snapshot = load(&file)?.snapshot;
    let mut claims = Claims {
        issuer: ISSUER.into(),
        audience: AUDIENCE.into(),
        subject: "9b1c5d1e-7f0a-4f5e-9a53-0b7d6f2a1c44".into(),
        client: "bench".into(),
        scope: "a2a.agent".into(),
        lifetime: 3600,
        ..Claims::default()
    };
    claims.extra.insert("role".into(), json!("reviewer"));
    let groups = json!({"roles": ["staff", "platform"]});
    claims.extra.insert("realm_access".into(), groups);
    let token = issuer.mint(&claims, &SystemClock::new(), &SystemRandom)?;
    Ok(Fixture {
        snapshot,
        token,
        folder,
    })
}
