//! What rules of policies come to.

use super::{named, register};
use crate::policy::{Decision, Effect, PolicySet, RuleResult};
use prometheus::{IntCounter, IntCounterVec, IntGauge, Registry};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most rules that have counters of their own (`design.md` section 12).
const MOST: usize = 500;
/// Stands for all others.
const OTHER: &str = "other";

/// Families about rules.
pub(super) struct RuleFamilies {
    results: IntCounterVec,
    expired: IntGauge,
    /// The rules that have counters of their own.
    named: Mutex<BTreeSet<Arc<str>>>,
}

impl RuleFamilies {
    pub(super) fn new(r: &Registry) -> Result<RuleFamilies, prometheus::Error> {
        Ok(RuleFamilies {
            results: register(
                r,
                IntCounterVec::new(
                    named(
                        "rule_results_total",
                        "What rules came to: those that decided, and all in shadow mode that were about the call",
                    ),
                    &["rule", "effect", "mode", "result"],
                ),
            )?,
            expired: register(
                r,
                IntGauge::with_opts(named(
                    "shadow_rules_expired",
                    "Rules in shadow mode whose time is over",
                )),
            )?,
            named: Mutex::default(),
        })
    }

    pub(super) fn set_expired(&self, count: usize) {
        self.expired.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// The handles of a policy's rules. A rule of before keeps its counters; those of rules that
    /// are gone are dropped, so that a new one finds room.
    pub(super) fn follow(&self, policies: &PolicySet) -> RuleMetrics {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|rule| {
            let stays = policies.position(rule).is_some();
            if !stays {
                for effect in [Effect::Allow, Effect::Deny] {
                    for mode in [false, true] {
                        for result in RuleResult::ALL {
                            let labels = [rule, word(effect), mode_word(mode), result.label()];
                            // It may never have been counted.
                            let _ = self.results.remove_label_values(&labels);
                        }
                    }
                }
            }
            stays
        });
        let rules = policies.rules().map(|(rule, effect, shadow)| {
            let room = named.contains(rule) || named.len() < MOST;
            if room {
                named.insert(Arc::clone(rule));
            }
            Labels {
                rule: room.then(|| Arc::clone(rule)),
                effect,
                shadow,
                counters: Default::default(),
            }
        });
        RuleMetrics {
            rules: rules.collect(),
            results: self.results.clone(),
        }
    }
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    }
}

fn mode_word(shadow: bool) -> &'static str {
    if shadow { "shadow" } else { "enforce" }
}

/// The counters of one generation's rules.
pub struct RuleMetrics {
    /// By the position of the rule.
    rules: Box<[Labels]>,
    results: IntCounterVec,
}

struct Labels {
    /// `None`: one of the others.
    rule: Option<Arc<str>>,
    effect: Effect,
    shadow: bool,
    /// By [`RuleResult`], made when first counted.
    counters: [OnceLock<IntCounter>; RuleResult::ALL.len()],
}

impl RuleMetrics {
    /// Counts the rule that made a decision, and what those in shadow mode came to beside it.
    pub fn count(&self, policies: &PolicySet, decision: &Decision) {
        if let Some(rule) = &decision.rule {
            self.count_one(policies, rule, decision.result());
        }
        for shadow in &decision.shadow {
            self.count_one(policies, &shadow.rule, shadow.result);
        }
    }

    fn count_one(&self, policies: &PolicySet, rule: &str, result: RuleResult) {
        let labels = policies.position(rule).and_then(|at| self.rules.get(at));
        let Some((labels, counter)) =
            labels.and_then(|l| Some((l, l.counters.get(result as usize)?)))
        else {
            return;
        };
        let made = || {
            let rule = labels.rule.as_deref().unwrap_or(OTHER);
            let mode = mode_word(labels.shadow);
            self.results
                .with_label_values(&[rule, word(labels.effect), mode, result.label()])
        };
        counter.get_or_init(made).inc();
    }
}
