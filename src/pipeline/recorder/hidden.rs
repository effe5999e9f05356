//! What a record shows of a request where `audit.redact` hides something.

use super::Recorder;
use crate::a2a::Call;
use crate::a2a::reader::ArtifactNote;
use crate::audit::record::{Id, Ids};
use crate::audit::redact::hidden::{Addresses, Class, HidingKey};
use crate::identity::{Actor, ClaimState, ClaimValue, Principal};
use std::net::{IpAddr, Ipv6Addr};

/// A caller by tokens: made once for a token and kept with it.
#[derive(Debug, PartialEq)]
pub struct HiddenCaller {
    pub(in crate::pipeline) subject: Box<str>,
    pub(in crate::pipeline) client: Option<Box<str>>,
    pub(in crate::pipeline) actors: Vec<Actor>,
    /// Values of claims that are one of these, in the order of the issuer's claims.
    pub(in crate::pipeline) claims: Vec<Option<ClaimValue>>,
}

impl HiddenCaller {
    fn of(principal: &Principal, key: &HidingKey) -> HiddenCaller {
        let hide = |text: &str| -> Box<str> { key.hide(Class::Subject, text).into() };
        // Whatever a claim is called: if it says who it is, it is hidden.
        let tells = |text: &str| {
            let mut actors = principal.actors.iter();
            *principal.subject == *text
                || principal.client.as_deref() == Some(text)
                || actors.any(|actor| *actor.subject == *text)
        };
        let claim = |state: &ClaimState| match state {
            ClaimState::Value(ClaimValue::String(text)) if tells(text) => {
                Some(ClaimValue::String(hide(text)))
            }
            ClaimState::Value(ClaimValue::Strings(all)) if all.iter().any(|text| tells(text)) => {
                let texts = all.iter().map(|text| match tells(text) {
                    true => hide(text),
                    false => text.clone(),
                });
                Some(ClaimValue::Strings(texts.collect()))
            }
            _ => None,
        };
        HiddenCaller {
            subject: hide(&principal.subject),
            client: principal.client.as_deref().map(hide),
            actors: principal
                .actors
                .iter()
                .map(|actor| Actor {
                    subject: hide(&actor.subject),
                    issuer: actor.issuer.clone(),
                })
                .collect(),
            claims: principal.claims.iter().map(claim).collect(),
        }
    }
}

/// What a record shows instead of what it hides. Nothing is made where nothing is hidden.
#[derive(Default)]
pub(super) struct Hidden {
    pub(super) address: Option<String>,
    pub(super) ids: Option<HiddenIds>,
}

/// Ids of a call by tokens.
#[derive(Default)]
pub(super) struct HiddenIds {
    pub(super) message: Option<String>,
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    pub(super) push_config: Option<String>,
    pub(super) references: Vec<Box<str>>,
    pub(super) path: Option<String>,
}

impl Hidden {
    /// An id of a call as it is recorded.
    pub(super) fn id<'s>(
        &'s self,
        token: fn(&HiddenIds) -> &Option<String>,
        plain: Option<&'s str>,
    ) -> Option<Id<'s>> {
        match &self.ids {
            Some(ids) => token(ids).as_deref().map(Id),
            None => plain.map(Id),
        }
    }

    /// The tasks that a call refers to, as they are recorded.
    pub(super) fn references<'s>(&'s self, call: Option<&'s Call>) -> Ids<'s> {
        match (&self.ids, call) {
            (Some(ids), _) => Ids(&ids.references),
            (None, Some(call)) => Ids(&call.reference_task_ids),
            (None, None) => Ids::default(),
        }
    }

    /// A path as it is recorded.
    pub(super) fn path<'s>(&'s self, plain: Option<&'s str>) -> Option<&'s str> {
        let hidden = self.ids.as_ref().and_then(|ids| ids.path.as_deref());
        hidden.or(plain)
    }
}

/// The same of a reply.
#[derive(Default)]
pub(super) struct HiddenReply {
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    pub(super) artifacts: Vec<ArtifactNote>,
}

impl Recorder {
    /// Who called, where that is hidden.
    pub(super) fn hidden_caller(&self) -> Option<&HiddenCaller> {
        let verified = self.verified.as_ref()?;
        let hides = self.live.snapshot.redact.subjects;
        hides.then(|| {
            let key = &self.gate.fingerprints;
            let made = || HiddenCaller::of(&verified.principal, key);
            verified.hidden.get_or_init(made)
        })
    }

    /// What else is hidden of the request.
    pub(super) fn hidden(&self) -> Hidden {
        let redact = self.live.snapshot.redact;
        let key = &self.gate.fingerprints;
        Hidden {
            address: match redact.addresses {
                Addresses::Plain => None,
                Addresses::Hidden => {
                    let address = self.source.ip().to_canonical().to_string();
                    Some(key.hide(Class::Address, &address))
                }
                Addresses::Prefix => Some(prefix(self.source.ip())),
            },
            ids: redact.ids.then(|| self.hidden_ids(key)),
        }
    }

    fn hidden_ids(&self, key: &HidingKey) -> HiddenIds {
        let hide = |id: &str| key.hide(Class::Id, id);
        let of = |pick: fn(&Call) -> Option<&str>| self.call.as_ref().and_then(pick).map(hide);
        let references = self.call.iter().flat_map(|call| &call.reference_task_ids);
        HiddenIds {
            message: of(|call| call.message_id.as_deref()),
            task: of(|call| call.task_id.as_deref()),
            context: of(|call| call.context_id.as_deref()),
            push_config: of(|call| call.push_config_id.as_deref()),
            references: references.map(|id| hide(id).into()).collect(),
            path: self.path.as_deref().and_then(without_ids),
        }
    }

    /// What is hidden of the reply; `None`: nothing.
    pub(super) fn hidden_reply(&self) -> Option<HiddenReply> {
        let hide = |id: &str| self.gate.fingerprints.hide(Class::Id, id);
        self.live.snapshot.redact.ids.then(|| HiddenReply {
            task: self.reply.task_id.as_deref().map(hide),
            context: self.reply.context_id.as_deref().map(hide),
            artifacts: self
                .reply
                .artifacts
                .iter()
                .map(|note| ArtifactNote {
                    id: note.id.as_deref().map(|id| hide(id).into()),
                    ..note.clone()
                })
                .collect(),
        })
    }
}

/// A path up to the collection of tasks, below which ids stand; `None` where it has none.
fn without_ids(path: &str) -> Option<String> {
    let at = path.find("/tasks/")?;
    Some(format!("{}/tasks/…", &path[..at]))
}

/// The network of an address: /24, or /56 of IPv6.
fn prefix(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(ip) => {
            let bits = u128::from(ip) & !(u128::MAX >> 56);
            format!("{}/56", Ipv6Addr::from(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_network_only() {
        for (address, expected) in [
            ("203.0.113.9", "203.0.113.0/24"),
            ("::ffff:203.0.113.9", "203.0.113.0/24"),
            ("2001:db8:1:2345:6789::1", "2001:db8:1:2300::/56"),
        ] {
            let address: IpAddr = address.parse().unwrap_or(IpAddr::V4([0; 4].into()));
            assert_eq!(prefix(address), expected);
        }
    }

    #[test]
    fn a_path_ends_where_its_ids_begin() {
        for (path, expected) in [
            ("/agents/a/v1/tasks/t1:cancel", Some("/agents/a/v1/tasks/…")),
            ("/a/tasks/t/pushNotificationConfigs/p", Some("/a/tasks/…")),
            ("/agents/a/message:send", None),
            ("/agents/a/tasks", None),
        ] {
            assert_eq!(without_ids(path).as_deref(), expected, "{path}");
        }
    }
}
