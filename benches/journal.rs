//! What waiting for the journal costs on a disk: records per second and waiting times, for each
//! durability, with 1, 16 and 256 calls that wait at a time.
//!
//! `PORTCULLIS_BENCH_DIR` names a folder on the disk to try; by default that of temporary files. Each
//! cell takes `PORTCULLIS_BENCH_SECONDS` (2). What a device promises is what it says: a sync into a
//! cache without a battery is fast and worth nothing.

use aws_lc_rs::signature::Ed25519KeyPair;
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::journal::{FileJournal, Settings};
use portcullis::adapters::random::SystemRandom;
use portcullis::identity::SigningKey;
use portcullis::pipeline::ports::{Durability, Journal, RecordBody};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    // Built and run once by `cargo test --benches`, where nothing is to be measured.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    let place = std::env::var_os("PORTCULLIS_BENCH_DIR").map(PathBuf::from);
    let place = place.unwrap_or_else(std::env::temp_dir);
    let seconds = std::env::var("PORTCULLIS_BENCH_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    println!("in {}, {seconds} s each", place.display());
    println!("durability  waiting  intents/s    p50 ms    p99 ms    max ms");
    for (name, durability) in [
        ("write", Durability::Write),
        ("group", Durability::Group),
        ("each", Durability::Each),
    ] {
        for waiting in [1, 16, 256] {
            let dir = tempfile::tempdir_in(&place)?;
            let key = SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[7; 32])?);
            let settings = Settings {
                durability,
                ..Settings::new(dir.path().to_path_buf(), Arc::new(key), "bench".into())
            };
            let clock = Arc::new(SystemClock::new());
            let journal = Arc::new(FileJournal::open(settings, clock, &SystemRandom)?);
            let until = Instant::now() + Duration::from_secs(seconds);
            let began = Instant::now();
            let mut waits = runtime.block_on(wait_for(journal.clone(), waiting, until))?;
            let took = began.elapsed();
            journal.close();
            waits.sort_unstable();
            let at = |part: usize| {
                let wait = waits.get((waits.len() * part / 1000).min(waits.len() - 1));
                wait.map_or(0.0, |wait| wait.as_secs_f64() * 1000.0)
            };
            println!(
                "{name:<10}  {waiting:>7}  {:>9.0}  {:>8.3}  {:>8.3}  {:>8.3}",
                waits.len() as f64 / took.as_secs_f64(),
                at(500),
                at(990),
                at(1000),
            );
        }
    }
    Ok(())
}

/// Calls, `waiting` at a time: an intent that is waited for, then an outcome that is not.
async fn wait_for(
    journal: Arc<FileJournal>,
    waiting: usize,
    until: Instant,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    // As long as a usual intent.
    let filler = "x".repeat(900);
    let body = format!(r#""kind":"intent","request_id":"r","agent":"a","x":"{filler}""#);
    let tasks: Vec<_> = (0..waiting)
        .map(|_| {
            let (journal, body) = (journal.clone(), body.clone());
            tokio::spawn(async move {
                let mut waits = Vec::new();
                while Instant::now() < until {
                    let asked = Instant::now();
                    let receipt = journal.append(RecordBody(body.clone().into_bytes()));
                    let Ok(recorded) = receipt.wait().await else {
                        break;
                    };
                    waits.push(asked.elapsed());
                    let outcome = format!(r#""kind":"outcome","intent":{}"#, recorded.sequence());
                    journal.queue(RecordBody(outcome.into_bytes()));
                }
                waits
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await?);
    }
    match all.is_empty() {
        true => Err("the journal took no record".into()),
        false => Ok(all),
    }
}
