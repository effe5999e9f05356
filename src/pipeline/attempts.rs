//! What was tried on the way to an agent, kept as it happens.

use crate::audit::record::{Attempt, AttemptError, Delivery, Millis, Stage, Tcp};
use std::borrow::Cow;
use std::time::Duration;

/// The attempts of one call, in order, with how much of the last one was written.
///
/// It belongs to the request's recorder, so that it is right even if the sending future is dropped.
#[derive(Debug, Default)]
pub struct Attempts {
    list: Vec<Attempt<'static>>,
    /// How far the ones before the last got.
    before: Option<Delivery>,
    /// When the last attempt began, monotonic.
    began: Duration,
    /// Length of the head of the last attempt on the wire.
    head: u64,
    /// Bytes of head and body that the kernel took in the last attempt.
    sent: u64,
}

impl Attempts {
    /// A new attempt begins. `since_start` counts from the request's start.
    pub fn begin(
        &mut self,
        peer: String,
        reused: bool,
        now: Duration,
        since_start: Duration,
        sizes: Sizes,
    ) {
        self.before = Some(self.delivery());
        self.began = now;
        self.head = sizes.head;
        self.sent = 0;
        self.list.push(Attempt {
            peer: Cow::Owned(peer),
            reused,
            started_ms: Millis(since_start),
            ms: Millis(Duration::ZERO),
            stage: Stage::Connect,
            bytes_sent: 0,
            body_len: sizes.body,
            error: None,
            tcp: None,
        });
    }

    /// An attempt that ended before it had an address: the name of `peer` does not resolve.
    pub fn unresolved(&mut self, peer: &str, now: Duration, since_start: Duration, body: u64) {
        self.begin(
            peer.into(),
            false,
            now,
            since_start,
            Sizes { head: 0, body },
        );
        self.enter(Stage::Connect, Some(AttemptError::Dns), now);
    }

    /// The last attempt entered `stage`, or failed in it.
    pub fn enter(&mut self, stage: Stage, error: Option<AttemptError>, now: Duration) {
        if let Some(last) = self.list.last_mut() {
            last.stage = stage;
            last.error = error;
            last.ms = Millis(now.saturating_sub(self.began));
        }
    }

    /// The last attempt failed in the stage it is in.
    pub fn enter_error(&mut self, error: AttemptError, now: Duration) {
        if let Some(last) = self.list.last() {
            let stage = last.stage;
            self.enter(stage, Some(error), now);
        }
    }

    /// The head of the last attempt has this many bytes on the wire; known when it is written.
    pub fn head_is(&mut self, bytes: u64) {
        self.head = bytes;
    }

    /// The kernel has taken `sent` bytes of head and body so far.
    pub fn wrote(&mut self, sent: u64) {
        self.sent = sent;
        if let Some(last) = self.list.last_mut() {
            last.bytes_sent = sent.saturating_sub(self.head);
            if sent > self.head && last.stage == Stage::Header {
                last.stage = Stage::Body;
            }
        }
    }

    /// What the kernel knew about a failed connection.
    pub fn tcp(&mut self, tcp: Option<Tcp>) {
        if let Some(last) = self.list.last_mut() {
            last.tcp = tcp;
        }
    }

    /// Bytes that the kernel took in the last attempt.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// All of them, in order.
    pub fn list(&self) -> &[Attempt<'static>] {
        &self.list
    }

    /// How far the call got, as far as the attempts alone can tell (`design.md` section 9): as far
    /// as the one that got furthest.
    pub fn delivery(&self) -> Delivery {
        match (self.before, self.last()) {
            (Some(before), last) if furthest(before) > furthest(last) => before,
            (_, last) => last,
        }
    }

    /// How far the last attempt got.
    fn last(&self) -> Delivery {
        let Some(last) = self.list.last() else {
            return Delivery::NotAttempted;
        };
        // The agent's own word, and its protocol's.
        if last.error == Some(AttemptError::NotProcessed) {
            return Delivery::ConnectFailed;
        }
        match last.stage {
            Stage::Connect => Delivery::ConnectFailed,
            // The first write failed: nothing left us.
            Stage::Header | Stage::Body if self.sent == 0 => Delivery::ConnectFailed,
            Stage::Header | Stage::Body if self.sent < self.head + last.body_len => {
                Delivery::SentPartial
            }
            Stage::Header | Stage::Body | Stage::Wait => Delivery::SentNoResponse,
            Stage::Response => Delivery::ResponsePartial,
        }
    }
}

/// The order in which one delivery is further than another. What cannot be told is not in it.
fn furthest(delivery: Delivery) -> u8 {
    match delivery {
        Delivery::NotAttempted => 0,
        Delivery::ConnectFailed => 1,
        Delivery::SentPartial => 2,
        Delivery::SentNoResponse => 3,
        Delivery::ResponsePartial => 4,
        Delivery::Responded => 5,
        Delivery::Unknown => 0,
    }
}

/// Sizes of what is to be sent, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Request line and fields.
    pub head: u64,
    /// The body.
    pub body: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_follows_from_what_was_written() {
        let sizes = Sizes {
            head: 100,
            body: 50,
        };
        let table: &[(Stage, u64, Delivery)] = &[
            (Stage::Connect, 0, Delivery::ConnectFailed),
            (Stage::Header, 0, Delivery::ConnectFailed),
            (Stage::Header, 1, Delivery::SentPartial),
            (Stage::Header, 149, Delivery::SentPartial),
            (Stage::Wait, 150, Delivery::SentNoResponse),
            (Stage::Response, 150, Delivery::ResponsePartial),
        ];
        for &(stage, sent, expected) in table {
            let mut attempts = Attempts::default();
            assert_eq!(attempts.delivery(), Delivery::NotAttempted);
            attempts.begin("a:1".into(), false, Duration::ZERO, Duration::ZERO, sizes);
            attempts.enter(stage, None, Duration::from_millis(1));
            attempts.wrote(sent);
            assert_eq!(attempts.delivery(), expected, "{stage} {sent}");
            // What got further once got further.
            attempts.begin("a:1".into(), false, Duration::ZERO, Duration::ZERO, sizes);
            attempts.enter_error(AttemptError::Refused, Duration::ZERO);
            assert_eq!(
                attempts.delivery(),
                expected,
                "{stage} {sent}, then refused"
            );
            attempts.enter(Stage::Response, None, Duration::ZERO);
            assert_eq!(attempts.delivery(), Delivery::ResponsePartial);
        }
    }
}
