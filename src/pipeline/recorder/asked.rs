//! Who asked for what, and what was decided, as intents and refusals have it.

use super::hidden::Hidden;
use super::{Recorder, named};
use crate::audit::record::{
    Actors, Address, Asked, Caller, Claims, Decision as DecisionRecord, Forwarded,
    Grant as GrantRecord, Id, Ids, NoClaims, Request, Sha256, Skill as SkillRecord, Source, Text,
};
use crate::identity::issuer::Grant;
use crate::pipeline::used_claims::UsedClaims;

impl Recorder {
    pub(super) fn asked<'s>(
        &'s self,
        code: &'static str,
        claims: &'s UsedClaims<'s>,
        hidden: &'s Hidden,
    ) -> Asked<'s> {
        let call = self.call.as_ref();
        Asked {
            request_id: self.request_id.as_str(),
            trace_id: self.trace.id(),
            source: Source {
                addr: match &hidden.address {
                    Some(token) => Address::Hidden(token),
                    None => Address::Plain(self.source),
                },
                listener: &self.listener.name,
                certificate: self.certificate.map(Sha256),
            },
            caller: self.caller(claims),
            agent: self.agent.as_ref().map(|a| &*a.name),
            surface: self.surface,
            binding: call.map(|c| c.dialect.binding),
            version: call.map(|c| c.dialect.version),
            operation: call.map(|c| c.operation),
            tenant: self.tenant.as_deref().map(Id),
            skill: self.skill(),
            message_id: hidden.id(|h| &h.message, call.and_then(|c| c.message_id.as_deref())),
            task_id: hidden.id(|h| &h.task, call.and_then(|c| c.task_id.as_deref())),
            context_id: hidden.id(|h| &h.context, call.and_then(|c| c.context_id.as_deref())),
            reference_task_ids: hidden.references(call),
            extensions: call.map_or(Ids::default(), |c| Ids(&c.extensions)),
            declared_extensions: Ids(&self.extensions),
            push_config_id: hidden.id(
                |h| &h.push_config,
                call.and_then(|c| c.push_config_id.as_deref()),
            ),
            webhook_hosts: Ids(&self.webhook_hosts),
            decision: self.decided(code),
            request: Request {
                method: Text(named(&self.method)),
                path: hidden.path(self.path.as_deref()).map(Id),
                bytes: self.body_bytes,
                sha256: self.body_sha256.map(Sha256),
                forwarded: self.forwarded.map(|(bytes, hash)| Forwarded {
                    bytes,
                    sha256: Sha256(hash),
                }),
            },
        }
    }

    pub(super) fn decided(&self, code: &'static str) -> DecisionRecord<'_> {
        let decision = self.decision.as_ref();
        decision.map_or(DecisionRecord::refusal(code), DecisionRecord::of)
    }

    pub(super) fn caller<'s>(&'s self, claims: &'s UsedClaims<'s>) -> Option<Caller<'s>> {
        let verified = self.verified.as_ref()?;
        let principal = &verified.principal;
        let (subject, client, actors) = match self.hidden_caller() {
            Some(hidden) => (&hidden.subject, &hidden.client, &hidden.actors),
            None => (&principal.subject, &principal.client, &principal.actors),
        };
        Some(Caller {
            issuer: &principal.issuer,
            subject: Id(subject),
            client: client.as_deref().map(Id),
            actors: Actors(actors),
            fingerprint: verified.fingerprint,
            grant: match principal.grant {
                None => GrantRecord::None,
                Some(Grant::Agent) => GrantRecord::Agent,
                Some(Grant::Full) => GrantRecord::Full,
            },
            proof: principal.confirmation.kind().into(),
            scopes: Ids(&principal.scopes),
            claims: Claims(&claims.values),
            no_claims: NoClaims(&claims.without),
        })
    }

    pub(super) fn claims(&self) -> UsedClaims<'_> {
        let snapshot = &self.live.snapshot;
        let hidden = self.hidden_caller();
        let verified = self.verified.as_deref();
        UsedClaims::of(snapshot, verified, self.agent.as_deref(), hidden)
    }

    pub(super) fn skill(&self) -> Option<SkillRecord<'_>> {
        self.skill.as_ref().map(|skill| SkillRecord {
            id: skill.id.as_deref().map(Text),
            source: skill.source,
            assurance: skill.assurance,
        })
    }
}
