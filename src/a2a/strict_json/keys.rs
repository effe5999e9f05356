//! Seeing that no object has a member name twice.
//!
//! Small objects are scanned, big ones sorted: unlike a hash table without a secret, sorting has no
//! bad input, so the cost stays near linear whatever the names.

use super::JsonFault;
use super::scan::Text;

/// Objects up to this many members are scanned.
const SCANNED: usize = 16;

/// The member names of all open objects, innermost last.
#[derive(Debug)]
pub(super) struct Keys {
    names: Vec<Name>,
    /// Names that had escapes, unescaped once.
    unescaped: String,
}

/// How much of [`Keys`] there was at some time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    names: usize,
    unescaped: usize,
}

#[derive(Debug, Clone, Copy)]
enum Name {
    Plain(Text),
    /// The end of its text in [`Keys::unescaped`]; the start is `end - length`.
    Unescaped {
        end: u32,
        length: u32,
    },
}

impl Name {
    fn text<'a>(&self, input: &'a str, unescaped: &'a str) -> &'a str {
        match self {
            Name::Plain(text) => text.raw(input),
            Name::Unescaped { end, length } => unescaped
                .get((end - length) as usize..*end as usize)
                .unwrap_or_default(),
        }
    }
}

impl Keys {
    /// None yet, with room for the open objects of an ordinary request.
    pub(super) fn new() -> Keys {
        Keys {
            names: Vec::with_capacity(32),
            unescaped: String::new(),
        }
    }

    /// How much there is.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            names: self.names.len(),
            unescaped: self.unescaped.len(),
        }
    }

    /// Goes back to what there was.
    pub(super) fn forget(&mut self, seen: Seen) {
        self.names.truncate(seen.names);
        self.unescaped.truncate(seen.unescaped);
    }

    /// Takes one more name of the innermost object, which began at `outer`.
    pub(super) fn remember(
        &mut self,
        key: Text,
        outer: Seen,
        input: &str,
    ) -> Result<(), JsonFault> {
        let name = if key.is_escaped() {
            self.unescape(key, input)?
        } else {
            Name::Plain(key)
        };
        let siblings = &self.names[outer.names..];
        if siblings.len() < SCANNED {
            let text = name.text(input, &self.unescaped);
            let twice = |other: &Name| other.text(input, &self.unescaped) == text;
            if siblings.iter().any(twice) {
                return Err(JsonFault::DuplicateKey);
            }
        }
        self.names.push(name);
        Ok(())
    }

    /// Judges the innermost object as it is left.
    pub(super) fn leave(&mut self, outer: Seen, input: &str) -> Result<(), JsonFault> {
        let unescaped = &*self.unescaped;
        let siblings = &mut self.names[outer.names..];
        if siblings.len() > SCANNED {
            let text = |name: &Name| name.text(input, unescaped);
            siblings.sort_unstable_by(|a, b| text(a).cmp(text(b)));
            if siblings
                .windows(2)
                .any(|pair| text(&pair[0]) == text(&pair[1]))
            {
                return Err(JsonFault::DuplicateKey);
            }
        }
        self.forget(outer);
        Ok(())
    }

    fn unescape(&mut self, key: Text, input: &str) -> Result<Name, JsonFault> {
        let start = self.unescaped.len();
        self.unescaped.extend(key.characters(input));
        let position = |at: usize| u32::try_from(at).map_err(|_| JsonFault::TooLong);
        Ok(Name::Unescaped {
            end: position(self.unescaped.len())?,
            length: position(self.unescaped.len() - start)?,
        })
    }
}
