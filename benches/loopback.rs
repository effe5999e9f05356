//! What full enforcement costs, against the emptiest proxy that Pingora can be.
//!
//! Two servers with one worker thread each stand in front of the same agent: Portcullis as the
//! release program with everything on, and a `ProxyHttp` that only names its peer. Both use the same
//! allocator. They are loaded in turn, round by round, so that what else the machine does falls on
//! both. Per round: CPU of the server's process (user and system, `/proc/PID/stat`) by request, and
//! requests per second. Where there are two cores and `taskset`, the server has one core for itself
//! and agent and callers have the other.
//!
//! Only ratios mean something: a round's absolute numbers are the machine's.

mod loopback_grpc;
mod loopback_setup;
mod loopback_traffic;

use async_trait::async_trait;
use loopback_setup::{
    RULES, Running, command, counted, free_port, pin_self, until_it_answers, write_files,
};
use loopback_traffic::{IDS, Tally, Traffic, keep_calling, start_agent};
use pingora::prelude::*;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

/// The same as in `main.rs`, so that both sides allocate alike.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Load before the measured part of each round.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|a| a == name);
    let ended = match arguments.as_slice() {
        [role, listen, agent, http] if role == "empty-proxy" => empty_proxy(listen, agent, http),
        // `cargo test --all-targets` starts benches as well, without this argument.
        _ if !has("--bench") => Ok(()),
        _ => {
            let given = |name: &str| {
                let at = arguments.iter().position(|a| a == name);
                at.and_then(|at| arguments.get(at + 1)).map(String::as_str)
            };
            let program = given("--gateway").unwrap_or(env!("CARGO_BIN_EXE_portcullis"));
            let durability = given("--durability").unwrap_or("write");
            let callers = given("--callers").map(str::parse).transpose();
            Traffic::named(given("--traffic").unwrap_or("jsonrpc")).and_then(|traffic| {
                let under = Under {
                    traffic,
                    durability,
                    callers: callers?.unwrap_or(traffic.callers()),
                    program: Path::new(program),
                };
                measure(&under, has("--quick"))
            })
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Empty(HttpPeer);

#[async_trait]
impl ProxyHttp for Empty {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, _: &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(self.0.clone()))
    }
}

fn empty_proxy(listen: &str, agent: &str, http: &str) -> Fallible<()> {
    let agent: SocketAddr = agent.parse()?;
    let conf = pingora::server::configuration::ServerConf {
        threads: 1,
        upstream_keepalive_pool_size: 1024,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(1),
        ..Default::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut peer = HttpPeer::new(agent, false, String::new());
    if http == "h2" {
        peer.options.set_http_version(2, 2);
    }
    let mut service = http_proxy_service(&server.configuration, Empty(peer));
    if http == "h2"
        && let Some(proxy) = service.app_logic_mut()
    {
        let mut options = pingora::apps::HttpServerOptions::default();
        options.h2c = true;
        proxy.server_options = Some(options);
    }
    service.add_tcp(listen);
    server.add_service(service);
    server.run_forever()
}

/// What is measured, and how.
struct Under<'a> {
    traffic: Traffic,
    /// The journal's.
    durability: &'a str,
    /// How many call at a time; with one, the waits are those of an idle server.
    callers: usize,
    program: &'a Path,
}

struct Round {
    cpu_us: f64,
    rps: f64,
    busy: f64,
    /// Median and 99th percentile of the time that a caller waits for an answer.
    wait_us: [f64; 2],
}

fn measure(under: &Under<'_>, quick: bool) -> Fallible<()> {
    let traffic = under.traffic;
    let (rounds, length) = match quick {
        true => (4, Duration::from_secs(4)),
        false => (7, Duration::from_secs(5)),
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let pinned = cores > 1 && pin_self();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let agent = start_agent(traffic).await?;
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let (empty_at, public, admin) = (free_port()?, free_port()?, free_port()?);
        let token =
            write_files(folder.path(), traffic, under.durability, [public, admin, agent])?;
        let config = folder.path().join("gateway.yaml");
        let me = std::env::current_exe()?;
        let log = std::fs::File::create(folder.path().join("gateway.log"))?;
        let mut empty = command(pinned, &me);
        let http = if traffic == Traffic::Grpc { "h2" } else { "h1" };
        empty.args(["empty-proxy", &empty_at.to_string(), &agent.to_string(), http]);
        let empty = Running::start(empty.stderr(Stdio::null()))?;
        let mut gateway = command(pinned, under.program);
        gateway.args(["run", "--threads", "1", "--config"]).arg(&config);
        let gateway = Running::start(gateway.stderr(log))?;
        until_it_answers(traffic, empty_at, &token).await?;
        let up = until_it_answers(traffic, public, &token).await;
        if let Err(error) = up {
            let log = std::fs::read_to_string(folder.path().join("gateway.log"))?;
            return Err(format!("{error}\n{log}").into());
        }

        println!(
            "{}, {} callers, RS256 token (warm), {RULES} rules, ownership, journal `{}`, metrics; {cores} cores, {}",
            traffic.title(),
            under.callers,
            under.durability,
            if pinned { "server on one of its own" } else { "not pinned" },
        );
        let unit = traffic.unit();
        println!("round  server         CPU µs/{unit}  {unit}s/s  server busy  wait µs, median and p99");
        let mut all: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
        let mut sent = 0;
        for round in 1..=rounds {
            for (at, (name, server, address)) in
                [("empty proxy", &empty, empty_at), ("portcullis", &gateway, public)]
                    .into_iter()
                    .enumerate()
            {
                let (measured, answered) = load(under, server, address, &token, length).await?;
                if at == 1 {
                    sent += answered;
                }
                println!(
                    "{round:>5}  {name:<12} {:>16.2} {:>11.0} {:>11.0}% {:>12.0} {:>8.0}",
                    measured.cpu_us,
                    measured.rps,
                    measured.busy * 100.0,
                    measured.wait_us[0],
                    measured.wait_us[1]
                );
                all[at].push(measured);
            }
        }
        let intents = counted(admin, "portcullis_journal_records_total{kind=\"intent\"}").await?;
        if traffic != Traffic::Sse && intents < sent {
            return Err(format!("{sent} calls but {intents} intents").into());
        }
        println!("{intents} intents in the journal for {sent} answered calls");
        gateway.stop().await?;
        empty.stop().await?;
        summarize(unit, &all);
        Ok(())
    })
}

fn summarize(unit: &str, [empty, ours]: &[Vec<Round>; 2]) {
    let spread = |rounds: &[Round], of: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        };
        (median, values[0], values[values.len() - 1])
    };
    for (name, rounds) in [("empty proxy", empty), ("portcullis", ours)] {
        let (cpu, cpu_min, cpu_max) = spread(rounds, |r| r.cpu_us);
        let (rps, rps_min, rps_max) = spread(rounds, |r| r.rps);
        let (p99, p99_min, p99_max) = spread(rounds, |r| r.wait_us[1]);
        println!(
            "{name:<12} median {cpu:.2} µs/{unit} ({cpu_min:.2} to {cpu_max:.2}), {rps:.0} {unit}s/s ({rps_min:.0} to {rps_max:.0}), p99 {p99:.0} µs ({p99_min:.0} to {p99_max:.0})"
        );
    }
    // Neighbors in time share the machine's mood, so each round is compared with itself.
    let ratio = |of: fn(&Round) -> f64| {
        let mut ratios: Vec<f64> = empty.iter().zip(ours).map(|(e, o)| of(o) / of(e)).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        match ratios.len() % 2 {
            0 => (ratios[middle - 1] + ratios[middle]) / 2.0,
            _ => ratios[middle],
        }
    };
    println!(
        "cpu_ratio={:.3} rps_ratio={:.3} p50_ratio={:.3} p99_ratio={:.3}",
        ratio(|r| r.cpu_us),
        ratio(|r| r.rps),
        ratio(|r| r.wait_us[0]),
        ratio(|r| r.wait_us[1])
    );
}

/// One round against one server.
async fn load(
    under: &Under<'_>,
    server: &Running,
    address: SocketAddr,
    token: &str,
    length: Duration,
) -> Fallible<(Round, u64)> {
    let tally = Rc::new(Tally::default());
    let mut callers = JoinSet::new();
    for caller in 0..under.callers {
        let first = (caller as u32) * (IDS / under.callers as u32);
        callers.spawn_local(keep_calling(
            under.traffic,
            address,
            token.to_owned(),
            first,
            tally.clone(),
        ));
    }
    tokio::time::sleep(WARM_UP).await;
    tally.waits();
    let (began, calls, cpu) = (Instant::now(), tally.answered(), server.cpu()?);
    tokio::time::sleep(length).await;
    let took = began.elapsed().as_secs_f64();
    let calls = (tally.answered() - calls) as f64;
    let cpu = (server.cpu()? - cpu).as_secs_f64();
    // A caller only ends when something was wrong with an answer.
    if let Some(ended) = callers.try_join_next() {
        return Err(ended?.err().unwrap_or_else(|| "a caller ended".into()));
    }
    callers.shutdown().await;
    if calls == 0.0 {
        return Err("no call was answered".into());
    }
    let round = Round {
        cpu_us: cpu * 1e6 / calls,
        rps: calls / took,
        busy: cpu / took,
        wait_us: waits(tally.waits()),
    };
    Ok((round, tally.answered()))
}

/// Median and 99th percentile; zero where nothing was waited for (streams).
fn waits(mut all: Vec<u32>) -> [f64; 2] {
    all.sort_unstable();
    [50, 99].map(|percent| {
        let at = all.len() * percent / 100;
        all.get(at).copied().map_or(0.0, f64::from)
    })
}
