//! The entry that would trust an issuer, with a mark at each thing that only its operator knows.

use super::Found;
use crate::cli::token::quoted;
use crate::identity::issuer::Algorithm;
use crate::identity::profile::{Rules, Subject};

/// Something to fill in.
pub(super) struct Missing {
    /// The entry's field.
    pub(super) field: &'static str,
    /// What stands in its place.
    pub(super) placeholder: &'static str,
    pub(super) says: String,
}

const AUDIENCE: &str = "FILL_IN_AUDIENCE";
const CLIENT: &str = "FILL_IN_CLIENT";
const TENANT: &str = "FILL_IN_TENANT";
const TRUST_DOMAIN: &str = "FILL_IN_TRUST_DOMAIN";

/// What the profile needs and nothing that we were told says.
pub(super) fn missing(found: &Found<'_>) -> Vec<Missing> {
    let product = found.judged.product;
    let rules = product.profile.rules();
    let mut missing = Vec::new();
    if found.arguments.audience.is_none() {
        missing.push(match takes_clients(rules) {
            true => Missing {
                field: "clients",
                placeholder: CLIENT,
                says: format!(
                    "the ids of the app clients whose tokens count: {} tokens have no `aud`, unless one is asked for",
                    product.name
                ),
            },
            false => Missing {
                field: "audiences",
                placeholder: AUDIENCE,
                says: format!("the `aud` of tokens for this gateway: {}", product.audience),
            },
        });
    }
    if needs_tenants(rules) && found.judged.tenant.is_none() {
        missing.push(Missing {
            field: "tenants",
            placeholder: TENANT,
            says: "the id of the tenant, which stands in the path of `issuer`".to_owned(),
        });
    }
    if rules.subject == Subject::SpiffeId {
        missing.push(Missing {
            field: "trust_domain",
            placeholder: TRUST_DOMAIN,
            says: "the trust domain whose workloads may call, such as `example.org`".to_owned(),
        });
    }
    missing
}

fn takes_clients(rules: &Rules) -> bool {
    rules.clients_for_audience
}

fn needs_tenants(rules: &Rules) -> bool {
    rules.tenant.is_some_and(|tenant| tenant.in_issuer)
}

/// The entry for `issuers`.
pub(super) fn entry(found: &Found<'_>) -> String {
    let (arguments, product) = (found.arguments, found.judged.product);
    let rules = product.profile.rules();
    let missing = missing(found);
    let mark = |field: &str| {
        let missing = missing.iter().find(|missing| missing.field == field);
        missing.map_or(String::new(), |m| format!("   # FILL IN: {}", m.says))
    };
    let mut lines = vec![format!("issuer: {}", quoted(&arguments.issuer))];
    if needs_tenants(rules) {
        let tenant = found.judged.tenant.as_deref().unwrap_or(TENANT);
        lines.push(format!("tenants: [{tenant}]{}", mark("tenants")));
    }
    if rules.subject == Subject::SpiffeId {
        lines.push(format!(
            "trust_domain: {TRUST_DOMAIN}{}",
            mark("trust_domain")
        ));
    }
    let audience = arguments.audience.as_deref().map(quoted);
    if audience.is_none() && takes_clients(rules) {
        lines.push(format!("clients: [{CLIENT}]{}", mark("clients")));
    } else {
        let audience = audience.as_deref().unwrap_or(AUDIENCE);
        lines.push(format!("audiences: [{audience}]{}", mark("audiences")));
    }
    lines.push(format!("keys: {{{}}}", keys(found)));
    if rules.name != "strict" {
        lines.push(format!("profile: {}", rules.name));
    }
    if let Some((longest, why)) = product.lifetime {
        lines.push(format!("max_lifetime: {longest}   # {why}"));
    }
    lines.extend(algorithms(found));
    lines.push("grants:   # the values are yours to choose, and to give at the issuer".to_owned());
    for grant in product.grants {
        let audience = audience.as_deref().unwrap_or(AUDIENCE);
        lines.push(format!("  - {}", grant.replace("AUDIENCE", audience)));
    }
    format!("issuers:\n  - name: idp\n    {}\n", lines.join("\n    "))
}

fn keys(found: &Found<'_>) -> String {
    let arguments = found.arguments;
    let mut keys = vec![match &*arguments.discovery {
        "either" => "discovery: true".to_owned(),
        form => format!("discovery: {form}"),
    }];
    if !arguments.hosts.is_empty() {
        let hosts: Vec<String> = arguments.hosts.iter().map(|host| quoted(host)).collect();
        keys.push(format!("hosts: [{}]", hosts.join(", ")));
    }
    if let Some(ca) = &arguments.ca {
        let ca = std::fs::canonicalize(ca).unwrap_or_else(|_| ca.clone());
        keys.push(format!("ca: {}", quoted(&ca.display().to_string())));
    }
    for (name, on) in [
        ("private", arguments.private),
        ("loopback", arguments.loopback),
    ] {
        keys.extend(on.then(|| format!("{name}: true")));
    }
    keys.join(", ")
}

/// Those of its keys, as far as its profile takes them.
fn algorithms(found: &Found<'_>) -> Vec<String> {
    let may_list = found.judged.product.profile.rules().algorithms.may_list;
    let listed = Algorithm::NAMES.iter().filter(|(_, algorithm)| {
        may_list.contains(algorithm) && found.keys.iter().any(|key| key.algorithm == *algorithm)
    });
    let listed: Vec<(&str, Algorithm)> = listed.copied().collect();
    if listed.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = listed.iter().map(|(name, _)| *name).collect();
    let mut lines = vec![format!("algorithms: [{}]", names.join(", "))];
    let rsa: Vec<&str> = listed
        .iter()
        .filter(|(_, algorithm)| algorithm.is_rsa())
        .map(|(name, _)| *name)
        .collect();
    if let (Some(first), false) = (rsa.first(), rsa.contains(&"RS256")) {
        lines.push(format!("rsa_alg: {first}"));
    }
    lines
}
