//! Field tables of the two gRPC packages, and of the well-known types in them.
//!
//! Numbers from the packages' own descriptors (`a2a-protocol.md` a.3 and a.4), which a test
//! compares. What decides is closed: in a request, a field that is not here is refused there, as
//! the package pins the version (`a2a-protocol.md` i.4 rule 7). Parts, what is in them, and replies
//! are open. Agent Cards have tables of their own.

pub mod card;
pub mod v0_3;
pub mod v1_0;

use super::strict_proto::Kind::{Double, Message as Nested, Text, Varint};
use super::strict_proto::Message;
use super::strict_proto::table::{closed, many, map_entry, once, one_of};

/// `google.protobuf.Struct`.
pub static STRUCT: Message = closed("Struct", &[many(1, "fields", Nested(&STRUCT_ENTRY))]);

/// An entry of a `Struct`.
pub static STRUCT_ENTRY: Message = map_entry(
    "Struct.FieldsEntry",
    &[once(1, "key", Text), once(2, "value", Nested(&VALUE))],
);

/// `google.protobuf.Value`.
pub static VALUE: Message = closed(
    "Value",
    &[
        one_of(1, "null_value", Varint),
        one_of(2, "number_value", Double),
        one_of(3, "string_value", Text),
        one_of(4, "bool_value", Varint),
        one_of(5, "struct_value", Nested(&STRUCT)),
        one_of(6, "list_value", Nested(&LIST_VALUE)),
    ],
);

/// `google.protobuf.ListValue`.
pub static LIST_VALUE: Message = closed("ListValue", &[many(1, "values", Nested(&VALUE))]);

/// `google.protobuf.Timestamp`.
pub static TIMESTAMP: Message = closed(
    "Timestamp",
    &[once(1, "seconds", Varint), once(2, "nanos", Varint)],
);

/// `google.protobuf.Empty`.
pub static EMPTY: Message = closed("Empty", &[]);
