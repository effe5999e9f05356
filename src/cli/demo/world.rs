//! The demo's world: an agent, an issuer, a gateway between.

use crate::adapters::clock::SystemClock;
use crate::adapters::journal::FileJournal;
use crate::adapters::random::SystemRandom;
use crate::audit::chain::check;
use crate::cli::demo_agent::{DemoAgent, Options};
use crate::cli::dev_issuer::{Claims, DevAlgorithm, DevIssuer};
use crate::cli::scratch::Scratch;
use crate::cli::server::{Outside, Server, Sockets};
use crate::config::check::load;
use crate::proxy::listen::bind;
use serde_json::json;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ISSUER: &str = "https://issuer.demo.invalid";
const AUDIENCE: &str = "https://agents.demo.invalid";

/// Everything that runs.
pub(super) struct World {
    pub(super) agent: DemoAgent,
    issuer: DevIssuer,
    server: Server,
    journal: Arc<FileJournal>,
    scratch: Scratch,
    pub(super) http: reqwest::Client,
    /// A task that alice owns, once a row has made it.
    pub(super) task: Option<String>,
}

/// Who a token says its bearer is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bearer {
    pub(super) subject: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) scope: &'static str,
}

/// One thing wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Nothing,
    Audience,
    Signature,
    Expired,
}

impl World {
    pub(super) async fn start() -> Result<World, Box<dyn Error>> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let agent = DemoAgent::start_with(loopback, Options::default()).await?;
        let issuer = DevIssuer::generate(DevAlgorithm::Es256)?;
        let scratch = Scratch::new("demo")?;
        let folder = scratch.path();
        let (public, admin) = (bind(loopback)?, bind(loopback)?);
        std::fs::write(folder.join("jwks.json"), issuer.jwks())?;
        std::fs::write(folder.join("policy.yaml"), POLICY)?;
        let file = folder.join("gateway.yaml");
        std::fs::write(&file, gateway(&agent.url(), public.address))?;
        let loaded = load(&file)?;
        let (outside, journal) = Outside::system(&loaded.snapshot)?;
        let server = Server::start(loaded, None, Sockets::given(vec![public], admin), outside)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(10))
            .build()?;
        let world = World {
            agent,
            issuer,
            server,
            journal,
            scratch,
            http,
            task: None,
        };
        world.wait_for_cards().await?;
        Ok(world)
    }

    /// The agents' cards are fetched in the background; without them there are no interfaces.
    async fn wait_for_cards(&self) -> Result<(), Box<dyn Error>> {
        let live = self.server.gate.live();
        for _ in 0..1000 {
            if (0..live.snapshot.agents.len()).all(|agent| live.cards.has_card(agent)) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("the agent's card did not arrive".into())
    }

    /// Where callers go.
    pub(super) fn public(&self) -> String {
        let address = self.server.public.first().map(SocketAddr::to_string);
        format!("http://{}", address.unwrap_or_default())
    }

    /// A token of the demo's issuer.
    pub(super) fn token(&self, bearer: Bearer, wrong: Wrong) -> Result<String, Box<dyn Error>> {
        let mut claims = Claims {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            subject: bearer.subject.to_owned(),
            client: "demo".to_owned(),
            scope: bearer.scope.to_owned(),
            lifetime: 3600,
            ..Claims::default()
        };
        if let Some(role) = bearer.role {
            claims.extra.insert("role".to_owned(), json!(role));
        }
        match wrong {
            Wrong::Nothing | Wrong::Signature => {}
            Wrong::Audience => claims.audience = "https://somebody-else.demo.invalid".to_owned(),
            Wrong::Expired => {
                // Long ago, beyond every leeway.
                claims.extra.insert("iat".to_owned(), json!(1_700_000_000));
                claims.extra.insert("exp".to_owned(), json!(1_700_000_600));
            }
        }
        let token = self
            .issuer
            .mint(&claims, &SystemClock::new(), &SystemRandom)?;
        Ok(if wrong == Wrong::Signature {
            with_another_signature(&token)
        } else {
            token
        })
    }

    pub(super) fn introduction(&self) -> String {
        format!(
            "agent    {}  (counts what reaches it)\ngateway  {}\nissuer   {ISSUER}  (a development issuer)\n",
            self.agent.url(),
            self.public(),
        )
    }

    /// The journal as it stands once it has this many refusals.
    pub(super) async fn journal_summary(&self, refusals: usize) -> String {
        let folder = self.scratch.path().join("journal");
        // What nobody waits for lies for a moment before it is written.
        for _ in 0..200 {
            if let Some(summary) = summarize(&folder, refusals) {
                return summary;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        "THE JOURNAL LACKS REFUSALS.".to_owned()
    }

    pub(super) fn things_to_try(&self) -> String {
        let reviewer = Bearer {
            subject: "you",
            role: Some("reviewer"),
            scope: "a2a.agent",
        };
        let token = self.token(reviewer, Wrong::Nothing).unwrap_or_default();
        let public = self.public();
        let admin = self.server.admin;
        let journal = self.scratch.path().join("journal");
        format!(
            r#"
It stays up until Ctrl-C. To try (the token is good for an hour, here only):

  TOKEN={token}
  curl -s {public}/agents/pr-agent/.well-known/agent-card.json
  curl -s {public}/agents/pr-agent/a2a -H "Authorization: Bearer $TOKEN" \
    -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d '{body}'
  curl -s http://{admin}/readyz
  curl -s http://{admin}/metrics | grep portcullis_requests_total
  tail -n 3 {journal}/*.jsonl
"#,
            body = super::rows::message("review-diff", "please review"),
            journal = journal.display(),
        )
    }

    pub(super) async fn stop(self) {
        self.server.stop(Duration::from_secs(2)).await;
        let journal = self.journal;
        let _ = tokio::task::spawn_blocking(move || journal.close()).await;
        self.agent.stop().await;
    }
}

/// Changes the first character of the signature, whose bits all count.
fn with_another_signature(token: &str) -> String {
    let Some((input, signature)) = token.rsplit_once('.') else {
        return token.to_owned();
    };
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let rest: String = signature.chars().skip(1).collect();
    format!("{input}.{first}{rest}")
}

fn summarize(folder: &Path, awaited: usize) -> Option<String> {
    let mut segments: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    segments.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    segments.sort();
    let bytes: Vec<u8> = segments
        .iter()
        .flat_map(|path| std::fs::read(path).unwrap_or_default())
        .collect();
    let lines: Vec<&[u8]> = bytes
        .split(|&b| b == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let count = |kind: &str| {
        let member = format!("\"kind\":\"{kind}\"");
        lines
            .iter()
            .filter(|l| l.windows(member.len()).any(|w| w == member.as_bytes()))
            .count()
    };
    let (intents, refusals) = (count("intent"), count("refusal"));
    if refusals < awaited {
        return None;
    }
    let chain = match check(lines.iter().copied()) {
        Ok(_) => "its chain is intact",
        Err(_) => "ITS CHAIN IS BROKEN",
    };
    Some(format!(
        "The journal has {intents} intents and {refusals} refusals; {chain}."
    ))
}

fn gateway(agent: &str, public: SocketAddr) -> String {
    format!(
        "version: 1
listeners: [{{name: public, bind: {public}, public_url: http://{public}}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
  - name: demo
    issuer: {ISSUER}
    audiences: [{AUDIENCE}]
    keys: {{file: jwks.json}}
    grants: [{{path: [scope], form: space_string, map: {{a2a.agent: agent, a2a.full: full}}}}]
    claims: {{role: {{path: [role], type: string}}}}
    development: true
agents:
  - name: pr-agent
    route: {{path: /agents/pr-agent}}
    publish: true
    backend: {{url: {agent}}}
    skills: [review-diff, hello]
    skill_from: [{{metadata: skillId}}]
    backend_paths:
      - {{path: /config, methods: [GET]}}
      - {{path: /nodes/devices, methods: [GET]}}
      - {{path: /a2a/status, methods: [GET]}}
  - name: hidden
    route: {{path: /agents/hidden}}
    backend: {{url: {agent}}}
    skills: [hello]
policies: {{files: [policy.yaml], names: [demo]}}
audit: {{journal: {{dir: journal}}}}
"
    )
}

const POLICY: &str = "version: 1
policy: demo
rules:
  - id: reviewers-review
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: own-tasks
    allow: {agents: [pr-agent], operations: [tasks]}
    grant: agent
  - id: operators-see-the-rest
    allow: {agents: [pr-agent], operations: [backend]}
    grant: full
";
