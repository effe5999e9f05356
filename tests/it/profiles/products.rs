//! One test for each product: its access tokens, its other tokens, and its traps.

use super::{Example, with};
use crate::support::issuer::DevAlgorithm;
use serde_json::{Value, json};

const API: &str = "https://agents.example.com";

/// What a product issues.
struct Product {
    name: &'static str,
    algorithm: DevAlgorithm,
    /// The header and payload of an access token.
    header: Value,
    payload: Value,
    /// Changes to the payload that leave it good, with the grant that it then has.
    good: Vec<(&'static str, Value, &'static str)>,
    /// Changes to header and payload with which it is no access token for us, and the reason.
    traps: Vec<(&'static str, Value, Value, &'static str)>,
}

impl Product {
    async fn check(self) {
        let example = Example::start(self.name, self.algorithm).await;
        let mut refused = 0;
        let plain = ("as it is issued", json!({}), "agent");
        for (what, change, grant) in std::iter::once(plain).chain(self.good) {
            let token = example.token(&self.header, &with(&self.payload, change));
            let before = example.counted().1;
            let response = example.hello(&token).await;
            let what = format!("{}: {what}", self.name);
            assert_eq!(response.status, 200, "{what}: {}", response.text());
            assert_eq!(example.counted().1, before + 1, "{what}");
            let before = example.counted();
            let response = example.config(&token).await;
            if grant == "full" {
                assert_eq!(response.status, 200, "{what}");
            } else {
                assert_eq!(response.status, 403, "{what}");
                assert_eq!(example.counted(), before, "{what}: the agent was touched");
                refused += 1;
            }
        }
        let mut bodies = Vec::new();
        for (what, header, payload, reason) in self.traps {
            let token = example.token(&with(&self.header, header), &with(&self.payload, payload));
            let before = example.counted();
            let response = example.hello(&token).await;
            let what = format!("{}: {what}", self.name);
            assert_eq!(response.status, 401, "{what}");
            assert_eq!(example.counted(), before, "{what}: the agent was touched");
            bodies.push(response.body);
            refused += 1;
            let record = example.gateway.refusal(refused).await;
            assert_eq!(record["decision"]["reason"], reason, "{what}: {record}");
        }
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "a caller could tell the reasons apart");
    }
}

#[tokio::test]
async fn keycloak() {
    let none = || json!({});
    Product {
        name: "keycloak",
        algorithm: DevAlgorithm::Rs256,
        header: json!({"typ": "JWT"}),
        payload: json!({
            "jti": "onrtac:2c9d", "iss": "https://keycloak.example.com/realms/agents",
            "aud": [API, "account"], "sub": "6f1e0a5c", "typ": "Bearer", "azp": "console",
            "sid": "b1", "acr": "1", "realm_access": {"roles": ["offline_access", "a2a-agent"]},
            "scope": "openid profile", "preferred_username": "alice",
        }),
        good: vec![(
            "a role for everything",
            json!({"realm_access": {"roles": ["gateway-full"]}}),
            "full",
        )],
        traps: vec![
            (
                "an ID token",
                none(),
                json!({"typ": "ID", "aud": API, "at_hash": "x"}),
                "other_kind_of_token",
            ),
            (
                "an ID token without hashes",
                none(),
                json!({"typ": "ID"}),
                "token_kind",
            ),
            (
                "a refresh token",
                none(),
                json!({"typ": "Refresh"}),
                "token_kind",
            ),
            (
                "an offline token",
                none(),
                json!({"typ": "Offline"}),
                "token_kind",
            ),
            (
                "a DPoP token without its key",
                none(),
                json!({"typ": "DPoP"}),
                "token_kind",
            ),
            (
                "no audience mapper",
                none(),
                json!({"aud": "account"}),
                "audience_other",
            ),
            (
                "a lightweight token",
                none(),
                json!({"sub": null}),
                "subject",
            ),
            (
                "another realm",
                none(),
                json!({"iss": "https://keycloak.example.com/realms/other"}),
                "issuer_unknown",
            ),
        ],
    }
    .check()
    .await;
}

#[tokio::test]
async fn entra() {
    let none = || json!({});
    let (tenant, app) = (
        "7d5b7a9c-1f0e-4f43-9a53-2c8f2b1f7a10",
        "2f1c9f0e-8a55-4c1d-b1d4-6f8f0c2b9d11",
    );
    let (own, consumers) = (
        format!("https://login.microsoftonline.com/{tenant}/v2.0"),
        "9188040d-6c67-4c5b-b112-36a304b66dad",
    );
    Product {
        name: "entra",
        algorithm: DevAlgorithm::Rs256,
        header: json!({"typ": "JWT"}),
        payload: json!({
            "aud": app, "iss": own, "azp": "c1d2", "azpacr": "1", "name": "Alice", "oid": "o-1",
            "preferred_username": "alice@example.com", "rh": "1.A", "scp": "A2A.Use User.Read",
            "sub": "s-1", "tid": tenant, "uti": "u-1", "ver": "2.0",
        }),
        good: vec![
            (
                "an app role for everything",
                json!({"scp": null, "roles": ["Gateway.Full"], "idtyp": "app"}),
                "full",
            ),
            ("a user's token", json!({"idtyp": "user"}), "agent"),
        ],
        traps: vec![
            (
                "an ID token",
                none(),
                json!({"azp": null, "azpacr": null, "scp": null, "nonce": "n"}),
                "other_kind_of_token",
            ),
            (
                "an ID token of the API's own app",
                none(),
                json!({"azp": null, "scp": null, "roles": ["Gateway.Full"]}),
                "token_kind",
            ),
            (
                "another tenant",
                none(),
                json!({"tid": "99999999-0000-0000-0000-000000000000"}),
                "tenant",
            ),
            (
                "personal accounts",
                none(),
                json!({"tid": consumers}),
                "tenant",
            ),
            ("no tenant", none(), json!({"tid": null}), "tenant"),
            (
                "another tenant's iss",
                none(),
                json!({"iss": format!("https://login.microsoftonline.com/{consumers}/v2.0")}),
                "issuer_unknown",
            ),
            (
                "the common iss",
                none(),
                json!({"iss": "https://login.microsoftonline.com/common/v2.0"}),
                "issuer_unknown",
            ),
            (
                "a v1 token",
                none(),
                json!({"iss": format!("https://sts.windows.net/{tenant}/"), "ver": "1.0"}),
                "issuer_unknown",
            ),
            (
                "a token for Graph",
                none(),
                json!({"aud": "00000003-0000-0000-c000-000000000000"}),
                "audience_other",
            ),
            (
                "a device's token",
                none(),
                json!({"idtyp": "device"}),
                "token_kind",
            ),
            (
                "a signed HTTP request",
                json!({"typ": "pop"}),
                none(),
                "typ_not_accepted",
            ),
            ("no version", none(), json!({"ver": null}), "token_kind"),
        ],
    }
    .check()
    .await;
}

#[tokio::test]
async fn auth0() {
    let none = || json!({});
    Product {
        name: "auth0",
        algorithm: DevAlgorithm::Rs256,
        header: json!({"typ": "JWT"}),
        payload: json!({
            "iss": "https://tenant.eu.auth0.com/", "sub": "auth0|6553da60a54af58e29493993",
            "aud": [API, "https://tenant.eu.auth0.com/userinfo"], "azp": "K1AUPhZq8mRi",
            "scope": "openid profile", "permissions": ["agents:call"],
        }),
        good: vec![
            (
                "a machine",
                json!({"sub": "K1AUPhZq8mRi@clients", "aud": API, "gty": "client-credentials"}),
                "agent",
            ),
            (
                "a refreshed one",
                json!({"gty": ["refresh_token", "password"]}),
                "agent",
            ),
            (
                "a permission for everything",
                json!({"permissions": ["gateway:full"]}),
                "full",
            ),
        ],
        traps: vec![
            (
                "an ID token",
                none(),
                json!({"azp": null, "aud": "K1AUPhZq8mRi", "nonce": "n", "sid": "s"}),
                "other_kind_of_token",
            ),
            (
                "an ID token whose audience is the API",
                none(),
                json!({"azp": null, "scope": null, "sid": "s"}),
                "client_missing",
            ),
            (
                "an ID token by its audience",
                none(),
                json!({"aud": "K1AUPhZq8mRi"}),
                "audience_other",
            ),
            (
                "userinfo alone",
                none(),
                json!({"aud": "https://tenant.eu.auth0.com/userinfo"}),
                "audience_other",
            ),
            (
                "a machine under another's name",
                none(),
                json!({"sub": "other@clients", "gty": "client-credentials"}),
                "token_kind",
            ),
            (
                "the RFC 9068 profile, which is not listed",
                json!({"typ": "at+jwt"}),
                json!({"azp": null, "client_id": "K1AUPhZq8mRi", "jti": "j"}),
                "typ_not_accepted",
            ),
            (
                "an iss without its slash",
                none(),
                json!({"iss": "https://tenant.eu.auth0.com"}),
                "issuer_unknown",
            ),
            (
                "a logout token",
                json!({"typ": "logout+jwt"}),
                json!({"events": {}, "sid": "s"}),
                "typ_not_accepted",
            ),
        ],
    }
    .check()
    .await;
}

#[tokio::test]
async fn okta() {
    let none = || json!({});
    Product {
        name: "okta",
        algorithm: DevAlgorithm::Rs256,
        header: json!({}),
        payload: json!({
            "ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE",
            "iss": "https://example.okta.com/oauth2/default", "aud": API, "cid": "0oa1",
            "uid": "00u1", "scp": ["openid", "a2a.agent"], "auth_time": 1_700_000_000,
            "sub": "alice@example.com",
        }),
        good: vec![
            ("a machine", json!({"uid": null, "sub": "0oa1"}), "agent"),
            (
                "a scope for everything",
                json!({"scp": ["a2a.full"]}),
                "full",
            ),
        ],
        traps: vec![
            (
                "an ID token",
                none(),
                json!({"jti": "ID.x", "aud": "0oa1", "cid": null, "at_hash": "h", "idp": "00o1"}),
                "other_kind_of_token",
            ),
            (
                "an ID token whose audience is the API",
                none(),
                json!({"jti": "ID.x", "cid": null}),
                "token_kind",
            ),
            ("no client", none(), json!({"cid": null}), "client_missing"),
            (
                "a token of the org server",
                json!({"typ": "application/okta-internal-at+jwt"}),
                json!({"iss": "https://example.okta.com", "aud": "https://example.okta.com"}),
                "issuer_unknown",
            ),
            (
                "the org server's kind under our issuer",
                json!({"typ": "application/okta-internal-at+jwt"}),
                none(),
                "typ_not_accepted",
            ),
            ("another version", none(), json!({"ver": 2}), "token_kind"),
            (
                "a version in text",
                none(),
                json!({"ver": "1"}),
                "token_kind",
            ),
        ],
    }
    .check()
    .await;
}

#[tokio::test]
async fn cognito() {
    let none = || json!({});
    Product {
        name: "cognito",
        algorithm: DevAlgorithm::Rs256,
        header: json!({}),
        payload: json!({
            "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "device_key": "d", "version": 2,
            "iss": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_aBcDeFgHi",
            "client_id": "4t5l3kq9u1example", "origin_jti": "o", "event_id": "e",
            "token_use": "access", "scope": "openid gateway/a2a", "auth_time": 1_700_000_000,
            "jti": "j", "username": "alice", "cognito:groups": ["readers"],
        }),
        good: vec![
            ("a machine", json!({"sub": "4t5l3kq9u1example", "username": null}), "agent"),
            ("a group for everything", json!({"cognito:groups": ["gateway-full"]}), "full"),
        ],
        traps: vec![
            ("an ID token", none(), json!({"token_use": "id", "client_id": null, "aud": "4t5l3kq9u1example", "cognito:username": "alice"}), "token_kind"),
            ("an ID token with a client", none(), json!({"token_use": "id"}), "token_kind"),
            ("another app client", none(), json!({"client_id": "other"}), "client_not_listed"),
            ("a token that is bound to another resource", none(), json!({"aud": "https://other.example.com"}), "audience_other"),
            ("another pool", none(), json!({"iss": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_other"}), "issuer_unknown"),
            ("no token_use", none(), json!({"token_use": null}), "token_kind"),
        ],
    }
    .check()
    .await;
}

#[tokio::test]
async fn spiffe() {
    let none = || json!({});
    Product {
        name: "spiffe",
        algorithm: DevAlgorithm::Es256,
        header: json!({"typ": "JWT"}),
        payload: json!({
            "aud": [API], "iss": "https://oidc.example.org",
            "sub": "spiffe://example.org/ns/agents/sa/planner",
        }),
        good: vec![
            ("without iat", json!({"iat": null}), "agent"),
            ("one audience as text", json!({"aud": API}), "agent"),
        ],
        traps: vec![
            (
                "a workload of another domain",
                none(),
                json!({"sub": "spiffe://other.example/planner"}),
                "spiffe_id",
            ),
            (
                "a name that is no SPIFFE ID",
                none(),
                json!({"sub": "planner"}),
                "spiffe_id",
            ),
            (
                "the domain itself",
                none(),
                json!({"sub": "spiffe://example.org"}),
                "spiffe_id",
            ),
            (
                "another audience",
                none(),
                json!({"aud": ["spiffe://example.org/reports"]}),
                "audience_other",
            ),
            ("no issuer", none(), json!({"iss": null}), "issuer_missing"),
            (
                "an extra header member",
                json!({"x5t": "AAAA"}),
                none(),
                "header_member_unknown",
            ),
            (
                "an access token's header",
                json!({"typ": "at+jwt"}),
                none(),
                "typ_not_accepted",
            ),
            (
                "a workload identity token",
                json!({"typ": "wit+jwt"}),
                none(),
                "typ_not_accepted",
            ),
            (
                "an ID token",
                none(),
                json!({"nonce": "n"}),
                "other_kind_of_token",
            ),
        ],
    }
    .check()
    .await;
}
