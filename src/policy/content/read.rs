//! Reading content conditions: a path, a quantifier, a matcher.

use super::path;
use super::{ContentTest, Quantifier};
use crate::a2a::OperationGroup;
use crate::identity::issuer::ClaimKind;
use crate::policy::condition::Matcher;
use crate::policy::document::{CONTENT, MATCHER};
use crate::policy::index::Operations;
use crate::policy::matchers::{self, Place};
use crate::policy::names;
use crate::source::tree::clip;
use crate::source::{Kind, Mapping, Value, codes};
use std::sync::Arc;

/// Most content conditions of one rule.
const MOST: usize = 16;

/// Conditions on content only stand where every call has a message: on other calls an allow could
/// never match, and a deny would always fire.
pub(in crate::policy) fn check_scope(fields: &Mapping<'_, '_>, operations: Operations) {
    if operations.within(names::group(OperationGroup::Messages)) {
        return;
    }
    for place in ["require", "when", "unless"] {
        if let Some(value) = fields.get(place)
            && value.node.get(matchers::CONTENT).is_some()
        {
            value.error(
                codes::CONTENT,
                "the rule looks at the content of messages, and is about calls that have none",
                "write `operations: [messages]`, and put the other operations into a rule of their own",
            );
        }
    }
}

/// Reads the list under `content`; entries with problems are left out.
pub(in crate::policy) fn each(value: &Value<'_, '_>, place: Place) -> Vec<ContentTest> {
    let entries = value.list().unwrap_or_default();
    if let Some(first_too_many) = entries.get(MOST) {
        first_too_many.error(
            codes::CONTENT,
            format!("more than {MOST} conditions on the content"),
            "make several rules of them",
        );
    }
    let read = entries.iter().take(MOST);
    read.filter_map(|entry| one(entry, place)).collect()
}

fn one(entry: &Value<'_, '_>, place: Place) -> Option<ContentTest> {
    let fields = entry.fields(&CONTENT)?;
    let written = fields.get("path");
    let steps = written.as_ref().and_then(|value| {
        let text = value.text()?;
        let steps = path::parse(text);
        steps
            .map_err(|fault| {
                value.error(
                    codes::CONTENT_PATH,
                    format!(
                        "{} at character {} of `{}`",
                        fault.what,
                        fault.at + 1,
                        clip(text)
                    ),
                    fault.hint,
                );
            })
            .ok()
            .map(|steps| (Arc::from(text), steps))
    });
    let quantifiers = [
        ("one", Quantifier::One),
        ("each", Quantifier::Each),
        ("some", Quantifier::Some),
    ];
    let mut found = quantifiers
        .into_iter()
        .filter_map(|(name, quantifier)| Some((quantifier, fields.get(name)?)));
    let Some((quantifier, value)) = found.next() else {
        entry.error(
            codes::CONTENT,
            "no matcher for the values at the path",
            "add `each: {equals: VALUE}` if all values must fit, `some: …` if one is enough, `one: …` if there is only one",
        );
        return None;
    };
    if let Some((_, second)) = found.next() {
        second.error(
            codes::CONTENT,
            "a second matcher for one path",
            "write two entries, which must both hold",
        );
        return None;
    }
    let missing_is_false = fields.get("if_missing").is_some_and(|v| {
        let word = v.word(&[("no_match", ())]).is_some();
        word && matchers::if_missing_fits(&v, matcher_name(&value), place)
    });
    let matcher = matcher(&value)?;
    check(&value, quantifier, &matcher, place);
    let (path, steps) = steps?;
    let in_doubt = !matches!(matcher, Matcher::Exists(_));
    if place == Place::When && in_doubt && !fields.has("if_missing") {
        entry.warn(
            codes::UNGUARDED_WHEN,
            format!("the rule also fires on messages without a value at `{}`", clip(&path)),
            "if that is meant, better say `unless` with what is wanted; if messages may lack it, add `if_missing: no_match`",
        );
    }
    Some(ContentTest {
        path,
        steps,
        quantifier,
        matcher,
        missing_is_false,
    })
}

/// Ways to write a condition that a caller lifts by saying more.
fn check(value: &Value<'_, '_>, quantifier: Quantifier, matcher: &Matcher, place: Place) {
    if matches!(matcher, Matcher::Exists(_)) {
        if quantifier != Quantifier::Some {
            value.error(
                codes::CONTENT,
                "`exists` asks whether there is any value",
                "write `some: {exists: …}`",
            );
        }
        return;
    }
    match (place, quantifier) {
        (Place::When, Quantifier::Each) => value.warn(
            codes::LOOSE_QUANTIFIER,
            "with `each` one more value that differs lifts the deny",
            "write `some`, or say under `unless` what all values must be",
        ),
        (Place::Require | Place::Unless, Quantifier::Some) => value.warn(
            codes::LOOSE_QUANTIFIER,
            "with `some` one value that fits is enough, whatever the others are",
            "write `each`, or `one` if there is to be only one",
        ),
        (Place::When, Quantifier::One | Quantifier::Some)
        | (Place::Require | Place::Unless, Quantifier::One | Quantifier::Each) => {}
    }
}

fn matcher_name<'d>(value: &Value<'_, 'd>) -> &'d str {
    match &value.node.kind {
        Kind::Map(entries) => entries.first().map_or("", |(key, _)| &key.name),
        _ => "",
    }
}

/// Reads the one matcher; its operand says of which type the values must be.
fn matcher(value: &Value<'_, '_>) -> Option<Matcher> {
    let entries = value.entries()?;
    let mut known = Vec::new();
    for (key, operand) in &entries {
        match key.name.as_str() {
            "if_missing" => operand.error(
                codes::CONTENT,
                "`if_missing` stands beside the path",
                "write it one level higher: `{path: …, some: …, if_missing: no_match}`",
            ),
            name if MATCHER.get(name).is_some() => known.push((name, operand)),
            name => matchers::unknown_matcher(operand, name),
        }
    }
    if let Some((second, operand)) = known.get(1) {
        operand.error(
            codes::MATCHER,
            format!("a second matcher, `{second}`, for one path"),
            "write two entries, which must both hold",
        );
        return None;
    }
    let (name, operand) = known.first()?;
    let kind = match (*name, &operand.node.kind) {
        ("equals", Kind::Int(_) | Kind::Float(_)) => ClaimKind::Number,
        ("equals", Kind::Bool(_)) => ClaimKind::Boolean,
        ("contains" | "all_of", _) => ClaimKind::StringArray,
        ("gt" | "gte" | "lt" | "lte" | "between", _) => ClaimKind::Number,
        (_, _) => ClaimKind::String,
    };
    matchers::matcher(name, operand, kind, false)
}
