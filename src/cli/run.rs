//! `portcullis run`: the gateway, until it is told to stop.

use super::exit;
use super::log::{self, LogForm};
use super::server::{Outside, Server, Sockets, StartError};
use super::shipping::{Pace, Shipping};
use crate::audit::record::Trigger;
use crate::config::watch::{Reloader, SETTLE};
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the last records may take to be shipped.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How to run.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The gateway file
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// How the log looks; `PORTCULLIS_LOG` says how much of it: error, warn, info, debug or trace
    #[arg(long, value_enum, default_value_t = LogForm::Pretty)]
    log: LogForm,
    /// Seconds that requests under way get when the gateway is told to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
    /// Worker threads; default one per core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    log::start(arguments.log);
    let (loaded, reloader) = match Reloader::start(arguments.config.clone(), SETTLE) {
        Ok(started) => started,
        Err(problems) => {
            eprint!("{problems}");
            return exit::INVALID;
        }
    };
    for warning in &loaded.warnings.0 {
        tracing::warn!("{warning}");
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = arguments.threads {
        builder.worker_threads(threads.max(1));
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start worker threads: {error}");
            return exit::NO;
        }
    };
    let grace = Duration::from_secs(arguments.grace);
    let ended = runtime.block_on(async {
        // Before anybody is told that the gate stands: a signal must not end us unprepared.
        let signals = Signals::install().map_err(StartError::Signals)?;
        let sockets = Sockets::bind(&loaded.snapshot)?;
        let (outside, journal) = Outside::system(&loaded.snapshot)?;
        let server = Server::start(loaded, Some(reloader), sockets, outside)?;
        tracing::info!(public = ?server.public, admin = %server.admin, "the gate stands");
        let shipping = Shipping::start(server.gate.clone(), Pace::default());
        signals.wait_for_stop(&server).await;
        tracing::info!("stopping: no new requests, those under way are finished");
        let drained = server.stop(grace).await;
        if !drained {
            tracing::warn!("some requests were cut off at the end of the grace period");
        }
        let _ = tokio::task::spawn_blocking(move || journal.close()).await;
        // The journal's last record is a checkpoint: it should be kept elsewhere too.
        shipping.finish(LAST_WORDS).await;
        Ok::<(), StartError>(())
    });
    match ended {
        Ok(()) => exit::YES,
        Err(error) => {
            eprintln!("error: {error}");
            exit::NO
        }
    }
}

/// The signals that we obey.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Until SIGTERM or SIGINT; SIGHUP asks for a look at the configuration.
    async fn wait_for_stop(mut self, server: &Server) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => server.gate.request_reload(Trigger::Signal),
            }
        }
    }
}
