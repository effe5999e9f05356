//! `--acknowledge FILE`: what somebody has reviewed, by ids that stand for exactly that.
//!
//! A switch that lets every widening pass would be set once and stay. An id is made of the rules
//! on both sides, so that a file of them that is reviewed with the change passes that change, and
//! fails the next one.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The option.
#[derive(clap::Args)]
pub(super) struct Acknowledge {
    /// A file with the ids of what was reviewed, one a line; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    acknowledge: Option<PathBuf>,
}

/// The ids of a file.
#[derive(Default)]
pub(super) struct Acknowledged {
    ids: BTreeSet<String>,
}

impl Acknowledge {
    /// Reads the file.
    ///
    /// # Errors
    /// Why it cannot be used, for the operator.
    pub(super) fn read(&self) -> Result<Acknowledged, String> {
        let Some(file) = &self.acknowledge else {
            return Ok(Acknowledged::default());
        };
        let shown = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
        let mut ids = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let id = line.split('#').next().unwrap_or_default().trim();
            if id.is_empty() {
                continue;
            }
            let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if id.len() != 32 || !id.bytes().all(digits) {
                let line = number + 1;
                return Err(format!(
                    "`{shown}`, line {line}: not an id; ids have 32 hexadecimal digits"
                ));
            }
            ids.insert(id.to_owned());
        }
        Ok(Acknowledged { ids })
    }
}

impl Acknowledged {
    /// Whether an id was reviewed.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Warns of ids that stand for nothing in `found`: they were reviewed for something else.
    pub(super) fn warn_stale<'f>(&self, found: impl Iterator<Item = &'f str>) {
        let found: BTreeSet<&str> = found.collect();
        for id in self.ids.iter().filter(|id| !found.contains(id.as_str())) {
            eprintln!("warning: `{id}` is acknowledged and stands for nothing here: remove it");
        }
    }
}
