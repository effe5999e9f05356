//! One call from start to end, without sockets.
//!
//! Answers: where does a request lead, who is calling, may they, and what is recorded. May import:
//! core and `config`. Invariants: only this module can make a [`Permit`], and only from a recorded
//! allow; every request that begins is concluded in journal and metrics, however it ends. Start
//! reading at [`gate`].

pub mod admit;
pub mod assertion;
pub mod attempts;
pub mod authenticate;
pub mod bind;
pub mod cards;
mod confirm;
mod events;
pub mod failures;
pub mod gate;
pub mod introspection;
pub mod issuer_keys;
mod judge;
pub mod listing;
pub mod locate;
pub mod metrics;
pub mod nonces;
pub mod observe;
pub mod one_time;
pub mod own_keys;
pub mod page_token;
pub mod permit;
pub mod ports;
pub mod proofs;
mod reach;
pub mod recorder;
pub mod rejection;
pub mod relate;
pub mod request_id;
pub mod revocations;
pub mod rework;
pub mod shipping;
mod skill;
pub mod strangers;
pub mod tenant;
pub mod token_cache;
pub mod trace;
pub mod trial;
mod used_claims;
pub mod webhook;

pub use attempts::{Attempts, Sizes};
pub use authenticate::{Presentation, SeenAs, Verified, authenticate};
pub use bind::Binder;
pub use gate::{Gate, Live};
pub use observe::{Observer, ReplyNote};
pub use own_keys::{JournalKeys, OwnKeys};
pub use permit::Permit;
pub use recorder::Recorder;
pub use rejection::{Challenge, Guidance, Rejection};
pub use relate::{Related, Unrelated, relate};
pub use request_id::RequestId;
pub use rework::Rework;
pub use trace::Trace;
