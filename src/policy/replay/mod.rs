//! Yesterday's calls under tomorrow's policy.
//!
//! Answers: which recorded decisions would be others under a candidate. May import: what `policy`
//! may. Invariants: a call is judged by [`super::decide`](super::decide()) alone, for every value
//! of what its record lacks; what then depends on such a value is undetermined and never the same.
//! Start reading at [`Judge`].

mod judge;
mod recorded;
mod tally;

pub use judge::{Judge, Judged, Lacks};
pub use recorded::{Recorded, RecordedCaller, RecordedSkill, is_hidden};
pub use tally::{Group, Tally, Turn};
