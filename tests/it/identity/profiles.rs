//! The table of profiles, and delegation: what holds for every token.

use super::world::{AUDIENCE, of_profile};
use crate::support::issuer::{DevAlgorithm, Issuer};
use portcullis::identity::issuer::{Algorithm, Grant, GrantForm, GrantMark, IssuerConfig, Profile};
use portcullis::identity::profile::{Subject, is_in_issuer};
use portcullis::identity::{Issuers, Principal, accept, explain};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

const NOW: i64 = 1_750_000_000;
const TENANT: &str = "11111111-0000-0000-0000-000000000000";

/// One entry for each profile, all with one key, so that only rules tell tokens apart.
struct Stand {
    issuer: Issuer,
    entries: Vec<IssuerConfig>,
    issuers: Issuers,
}

static STAND: LazyLock<Stand> = LazyLock::new(|| {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let entries: Vec<IssuerConfig> = Profile::ALL
        .into_iter()
        .map(|profile| entry(profile, &issuer.jwks()))
        .collect();
    let shared: Vec<_> = entries.iter().cloned().map(Arc::new).collect();
    Stand {
        issuers: Issuers::compile(&shared).0,
        issuer,
        entries,
    }
});

fn iss(profile: Profile) -> String {
    format!("https://idp.example/{TENANT}/{}", profile.rules().name)
}

fn entry(profile: Profile, jwks: &str) -> IssuerConfig {
    let name = profile.rules().name;
    let mut entry = of_profile(name, &iss(profile), profile, jwks.as_bytes().into());
    entry.algorithms = vec![Algorithm::Es256];
    if profile.rules().tenant.is_some_and(|t| t.in_issuer) {
        entry.tenants = vec![TENANT.into()];
    }
    if profile.rules().clients_for_audience {
        entry.audiences = Vec::new();
        entry.clients = vec!["client-1".into()];
    }
    if profile.rules().subject == Subject::SpiffeId {
        entry.trust_domain = Some("example.org".into());
    }
    entry.grants = vec![GrantMark {
        path: vec!["g".into()],
        form: GrantForm::StringArray,
        map: vec![("a".into(), Grant::Agent), ("f".into(), Grant::Full)],
    }];
    entry
}

/// Header and payload of a good token.
fn good(profile: Profile) -> (Value, Value) {
    let key = STAND.issuer.key();
    let mut header = json!({"alg": "ES256", "kid": key.kid()});
    let (typ, own) = match profile {
        Profile::Strict => (Some("at+jwt"), json!({"client_id": "client-1", "jti": "j"})),
        Profile::Keycloak => (Some("JWT"), json!({"azp": "client-1", "typ": "Bearer"})),
        Profile::Entra => (
            Some("JWT"),
            json!({"azp": "client-1", "ver": "2.0", "tid": TENANT}),
        ),
        Profile::Auth0 => (Some("JWT"), json!({"azp": "client-1"})),
        Profile::Okta => (None, json!({"cid": "client-1", "ver": 1, "jti": "AT.j"})),
        Profile::Cognito => (
            None,
            json!({"client_id": "client-1", "token_use": "access", "aud": null}),
        ),
        Profile::Spiffe => (Some("JWT"), json!({"sub": "spiffe://example.org/a"})),
    };
    if let Some(typ) = typ {
        header["typ"] = json!(typ);
    }
    let payload = json!({
        "iss": iss(profile), "sub": "alice", "aud": AUDIENCE, "iat": NOW - 10, "exp": NOW + 300, "g": ["a"],
    });
    (header, over(&payload, &own))
}

/// One object over another; what is null above is taken out below.
fn over(base: &Value, change: &Value) -> Value {
    let mut all: Map<String, Value> = base.as_object().unwrap().clone();
    all.extend(change.as_object().unwrap().clone());
    all.retain(|_, value| !value.is_null());
    Value::Object(all)
}

fn judge(header: &Value, payload: &Value) -> Result<Principal, &'static str> {
    let key = STAND.issuer.key();
    let token = key
        .sign(
            header.to_string().as_bytes(),
            payload.to_string().as_bytes(),
        )
        .unwrap();
    let judged = accept(&STAND.issuers, &token, NOW).map_err(|refused| refused.fault.code);
    let findings = explain(&STAND.issuers, &token, NOW);
    assert_eq!(
        judged.is_ok(),
        findings.iter().all(|f| !f.refuses),
        "{payload}"
    );
    judged
}

/// The outcome of one change for every profile, in the order of the table: strict, keycloak,
/// entra, auth0, okta, cognito, spiffe. Empty: accepted.
type Row = (&'static str, Value, Value, [&'static str; 7]);

#[test]
fn every_profile_has_its_rules() {
    let h = |header: Value| (header, json!({}));
    let p = |payload: Value| (json!({}), payload);
    let row = |what, (header, payload), outcome| (what, header, payload, outcome);
    let typ = "typ_not_accepted";
    let kind = "token_kind";
    let all = |code| [code; 7];
    let table: Vec<Row> = vec![
        row("as issued", p(json!({})), all("")),
        row(
            "HD-5 at+jwt",
            h(json!({"typ": "at+jwt"})),
            ["", typ, typ, typ, typ, typ, typ],
        ),
        row(
            "HD-5 JWT",
            h(json!({"typ": "JWT"})),
            [typ, "", "", "", typ, typ, ""],
        ),
        row(
            "HD-5 JOSE",
            h(json!({"typ": "JOSE"})),
            [typ, typ, typ, typ, typ, typ, ""],
        ),
        row(
            "HD-5 absent",
            h(json!({"typ": null})),
            [typ, typ, typ, typ, "", "", ""],
        ),
        row("HD-5 dpop+jwt", h(json!({"typ": "dpop+jwt"})), all(typ)),
        row("HD-6", h(json!({"kid": null})), all("kid_missing")),
        row(
            "HD-10",
            h(json!({"vendor": 1})),
            ["", "", "", "", "", "", "header_member_unknown"],
        ),
        row(
            "CL-2 none",
            p(json!({"aud": null})),
            [
                "audience_missing",
                "audience_missing",
                "audience_missing",
                "audience_missing",
                "audience_missing",
                "",
                "audience_missing",
            ],
        ),
        row("CL-2 other", p(json!({"aud": "x"})), all("audience_other")),
        row(
            "CL-5",
            p(json!({"iat": null})),
            [
                "issued_at_missing",
                "",
                "issued_at_missing",
                "issued_at_missing",
                "issued_at_missing",
                "issued_at_missing",
                "",
            ],
        ),
        row("CL-7 none", p(json!({"sub": null})), all("subject")),
        row(
            "CL-7 text",
            p(json!({"sub": "bob"})),
            ["", "", "", "", "", "", "spiffe_id"],
        ),
        row(
            "CL-7 id",
            p(json!({"sub": "spiffe://example.org/b"})),
            all(""),
        ),
        row(
            "CL-8",
            p(json!({"jti": null, "uti": null})),
            ["token_id", "", "", "", kind, "", ""],
        ),
        row(
            "CL-9 none",
            p(json!({"client_id": null, "azp": null, "appid": null, "cid": null})),
            [
                "client_missing",
                "client_missing",
                kind,
                "client_missing",
                "client_missing",
                "client_missing",
                "",
            ],
        ),
        row(
            "CL-9 two",
            p(json!({"client_id": "client-1", "azp": "client-1"})),
            all(""),
        ),
        row(
            "CL-9 differ",
            p(json!({"client_id": "client-1", "azp": "client-2"})),
            all("clients_differ"),
        ),
        row(
            "CL-10 nonce",
            p(json!({"nonce": "n"})),
            all("other_kind_of_token"),
        ),
        row(
            "CL-10 typ",
            p(json!({"typ": "ID"})),
            ["", kind, "", "", "", "", ""],
        ),
        row(
            "CL-10 ver",
            p(json!({"ver": "3.0"})),
            ["", "", kind, "", kind, "", ""],
        ),
        row(
            "CL-10 idtyp",
            p(json!({"idtyp": "device"})),
            ["", "", kind, "", "", "", ""],
        ),
        row(
            "CL-10 gty",
            p(json!({"gty": "client-credentials"})),
            ["", "", "", kind, "", "", ""],
        ),
        row(
            "CL-10 jti",
            p(json!({"jti": "ID.j"})),
            ["", "", "", "", kind, "", ""],
        ),
        row(
            "CL-10 token_use",
            p(json!({"token_use": "id"})),
            ["", "", "", "", "", kind, ""],
        ),
        row(
            "IS-4 other",
            p(json!({"tid": "t9"})),
            ["", "", "tenant", "", "", "", ""],
        ),
        row(
            "IS-4 none",
            p(json!({"tid": null})),
            ["", "", "tenant", "", "", "", ""],
        ),
        row(
            "GR-8",
            p(json!({"act": {"sub": 1}})),
            all("actor_malformed"),
        ),
    ];
    let mut wrong = Vec::new();
    for (what, header_change, payload_change, outcomes) in &table {
        for (profile, outcome) in Profile::ALL.into_iter().zip(outcomes) {
            let (header, payload) = good(profile);
            let found = judge(
                &over(&header, header_change),
                &over(&payload, payload_change),
            );
            if found.as_ref().err().copied().unwrap_or_default() != *outcome {
                wrong.push(format!(
                    "{what}, {}: {:?}",
                    profile.rules().name,
                    found.err()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A product's own row relaxes nothing that no line above shows.
    for profile in Profile::ALL {
        let (_, payload) = good(profile);
        let principal = judge(&good(profile).0, &payload).unwrap();
        let client = (profile != Profile::Spiffe).then_some("client-1");
        assert_eq!(principal.client.as_deref(), client);
        assert_eq!(principal.grant, Some(Grant::Agent));
    }
}

/// IS-2: a key that is everybody's makes nobody's token another's.
#[test]
fn no_profiles_token_is_anothers() {
    for from in Profile::ALL {
        for to in Profile::ALL.into_iter().filter(|to| *to != from) {
            let (header, payload) = good(from);
            let payload = over(&payload, &json!({"iss": iss(to)}));
            let judged = judge(&header, &payload);
            // Auth0's token is the least marked one: what it has, Keycloak's and Entra's have too.
            let within = to == Profile::Auth0 && matches!(from, Profile::Keycloak | Profile::Entra);
            assert_eq!(judged.is_ok(), within, "{from:?} as {to:?}: {judged:?}");
        }
    }
}

#[test]
fn a_tenant_is_a_whole_segment_of_the_path() {
    for (tenant, issuer, tied) in [
        ("t1", "https://login.example/t1/v2.0", true),
        ("t1", "https://login.example/t1", true),
        ("t1", "https://login.example/t11/v2.0", false),
        ("t1", "https://t1/v2.0", false),
        ("t1", "https://login.example/x?t1", false),
        ("t1", "t1", false),
        ("", "https://login.example//v2.0", false),
        ("T1", "https://login.example/t1/v2.0", false),
    ] {
        assert_eq!(is_in_issuer(tenant, issuer), tied, "{tenant} {issuer}");
    }
}

/// IS-3: a declaration counts when both sides make it.
#[test]
fn declared_shared_keys_raise_no_alert() {
    let jwks = STAND.issuer.jwks();
    let pair = |names: [&[&str]; 2]| {
        let mut entries = [Profile::Strict, Profile::Okta].map(|profile| entry(profile, &jwks));
        for (entry, names) in entries.iter_mut().zip(names) {
            entry.shared_keys = names.iter().map(|n| Box::from(*n)).collect();
        }
        Issuers::compile(&entries.map(Arc::new)).1.len()
    };
    assert_eq!(pair([&[], &[]]), 1);
    assert_eq!(pair([&["okta"], &[]]), 1);
    assert_eq!(pair([&["okta"], &["strict"]]), 0);
}

/// Any JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z@.]{0,6}".prop_map(Value::from),
        Just(json!(AUDIENCE)),
        Just(json!("client-1")),
        Just(json!("f")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,4}|sub|act|iss", inner), 0..3)
                .prop_map(|members| { Value::Object(members.into_iter().collect()) }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_chain_is_at_most_four_and_caps_at_agent(
        depth in 0usize..12,
        which in 0usize..7,
        full in any::<bool>(),
    ) {
        let profile = Profile::ALL[which];
        let (header, payload) = good(profile);
        let act = (0..depth).fold(Value::Null, |inner, at| {
            over(&json!({"sub": format!("a{at}")}), &json!({"act": inner}))
        });
        let marks = if full { json!(["f"]) } else { json!(["a"]) };
        let judged = judge(&header, &over(&payload, &json!({"act": act, "g": marks})));
        if depth > 4 {
            prop_assert_eq!(judged.unwrap_err(), "actors_too_many");
        } else {
            let principal = judged.unwrap();
            prop_assert_eq!(principal.actors.len(), depth);
            let outermost = principal.actors.first().map(|a| a.subject.to_string());
            prop_assert_eq!(outermost, depth.checked_sub(1).map(|at| format!("a{at}")));
            let wanted = if full && depth == 0 { Grant::Full } else { Grant::Agent };
            prop_assert_eq!(principal.grant, Some(wanted));
        }
    }

    /// What stands in `act` or `may_act`, and whatever else is added, never gives more.
    #[test]
    fn any_json_in_a_claim_never_widens(
        claim in "act|may_act|tid|org_id|ver|gty|cid|appid|uti|idtyp|token_use|[a-f]{1,3}",
        value in any_json(),
        which in 0usize..7,
        marks in prop_oneof![Just(json!([])), Just(json!(["a"])), Just(json!(["f"]))],
    ) {
        let profile = Profile::ALL[which];
        let (header, payload) = good(profile);
        let payload = over(&payload, &json!({"g": marks}));
        let before = judge(&header, &payload).unwrap();
        let mut changed = payload.as_object().unwrap().clone();
        changed.insert(claim.clone(), value);
        if let Ok(after) = judge(&header, &Value::Object(changed)) {
            prop_assert!(after.grant <= before.grant);
            prop_assert_eq!(&after.subject, &before.subject);
            prop_assert_eq!(after.issuer_index, before.issuer_index);
            prop_assert_eq!(after.actors.is_empty(), claim != "act");
            // Okta's tokens name their client there.
            if claim != "cid" {
                prop_assert_eq!(&after.client, &before.client);
            }
        }
    }

    /// The same for a whole payload of anything.
    #[test]
    fn any_payload_is_judged_without_a_panic(payload in any_json(), which in 0usize..7) {
        let (header, good) = good(Profile::ALL[which]);
        let payload = match payload {
            Value::Object(members) => {
                let mut all = good.as_object().unwrap().clone();
                all.extend(members);
                Value::Object(all)
            }
            other => other,
        };
        let judged = judge(&header, &payload);
        prop_assert!(judged.is_err() || payload.is_object());
    }
}

/// The entries of this test are in force as they are written.
#[test]
fn the_stand_has_every_profile() {
    assert_eq!(STAND.entries.len(), Profile::ALL.len());
    for (profile, entry) in Profile::ALL.into_iter().zip(&STAND.entries) {
        assert_eq!(entry.profile, profile);
        assert_eq!(Profile::named(profile.rules().name), Some(profile));
    }
}
