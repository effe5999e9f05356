//! Agent Cards: reading, rewriting, serving.
//!
//! Answers: what may a stranger learn of an agent, and under which addresses. May import: `a2a`.
//! Invariants: every address of a published card is computed from configuration, never from the
//! card or from a request (I-7); a card that cannot be read whole is not published; nothing of a
//! card is published that this module has not looked at. Start reading at [`mod@rewrite`].

mod address;
mod canonical;
pub mod extended;
pub mod fault;
mod interfaces;
mod narrow;
mod proto;
mod read;
pub mod rewrite;
mod scrub;
pub mod security;
pub mod serve;
mod shape;
pub mod signature;

pub use canonical::jcs;
pub use extended::rewrite_reply;
pub use fault::{CardFault, DropReason, DroppedInterface};
pub use rewrite::{Promises, Publication, Published, rewrite};
pub use security::{Scheme, SchemeKind, SecuritySchemes};
pub use serve::{CardReply, respond};
pub use signature::{Attested, BadSignature, Protected, Signer, attest, named_key_sets};

use super::operation::{Binding, Versions};

/// One path of an agent that speaks one binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Path below the agent's public route: empty, or starts with `/`, no trailing `/`.
    pub public_path: Box<str>,
    /// Path on the backend, absolute and exactly as it is sent.
    pub backend_path: Box<str>,
    /// The binding.
    pub binding: Binding,
    /// The versions that it offers.
    pub versions: Versions,
    /// Which of the agent's backends it is at; 0 is the first.
    pub backend: usize,
}
