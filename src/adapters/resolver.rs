//! [`SystemResolver`]: addresses of host names as the operating system knows them.

use crate::pipeline::ports::{Resolver, Unresolved};
use std::net::IpAddr;
use std::time::Duration;

/// How long a lookup may take.
const DEADLINE: Duration = Duration::from_secs(3);
/// A name with more addresses is not looked at.
const MAX_ADDRESSES: usize = 64;

/// The system's resolver. Nothing is kept: an address that is judged is one that it has now.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait::async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        // The port means nothing to a lookup.
        let lookup = tokio::net::lookup_host((host, 443));
        let Ok(Ok(found)) = tokio::time::timeout(DEADLINE, lookup).await else {
            return Err(Unresolved);
        };
        let found: Vec<IpAddr> = found
            .map(|address| address.ip())
            .take(MAX_ADDRESSES + 1)
            .collect();
        match found.len() {
            1..=MAX_ADDRESSES => Ok(found),
            _ => Err(Unresolved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn literals_are_themselves_and_no_name_has_no_address() {
        let resolver = SystemResolver;
        let literal = resolver.resolve("127.0.0.1").await;
        assert_eq!(literal, Ok(vec![IpAddr::from([127, 0, 0, 1])]));
        assert_eq!(resolver.resolve("no such host").await, Err(Unresolved));
    }
}
