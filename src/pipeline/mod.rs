//! One call from start to end, without sockets.
//!
//! Answers: where does a request lead, who is calling, may they, and what is recorded. May import:
//! core and `config`. Invariants: only [`admit`](self) can make a permit, and only from a recorded
//! allow. Start reading at [`ports`].

pub mod metrics;
pub mod cards;
pub mod ports;
pub mod request_id;

pub use request_id::RequestId;
