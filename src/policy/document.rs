//! The shape of a policy file: every field that may stand in it, as tables.
//!
//! The walker refuses what is not here, and `policy.schema.json` is made from here. Names under
//! `later` are refused with a way out, never ignored: a narrowing that is ignored widens.

use super::trial::shape::TESTS;
use crate::source::shape::{Field, Fields, Shape, optional, required};

const TEXTS: Shape = Shape::List(&Shape::Text);
const ANY_OR_TEXTS: Shape = Shape::Either(&[Shape::Word(&["any"]), TEXTS]);
const CONTENTS: Shape = Shape::List(&Shape::Object(&CONTENT));
/// What may stand in a condition beside claims.
static BESIDE_CLAIMS: [Field; 1] = [optional(
    "content",
    CONTENTS,
    "what the message must say, beside what the claims must be; only in rules about messages",
)];
const CONDITION: Shape = Shape::NamedWith(&Shape::Object(&MATCHER), &BESIDE_CLAIMS);
const NUMBER: Shape = Shape::Number;
const VALUE_MATCHER: Shape = Shape::Object(&MATCHER);

/// The whole file.
pub static POLICY: Fields = Fields {
    title: "policy",
    doc: "A Portcullis policy. What no rule allows is refused; a deny that fires beats every allow; order never matters.",
    fields: &[
        required("version", Shape::Integer(1, 1), "version of this format: 1"),
        required(
            "policy",
            Shape::Text,
            "the policy's name; one file per name",
        ),
        required(
            "rules",
            Shape::List(&Shape::Object(&RULE)),
            "who may do what, and who may not",
        ),
        optional(
            "webhooks",
            Shape::Object(&WEBHOOKS),
            "where agents may be told to deliver push notifications; where no policy has it, these are refused for everybody",
        ),
        optional(
            "limits",
            Shape::List(&Shape::Object(&LIMIT)),
            "how much callers may ask for; read and checked, and not enforced by this version, which `check` and the start say",
        ),
        optional(
            "tests",
            TESTS,
            "what the rules must come to; `portcullis test` runs them, and more in `*_test.yaml` files",
        ),
    ],
    later: &[],
};

/// One of `rules`.
pub static RULE: Fields = Fields {
    title: "rule",
    doc: "One statement: exactly one of `allow` and `deny`.",
    fields: &[
        required(
            "id",
            Shape::Text,
            "its name in records and refusals; different from every other rule of every policy",
        ),
        optional(
            "allow",
            Shape::Object(&SCOPE),
            "the calls that it allows; needs `grant`, may have `require`",
        ),
        optional(
            "deny",
            Shape::Object(&SCOPE),
            "the calls that it denies; needs one of `when`, `unless` and `always`",
        ),
        optional(
            "grant",
            Shape::Word(&["agent", "full"]),
            "of an allow: the reach that a token must have; `agent` is met by `full` as well",
        ),
        optional(
            "require",
            CONDITION,
            "of an allow: by claim, what must hold; a missing, null or wrongly typed claim never meets it",
        ),
        optional(
            "when",
            CONDITION,
            "of a deny: it fires when all of this holds, and also when that cannot be known",
        ),
        optional(
            "unless",
            CONDITION,
            "of a deny: it fires unless all of this holds; the safe form",
        ),
        optional(
            "always",
            Shape::Boolean,
            "of a deny: `true`; it fires for everybody",
        ),
        optional(
            "mode",
            Shape::Word(&["shadow"]),
            "`shadow`: the rule grants and refuses nothing, and what it would have done is recorded; needs `until`; default: in force",
        ),
        optional(
            "until",
            Shape::Text,
            "of `mode: shadow`: a date, the last day on which it is meant to be shadow, or an instant, both as RFC 3339 writes them: `2027-01-31`; afterwards the rule stays shadow, `check` calls it an error, and the gateway alerts",
        ),
    ],
    later: &[],
};

/// `allow` and `deny`.
pub static SCOPE: Fields = Fields {
    title: "scope",
    doc: "The calls that a rule is about.",
    fields: &[
        required("agents", ANY_OR_TEXTS, "names of agents, or `any`"),
        required(
            "operations",
            ANY_OR_TEXTS,
            "operations by their 1.0 names, groups (messages, tasks, list, push, card), `backend`, or `any`; an allow with `any` has the backend only with `grant: full`",
        ),
        optional(
            "skills",
            ANY_OR_TEXTS,
            "skills, or `any`; needed where messages are concerned, and restricts only them",
        ),
        optional(
            "issuers",
            ANY_OR_TEXTS,
            "issuer entries whose tokens it is about, or `any`; an allow needs it once two issuers are configured; default: any",
        ),
    ],
    later: &[],
};

/// `webhooks`.
pub static WEBHOOKS: Fields = Fields {
    title: "webhooks",
    doc: "The hosts at which agents may be told to deliver push notifications. The entries of all policies count together.",
    fields: &[required(
        "allow",
        Shape::List(&Shape::Object(&WEBHOOK)),
        "the hosts; what is not listed is refused",
    )],
    later: &[],
};

/// One of `limits`.
pub static LIMIT: Fields = Fields {
    title: "limit",
    doc: "How much one caller, client or agent may ask for: `requests`, `streams`, or both.",
    fields: &[
        required(
            "agents",
            ANY_OR_TEXTS,
            "names of agents, or `any`; each agent counts by itself",
        ),
        required(
            "per",
            Shape::Word(&["caller", "client", "agent"]),
            "whose calls count together: those of one caller, of one client of an issuer, or all to the agent",
        ),
        optional("requests", Shape::Text, "how many in which time: `60/1m`"),
        optional(
            "streams",
            Shape::Integer(1, 1_000_000),
            "how many event streams at once",
        ),
    ],
    later: &[],
};

/// One of `content`.
pub static CONTENT: Fields = Fields {
    title: "content",
    doc: "What stands at a path in a message: exactly one of `one`, `each` and `some`, with one matcher. Without a value there, with one of another type, or when the request cannot be read in one way, it is unknown.",
    fields: &[
        required(
            "path",
            Shape::Text,
            "JSONPath into the parameters of the send in the JSON form of 1.0, whatever the call's binding and version: names, indexes and `[*]`, such as `$.message.parts[*].data.repo`",
        ),
        optional(
            "one",
            VALUE_MATCHER,
            "there is exactly one value, and it fits",
        ),
        optional(
            "each",
            VALUE_MATCHER,
            "there is at least one value, and all fit",
        ),
        optional("some", VALUE_MATCHER, "at least one value fits"),
        optional(
            "if_missing",
            Shape::Word(&["no_match"]),
            "in `when`: a message without a value at the path does not fire the rule; null and wrong types still do",
        ),
    ],
    later: &[],
};

/// One of `webhooks.allow`.
pub static WEBHOOK: Fields = Fields {
    title: "webhook",
    doc: "A host for webhooks: https only, and only while all its addresses are public.",
    fields: &[
        required("agents", ANY_OR_TEXTS, "names of agents, or `any`"),
        required(
            "host",
            Shape::Text,
            "the exact host, in lower case, without scheme, port or wildcard: `hooks.example.com`",
        ),
        optional(
            "port",
            Shape::Integer(1, 65535),
            "its port; default: 443, the one of https",
        ),
    ],
    later: &[],
};

/// What a claim must be: exactly one matcher.
pub static MATCHER: Fields = Fields {
    title: "matcher",
    doc: "Exactly one matcher, and in `when` also `if_missing`. Nothing is converted, and text is compared byte for byte.",
    fields: &[
        optional(
            "equals",
            Shape::Either(&[Shape::Text, NUMBER, Shape::Boolean]),
            "a string, number or boolean claim with exactly this value",
        ),
        optional(
            "any_of",
            TEXTS,
            "a string claim with one of these values, or an array that has at least one of them",
        ),
        optional("all_of", TEXTS, "an array that has all of these"),
        optional("contains", Shape::Text, "an array that has this"),
        optional(
            "matches",
            Shape::Text,
            "a string claim that fits this pattern as a whole; `*` is any text without `/`",
        ),
        optional(
            "exists",
            Shape::Boolean,
            "whether the claim is there and not null",
        ),
        optional("gt", NUMBER, "a number claim greater than this"),
        optional("gte", NUMBER, "a number claim of at least this"),
        optional("lt", NUMBER, "a number claim less than this"),
        optional("lte", NUMBER, "a number claim of at most this"),
        optional(
            "between",
            Shape::List(&NUMBER),
            "a number claim from the first to the second of these, both included",
        ),
        optional(
            "if_missing",
            Shape::Word(&["no_match"]),
            "in `when`: a token without the claim does not fire the rule; null and wrong types still do",
        ),
    ],
    later: &[],
};
