//! Why a token or its presentation is refused: a closed set of private reasons, each with the
//! numbered rule that it enforces and the one public answer that it gets.
//!
//! The caller learns the answer only; rule and code go to journal and metrics (ER-1, LG-5). No
//! fault carries text of the request (LG-4).

use std::fmt;

/// A refusal by one numbered rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenFault {
    /// The rule of the token acceptance rules, such as `CL-3`.
    pub rule: &'static str,
    /// The reason for journal and metrics, such as `expired`; unique among all faults.
    pub code: &'static str,
    /// What the caller is told.
    pub answer: Answer,
}

/// The public side of a refusal (section 10 of the rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// 401 with a challenge and no error code.
    NoCredential,
    /// 400 `invalid_request`.
    InvalidRequest,
    /// 401 `invalid_token`; the same bytes whatever the reason.
    InvalidToken,
    /// 401 `invalid_dpop_proof`.
    InvalidProof,
    /// 401 `use_dpop_nonce`, with one.
    UseNonce,
    /// 503: something is not there that the judgement needs, such as an issuer's keys.
    Unavailable,
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code, self.rule)
    }
}

impl std::error::Error for TokenFault {}

macro_rules! faults {
    ($($answer:ident { $($name:ident = $rule:literal $code:literal;)* })*) => {
        $($(pub(crate) const $name: TokenFault = TokenFault {
            rule: $rule,
            code: $code,
            answer: Answer::$answer,
        };)*)*
        /// Every fault there is.
        pub const ALL: &[TokenFault] = &[$($($name,)*)*];
    };
}

faults! {
    NoCredential {
        NO_CREDENTIAL = "TR-4" "no_credential";
        OTHER_SCHEME = "TR-4" "other_scheme";
    }
    InvalidRequest {
        MANY_FIELDS = "TR-2" "authorization_twice";
        NOT_B64TOKEN = "TR-3" "authorization_malformed";
        TOKEN_IN_QUERY = "TR-5" "token_in_query";
        NOT_PRINTABLE = "TR-7" "authorization_not_printable";
        CONNECTION_NAMES_IT = "TR-8" "authorization_hop_by_hop";
        SURROUNDING_SPACE = "TR-11" "authorization_space";
    }
    InvalidProof {
        PROOF_MISSING = "SC-4" "proof_missing";
        PROOF_TWICE = "SC-4" "proof_twice";
        PROOF_FORM = "SC-4" "proof_malformed";
        PROOF_HEADER = "SC-4" "proof_header";
        PROOF_TYP = "SC-4" "proof_typ";
        PROOF_ALG = "SC-4" "proof_alg";
        PROOF_KEY = "SC-4" "proof_key";
        PROOF_METHOD = "SC-4" "proof_method";
        PROOF_URI = "SC-4" "proof_uri";
        PROOF_TIME = "SC-4" "proof_time";
        PROOF_ID = "SC-4" "proof_id";
        PROOF_TOKEN = "SC-4" "proof_for_other_token";
        PROOF_SIGNATURE = "SC-4" "proof_signature";
        PROOF_REPLAYED = "SC-4" "proof_replayed";
    }
    UseNonce {
        PROOF_NONCE = "SC-4" "proof_nonce";
    }
    Unavailable {
        KEYS_UNAVAILABLE = "LC-10" "keys_unavailable";
        INTROSPECTION_FAILED = "RV-3" "introspection_failed";
        USED_TOKENS_FULL = "RV-4" "used_tokens_full";
        PROOFS_FULL = "SC-4" "proof_store_full";
    }
    InvalidToken {
        TOO_LONG = "TR-6" "token_too_long";
        NOT_THREE_SEGMENTS = "FM-1" "not_three_segments";
        NOT_BASE64URL = "FM-2" "not_base64url";
        NOT_STRICT_JSON = "FM-3" "not_strict_json";
        NOT_AN_OBJECT = "FM-4" "not_an_object";
        HEADER_TOO_LARGE = "FM-5" "header_too_large";
        TOO_MANY_CLAIMS = "FM-5" "too_many_claims";
        ARRAY_TOO_LONG = "FM-5" "array_too_long";
        BAD_SIGNATURE = "FM-6" "bad_signature";
        CONTROL_CHARACTER = "FM-7" "control_character";
        NO_ALG = "HD-1" "alg_missing";
        ALG_NOT_LISTED = "HD-2" "alg_not_listed";
        ALG_SYMMETRIC_OR_NONE = "HD-3" "alg_none_or_symmetric";
        CRITICAL = "HD-4" "crit_or_b64";
        TYP = "HD-5" "typ_not_accepted";
        KID_MISSING = "HD-6" "kid_missing";
        KID_FORM = "HD-6" "kid_malformed";
        KEY_IN_HEADER = "HD-7" "key_in_header";
        ENCRYPTION_MEMBER = "HD-8" "encryption_member";
        NESTED = "HD-9" "cty_present";
        HEADER_MEMBER = "HD-10" "header_member_unknown";
        HEADER_TYPE = "HD-11" "header_member_type";
        REPLICATED_CLAIM = "HD-12" "replicated_claim_differs";
        UNKNOWN_KID = "KY-1" "unknown_kid";
        ALG_OF_KEY = "KY-5" "alg_differs_from_key";
        NO_SINGLE_KEY = "KY-11" "no_single_key";
        ISSUER = "CL-1" "issuer_missing";
        UNKNOWN_ISSUER = "IS-1" "issuer_unknown";
        TENANT = "IS-4" "tenant";
        NO_AUDIENCE = "CL-2" "audience_missing";
        AUDIENCE_FORM = "CL-2" "audience_malformed";
        AUDIENCE = "CL-2" "audience_other";
        NO_EXPIRY = "CL-3" "expiry_missing";
        EXPIRED = "CL-3" "expired";
        NOT_YET = "CL-4" "not_yet_valid";
        NO_ISSUED_AT = "CL-5" "issued_at_missing";
        ISSUED_IN_FUTURE = "CL-5" "issued_in_future";
        ISSUED_AFTER_EXPIRY = "CL-5" "issued_after_expiry";
        LIFETIME = "CL-6" "lifetime_too_long";
        NEVER_VALID = "CL-6" "never_valid";
        SUBJECT = "CL-7" "subject";
        SPIFFE_ID = "CL-7" "spiffe_id";
        TOKEN_ID = "CL-8" "token_id";
        CLIENT = "CL-9" "client_missing";
        CLIENTS_DIFFER = "CL-9" "clients_differ";
        CLIENT_NOT_LISTED = "CL-9" "client_not_listed";
        OTHER_KIND = "CL-10" "other_kind_of_token";
        TOKEN_KIND = "CL-10" "token_kind";
        ISSUED_TOO_EARLY = "CL-12" "issued_before_cutoff";
        CLOCK_NOT_SET = "CL-13" "clock_not_set";
        NOT_A_DATE = "CL-14" "not_a_date";
        CONFIRMATION_FORM = "SC-1" "cnf_malformed";
        CONFIRMATION_MEMBER = "SC-5" "cnf_member_unknown";
        CERTIFICATE_PRINT = "SC-2" "cnf_certificate_malformed";
        NO_CERTIFICATE = "SC-2" "certificate_missing";
        OTHER_CERTIFICATE = "SC-2" "certificate_other";
        KEY_PRINT = "SC-3" "cnf_key_malformed";
        OTHER_PROOF_KEY = "SC-3" "proof_key_other";
        BOUND_AS_BEARER = "SC-6" "dpop_token_as_bearer";
        UNBOUND_AS_DPOP = "SC-7" "dpop_token_unbound";
        REVOKED_TOKEN = "RV-1" "revoked_token";
        REVOKED_SUBJECT = "RV-1" "revoked_subject";
        REVOKED_CLIENT = "RV-1" "revoked_client";
        REVOKED_SESSION = "RV-1" "revoked_session";
        REVOKED_KEY = "RV-1" "revoked_key";
        REVOKED_INPUT = "RV-2" "revoked_signing_input";
        TOKEN_INACTIVE = "RV-3" "token_inactive";
        INTROSPECTION_DIFFERS = "RV-3" "introspection_differs";
        TOKEN_USED = "RV-4" "token_used";
        USE_UNKNOWN = "RV-4" "issued_before_start";
        KEY_GONE = "CA-2" "key_gone";
        ACTOR = "GR-8" "actor_malformed";
        TOO_MANY_ACTORS = "GR-8" "actors_too_many";
    }
}
