//! Where agents may be told to deliver push notifications (FC-57): every odd spelling of a URL,
//! every class of address.

use super::{Site, corp_site};
use crate::support::fake_resolver::FakeResolver;
use portcullis::a2a::{Binding, Call, Dialect, Operation, Version};
use portcullis::pipeline::webhook::{CODES, screen};
use portcullis::policy::PolicySet;
use portcullis::policy::webhooks::{URL_CODES, shown_host, shown_place};
use std::collections::BTreeSet;

const LIST: &str = r#"
webhooks:
  allow:
    - {agents: [pr-agent], host: hooks.example.com}
    - {agents: [pr-agent], host: alt.hooks.example.com, port: 8443}
    - {agents: [pr-agent], host: xn--mnchen-3ya.hooks.example.com}
    - {agents: [pr-agent], host: 1.1.1.1}
    - {agents: [pr-agent], host: "[2606:4700:4700::1111]"}
    - {agents: any, host: private.example.com}
    - {agents: any, host: loopback.example.com}
    - {agents: any, host: metadata.example.com}
    - {agents: any, host: mixed.example.com}
    - {agents: any, host: mixed6.example.com}
    - {agents: any, host: empty.example.com}
    - {agents: any, host: nowhere.example.com}
"#;

fn policies(site: &Site, webhooks: &[&str]) -> PolicySet {
    let rules = |name: &str| {
        format!(
            "version: 1\npolicy: {name}\nrules: [{{id: {name}, deny: {{agents: any, operations: [push]}}, always: true}}]\n"
        )
    };
    let files: Vec<_> = webhooks
        .iter()
        .enumerate()
        .map(|(i, section)| (format!("p{i}.yaml"), rules(&format!("p{i}")) + section))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(n, t)| (n.as_str(), t.as_str()))
        .collect();
    let (policies, problems) = site.compile_files(&files);
    assert!(!problems.has_errors(), "{problems}");
    policies
}

fn call(operation: Operation, urls: &[&str]) -> Call {
    let dialect = Dialect {
        binding: Binding::JsonRpc,
        version: Version::V1_0,
    };
    Call {
        inline_push: operation == Operation::SendMessage,
        push_urls: urls.iter().map(|url| Box::from(*url)).collect(),
        ..Call::bare(dialect, operation)
    }
}

fn judged(policies: &PolicySet, agent: usize, call: &Call) -> Result<(), &'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let judging = screen(&FakeResolver, policies.webhooks(), agent, call);
    runtime.unwrap().block_on(judging)
}

const WEBHOOKS: [(&str, &str); 91] = [
    ("https://hooks.example.com", ""),
    ("https://hooks.example.com/", ""),
    (
        "https://hooks.example.com/a/b?c=d&e=https://evil.example/@x",
        "",
    ),
    ("https://hooks.example.com?x=@y", ""),
    ("https://hooks.example.com:443/x", ""),
    ("https://HOOKS.Example.com/x", ""),
    ("https://hooks.example.com/%2e%2e/a%40b", ""),
    ("https://alt.hooks.example.com:8443/x", ""),
    ("https://xn--mnchen-3ya.hooks.example.com/", ""),
    ("https://1.1.1.1/x", ""),
    ("https://[2606:4700:4700::1111]/x", ""),
    // The scheme.
    ("http://hooks.example.com/x", "webhook_scheme"),
    ("HTTPS://hooks.example.com/x", "webhook_scheme"),
    ("ftp://hooks.example.com/", "webhook_scheme"),
    ("file:///etc/passwd", "webhook_scheme"),
    ("gopher://hooks.example.com/", "webhook_scheme"),
    ("javascript:alert(1)", "webhook_scheme"),
    ("//hooks.example.com/x", "webhook_scheme"),
    ("https:/hooks.example.com/x", "webhook_scheme"),
    ("https:hooks.example.com/x", "webhook_scheme"),
    ("hooks.example.com/x", "webhook_scheme"),
    ("http://169.254.169.254/latest/", "webhook_scheme"),
    // User names and what passes for one.
    ("https://user:pw@hooks.example.com/", "webhook_userinfo"),
    (
        "https://hooks.example.com@evil.example/",
        "webhook_userinfo",
    ),
    (
        "https://hooks.example.com:443@evil.example/",
        "webhook_userinfo",
    ),
    ("https://@hooks.example.com/", "webhook_userinfo"),
    ("https://evil.example%40hooks.example.com/", "webhook_host"),
    // Characters that one parser drops or turns and another does not.
    (
        "https://hooks.example.com\\@evil.example/",
        "webhook_characters",
    ),
    ("https:\\\\hooks.example.com/", "webhook_characters"),
    ("https://hooks.example.com/x#y", "webhook_characters"),
    (
        "https://evil.example#@hooks.example.com/",
        "webhook_characters",
    ),
    (" https://hooks.example.com/", "webhook_characters"),
    ("https://hooks.example.com/ ", "webhook_characters"),
    ("https://hooks.example.com/a b", "webhook_characters"),
    ("https://hooks.exam\tple.com/", "webhook_characters"),
    ("https://hooks.example.com/\r\nX-A: b", "webhook_characters"),
    ("https://hooks.example.com/\u{0}", "webhook_characters"),
    ("https://hooks.example.com/é", "webhook_characters"),
    ("https://hooks。example。com/", "webhook_characters"),
    ("https://ｈooks.example.com/", "webhook_characters"),
    ("https://①.①.①.①/", "webhook_characters"),
    ("https://hooks.example.com/{x}", "webhook_characters"),
    // The host.
    ("https://", "webhook_host"),
    ("https:///x", "webhook_host"),
    ("https://:443/x", "webhook_host"),
    ("https://hooks.example.com./x", "webhook_host"),
    ("https://hooks..example.com/x", "webhook_host"),
    ("https://.hooks.example.com/x", "webhook_host"),
    ("https://-hooks.example.com/x", "webhook_host"),
    ("https://hooks%2eexample.com/x", "webhook_host"),
    (
        "https://hooks.example.com%00.evil.example/x",
        "webhook_host",
    ),
    ("https://hooks_example.com/x", "webhook_host"),
    ("https://hooks.example.com,evil.example/x", "webhook_host"),
    ("https://hooks.example.com;evil.example/x", "webhook_host"),
    ("https://[hooks.example.com]/x", "webhook_host"),
    // The port.
    ("https://hooks.example.com:8443/x", "webhook_not_listed"),
    ("https://hooks.example.com:80/x", "webhook_not_listed"),
    ("https://alt.hooks.example.com/x", "webhook_not_listed"),
    ("https://hooks.example.com:/x", "webhook_port"),
    ("https://hooks.example.com:0/x", "webhook_port"),
    ("https://hooks.example.com:0443/x", "webhook_port"),
    ("https://hooks.example.com:+443/x", "webhook_port"),
    ("https://hooks.example.com:65979/x", "webhook_port"),
    ("https://hooks.example.com:https/x", "webhook_port"),
    ("https://hooks.example.com:443:443/x", "webhook_host"),
    // The list is exact.
    ("https://evil.example/", "webhook_not_listed"),
    ("https://example.com/", "webhook_not_listed"),
    ("https://a.hooks.example.com/", "webhook_not_listed"),
    (
        "https://hooks.example.com.evil.example/",
        "webhook_not_listed",
    ),
    ("https://xhooks.example.com/", "webhook_not_listed"),
    ("https://localhost/", "webhook_not_listed"),
    ("https://metadata.google.internal/", "webhook_not_listed"),
    ("https://1.0.0.1/", "webhook_not_listed"),
    ("https://10.0.0.5/", "webhook_not_listed"),
    ("https://127.0.0.1:8443/x", "webhook_not_listed"),
    ("https://[::1]/", "webhook_not_listed"),
    ("https://[::ffff:1.1.1.1]/", "webhook_not_listed"),
    // Addresses in spellings that some clients take and others do not.
    ("https://16843009/", "webhook_host"),
    ("https://0x01010101/", "webhook_host"),
    ("https://0x1.0x1.0x1.0x1/", "webhook_host"),
    ("https://01.01.01.01/", "webhook_host"),
    ("https://1.1/", "webhook_host"),
    ("https://1.1.1.1.1/", "webhook_host"),
    ("https://1.1.1.256/", "webhook_host"),
    ("https://[2606:4700:4700:0::1111]/", "webhook_host"),
    ("https://[2606:4700:4700::1111%25eth0]/", "webhook_host"),
    ("https://2606:4700:4700::1111/", "webhook_host"),
    // What the name leads to.
    ("https://private.example.com/", "webhook_not_public"),
    ("https://mixed.example.com/", "webhook_not_public"),
    ("https://mixed6.example.com/", "webhook_not_public"),
    ("https://nowhere.example.com/", "webhook_unresolved"),
];

/// FC-57: every way to name a place, with what becomes of it.
#[test]
fn a_webhook_is_an_exact_public_host_or_refused() {
    let policies = policies(&corp_site(), &[LIST]);
    for operation in [
        Operation::SendMessage,
        Operation::CreateTaskPushNotificationConfig,
    ] {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let long = format!("https://hooks.example.com/{}", "x".repeat(2048));
        let more = [
            ("https://loopback.example.com/", "webhook_not_public"),
            ("https://metadata.example.com/", "webhook_not_public"),
            ("https://empty.example.com/", "webhook_unresolved"),
            (&long, "webhook_too_long"),
        ];
        for (url, expected) in WEBHOOKS.into_iter().chain(more) {
            let expected = match expected {
                "" => Ok(()),
                code => Err(code),
            };
            let found = judged(&policies, 0, &call(operation, &[url]));
            assert_eq!(found, expected, "{url}");
            seen.extend(found.err());
        }
        let found = judged(&policies, 0, &call(operation, &[]));
        assert_eq!(found, Err("webhook_missing"));
        seen.extend(found.err());
        // One good one does not make another one good.
        for urls in [
            ["https://hooks.example.com/", "https://evil.example/"],
            ["https://evil.example/", "https://hooks.example.com/"],
        ] {
            let found = judged(&policies, 0, &call(operation, &urls));
            assert_eq!(found, Err("webhook_not_listed"));
        }
        let all = URL_CODES.iter().chain(&CODES).copied().collect();
        assert_eq!(seen, all, "every code has a case, and no case has another");
    }
}

#[test]
fn calls_that_set_no_webhook_are_not_looked_at() {
    let policies = policies(&corp_site(), &[]);
    for operation in Operation::ALL {
        if operation == Operation::CreateTaskPushNotificationConfig {
            continue;
        }
        let call = Call {
            inline_push: false,
            ..call(operation, &[])
        };
        assert_eq!(judged(&policies, 0, &call), Ok(()), "{operation:?}");
    }
}

/// The lists of all files count together, each for the agents that it names.
#[test]
fn a_host_is_allowed_to_the_agents_of_its_entry() {
    let one = "webhooks: {allow: [{agents: [pr-agent], host: hooks.example.com}]}\n";
    let other = "webhooks: {allow: [{agents: [weather], host: a.hooks.example.com}]}\n";
    let policies = policies(&corp_site(), &["", one, other]);
    let set = |host: &str| {
        let url = format!("https://{host}/");
        call(Operation::CreateTaskPushNotificationConfig, &[&url])
    };
    let refused = Err("webhook_not_listed");
    for (agent, host, expected) in [
        (0, "hooks.example.com", Ok(())),
        (0, "a.hooks.example.com", refused),
        (1, "hooks.example.com", refused),
        (1, "a.hooks.example.com", Ok(())),
        (2, "hooks.example.com", refused),
        (2, "a.hooks.example.com", refused),
    ] {
        assert_eq!(
            judged(&policies, agent, &set(host)),
            expected,
            "{agent} {host}"
        );
    }
    let any = [0, 1, 2, 99].map(|agent| policies.webhooks().any_for(agent));
    assert_eq!(any, [true, true, false, false]);
    assert!(!PolicySet::default().webhooks().any_for(0));
}

/// What a record says of a webhook: never a user name, a password, a path or a query.
#[test]
fn records_have_the_host_alone() {
    for (url, host) in [
        (
            "https://hooks.example.com/secret?token=s",
            Some("hooks.example.com"),
        ),
        ("http://169.254.169.254/latest/", Some("169.254.169.254")),
        ("https://user:secret@10.0.0.5:8443/", Some("10.0.0.5")),
        ("https://user:secret@@h/", Some("h")),
        ("https://u:secret\\@evil.example/", Some("evil.example")),
        ("https://[::1]:80/secret", Some("::1")),
        ("https://user:secret/@h/", Some("user")),
        ("https://secret key/", None),
        ("https://?secret", None),
        ("javascript:secret", None),
        ("secret", None),
        ("", None),
    ] {
        assert_eq!(shown_host(url), host, "{url}");
        assert!(!host.unwrap_or_default().contains("secret"));
    }
}

#[test]
fn a_record_says_a_port_where_it_is_not_the_usual_one() {
    for (url, shown) in [
        ("https://hooks.example.com/x", Some("hooks.example.com")),
        ("https://hooks.example.com:443/x", Some("hooks.example.com")),
        (
            "https://hooks.example.com:8443/?t=secret",
            Some("hooks.example.com:8443"),
        ),
        ("https://[2606:4700::1]:8443/x", Some("[2606:4700::1]:8443")),
        (
            "https://alice:secret@hooks.example.com:8443/",
            Some("hooks.example.com"),
        ),
        ("nonsense", None),
    ] {
        assert_eq!(shown_place(url).as_deref(), shown, "{url}");
    }
}
