//! A record from values to a sealed line: the intent that every forwarded call waits for.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use aws_lc_rs::hmac;
use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::a2a::{Binding, Operation, Version};
use portcullis::audit::chain::Chain;
use portcullis::audit::record::{
    Actors, Address, Asked, Assurance, Caller, ClaimValue, Claims, Decision, Effect, Grant, Head,
    Id, Ids, Intent, NoClaims, Proof, Record, Request, Sha256, Shadows, Skill, SkillSource, Source,
    Surface, Text, Time,
};
use portcullis::audit::redact::Fingerprint;
use std::hint::black_box;
use std::net::SocketAddr;

fn bench(c: &mut Criterion) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"bench");
    let groups: [Box<str>; 2] = ["staff".into(), "platform".into()];
    let claims = [
        ("role", ClaimValue::Text(Id("reviewer"))),
        ("groups", ClaimValue::Texts(Ids(&groups))),
    ];
    let digest = "0123456789abcdef".repeat(4);
    let caller = Caller {
        issuer: "corp",
        subject: Id("9b1c5d1e-7f0a-4f5e-9a53-0b7d6f2a1c44"),
        client: Some(Id("bench")),
        actors: Actors::default(),
        fingerprint: Fingerprint::of(&key, b"header.payload"),
        grant: Grant::Agent,
        proof: Proof::None,
        scopes: Ids(&[]),
        claims: Claims(&claims),
        no_claims: NoClaims(&[]),
    };
    let asked = Asked {
        request_id: "01JZZZZZZZZZZZZZZZZZZZZZZZ",
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
        source: Source {
            addr: Address::Plain(SocketAddr::from(([192, 0, 2, 1], 4711))),
            listener: "public",
            certificate: None,
        },
        caller: Some(caller),
        agent: Some("pr-agent"),
        surface: Surface::Agent,
        binding: Some(Binding::JsonRpc),
        version: Some(Version::V1_0),
        operation: Some(Operation::SendMessage),
        tenant: None,
        skill: Some(Skill {
            id: Some(Text("review-diff")),
            source: SkillSource::Metadata,
            assurance: Some(Assurance::Declared),
        }),
        message_id: Some(Id("m-5f1c9a2e")),
        task_id: None,
        context_id: Some(Id("ctx-000001")),
        reference_task_ids: Ids(&[]),
        extensions: Ids(&[]),
        declared_extensions: Ids(&[]),
        push_config_id: None,
        webhook_hosts: Ids(&[]),
        decision: Decision {
            effect: Effect::Allow,
            reason: "allowed",
            rule: Some("reviewers-review"),
            near: None,
            shadow: Shadows(&[]),
        },
        request: Request {
            method: Text("POST"),
            path: Some(Id("/agents/pr-agent/a2a")),
            bytes: 1024,
            sha256: Some(Sha256([0xab; 32])),
            forwarded: None,
        },
    };
    let record = Record::Intent(Intent {
        head: Head {
            time: Time(1_769_860_800_000),
            instance: "gw-00000000",
            generation: 1,
            policy_digest: &digest,
        },
        asked,
    });
    let members = record.members();
    let mut group = c.benchmark_group("record");
    group.bench_function("serialize_intent", |b| {
        b.iter(|| black_box(&record).members())
    });
    group.bench_function("seal_intent", |b| {
        let mut chain = Chain::START;
        let mut line = Vec::new();
        b.iter(|| {
            line.clear();
            chain.seal(black_box(&members), &mut line);
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
