//! Reading conditions: claims by name, each with exactly one matcher that fits its type.

use super::condition::{Condition, Matcher, Reserved, Source, Test};
use super::content;
use super::document::MATCHER;
use super::glob::Glob;
use super::index::RuleIssuers;
use super::names::{Names, type_name};
use crate::identity::issuer::ClaimKind;
use crate::source::quantity::suggest;
use crate::source::tree::clip;
use crate::source::{Kind, Value, codes};
use std::sync::Arc;

/// Where a condition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Require,
    When,
    Unless,
}

/// Largest number of which every integer up to it is exact in a double: beyond it, different
/// numbers in tokens would be equal here.
pub(super) const EXACT: f64 = 9_007_199_254_740_991.0;

/// Beside claims, in a condition: what the message must say.
pub(super) const CONTENT: &str = "content";

const PROOFS: [&str; 3] = ["none", "mtls", "dpop"];

/// Reads the tests of a condition; those with problems are left out.
pub(super) fn read(
    value: &Value<'_, '_>,
    place: Place,
    names: &Names<'_>,
    issuers: &RuleIssuers,
) -> Condition {
    let (mut tests, mut of_content) = (Vec::new(), Vec::new());
    for (claim, entry) in value.entries().unwrap_or_default() {
        if claim.name == CONTENT {
            of_content = content::each(&entry, place);
            continue;
        }
        warn_not_ascii(&entry, &claim.name);
        let resolved = names.claim(&entry, &claim.name, issuers);
        tests.extend(one(&entry, &claim.name, place, resolved));
    }
    Condition {
        claims: tests.into(),
        content: of_content.into(),
    }
}

fn one(
    entry: &Value<'_, '_>,
    claim: &str,
    place: Place,
    resolved: Option<(Source, ClaimKind)>,
) -> Option<Test> {
    if !matches!(entry.node.kind, Kind::Map(_)) {
        if entry.node.kind != Kind::Reported {
            entry.error(
                codes::MATCHER,
                format!("no matcher for the claim `{}`", clip(claim)),
                "write a mapping with one matcher, such as `{equals: VALUE}`",
            );
        }
        return None;
    }
    let mut matchers = Vec::new();
    let mut missing_is_false = None;
    let mut broken = false;
    for (key, value) in entry.entries().unwrap_or_default() {
        match key.name.as_str() {
            "if_missing" => missing_is_false = Some(value),
            name if MATCHER.get(name).is_some() => matchers.push((name, value)),
            name => {
                unknown_matcher(&value, name);
                broken = true;
            }
        }
    }
    let mut matchers = matchers.into_iter();
    let (name, value) = match (matchers.next(), matchers.next()) {
        (Some(only), None) => only,
        (None, _) => {
            if !broken && entry.node.kind != Kind::Map(Vec::new()) {
                entry.error(
                    codes::MATCHER,
                    format!("no matcher for the claim `{}`", clip(claim)),
                    "add one, such as `equals: VALUE`",
                );
            }
            return None;
        }
        (Some(_), Some((second, value))) => {
            value.error(
                codes::MATCHER,
                format!("a second matcher, `{second}`, for the claim `{}`", clip(claim)),
                "one matcher per claim: put the other into a rule of its own, or use `between` for a range",
            );
            return None;
        }
    };
    let lifted = missing_is_false.as_ref().is_some_and(|v| {
        let word = v.word(&[("no_match", ())]).is_some();
        word && if_missing_fits(v, name, place)
    });
    let (source, kind) = resolved?;
    let always_there = match &source {
        Source::Reserved(reserved) => reserved.is_always_there(),
        Source::Declared(_) => false,
    };
    if place == Place::When && missing_is_false.is_none() && name != "exists" && !always_there {
        entry.warn(
            codes::UNGUARDED_WHEN,
            format!("the rule also fires on tokens without the claim `{}`", clip(claim)),
            "if that is meant, better say `unless` with what is wanted; if tokens may lack it, add `if_missing: no_match`",
        );
    }
    let proof = matches!(source, Source::Reserved(Reserved::Proof));
    let matcher = matcher(name, &value, kind, proof)?;
    Some(Test {
        claim: Arc::from(claim),
        source,
        matcher,
        missing_is_false: lifted,
    })
}

pub(super) fn if_missing_fits(value: &Value<'_, '_>, matcher: &str, place: Place) -> bool {
    let why = match place {
        Place::When if matcher == "exists" => "`exists` is never in doubt",
        Place::When => return true,
        Place::Require | Place::Unless => "what is missing never meets this condition anyway",
    };
    value.error(
        codes::RULE_CONDITION,
        format!("`if_missing` has no use here: {why}"),
        "remove it; it belongs to comparisons in `when`",
    );
    false
}

pub(super) fn unknown_matcher(value: &Value<'_, '_>, name: &str) {
    let negated = name.starts_with("not") || name.starts_with('!');
    if negated || ["ne", "neq", "none_of", "excludes"].contains(&name) {
        value.error(
            codes::NEGATION,
            format!("there is no negation `{}`", clip(name)),
            "a negation holds for tokens without the claim: write a deny with `unless` and what must hold, or a deny with `when` and what must not",
        );
        return;
    }
    if ["regex", "regexp", "pattern", "re", "matches_regex", "like"].contains(&name) {
        value.error(
            codes::MATCHER,
            format!("there is no matcher `{name}`"),
            "use `matches` with `*` for any text without `/`, or `any_of` with a list",
        );
        return;
    }
    let all = || {
        let names = MATCHER.fields.iter().map(|f| f.name);
        names.filter(|name| *name != "if_missing")
    };
    let alias = match name {
        "eq" | "is" | "equal" | "value" => Some("equals"),
        "in" | "one_of" | "values" => Some("any_of"),
        "has" | "includes" | "include" => Some("contains"),
        "glob" => Some("matches"),
        "present" => Some("exists"),
        "min" | "ge" => Some("gte"),
        "max" | "le" => Some("lte"),
        _ => suggest(name, all()),
    };
    let hint = match alias {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("matchers: {}", all().collect::<Vec<_>>().join(", ")),
    };
    value.error(
        codes::MATCHER,
        format!("unknown matcher `{}`", clip(name)),
        hint,
    );
}

/// A matcher with its operands, when both fit the claim's type.
pub(super) fn matcher(
    name: &str,
    value: &Value<'_, '_>,
    kind: ClaimKind,
    proof: bool,
) -> Option<Matcher> {
    use ClaimKind as K;
    let array = matches!(kind, K::StringArray | K::SpaceString);
    match (name, kind) {
        ("exists", _) => value.boolean().map(Matcher::Exists),
        ("equals", K::String) => operand(value, kind, proof).map(Matcher::EqualsText),
        ("equals", K::Number) => number(value).map(Matcher::EqualsNumber),
        ("equals", K::Boolean) => match value.node.kind {
            Kind::Bool(wanted) => Some(Matcher::EqualsBoolean(wanted)),
            _ => {
                wrong_value(value, kind, "write `true` or `false`, without quotes");
                None
            }
        },
        ("any_of", K::String) => operands(value, kind, proof).map(Matcher::AnyOf),
        ("any_of", _) if array => operands(value, kind, proof).map(Matcher::Intersects),
        ("all_of", _) if array => operands(value, kind, proof).map(Matcher::AllOf),
        ("contains", _) if array => operand(value, kind, proof).map(Matcher::Contains),
        ("matches", K::String) => glob(value),
        ("gt", K::Number) => number(value).map(Matcher::Greater),
        ("gte", K::Number) => number(value).map(Matcher::GreaterOrEqual),
        ("lt", K::Number) => number(value).map(Matcher::Less),
        ("lte", K::Number) => number(value).map(Matcher::LessOrEqual),
        ("between", K::Number) => between(value),
        _ => {
            let fitting = match kind {
                K::String => "`equals`, `any_of`, `matches`, `exists`",
                K::Number => "`equals`, `gt`, `gte`, `lt`, `lte`, `between`, `exists`",
                K::Boolean => "`equals`, `exists`",
                K::StringArray | K::SpaceString => "`contains`, `all_of`, `any_of`, `exists`",
            };
            value.error(
                codes::MATCHER_TYPE,
                format!("`{name}` does not fit a claim of type {}", type_name(kind)),
                format!("this type has {fitting}"),
            );
            None
        }
    }
}

fn wrong_value(value: &Value<'_, '_>, kind: ClaimKind, hint: &str) {
    if value.node.kind == Kind::Reported {
        return;
    }
    value.error(
        codes::MATCHER_VALUE,
        format!(
            "{} here, and the claim is of type {}",
            value.node.type_name(),
            type_name(kind)
        ),
        hint,
    );
}

/// One text to compare with.
fn operand(value: &Value<'_, '_>, kind: ClaimKind, proof: bool) -> Option<Box<str>> {
    match &value.node.kind {
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {
            let hint = format!(
                "put it in quotes, `\"{}\"`, if tokens have text; nothing is converted",
                clip(&value.node.written)
            );
            wrong_value(value, kind, &hint);
            return None;
        }
        Kind::Seq(_) => {
            wrong_value(value, kind, "use `any_of` for several values");
            return None;
        }
        Kind::Null | Kind::Str(_) | Kind::Map(_) | Kind::Reported => {}
    }
    let text = value.text()?;
    warn_not_ascii(value, text);
    if kind == ClaimKind::SpaceString && text.contains(' ') {
        value.error(
            codes::NEVER_MATCHES,
            "this can never match: the claim is split at spaces",
            "name one piece, or several with `all_of`",
        );
    }
    if proof && !PROOFS.contains(&text) {
        value.error(
            codes::NEVER_MATCHES,
            format!("this can never match: `{}` is no kind of proof", clip(text)),
            format!("kinds: {}", PROOFS.join(", ")),
        );
    }
    Some(text.into())
}

/// Several, sorted.
fn operands(value: &Value<'_, '_>, kind: ClaimKind, proof: bool) -> Option<Box<[Box<str>]>> {
    if matches!(value.node.kind, Kind::Str(_)) {
        wrong_value(value, kind, "write a list: `[VALUE]`");
        return None;
    }
    let mut all: Vec<Box<str>> = Vec::new();
    for item in value.list()? {
        let Some(text) = operand(&item, kind, proof) else {
            continue;
        };
        match all.binary_search(&text) {
            Ok(_) => item.error(
                codes::DUPLICATE_VALUE,
                format!("`{}` stands here a second time", clip(&text)),
                "remove one of them",
            ),
            Err(at) => all.insert(at, text),
        }
    }
    Some(all.into())
}

fn number(value: &Value<'_, '_>) -> Option<f64> {
    let number = match value.node.kind {
        // Larger ones lose digits here and are refused below.
        #[allow(clippy::cast_precision_loss)]
        Kind::Int(number) => number as f64,
        Kind::Float(number) => number,
        _ => {
            wrong_value(
                value,
                ClaimKind::Number,
                "write a number, without quotes; nothing is converted",
            );
            return None;
        }
    };
    if number.is_nan() || number.abs() > EXACT {
        value.error(
            codes::OUT_OF_RANGE,
            format!("`{}` cannot be compared exactly", clip(&value.node.written)),
            format!("numbers go from -{EXACT} to {EXACT}; have larger ones issued as strings"),
        );
        return None;
    }
    Some(number)
}

fn between(value: &Value<'_, '_>) -> Option<Matcher> {
    let items = value.list()?;
    let [low, high] = items.as_slice() else {
        value.error(
            codes::MATCHER_VALUE,
            format!("`between` takes two numbers, not {}", items.len()),
            "write `[LOWEST, HIGHEST]`, both included",
        );
        return None;
    };
    let (low, high) = (number(low), number(high));
    let (low, high) = (low?, high?);
    if low > high {
        value.error(
            codes::NEVER_MATCHES,
            format!("this can never match: `{low}` is greater than `{high}`"),
            "write the lower number first",
        );
        return None;
    }
    Some(Matcher::Between(low, high))
}

fn glob(value: &Value<'_, '_>) -> Option<Matcher> {
    let pattern = operand(value, ClaimKind::String, false)?;
    let fault = if pattern.contains("**") {
        "`**` is no wildcard"
    } else if pattern.starts_with('^') || pattern.ends_with('$') || pattern.contains(".*") {
        "this looks like a regular expression"
    } else if pattern.contains('\\') {
        "there are no escapes"
    } else {
        return Some(Matcher::Matches(Glob::new(&pattern)));
    };
    value.error(
        codes::NOT_A_GLOB,
        fault,
        "the whole value is compared, literally but for `*`, which is any text without `/`: `team/*`",
    );
    None
}

/// Look-alike and differently composed letters are different text (PR-6).
fn warn_not_ascii(value: &Value<'_, '_>, text: &str) {
    if !text.is_ascii() {
        value.warn(
            codes::NOT_ASCII,
            format!("`{}` has characters beyond ASCII", clip(text)),
            "values are compared byte for byte: look-alike or differently composed letters differ; make sure that tokens have exactly these",
        );
    }
}
