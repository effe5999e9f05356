//! The shape of tests, in policy files and in files of their own.

use crate::source::shape::{Fields, Shape, optional, required};

/// A file of tests.
pub static TEST_FILE: Fields = Fields {
    title: "policy_tests",
    doc: "Tests of a Portcullis policy. Such a file, `*_test.yaml`, is never loaded as policy.",
    fields: &[
        required("version", Shape::Integer(1, 1), "version of this format: 1"),
        optional(
            "policy",
            Shape::Text,
            "the policy that it is about; without that policy the file is passed over when a folder is tested",
        ),
        required("tests", TESTS, "what must come out"),
    ],
    later: &[],
};

/// A list of tests.
pub const TESTS: Shape = Shape::List(&Shape::Object(&TEST));

/// One of `tests`.
pub static TEST: Fields = Fields {
    title: "test",
    doc: "A caller, a call, and what must come of it.",
    fields: &[
        required(
            "name",
            Shape::Text,
            "what it shows; different from every other name in the file",
        ),
        required("as", Shape::Object(&CALLER), "who calls"),
        required("call", Shape::Object(&CALL), "what is called"),
        required(
            "expect",
            Shape::Object(&EXPECT),
            "what must come out; all that is said must hold",
        ),
        optional(
            "survive",
            Shape::List(&Shape::Text),
            "what `portcullis mutate` may change without a refusal: names of claims, or grant, issuer, agent, operation, skill, content",
        ),
    ],
    later: &[],
};

/// `as`.
pub static CALLER: Fields = Fields {
    title: "test_caller",
    doc: "A caller, by what its token says.",
    fields: &[
        optional(
            "issuer",
            Shape::Text,
            "the issuer entry; default: the only one",
        ),
        optional(
            "grant",
            Shape::Word(&["agent", "full", "none"]),
            "the reach of the token, where its claims carry no mark of one; default: none",
        ),
        optional(
            "claims",
            Shape::Raw,
            "the payload of the token as the issuer writes it; what every token must have, such as `sub`, is added",
        ),
        optional(
            "proof",
            Shape::Word(&["none", "mtls", "dpop"]),
            "how the token is bound, where its claims have no `cnf`; default: none",
        ),
        optional(
            "client",
            Shape::Text,
            "the client, where no claim names one",
        ),
    ],
    later: &[],
};

/// `call`.
pub static CALL: Fields = Fields {
    title: "test_call",
    doc: "A call to an agent.",
    fields: &[
        required("agent", Shape::Text, "the agent's name"),
        required(
            "operation",
            Shape::Text,
            "an operation by its 1.0 name, or `backend`",
        ),
        optional(
            "skill",
            Shape::Text,
            "the skill that a message names; default: it names none",
        ),
        optional(
            "message",
            Shape::Raw,
            "the message, as A2A 1.0 writes it; default: one with a text",
        ),
        optional(
            "owned",
            Shape::Boolean,
            "whether the task that it names is the caller's; default: true",
        ),
    ],
    later: &[],
};

/// `expect`.
pub static EXPECT: Fields = Fields {
    title: "test_expectation",
    doc: "What must come of a call.",
    fields: &[
        required("effect", Shape::Word(&["allow", "deny"]), "allow or deny"),
        optional("reason", Shape::Text, "the reason code of the record"),
        optional(
            "rule",
            Shape::Text,
            "the deciding rule: the allow, or the deny that fired",
        ),
        optional(
            "near",
            Shape::Object(&NEAR),
            "of a refusal: what was nearest",
        ),
        optional(
            "http",
            Shape::Integer(100, 599),
            "the HTTP status of the reply in JSON-RPC; of an allowed call 200, which is up to the agent",
        ),
    ],
    later: &[],
};

/// `near`.
pub static NEAR: Fields = Fields {
    title: "test_near",
    doc: "The allow that came nearest, or the deny that fired, and what it was about.",
    fields: &[
        optional("rule", Shape::Text, "its id"),
        optional("claim", Shape::Text, "the claim"),
        optional(
            "content",
            Shape::Text,
            "the path of a condition on the content",
        ),
        optional(
            "why",
            Shape::Text,
            "why: `missing`, `null`, `wrong_type`, `value_differs`, …",
        ),
    ],
    later: &[],
};
