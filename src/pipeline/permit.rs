//! [`Permit`]: proof of a recorded allow.

use super::ports::Recorded;
use crate::policy::{Decision, Effect};

/// Proof that a call was allowed and that its intent is in the journal. Sending takes one.
#[derive(Debug)]
pub struct Permit {
    sequence: u64,
}

impl Permit {
    /// From an allowing decision whose record is in the journal; `None` for a deny.
    pub(super) fn issue(decision: &Decision, recorded: &Recorded) -> Option<Permit> {
        match decision.effect {
            Effect::Allow => Some(Permit {
                sequence: recorded.sequence(),
            }),
            Effect::Deny => None,
        }
    }

    /// The sequence number of the intent.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// For tests of the exchange below the pipeline: the record is real, the decision is assumed.
    #[cfg(test)]
    pub(crate) fn for_exchange_tests(recorded: &Recorded) -> Permit {
        Permit {
            sequence: recorded.sequence(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::ports::Receipt;
    use super::*;

    #[tokio::test]
    async fn only_an_allow_yields_a_permit() {
        let (answer, receipt) = Receipt::pair();
        answer.send(Ok(7)).unwrap();
        let recorded = receipt.wait().await.unwrap();
        assert!(Permit::issue(&Decision::deny("no_rule"), &recorded).is_none());
        let allow = Decision {
            effect: Effect::Allow,
            ..Decision::deny("rule")
        };
        assert_eq!(
            Permit::issue(&allow, &recorded).map(|p| p.sequence()),
            Some(7)
        );
    }
}
