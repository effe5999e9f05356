//! Gates built without files, for tests below the program.

use super::fake_resolver::FakeResolver;
use super::memory_journal::MemoryJournal;
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::fetch::introspection::IntrospectionClient;
use portcullis::adapters::ownership_memory::{MAX_ENTRIES, MemoryStore};
use portcullis::adapters::random::SystemRandom;
use portcullis::config::route::Routes;
use portcullis::config::snapshot::{
    Admin, Agent, Audit, Backend, Contexts, Interfaces, Limits, Listener, Ownership, Snapshot,
};
use portcullis::pipeline::Gate;
use portcullis::pipeline::gate::Ports;
use portcullis::pipeline::metrics::Metrics;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A gate with one agent, at the root, without issuers.
pub fn gate_for(backend: Backend, limits: Limits, journal: Arc<MemoryJournal>) -> Arc<Gate> {
    gate_of(snapshot_for(backend, limits), journal)
}

/// The configuration of such a gate.
pub fn snapshot_for(backend: Backend, limits: Limits) -> Snapshot {
    let bind = super::loopback();
    let agents = vec![Arc::new(Agent {
        index: 0,
        name: "raw".into(),
        route: "".into(),
        publish: true,
        backend,
        other_backends: Vec::new(),
        grpc: None,
        interfaces: Interfaces::Auto,
        skills: vec!["only".into()],
        tenant: portcullis::config::snapshot::Tenant::None,
        stamp: false,
        identity: portcullis::config::snapshot::BackendIdentity::None,
        forward_token: false,
        skill_rules: None,
        skill_paths: Vec::new(),
        skill_default: None,
        contexts: Contexts::Claimable,
        backend_paths: Vec::new(),
        one_time: false,
        deny_status: 403,
        reply_guard: true,
        also_origins: Vec::new(),
        verify: None,
        sign: false,
        public_skills: None,
        limits,
    })];
    Snapshot {
        generation: 1,
        digest: "0".repeat(64).into(),
        listeners: vec![Arc::new(Listener {
            name: "public".into(),
            bind,
            public_url: "http://localhost".into(),
            hosts: Vec::new(),
            resources: Default::default(),
            plaintext: false,
            tls: None,
            h2c: false,
            health_path: None,
            cors: Vec::new(),
        })],
        admin: Admin { bind, socket: None },
        routes: Routes::new(&agents),
        agents,
        issuers: Vec::new(),
        introspection: Vec::new(),
        policies: Vec::new(),
        sources: Vec::new(),
        policy: std::sync::Arc::default(),
        policy_names: Vec::new(),
        revocation: Default::default(),
        ownership: Ownership {
            ttl: std::time::Duration::from_secs(86_400),
        },
        audit: Audit::new("unused".into()),
        keys: Default::default(),
        telemetry: Default::default(),
        redact: Default::default(),
    }
}

/// A gate with this configuration.
pub fn gate_of(snapshot: Snapshot, journal: Arc<MemoryJournal>) -> Arc<Gate> {
    let ports = Ports {
        resolver: Arc::new(FakeResolver),
        introspector: Arc::new(IntrospectionClient::default()),
        ownership: Arc::new(MemoryStore::new(
            Arc::new(SystemClock::new()),
            Duration::from_secs(3600),
            MAX_ENTRIES,
        )),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom),
        journal,
        metrics: Arc::new(Metrics::new().unwrap()),
        keys: None,
        issuer_source: Arc::new(portcullis::pipeline::issuer_keys::Nowhere),
        revoked: Vec::new(),
        instance: "test".into(),
    };
    Arc::new(Gate::new(ports, snapshot))
}

/// A backend at this address, in plaintext.
pub fn backend_at(agent: SocketAddr) -> Backend {
    Backend {
        host: agent.ip().to_string().into(),
        port: agent.port(),
        authority: agent.to_string().into(),
        card_paths: vec!["/.well-known/agent-card.json".into()],
        ..Backend::default()
    }
}
