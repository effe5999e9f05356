//! What an agent gets so that it can tell that a call comes through us, and from whom.

use super::Recorder;
use super::admit::body_hash;
use crate::a2a::Operation;
use crate::config::snapshot::BackendIdentity;
use crate::identity::assertion::Assertion;

/// A request as it is about to be sent.
pub struct Leaving<'a> {
    /// Path and query.
    pub target: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Whether the body may be another than the one that was recorded.
    pub remade: bool,
    /// Which of the requests that are sent for this call, from 1.
    pub part: u32,
}

/// There is nothing to sign with: the call must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKey;

/// The assertion for an agent that wants one.
///
/// # Errors
/// [`NoKey`].
pub fn assertion(recorder: &Recorder, leaving: &Leaving<'_>) -> Result<Option<String>, NoKey> {
    let Some(agent) = &recorder.agent else {
        return Ok(None);
    };
    match agent.identity {
        BackendIdentity::Assertion => {}
        BackendIdentity::None | BackendIdentity::Mtls | BackendIdentity::Header(_) => {
            return Ok(None);
        }
    }
    let gate = recorder.gate();
    let asserter = gate.keys.as_ref().and_then(|keys| keys.assertion.as_ref());
    let listener = recorder.live.snapshot.listeners.first();
    let (Some(asserter), Some(listener), Some(verified)) = (asserter, listener, &recorder.verified)
    else {
        return Err(NoKey);
    };
    let recorded = match (&recorder.forwarded, recorder.body_sha256) {
        (Some((_, hash)), _) => Some(*hash),
        (None, hash) => hash,
    };
    let hash = recorded.filter(|_| !leaving.remade);
    let principal = &verified.principal;
    let skill = recorder.skill.as_ref();
    let rule = recorder.decision.as_ref().and_then(|d| d.rule.as_deref());
    Ok(Some(asserter.sign(&Assertion {
        gateway: &listener.public_url,
        agent: &agent.name,
        subject: &principal.subject,
        issuer: &principal.issuer,
        client: principal.client.as_deref(),
        actors: &principal.actors,
        grant: principal.grant,
        skill: skill.and_then(|skill| skill.id.as_deref()),
        rule,
        request_id: recorder.request_id.as_str(),
        part: leaving.part,
        method: recorder.method().as_str(),
        target: leaving.target,
        body: &hash.unwrap_or_else(|| body_hash(leaving.body)),
        issued: i64::try_from(gate.clock.now() / 1000).unwrap_or(i64::MAX),
    })))
}

/// Whether the caller's token goes to the agent: only to the origin of `backend.url`, which is
/// number 0, and never for the extended card (TR-10, `design.md` 5).
pub fn forwards_token(recorder: &Recorder, backend: usize) -> bool {
    let call = recorder.call.as_ref();
    let extended = call.is_some_and(|c| c.operation == Operation::GetExtendedAgentCard);
    let agent = recorder.agent.as_ref();
    backend == 0 && !extended && agent.is_some_and(|agent| agent.forward_token)
}
