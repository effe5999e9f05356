//! Whether a caller may make a call.
//!
//! Answers: allow or deny, by which rule, and what came nearest. May import: `source`, `a2a`,
//! `identity`. Invariants: default deny; a firing deny beats every allow and order never matters;
//! anything that is not known never widens (I-3). Start reading at [`decide()`], then [`decision`].

mod analysis;
pub mod compile;
mod condition;
mod content;
pub mod decide;
pub mod decision;
pub mod diff;
pub mod document;
pub mod explain;
mod glob;
mod implies;
pub mod index;
pub mod limits;
mod matchers;
pub mod memo;
pub mod mutate;
pub mod names;
pub mod public_address;
pub mod replay;
pub mod schema;
mod shadow;
pub mod suggest;
pub mod trial;
pub mod webhooks;

pub use compile::compile;
pub use condition::Tri;
pub use decide::{
    Asked, AskedSkill, Considered, Needed, Question, Tested, considered, could_allow, could_use,
    decide, looks_at_content, may_ever, needed, required,
};
pub use decision::{Decision, Effect, Near};
pub use explain::explain;
pub use index::{PolicySet, claims_used};
pub use memo::Memo;
pub use names::{AgentFacts, World};
pub use shadow::{RuleResult, Shadow, ShadowResult};
pub use webhooks::Webhooks;
