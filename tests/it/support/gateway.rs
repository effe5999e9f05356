//! A whole gateway in the test's process, with its files in a folder of its own.

use super::fake_resolver::FakeResolver;
use super::memory_journal::MemoryJournal;
use super::{loopback, within};
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::fetch::introspection::IntrospectionClient;
use portcullis::adapters::ownership_memory::{MAX_ENTRIES, MemoryStore};
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::server::{Outside, Server, Sockets};
use portcullis::config::watch::Reloader;
use portcullis::pipeline::JournalKeys;
use portcullis::pipeline::ports::Clock;
use portcullis::proxy::listen::bind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long changed files must stay the same in tests.
pub const SETTLE: Duration = Duration::from_millis(50);

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub journal: Arc<MemoryJournal>,
    pub server: Server,
    pub folder: TempDir,
}

/// What it is started from. In `yaml` and `files`, `PUBLIC` stands for the public `host:port`.
pub struct Setup<'a> {
    pub yaml: &'a str,
    pub files: &'a [(&'a str, &'a str)],
    pub clock: Option<Arc<dyn Clock>>,
}

impl Gateway {
    /// From one gateway file.
    pub fn start(yaml: &str) -> Gateway {
        Gateway::start_with(Setup {
            yaml,
            files: &[],
            clock: None,
        })
    }

    /// From a gateway file and others beside it.
    pub fn start_with(setup: Setup<'_>) -> Gateway {
        let nowhere = Arc::new(portcullis::pipeline::issuer_keys::Nowhere);
        Gateway::start_trusting(setup, nowhere)
    }

    /// The same, with issuers whose keys come from `issuer_source`.
    pub fn start_trusting(
        setup: Setup<'_>,
        issuer_source: Arc<dyn portcullis::pipeline::issuer_keys::IssuerSource>,
    ) -> Gateway {
        let public = bind(loopback()).unwrap();
        let admin = bind(loopback()).unwrap();
        let address = public.address;
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| write(folder.path(), name, text, address);
        for (name, text) in setup.files {
            put(name, text);
        }
        put("gateway.yaml", setup.yaml);
        let (loaded, reloader) = Reloader::start(folder.path().join("gateway.yaml"), SETTLE)
            .unwrap_or_else(|problems| panic!("{problems}"));
        let journal = Arc::new(MemoryJournal::default());
        let clock = setup.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let ttl = loaded.snapshot.ownership.ttl;
        let outside = Outside {
            resolver: Arc::new(FakeResolver),
            issuer_source,
            introspector: Arc::new(IntrospectionClient::default()),
            ownership: Arc::new(MemoryStore::new(clock.clone(), ttl, MAX_ENTRIES)),
            clock,
            random: Arc::new(SystemRandom),
            journal: journal.clone(),
            instance: "test".into(),
            keys: JournalKeys::default(),
        };
        let sockets = Sockets::given(vec![public], admin);
        let server = Server::start(loaded, Some(reloader), sockets, outside).unwrap();
        Gateway {
            address,
            admin: server.admin,
            journal,
            server,
            folder,
        }
    }

    /// Replaces or adds a file.
    pub fn write(&self, name: &str, text: &str) {
        write(self.folder.path(), name, text, self.address);
    }

    /// Waits until agents' cards are there.
    pub async fn with_cards(self) -> Gateway {
        within("the agents' cards", async {
            loop {
                let live = self.server.gate.live();
                if (0..live.snapshot.agents.len()).all(|agent| live.cards.has_card(agent)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        self
    }

    /// Waits until a generation is in force.
    pub async fn until_generation(&self, generation: u64) {
        within("a generation", async {
            while self.server.gate.live().snapshot.generation < generation {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// How many records of a kind there are.
    pub fn count(&self, kind: &str) -> usize {
        self.journal
            .records()
            .iter()
            .filter(|r| r["kind"] == kind)
            .count()
    }

    /// The newest refusal, once there are `many`.
    pub async fn refusal(&self, many: usize) -> serde_json::Value {
        self.journal.of_kind("refusal", many).await.pop().unwrap()
    }
}

fn write(folder: &Path, name: &str, text: &str, public: SocketAddr) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.replace("PUBLIC", &public.to_string())).unwrap();
}
