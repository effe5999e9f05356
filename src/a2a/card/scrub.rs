//! Looks through what a card keeps for the backend's address.

use super::address::names_backend;
use super::read::{Member, Node};
use super::rewrite::Publication;

/// Members that a shape requires or that identify something: they are reported, never removed,
/// except inside an extension's `params`, which have no shape.
const KEPT: [&str; 6] = [
    "name",
    "description",
    "id",
    "uri",
    "version",
    "protocolVersion",
];

/// Finds the backend's address in strings.
pub(super) struct Scrubber<'p> {
    publication: &'p Publication<'p>,
    /// Lower-case texts that give the backend away inside prose.
    needles: Vec<String>,
    /// Paths of members and elements that were removed.
    pub(super) removed: Vec<Box<str>>,
    /// Paths of values that name the backend and were left.
    pub(super) leaks: Vec<Box<str>>,
}

impl<'p> Scrubber<'p> {
    pub(super) fn new(publication: &'p Publication<'p>) -> Scrubber<'p> {
        let host = publication.backend_host.to_ascii_lowercase();
        let mut needles = vec![format!("{host}:{}", publication.backend_port)];
        if host.contains(':') {
            needles.push(format!("[{host}]"));
        }
        // A host without a dot, such as `agent`, is also a word.
        if host.contains('.') {
            needles.push(host);
        }
        Scrubber {
            publication,
            needles,
            removed: Vec::new(),
            leaks: Vec::new(),
        }
    }

    /// Removes members and elements that are, as a whole, an address of the backend, and reports
    /// other strings that name it. Returns whether `node` itself must go.
    pub(super) fn scrub(&mut self, node: &mut Node<'_>, path: &mut String) -> bool {
        match node {
            Node::Object(members) => {
                members.retain_mut(|member| self.scrub_member(member, path));
                false
            }
            Node::Array(items) => {
                let mut position = 0;
                items.retain_mut(|item| {
                    let kept = path.len();
                    path.push_str(&format!("[{position}]"));
                    position += 1;
                    let goes = self.scrub(item, path);
                    if goes {
                        self.removed.push(path.as_str().into());
                    }
                    path.truncate(kept);
                    !goes
                });
                false
            }
            Node::Text(_, text) => {
                let whole = names_backend(text, self.publication);
                if !whole && self.mentions(text) {
                    self.leaks.push(path.as_str().into());
                }
                whole
            }
            Node::Scalar(_) => false,
        }
    }

    /// Returns whether `member` stays.
    pub(super) fn scrub_member(&mut self, member: &mut Member<'_>, path: &mut String) -> bool {
        let kept = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&member.name);
        let goes =
            self.scrub(&mut member.value, path) || names_backend(&member.name, self.publication);
        let required = KEPT.contains(&member.name.as_ref()) && !path.contains(".params.");
        if goes && !required {
            self.removed.push(path.as_str().into());
        } else if goes || self.mentions(&member.name) {
            self.leaks.push(path.as_str().into());
        }
        path.truncate(kept);
        !goes || required
    }

    fn mentions(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.needles.iter().any(|needle| text.contains(needle))
    }
}
