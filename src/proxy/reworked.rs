//! Pieces of a reply that leaves only as we wrote it.

use crate::a2a::Fault;
use crate::a2a::reader::{EventKind, Piece};
use crate::audit::record::Ended;
use crate::pipeline::Rework;
use crate::pipeline::listing::NoPage;
use http::header;
use pingora::http::ResponseHeader;

/// What becomes of such a piece.
pub(super) enum Reworked {
    /// It leaves like this, or is withheld. The agent's own errors leave as they came.
    Piece(Piece),
    /// The agent has to be asked once more before anything leaves.
    More,
    /// It cannot be said whose it is.
    Lost((Ended, Fault)),
}

pub(super) async fn reworked(rework: &mut Rework, piece: Piece) -> Reworked {
    Reworked::Piece(match piece {
        Piece::Event(bytes, event) => match event.kind {
            EventKind::Error(_) => Piece::Event(bytes, event),
            EventKind::Task
            | EventKind::Message
            | EventKind::StatusUpdate
            | EventKind::ArtifactUpdate
            | EventKind::Other => match rework.apply(&bytes).await {
                Ok(Some(bytes)) => Piece::Event(bytes, event),
                Ok(None) => return Reworked::More,
                Err(NoPage::Unclear(code)) => Piece::Malformed(code),
                Err(NoPage::Store) => {
                    return Reworked::Lost((Ended::StoreFailed, Fault::Unavailable));
                }
            },
        },
        Piece::Pass(_) | Piece::Part(_) | Piece::Unjudged(..) => Piece::Malformed("oversize_reply"),
        Piece::Malformed(code) => Piece::Malformed(code),
    })
}

/// Fields that describe the agent's bytes and not ours (FC-14).
const OF_OTHER_BYTES: [&str; 11] = [
    "etag",
    "last-modified",
    "expires",
    "age",
    "vary",
    "accept-ranges",
    "content-range",
    "content-md5",
    "digest",
    "content-digest",
    "repr-digest",
];

/// For a reply whose body is made for one caller: nobody keeps it.
pub(super) fn make_private(head: &mut ResponseHeader) -> Result<(), Box<pingora::Error>> {
    for name in OF_OTHER_BYTES {
        head.remove_header(name);
    }
    head.insert_header(header::CACHE_CONTROL, "private, no-store")
}
