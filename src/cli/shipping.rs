//! Ships the journal to a collector, from the journal's own files.
//!
//! There is no queue that records could pile up in, and nothing that writes the journal waits for
//! anything here: what is to be shipped is read back, from where a kept position says. So a
//! collector that hangs costs lag and nothing else, and a restart goes on where the last run ended;
//! what was sent just before it may be sent twice.

use crate::adapters::fetch::collector::Collector;
use crate::adapters::journal::lines::{Lines, Next, Position, ResumeError, journal_id, newest};
use crate::adapters::journal::read::Fault;
use crate::audit::otlp::{MAX_RECORDS, Request};
use crate::audit::redact::{TEXT, cut};
use crate::pipeline::Gate;
use crate::pipeline::shipping::{Backoff, Endpoint, Sent};
use bytes::Bytes;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

/// The name of the sink in metrics.
const SINK: &str = "otlp";
/// The file in the journal's directory that remembers what was shipped.
pub const POSITION: &str = "export-otlp.json";
/// Room that is left for one more record when a request counts as full, in bytes.
const ROOM: usize = 32 << 10;

/// How fast it goes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Between two looks at a journal that has nothing new.
    pub idle: Duration,
    /// The first pause after a failure.
    pub pause: Duration,
    /// For one request, from the connection to the end of the answer.
    pub timeout: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            idle: Duration::from_secs(1),
            pause: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
        }
    }
}

/// What ships the journal of a gateway.
pub struct Shipping {
    task: JoinHandle<()>,
    ending: watch::Sender<bool>,
}

impl Shipping {
    /// Begins, inside the current Tokio runtime, and follows the configuration in force.
    pub fn start(gate: Arc<Gate>, pace: Pace) -> Shipping {
        let (ending, ended) = watch::channel(false);
        let shipper = Shipper {
            dir: gate.live().snapshot.audit.dir.clone(),
            backoff: Backoff::new(pace.pause),
            gate,
            pace,
            ended,
            endpoint: None,
            collector: None,
            lines: None,
            limit: MAX_RECORDS,
            dropping: 0,
        };
        Shipping {
            task: tokio::spawn(shipper.run()),
            ending,
        }
    }

    /// Ships what is left, where the collector takes it at once, for at most `patience`.
    pub async fn finish(mut self, patience: Duration) {
        self.ending.send_replace(true);
        if tokio::time::timeout(patience, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

impl Drop for Shipping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shipper {
    gate: Arc<Gate>,
    dir: PathBuf,
    pace: Pace,
    ended: watch::Receiver<bool>,
    endpoint: Option<Endpoint>,
    collector: Option<Collector>,
    /// Where the journal is read, once it is open.
    lines: Option<Lines>,
    /// Most records of the next request.
    limit: usize,
    backoff: Backoff,
    /// Records that were dropped since the collector last took all it was sent.
    dropping: u64,
}

/// What one round came to.
#[derive(PartialEq, Eq)]
enum Round {
    More,
    Idle,
    /// Nothing more is tried.
    Ended,
}

/// What is sent at once.
struct Batch {
    body: Bytes,
    records: u64,
    /// Records that cannot be sent: they vanished, or are none.
    lost: u64,
    position: Option<Position>,
    lag: u64,
}

impl Shipper {
    async fn run(mut self) {
        loop {
            match self.round().await {
                Round::More => {}
                Round::Ended => return,
                Round::Idle => {
                    if *self.ended.borrow() || !self.rest(self.pace.idle).await {
                        // What was written since is still shipped.
                        if self.round().await != Round::More {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits; false when it is to end.
    async fn rest(&mut self, pause: Duration) -> bool {
        tokio::select! { biased;
            _ = self.ended.wait_for(|ended| *ended) => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    async fn round(&mut self) -> Round {
        let wanted = self.gate.live().snapshot.telemetry.otlp.clone();
        if wanted != self.endpoint {
            self.collector = None;
            if let Some(endpoint) = &wanted {
                self.gate.metrics.export_sink(SINK);
                match Collector::with_timeout(endpoint.clone(), self.pace.timeout) {
                    Ok(collector) => self.collector = Some(collector),
                    Err(error) => tracing::error!("{error}"),
                }
            }
            self.endpoint = wanted;
        }
        if self.collector.is_none() {
            return Round::Idle;
        }
        let (dir, lines, limit) = (self.dir.clone(), self.lines.take(), self.limit);
        let (instance, now) = (self.gate.instance.clone(), self.gate.clock.now());
        let read = spawn_blocking(move || {
            let (mut lines, another) = match lines {
                Some(lines) => (lines, None),
                None => open(&dir)?,
            };
            let batch = gather(&dir, &mut lines, limit, &instance, now)?;
            Ok::<_, io::Error>((lines, another, batch))
        });
        let batch = match read.await {
            Ok(Ok((lines, another, batch))) => {
                self.lines = Some(lines);
                if let Some(why) = another {
                    tracing::warn!("shipping begins with the oldest record: {why}");
                }
                batch
            }
            Ok(Err(error)) => {
                tracing::warn!("the journal cannot be read to be shipped: {error}");
                self.gate.metrics.export_failed(SINK);
                return Round::Idle;
            }
            Err(_) => return Round::Idle,
        };
        if batch.lost > 0 {
            self.dropped(batch.lost, "gone before they were shipped");
        }
        if batch.records == 0 {
            self.gate.metrics.export_lag(SINK, batch.lag);
            return Round::Idle;
        }
        self.ship(batch).await
    }

    /// Sends a batch until it is taken or refused.
    async fn ship(&mut self, mut batch: Batch) -> Round {
        loop {
            self.gate
                .metrics
                .export_lag(SINK, batch.lag + batch.records);
            let Some(collector) = &self.collector else {
                return Round::Idle;
            };
            match collector.send(batch.body.clone()).await {
                Sent::Taken(rejected) => {
                    let refused = rejected.as_ref().map_or(0, |(count, _)| *count);
                    let refused = refused.min(batch.records);
                    self.gate
                        .metrics
                        .export_records(SINK, batch.records - refused);
                    match rejected {
                        Some((_, why)) => {
                            let why = cut(&why, TEXT);
                            tracing::warn!("the collector refused {refused} records: {why}");
                            self.dropped(refused, "refused by the collector");
                        }
                        None => self.recovered(),
                    }
                    self.limit = (self.limit * 2).min(MAX_RECORDS);
                    break;
                }
                Sent::TooLarge if batch.records > 1 => {
                    // Read again from the kept position, less at once.
                    self.limit = usize::try_from(batch.records / 2).unwrap_or(1).max(1);
                    self.lines = None;
                    return Round::More;
                }
                Sent::TooLarge => {
                    self.dropped(batch.records, "too large for the collector");
                    break;
                }
                Sent::Refused(status) => {
                    self.dropped(batch.records, &format!("HTTP {status} from the collector"));
                    break;
                }
                Sent::Later(why, asked) => {
                    self.gate.metrics.export_failed(SINK);
                    tracing::warn!("the collector does not take records: {why}");
                    let mut share = [0];
                    self.gate.random.fill(&mut share);
                    let pause = self.backoff.pause(asked, share[0]);
                    if *self.ended.borrow() || !self.rest(pause).await {
                        return Round::Ended;
                    }
                    let current = &self.gate.live().snapshot.telemetry.otlp;
                    if *current != self.endpoint {
                        self.lines = None;
                        return Round::More;
                    }
                    // The journal goes on while the collector does not.
                    batch.lag = self.behind(&batch).await.unwrap_or(batch.lag);
                }
            }
        }
        self.backoff.reset();
        self.gate.metrics.export_lag(SINK, batch.lag);
        if let Some(position) = batch.position {
            let file = self.dir.join(POSITION);
            let kept = spawn_blocking(move || keep(&file, &position)).await;
            if let Ok(Err(error)) = kept {
                tracing::warn!("how far shipping came is not kept, so it may send twice: {error}");
            }
        }
        Round::More
    }

    /// How many records there are behind those of a batch.
    async fn behind(&self, batch: &Batch) -> Option<u64> {
        let (dir, read) = (self.dir.clone(), batch.position.as_ref()?.seq);
        let newest = spawn_blocking(move || newest(&dir)).await.ok()?.ok()??;
        Some(newest.saturating_sub(read))
    }

    fn dropped(&mut self, count: u64, why: &str) {
        self.gate.metrics.export_dropped(SINK, count);
        tracing::error!("{count} records are not shipped: {why}");
        // One record for all until it works again: it is to be shipped too.
        if self.dropping == 0 {
            self.gate
                .record_export(&format!("{SINK}: {count} records: {why}"));
        }
        self.dropping += count;
    }

    fn recovered(&mut self) {
        if self.dropping > 0 {
            let count = std::mem::take(&mut self.dropping);
            let what = format!("{SINK}: works again; {count} records were dropped");
            self.gate.record_export(&what);
        }
    }
}

/// Opens the journal at the kept position, or at its oldest record where that is no place in it;
/// then it says why.
fn open(dir: &Path) -> io::Result<(Lines, Option<String>)> {
    let position = match fs::read(dir.join(POSITION)) {
        Ok(bytes) => serde_json::from_slice::<Position>(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Lines::open(dir)?, None));
        }
        Err(error) => return Err(error),
    };
    let why = match position {
        Ok(position) => match Lines::resume(dir, &position) {
            Ok(lines) => return Ok((lines, None)),
            Err(ResumeError::Io(error)) => return Err(error),
            Err(error @ ResumeError::Another(_)) => error.to_string(),
        },
        Err(error) => format!("the kept position cannot be read: {error}"),
    };
    Ok((Lines::open(dir)?, Some(why)))
}

fn gather(
    dir: &Path,
    lines: &mut Lines,
    limit: usize,
    instance: &str,
    now: u64,
) -> io::Result<Batch> {
    let mut request = Request::new(instance);
    let (mut line, mut lost, mut last) = (Vec::new(), 0, None);
    while request.records() < limit && !request.is_full(ROOM) {
        match lines.next(&mut line)? {
            Next::End => break,
            Next::Record(seq) => {
                let text = std::str::from_utf8(&line).ok();
                let record = text.and_then(|text| Some((text, serde_json::from_str(text).ok()?)));
                match record {
                    Some((text, record)) => request.add(text, &record, now),
                    None => lost += 1,
                }
                last = lines.position(&line, None).map(|position| (seq, position));
            }
            Next::Fault(Fault::Missing { expected, found }) => {
                lost += found.saturating_sub(expected);
            }
            Next::Fault(Fault::NotARecord | Fault::TooLong | Fault::Unreadable(_)) => lost += 1,
        }
    }
    let position = match last.as_ref() {
        Some((_, position)) => Some(Position {
            journal: journal_id(dir)?,
            ..position.clone()
        }),
        None => None,
    };
    let read = last.map_or(0, |(seq, _)| seq);
    Ok(Batch {
        records: request.records() as u64,
        body: request.finish().into(),
        lost,
        position,
        lag: match read {
            0 => 0,
            read => newest(dir)?.unwrap_or(read).saturating_sub(read),
        },
    })
}

/// Replaces the kept position, whole or not at all.
fn keep(file: &Path, position: &Position) -> io::Result<()> {
    let beside = file.with_extension("json.new");
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut new = options.open(&beside)?;
    new.write_all(serde_json::to_string(position)?.as_bytes())?;
    new.sync_data()?;
    fs::rename(&beside, file)
}
