//! Which intents have no outcome yet, as the writer sees them pass.
//!
//! Each segment opens with the oldest of them, so that a start after a crash reads back to that
//! one and not to the beginning of the journal.

use std::collections::BTreeSet;

/// Sequence numbers of open intents; as many as there are calls under way.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(BTreeSet<u64>);

impl OpenCalls {
    /// Starts with intents that were found open.
    pub(super) fn found(sequences: impl Iterator<Item = u64>) -> OpenCalls {
        OpenCalls(sequences.collect())
    }

    /// Takes note of a record's members, written as record `sequence`.
    pub(super) fn pass(&mut self, members: &[u8], sequence: u64) {
        if members.starts_with(br#""kind":"intent""#) {
            self.0.insert(sequence);
        } else if members.starts_with(br#""kind":"outcome""#)
            && let Some(intent) = intent_of(members)
        {
            self.0.remove(&intent);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The oldest one.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.0.first().copied()
    }
}

/// The member `intent`. A quote inside a JSON string is escaped, so the name with both its quotes
/// and the colon stands nowhere else; the number is small and near the front.
fn intent_of(members: &[u8]) -> Option<u64> {
    const NAME: &[u8] = br#","intent":"#;
    let at = members
        .windows(NAME.len())
        .position(|window| window == NAME)?;
    let number = &members[at + NAME.len()..];
    let end = number.iter().position(|byte| !byte.is_ascii_digit());
    std::str::from_utf8(&number[..end.unwrap_or(number.len())])
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_closes_its_own_intent_whatever_its_texts_say() {
        let mut open = OpenCalls::found([3].into_iter());
        open.pass(br#""kind":"intent","request_id":"a""#, 7);
        open.pass(br#""kind":"refusal","intent":7"#, 8);
        open.pass(
            br#""kind":"outcome","instance":"\",\"intent\":7","intent":3,"x":1"#,
            9,
        );
        assert_eq!(open.oldest(), Some(7));
        open.pass(br#""kind":"outcome","intent":7"#, 10);
        assert_eq!(open.oldest(), None);
    }
}
