//! Records that are about the gateway itself: its configuration, and what it fetches.

use super::cards::{CardChange, CardNoticeKind, FetchFacts};
use super::issuer_keys::{KeyChange, KeyFetch};
use super::ports::RecordBody;
use super::{Gate, Live};
use crate::a2a::card::rewrite::sha256;
use crate::audit::record::{
    CardChanged, ConfigChange, ConfigFile, ConfigResult, Counts, Fetch, Head, Id, Ids, Millis,
    Note, NoteTopic, Purpose, Record, Refusals, Sha256, Text, Time, Trigger,
};
use crate::config::snapshot::{Agent, Snapshot, SourceRole};
use crate::identity::KeySource;
use crate::source::{Problems, Severity};

impl Gate {
    /// Keeps the texts of a configuration beside the journal, before it is recorded; blocks.
    /// Whether each is kept, in the order of [`Snapshot::sources`].
    pub fn keep_texts(&self, snapshot: &Snapshot) -> Vec<bool> {
        let sources = snapshot.sources.iter();
        sources
            .map(|source| self.journal.keep_text(&source.text).is_ok())
            .collect()
    }

    /// Records that the configuration in force was loaded; `kept` says which of its texts are kept.
    pub fn record_loaded(&self, trigger: Trigger, warnings: u64, kept: &[bool]) {
        let live = self.live();
        let sources = &live.snapshot.sources;
        let files: Vec<ConfigFile<'_>> = sources
            .iter()
            .zip(kept.iter().chain(std::iter::repeat(&false)))
            .take(ConfigChange::FILES)
            .map(|(source, kept)| ConfigFile {
                name: Id(&source.name),
                role: match source.role {
                    SourceRole::Gateway => "gateway",
                    SourceRole::Policy => "policy",
                },
                sha256: Sha256(sha256(&source.text)),
                bytes: source.text.len() as u64,
                not_kept: !kept,
            })
            .collect();
        self.note(Record::Config(ConfigChange {
            head: self.head(&live),
            result: ConfigResult::Loaded,
            trigger,
            problems: warnings,
            codes: Ids::default(),
            files: &files,
            more_files: (sources.len() - files.len()) as u64,
        }));
    }

    /// Records that a configuration was refused.
    pub fn record_rejected(&self, trigger: Trigger, problems: &Problems) {
        let live = self.live();
        let errors = problems.0.iter().filter(|p| p.severity == Severity::Error);
        let codes: Vec<Box<str>> = errors
            .take(ConfigChange::CODES)
            .map(|problem| problem.code.into())
            .collect();
        self.note(Record::Config(ConfigChange {
            head: self.head(&live),
            result: ConfigResult::Rejected,
            trigger,
            problems: problems.0.len() as u64,
            codes: Ids(&codes),
            files: &[],
            more_files: 0,
        }));
    }

    /// Records what an operator did by the admin API.
    pub fn record_admin(&self, what: &str) {
        self.record_note(NoteTopic::Admin, what);
    }

    pub(super) fn record_note(&self, topic: NoteTopic, what: &str) {
        let live = self.live();
        self.note(Record::Note(Note {
            detail: Some(Text(what)),
            ..Note::about(self.head(&live), topic)
        }));
    }

    /// Records a fetch of an agent's card and, if the card changed, that.
    pub fn record_card(&self, live: &Live, agent: usize, change: &CardChange, fetch: &FetchFacts) {
        let Some(agent) = live.snapshot.agents.get(agent) else {
            return;
        };
        let trouble = match change {
            CardChange::Kept(trouble)
            | CardChange::Absent(trouble)
            | CardChange::Withheld(trouble) => Some(trouble),
            CardChange::Installed(_) | CardChange::Changed { .. } | CardChange::Unchanged => None,
        };
        let error = trouble.map(|trouble| trouble.label());
        match trouble {
            Some(trouble) => tracing::warn!(agent = &*agent.name, "agent card: {trouble}"),
            None => tracing::debug!(agent = &*agent.name, "agent card fetched"),
        }
        self.note_fetch(live, agent, Purpose::Card, fetch, error);
        live.agents
            .get(agent.index)
            .inspect(|metrics| metrics.card_fetched(change.label()));
        let (before, after) = match change {
            CardChange::Installed(after) => (None, Some(after)),
            CardChange::Changed { before, after } => (Some(before), Some(after)),
            CardChange::Withheld(_) => (None, None),
            CardChange::Unchanged | CardChange::Kept(_) | CardChange::Absent(_) => return,
        };
        let notices = live.cards.notices_of(agent.index);
        let ids = |pick: fn(&CardNoticeKind) -> Option<&str>| -> Vec<Box<str>> {
            notices.iter().filter_map(pick).map(Box::from).collect()
        };
        let unlisted = ids(|kind| match kind {
            CardNoticeKind::SkillUnlisted(id) => Some(id),
            CardNoticeKind::SkillVanished(_)
            | CardNoticeKind::InterfaceDropped(_)
            | CardNoticeKind::Unproven(_)
            | CardNoticeKind::NoCard(_)
            | CardNoticeKind::LastGood(..) => None,
        });
        let vanished = ids(|kind| match kind {
            CardNoticeKind::SkillVanished(id) => Some(id),
            CardNoticeKind::SkillUnlisted(_)
            | CardNoticeKind::InterfaceDropped(_)
            | CardNoticeKind::Unproven(_)
            | CardNoticeKind::NoCard(_)
            | CardNoticeKind::LastGood(..) => None,
        });
        let dropped: Vec<Box<str>> = after
            .iter()
            .flat_map(|card| &card.dropped)
            .map(|dropped| format!("{} {}", dropped.reason.label(), dropped.address).into())
            .collect();
        if let Some(card) = after {
            for path in &card.removed {
                tracing::info!(agent = &*agent.name, "agent card: `{path}` is left out");
            }
            for path in &card.leaks {
                tracing::warn!(
                    agent = &*agent.name,
                    "agent card: `{path}` names the backend"
                );
            }
        }
        for notice in &notices {
            tracing::warn!(agent = &*agent.name, "agent card: {notice}");
        }
        let attested = after.and_then(|card| card.attested.as_ref());
        self.note(Record::CardChanged(CardChanged {
            head: self.head(live),
            agent: &agent.name,
            before: before.map(|card| Sha256(card.source)),
            after: after.map(|card| Sha256(card.source)),
            published: after.map(|card| Sha256(sha256(&card.document.body))),
            signature: attested.map(|attested| attested.label()),
            skills_unlisted: Ids(&unlisted),
            skills_vanished: Ids(&vanished),
            dropped: Ids(&dropped),
            error,
        }));
    }

    /// Records a fetch of a key set for the signatures of an agent's card.
    pub fn record_key_set(
        &self,
        live: &Live,
        agent: usize,
        fetch: &FetchFacts,
        error: Option<&'static str>,
    ) {
        let Some(agent) = live.snapshot.agents.get(agent) else {
            return;
        };
        if let Some(error) = error {
            tracing::warn!(agent = &*agent.name, "key set `{}`: {error}", fetch.path);
        }
        self.note_fetch(live, agent, Purpose::Keys, fetch, error);
    }

    /// Records a fetch of an issuer's keys, and says in the log what operators should look at.
    pub fn record_issuer_keys(&self, fetch: &KeyFetch<'_>) {
        let issuer = fetch.issuer;
        match fetch.result {
            Err(fault) => tracing::warn!(issuer, "keys of `{}`: {fault}", fetch.url),
            Ok(new) if !new.changed => tracing::debug!(issuer, "keys fetched"),
            Ok(new) => {
                tracing::info!(issuer, usable = new.usable, "other keys are in use now");
                self.record_key_change(issuer, &new.change);
                if new.usable == 0 {
                    tracing::error!(issuer, "no usable key: every token of it is refused");
                }
                for note in &new.unusable {
                    let number = note.position + 1;
                    tracing::warn!(issuer, "key {number} {} ({})", note.why, note.why.rule());
                }
                for other in &new.shared {
                    tracing::error!(
                        issuer,
                        other = &**other,
                        "both issuers have one key, so either can speak for both"
                    );
                }
            }
        }
        self.note(Record::Fetch(Fetch {
            head: self.head(&self.live()),
            request_id: fetch.request_id.as_str(),
            purpose: Purpose::Keys,
            target: issuer,
            path: Some(Id(fetch.url)),
            http_status: match fetch.result {
                Ok(_) => Some(200),
                Err(fault) => fault.status(),
            },
            bytes: fetch.body.map_or(0, |body| body.len() as u64),
            sha256: fetch.body.map(|body| Sha256(sha256(body))),
            ms: Millis(fetch.took),
            error: fetch.result.err().map(|fault| fault.label()),
        }));
    }

    /// Records which keys of an issuer are trusted now and were not before, and the other way round.
    pub fn record_key_change(&self, issuer: &str, change: &KeyChange) {
        if change.is_empty() {
            return;
        }
        let live = self.live();
        self.note(Record::Note(Note {
            issuer: Some(issuer),
            added: Ids(&change.added),
            removed: Ids(&change.removed),
            ..Note::about(self.head(&live), NoteTopic::Keys)
        }));
    }

    /// Records how the keys that are read from files differ from those of the generation before.
    pub fn record_file_keys(&self, before: &Live, after: &Live) {
        for slot in after.issuer_keys.iter().filter(|slot| !slot.is_remote()) {
            let mut earlier = before.issuer_keys.iter();
            let earlier = earlier.find(|other| other.name() == slot.name());
            let earlier = earlier.and_then(|other| other.current());
            if let Some(now) = slot.current() {
                let change = KeyChange::between(earlier.as_deref(), &now);
                self.record_key_change(slot.name(), &change);
            }
        }
    }

    /// Records together the refusals of strangers that were only counted, if that is due; with
    /// `all`, in any case.
    pub fn record_strangers(&self, all: bool) {
        let crowded = self.journal.crowded();
        let taken = self.strangers.take(self.clock.monotonic(), crowded, all);
        let Some(summary) = taken else {
            return;
        };
        let reasons: Vec<_> = summary.reasons.into_iter().collect();
        self.note(Record::Refusals(Refusals {
            head: self.head(&self.live()),
            since: Time(summary.since),
            count: reasons.iter().map(|(_, count)| count).sum(),
            reasons: Counts(&reasons),
        }));
    }

    fn note_fetch(
        &self,
        live: &Live,
        agent: &Agent,
        purpose: Purpose,
        fetch: &FetchFacts,
        error: Option<&'static str>,
    ) {
        self.note(Record::Fetch(Fetch {
            head: self.head(live),
            request_id: fetch.request_id.as_str(),
            purpose,
            target: &agent.name,
            path: Some(Id(&fetch.path)),
            http_status: fetch.http_status,
            bytes: fetch.bytes,
            sha256: fetch.sha256.map(Sha256),
            ms: Millis(fetch.took),
            error,
        }));
    }

    fn head<'a>(&'a self, live: &'a Live) -> Head<'a> {
        Head {
            time: Time(self.clock.now()),
            instance: &self.instance,
            generation: live.snapshot.generation,
            policy_digest: &live.snapshot.digest,
        }
    }

    fn note(&self, record: Record<'_>) {
        self.metrics.journal_record(record.kind());
        self.journal.queue(RecordBody(record.members()));
    }
}
