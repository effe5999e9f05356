//! A journal in memory, which tests read while it grows.

use super::within;
use portcullis::audit::chain::Chain;
use portcullis::pipeline::ports::{Journal, JournalError, Receipt, RecordBody};
use serde_json::Value;
use std::sync::Mutex;
use tokio::sync::oneshot::Sender;
use tokio::sync::watch;

/// Seals every record at once, or refuses all of them while told to.
pub struct MemoryJournal {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    chain: Chain,
    lines: Vec<Vec<u8>>,
    refuse: Option<JournalError>,
    /// Receipts are not answered, like those of a device that does not.
    hang: bool,
    unanswered: Vec<Sender<Result<u64, JournalError>>>,
    panic: bool,
    /// Whether the next task with an intent is to be noted.
    noting: bool,
    noted: Option<tokio::task::Id>,
}

impl Default for MemoryJournal {
    fn default() -> MemoryJournal {
        let state = State {
            chain: Chain::START,
            lines: Vec::new(),
            refuse: None,
            hang: false,
            unanswered: Vec::new(),
            panic: false,
            noting: false,
            noted: None,
        };
        MemoryJournal {
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        }
    }
}

impl MemoryJournal {
    /// From now on every record is refused with `error`, or taken again.
    pub fn refuse(&self, error: Option<JournalError>) {
        self.state.lock().unwrap().refuse = error;
    }

    /// From now on nobody who waits is answered, or everybody again; those who waited until now
    /// never are.
    pub fn hang(&self, hang: bool) {
        let mut state = self.state.lock().unwrap();
        state.hang = hang;
        state.unanswered.clear();
    }

    /// Panics at the next record.
    pub fn panic_once(&self) {
        self.state.lock().unwrap().panic = true;
    }

    /// Notes which task writes the next intent, for [`MemoryJournal::is_noted`].
    pub fn note_next(&self) {
        self.state.lock().unwrap().noting = true;
    }

    /// Whether this is the task that was noted; says so once.
    pub fn is_noted(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let noted = state.noted.is_some() && state.noted == tokio::task::try_id();
        if noted {
            state.noted = None;
        }
        noted
    }

    /// The records so far.
    pub fn records(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        state
            .lines
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// How many records of a kind there are, without reading them whole.
    pub fn count(&self, kind: &str) -> usize {
        let kind = format!("\"kind\":\"{kind}\"");
        let state = self.state.lock().unwrap();
        let is_kind = |line: &&Vec<u8>| String::from_utf8_lossy(line).contains(&kind);
        state.lines.iter().filter(is_kind).count()
    }

    /// Waits until the records satisfy `condition`.
    pub async fn until(&self, what: &str, condition: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let mut changed = self.changed.subscribe();
        within(what, async {
            loop {
                changed.borrow_and_update();
                let records = self.records();
                if condition(&records) {
                    return records;
                }
                changed.changed().await.unwrap();
            }
        })
        .await
    }

    /// The records of a kind, once there are `many`.
    pub async fn of_kind(&self, kind: &str, many: usize) -> Vec<Value> {
        let of_kind = |record: &Value| record["kind"] == kind;
        let enough = |r: &[Value]| r.iter().filter(|r| of_kind(r)).count() >= many;
        let records = self.until(kind, enough).await;
        records.into_iter().filter(of_kind).collect()
    }

    fn take(&self, record: RecordBody) -> Result<u64, JournalError> {
        let mut state = self.state.lock().unwrap();
        if std::mem::take(&mut state.panic) {
            drop(state);
            panic!("as it was told");
        }
        if let Some(error) = state.refuse {
            return Err(error);
        }
        let mut line = Vec::new();
        state.chain.seal(&record.0, &mut line);
        state.lines.push(line);
        let sequence = state.lines.len() as u64;
        drop(state);
        self.changed.send_replace(());
        Ok(sequence)
    }
}

impl Journal for MemoryJournal {
    fn append(&self, record: RecordBody) -> Receipt {
        let (answer, receipt) = Receipt::pair();
        {
            let mut state = self.state.lock().unwrap();
            if state.hang {
                state.unanswered.push(answer);
                return receipt;
            }
        }
        let _ = answer.send(self.take(record));
        let mut state = self.state.lock().unwrap();
        if std::mem::take(&mut state.noting) {
            state.noted = tokio::task::try_id();
        }
        receipt
    }

    fn queue(&self, record: RecordBody) {
        let _ = self.take(record);
    }

    fn trouble(&self) -> Option<JournalError> {
        self.state.lock().unwrap().refuse
    }
}
