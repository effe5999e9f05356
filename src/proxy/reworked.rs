//! Pieces of a reply that leaves only as we wrote it.

use crate::a2a::reader::{EventKind, Piece};
use crate::pipeline::Rework;

/// A piece of such a reply: whole and rewritten, or withheld. The agent's own errors pass.
pub(super) fn reworked(rework: &Rework, piece: Piece) -> Piece {
    match piece {
        Piece::Event(bytes, event) => match event.kind {
            EventKind::Error(_) => Piece::Event(bytes, event),
            EventKind::Task
            | EventKind::Message
            | EventKind::StatusUpdate
            | EventKind::ArtifactUpdate
            | EventKind::Other => match rework.apply(&bytes) {
                Ok(bytes) => Piece::Event(bytes, event),
                Err(code) => Piece::Malformed(code),
            },
        },
        Piece::Pass(_) | Piece::Unjudged(..) => Piece::Malformed("oversize_reply"),
        Piece::Malformed(code) => Piece::Malformed(code),
    }
}
