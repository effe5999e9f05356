//! The security schemes that a published card declares: ours, never the agent's own.

/// One way in which callers may show who they are; each of them is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in the card.
    pub name: Box<str>,
    /// What it is.
    pub kind: SchemeKind,
    /// Scopes that a token must have.
    pub scopes: Vec<Box<str>>,
}

/// The kinds of schemes that we declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemeKind {
    /// A JWT as a bearer token, wherever it comes from.
    Bearer,
    /// A token of the issuer whose OpenID Connect metadata is at this URL.
    OpenIdConnect(Box<str>),
}

impl Scheme {
    /// The scheme that says no more than that a token is needed.
    pub fn bearer(scopes: Vec<Box<str>>) -> Scheme {
        Scheme {
            name: "bearer".into(),
            kind: SchemeKind::Bearer,
            scopes,
        }
    }

    /// The members of 0.3.
    fn older(&self) -> String {
        match &self.kind {
            SchemeKind::Bearer => {
                r#""type":"http","scheme":"bearer","bearerFormat":"JWT""#.to_owned()
            }
            SchemeKind::OpenIdConnect(url) => {
                format!(
                    r#""type":"openIdConnect","openIdConnectUrl":{}"#,
                    quoted(url)
                )
            }
        }
    }

    /// The member of 1.0.
    fn newer(&self) -> String {
        match &self.kind {
            SchemeKind::Bearer => {
                r#""httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}"#.to_owned()
            }
            SchemeKind::OpenIdConnect(url) => format!(
                r#""openIdConnectSecurityScheme":{{"openIdConnectUrl":{}}}"#,
                quoted(url)
            ),
        }
    }

    fn listed_scopes(&self) -> String {
        let scopes: Vec<String> = self.scopes.iter().map(|scope| quoted(scope)).collect();
        format!("[{}]", scopes.join(","))
    }
}

/// Schemes that a published card declares, and the requirement that one of them is met, as they
/// stand in cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecuritySchemes {
    older: Box<str>,
    newer: Box<str>,
    both: Box<str>,
    security: Box<str>,
    requirements: Box<str>,
}

/// Which shapes a card has; a hybrid has both (`a2a-protocol.md` b.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shapes {
    pub(super) v0_3: bool,
    pub(super) v1_0: bool,
}

impl Default for SecuritySchemes {
    fn default() -> SecuritySchemes {
        SecuritySchemes::of(&[Scheme::bearer(Vec::new())])
    }
}

impl SecuritySchemes {
    /// Of schemes with different names. Without one, a card would say that anybody may call: it
    /// then declares [`Scheme::bearer`].
    pub fn of(schemes: &[Scheme]) -> SecuritySchemes {
        if schemes.is_empty() {
            return SecuritySchemes::default();
        }
        let map = |members: &dyn Fn(&Scheme) -> String| {
            let entries = schemes.iter();
            let entries = entries.map(|s| format!("{}:{{{}}}", quoted(&s.name), members(s)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(",")).into_boxed_str()
        };
        let list = |entry: &dyn Fn(&Scheme) -> String| {
            let entries: Vec<String> = schemes.iter().map(entry).collect();
            format!("[{}]", entries.join(",")).into_boxed_str()
        };
        SecuritySchemes {
            older: map(&Scheme::older),
            newer: map(&Scheme::newer),
            // Both forms in one scheme object, as the SDKs write it (`a2a-protocol.md` b.4).
            both: map(&|s| format!("{},{}", s.newer(), s.older())),
            security: list(&|s| format!("{{{}:{}}}", quoted(&s.name), s.listed_scopes())),
            // `list` is written although empty: not every client has a default for it.
            requirements: list(&|s| {
                let (name, scopes) = (quoted(&s.name), s.listed_scopes());
                format!(r#"{{"schemes":{{{name}:{{"list":{scopes}}}}}}}"#)
            }),
        }
    }

    /// The value of `securitySchemes`. With `both_forms`, whatever the card's shape.
    pub(super) fn scheme_map(&self, shapes: Shapes, both_forms: bool) -> &str {
        match (shapes.v1_0 || both_forms, shapes.v0_3) {
            (true, true) => &self.both,
            (true, false) => &self.newer,
            (false, _) => &self.older,
        }
    }

    /// The value of `security` (0.3).
    pub(super) fn security(&self) -> &str {
        &self.security
    }

    /// The value of `securityRequirements` (1.0).
    pub(super) fn requirements(&self) -> &str {
        &self.requirements
    }
}

/// `text` as a JSON string literal.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
