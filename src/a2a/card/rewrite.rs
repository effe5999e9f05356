//! From an agent's own card to the one that we publish (`design.md` section 5).

use super::Interface;
use super::interfaces::{Addresses, Entry, Offer};
use super::read::{Member, Node, Unreadable, find, read};
use super::scrub::Scrubber;
use super::security::{SecuritySchemes, Shapes, quoted};
use crate::a2a::operation::{Binding, Dialect};
use aws_lc_rs::digest;
use bytes::Bytes;
use std::fmt::{self, Write};

/// What a published card is made from besides the agent's own: configuration only.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    /// The listener's public URL and the agent's route, without a trailing slash.
    pub public_base: &'a str,
    /// Host name or IP literal of the backend, without brackets.
    pub backend_host: &'a str,
    /// TCP port of the backend.
    pub backend_port: u16,
    /// The backend's base path: empty, or with a leading and without a trailing slash.
    pub backend_base_path: &'a str,
    /// Further origins (`scheme://host[:port]`) under which the agent may name itself.
    pub also_origins: &'a [Box<str>],
    /// Interfaces that the operator listed; the card's own addresses then count for nothing.
    pub listed: Option<&'a [Interface]>,
    /// The schemes that callers must use.
    pub schemes: &'a SecuritySchemes,
    /// What the gateway proxies.
    pub offered: &'a [Dialect],
}

/// A card that may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Compact JSON.
    pub body: Bytes,
    /// Strong entity tag over the body, quotes included.
    pub etag: Box<str>,
    /// The interfaces that the card offers.
    pub interfaces: Vec<Interface>,
    /// Ids of the skills, in the card's order.
    pub skills: Vec<Box<str>>,
    /// Interfaces that were left out.
    pub dropped: Vec<DroppedInterface>,
    /// Paths of members and elements that were an address of the backend and were removed.
    pub removed: Vec<Box<str>>,
    /// Paths of texts that name the backend and were not touched (FC-05): for the log.
    pub leaks: Vec<Box<str>>,
}

/// An interface of the agent's card that is not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedInterface {
    /// Its address as the card had it: for operators only.
    pub address: Box<str>,
    /// Why.
    pub reason: DropReason,
}

/// Why an interface is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The gateway does not proxy its binding.
    Binding,
    /// The gateway does not proxy its version, or it names none.
    Version,
    /// Its address cannot be read.
    Address,
    /// It is not on the backend's own origin.
    Origin,
    /// Its path is not below the backend's base path, or not in canonical form.
    Path,
    /// Its address has user information, a query or a fragment.
    Query,
    /// Another interface of the card has its public path and leads elsewhere.
    PathTaken,
    /// The card has more than 64 different paths.
    TooMany,
}

impl DropReason {
    /// For logs and records.
    pub fn label(self) -> &'static str {
        match self {
            DropReason::Binding => "binding_not_offered",
            DropReason::Version => "version_not_offered",
            DropReason::Address => "address_unreadable",
            DropReason::Origin => "foreign_origin",
            DropReason::Path => "path_outside_base",
            DropReason::Query => "address_with_query",
            DropReason::PathTaken => "path_taken",
            DropReason::TooMany => "too_many",
        }
    }
}

/// Why a card is withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardFault {
    /// Not UTF-8 JSON.
    NotJson,
    /// A member occurs twice in one object.
    DuplicateMember,
    /// Nested deeper than 64.
    TooDeep,
    /// Not an object with a name and an address (FC-17).
    NotACard,
    /// A member that must be understood has another type; names it.
    WrongType(&'static str),
    /// No interface is left.
    NoInterface(Vec<DroppedInterface>),
}

impl CardFault {
    /// For records and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            CardFault::NotJson => "not_json",
            CardFault::DuplicateMember => "duplicate_member",
            CardFault::TooDeep => "too_deep",
            CardFault::NotACard => "not_a_card",
            CardFault::WrongType(_) => "wrong_type",
            CardFault::NoInterface(_) => "no_interface",
        }
    }
}

impl fmt::Display for CardFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardFault::NotJson => f.write_str("the agent's card is not JSON in UTF-8"),
            CardFault::DuplicateMember => {
                f.write_str("the agent's card has a member twice in one object")
            }
            CardFault::TooDeep => f.write_str("the agent's card is nested deeper than 64"),
            CardFault::NotACard => f.write_str(
                "the agent's reply is not a card: it must be an object with `name` and \
                 `supportedInterfaces` or `url`",
            ),
            CardFault::WrongType(name) => {
                write!(f, "`{name}` in the agent's card has the wrong type")
            }
            CardFault::NoInterface(dropped) if dropped.is_empty() => f.write_str(
                "none of the listed `interfaces` has a version of the shape of the agent's card",
            ),
            CardFault::NoInterface(dropped) => {
                f.write_str("the agent's card has no interface that can be offered")?;
                for one in dropped.iter().take(SAID) {
                    write!(f, "; `{}`: {}", one.address, one.reason.label())?;
                }
                if let Some(more) = dropped.len().checked_sub(SAID).filter(|more| *more > 0) {
                    write!(f, "; and {more} more")?;
                }
                f.write_str("; list them under `interfaces` if they lead to this backend")
            }
        }
    }
}

/// How many interfaces an error names.
const SAID: usize = 5;

/// Makes the card that we publish.
///
/// Both shapes and hybrids: every address is computed from `publication`, schemes and
/// requirements are ours, signatures and unknown top-level members go, flags of operations that
/// are refused become `false`. What is kept keeps its order and its number spelling.
///
/// # Errors
///
/// A [`CardFault`] when the card cannot be read whole or leaves no interface; it is withheld then.
pub fn rewrite(upstream: &[u8], publication: &Publication<'_>) -> Result<Published, CardFault> {
    let mut card = match read(upstream) {
        Ok(Node::Object(card)) => card,
        Ok(Node::Array(_) | Node::Text(..) | Node::Scalar(_)) => return Err(CardFault::NotACard),
        Err(Unreadable::NotJson) => return Err(CardFault::NotJson),
        Err(Unreadable::DuplicateMember) => return Err(CardFault::DuplicateMember),
        Err(Unreadable::TooDeep) => return Err(CardFault::TooDeep),
    };
    let named = matches!(find(&card, "name"), Some(Node::Text(..)));
    if !named || (find(&card, "url").is_none() && find(&card, "supportedInterfaces").is_none()) {
        return Err(CardFault::NotACard);
    }
    let offer = Offer::make(&Addresses::find(&card)?, publication)?;
    let shapes = offer.shapes();

    card.retain(|member| fate(&member.name) != Fate::Dropped);
    let mut skills = Vec::new();
    for member in &mut card {
        match member.name.as_ref() {
            "skills" => clear_skills(&mut member.value, &mut skills)?,
            "capabilities" => narrow_capabilities(&mut member.value)?,
            _ => {}
        }
    }
    let mut scrubber = Scrubber::new(publication);
    let mut path = String::new();
    card.retain_mut(|member| {
        if fate(&member.name) != Fate::Kept {
            return true;
        }
        let known = scrubber.removed.len();
        let stays = scrubber.scrub_member(member, &mut path);
        // A provider without its URL is no provider in either shape.
        stays && (member.name != "provider" || scrubber.removed.len() == known)
    });

    let body = write_card(&card, &offer, shapes, publication.schemes);
    Ok(Published {
        etag: strong_etag(body.as_bytes()),
        body: Bytes::from(body),
        interfaces: offer.interfaces,
        skills,
        dropped: offer.dropped,
        removed: scrubber.removed,
        leaks: scrubber.leaks,
    })
}

/// What becomes of a top-level member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Looked through and kept.
    Kept,
    /// Written by us, in its place.
    Ours,
    Dropped,
}

/// The allow-list of top-level members of both versions (FC-16 as `design.md` 16 decides it).
fn fate(name: &str) -> Fate {
    match name {
        "name" | "description" | "version" | "provider" | "documentationUrl" | "iconUrl"
        | "capabilities" | "defaultInputModes" | "defaultOutputModes" | "skills" => Fate::Kept,
        "url"
        | "preferredTransport"
        | "additionalInterfaces"
        | "protocolVersion"
        | "supportedInterfaces"
        | "securitySchemes"
        | "security"
        | "securityRequirements"
        | "supportsAuthenticatedExtendedCard" => Fate::Ours,
        _ => Fate::Dropped,
    }
}

/// Members of `securitySchemes` and the like that a card must have although it had none.
const SECURITY: [&str; 3] = ["securitySchemes", "security", "securityRequirements"];

fn write_card(
    card: &[Member<'_>],
    offer: &Offer,
    shapes: Shapes,
    schemes: &SecuritySchemes,
) -> String {
    let mut out = String::from("{");
    let transport_missing = find(card, "preferredTransport").is_none();
    for member in card {
        if fate(&member.name) == Fate::Kept {
            separate(&mut out);
            member.write(&mut out);
            continue;
        }
        let name: &str = &member.name;
        if let Some(value) = our_value(name, member, offer, shapes, schemes) {
            write_member(&mut out, name, &value);
        }
        // JSON-RPC is what an absent transport means; a main endpoint that changed needs it.
        let other = offer
            .main
            .as_ref()
            .filter(|main| main.dialect.binding != Binding::JsonRpc);
        if let (true, "url", Some(main)) = (transport_missing, name, other) {
            let value = quoted(main.dialect.binding.card_name());
            write_member(&mut out, "preferredTransport", &value);
        }
    }
    for name in SECURITY {
        if card.iter().any(|member| member.name == name) {
            continue;
        }
        if let Some(value) = security_value(name, shapes, schemes) {
            write_member(&mut out, name, &value);
        }
    }
    out.push('}');
    out
}

fn our_value(
    name: &str,
    member: &Member<'_>,
    offer: &Offer,
    shapes: Shapes,
    schemes: &SecuritySchemes,
) -> Option<String> {
    match name {
        "url" => offer.main.as_ref().map(|main| quoted(&main.url)),
        "preferredTransport" => offer
            .main
            .as_ref()
            .map(|main| quoted(main.dialect.binding.card_name())),
        "additionalInterfaces" if shapes.v0_3 => {
            Some(list(&offer.additional, Entry::write_additional))
        }
        "supportedInterfaces" if shapes.v1_0 => {
            Some(list(&offer.supported, Entry::write_supported))
        }
        // A version is digits and dots; anything else would be text that nobody looked at.
        "protocolVersion" if shapes.v0_3 => member
            .value
            .text()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
            .map(quoted),
        "supportsAuthenticatedExtendedCard" if shapes.v0_3 => Some("false".to_owned()),
        _ => security_value(name, shapes, schemes),
    }
}

fn security_value(name: &str, shapes: Shapes, schemes: &SecuritySchemes) -> Option<String> {
    match name {
        "securitySchemes" => Some(schemes.scheme_map(shapes)),
        "security" if shapes.v0_3 => Some(schemes.security()),
        "securityRequirements" if shapes.v1_0 => Some(schemes.requirements()),
        _ => None,
    }
}

fn list(entries: &[Entry], write: impl Fn(&Entry, &mut String)) -> String {
    let mut out = String::from("[");
    for (position, entry) in entries.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write(entry, &mut out);
    }
    out.push(']');
    out
}

fn write_member(out: &mut String, name: &str, value: &str) {
    separate(out);
    out.push_str(&quoted(name));
    out.push(':');
    out.push_str(value);
}

fn separate(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}

/// Collects the ids and clears what each skill demands by itself: it may name a scheme that is
/// gone, and the card's own requirement holds for all.
fn clear_skills(node: &mut Node<'_>, ids: &mut Vec<Box<str>>) -> Result<(), CardFault> {
    let skills = match node {
        Node::Array(skills) => skills,
        Node::Scalar("null") => return Ok(()),
        Node::Object(_) | Node::Text(..) | Node::Scalar(_) => {
            return Err(CardFault::WrongType("skills"));
        }
    };
    for skill in skills {
        let Node::Object(members) = skill else {
            return Err(CardFault::WrongType("skills"));
        };
        members.retain(|member| {
            !matches!(
                folded(&member.name).as_str(),
                "security" | "securityrequirements" | "securityschemes"
            )
        });
        if let Some(id) = find(members, "id").and_then(Node::text) {
            ids.push(id.into());
        }
    }
    Ok(())
}

/// Operations that the gateway refuses are not promised (`a2a-protocol.md` b.5).
fn narrow_capabilities(node: &mut Node<'_>) -> Result<(), CardFault> {
    let members = match node {
        Node::Object(members) => members,
        Node::Scalar("null") => return Ok(()),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => {
            return Err(CardFault::WrongType("capabilities"));
        }
    };
    members.retain_mut(|member| {
        let refused = match folded(&member.name).as_str() {
            "pushnotifications" => "pushNotifications",
            "extendedagentcard" => "extendedAgentCard",
            _ => return true,
        };
        member.value = Node::Scalar("false");
        // Another spelling of a flag is read by lenient clients, so it does not stay beside ours.
        member.name == refused
    });
    Ok(())
}

/// A name as lenient readers see it: case and word separators do not count.
fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn strong_etag(body: &[u8]) -> Box<str> {
    let digest = digest::digest(&digest::SHA256, body);
    let mut etag = String::with_capacity(66);
    etag.push('"');
    for byte in digest.as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag.into_boxed_str()
}
