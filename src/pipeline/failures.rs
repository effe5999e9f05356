//! Bounds how often one address may have tokens verified that are not accepted (CA-5).
//!
//! There is no negative cache by token: an attacker never sends the same one twice. What is
//! bounded is the work of verifying. Tokens that were accepted before are in the cache and pass.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Failed verifications that one address may cause within [`WINDOW`].
pub const PER_WINDOW: u32 = 200;
/// How long failures count together.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Addresses that are kept apart; beyond it the oldest window goes.
const ADDRESSES: usize = 10_000;

/// Failed verifications by address.
#[derive(Debug, Default)]
pub struct Failures(Mutex<HashMap<IpAddr, Window>>);

#[derive(Debug, Clone, Copy)]
struct Window {
    since: Duration,
    failed: u32,
}

impl Failures {
    /// Seconds to wait, if this address has used up its failures. `now` is monotonic.
    pub fn spent(&self, address: IpAddr, now: Duration) -> Option<u32> {
        let windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.get(&network(address))?;
        let age = now.saturating_sub(window.since);
        (window.failed >= PER_WINDOW && age < WINDOW).then(|| {
            u32::try_from((WINDOW - age).as_secs())
                .unwrap_or(u32::MAX)
                .saturating_add(1)
        })
    }

    /// A token of this address was not accepted.
    pub fn note(&self, address: IpAddr, now: Duration) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        if windows.len() >= ADDRESSES && !windows.contains_key(&address) {
            windows.retain(|_, window| now.saturating_sub(window.since) < WINDOW);
            if windows.len() >= ADDRESSES {
                // So many addresses at once are no single attacker; the rate of records and the
                // number of connections bound them.
                return;
            }
        }
        let window = windows.entry(address).or_insert(Window {
            since: now,
            failed: 0,
        });
        if now.saturating_sub(window.since) >= WINDOW {
            *window = Window {
                since: now,
                failed: 0,
            };
        }
        window.failed = window.failed.saturating_add(1);
    }
}

/// One IPv6 subscriber has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => IpAddr::V6((u128::from(six) >> 64 << 64).into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bounded_and_others_are_not() {
        let failures = Failures::default();
        let at = Duration::from_secs;
        let (one, other): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..PER_WINDOW {
            assert_eq!(failures.spent(one, at(100)), None);
            failures.note(one, at(100));
        }
        assert_eq!(failures.spent(one, at(103)), Some(8));
        assert_eq!(failures.spent(other, at(103)), None);
        assert_eq!(failures.spent(one, at(110)), None);
        failures.note(one, at(110));
        assert_eq!(failures.spent(one, at(110)), None);
    }

    #[test]
    fn a_whole_ipv6_subscriber_is_one_address() {
        let failures = Failures::default();
        for host in 0..PER_WINDOW {
            failures.note(
                format!("2001:db8::{host:x}").parse().unwrap(),
                Duration::ZERO,
            );
        }
        let spent = |text: &str| {
            failures
                .spent(text.parse().unwrap(), Duration::ZERO)
                .is_some()
        };
        assert!(spent("2001:db8::ffff") && !spent("2001:db8:0:1::1"));
    }
}
