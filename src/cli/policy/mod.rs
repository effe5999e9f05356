//! Commands about policies.
//!
//! Answers: what a change of policies allows and refuses, what it would have done to the journal's
//! calls, and which part of the rules nobody needed. May import: everything. Invariants: what
//! widens is exit code 1 until exactly that was acknowledged; what could not be decided counts as
//! widening, and what a record does not say is never taken for the same. Start reading at [`diff`].

mod acknowledge;
pub(super) mod diff;
pub(super) mod replay;
mod source;
pub(super) mod suggest;
mod window;
