//! What tests stand on: agents that misbehave on purpose, a client without manners.
//!
//! Start reading at [`raw_agent`] and [`client`]. Everything listens on loopback port 0, waits on
//! conditions with a bound, and ends when it is dropped.
// Each subject uses a part of this; a part without a user today has one in the next subject.
#![allow(dead_code)]

pub mod client;
pub mod fake_agent;
pub mod fake_resolver;
pub mod gates;
pub mod gateway;
pub mod h2_agent;
pub mod h2_client;
pub mod http1;
pub mod issuer;
pub mod issuer_stub;
pub mod memory_journal;
pub mod pki;
pub mod process;
pub mod proto;
pub mod raw_agent;

use std::net::SocketAddr;
use std::time::Duration;

/// How long a condition may take to come true before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Loopback, any free port.
pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Awaits `work` for at most [`PATIENCE`]; says `what` was awaited when it does not come.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
