//! The records that the journal writes by itself.

use super::{Entry, Writer};
use crate::a2a::Operation;
use crate::adapters::journal::files::Storage;
use crate::adapters::journal::recover::{Found, OpenIntent};
use crate::audit::checkpoint;
use crate::audit::record::{
    Artifacts, Checkpoint, Delivery, Ended, Head, Id, Ids, Millis, Note, NoteTopic, Outcome,
    Record, Sha256, Text, Time, Timing, Unclosed,
};
use serde::Deserialize;
use std::time::Duration;

/// The generation in force, as far as records told.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Force {
    generation: u64,
    policy_digest: Box<str>,
}

impl Force {
    /// Takes note of a record's members.
    pub(super) fn pass(&mut self, members: &[u8]) {
        if members.starts_with(br#""kind":"config""#)
            && let Ok(force) = serde_json::from_slice(&[b"{", members, b"}"].concat())
        {
            *self = force;
        }
    }
}

impl<S: Storage> Writer<S> {
    fn head<'h>(&'h self, generation: u64, policy_digest: &'h str) -> Head<'h> {
        Head {
            time: Time(self.clock.now()),
            instance: &self.settings.instance,
            generation,
            policy_digest,
        }
    }

    fn own_head(&self) -> Head<'_> {
        self.head(self.force.generation, &self.force.policy_digest)
    }

    /// A note about the present state.
    pub(super) fn note(&self, topic: NoteTopic) -> Vec<u8> {
        Record::Note(Note {
            lost: self.lost,
            detail: (!self.detail.is_empty()).then_some(Text(&self.detail)),
            ..Note::about(self.own_head(), topic)
        })
        .members()
    }

    /// The first record of a segment but the first.
    pub(super) fn segment(&self) -> Vec<u8> {
        Record::Note(Note {
            lost: self.lost,
            journal: Some(&self.journal),
            oldest_open: self.open.oldest(),
            detail: (!self.detail.is_empty()).then_some(Text(&self.detail)),
            ..Note::about(self.own_head(), NoteTopic::Segment)
        })
        .members()
    }

    /// What was found at start.
    pub(super) fn opened(&self, found: &Found) -> Vec<u8> {
        let unclosed = found.unclosed.as_ref();
        Record::Note(Note {
            torn_bytes: found.torn_bytes,
            open_intents: found.open.len() as u64,
            journal: Some(&self.journal),
            key_id: Some(self.settings.key.kid()),
            unclosed: unclosed.map(|last| Unclosed {
                instance: Id(&last.instance),
                seq: last.sequence,
                time: Text(&last.time),
            }),
            ..Note::about(self.own_head(), NoteTopic::Opened)
        })
        .members()
    }

    /// That another key signs from now on, if that is so.
    pub(super) fn other_key(&self, before: Option<&str>) -> Option<Vec<u8>> {
        let key = self.settings.key.kid();
        let before = before.filter(|before| *before != key)?;
        let note = Note {
            journal: Some(&self.journal),
            key_id: Some(key),
            added: Ids(&[key.into()]),
            removed: Ids(&[before.into()]),
            detail: Some(Text("another key signs checkpoints")),
            ..Note::about(self.own_head(), NoteTopic::Keys)
        };
        Some(Record::Note(note).members())
    }

    /// The checkpoint over everything so far.
    pub(super) fn checkpoint_body(&self) -> Vec<u8> {
        let head = self.own_head();
        let stand = (self.chain.sequence(), self.chain.head());
        let key = &self.settings.key;
        let signature = checkpoint::sign(key, &self.journal, stand, head);
        Record::Checkpoint(Checkpoint {
            head,
            journal: &self.journal,
            size: stand.0,
            chain_head: Sha256(stand.1),
            key_id: key.kid(),
            signature: &signature,
        })
        .members()
    }

    /// The outcome of an intent that nobody else will conclude.
    pub(super) fn conclusion(
        &self,
        sequence: u64,
        intent: &OpenIntent,
        delivery: Delivery,
    ) -> Vec<u8> {
        let operation = intent.operation.as_deref();
        Record::Outcome(Outcome {
            head: self.head(intent.generation, &intent.policy_digest),
            request_id: &intent.request_id,
            intent: sequence,
            agent: &intent.agent,
            operation: Operation::ALL
                .into_iter()
                .find(|known| Some(known.name()) == operation),
            reach: delivery.into(),
            attempts: &[],
            response: None,
            task_id: None,
            context_id: None,
            artifacts: Artifacts(&[]),
            ended: Ended::Abandoned,
            ms: Timing {
                total: Millis(Duration::ZERO),
                to_response: None,
                overhead: None,
            },
        })
        .members()
    }
}

pub(super) fn unawaited(body: Vec<u8>) -> Entry {
    Entry { body, answer: None }
}
