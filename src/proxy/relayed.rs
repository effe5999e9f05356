//! How a relay ended.

use crate::a2a::Fault;
use crate::audit::record::Ended;

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed {
    /// In one word.
    pub ended: Ended,
    /// Whether the agent's reply ended properly.
    pub whole: bool,
    /// What the caller must still be told; only when no header has been sent.
    pub fault: Option<Fault>,
    /// Whether the caller's connection is in a clean state.
    pub clean: bool,
}

impl Relayed {
    pub(super) fn refused(ended: Ended, whole: bool, fault: Fault) -> Relayed {
        Relayed {
            ended,
            whole,
            fault: Some(fault),
            clean: true,
        }
    }

    pub(super) fn broken(ended: Ended) -> Relayed {
        Relayed {
            ended,
            whole: false,
            fault: None,
            clean: false,
        }
    }
}
