//! Who acts for whom: the `act` claim (GR-8, RFC 8693 section 4.1).
//!
//! Only the outermost actor counts for access; those within are history. `may_act` (section 4.4)
//! says what an issuer may do, and grants nothing here: nobody reads it.

use super::accept::Refusals;
use super::claims::{MAX_NAME, has_control};
use super::fault::{self, TokenFault};
use super::principal::Actor;
use crate::a2a::strict_json::Value;

/// Most actors of one token.
const MAX_ACTORS: usize = 4;

/// The chain of actors, outermost first; empty without delegation. `issuer` is the token's.
pub(super) fn actors<R: Refusals>(
    payload: &Value,
    issuer: &str,
    refusals: &mut R,
) -> Result<Vec<Actor>, TokenFault> {
    let mut actors = Vec::new();
    let mut next = payload.get("act");
    while let Some(act) = next {
        if actors.len() == MAX_ACTORS {
            refusals.refuse(fault::TOO_MANY_ACTORS)?;
            break;
        }
        match actor(act, issuer) {
            Ok(actor) => actors.push(actor),
            Err(fault) => {
                refusals.refuse(fault)?;
                break;
            }
        }
        next = act.get("act");
    }
    Ok(actors)
}

fn actor(act: &Value, issuer: &str) -> Result<Actor, TokenFault> {
    let name = |claim| match act.get(claim).map(Value::as_str) {
        None => Ok(None),
        Some(Some(text)) if has_control(text) => Err(fault::CONTROL_CHARACTER),
        Some(Some(text)) if !text.is_empty() && text.chars().nth(MAX_NAME).is_none() => {
            Ok(Some(text))
        }
        Some(_) => Err(fault::ACTOR),
    };
    let subject = name("sub")?.ok_or(fault::ACTOR)?;
    let theirs = name("iss")?.filter(|theirs| *theirs != issuer);
    Ok(Actor {
        subject: subject.into(),
        issuer: theirs.map(Box::from),
    })
}
