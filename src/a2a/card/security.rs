//! The security schemes that a published card declares: ours, never the agent's own.

/// Schemes that a published card declares, made from the configured issuers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecuritySchemes {
    /// The name of the HTTP bearer scheme in the card.
    pub bearer: Box<str>,
    /// Whether the scheme is said in both forms whatever the card's shape. HTTP+JSON of 0.3 is the
    /// JSON of its protobuf messages, whose schemes look like 1.0's (`a2a-protocol.md` a.4).
    pub both_forms: bool,
}

impl Default for SecuritySchemes {
    fn default() -> SecuritySchemes {
        SecuritySchemes {
            bearer: "bearer".into(),
            both_forms: false,
        }
    }
}

/// Which shapes a card has; a hybrid has both (`a2a-protocol.md` b.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shapes {
    pub(super) v0_3: bool,
    pub(super) v1_0: bool,
}

impl SecuritySchemes {
    /// The value of `securitySchemes`; a hybrid carries both forms in one scheme object, as the
    /// SDKs write it (`a2a-protocol.md` b.4).
    pub(super) fn scheme_map(&self, shapes: Shapes) -> String {
        let v1_0 = r#""httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}"#;
        let v0_3 = r#""type":"http","scheme":"bearer","bearerFormat":"JWT""#;
        let scheme = match (shapes.v1_0 || self.both_forms, shapes.v0_3) {
            (true, true) => format!("{v1_0},{v0_3}"),
            (true, false) => v1_0.to_owned(),
            (false, _) => v0_3.to_owned(),
        };
        format!("{{{}:{{{scheme}}}}}", quoted(&self.bearer))
    }

    /// The value of `security` (0.3).
    pub(super) fn security(&self) -> String {
        format!("[{{{}:[]}}]", quoted(&self.bearer))
    }

    /// The value of `securityRequirements` (1.0).
    pub(super) fn requirements(&self) -> String {
        // `list` is written although empty: not every client has a default for it.
        format!(
            r#"[{{"schemes":{{{}:{{"list":[]}}}}}}]"#,
            quoted(&self.bearer)
        )
    }
}

/// `text` as a JSON string literal.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
