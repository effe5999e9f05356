//! From an agent's own card to the one that we publish (`design.md` section 5).

use super::Interface;
use super::fault::{CardFault, DroppedInterface};
use super::interfaces::{Addresses, Entry, Offer};
use super::narrow::{self, declares, ids_of, narrow_capabilities, narrow_flag, narrow_skills};
use super::read::{Member, Node, find, read};
use super::scrub::Scrubber;
use super::security::{SecuritySchemes, Shapes, quoted};
use super::serve::Document;
use super::signature::{Attested, Signer, sign};
use crate::a2a::operation::{Binding, Dialect};
use crate::a2a::splice::{ASSERTION, STAMP};
use aws_lc_rs::digest;
use bytes::Bytes;
use std::fmt::Write;

/// What a published card is made from besides the agent's own: configuration only.
#[derive(Clone, Copy)]
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
    /// `host:port` at which callers reach the agent's gRPC interface; `None`: there is none.
    pub grpc_authority: Option<&'a str>,
    /// The schemes that callers must use.
    pub schemes: &'a SecuritySchemes,
    /// Whether the schemes are said in both forms whatever the card's shape. HTTP+JSON of 0.3 is
    /// the JSON of its protobuf messages, whose schemes look like 1.0's (`a2a-protocol.md` a.4).
    pub both_forms: bool,
    /// What the gateway proxies.
    pub offered: &'a [Dialect],
    /// Interfaces that callers can reach, if that is settled: others are left out. An extended
    /// card leads nowhere that the public card does not.
    pub reachable: Option<&'a [Interface]>,
    /// The operations that a card may promise.
    pub promises: Promises,
    /// Who vouches for what the agent's signature covers: nothing else of its card then decides
    /// (`a2a-protocol.md` c.3).
    pub covered_only: bool,
    /// How the card is signed; cards of 0.3 never are, as nobody could check them.
    pub signer: Option<Signer<'a>>,
    /// Whether a skill is shown, by its id. A skill without an id is only shown to everybody.
    pub shows: &'a dyn Fn(Option<&str>) -> bool,
}

/// Operations that a card announces by flags (`a2a-protocol.md` b.5), as far as anybody could be
/// allowed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// Streaming.
    pub streaming: bool,
    /// Push notifications.
    pub push: bool,
    /// The extended card.
    pub extended: bool,
}

/// A card that may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Compact JSON, and its tag.
    pub document: Document,
    /// The interfaces that the card offers.
    pub interfaces: Vec<Interface>,
    /// Ids of the skills of the agent's own card, in its order, whether shown or not.
    pub skills: Vec<Box<str>>,
    /// Whether the agent's own card announces an extended card.
    pub extended: bool,
    /// URIs of the extensions that every caller must declare.
    pub required_extensions: Vec<Box<str>>,
    /// SHA-256 of the agent's own card.
    pub source: [u8; 32],
    /// What its signatures are worth; `None` when nobody looked.
    pub attested: Option<Attested>,
    /// Whether the agent's own card declares that it routes on our stamp.
    pub routes_on_stamp: bool,
    /// The same of the assertion that we sign.
    pub routes_on_assertion: bool,
    /// Interfaces that were left out.
    pub dropped: Vec<DroppedInterface>,
    /// Paths of members and elements that were an address of the backend and were removed.
    pub removed: Vec<Box<str>>,
    /// Paths of texts that name the backend and were not touched (FC-05): for the log.
    pub leaks: Vec<Box<str>>,
}

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
    let published = rewrite_node(read(upstream)?, publication)?;
    Ok(Published {
        source: sha256(upstream),
        ..published
    })
}

/// The same for a card that has been read already.
pub(super) fn rewrite_node(
    card: Node<'_>,
    publication: &Publication<'_>,
) -> Result<Published, CardFault> {
    let mut card = match card {
        Node::Object(card) => card,
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => return Err(CardFault::NotACard),
    };
    let named = matches!(find(&card, "name"), Some(Node::Text(..)));
    if !named || (find(&card, "url").is_none() && find(&card, "supportedInterfaces").is_none()) {
        return Err(CardFault::NotACard);
    }
    let offer = Offer::make(&Addresses::find(&card)?, publication)?;
    let shapes = offer.shapes();

    card.retain(|member| fate(&member.name) != Fate::Dropped);
    let mut skills = Vec::new();
    let mut extended = false;
    let mut required_extensions = Vec::new();
    let (mut routes_on_stamp, mut routes_on_assertion) = (false, false);
    for member in &mut card {
        match member.name.as_ref() {
            "skills" => {
                skills = ids_of(&member.value);
                narrow_skills(&mut member.value, publication.shows)?;
            }
            "capabilities" => {
                required_extensions = narrow::required_extensions(&member.value);
                routes_on_stamp |= declares(&member.value, STAMP);
                routes_on_assertion |= declares(&member.value, ASSERTION);
                extended |= narrow_capabilities(&mut member.value, publication.promises)?;
            }
            "supportsAuthenticatedExtendedCard" => {
                let promised = publication.promises.extended && !publication.covered_only;
                extended |= narrow_flag(&mut member.value, promised) && !publication.covered_only;
            }
            _ => {}
        }
    }
    if extended && publication.promises.extended {
        announce_extended(&mut card, shapes);
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

    let mut body = write_card(&card, &offer, shapes, publication);
    if let (true, Some(signer)) = (shapes.v1_0, &publication.signer) {
        add_signatures(&mut body, signer)?;
    }
    Ok(Published {
        document: Document {
            etag: strong_etag(body.as_bytes()),
            body: Bytes::from(body),
        },
        interfaces: offer.interfaces,
        skills,
        extended,
        required_extensions,
        source: [0; 32],
        attested: None,
        routes_on_stamp,
        routes_on_assertion,
        dropped: offer.dropped,
        removed: [offer.tenants, scrubber.removed].concat(),
        leaks: scrubber.leaks,
    })
}

/// Signs what was written, as whoever fetches it will read it.
fn add_signatures(body: &mut String, signer: &Signer<'_>) -> Result<(), CardFault> {
    let signatures = match read(body.as_bytes())? {
        Node::Object(card) => sign(&card, signer),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => None,
    };
    let signatures = signatures.ok_or(CardFault::Unsignable)?;
    body.pop();
    body.push_str(r#","signatures":"#);
    body.push_str(&signatures);
    body.push('}');
    Ok(())
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
    publication: &Publication<'_>,
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
        if let Some(value) = our_value(name, member, offer, shapes, publication) {
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
        if let Some(value) = security_value(name, shapes, publication) {
            write_member(&mut out, name, value);
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
    publication: &Publication<'_>,
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
        "supportsAuthenticatedExtendedCard" if shapes.v0_3 => {
            let mut flag = String::new();
            member.value.write(&mut flag);
            Some(flag)
        }
        _ => security_value(name, shapes, publication).map(str::to_owned),
    }
}

/// Some agents say in one shape only that they have an extended card; clients of the other would
/// not ask for it. What the agent says itself stays.
fn announce_extended(card: &mut Vec<Member<'_>>, shapes: Shapes) {
    let capabilities = card.iter_mut().find(|m| m.name == "capabilities");
    if let Some(Member {
        value: Node::Object(flags),
        ..
    }) = capabilities
        && shapes.v1_0
        && !flags.iter().any(|m| m.name == "extendedAgentCard")
    {
        flags.push(Member::flag("\"extendedAgentCard\""));
    }
    let older = "supportsAuthenticatedExtendedCard";
    if shapes.v0_3 && !card.iter().any(|m| m.name == older) {
        card.push(Member::flag("\"supportsAuthenticatedExtendedCard\""));
    }
}

fn security_value<'p>(
    name: &str,
    shapes: Shapes,
    publication: &Publication<'p>,
) -> Option<&'p str> {
    let schemes = publication.schemes;
    match name {
        "securitySchemes" => Some(schemes.scheme_map(shapes, publication.both_forms)),
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

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// A strong entity tag over these bytes, quotes included.
pub fn strong_etag(body: &[u8]) -> Box<str> {
    let mut etag = String::with_capacity(66);
    etag.push('"');
    for byte in sha256(body) {
        // Writing to a string cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag.into_boxed_str()
}
