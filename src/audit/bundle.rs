//! Which records belong into an evidence bundle: [`spans`].
//!
//! A record is proven by the lines from it to the next checkpoint: each names the hash of the one
//! before, and the checkpoint's signature covers the last. So a bundle holds whole spans that end
//! in a checkpoint; what stands between two spans is left out.

use std::collections::BTreeMap;

/// The name of the file that says what a bundle holds.
pub const MANIFEST: &str = "bundle.json";

/// A run of records, both ends included, by sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first record.
    pub first: u64,
    /// The checkpoint that covers it.
    pub last: u64,
}

/// The spans that prove the wanted records, in order and apart from each other, and the first
/// wanted record that no checkpoint covers. Both lists are in ascending order.
pub fn spans(wanted: &[u64], checkpoints: &[u64]) -> (Vec<Span>, Option<u64>) {
    let mut found: Vec<Span> = Vec::new();
    for first in wanted.iter().copied() {
        let next = checkpoints.partition_point(|checkpoint| *checkpoint < first);
        let Some(last) = checkpoints.get(next).copied() else {
            return (found, Some(first));
        };
        match found.last_mut() {
            Some(span) if first <= span.last.saturating_add(1) => span.last = last.max(span.last),
            Some(_) | None => found.push(Span { first, last }),
        }
    }
    (found, None)
}

/// The records that put the policies of these calls in force: for each call, by sequence number and
/// digest, the last such record before it.
///
/// # Errors
/// The digest that no record before its call has put in force.
pub fn in_force<'d>(
    calls: &[(u64, Box<str>)],
    configs: &'d BTreeMap<Box<str>, Vec<u64>>,
) -> Result<BTreeMap<&'d str, Vec<u64>>, Box<str>> {
    let mut needed: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (call, digest) in calls {
        let (digest, loaded) = configs.get_key_value(digest).ok_or(digest.clone())?;
        let before = loaded.partition_point(|sequence| sequence < call);
        let last = before.checked_sub(1).and_then(|at| loaded.get(at));
        let last = *last.ok_or(digest.clone())?;
        let list = needed.entry(digest).or_default();
        if !list.contains(&last) {
            list.push(last);
        }
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_policy_was_put_in_force_before_the_call() {
        let digest = Box::<str>::from;
        let configs = BTreeMap::from([(digest("a"), vec![2, 20]), (digest("b"), vec![10])]);
        let calls = [
            (3, digest("a")),
            (4, digest("a")),
            (11, digest("b")),
            (21, digest("a")),
        ];
        let needed = in_force(&calls, &configs).unwrap();
        assert_eq!(
            needed,
            BTreeMap::from([("a", vec![2, 20]), ("b", vec![10])])
        );
        assert_eq!(in_force(&[(1, digest("a"))], &configs), Err(digest("a")));
        assert_eq!(in_force(&[(9, digest("c"))], &configs), Err(digest("c")));
    }

    proptest! {
        #[test]
        fn every_wanted_record_is_in_a_span_that_ends_in_a_checkpoint(
            records in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.2)), 0..60),
        ) {
            let picked = |pick: fn(&(bool, bool)) -> bool| -> Vec<u64> {
                let numbered = (1u64..).zip(&records);
                numbered.filter(|(_, record)| pick(record)).map(|(sequence, _)| sequence).collect()
            };
            let (wanted, checkpoints) = (picked(|r| r.0), picked(|r| r.1));
            let (spans, uncovered) = spans(&wanted, &checkpoints);
            for sequence in &wanted {
                let within = spans.iter().any(|s| s.first <= *sequence && *sequence <= s.last);
                prop_assert!(within || uncovered.is_some_and(|first| first <= *sequence));
            }
            for span in &spans {
                prop_assert!(checkpoints.contains(&span.last) && wanted.contains(&span.first));
            }
            prop_assert!(spans.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
        }
    }
}
