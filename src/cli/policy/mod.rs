//! The commands about policies, each of its own file; on the command line they stand at the top.
//!
//! Answers: what do these policies do, and would their tests notice if they did more; what a change
//! of them allows and refuses, what it would have done to the journal's calls, and which part of the
//! rules nobody needed. May import: everything. Invariants: what is judged here is judged by the code
//! that judges calls; what widens is exit code 1 until exactly that was acknowledged; what could not
//! be decided counts as widening, and what a record does not say is never taken for the same; nothing
//! prints a token. Start reading at [`suite`], then [`diff`].

mod acknowledge;
mod caller;
pub(super) mod can_i;
pub(super) mod diff;
pub(super) mod explain;
pub(super) mod mutate;
pub(super) mod prove;
mod recorded;
pub(super) mod replay;
mod source;
pub(super) mod suggest;
pub(super) mod suite;
pub(super) mod test;
pub(super) mod untested;
mod window;

use crate::pipeline::trial::Judged;
use crate::policy::explain as in_words;
use serde_json::{Value, json};

/// What came of a call, as commands print it with `--json`.
fn judged_json(judged: &Judged) -> Value {
    let decision = &judged.decision;
    let near = decision.near.as_ref();
    let near = near
        .map(|near| json!({ "rule": *near.rule, "claim": near.claim.as_deref(), "content": near.content.as_deref(), "why": near.why }));
    let skill = judged.skill.as_ref();
    let skill = skill.map(|skill| {
        json!({ "id": skill.id.as_deref(), "source": skill.source, "assurance": skill.assurance })
    });
    json!({
        "effect": decision.effect.label(), "reason": decision.reason, "rule": decision.rule.as_deref(),
        "near": near, "http": judged.http, "skill": skill, "says": in_words(decision),
    })
}
