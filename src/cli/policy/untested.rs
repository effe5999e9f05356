//! Allow rules that no test shows to allow anything: whoever widens one by mistake hears nothing.

use super::suite::{Suite, opened};
use crate::policy::Effect;
use crate::policy::document::{POLICY, RULE};
use crate::source::{Document, Problems, Walker, codes};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Warns about each allow in force of a gateway file's policies that decides none of the tests in
/// them and beside them; with what is wrong with those tests.
pub(in crate::cli) fn untested(config: &Path) -> Problems {
    let suite = match opened(config).and_then(|(snapshot, _)| Suite::read(snapshot, &[])) {
        Ok(suite) => suite,
        Err(problems) => return problems,
    };
    let judged = suite.trials.iter();
    let judged = judged.map(|trial| suite.judge(&trial.caller, &trial.call));
    let decided: BTreeSet<Arc<str>> = judged.filter_map(|judged| judged.decision.rule).collect();
    let open: BTreeSet<&str> = suite
        .policy
        .rules()
        .filter(|(id, effect, shadow)| {
            *effect == Effect::Allow && !shadow && !decided.contains(*id)
        })
        .map(|(id, _, _)| &**id)
        .collect();
    let mut problems = Problems::default();
    for file in &suite.snapshot.policies {
        let name = file.path.display().to_string();
        if let Ok(document) = Document::parse(&name, &file.text) {
            problems.extend(warned(&document, &open));
        }
    }
    problems
}

fn warned(document: &Document, open: &BTreeSet<&str>) -> Problems {
    let walker = Walker::new(document);
    let rules = walker.root().fields(&POLICY).and_then(|f| f.get("rules"));
    for rule in rules.and_then(|rules| rules.list()).unwrap_or_default() {
        let id = rule.fields(&RULE).and_then(|f| f.get("id"));
        if let Some((place, id)) = id.and_then(|v| v.text().map(|id| (v.clone(), id)))
            && open.contains(id)
        {
            place.warn(
                codes::UNTESTED,
                format!("no test shows what `{id}` allows"),
                "add one under `tests`, or in a `*_test.yaml` beside this file; then `portcullis mutate` says what it would miss",
            );
        }
    }
    let mut found = walker.into_problems();
    found.0.retain(|problem| problem.code == codes::UNTESTED);
    found
}
