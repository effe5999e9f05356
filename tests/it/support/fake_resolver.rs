//! Names and addresses as tests need them, without a network.

use portcullis::pipeline::ports::{Resolver, Unresolved};
use std::net::IpAddr;

/// `hooks.example.com` and whatever is below it have public addresses; a name of the table has
/// those; any other name has none.
pub struct FakeResolver;

/// Names with other addresses than public ones, or with both.
const TABLE: [(&str, &[&str]); 6] = [
    ("private.example.com", &["10.0.0.5"]),
    ("loopback.example.com", &["127.0.0.1", "::1"]),
    ("metadata.example.com", &["169.254.169.254"]),
    ("mixed.example.com", &["1.1.1.1", "192.168.0.1"]),
    ("mixed6.example.com", &["1.1.1.1", "fd00::1"]),
    ("empty.example.com", &[]),
];

#[async_trait::async_trait]
impl Resolver for FakeResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let host = host.to_ascii_lowercase();
        if host == "hooks.example.com" || host.ends_with(".hooks.example.com") {
            return Ok(vec![
                "1.1.1.1".parse().unwrap(),
                "2606:4700::1111".parse().unwrap(),
            ]);
        }
        let known = TABLE.iter().find(|(name, _)| *name == host);
        let (_, addresses) = known.ok_or(Unresolved)?;
        Ok(addresses.iter().map(|a| a.parse().unwrap()).collect())
    }
}
