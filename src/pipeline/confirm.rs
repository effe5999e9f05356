//! [`confirm`]: whether who sends this request holds what its token is bound to (SC-1 to SC-10).

use super::authenticate::{Presentation, SeenAs};
use super::gate::{Gate, Live};
use super::locate::visible_uri;
use super::proofs::Seen;
use crate::identity::confirmation::Shown;
use crate::identity::transport::Presented;
use crate::identity::{Principal, TokenFault, fault};

/// Judges the connection and the proof of one request; a proof is used up by it.
pub(super) fn confirm(
    gate: &Gate,
    live: &Live,
    presentation: &Presentation<'_>,
    presented: Presented<'_>,
    principal: &Principal,
    now: i64,
) -> Result<(), TokenFault> {
    let nonces = live
        .asks_nonce(principal)
        .then(|| gate.proof_nonces.at(now));
    let shown = Shown {
        presented,
        certificate: presentation.certificate,
        headers: presentation.headers,
        method: presentation.method,
        now,
        nonces: nonces.as_ref().map(<[_; 2]>::as_slice),
    };
    let confirmation = &principal.confirmation;
    let proof = confirmation.judge(&shown, || match &presentation.seen_as {
        SeenAs::Public(knock) => visible_uri(live, knock),
        SeenAs::Url(url) => (*url).to_owned(),
    })?;
    let (Some(proof), Some(key)) = (proof, &confirmation.key) else {
        return Ok(());
    };
    match gate.seen_proofs.take(&principal.issuer, key, &proof, now) {
        Seen::New => Ok(()),
        Seen::Before => Err(fault::PROOF_REPLAYED),
        Seen::Full => Err(fault::PROOFS_FULL),
    }
}
