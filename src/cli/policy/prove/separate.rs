//! [`Separate`]: a gateway of its own in this process, with the policies that are proven.

use super::send::Ask;
use super::simulate::{Simulated, simulate};
use super::token::{self, Credential};
use crate::a2a::{Operation, OperationGroup};
use crate::adapters::clock::SystemClock;
use crate::adapters::fetch::introspection::IntrospectionClient;
use crate::adapters::journal::FileJournal;
use crate::adapters::journal::read::{Line, Reading};
use crate::adapters::ownership_memory::{MAX_ENTRIES, MemoryStore};
use crate::adapters::random::SystemRandom;
use crate::audit::chain::check;
use crate::cli::demo_agent::DemoAgent;
use crate::cli::dev_issuer::{DevAlgorithm, DevIssuer};
use crate::cli::dev_proof::ProofClaims;
use crate::cli::own_keys::{journal_keys, journal_settings};
use crate::cli::scratch::Scratch;
use crate::cli::server::{Outside, Server, Sockets};
use crate::config::check::Loaded;
use crate::config::snapshot::{CheckpointCopies, Durability, Interface, SigningKeys, Snapshot};
use crate::identity::trial::{instant, principal};
use crate::pipeline::authenticate::{current_nonce, owner};
use crate::pipeline::issuer_keys::Nowhere;
use crate::pipeline::ports::{
    Claimed, Clock, IdKind, Owned, Owner, OwnershipStore, Random, Resolver, UnixMillis, Unresolved,
};
use crate::policy::trial::{Calling, Trial, is_message, names_task};
use crate::policy::{Asked, PolicySet};
use crate::source::Problems;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long cards may take.
const CARDS: Duration = Duration::from_secs(10);
/// What passes between two tests, beside the time for which ids are kept: nothing carries over.
const BETWEEN: Duration = Duration::from_secs(60);

/// A gateway of its own.
pub(super) struct Separate {
    server: Server,
    journal: Arc<FileJournal>,
    ownership: Arc<MemoryStore>,
    clock: Arc<TrialClock>,
    pub(super) agents: Vec<DemoAgent>,
    issuers: Vec<DevIssuer>,
    /// The key of callers whose tokens are bound to one.
    holder: DevIssuer,
    scratch: Scratch,
}

/// What a test's call needs beside its own words.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared {
    /// The task that takes the place of the test's, with its context.
    pub(super) task: Option<(String, Option<String>)>,
    /// What we had the agent do ourselves: requests and executions.
    pub(super) sent: (u64, u64),
}

/// The journal, read after the last test.
pub(super) struct Read {
    /// What was decided, by request id.
    pub(super) decisions: HashMap<String, Value>,
    pub(super) intents: usize,
    pub(super) refusals: usize,
    /// Whether each record names the one before it.
    pub(super) intact: bool,
}

impl Separate {
    pub(super) async fn start(
        snapshot: Snapshot,
        policy: Arc<PolicySet>,
        real_agents: bool,
    ) -> Result<Separate, Box<dyn Error>> {
        let scratch = Scratch::new("prove")?;
        let made = simulate(snapshot, policy, scratch.path(), real_agents).await?;
        let Simulated {
            snapshot,
            agents,
            issuers,
            public,
            admin,
        } = made;
        let clock = Arc::new(TrialClock::default());
        let (keys, key) =
            journal_keys(&SigningKeys::default(), &snapshot.audit.dir, &SystemRandom)?;
        let mut settings = journal_settings(&snapshot.audit, key, "prove".into());
        settings.durability = Durability::Write;
        settings.copies = CheckpointCopies::default();
        let journal = FileJournal::open(settings, clock.clone(), &SystemRandom)?;
        let journal = Arc::new(journal);
        let ttl = snapshot.ownership.ttl;
        let ownership = Arc::new(MemoryStore::new(clock.clone(), ttl, MAX_ENTRIES));
        let outside = Outside {
            clock: clock.clone(),
            random: Arc::new(SystemRandom),
            journal: journal.clone(),
            ownership: ownership.clone(),
            resolver: Arc::new(NoNames),
            issuer_source: Arc::new(Nowhere),
            introspector: Arc::new(IntrospectionClient::default()),
            instance: "prove".into(),
            keys,
        };
        let loaded = Loaded {
            snapshot,
            warnings: Problems::default(),
        };
        let server = Server::start(loaded, None, Sockets::given(public, admin), outside)?;
        let separate = Separate {
            server,
            journal,
            ownership,
            clock,
            agents,
            issuers,
            holder: DevIssuer::generate(DevAlgorithm::Es256)?,
            scratch,
        };
        separate.wait_for_cards().await;
        Ok(separate)
    }

    /// A card that does not come leaves the agent's tests untried.
    async fn wait_for_cards(&self) {
        let live = self.server.gate.live();
        let waiting = async {
            while !(0..live.snapshot.agents.len()).all(|agent| live.cards.has_card(agent)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(CARDS, waiting).await;
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.server.gate.live().snapshot.clone()
    }

    pub(super) fn interfaces(&self, agent: usize) -> Arc<[Interface]> {
        self.server.gate.live().cards.interfaces(agent)
    }

    /// Where callers go.
    pub(super) fn base(&self) -> String {
        let address = self.server.public.first().map(SocketAddr::to_string);
        format!("http://{}", address.unwrap_or_default())
    }

    /// A token for the caller of a test, and the clock set to when it is good.
    pub(super) fn credential(&self, trial: &Trial) -> Result<Credential, String> {
        let snapshot = self.snapshot();
        let index = trial.caller.issuer;
        let (Some(config), Some(key)) = (snapshot.issuers.get(index), self.issuers.get(index))
        else {
            return Err("its issuer is not there".to_owned());
        };
        let payload = token::payload(&trial.caller, config, self.holder.kid())?;
        let seconds = u64::try_from(instant(&payload, config)).unwrap_or_default();
        self.clock.set(seconds.saturating_mul(1000));
        let header = token::header(key, config);
        let token = key
            .sign(
                header.to_string().as_bytes(),
                payload.to_string().as_bytes(),
            )
            .map_err(|error| error.to_string())?;
        let owner = principal(&payload, (index, config), None)
            .map_or_else(|_| Owner::new("nobody", "at all"), |found| owner(&found));
        Ok(Credential {
            token,
            bound: token::is_bound(&payload),
            nonce: config.dpop.is_some_and(|dpop| dpop.nonce),
            owner: Some(owner),
        })
    }

    /// A proof that the caller has the key of its token.
    pub(super) fn proof(&self, credential: &Credential, ask: &Ask) -> Result<String, String> {
        let snapshot = self.snapshot();
        let origin = snapshot.listeners.first().map(|l| l.public_url.to_string());
        let url = origin.unwrap_or_default() + &ask.path;
        let nonce = current_nonce(&self.server.gate);
        let claims = ProofClaims {
            method: ask.method.as_str(),
            url: &url,
            token: Some(&credential.token),
            nonce: credential.nonce.then_some(&*nonce),
            ..ProofClaims::default()
        };
        let proof = self.holder.prove(&claims, &*self.clock, &SystemRandom);
        proof.map_err(|error| error.to_string())
    }

    /// Makes the ids that a call names what the test says that they are to its caller.
    pub(super) async fn prepare(
        &self,
        trial: &Trial,
        caller: &Owner,
        http: &reqwest::Client,
    ) -> Result<Prepared, String> {
        let calling = &trial.call;
        let snapshot = self.snapshot();
        let Some(agent) = snapshot.agents.get(calling.agent) else {
            return Err("its agent is not there".to_owned());
        };
        let message = calling.message.as_ref();
        let mut owned = Owned {
            owner: caller.clone(),
            skill: calling.skill.as_deref().map(Arc::from),
            context: None,
        };
        let references = message.and_then(|m| m.get("referenceTaskIds")?.as_array());
        for id in references
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str())
        {
            self.bind(&agent.name, IdKind::Task, id, &owned).await?;
        }
        if !names(calling) {
            return Ok(Prepared::default());
        }
        let continues = is_message(calling.asked);
        if !calling.owned {
            owned.owner = Owner::new("somebody", "else");
        }
        let mut prepared = self.task(calling, continues, http).await?;
        let (id, context) = prepared.task.get_or_insert_with(|| (fresh_id(), None));
        if let Some(context) = context {
            self.bind(&agent.name, IdKind::Context, context, &owned)
                .await?;
            owned.context = Some(context.as_str().into());
        }
        self.bind(&agent.name, IdKind::Task, id, &owned).await?;
        Ok(prepared)
    }

    async fn bind(&self, agent: &str, kind: IdKind, id: &str, owned: &Owned) -> Result<(), String> {
        match self.ownership.bind(agent, kind, id, owned).await {
            Ok(Claimed::New | Claimed::Already) => Ok(()),
            Ok(Claimed::Foreign) => {
                Err("it names one id as its caller's and as another's".to_owned())
            }
            Err(_) => Err("the store of owners has no room".to_owned()),
        }
    }

    /// Starts a task at the built-in agent, past the gateway; a real agent is sent nothing.
    async fn task(
        &self,
        calling: &Calling,
        continues: bool,
        http: &reqwest::Client,
    ) -> Result<Prepared, String> {
        let (Some(agent), Some(interface)) = (
            self.agents.get(calling.agent),
            self.interfaces(calling.agent).first().cloned(),
        ) else {
            return Ok(Prepared::default());
        };
        let url = format!("{}{}", agent.url(), interface.backend_path);
        let text = if continues { "ask" } else { "wait" };
        let message = json!({ "message": {
            "messageId": "before", "role": "ROLE_USER", "parts": [{ "text": text }],
        }});
        let reply = direct(http, &url, "SendMessage", message).await?;
        let task = &reply["result"]["task"];
        let id = task["id"]
            .as_str()
            .ok_or("the agent started no task")?
            .to_owned();
        let context = task["contextId"].as_str().map(str::to_owned);
        let mut sent = (1, 1);
        if needs_webhook(calling.asked) {
            let webhook =
                json!({ "taskId": id, "id": "push-1", "url": "https://webhook.invalid/" });
            direct(http, &url, "CreateTaskPushNotificationConfig", webhook).await?;
            sent.0 += 1;
        }
        Ok(Prepared {
            task: Some((id, context)),
            sent,
        })
    }

    /// Lets time pass, so that one test's bounds are not the next one's.
    pub(super) fn rest(&self) {
        self.clock.pass(self.snapshot().ownership.ttl + BETWEEN);
    }

    /// Stops everything and reads what was recorded.
    pub(super) async fn finish(self) -> Result<Read, Box<dyn Error>> {
        let folder = self.scratch.path().join("journal");
        self.server.stop(Duration::from_secs(2)).await;
        let journal = self.journal;
        let _ = tokio::task::spawn_blocking(move || journal.close()).await;
        for agent in self.agents {
            agent.stop().await;
        }
        read(&folder)
    }
}

/// Whether a call names a task.
pub(super) fn names(calling: &Calling) -> bool {
    let continues = calling.message.as_ref().and_then(|m| m.get("taskId"));
    names_task(calling.asked) || is_message(calling.asked) && continues.is_some()
}

/// A task that no agent has: one that it has would be somebody's.
pub(super) fn fresh_id() -> String {
    let mut bytes = [0u8; 8];
    SystemRandom.fill(&mut bytes);
    format!("portcullis-prove-{:016x}", u64::from_be_bytes(bytes))
}

fn needs_webhook(asked: Asked) -> bool {
    matches!(asked, Asked::Operation(operation)
        if operation.group() == OperationGroup::Push
            && operation != Operation::CreateTaskPushNotificationConfig)
}

async fn direct(
    http: &reqwest::Client,
    url: &str,
    method: &str,
    params: Value,
) -> Result<Value, String> {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let sent = http
        .post(url)
        .header("Content-Type", "application/json")
        .header("A2A-Version", "1.0")
        .body(call.to_string())
        .send()
        .await;
    let failed =
        |error: reqwest::Error| format!("the agent does not answer: {}", error.without_url());
    let body = sent.map_err(failed)?.bytes().await.map_err(failed)?;
    serde_json::from_slice(&body).map_err(|error| format!("the agent answers no JSON: {error}"))
}

fn read(folder: &Path) -> Result<Read, Box<dyn Error>> {
    let mut read = Read {
        decisions: HashMap::new(),
        intents: 0,
        refusals: 0,
        intact: true,
    };
    let mut whole = true;
    for (_, line) in Reading::open(folder)? {
        let record = match line {
            Line::Record(record) => record,
            Line::Fault(_) => {
                whole = false;
                continue;
            }
        };
        let count = match record["kind"].as_str() {
            Some("intent") => &mut read.intents,
            Some("refusal") => &mut read.refusals,
            Some(_) | None => continue,
        };
        *count += 1;
        if let Some(id) = record["request_id"].as_str() {
            read.decisions
                .insert(id.to_owned(), record["decision"].clone());
        }
    }
    let mut segments: Vec<_> = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    segments.sort();
    let mut bytes = Vec::new();
    for segment in segments {
        bytes.extend(std::fs::read(segment)?);
    }
    let lines = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    read.intact = whole && check(lines).is_ok();
    Ok(read)
}

/// A wall clock that stands at the instant of the test, and monotonic time that also passes
/// between tests.
struct TrialClock {
    system: SystemClock,
    now: AtomicU64,
    passed: AtomicU64,
}

impl Default for TrialClock {
    fn default() -> TrialClock {
        TrialClock {
            system: SystemClock::new(),
            // Before every token: those that are good once are refused from before the start.
            now: AtomicU64::new(0),
            passed: AtomicU64::new(0),
        }
    }
}

impl TrialClock {
    fn set(&self, now: UnixMillis) {
        self.now.store(now, Ordering::SeqCst);
    }

    fn pass(&self, time: Duration) {
        self.passed.fetch_add(time.as_secs(), Ordering::SeqCst);
    }
}

impl Clock for TrialClock {
    fn now(&self) -> UnixMillis {
        self.now.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic() + Duration::from_secs(self.passed.load(Ordering::SeqCst))
    }
}

/// Looks up nothing: a proof tells nobody what it asks for.
struct NoNames;

#[async_trait::async_trait]
impl Resolver for NoNames {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, Unresolved> {
        Err(Unresolved)
    }
}
