//! Field tables: what a message type has, as data.

/// One message type.
#[derive(Debug)]
pub struct Message {
    /// Its name within its package.
    pub name: &'static str,
    /// Its fields; at most 64.
    pub fields: &'static [Field],
    /// Whether a field that is not in the table is refused, where [`super::Unknown::Refused`] asks
    /// for that.
    pub closed: bool,
    /// Whether it is the entry of a map: `key` is its field 1.
    pub map_entry: bool,
}

/// One field.
#[derive(Debug)]
pub struct Field {
    /// Its number.
    pub number: u32,
    /// Its name, as the `.proto` spells it.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// How often it may occur.
    pub occurs: Occurs,
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurs {
    /// At most once.
    Once,
    /// Any number of times: `repeated` or a map.
    Many,
    /// At most once, and then nothing else of the message's `oneof`. No message here has two.
    OneOf,
}

/// What a field holds. Neither package has packed fields, nor fixed 32-bit ones.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `string`.
    Text,
    /// `bytes`.
    Bytes,
    /// `bool`, an enum, or an integer.
    Varint,
    /// `double`.
    Double,
    /// A message.
    Message(&'static Message),
}

/// A message type of which every field must be known.
pub const fn closed(name: &'static str, fields: &'static [Field]) -> Message {
    Message {
        name,
        fields,
        closed: true,
        map_entry: false,
    }
}

/// A message type in which fields that are not known pass.
pub const fn open(name: &'static str, fields: &'static [Field]) -> Message {
    Message {
        name,
        fields,
        closed: false,
        map_entry: false,
    }
}

/// The entry of a map.
pub const fn map_entry(name: &'static str, fields: &'static [Field]) -> Message {
    Message {
        name,
        fields,
        closed: true,
        map_entry: true,
    }
}

/// A field that occurs at most once.
pub const fn once(number: u32, name: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        kind,
        occurs: Occurs::Once,
    }
}

/// A repeated field, or a map.
pub const fn many(number: u32, name: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        kind,
        occurs: Occurs::Many,
    }
}

/// A member of the message's `oneof`.
pub const fn one_of(number: u32, name: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        kind,
        occurs: Occurs::OneOf,
    }
}
