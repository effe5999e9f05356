//! A whole gateway in this process: made from a configuration, started, reloaded, stopped.
//!
//! `run` starts one, `demo` and tests start theirs the same way.

use super::operators::{Operators, by_address, by_socket};
use super::own_keys::{instance_name, journal_keys, journal_settings, own_keys};
use super::upkeep::{self, CardRefresh};
use crate::adapters::clock::SystemClock;
use crate::adapters::fetch::cards::CardFetcher;
use crate::adapters::fetch::introspection::IntrospectionClient;
use crate::adapters::fetch::keys::KeyFetcher;
use crate::adapters::journal::{FileJournal, OpenError};
use crate::adapters::key_files::KeyFileError;
use crate::adapters::ownership_memory::{MAX_ENTRIES, MemoryStore};
use crate::adapters::random::SystemRandom;
use crate::adapters::resolver::SystemResolver;
use crate::adapters::revocation_file::{RevocationFile, RevocationFileError};
use crate::admin::api::{Api, MAX_BODY};
use crate::admin::health::{Cause, Reason, is_ready};
use crate::audit::record::Trigger;
use crate::config::check::Loaded;
use crate::config::snapshot::Snapshot;
use crate::config::watch::Reloader;
use crate::identity::KeySource;
use crate::pipeline::gate::Ports;
use crate::pipeline::introspection::Introspector;
use crate::pipeline::issuer_keys::{IssuerSource, KeySlot};
use crate::pipeline::metrics::Metrics;
use crate::pipeline::ports::{Clock, Journal, OwnershipStore, Random, Resolver};
use crate::pipeline::{Gate, JournalKeys, Live};
use crate::proxy::door::Door;
use crate::proxy::limits::Connections;
use crate::proxy::listen::{Bound, bind};
use crate::proxy::plain::Plain;
use crate::proxy::socket::{SocketFile, bind_socket};
use crate::proxy::{App, Links, Stopping};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why a gateway cannot start.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be bound.
    Bind(SocketAddr, io::Error),
    /// The journal cannot be opened.
    Journal(OpenError),
    /// The admin socket cannot be bound.
    Socket(PathBuf, io::Error),
    /// What operators have revoked is not known.
    Revocations(RevocationFileError),
    /// A key of ours is not there.
    Keys(KeyFileError),
    /// Metrics cannot be made.
    Metrics(String),
    /// The order to stop cannot be received.
    Signals(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind(address, error) => write!(
                f,
                "cannot listen on {address}: {error}; choose another `bind`, or stop what uses it"
            ),
            StartError::Socket(path, error) => write!(
                f,
                "cannot listen on the socket `{}`: {error}; choose another `admin.socket`, or stop what uses it",
                path.display()
            ),
            StartError::Revocations(error) => error.fmt(f),
            StartError::Journal(error) => error.fmt(f),
            StartError::Keys(error) => error.fmt(f),
            StartError::Metrics(error) => write!(f, "cannot set up metrics: {error}"),
            StartError::Signals(error) => write!(f, "cannot receive signals: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// The listening sockets of a gateway.
pub struct Sockets {
    public: Vec<Bound>,
    admin: Bound,
}

impl Sockets {
    /// Binds what the configuration names.
    pub fn bind(snapshot: &Snapshot) -> Result<Sockets, StartError> {
        let one = |address| bind(address).map_err(|error| StartError::Bind(address, error));
        let public = snapshot
            .listeners
            .iter()
            .map(|l| one(l.bind))
            .collect::<Result<_, _>>()?;
        Ok(Sockets {
            public,
            admin: one(snapshot.admin.bind)?,
        })
    }

    /// Sockets that are bound already, in the order of the configured listeners.
    pub fn given(public: Vec<Bound>, admin: Bound) -> Sockets {
        Sockets { public, admin }
    }
}

/// What a gateway takes from outside.
pub struct Outside {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Where records go.
    pub journal: Arc<dyn Journal>,
    /// Whose tasks and contexts are whose.
    pub ownership: Arc<dyn OwnershipStore>,
    /// Addresses of host names.
    pub resolver: Arc<dyn Resolver>,
    /// Where the keys of issuers come from.
    pub issuer_source: Arc<dyn IssuerSource>,
    /// Asks issuers about tokens.
    pub introspector: Arc<dyn Introspector>,
    /// This process in records.
    pub instance: Box<str>,
    /// The keys with which the journal is written.
    pub keys: JournalKeys,
}

impl Outside {
    /// The system's clock and randomness, and the configured journal, which is returned as well so
    /// that it can be closed.
    pub fn system(snapshot: &Snapshot) -> Result<(Outside, Arc<FileJournal>), StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let instance = instance_name(&*random);
        let keys = journal_keys(&snapshot.keys, &snapshot.audit.dir, &*random);
        let keys = keys.map_err(StartError::Keys)?;
        let settings = journal_settings(&snapshot.audit, keys.1.clone(), instance.clone());
        let journal = FileJournal::open(settings, clock.clone(), &*random);
        let journal = journal.map_err(StartError::Journal)?;
        let journal = Arc::new(journal);
        Ok((
            Outside {
                clock: clock.clone(),
                random,
                journal: journal.clone(),
                ownership: Arc::new(MemoryStore::new(clock, snapshot.ownership.ttl, MAX_ENTRIES)),
                resolver: Arc::new(SystemResolver),
                issuer_source: Arc::new(KeyFetcher::new(Arc::new(SystemResolver))),
                introspector: Arc::new(IntrospectionClient::default()),
                instance,
                keys: keys.0,
            },
            journal,
        ))
    }
}

/// A gateway that runs. Dropping it without [`Server::stop`] ends it without waiting for anybody.
pub struct Server {
    /// Where callers of agents come in, in the order of the configured listeners.
    pub public: Vec<SocketAddr>,
    /// Where operators come in.
    pub admin: SocketAddr,
    /// The pipeline.
    pub gate: Arc<Gate>,
    stopping: Stopping,
    stop: watch::Sender<bool>,
    /// Operators are answered until the last caller has gone.
    stop_admin: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    /// The admin socket's name, taken away with the server.
    socket: Option<SocketFile>,
}

impl Server {
    /// Starts a gateway inside the current Tokio runtime.
    ///
    /// With a `reloader`, its files are watched; [`Gate::request_reload`] asks for a look.
    pub fn start(
        loaded: Loaded,
        reloader: Option<Reloader>,
        sockets: Sockets,
        outside: Outside,
    ) -> Result<Server, StartError> {
        let metrics = Metrics::new().map_err(|error| StartError::Metrics(error.to_string()))?;
        let Outside {
            clock,
            random,
            journal,
            ownership,
            resolver,
            issuer_source,
            introspector,
            instance,
            keys,
        } = outside;
        let keys = own_keys(&loaded.snapshot, keys).map_err(StartError::Keys)?;
        if let Some(counted) = journal.metrics() {
            let followed = metrics.follow_journal(counted);
            followed.map_err(|error| StartError::Metrics(error.to_string()))?;
        }
        let (kept, revoked) = match &loaded.snapshot.revocation.state {
            Some(state) => {
                let opened = RevocationFile::open(state).map_err(StartError::Revocations)?;
                (Some(opened.0), opened.1)
            }
            None => (None, Vec::new()),
        };
        let socket = match &loaded.snapshot.admin.socket {
            Some(path) => {
                let bound = bind_socket(path);
                Some(bound.map_err(|error| StartError::Socket(path.clone(), error))?)
            }
            None => None,
        };
        let ports = Ports {
            keys,
            revoked,
            clock,
            random,
            journal,
            ownership,
            resolver,
            issuer_source,
            introspector,
            metrics: Arc::new(metrics),
            instance,
        };
        let gate = Arc::new(Gate::new(ports, loaded.snapshot));
        gate.count_unknown();
        let texts = gate.keep_texts(&gate.live().snapshot);
        gate.record_loaded(Trigger::Start, 0, &texts);
        let told = Arc::downgrade(&gate);
        gate.issuer_keys.observe(Arc::new(move |fetch| {
            if let Some(gate) = told.upgrade() {
                gate.record_issuer_keys(fetch);
            }
        }));
        // Before the first request, which may then wait for what has begun.
        gate.issuer_keys.tick();
        let stopping = Stopping::new();
        let links = Arc::new(Links::new());
        let (stop, stopped) = watch::channel(false);
        let (stop_admin, admin_stopped) = watch::channel(false);
        let mut tasks = Vec::new();

        let live = gate.live();
        let mut public = Vec::new();
        let broken = upkeep::Broken::default();
        let ready: Arc<dyn Fn() -> bool + Send + Sync> = {
            let (gate, stopping, broken) = (gate.clone(), stopping.clone(), broken.clone());
            Arc::new(move || is_ready(&reasons(&gate, &stopping, &broken)))
        };
        let listeners = live.snapshot.listeners.iter().enumerate();
        for (socket, (index, listener)) in sockets.public.into_iter().zip(listeners) {
            public.push(socket.address);
            let app = App {
                listener: listener.clone(),
                index,
                ready: ready.clone(),
                gate: gate.clone(),
                links: links.clone(),
                connections: Connections::DEFAULT,
                stopping: stopping.clone(),
            };
            tasks.push(socket.serve(Door::new(app), stopped.clone()));
        }
        let admin = sockets.admin.address;
        let refresh = CardRefresh::new(gate.clone(), Arc::new(CardFetcher::default()));
        let operators = Arc::new(Operators {
            api: Api::new(gate.clone(), kept),
            gate: gate.clone(),
            stopping: stopping.clone(),
            broken: broken.clone(),
        });
        let loopback = admin.ip().is_loopback();
        let answers = by_address(operators.clone(), loopback);
        let plain = Plain::new(answers, MAX_BODY, loopback);
        tasks.push(sockets.admin.serve_plain(plain, admin_stopped.clone()));
        let socket = socket.map(|socket| {
            let plain = Plain::new(by_socket(operators), MAX_BODY, true);
            let (task, file) = socket.serve_plain(plain, admin_stopped);
            tasks.push(task);
            file
        });
        tasks.push(tokio::spawn(upkeep::run(
            gate.clone(),
            refresh,
            reloader,
            broken,
            stopped,
        )));
        Ok(Server {
            public,
            admin,
            gate,
            stopping,
            stop,
            stop_admin,
            tasks,
            socket,
        })
    }

    /// Takes no new requests, waits for those under way at most `grace`, then cuts them off. Every
    /// outcome is in the journal's queue when this returns; whether all ended by themselves.
    pub async fn stop(mut self, grace: Duration) -> bool {
        self.stopping.stop();
        self.stop.send_replace(true);
        let drained = tokio::time::timeout(grace, self.stopping.drained())
            .await
            .is_ok();
        if !drained {
            self.stopping.cut_now();
            // Cutting off needs no one's help; the bound is for a task that never yields.
            let _ = tokio::time::timeout(CUT, self.stopping.drained()).await;
        }
        self.stop_admin.send_replace(true);
        for task in std::mem::take(&mut self.tasks) {
            task.abort();
            let _ = task.await;
        }
        self.socket = None;
        self.gate.record_strangers(true);
        drained
    }
}

const CUT: Duration = Duration::from_secs(5);

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.stop_admin.send_replace(true);
        self.stopping.cut_now();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Most expired rules that readiness names.
const SHOWN_SHADOWS: usize = 20;

/// What keeps the gateway from being ready, or should be looked at.
pub(super) fn reasons(gate: &Gate, stopping: &Stopping, broken: &upkeep::Broken) -> Vec<Reason> {
    let live = gate.live();
    let mut reasons = Vec::new();
    if stopping.ordered() {
        reasons.push(reason(
            Cause::Shutdown,
            "",
            "the gateway is stopping".to_owned(),
        ));
    }
    if let Some(trouble) = gate.journal.trouble() {
        reasons.push(reason(Cause::Journal, "", trouble.to_string()));
    }
    if let Some(why) = gate.journal.copies_trouble() {
        let why = format!("a checkpoint was not copied: {why}");
        reasons.push(reason(Cause::Checkpoints, "", why));
    }
    reasons.extend(issuers(gate, &live));
    for (issuer, why) in live.active.failing() {
        let name = live.snapshot.issuers.get(issuer).map_or("", |i| &i.name);
        let why = format!("introspection failed, so its tokens get 503: {why}");
        reasons.push(reason(Cause::Introspection, name, why));
    }
    for notice in live.cards.notices() {
        reasons.push(reason(Cause::Agent, &notice.agent, notice.kind.to_string()));
    }
    for problem in live.expired_shadows(gate.clock.now()).take(SHOWN_SHADOWS) {
        let place = format!("{}:{}", problem.file, problem.line);
        reasons.push(reason(Cause::Shadow, &place, problem.message.clone()));
    }
    if let Some(why) = broken.get() {
        reasons.push(reason(Cause::Reload, "", why));
    }
    reasons
}

/// What there is to say about the keys of issuers.
///
/// A gateway that never had an issuer's keys is not ready: another that has them may be in its
/// place. One that lost them is worse than no other, and its other issuers' callers need it.
fn issuers(gate: &Gate, live: &Live) -> Vec<Reason> {
    let usable = |slot: &Arc<KeySlot>| slot.current().is_some_and(|keys| !keys.keys().is_empty());
    let nobody = !live.issuer_keys.iter().any(usable);
    let mut reasons = Vec::new();
    for slot in &live.issuer_keys {
        if let Some(why) = slot.notice() {
            let lost = slot.is_remote() && slot.had_keys() && !nobody;
            let cause = match usable(slot) || lost {
                true => Cause::IssuerKeys,
                false => Cause::Issuer,
            };
            reasons.push(reason(cause, slot.name(), why));
        }
        for other in gate.issuer_keys.sharing(slot.name()) {
            let why = format!("issuer `{other}` has a key of it too, so either can speak for both");
            reasons.push(reason(Cause::IssuerKeys, slot.name(), why));
        }
    }
    reasons
}

/// Puts the state of issuers' keys into the metrics.
pub(super) fn show_issuer_keys(gate: &Gate, live: &Live) {
    for slot in &live.issuer_keys {
        let name = slot.name();
        let file = (!slot.is_remote()).then(|| gate.files_age());
        gate.metrics.set_issuer_keys_age(name, slot.age().or(file));
        for (why, count) in slot.unusable() {
            gate.metrics
                .set_issuer_keys_skipped(name, why.label(), count);
        }
        let shared = gate.issuer_keys.sharing(slot.name()).len();
        gate.metrics.set_issuer_keys_shared(name, shared);
    }
}

fn reason(what: Cause, name: &str, why: String) -> Reason {
    Reason {
        what,
        name: name.to_owned(),
        why,
    }
}
