//! What a running gateway does by itself: keeping cards fresh, looking for a new configuration.

use crate::audit::record::Trigger;
use crate::config::capture::key_file;
use crate::config::check::Loaded;
use crate::config::watch::{INTERVAL, Look, Reloader};
use crate::pipeline::cards::{CardSource, Observe, Observed, RefreshPorts, run_refresh};
use crate::pipeline::{Gate, Live};
use crate::source::Severity;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Why the last reload was refused, for readiness; empty while the files are good.
#[derive(Clone, Default)]
pub struct Broken(Arc<Mutex<Option<String>>>);

impl Broken {
    /// The first line of the first problem.
    pub fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// Keeps the cards of the generation in force fresh.
pub struct CardRefresh {
    gate: Arc<Gate>,
    source: Arc<dyn CardSource>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl CardRefresh {
    /// Nothing is fetched before the first generation is followed.
    pub fn new(gate: Arc<Gate>, source: Arc<dyn CardSource>) -> CardRefresh {
        CardRefresh {
            gate,
            source,
            tasks: JoinSet::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// Goes over to the agents of this generation.
    fn follow(&mut self, live: &Arc<Live>) {
        self.stop.send_replace(true);
        self.stop = watch::Sender::new(false);
        self.tasks.detach_all();
        for agent in &live.snapshot.agents {
            let ports = RefreshPorts {
                source: self.source.clone(),
                clock: self.gate.clock.clone(),
                random: self.gate.random.clone(),
                observe: self.observer(live.clone()),
            };
            let stopped = self.stop.subscribe();
            self.tasks
                .spawn(run_refresh(live.cards.clone(), agent.index, ports, stopped));
        }
    }

    fn observer(&self, live: Arc<Live>) -> Observe {
        let gate = self.gate.clone();
        Arc::new(move |agent, observed| match observed {
            Observed::Card(change, fetch) => gate.record_card(&live, agent, change, fetch),
            Observed::KeySet(fetch, error) => gate.record_key_set(&live, agent, fetch, error),
        })
    }
}

impl Drop for CardRefresh {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Runs until `stop` says true.
pub async fn run(
    gate: Arc<Gate>,
    mut cards: CardRefresh,
    mut reloader: Option<Reloader>,
    broken: Broken,
    mut stop: watch::Receiver<bool>,
) {
    cards.follow(&gate.live());
    let interval = reloader.as_ref().map_or(INTERVAL, Reloader::interval);
    let mut alerted = Alerted::default();
    let mut asked = Trigger::Watch;
    alerted.look(&gate);
    loop {
        tokio::select! { biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(interval) => {}
        }
        gate.record_strangers(false);
        alerted.look(&gate);
        gate.issuer_keys.tick();
        if let Some(by) = gate.take_reload_request()
            && let Some(reloader) = &mut reloader
        {
            asked = by;
            reloader.trigger();
        }
        let Some(looking) = reloader.take() else {
            continue;
        };
        let now = gate.clock.monotonic();
        let seen = gate.clone();
        // Reading files blocks, so it is done beside the tasks that serve.
        let looked = tokio::task::spawn_blocking(move || {
            let mut looking = looking;
            let look = looking.look(now);
            if matches!(look, Look::Broken(_) | Look::StillBroken) {
                for (issuer, change) in seen.issuer_keys.look_at_files(&key_file) {
                    seen.record_key_change(&issuer, &change);
                }
            }
            (looking, look)
        });
        let Ok((looked_with, look)) = looked.await else {
            tracing::error!(
                "looking for a new configuration failed; it will not be looked for again"
            );
            continue;
        };
        reloader = Some(looked_with);
        // Changed files settle first, and what was asked for then is still what was asked for.
        let settling = matches!(look, Look::Settling);
        take(&gate, &mut cards, &broken, look, asked).await;
        if !settling {
            asked = Trigger::Watch;
        }
    }
}

/// The expired shadow rules that were logged: each once per generation.
#[derive(Default)]
struct Alerted {
    generation: u64,
    rules: usize,
}

impl Alerted {
    fn look(&mut self, gate: &Gate) {
        let live = gate.live();
        if self.generation != live.snapshot.generation {
            *self = Alerted {
                generation: live.snapshot.generation,
                rules: 0,
            };
        }
        let now = gate.clock.now();
        let expired = live.expired_shadows(now).count();
        // Time does not make a rule's time begin again, so more is all that can be new.
        if expired > self.rules {
            self.rules = expired;
            for problem in live.expired_shadows(now) {
                tracing::warn!("{problem}");
            }
        }
    }
}

async fn take(
    gate: &Arc<Gate>,
    cards: &mut CardRefresh,
    broken: &Broken,
    look: Look,
    asked: Trigger,
) {
    match look {
        Look::Unchanged => {
            gate.confirm_files();
            broken.set(None);
        }
        Look::Settling | Look::StillBroken => {}
        Look::Loaded(loaded) => {
            for warning in &loaded.warnings.0 {
                tracing::warn!("{warning}");
            }
            let keeper = gate.clone();
            let Loaded { snapshot, warnings } = *loaded;
            // Syncing files blocks.
            let kept = tokio::task::spawn_blocking(move || {
                let kept = keeper.keep_texts(&snapshot);
                (snapshot, kept)
            });
            let Ok((snapshot, kept)) = kept.await else {
                tracing::error!("keeping the texts of the new configuration failed");
                return;
            };
            let before = gate.live();
            let live = gate.install(snapshot);
            gate.record_file_keys(&before, &live);
            gate.confirm_files();
            gate.record_loaded(asked, warnings.0.len() as u64, &kept);
            tracing::info!(
                generation = live.snapshot.generation,
                "a new configuration is in force"
            );
            broken.set(None);
            cards.follow(&live);
        }
        Look::Broken(problems) => {
            tracing::error!(
                "the changed configuration is refused; the last good one stays\n{problems}"
            );
            gate.metrics.reload_failed();
            gate.record_rejected(asked, &problems);
            let first = problems.0.iter().find(|p| p.severity == Severity::Error);
            broken.set(first.map(|p| format!("{}:{}: {}", p.file, p.line, p.message)));
        }
    }
}
