//! Flags and skills of a card, as far as policy lets anybody use them.

use super::fault::CardFault;
use super::read::{Node, find};
use super::rewrite::Promises;

/// The ids of a card's skills.
pub(super) fn ids_of(skills: &Node<'_>) -> Vec<Box<str>> {
    match skills {
        Node::Array(skills) => skills.iter().filter_map(id_of).map(Box::from).collect(),
        Node::Object(_) | Node::Text(..) | Node::Scalar(_) => Vec::new(),
    }
}

fn id_of<'n>(skill: &'n Node<'_>) -> Option<&'n str> {
    match skill {
        Node::Object(members) => find(members, "id").and_then(Node::text),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => None,
    }
}

/// Leaves out the skills that are not shown, and clears what each of the others demands by
/// itself: it may name a scheme that is gone, and the card's own requirement holds for all.
pub(super) fn narrow_skills(
    node: &mut Node<'_>,
    shows: &dyn Fn(Option<&str>) -> bool,
) -> Result<(), CardFault> {
    let skills = match node {
        Node::Array(skills) => skills,
        Node::Scalar("null") => return Ok(()),
        Node::Object(_) | Node::Text(..) | Node::Scalar(_) => {
            return Err(CardFault::WrongType("skills"));
        }
    };
    for skill in skills.iter_mut() {
        let Node::Object(members) = skill else {
            return Err(CardFault::WrongType("skills"));
        };
        members.retain(|member| {
            !matches!(
                folded(&member.name).as_str(),
                "security" | "securityrequirements" | "securityschemes"
            )
        });
    }
    skills.retain(|skill| shows(id_of(skill)));
    Ok(())
}

/// Operations that the gateway refuses are not promised (`a2a-protocol.md` b.5). Returns whether
/// the agent announces an extended card.
pub(super) fn narrow_capabilities(
    node: &mut Node<'_>,
    promises: Promises,
) -> Result<bool, CardFault> {
    let members = match node {
        Node::Object(members) => members,
        Node::Scalar("null") => return Ok(false),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => {
            return Err(CardFault::WrongType("capabilities"));
        }
    };
    let mut extended = false;
    members.retain_mut(|member| {
        let (name, promised) = match folded(&member.name).as_str() {
            "streaming" => ("streaming", promises.streaming),
            "pushnotifications" => ("pushNotifications", promises.push),
            "extendedagentcard" => ("extendedAgentCard", promises.extended),
            _ => return true,
        };
        // Another spelling of a flag is read by lenient clients, so it does not stay beside ours.
        if member.name != name {
            return false;
        }
        let announced = narrow_flag(&mut member.value, promised);
        extended |= announced && name == "extendedAgentCard";
        true
    });
    Ok(extended)
}

/// URIs of the extensions that the agent requires its callers to declare.
pub(super) fn required_extensions(capabilities: &Node<'_>) -> Vec<Box<str>> {
    let Node::Object(members) = capabilities else {
        return Vec::new();
    };
    let Some(Node::Array(extensions)) = find(members, "extensions") else {
        return Vec::new();
    };
    let uri = |extension: &Node<'_>| match extension {
        Node::Object(members)
            if matches!(find(members, "required"), Some(Node::Scalar("true"))) =>
        {
            find(members, "uri").and_then(Node::text).map(Box::from)
        }
        Node::Object(_) | Node::Array(_) | Node::Text(..) | Node::Scalar(_) => None,
    };
    extensions.iter().filter_map(uri).collect()
}

/// Whether the agent's card declares this extension.
pub(super) fn declares(capabilities: &Node<'_>, uri: &str) -> bool {
    let Node::Object(members) = capabilities else {
        return false;
    };
    let Some(Node::Array(extensions)) = find(members, "extensions") else {
        return false;
    };
    extensions.iter().any(|extension| match extension {
        Node::Object(members) => find(members, "uri")
            .and_then(Node::text)
            .is_some_and(|found| *found == *uri),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => false,
    })
}

/// A flag stays set only where the promise can be kept. Returns whether it was set.
pub(super) fn narrow_flag(flag: &mut Node<'_>, promised: bool) -> bool {
    let set = matches!(flag, Node::Scalar("true"));
    if !(set && promised) {
        *flag = Node::Scalar("false");
    }
    set
}

/// A name as lenient readers see it: case and word separators do not count.
pub(super) fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
