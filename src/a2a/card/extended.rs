//! The extended card in a reply (FC-13): rewritten like the public one, for one caller.

use super::fault::CardFault;
use super::proto::{from_json, to_json};
use super::read::{Node, find, read, read_enclosed};
use super::rewrite::{Publication, rewrite, rewrite_node};
use crate::a2a::grpc::frame::single;
use crate::a2a::operation::{Binding, Dialect, Version};
use bytes::Bytes;

/// Makes the reply that may leave out of a whole reply in `dialect` that is no error.
///
/// # Errors
///
/// A [`CardFault`] when the card cannot be read whole or leaves no interface; the reply is withheld
/// then.
pub fn rewrite_reply(
    dialect: Dialect,
    reply: &[u8],
    publication: &Publication<'_>,
) -> Result<Bytes, CardFault> {
    match dialect.binding {
        Binding::JsonRpc => in_envelope(reply, publication),
        Binding::Rest => {
            let publication = Publication {
                both_forms: dialect.version == Version::V0_3,
                ..*publication
            };
            Ok(rewrite_node(read(reply)?, &publication)?.document.body)
        }
        Binding::Grpc => in_frame(dialect.version, reply, publication),
    }
}

/// One gRPC message in, one out.
fn in_frame(
    version: Version,
    reply: &[u8],
    publication: &Publication<'_>,
) -> Result<Bytes, CardFault> {
    let card = single(reply).map_err(|_| CardFault::NotProto)?;
    let published = rewrite(to_json(version, card)?.as_bytes(), publication)?;
    let Node::Object(card) = read(&published.document.body)? else {
        return Err(CardFault::NotACard);
    };
    let message = from_json(version, &card)?;
    let length = u32::try_from(message.len()).map_err(|_| CardFault::NotProto)?;
    let mut out = Vec::with_capacity(message.len() + 5);
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&message);
    Ok(out.into())
}

/// The id was compared with the call's before; nothing else of the envelope is kept.
fn in_envelope(reply: &[u8], publication: &Publication<'_>) -> Result<Bytes, CardFault> {
    let Node::Object(mut members) = read_enclosed(reply)? else {
        return Err(CardFault::NotACard);
    };
    let mut out = String::from(r#"{"jsonrpc":"2.0","id":"#);
    find(&members, "id")
        .ok_or(CardFault::NotACard)?
        .write(&mut out);
    let result = members.iter().position(|member| member.name == "result");
    let result = result.ok_or(CardFault::NotACard)?;
    let published = rewrite_node(members.swap_remove(result).value, publication)?;
    let mut out = out.into_bytes();
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(&published.document.body);
    out.push(b'}');
    Ok(out.into())
}
