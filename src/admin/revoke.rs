//! Revocations by operators: listed, added, taken back.

use super::api::{Api, Operator, answer, error};
use super::health::AdminReply;
use crate::a2a::strict_json::Value;
use crate::adapters::revocation_file::RevocationFile;
use crate::pipeline::revocations::{Added, MAX_ADDED, form, seconds};
use serde_json::{Value as Json, json};
use std::io;
use std::sync::Arc;

/// Most entries of one answer.
const PAGE: usize = 1000;

/// `GET revocations`: what is in force, a page of it (`from=N`).
pub(super) fn list(api: &Api, query: Option<&str>) -> AdminReply {
    let from = match query {
        None | Some("") => Some(0),
        Some(query) => query.strip_prefix("from=").and_then(|n| n.parse().ok()),
    };
    let Some(from) = from else {
        return error(400, "malformed", "the only parameter is `from`, a number");
    };
    let now = seconds(api.gate.clock.now());
    let (added, listed) = (api.gate.revocations.added(), api.gate.revocations.listed());
    let ours = added.iter().map(|added| (&added.denial, Some(added)));
    let files = listed.iter().map(|denial| (denial, None));
    let holding: Vec<_> = ours
        .chain(files)
        .filter(|(denial, _)| denial.until.is_none_or(|until| now < until))
        .collect();
    let page: Vec<Json> = holding
        .iter()
        .skip(from)
        .take(PAGE)
        .map(|(denial, added)| form::shown(denial, *added))
        .collect();
    let total = holding.len();
    answer(
        200,
        &json!({ "total": total, "from": from, "revocations": page }),
    )
}

/// `POST revocations`: from the moment of the answer on, no token that the entry names is taken.
pub(super) async fn add(api: &Api, operator: &Operator, order: &Value) -> AdminReply {
    let Some(kept) = api.kept.clone() else {
        return error(
            409,
            "not_kept",
            "revocations would be lost at a restart: say with `revocation: {state: FILE}` where they are kept, and restart",
        );
    };
    let _writing = api.writing.lock().await;
    let now = seconds(api.gate.clock.now());
    let live = api.gate.live();
    let order = match form::read_order(order, &live.snapshot.issuers, now) {
        Ok(order) => order,
        Err(why) => return error(400, "malformed", &why),
    };
    let mut entries = holding(api, now);
    let same = |entry: &Added| entry.denial.denied == order.denial.denied;
    let known = entries.iter().position(same);
    let full = entries.len() >= MAX_ADDED;
    let (status, shown) = match known.and_then(|at| entries.get_mut(at)) {
        Some(entry) => {
            // The longer of the two: asking twice never shortens.
            let until = entry.denial.until.zip(order.denial.until);
            entry.denial.until = until.map(|(one, other)| one.max(other));
            (200, form::shown(&entry.denial, Some(entry)))
        }
        None if full => {
            return error(
                409,
                "full",
                "so many entries are kept that no more fit; move lasting ones into a file of `revocation.files`",
            );
        }
        None => {
            let shown = form::shown(&order.denial, Some(&order));
            entries.push(order.clone());
            (201, shown)
        }
    };
    // In force even if it cannot be kept: less access is the safer mistake.
    api.gate.revocations.replace(entries.clone());
    let id = form::id(&order.denial.denied);
    let what = format!("{} {id}", order.denial.denied.kind());
    api.done(operator, "revoke", &what);
    match save(kept, entries).await {
        Ok(()) => answer(status, &shown),
        Err(why) => {
            tracing::error!("a revocation is in force but could not be kept: {why}");
            error(
                500,
                "not_kept",
                "the entry is in force, but it could not be written and would be lost at a restart; see the log, and revoke again once the file can be written",
            )
        }
    }
}

/// `DELETE revocations/{id}`.
pub(super) async fn remove(api: &Api, operator: &Operator, id: &str) -> AdminReply {
    let _writing = api.writing.lock().await;
    let now = seconds(api.gate.clock.now());
    let mut entries = holding(api, now);
    let before = entries.len();
    entries.retain(|entry| form::id(&entry.denial.denied) != id);
    let Some(kept) = api.kept.clone().filter(|_| entries.len() < before) else {
        let listed = api.gate.revocations.listed();
        return match listed.iter().any(|denial| form::id(&denial.denied) == id) {
            true => error(
                409,
                "in_a_file",
                "the entry stands in a file of `revocation.files`; take it out there",
            ),
            false => error(404, "not_found", "no entry has this id"),
        };
    };
    // What cannot be written stays revoked.
    if let Err(why) = save(kept, entries.clone()).await {
        tracing::error!("a revocation could not be taken back: {why}");
        return error(
            500,
            "not_kept",
            "the change could not be written, so the entry stays in force; see the log",
        );
    }
    api.gate.revocations.replace(entries);
    api.done(operator, "unrevoke", id);
    answer(200, &json!({ "removed": id }))
}

/// The entries of operators, without those that have ended.
fn holding(api: &Api, now: i64) -> Vec<Added> {
    let added = api.gate.revocations.added();
    added.iter().filter(|a| a.holds(now)).cloned().collect()
}

/// Writing waits for the disk, so it is done beside the tasks that serve.
async fn save(file: Arc<RevocationFile>, entries: Vec<Added>) -> io::Result<()> {
    let saved = tokio::task::spawn_blocking(move || file.save(&entries)).await;
    saved.unwrap_or_else(|_| Err(io::Error::other("the writer failed")))
}
