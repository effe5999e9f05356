//! The whole gateway from outside, before any caller is let in.
//!
//! Answers: what strangers get. May import: the program. Invariants: every refusal leaves the
//! agent's own counters untouched. Start reading at [`cards`].

mod cards;
mod http;
mod operators;

use crate::support::fake_agent;
use crate::support::gateway::Gateway;
use portcullis::cli::demo_agent::DemoAgent;

/// A gateway in front of an honest agent: one route published, one hidden.
struct Stand {
    agent: DemoAgent,
    gateway: Gateway,
}

fn yaml(agent: &DemoAgent) -> String {
    let url = agent.url();
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
agents:
  - name: open
    route: {{path: /agents/open}}
    publish: true
    backend: {{url: {url}}}
    skills: [hello]
  - name: hidden
    route: {{path: /agents/hidden}}
    backend: {{url: {url}}}
    skills: [hello]
    backend_paths: [{{path: /config, methods: [GET]}}]
audit: {{journal: {{dir: journal}}}}
"
    )
}

impl Stand {
    async fn new() -> Stand {
        let agent = fake_agent::start().await;
        let gateway = Gateway::start(&yaml(&agent)).with_cards().await;
        Stand { agent, gateway }
    }

    /// The agent has seen nothing but our own card fetches.
    fn untouched(&self) {
        let counters = self.agent.counters();
        assert_eq!((counters.requests(), counters.executions()), (0, 0));
    }
}
