//! Whose tokens an issuer gives: by the form of its name, and by what its metadata says.

use crate::a2a::strict_json::Value;
use crate::identity::issuer::Profile;
use reqwest::Url;

/// An identity product, as far as an entry for it goes.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) profile: Profile,
    pub(super) name: &'static str,
    /// What stands for `audiences`, in the product's own words.
    pub(super) audience: &'static str,
    /// `max_lifetime` where the product gives longer tokens than our default, and why.
    pub(super) lifetime: Option<(&'static str, &'static str)>,
    /// Its claims that can give a grant, as items of `grants`; `AUDIENCE` stands for the audience.
    pub(super) grants: &'static [&'static str],
    form: fn(&Place) -> Option<&'static str>,
    mark: fn(&Place, &Value) -> Option<&'static str>,
}

/// Where an issuer says that it is.
struct Place {
    issuer: String,
    /// In lower case.
    host: String,
    path: String,
}

impl Place {
    fn of(issuer: &str) -> Place {
        let url = Url::parse(issuer).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        Place {
            issuer: issuer.trim_end_matches('/').to_owned(),
            host: host.to_owned(),
            path: url.as_ref().map_or("", Url::path).to_owned(),
        }
    }

    /// The member of its metadata is the URL below the issuer's own.
    fn has_below(&self, metadata: &Value, member: &str, path: &str) -> bool {
        let url = text(metadata, member);
        url.and_then(|url| url.strip_prefix(&*self.issuer)) == Some(path)
    }

    fn first_segment(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }
}

fn text<'a>(metadata: &'a Value, member: &str) -> Option<&'a str> {
    metadata.get(member).and_then(Value::as_str)
}

const SCOPES: &str = "{path: [scope], form: space_string, map: {a2a.agent: agent, a2a.full: full}}";

/// Those with marks of their own.
static MARKED: [Product; 6] = [
    Product {
        profile: Profile::Entra,
        name: "Microsoft Entra ID",
        audience: "the application id of the API, or in v1 tokens its App ID URI",
        lifetime: Some(("2h", "Entra gives 60 to 90 minutes")),
        grants: &[
            "{path: [scp], form: space_string, map: {A2A.Use: agent}}",
            "{path: [roles], form: string_array, map: {A2A.Use.All: agent, Gateway.Full: full}}",
        ],
        form: |place| {
            let hosts = [
                "login.microsoftonline.com",
                "login.microsoftonline.us",
                "login.partner.microsoftonline.cn",
                "sts.windows.net",
            ];
            let own = hosts.contains(&&*place.host) || place.host.ends_with(".ciamlogin.com");
            own.then_some("its host is one of Microsoft's")
        },
        mark: |_, metadata| {
            let own = ["cloud_instance_name", "tenant_region_scope"];
            let own = own.iter().any(|name| metadata.get(name).is_some());
            own.then_some("its metadata names a Microsoft cloud")
        },
    },
    Product {
        profile: Profile::Keycloak,
        name: "Keycloak",
        audience: "what an audience mapper of the client adds to its tokens",
        lifetime: None,
        grants: &[
            "{path: [realm_access, roles], form: string_array, map: {a2a-agent: agent, gateway-full: full}}",
        ],
        form: |place| {
            let mut segments = place.path.rsplit('/').filter(|s| !s.is_empty());
            let realm = segments.nth(1) == Some("realms");
            realm.then_some("its path ends as that of a realm")
        },
        mark: |_, metadata| {
            let own = text(metadata, "jwks_uri")
                .is_some_and(|uri| uri.ends_with("/protocol/openid-connect/certs"));
            own.then_some("its `jwks_uri` is where Keycloak has it")
        },
    },
    Product {
        profile: Profile::Auth0,
        name: "Auth0",
        audience: "the identifier of the API",
        lifetime: Some(("24h", "the default of an API; choose less there")),
        grants: &[
            r#"{path: [permissions], form: string_array, map: {"agents:call": agent, "gateway:full": full}}"#,
        ],
        form: |place| {
            let own = place.host.ends_with(".auth0.com");
            own.then_some("its host is one of Auth0's")
        },
        mark: |place, metadata| {
            let own = place.has_below(metadata, "mfa_challenge_endpoint", "/mfa/challenge");
            own.then_some("its metadata has the `mfa_challenge_endpoint` of Auth0")
        },
    },
    Product {
        profile: Profile::Okta,
        name: "Okta",
        audience: "the audience of the custom authorization server",
        lifetime: None,
        grants: &["{path: [scp], form: string_array, map: {a2a.agent: agent, a2a.full: full}}"],
        form: |place| {
            let own = [
                ".okta.com",
                ".oktapreview.com",
                ".okta-emea.com",
                ".okta-gov.com",
            ];
            let own = own.iter().any(|end| place.host.ends_with(end))
                || place.path.starts_with("/oauth2/aus");
            own.then_some("its name has the form of an Okta authorization server's")
        },
        mark: |place, metadata| {
            let own = place.has_below(metadata, "jwks_uri", "/v1/keys")
                || is_okta_organization(place, metadata);
            own.then_some("its `jwks_uri` is where Okta has it")
        },
    },
    Product {
        profile: Profile::Cognito,
        name: "Amazon Cognito",
        audience: "the resource server that tokens are asked for",
        lifetime: None,
        grants: &[
            "{path: [scope], form: space_string, map: {gateway/a2a: agent}}",
            r#"{path: ["cognito:groups"], form: string_array, map: {gateway-full: full}}"#,
        ],
        form: |place| {
            let own = place.host.starts_with("cognito-idp.") && place.host.contains(".amazonaws.");
            own.then_some("its host is that of Cognito's user pools")
        },
        mark: |_, metadata| {
            let own = text(metadata, "userinfo_endpoint")
                .is_some_and(|url| url.ends_with("/oauth2/userInfo"));
            own.then_some("its metadata has the `userinfo_endpoint` of Cognito")
        },
    },
    Product {
        profile: Profile::Spiffe,
        name: "SPIFFE",
        audience: "what workloads ask a JWT-SVID for",
        lifetime: None,
        // A JWT-SVID carries no rights; being for this gateway is what there is.
        grants: &["{path: [aud], form: either, map: {AUDIENCE: agent}}"],
        form: |place| {
            let own = place.issuer.starts_with("spiffe://");
            own.then_some("its name is a SPIFFE ID")
        },
        mark: |_, metadata| {
            // SPIRE has to write the endpoint, and has none.
            let own = text(metadata, "authorization_endpoint") == Some("")
                && metadata.get("token_endpoint").is_none();
            own.then_some("its metadata has keys and no endpoint to get a token from, as SPIRE's")
        },
    },
];

/// Everybody else.
static PLAIN: Product = Product {
    profile: Profile::Strict,
    name: "RFC 9068",
    audience: "the resource that tokens for this gateway are asked for",
    lifetime: None,
    grants: &[SCOPES],
    form: |_| None,
    mark: |_, _| None,
};

/// What an issuer seems to be.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) product: &'static Product,
    /// What speaks for it.
    pub(super) because: Vec<&'static str>,
    /// What does not fit, or does not work with it.
    pub(super) doubts: Vec<String>,
    /// The tenants in its name, where the profile needs them.
    pub(super) tenant: Option<String>,
}

impl Judged {
    pub(super) fn of(issuer: &str, metadata: Option<&Value>) -> Judged {
        let place = Place::of(issuer);
        let form = MARKED.iter().find_map(|p| Some((p, (p.form)(&place)?)));
        let mark = |p: &'static Product| Some((p, (p.mark)(&place, metadata?)?));
        let mark = MARKED.iter().find_map(mark);
        let mut doubts = Vec::new();
        let (product, because) = match (form, mark) {
            (Some((one, form)), Some((other, mark))) if one.profile == other.profile => {
                (one, vec![form, mark])
            }
            (Some((one, form)), Some((other, mark))) => {
                doubts.push(format!("{form}, which is rather {}", one.name));
                (other, vec![mark])
            }
            (Some((one, form)), None) => {
                let metadata = metadata.filter(|_| one.profile != Profile::Spiffe);
                doubts.extend(
                    metadata.map(|_| format!("its metadata has none of the marks of {}", one.name)),
                );
                (one, vec![form])
            }
            (None, Some((other, mark))) => (other, vec![mark]),
            (None, None) => (&PLAIN, vec!["nothing marks it as another product"]),
        };
        let mut tenant = None;
        match product.profile {
            Profile::Entra => {
                tenant = Some(place.first_segment())
                    .filter(|s| is_guid(s))
                    .map(str::to_owned);
                if tenant.is_none() {
                    doubts.push(
                        "each Entra tenant is an issuer of its own, with the tenant's id in the path: `common`, `organizations` and domain names issue nothing"
                            .to_owned(),
                    );
                }
            }
            Profile::Okta if metadata.is_some_and(|m| is_okta_organization(&place, m)) => {
                doubts.push(
                    "access tokens of the organization's own server are for Okta alone: take the issuer of a custom authorization server, `…/oauth2/NAME`"
                        .to_owned(),
                );
            }
            _ => {}
        }
        Judged {
            product,
            because,
            doubts,
            tenant,
        }
    }
}

fn is_okta_organization(place: &Place, metadata: &Value) -> bool {
    place.has_below(metadata, "jwks_uri", "/oauth2/v1/keys")
}

fn is_guid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    lengths.eq([8, 4, 4, 4, 12])
        && groups
            .iter()
            .all(|g| g.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::a2a::strict_json::parse_value;

    const TENANT: &str = "7d5b7a9c-1f0e-4f43-9a53-2c8f2b1f7a10";

    fn judged(issuer: &str, metadata: Option<&str>) -> Judged {
        let metadata = metadata.map(|text| parse_value(text.as_bytes(), 8).unwrap());
        Judged::of(issuer, metadata.as_ref())
    }

    #[test]
    fn the_form_of_a_name_shows_the_product() {
        let entra = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
        let v1 = format!("https://sts.windows.net/{TENANT}/");
        let external = format!("https://{TENANT}.ciamlogin.com/{TENANT}/v2.0");
        let cases = [
            (&*entra, Profile::Entra),
            (&v1, Profile::Entra),
            (&external, Profile::Entra),
            (
                "https://keycloak.example.com/realms/agents",
                Profile::Keycloak,
            ),
            (
                "https://example.com/sso/auth/realms/agents",
                Profile::Keycloak,
            ),
            ("https://tenant.eu.auth0.com/", Profile::Auth0),
            ("https://example.okta.com/oauth2/default", Profile::Okta),
            ("https://id.example.com/oauth2/aus1a2b3c", Profile::Okta),
            (
                "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_aBcDeFgHi",
                Profile::Cognito,
            ),
            (
                "https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_aBcDeFgHi",
                Profile::Cognito,
            ),
            ("spiffe://example.org", Profile::Spiffe),
            ("https://idp.example.com", Profile::Strict),
            // Somebody else's host with a product's name in it.
            (
                "https://login.microsoftonline.com.example.com/x",
                Profile::Strict,
            ),
            ("https://auth0.com.example.com/", Profile::Strict),
            ("https://example.com/realms/", Profile::Strict),
        ];
        for (issuer, profile) in cases {
            assert_eq!(judged(issuer, None).product.profile, profile, "{issuer}");
        }
        for issuer in [&entra, &v1, &external] {
            assert_eq!(
                judged(issuer, None).tenant.as_deref(),
                Some(TENANT),
                "{issuer}"
            );
        }
    }

    #[test]
    fn metadata_outweighs_the_form_of_a_name_and_says_so() {
        let keycloak = r#"{"jwks_uri": "https://id.example.com/r/protocol/openid-connect/certs"}"#;
        let both = judged("https://id.example.com/oauth2/aus1", Some(keycloak));
        assert_eq!(both.product.profile, Profile::Keycloak);
        assert!(
            both.doubts[0].ends_with("which is rather Okta"),
            "{:?}",
            both.doubts
        );
        let neither = judged("https://id.example.com/oauth2/aus1", Some("{}"));
        assert_eq!(neither.product.profile, Profile::Okta);
        assert!(
            neither.doubts[0].contains("none of the marks"),
            "{:?}",
            neither.doubts
        );
    }

    #[test]
    fn issuers_whose_tokens_never_count_are_told() {
        let common = judged("https://login.microsoftonline.com/common/v2.0", None);
        assert_eq!(common.tenant, None);
        assert!(common.doubts[0].contains("`common`"), "{:?}", common.doubts);
        let organization = r#"{"jwks_uri": "https://example.okta.com/oauth2/v1/keys"}"#;
        let okta = judged("https://example.okta.com", Some(organization));
        assert!(
            okta.doubts[0].contains("for Okta alone"),
            "{:?}",
            okta.doubts
        );
    }

    #[test]
    fn an_endpoint_below_another_issuer_is_no_mark() {
        let other = r#"{"jwks_uri": "https://other.example.com/v1/keys",
            "mfa_challenge_endpoint": "https://other.example.com/mfa/challenge"}"#;
        let judged = judged("https://idp.example.com", Some(other));
        assert_eq!(judged.product.profile, Profile::Strict);
    }
}
