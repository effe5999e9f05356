//! The stable code of every [`super::Problem`]. Codes are never reused; their meaning never moves.
//!
//! PC001–PC199 belong to files in general and to the gateway file, PC200 and up to policies.

/// Not YAML: the parser could not read it.
pub const SYNTAX: &str = "PC001";
/// The file cannot be read.
pub const UNREADABLE: &str = "PC002";
/// The file is not UTF-8 text.
pub const NOT_UTF8: &str = "PC003";
/// Larger, deeper or with more values than we read.
pub const TOO_LARGE: &str = "PC004";
/// Nothing in the file.
pub const EMPTY: &str = "PC005";
/// An anchor, alias or merge key.
pub const ANCHOR: &str = "PC006";
/// A YAML tag.
pub const TAG: &str = "PC007";
/// More than one YAML document in the file.
pub const MANY_DOCUMENTS: &str = "PC008";
/// A key that stands twice in one mapping.
pub const DUPLICATE_KEY: &str = "PC009";
/// Unquoted `yes`, `no`, `on` or `off`: text in YAML 1.2, a boolean in YAML 1.1.
pub const AMBIGUOUS_WORD: &str = "PC010";
/// A key that is not plain text.
pub const KEY_NOT_TEXT: &str = "PC011";
/// A field that does not exist here.
pub const UNKNOWN_FIELD: &str = "PC020";
/// A field that must be there and is not.
pub const MISSING_FIELD: &str = "PC021";
/// A value of another type than the field takes.
pub const WRONG_TYPE: &str = "PC022";
/// A word that the field does not know.
pub const NOT_ALLOWED: &str = "PC023";
/// A number, duration or size outside its range.
pub const OUT_OF_RANGE: &str = "PC024";
/// An empty text or list.
pub const EMPTY_VALUE: &str = "PC025";
/// Not a duration such as `15m`.
pub const BAD_DURATION: &str = "PC026";
/// Not a size such as `10MiB`.
pub const BAD_SIZE: &str = "PC027";
/// Known, and not built into this version.
pub const NOT_AVAILABLE: &str = "PC028";
/// A `${…}` reference in a field that holds no secret.
pub const NO_SECRET_HERE: &str = "PC029";
/// The same value twice in one list.
pub const DUPLICATE_VALUE: &str = "PC030";
/// A `version` that we do not read.
pub const BAD_VERSION: &str = "PC040";
/// A name with other characters than names have.
pub const BAD_NAME: &str = "PC041";
/// Two things of one kind with one name.
pub const DUPLICATE_NAME: &str = "PC042";
/// Not an IP address with a port.
pub const BAD_ADDRESS: &str = "PC043";
/// Tokens would cross a network in plain text (TR-9).
pub const PLAINTEXT: &str = "PC044";
/// Not a URL, or with parts that are not allowed in this one.
pub const BAD_URL: &str = "PC045";
/// Not a host name, with or without a port.
pub const BAD_HOST: &str = "PC046";
/// Two listeners on one address.
pub const ADDRESS_TAKEN: &str = "PC047";
/// A certificate or its key that cannot be used.
pub const CERTIFICATE: &str = "PC048";
/// Settings of a connection that exclude each other.
pub const TRANSPORT: &str = "PC049";
/// A secret that is not there, cannot be used, or stands in the file itself.
pub const SECRET: &str = "PC050";
/// A secret or token that would be sent in plain text.
pub const SECRET_EXPOSED: &str = "PC051";
/// An agent that could not tell that it is us.
pub const BACKEND_IDENTITY: &str = "PC052";
/// Two issuer entries for one `issuer` (IS-3).
pub const DUPLICATE_ISSUER: &str = "PC060";
/// A claim name that policies already know.
pub const RESERVED_CLAIM: &str = "PC061";
/// An option that the chosen profile does not have, or lacks.
pub const PROFILE: &str = "PC062";
/// Algorithms that contradict each other (KY-5).
pub const ALGORITHMS: &str = "PC063";
/// A key file that cannot be used (LC-15).
pub const KEY_FILE: &str = "PC064";
/// Not an instant in RFC 3339 or epoch seconds.
pub const BAD_INSTANT: &str = "PC065";
/// A declaration of shared keys that is one-sided, or under which nothing tells two issuers' tokens
/// apart (IS-3, IS-4).
pub const SHARED_KEYS: &str = "PC070";
/// Not an absolute path in canonical form.
pub const BAD_PATH: &str = "PC080";
/// Two agents that would answer on the same path.
pub const ROUTE_OVERLAP: &str = "PC081";
/// A skill that the agent does not declare.
pub const UNKNOWN_SKILL: &str = "PC083";
/// Several skills and no way to tell which one a call means.
pub const SKILL_UNDECIDABLE: &str = "PC084";
/// Two interfaces on one public path.
pub const INTERFACE_OVERLAP: &str = "PC085";
/// No place for an agent's gRPC interface, or one that is something else's; or no such interface.
pub const GRPC_DOOR: &str = "PC086";
/// A skill selector that cannot be used.
pub const SKILL_SELECTOR: &str = "PC090";
/// A path that cannot stand for a skill.
pub const SKILL_PATH: &str = "PC091";
/// A tenant that cannot be used, or not with these interfaces or claims.
pub const TENANT: &str = "PC092";
/// A policy file pattern that we do not read.
pub const BAD_PATTERN: &str = "PC100";
/// A policy file pattern that matches no file.
pub const NO_POLICY_FILE: &str = "PC101";
/// A setting that only a restart can change.
pub const NEEDS_RESTART: &str = "PC102";
/// A policy that must be there and is in none of the files.
pub const POLICY_VANISHED: &str = "PC103";
/// Warning: no issuer, so every call is refused.
pub const NO_ISSUER: &str = "PC110";
/// Warning: no policy, so every call is refused.
pub const NO_POLICY: &str = "PC111";
/// Warning: the admin listener can be reached from other machines.
pub const ADMIN_EXPOSED: &str = "PC112";
/// Warning: an issuer for development.
pub const DEVELOPMENT_ISSUER: &str = "PC113";
/// A key file that holds no usable key set (KY-3, KY-14).
pub const KEY_SET: &str = "PC120";
/// Warning: a key that is not used (KY-3 to KY-10).
pub const KEY_UNUSABLE: &str = "PC121";
/// Warning: a private key in a key file (KY-9).
pub const PRIVATE_KEY: &str = "PC122";
/// Warning: a key file without any usable key.
pub const NO_KEY: &str = "PC123";
/// Warning: two issuers with one key (IS-3).
pub const SHARED_KEY: &str = "PC124";
/// Keys of an issuer from no place, several, or one that an option does not fit.
pub const KEY_ORIGIN: &str = "PC125";
/// An entry of a denylist, or its file, that cannot be used (RV-1).
pub const DENYLIST: &str = "PC130";
/// An issuer that cannot be asked as it is written (RV-3).
pub const INTROSPECTION: &str = "PC131";
/// An agent that the gateway file does not have.
pub const UNKNOWN_AGENT: &str = "PC200";
/// A skill that none of the rule's agents declares.
pub const UNKNOWN_RULE_SKILL: &str = "PC201";
/// A claim that no issuer of the rule declares.
pub const UNKNOWN_CLAIM: &str = "PC202";
/// An operation that does not exist.
pub const UNKNOWN_OPERATION: &str = "PC203";
/// An operation by its 0.3 name.
pub const OLD_OPERATION: &str = "PC204";
/// An issuer entry that the gateway file does not have.
pub const UNKNOWN_ISSUER: &str = "PC205";
/// A rule that both allows and denies, or neither.
pub const ALLOW_OR_DENY: &str = "PC206";
/// A condition that this kind of rule does not take, lacks, or has twice.
pub const RULE_CONDITION: &str = "PC207";
/// An allow that does not say whose tokens it trusts.
pub const ISSUERS_NEEDED: &str = "PC208";
/// A rule about messages that names no skills.
pub const SKILLS_NEEDED: &str = "PC209";
/// Skills in a rule that is about no messages.
pub const SKILLS_WITHOUT_MESSAGES: &str = "PC210";
/// A grant that is missing, too small, or of no use.
pub const RULE_GRANT: &str = "PC211";
/// No matcher, several, or one that does not exist.
pub const MATCHER: &str = "PC212";
/// A negation: it would hold for tokens without the claim.
pub const NEGATION: &str = "PC213";
/// A matcher that the claim's type does not have.
pub const MATCHER_TYPE: &str = "PC214";
/// A value of another type than the claim has.
pub const MATCHER_VALUE: &str = "PC215";
/// A claim that issuers declare with different types.
pub const CLAIM_TYPES_DIFFER: &str = "PC216";
/// A rule or value that can never match.
pub const NEVER_MATCHES: &str = "PC217";
/// Two rules with one id.
pub const DUPLICATE_RULE: &str = "PC218";
/// Two policies with one name.
pub const DUPLICATE_POLICY: &str = "PC219";
/// A pattern of another kind than `matches` takes.
pub const NOT_A_GLOB: &str = "PC220";
/// Not the exact host of a webhook.
pub const BAD_WEBHOOK_HOST: &str = "PC221";
/// Warning: a deny that fires on tokens without the claim.
pub const UNGUARDED_WHEN: &str = "PC230";
/// Warning: messages are allowed, and nobody may follow up the task.
pub const NO_FOLLOW_UP: &str = "PC231";
/// Warning: text that may look like other text (PR-6).
pub const NOT_ASCII: &str = "PC232";
