//! Which of a card's interfaces we offer, and under which public addresses.

use super::Interface;
use super::address::Address;
use super::fault::{CardFault, DropReason, DroppedInterface};
use super::read::{Member, Node, find};
use super::rewrite::Publication;
use super::security::{Shapes, quoted};
use crate::a2a::operation::{Binding, Dialect, Version, Versions};

/// More paths than any agent has; it bounds the search for a path that is taken.
const MAX_INTERFACES: usize = 64;

/// The members that carry addresses, in both shapes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses<'n, 'a> {
    url: Option<&'n str>,
    transport: Option<&'n str>,
    version: Option<&'n str>,
    additional: &'n [Node<'a>],
    supported: &'n [Node<'a>],
}

impl<'n, 'a> Addresses<'n, 'a> {
    /// Finds them among a card's top-level members.
    pub(super) fn find(card: &'n [Member<'a>]) -> Result<Self, CardFault> {
        Ok(Addresses {
            url: text(card, "url")?,
            transport: text(card, "preferredTransport")?,
            version: text(card, "protocolVersion")?,
            additional: array(card, "additionalInterfaces")?,
            supported: array(card, "supportedInterfaces")?,
        })
    }
}

/// One address of the published card.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) url: String,
    pub(super) dialect: Dialect,
    /// The version as the card spells it, when the card said it.
    version: Option<String>,
}

/// Everything about addresses that the published card needs.
#[derive(Debug, Default)]
pub(super) struct Offer {
    /// `url` and `preferredTransport`.
    pub(super) main: Option<Entry>,
    pub(super) additional: Vec<Entry>,
    pub(super) supported: Vec<Entry>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) dropped: Vec<DroppedInterface>,
    /// Paths of tenants that were left out: a client would send them back, and no tenant is a
    /// caller's to name (`a2a-protocol.md` b.2).
    pub(super) tenants: Vec<Box<str>>,
}

impl Offer {
    /// Chooses and maps the interfaces.
    pub(super) fn make(
        addresses: &Addresses<'_, '_>,
        publication: &Publication<'_>,
    ) -> Result<Offer, CardFault> {
        let mut offer = match publication.listed {
            Some(listed) => Offer::from_list(listed, addresses, publication),
            None => Offer::from_card(addresses, publication),
        };
        // A main endpoint that we cannot offer gives way to the first alternative that we can.
        if offer.main.is_none() && !offer.additional.is_empty() {
            let first = &offer.additional[0];
            offer.main = Some(Entry {
                url: first.url.clone(),
                dialect: first.dialect,
                version: None,
            });
        }
        if offer.main.is_none() && offer.supported.is_empty() {
            return Err(CardFault::NoInterface(offer.dropped));
        }
        Ok(offer)
    }

    /// The shapes that have an address left.
    pub(super) fn shapes(&self) -> Shapes {
        Shapes {
            v0_3: self.main.is_some(),
            v1_0: !self.supported.is_empty(),
        }
    }

    fn from_card(addresses: &Addresses<'_, '_>, publication: &Publication<'_>) -> Offer {
        let mut offer = Offer::default();
        // A card of the older shape may say 1.0 when the newer shape is absent; in a hybrid the
        // older members are for clients of 0.3 only.
        let version = match (addresses.supported, addresses.version) {
            ([], Some(version)) => older_shape_version(version),
            ([..], _) => Some(Version::V0_3),
        };
        // The newer shape comes first, so that its order decides where paths collide.
        for (position, node) in addresses.supported.iter().enumerate() {
            let Node::Object(members) = node else {
                offer.reject("", DropReason::Address);
                continue;
            };
            let url = find(members, "url").and_then(Node::text).unwrap_or("");
            let binding = find(members, "protocolBinding").and_then(Node::text);
            let version = find(members, "protocolVersion").and_then(Node::text);
            if find(members, "tenant").is_some() {
                let path = format!("supportedInterfaces[{position}].tenant");
                offer.tenants.push(path.into());
            }
            let known = version.and_then(version_of);
            if let Some(mut entry) = offer.place(url, binding, known, publication) {
                entry.version = version.map(str::to_owned);
                offer.supported.push(entry);
            }
        }
        // Of the older shape only what the signed one names as well, where that matters.
        let covered = offer.interfaces.clone();
        let known = offer.dropped.len();
        let reachable = match publication.covered_only {
            true => Some(covered.as_slice()),
            false => publication.reachable,
        };
        let publication = &Publication {
            reachable,
            ..*publication
        };
        if let Some(url) = addresses.url {
            let transport = addresses.transport.or(Some("JSONRPC"));
            offer.main = offer.place(url, transport, version, publication);
        }
        if addresses.url.is_some() {
            for node in addresses.additional {
                let Node::Object(members) = node else {
                    offer.reject("", DropReason::Address);
                    continue;
                };
                let url = find(members, "url").and_then(Node::text).unwrap_or("");
                let transport = find(members, "transport").and_then(Node::text);
                if let Some(entry) = offer.place(url, transport, version, publication) {
                    offer.additional.push(entry);
                }
            }
        }
        let older = offer.dropped.iter_mut().skip(known);
        for dropped in older.filter(|d| d.reason == DropReason::NotReachable) {
            if publication.covered_only {
                dropped.reason = DropReason::NotCovered;
            }
        }
        offer
    }

    /// With a list, the operator says everything; the card only keeps its shape and tenants.
    fn from_list(
        listed: &[Interface],
        addresses: &Addresses<'_, '_>,
        publication: &Publication<'_>,
    ) -> Offer {
        let mut offer = Offer::default();
        for interface in listed {
            let mut versions = Versions::default();
            for dialect in publication.offered {
                if dialect.binding == interface.binding
                    && interface.versions.contains(dialect.version)
                {
                    versions.insert(dialect.version);
                }
            }
            let entry = |version| Entry {
                url: match (interface.binding, publication.grpc_authority) {
                    (Binding::Grpc, Some(authority)) => authority.to_owned(),
                    (Binding::JsonRpc | Binding::Rest | Binding::Grpc, _) => {
                        format!("{}{}", publication.public_base, interface.public_path)
                    }
                },
                dialect: Dialect {
                    binding: interface.binding,
                    version,
                },
                version: None,
            };
            if versions.v1_0 && !addresses.supported.is_empty() {
                offer.supported.push(entry(Version::V1_0));
            }
            if versions.v0_3 && !addresses.supported.is_empty() {
                offer.supported.push(entry(Version::V0_3));
            }
            if versions.v0_3 && addresses.url.is_some() {
                offer.additional.push(entry(Version::V0_3));
            }
            if versions != Versions::default() {
                offer.interfaces.push(Interface {
                    versions,
                    ..interface.clone()
                });
            }
        }
        // One address is said by `url` alone; more need the array.
        if offer.additional.len() == 1 && addresses.additional.is_empty() {
            offer.main = offer.additional.pop();
        }
        offer
    }

    /// Maps one address of the card to its public form, or notes why it is left out.
    fn place(
        &mut self,
        url: &str,
        binding: Option<&str>,
        version: Option<Version>,
        publication: &Publication<'_>,
    ) -> Option<Entry> {
        match self.try_place(url, binding, version, publication) {
            Ok(entry) => Some(entry),
            Err(reason) => {
                self.reject(url, reason);
                None
            }
        }
    }

    fn try_place(
        &mut self,
        url: &str,
        binding: Option<&str>,
        version: Option<Version>,
        publication: &Publication<'_>,
    ) -> Result<Entry, DropReason> {
        let binding = binding.and_then(binding_of).ok_or(DropReason::Binding)?;
        let version = version.ok_or(DropReason::Version)?;
        let dialect = Dialect { binding, version };
        if !publication.offered.contains(&dialect) {
            let bound = publication.offered.iter().any(|o| o.binding == binding);
            return Err(if bound {
                DropReason::Version
            } else {
                DropReason::Binding
            });
        }
        let address = Address::parse(url).ok_or(DropReason::Address)?;
        if binding == Binding::Grpc {
            return self.place_grpc(&address, dialect, publication);
        }
        if !address.is_own(publication) {
            return Err(DropReason::Origin);
        }
        let below = below_base(&address, publication.backend_base_path)?;
        if !is_reachable(below, dialect, publication) {
            return Err(DropReason::NotReachable);
        }
        self.offer_path(below, address.path, dialect)?;
        Ok(Entry {
            url: format!("{}{below}", publication.public_base),
            dialect,
            version: None,
        })
    }

    /// gRPC has no path; its address is written with or without a scheme, and published without
    /// (`a2a-protocol.md` b.3, FC-10). Calls go to the configured address, so one that names
    /// another port is no interface of this backend.
    fn place_grpc(
        &mut self,
        address: &Address<'_>,
        dialect: Dialect,
        publication: &Publication<'_>,
    ) -> Result<Entry, DropReason> {
        let authority = publication.grpc_authority.ok_or(DropReason::Binding)?;
        if !address.is_own_port(publication) {
            return Err(DropReason::Origin);
        }
        if address.extras {
            return Err(DropReason::Query);
        }
        if !matches!(address.path, "" | "/") {
            return Err(DropReason::Path);
        }
        if !is_reachable("", dialect, publication) {
            return Err(DropReason::NotReachable);
        }
        self.offer_at("", "", dialect)?;
        Ok(Entry {
            url: authority.to_owned(),
            dialect,
            version: None,
        })
    }

    fn offer_path(
        &mut self,
        below: &str,
        backend_path: &str,
        dialect: Dialect,
    ) -> Result<(), DropReason> {
        let public_path = below.strip_suffix('/').unwrap_or(below);
        let backend_path = if backend_path.is_empty() {
            "/"
        } else {
            backend_path
        };
        self.offer_at(public_path, backend_path, dialect)
    }

    fn offer_at(
        &mut self,
        public_path: &str,
        backend_path: &str,
        dialect: Dialect,
    ) -> Result<(), DropReason> {
        let full = self.interfaces.len() >= MAX_INTERFACES;
        let known = self
            .interfaces
            .iter_mut()
            .find(|i| *i.public_path == *public_path && i.binding == dialect.binding);
        match known {
            // The same public path cannot lead to two places.
            Some(known) if *known.backend_path != *backend_path => Err(DropReason::PathTaken),
            Some(known) => {
                known.versions.insert(dialect.version);
                Ok(())
            }
            None if full => Err(DropReason::TooMany),
            None => {
                let mut versions = Versions::default();
                versions.insert(dialect.version);
                self.interfaces.push(Interface {
                    public_path: public_path.into(),
                    backend_path: backend_path.into(),
                    binding: dialect.binding,
                    versions,
                    backend: 0,
                });
                Ok(())
            }
        }
    }

    fn reject(&mut self, url: &str, reason: DropReason) {
        self.dropped.push(DroppedInterface {
            address: url.into(),
            reason,
        });
    }
}

impl Entry {
    /// An element of `supportedInterfaces`.
    pub(super) fn write_supported(&self, out: &mut String) {
        out.push_str("{\"url\":");
        out.push_str(&quoted(&self.url));
        out.push_str(",\"protocolBinding\":");
        out.push_str(&quoted(self.dialect.binding.card_name()));
        out.push_str(",\"protocolVersion\":");
        let version = self.version.as_deref();
        out.push_str(&quoted(version.unwrap_or(self.dialect.version.label())));
        out.push('}');
    }

    /// An element of `additionalInterfaces`.
    pub(super) fn write_additional(&self, out: &mut String) {
        out.push_str("{\"url\":");
        out.push_str(&quoted(&self.url));
        out.push_str(",\"transport\":");
        out.push_str(&quoted(self.dialect.binding.card_name()));
        out.push('}');
    }
}

/// What of the address's path lies below the backend's base path: empty or with a leading slash.
///
/// The base path is compared byte for byte (FC-20) and ends at a segment boundary (FC-02). What
/// is below must read the same in every spelling: whatever would need decoding or normalising
/// can only be offered by listing it.
fn below_base<'a>(address: &Address<'a>, base: &str) -> Result<&'a str, DropReason> {
    if address.extras {
        return Err(DropReason::Query);
    }
    let below = address.path.strip_prefix(base).ok_or(DropReason::Path)?;
    if below.is_empty() || below == "/" {
        return Ok(below);
    }
    let segments = below.strip_prefix('/').ok_or(DropReason::Path)?;
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    let plain = segments.split('/').all(|segment| {
        !matches!(segment, "" | "." | ".." | ".well-known")
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte))
    });
    if plain {
        Ok(below)
    } else {
        Err(DropReason::Path)
    }
}

/// Whether callers are let through to it.
fn is_reachable(below: &str, dialect: Dialect, publication: &Publication<'_>) -> bool {
    let path = below.strip_suffix('/').unwrap_or(below);
    publication.reachable.is_none_or(|reachable| {
        reachable.iter().any(|interface| {
            *interface.public_path == *path
                && interface.binding == dialect.binding
                && interface.versions.contains(dialect.version)
        })
    })
}

fn binding_of(name: &str) -> Option<Binding> {
    [Binding::JsonRpc, Binding::Rest, Binding::Grpc]
        .into_iter()
        .find(|binding| binding.card_name() == name)
}

/// Patch numbers never matter (A2A 1.0 section 3.6), but nothing else may follow: the text is
/// published.
fn version_of(text: &str) -> Option<Version> {
    if text
        .bytes()
        .any(|byte| !byte.is_ascii_digit() && byte != b'.')
    {
        return None;
    }
    let mut numbers = text.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("1"), Some("0")) => Some(Version::V1_0),
        (Some("0"), Some("3")) => Some(Version::V0_3),
        _ => None,
    }
}

/// Cards of 0.2 have the older shape and the spellings of 0.3.
fn older_shape_version(text: &str) -> Option<Version> {
    match text.starts_with("0.2.") || text == "0.2" || text.is_empty() {
        true => Some(Version::V0_3),
        false => version_of(text),
    }
}

fn text<'n>(card: &'n [Member<'_>], name: &'static str) -> Result<Option<&'n str>, CardFault> {
    match find(card, name) {
        // Protobuf writers may spell an absent string so.
        Some(Node::Text(_, text)) if text.is_empty() => Ok(None),
        Some(Node::Text(_, text)) => Ok(Some(text)),
        Some(_) => Err(CardFault::WrongType(name)),
        None => Ok(None),
    }
}

fn array<'n, 'a>(card: &'n [Member<'a>], name: &'static str) -> Result<&'n [Node<'a>], CardFault> {
    match find(card, name) {
        Some(Node::Array(items)) => Ok(items),
        Some(_) => Err(CardFault::WrongType(name)),
        None => Ok(&[]),
    }
}
