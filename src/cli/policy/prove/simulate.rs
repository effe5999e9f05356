//! A configuration for a gateway of one's own: the same rules, agents and issuers, with what is
//! outside replaced.

use crate::a2a::{Binding, Versions};
use crate::cli::demo_agent::{CardShape, DemoAgent, Options};
use crate::cli::dev_issuer::{DevAlgorithm, DevIssuer};
use crate::config::Routes;
use crate::config::snapshot::{
    Admin, Agent, Backend, BackendIdentity, Interface, Interfaces, Listener, Revocation,
    SigningKeys, Snapshot,
};
use crate::identity::issuer::{Algorithm, IssuerConfig, KeyFile, KeyOrigin};
use crate::policy::PolicySet;
use crate::proxy::listen::{Bound, bind};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// What stands in for what is outside.
pub(super) struct Simulated {
    pub(super) snapshot: Snapshot,
    /// By position of their agents; empty where the real ones are called.
    pub(super) agents: Vec<DemoAgent>,
    /// By position of their entries.
    pub(super) issuers: Vec<DevIssuer>,
    pub(super) public: Vec<Bound>,
    pub(super) admin: Bound,
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Replaces listeners, issuers, the state folders and, unless `real_agents`, the agents.
pub(super) async fn simulate(
    mut snapshot: Snapshot,
    policy: Arc<PolicySet>,
    folder: &Path,
    real_agents: bool,
) -> Result<Simulated, Box<dyn Error>> {
    let mut public = Vec::new();
    let mut listeners = Vec::new();
    for listener in std::mem::take(&mut snapshot.listeners) {
        let bound = bind(loopback())?;
        listeners.push(Arc::new(plain(listener, bound.address)?));
        public.push(bound);
    }
    snapshot.listeners = listeners;
    let admin = bind(loopback())?;
    snapshot.admin = Admin {
        bind: admin.address,
        socket: None,
    };
    let mut issuers = Vec::new();
    for config in &mut snapshot.issuers {
        let (key, entry) = issuer(config)?;
        *config = Arc::new(entry);
        issuers.push(key);
    }
    snapshot.introspection = snapshot.issuers.iter().map(|_| None).collect();
    snapshot.revocation = Revocation::default();
    snapshot.audit.dir = folder.join("journal");
    let mut agents = Vec::new();
    if !real_agents {
        // A real agent knows the gateway by its keys; a built-in one asks for none.
        snapshot.keys = SigningKeys {
            dir: snapshot.keys.any().then(|| folder.join("keys")),
            ..SigningKeys::default()
        };
        snapshot.routes = Routes::default();
        for agent in &mut snapshot.agents {
            let (built_in, entry) = built_in(agent).await?;
            *agent = Arc::new(entry);
            agents.push(built_in);
        }
        snapshot.routes = Routes::new(&snapshot.agents);
    }
    snapshot.policy = policy;
    Ok(Simulated {
        snapshot,
        agents,
        issuers,
        public,
        admin,
    })
}

/// The listener without TLS, on a free port of this machine; its public URL stays.
fn plain(listener: Arc<Listener>, address: SocketAddr) -> Result<Listener, &'static str> {
    let listener = Arc::into_inner(listener).ok_or("a listener is in use")?;
    Ok(Listener {
        bind: address,
        tls: None,
        ..listener
    })
}

/// The entry with one fresh key of ours.
fn issuer(config: &IssuerConfig) -> Result<(DevIssuer, IssuerConfig), Box<dyn Error>> {
    let known = [
        (Algorithm::Es256, DevAlgorithm::Es256),
        (Algorithm::EdDsa, DevAlgorithm::EdDsa),
        (Algorithm::Rs256, DevAlgorithm::Rs256),
    ];
    let accepted = known
        .into_iter()
        .find(|(a, _)| config.algorithms.contains(a));
    let (accepted, algorithm) = accepted.unwrap_or((Algorithm::Es256, DevAlgorithm::Es256));
    let key = DevIssuer::generate(algorithm)?;
    let mut entry = config.clone();
    if !entry.algorithms.contains(&accepted) {
        entry.algorithms.push(accepted);
    }
    entry.keys = KeyOrigin::File(KeyFile {
        path: "simulated".into(),
        content: key.jwks().into_bytes().into(),
    });
    entry.shared_keys = Vec::new();
    Ok((key, entry))
}

/// A built-in agent with the skills and paths of the entry, and the entry for it.
async fn built_in(agent: &Agent) -> Result<(DemoAgent, Agent), Box<dyn Error>> {
    let interfaces = interfaces(agent);
    let texts = |texts: &[Box<str>]| texts.iter().map(|t| t.to_string()).collect();
    let mut paths = interfaces.iter().map(|i| i.backend_path.to_string());
    let options = Options {
        name: agent.name.to_string(),
        card: CardShape::V1_0,
        skills: texts(&agent.skills),
        path: paths.next().unwrap_or_default(),
        more_paths: paths.collect(),
        other_paths: agent
            .backend_paths
            .iter()
            .map(|p| p.path.to_string())
            .collect(),
        extended_card: true,
        keep_requests: false,
    };
    let built_in = DemoAgent::start_with(loopback(), options).await?;
    let address = built_in.address();
    let entry = Agent {
        backend: Backend {
            host: address.ip().to_string().into(),
            port: address.port(),
            authority: address.to_string().into(),
            card_paths: vec!["/.well-known/agent-card.json".into()],
            ..Backend::default()
        },
        other_backends: Vec::new(),
        interfaces: Interfaces::Listed(interfaces),
        identity: match agent.identity {
            BackendIdentity::Assertion => BackendIdentity::Assertion,
            // What proves us to the real agent is nobody else's to see.
            BackendIdentity::None | BackendIdentity::Mtls | BackendIdentity::Header(_) => {
                BackendIdentity::None
            }
        },
        also_origins: Vec::new(),
        verify: None,
        sign: false,
        ..agent.clone()
    };
    Ok((built_in, entry))
}

/// Where the built-in agent speaks JSON-RPC: at the paths that the entry names, or at one of ours.
fn interfaces(agent: &Agent) -> Vec<Interface> {
    let at = |public: &str, backend: &str| Interface {
        public_path: public.into(),
        backend_path: if backend.is_empty() { "/" } else { backend }.into(),
        binding: Binding::JsonRpc,
        versions: Versions {
            v0_3: true,
            v1_0: true,
        },
        backend: 0,
    };
    let mut all: Vec<Interface> = match &agent.interfaces {
        Interfaces::Listed(listed) => listed
            .iter()
            .filter(|i| i.binding == Binding::JsonRpc)
            .map(|i| at(&i.public_path, &i.backend_path))
            .collect(),
        Interfaces::Auto => Vec::new(),
    };
    for path in &agent.skill_paths {
        if !all.iter().any(|i| i.public_path == path.path) {
            all.push(at(&path.path, &path.path));
        }
    }
    if all.is_empty() {
        let names = std::iter::once("/a2a".to_owned()).chain((1..).map(|n| format!("/a2a-{n}")));
        let free = |path: &String| !agent.backend_paths.iter().any(|p| *p.path == **path);
        all.extend(names.into_iter().find(free).map(|path| at(&path, &path)));
    }
    all
}
