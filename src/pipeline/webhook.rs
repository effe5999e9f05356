//! Where an agent may be told to deliver push notifications: one guard for every way to say it.
//!
//! `design.md` section 10, field cases FC-57 and FC-58. What the host's addresses are is asked when
//! the call is judged; what they become later is the agent's to look at.

use super::ports::{Resolver, Unresolved};
use crate::a2a::{Call, Operation};
use crate::policy::Webhooks;
use crate::policy::public_address::is_public;
use crate::policy::webhooks::{Host, target};

/// The codes of refusals by [`screen`] beside those of [`crate::policy::webhooks::URL_CODES`].
/// Codes are never renamed: records keep them.
pub const CODES: [&str; 4] = [
    "webhook_missing",
    "webhook_not_listed",
    "webhook_unresolved",
    "webhook_not_public",
];

/// Whether a call sets a webhook.
pub fn sets_webhook(call: &Call) -> bool {
    call.inline_push || call.operation == Operation::CreateTaskPushNotificationConfig
}

/// Looks at every webhook that the call sets.
///
/// # Errors
/// A code: one of them is missing, unclear, not on the list for the agent, or has an address that
/// is not public, or none that can be found out. Nothing may be forwarded.
pub async fn screen(
    resolver: &dyn Resolver,
    webhooks: &Webhooks,
    agent: usize,
    call: &Call,
) -> Result<(), &'static str> {
    if !sets_webhook(call) {
        return Ok(());
    }
    if call.push_urls.is_empty() {
        return Err("webhook_missing");
    }
    for url in &call.push_urls {
        let target = target(url)?;
        if !webhooks.allows(agent, &target) {
            return Err("webhook_not_listed");
        }
        let addresses = match target.host {
            Host::Address(address) => vec![address],
            Host::Name(name) => resolver
                .resolve(name)
                .await
                .map_err(|Unresolved| "webhook_unresolved")?,
        };
        if addresses.is_empty() {
            return Err("webhook_unresolved");
        }
        if !addresses.into_iter().all(is_public) {
            return Err("webhook_not_public");
        }
    }
    Ok(())
}
