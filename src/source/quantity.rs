//! Quantities with units, and near misses of names.

use std::time::Duration;

/// The candidate that `word` was probably meant to be: the same but for letter case, `-` and `_`,
/// or at most two edits away (one, for short words).
pub fn suggest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    const LONGEST: usize = 64;
    if word.is_empty() || word.chars().nth(LONGEST).is_some() {
        return None;
    }
    let fold = |s: &str| s.to_lowercase().replace('-', "_");
    let folded = fold(word);
    let allowed = if folded.chars().count() <= 4 { 1 } else { 2 };
    candidates
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, cb) in row.iter_mut().skip(1).zip(&b) {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = *cell;
            left = cost.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

const DURATIONS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZES: [(&str, u64); 5] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads a duration such as `15m`: a whole number and one of ms, s, m, h, d.
pub fn parse_duration(text: &str) -> Option<Duration> {
    quantity(text, &DURATIONS).map(Duration::from_millis)
}

/// Reads a size such as `10MiB` into bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    quantity(text, &SIZES)
}

fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(u, _)| *u == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A duration in its largest exact unit.
pub fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    show(millis, &DURATIONS)
}

/// A size in its largest exact unit.
pub fn show_size(bytes: u64) -> String {
    show(bytes, &SIZES)
}

fn show(amount: u64, units: &[(&str, u64)]) -> String {
    let fitting = units
        .iter()
        .rev()
        .find(|(_, factor)| amount >= *factor && amount.is_multiple_of(*factor));
    match fitting {
        Some((unit, factor)) => format!("{}{unit}", amount / factor),
        None => format!("{amount}{}", units.first().map_or("", |(unit, _)| unit)),
    }
}
