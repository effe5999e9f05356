//! The stable code of every [`super::Problem`]. Codes are never reused; their meaning never moves.
//!
//! PC001–PC199 belong to files in general and to the gateway file, PC200 and up to policies.
//! `config/diagnostics.md` is made from [`ALL`], with examples from the golden cases.

/// What a code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `PC` and three digits.
    pub code: &'static str,
    /// Its name in words: `unknown field`.
    name: &'static str,
    /// The text of its documentation, line by line, as written.
    meaning: &'static [&'static str],
}

/// What the documentation of a warning begins with.
const WARNING: &str = "Warning: ";

impl Code {
    /// Its name in words: `unknown field`.
    pub fn title(&self) -> String {
        self.name.to_ascii_lowercase().replace('_', " ")
    }

    /// When it is reported, as one paragraph.
    pub fn meaning(&self) -> String {
        let lines: Vec<&str> = self.meaning.iter().map(|line| line.trim()).collect();
        let text = lines.join(" ");
        let Some(rest) = text.strip_prefix(WARNING) else {
            return text;
        };
        let mut letters = rest.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }

    /// Whether it stops nothing.
    pub fn is_warning(&self) -> bool {
        self.meaning
            .first()
            .is_some_and(|line| line.trim_start().starts_with(WARNING))
    }
}

/// Each code once, with the text of its documentation for the page.
macro_rules! codes {
    ($($(#[doc = $line:literal])+ $name:ident = $code:literal;)+) => {
        $($(#[doc = $line])+ pub const $name: &str = $code;)+

        /// All codes, ascending.
        pub static ALL: &[Code] = &[$(Code {
            code: $name,
            name: stringify!($name),
            meaning: &[$($line),+],
        }),+];
    };
}

codes! {
    /// Not YAML: the parser could not read it.
    SYNTAX = "PC001";
    /// The file cannot be read.
    UNREADABLE = "PC002";
    /// The file is not UTF-8 text.
    NOT_UTF8 = "PC003";
    /// Larger, deeper or with more values than we read.
    TOO_LARGE = "PC004";
    /// Nothing in the file.
    EMPTY = "PC005";
    /// An anchor, alias or merge key.
    ANCHOR = "PC006";
    /// A YAML tag.
    TAG = "PC007";
    /// More than one YAML document in the file.
    MANY_DOCUMENTS = "PC008";
    /// A key that stands twice in one mapping.
    DUPLICATE_KEY = "PC009";
    /// Unquoted `yes`, `no`, `on` or `off`: text in YAML 1.2, a boolean in YAML 1.1.
    AMBIGUOUS_WORD = "PC010";
    /// A key that is not plain text.
    KEY_NOT_TEXT = "PC011";
    /// A field that does not exist here.
    UNKNOWN_FIELD = "PC020";
    /// A field that must be there and is not.
    MISSING_FIELD = "PC021";
    /// A value of another type than the field takes.
    WRONG_TYPE = "PC022";
    /// A word that the field does not know.
    NOT_ALLOWED = "PC023";
    /// A number, duration or size outside its range.
    OUT_OF_RANGE = "PC024";
    /// An empty text or list.
    EMPTY_VALUE = "PC025";
    /// Not a duration such as `15m`.
    BAD_DURATION = "PC026";
    /// Not a size such as `10MiB`.
    BAD_SIZE = "PC027";
    /// Known, and not built into this version.
    NOT_AVAILABLE = "PC028";
    /// A `${…}` reference in a field that holds no secret.
    NO_SECRET_HERE = "PC029";
    /// The same value twice in one list.
    DUPLICATE_VALUE = "PC030";
    /// A `version` that we do not read.
    BAD_VERSION = "PC040";
    /// A name with other characters than names have.
    BAD_NAME = "PC041";
    /// Two things of one kind with one name.
    DUPLICATE_NAME = "PC042";
    /// Not an IP address with a port.
    BAD_ADDRESS = "PC043";
    /// Tokens would cross a network in plain text (TR-9).
    PLAINTEXT = "PC044";
    /// Not a URL, or with parts that are not allowed in this one.
    BAD_URL = "PC045";
    /// Not a host name, with or without a port.
    BAD_HOST = "PC046";
    /// Two listeners on one address.
    ADDRESS_TAKEN = "PC047";
    /// A certificate or its key that cannot be used.
    CERTIFICATE = "PC048";
    /// Settings of a connection that exclude each other.
    TRANSPORT = "PC049";
    /// A secret that is not there, cannot be used, or stands in the file itself.
    SECRET = "PC050";
    /// A secret or token that would be sent in plain text.
    SECRET_EXPOSED = "PC051";
    /// An agent that could not tell that it is us.
    BACKEND_IDENTITY = "PC052";
    /// A collector that would not understand what it is sent.
    TELEMETRY = "PC053";
    /// Two issuer entries for one `issuer` (IS-3).
    DUPLICATE_ISSUER = "PC060";
    /// A claim name that policies already know.
    RESERVED_CLAIM = "PC061";
    /// An option that the chosen profile does not have, or lacks.
    PROFILE = "PC062";
    /// Algorithms that contradict each other (KY-5).
    ALGORITHMS = "PC063";
    /// A key file that cannot be used (LC-15).
    KEY_FILE = "PC064";
    /// Not an instant in RFC 3339 or epoch seconds.
    BAD_INSTANT = "PC065";
    /// A declaration of shared keys that is one-sided, or under which nothing tells two issuers' tokens
    /// apart (IS-3, IS-4).
    SHARED_KEYS = "PC070";
    /// Not an absolute path in canonical form.
    BAD_PATH = "PC080";
    /// Two agents that would answer on the same path.
    ROUTE_OVERLAP = "PC081";
    /// A skill that the agent does not declare.
    UNKNOWN_SKILL = "PC083";
    /// Several skills and no way to tell which one a call means.
    SKILL_UNDECIDABLE = "PC084";
    /// Two interfaces on one public path.
    INTERFACE_OVERLAP = "PC085";
    /// No place for an agent's gRPC interface, or one that is something else's; or no such interface.
    GRPC_DOOR = "PC086";
    /// A skill selector that cannot be used.
    SKILL_SELECTOR = "PC090";
    /// A path that cannot stand for a skill.
    SKILL_PATH = "PC091";
    /// A tenant that cannot be used, or not with these interfaces or claims.
    TENANT = "PC092";
    /// A policy file pattern that we do not read.
    BAD_PATTERN = "PC100";
    /// A policy file pattern that matches no file.
    NO_POLICY_FILE = "PC101";
    /// A setting that only a restart can change.
    NEEDS_RESTART = "PC102";
    /// A policy that must be there and is in none of the files.
    POLICY_VANISHED = "PC103";
    /// A policy file without the end that `policies.end_marker` asks for: part of it may be missing.
    CUT_SHORT = "PC104";
    /// Warning: no issuer, so every call is refused.
    NO_ISSUER = "PC110";
    /// Warning: no policy, so every call is refused.
    NO_POLICY = "PC111";
    /// Warning: the admin listener can be reached from other machines.
    ADMIN_EXPOSED = "PC112";
    /// Warning: an issuer for development.
    DEVELOPMENT_ISSUER = "PC113";
    /// A key file that holds no usable key set (KY-3, KY-14).
    KEY_SET = "PC120";
    /// Warning: a key that is not used (KY-3 to KY-10).
    KEY_UNUSABLE = "PC121";
    /// Warning: a private key in a key file (KY-9).
    PRIVATE_KEY = "PC122";
    /// A key file without any usable key.
    NO_KEY = "PC123";
    /// Warning: two issuers with one key (IS-3).
    SHARED_KEY = "PC124";
    /// Keys of an issuer from no place, several, or one that an option does not fit.
    KEY_ORIGIN = "PC125";
    /// An entry of a denylist, or its file, that cannot be used (RV-1).
    DENYLIST = "PC130";
    /// An issuer that cannot be asked as it is written (RV-3).
    INTROSPECTION = "PC131";
    /// An agent that the gateway file does not have.
    UNKNOWN_AGENT = "PC200";
    /// A skill that none of the rule's agents declares.
    UNKNOWN_RULE_SKILL = "PC201";
    /// A claim that no issuer of the rule declares.
    UNKNOWN_CLAIM = "PC202";
    /// An operation that does not exist.
    UNKNOWN_OPERATION = "PC203";
    /// An operation by its 0.3 name.
    OLD_OPERATION = "PC204";
    /// An issuer entry that the gateway file does not have.
    UNKNOWN_ISSUER = "PC205";
    /// A rule that both allows and denies, or neither.
    ALLOW_OR_DENY = "PC206";
    /// A condition that this kind of rule does not take, lacks, or has twice.
    RULE_CONDITION = "PC207";
    /// An allow that does not say whose tokens it trusts.
    ISSUERS_NEEDED = "PC208";
    /// A rule about messages that names no skills.
    SKILLS_NEEDED = "PC209";
    /// Skills in a rule that is about no messages.
    SKILLS_WITHOUT_MESSAGES = "PC210";
    /// A grant that is missing, too small, or of no use.
    RULE_GRANT = "PC211";
    /// No matcher, several, or one that does not exist.
    MATCHER = "PC212";
    /// A negation: it would hold for tokens without the claim.
    NEGATION = "PC213";
    /// A matcher that the claim's type does not have.
    MATCHER_TYPE = "PC214";
    /// A value of another type than the claim has.
    MATCHER_VALUE = "PC215";
    /// A claim that issuers declare with different types.
    CLAIM_TYPES_DIFFER = "PC216";
    /// A rule or value that can never match.
    NEVER_MATCHES = "PC217";
    /// Two rules with one id.
    DUPLICATE_RULE = "PC218";
    /// Two policies with one name.
    DUPLICATE_POLICY = "PC219";
    /// A pattern of another kind than `matches` takes.
    NOT_A_GLOB = "PC220";
    /// Not the exact host of a webhook.
    BAD_WEBHOOK_HOST = "PC221";
    /// `mode: shadow` and its `until`: one without the other, or not a date.
    SHADOW = "PC222";
    /// A rule in shadow mode whose time is over: an error of `check`. At start and reload it stays
    /// shadow, and the gateway alerts.
    SHADOW_EXPIRED = "PC223";
    /// A condition on the content of messages that cannot stand here, or lacks something.
    CONTENT = "PC224";
    /// Not a path to values of a message.
    CONTENT_PATH = "PC225";
    /// A limit that says nothing, says it twice, or is no number of requests in a time.
    BAD_LIMIT = "PC226";
    /// Warning: a deny that fires on tokens without the claim.
    UNGUARDED_WHEN = "PC230";
    /// Warning: messages are allowed, and nobody may follow up the task.
    NO_FOLLOW_UP = "PC231";
    /// Warning: text that may look like other text (PR-6).
    NOT_ASCII = "PC232";
    /// Warning: a condition that a caller lifts, or meets, by saying more than it must.
    LOOSE_QUANTIFIER = "PC233";
    /// Warning: limits are read and checked, and not enforced by this version.
    LIMITS_NOT_ENFORCED = "PC234";
    /// Warning: a rule that another one covers: without it every call would be decided the same.
    COVERED = "PC235";
    /// Warning: an allow that can allow nothing, since a deny fires on all of it.
    UNDONE = "PC236";
    /// Warning: an allow that decides no test; only `check` looks for it.
    UNTESTED = "PC237";
    /// A test whose caller cannot be.
    TEST_CALLER = "PC240";
    /// A test whose call cannot be.
    TEST_CALL = "PC241";
    /// A test that expects what can never come out.
    TEST_EXPECT = "PC242";
    /// Two tests with one name.
    DUPLICATE_TEST = "PC243";
    /// A rule that is in none of the policies.
    UNKNOWN_RULE = "PC244";
}
