//! Phases of a request, for `overhead_seconds`.

/// A part of our own work on a request; waiting for caller or agent belongs to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From path to agent and surface.
    Locate,
    /// Token verification, cached or not.
    Authenticate,
    /// Body to call.
    Parse,
    /// Ownership of the ids that the call names.
    Relate,
    /// The policy decision.
    Decide,
    /// Until the intent is in the journal.
    Record,
    /// Judging and binding replies.
    Reply,
    /// All of the above together.
    Total,
}

impl Phase {
    /// Every phase, in the order of a request.
    pub const ALL: [Phase; 8] = [
        Phase::Locate,
        Phase::Authenticate,
        Phase::Parse,
        Phase::Relate,
        Phase::Decide,
        Phase::Record,
        Phase::Reply,
        Phase::Total,
    ];

    /// The value of the label `phase`.
    pub fn label(self) -> &'static str {
        match self {
            Phase::Locate => "locate",
            Phase::Authenticate => "authenticate",
            Phase::Parse => "parse",
            Phase::Relate => "relate",
            Phase::Decide => "decide",
            Phase::Record => "record",
            Phase::Reply => "reply",
            Phase::Total => "total",
        }
    }
}
