//! The gateway that the corpus assumes (its `reference`), in YAML as an operator writes it.

use super::Corpus;
use super::request::Way;
use crate::support::client::get;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer_stub::{IssuerStub, Mode};
use crate::support::pki::{Authority, Pair};
use crate::support::{loopback, within};
use portcullis::adapters::clock::ManualClock;
use portcullis::cli::demo_agent::{DemoAgent, Options};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub const BASE: &str = "https://gateway.example";
pub const HOST: &str = "gateway.example";
const AUDIENCE: &str = "https://gateway.example/a2a";

/// An issuer of the corpus's `reference`: its name, its `iss`, and the fields of its entry.
type Reference = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// In the order of the configuration.
const ISSUERS: [Reference; 8] = [
    (
        "A",
        "https://issuer-a.example",
        &[
            ("not_before", "1000000000"),
            (
                "grants",
                "[{path: [scope], form: space_string, map: {\"a2a:use\": agent, \"gw:full\": full}}, \
                 {path: [scp], form: string_array, map: {\"a2a:use\": agent, \"gw:full\": full}}, \
                 {path: [permissions], form: string_array, map: {\"a2a:use\": agent, \"gw:full\": full}}]",
            ),
            (
                "claims",
                "{role: {path: [role], type: string}, level: {path: [level], type: number}, \
                 groups: {path: [groups], type: string_array}}",
            ),
        ],
    ),
    (
        "B",
        "https://issuer-b.example",
        &[
            ("algorithms", "[ES256]"),
            (
                "grants",
                "[{path: [scope], form: space_string, map: {\"a2a:use\": agent, \"gw:full\": full}}]",
            ),
        ],
    ),
    (
        "K",
        "https://kc.example/realms/r",
        &[
            ("profile", "keycloak"),
            ("algorithms", "[RS256]"),
            (
                "grants",
                "[{path: [realm_access, roles], form: string_array, map: {a2a-agent: agent, gw-full: full}}, \
                 {path: [resource_access, gateway, roles], form: string_array, map: {full: full}}]",
            ),
        ],
    ),
    (
        "E",
        "https://login.example/11111111-0000-0000-0000-000000000000/v2.0",
        &[
            ("profile", "entra"),
            ("tenants", "[11111111-0000-0000-0000-000000000000]"),
            ("algorithms", "[RS256]"),
            ("max_lifetime", "2h"),
            (
                "grants",
                "[{path: [scp], form: space_string, map: {A2A.Use: agent}}, \
                 {path: [roles], form: string_array, map: {Gateway.Full: full}}]",
            ),
        ],
    ),
    (
        "C",
        "https://cognito-idp.example/pool-1",
        &[
            ("profile", "cognito"),
            ("audiences", ""),
            ("clients", "[client-c]"),
            ("algorithms", "[RS256]"),
            (
                "grants",
                "[{path: [scope], form: space_string, map: {gateway/a2a: agent}}, \
                 {path: [\"cognito:groups\"], form: string_array, map: {gw-full: full}}]",
            ),
        ],
    ),
    (
        "O",
        "https://okta.example/oauth2/aus1",
        &[
            ("profile", "okta"),
            (
                "grants",
                "[{path: [scp], form: string_array, map: {a2a.agent: agent}}]",
            ),
        ],
    ),
    (
        "U",
        "https://auth0.example/",
        &[
            ("profile", "auth0"),
            (
                "grants",
                "[{path: [permissions], form: string_array, map: {\"gateway:a2a\": agent, \"gateway:full\": full}}]",
            ),
        ],
    ),
    (
        "S",
        "https://spire.example",
        &[
            ("profile", "spiffe"),
            ("trust_domain", "spiffe.example"),
            (
                "grants",
                "[{path: [scope], form: space_string, map: {a2a.agent: agent}}]",
            ),
        ],
    ),
];

/// What differs from one gateway to the next.
pub struct Wanted {
    /// Variants of key sets by issuer.
    pub jwks: HashMap<String, String>,
    /// The policy's name in the corpus.
    pub policy: Option<String>,
    /// Fields that a case sets in one issuer.
    pub settings: HashMap<String, Value>,
    /// Which one.
    pub of: Option<String>,
    /// What issuer A's server does when the gateway starts.
    pub issuer: Mode,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            jwks: HashMap::new(),
            policy: None,
            settings: HashMap::new(),
            of: None,
            issuer: Mode::Ok,
        }
    }
}

/// A gateway, the agent behind it, issuer A's server, and the clock that all go by.
pub struct Stand {
    pub agent: DemoAgent,
    pub gateway: Gateway,
    pub issuer: IssuerStub,
    pub clock: Arc<ManualClock>,
    /// Header fields that were sent.
    pub sent: Vec<(String, String)>,
    authority: Authority,
    clients: HashMap<String, Pair>,
}

impl Stand {
    pub async fn new(corpus: &Corpus, wanted: &Wanted) -> Stand {
        let options = Options {
            other_paths: vec!["/internal/report".into()],
            ..Options::default()
        };
        let agent = DemoAgent::start_with(loopback(), options).await.unwrap();
        let authority = Authority::new();
        let own = authority.pair(&[HOST]);
        let now = u64::try_from(corpus.now).unwrap() * 1000;
        let clock = Arc::new(ManualClock::at(now));
        let keys = |name: &str| {
            let variant = wanted.jwks.get(name).map_or("default", String::as_str);
            corpus.jwks[name][variant].clone()
        };
        let (_, iss, _) = ISSUERS[0];
        let issuer = IssuerStub::start(iss, &keys("A")).await;
        issuer.set(wanted.issuer, &keys("A"));
        let clients: HashMap<String, Pair> = corpus
            .clients
            .iter()
            .map(|(name, pem)| {
                let pair = Pair {
                    cert: pem.cert.clone(),
                    key: pem.key.clone(),
                };
                (name.clone(), pair)
            })
            .collect();
        let trusted: String = clients.values().map(|pair| pair.cert.as_str()).collect();
        let mut files = vec![
            ("own.pem".to_owned(), own.cert.clone()),
            ("own.key".to_owned(), own.key.clone()),
            ("clients.pem".to_owned(), trusted),
            ("a.pem".to_owned(), issuer.ca.clone()),
            ("policy.yaml".to_owned(), policy(wanted.policy.as_deref())),
            (
                "denylist.yaml".to_owned(),
                "version: 1\nrevoked: []\n".to_owned(),
            ),
        ];
        let mut issuers = String::new();
        for reference in ISSUERS {
            let source = match reference {
                ("A", ..) => "{discovery: true, ca: a.pem, timeout: 1s}".to_owned(),
                (name, ..) => {
                    files.push((format!("{name}.jwks"), keys(name)));
                    format!("{{file: {name}.jwks}}")
                }
            };
            issuers += &entry(reference, &source, wanted);
        }
        let yaml = format!(
            "version: 1
listeners:
  - name: public
    bind: PUBLIC
    public_url: {BASE}
    tls: {{certificates: [{{cert: own.pem, key: own.key}}]}}
    client_ca: {{file: clients.pem, mode: optional}}
admin: {{bind: 127.0.0.1:0}}
issuers:
{issuers}agents:
  - name: a
    route: {{path: /}}
    publish: true
    backend: {{url: {url}}}
    interfaces: [{{binding: JSONRPC, version: \"1.0\", backend: /a2a, public_path: /a2a}}]
    skills: [translate, invoice.pay]
    skill_from: [{{metadata: skillId}}]
    backend_paths: [{{path: /internal/report, methods: [GET]}}]
policies: {{files: [policy.yaml]}}
revocation: {{files: [denylist.yaml]}}
audit: {{journal: {{dir: journal}}}}
",
            url = agent.url()
        );
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let setup = Setup {
            yaml: &yaml,
            files: &files,
            clock: Some(clock.clone()),
        };
        let gateway = Gateway::start_trusting(setup, issuer.source());
        let stand = Stand {
            agent,
            gateway,
            issuer,
            clock,
            sent: Vec::new(),
            authority,
            clients,
        };
        if wanted.issuer == Mode::Ok {
            stand.refresh().await;
        }
        stand
    }

    /// The way of a caller with this certificate, from an address that others than the same
    /// hundred do not have: an address has only so many bad tokens.
    pub fn way(&self, client: Option<&str>, number: usize) -> Way {
        Way {
            public: self.gateway.address,
            admin: self.gateway.admin,
            tls: self
                .authority
                .client(client.map(|name| &self.clients[name])),
            source: [127, 0, 0, 1 + u8::try_from(number / 100).unwrap()],
        }
    }

    /// What the agent acted on so far.
    pub fn executions(&self) -> u64 {
        self.agent.counters().executions()
    }

    /// Issuer A's keys are fetched, whatever comes of it.
    pub async fn refresh(&self) {
        let keys = self.gateway.server.gate.issuer_keys.clone();
        within("a refresh", keys.refresh("a")).await;
    }

    /// Revokes tokens, as the corpus writes it: `iss` is an issuer's name.
    pub async fn revoke(&self, by: &HashMap<String, Value>) {
        let fields: Vec<String> = by
            .iter()
            .map(|(name, value)| match name.as_str() {
                "iss" => format!("issuer: {}", value.as_str().unwrap().to_lowercase()),
                name => format!("{name}: {value}"),
            })
            .collect();
        let list = format!("version: 1\nrevoked: [{{{}}}]\n", fields.join(", "));
        self.change("denylist.yaml", &list).await;
    }

    /// Puts another policy in force.
    pub async fn reconfigure(&self, name: &str) {
        self.change("policy.yaml", &policy(Some(name))).await;
    }

    /// Writes a file and waits until it is in force.
    async fn change(&self, file: &str, text: &str) {
        let generation = || self.gateway.server.gate.live().snapshot.generation;
        let before = generation();
        self.gateway.write(file, text);
        within("another generation", async {
            // Files must stay the same for a while by the gateway's clock.
            while generation() == before {
                self.clock.advance(Duration::from_millis(100));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Everything that the gateway wrote or shows to operators.
    pub async fn written(&self) -> String {
        let metrics = get(self.gateway.admin, "/metrics", &[]).await.unwrap();
        let ready = get(self.gateway.admin, "/readyz", &[]).await.unwrap();
        let records = format!("{:?}", self.gateway.journal.records());
        records + &metrics.text() + &ready.text()
    }
}

/// One issuer's entry; what the case says stands in the place of what the reference says.
fn entry(reference: Reference, keys: &str, wanted: &Wanted) -> String {
    let (name, iss, fields) = reference;
    let mut entry = BTreeMap::from([
        ("name", name.to_lowercase()),
        ("issuer", format!("{iss:?}")),
        ("keys", keys.to_owned()),
        ("audiences", format!("[{AUDIENCE:?}]")),
    ]);
    entry.extend(
        fields
            .iter()
            .map(|(field, value)| (*field, (*value).to_owned())),
    );
    if name == "A" && wanted.policy.as_deref() == Some("clients-listed") {
        entry.insert("clients", "[client-1]".into());
    }
    let settings = wanted.of.as_deref().filter(|of| *of == name);
    for (field, value) in settings.iter().flat_map(|_| &wanted.settings) {
        let unit = if field == "leeway" { "s" } else { "" };
        entry.insert(field, format!("{value}{unit}"));
        // RSA keys that name no algorithm need one that is listed.
        if field == "algorithms" && value[0] == "PS256" {
            entry.insert("rsa_alg", "PS256".into());
        }
    }
    // Empty: not written at all.
    entry.retain(|_, value| !value.is_empty());
    let fields: Vec<String> = entry.iter().map(|(n, v)| format!("{n}: {v}")).collect();
    format!("  - {{{}}}\n", fields.join(", "))
}

/// A policy of the corpus in our grammar. Where the corpus writes `!=`, there is an allow that
/// wants the claim and a deny of the value (`design.md` section 16).
fn policy(name: Option<&str>) -> String {
    let all = "agents: [a], issuers: any";
    let allow = |id: &str, grant: &str, operations: &str, more: &str| {
        let skills = if operations == "messages" {
            ", skills: any"
        } else {
            ""
        };
        format!(
            "  - id: {id}\n    allow: {{{all}, operations: [{operations}]{skills}}}\n    grant: {grant}\n{more}"
        )
    };
    let require = |what: &str| format!("    require: {{{what}}}\n");
    let deny = |more: &str| {
        format!(
            "  - id: not\n    deny: {{agents: [a], operations: any, skills: any}}\n    {more}\n"
        )
    };
    let everything = allow("all", "agent", "messages", "");
    let rules = match name {
        None | Some("default" | "clients-listed") => everything,
        // Nothing for messages.
        Some("empty") => String::new(),
        Some("actor-agent-1") => allow("actor", "agent", "messages", &require("actor_sub: {equals: agent-1}")),
        Some("deny-ne-reviewer") => everything + &deny("unless: {role: {equals: reviewer}}"),
        Some("allow-ne-contractor" | "allow-not-eq-contractor") => {
            allow("there", "agent", "messages", &require("role: {exists: true}"))
                + &deny("when: {role: {equals: contractor}}")
        }
        Some("allow-eq-reviewer") => allow("eq", "agent", "messages", &require("role: {equals: reviewer}")),
        Some("deny-eq-contractor-guarded") => {
            everything + &deny("when: {role: {equals: contractor, if_missing: no_match}}")
        }
        Some("allow-groups-ops") => allow("ops", "agent", "messages", &require("groups: {contains: ops}")),
        Some("allow-level-1") => allow("level", "agent", "messages", &require("level: {equals: 1}")),
        Some("skill-scoped") => ["translate", "invoice.pay"]
            .iter()
            .map(|skill| {
                format!(
                    "  - id: {}\n    allow: {{{all}, operations: [messages], skills: [{skill}]}}\n    grant: agent\n{}",
                    skill.replace('.', "-"),
                    require(&format!("scopes: {{contains: \"skill:{skill}\"}}"))
                )
            })
            .collect(),
        Some(other) => panic!("no policy {other}"),
    };
    let full = allow("full", "full", "backend", "");
    format!("version: 1\npolicy: corpus\nrules:\n{rules}{full}")
}
