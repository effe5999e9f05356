//! Where calls to an agent name the skill that they want ([`SkillRules`]).
//!
//! A2A has no field for it (`a2a-protocol.md` g). An operator declares which places count, the
//! selectors; every other spelling that agents are known to obey is read too, since one that
//! disagrees would be judged as one skill and run as another (FC-72).

mod data_path;

pub use data_path::{DataPath, Step};

use super::call::{Call, Malformed, SkillMention, SkillPlace};
use super::fault::Fault;
use super::payload_json::fold_alike;
use http::header::{CONNECTION, HeaderName};
use http::{HeaderMap, HeaderValue};

/// Keys of metadata, and of a data part, by which public agents let a skill be named.
const KNOWN_KEYS: [&str; 3] = ["skillId", "skill_id", "skill"];

/// Longer strings cannot name a skill.
const MAX_SKILL_CHARS: usize = 256;

/// One entry of `skill_from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A key of the message's metadata.
    Metadata(Box<str>),
    /// A key of the request's metadata.
    RequestMetadata(Box<str>),
    /// A value within the data parts of the message.
    Data(DataPath),
    /// A header field; gRPC calls it metadata.
    Header(HeaderName),
    /// The path of the interface; it is no part of the call, so nothing is read here.
    Path,
}

/// The selectors of one agent, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRules {
    selectors: Vec<Selector>,
    keys: Vec<MetadataKey>,
}

/// A key of metadata that may name a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MetadataKey {
    name: Box<str>,
    /// Whether it is a selector, in the message's metadata or in the request's.
    declared: bool,
    in_message: Option<usize>,
    in_request: Option<usize>,
}

impl SkillRules {
    /// Compiles selectors; their order is the order in which they are named in records.
    pub fn new(selectors: Vec<Selector>) -> SkillRules {
        let mut keys: Vec<MetadataKey> = Vec::new();
        for (index, selector) in selectors.iter().enumerate() {
            let (name, in_message) = match selector {
                Selector::Metadata(name) => (name, true),
                Selector::RequestMetadata(name) => (name, false),
                Selector::Data(_) | Selector::Header(_) | Selector::Path => continue,
            };
            let at = keys.iter().position(|key| key.name == *name);
            let at = at.unwrap_or_else(|| {
                keys.push(MetadataKey {
                    name: name.clone(),
                    declared: true,
                    in_message: None,
                    in_request: None,
                });
                keys.len() - 1
            });
            if let Some(key) = keys.get_mut(at) {
                match in_message {
                    true => key.in_message = Some(index),
                    false => key.in_request = Some(index),
                }
            }
        }
        // One that folds to a selector is refused before it could say anything.
        for known in KNOWN_KEYS {
            if !keys.iter().any(|key| fold_alike(&key.name, known)) {
                keys.push(MetadataKey {
                    name: known.into(),
                    declared: false,
                    in_message: None,
                    in_request: None,
                });
            }
        }
        SkillRules { selectors, keys }
    }

    /// The entries of `skill_from`, in order.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// What a key of metadata is: of no interest, or a mention, by which selector if by one.
    ///
    /// # Errors
    /// A code: the key folds to a selector without being one (`design.md` section 6).
    pub(super) fn key(
        &self,
        key: &str,
        in_message: bool,
    ) -> Result<Option<Option<usize>>, &'static str> {
        if let Some(found) = self.keys.iter().find(|known| *known.name == *key) {
            return Ok(Some(match in_message {
                true => found.in_message,
                false => found.in_request,
            }));
        }
        let mut declared = self.keys.iter().filter(|known| known.declared);
        match declared.any(|known| fold_alike(&known.name, key)) {
            true => Err("inexact_selector"),
            false => Ok(None),
        }
    }

    /// The selectors within data parts.
    pub(super) fn data(&self) -> impl Iterator<Item = (usize, &DataPath)> {
        self.selectors
            .iter()
            .enumerate()
            .filter_map(|(index, selector)| match selector {
                Selector::Data(path) => Some((index, path)),
                Selector::Metadata(_)
                | Selector::RequestMetadata(_)
                | Selector::Header(_)
                | Selector::Path => None,
            })
    }

    /// Whether a key of a data part may name a skill and is no selector.
    pub(super) fn is_unselected(&self, key: &str) -> bool {
        let mut paths = self.data().map(|(_, path)| path.steps());
        KNOWN_KEYS.contains(&key)
            && !paths.any(|steps| matches!(steps, [Step::Name(name)] if **name == *key))
    }

    /// Adds what the header fields mention. The field goes to the agent as it came.
    ///
    /// # Errors
    /// [`Malformed`] when the agent would be told otherwise: a field that `Connection` names is
    /// dropped on the way, and servers of the CGI kind take `_` for `-`.
    pub(super) fn read_headers(
        &self,
        headers: &HeaderMap,
        call: &mut Call,
    ) -> Result<(), Malformed> {
        for (index, selector) in self.selectors.iter().enumerate() {
            let Selector::Header(name) = selector else {
                continue;
            };
            if headers.keys().any(|other| is_alias(other, name)) {
                return Err(unclear(call, "inexact_selector"));
            }
            let mut values = headers.get_all(name).iter();
            let Some(first) = values.next() else {
                continue;
            };
            if is_dropped(headers, name) {
                return Err(unclear(call, "selector_dropped"));
            }
            let value = match values.next() {
                None => visible(first),
                Some(_) => None,
            };
            call.skill_mentions.push(SkillMention {
                selector: Some(index),
                place: SkillPlace::Header,
                value,
            });
        }
        Ok(())
    }
}

/// A text as a mention has it: `None` when it is too long for a skill.
pub(super) fn mentioned(text: &str) -> Option<Box<str>> {
    let fits = text.chars().take(MAX_SKILL_CHARS + 1).count() <= MAX_SKILL_CHARS;
    fits.then(|| text.into())
}

fn unclear(call: &Call, code: &'static str) -> Malformed {
    Malformed {
        rpc_id: call.rpc_id.clone(),
        version: Some(call.dialect.version),
        operation: Some(call.operation),
        ..Malformed::before_body(Fault::InvalidParams, code)
    }
}

/// Whether a server could take the field `other` for `name`.
fn is_alias(other: &HeaderName, name: &HeaderName) -> bool {
    let (other, name) = (other.as_str(), name.as_str());
    other != name
        && other.len() == name.len()
        && other
            .bytes()
            .zip(name.bytes())
            .all(|(byte, want)| byte == want || (byte == b'_' && want == b'-'))
}

fn is_dropped(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|token| {
            token
                .trim_ascii()
                .eq_ignore_ascii_case(name.as_str().as_bytes())
        })
}

/// The value if all of it is visible ASCII: what is trimmed or decoded differs between servers.
fn visible(value: &HeaderValue) -> Option<Box<str>> {
    let text = value.to_str().ok()?;
    let good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| mentioned(text)).flatten()
}
