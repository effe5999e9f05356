//! Where a message may name its skill: metadata, data parts, the configuration.

use super::{Stop, fold_alike, refused, skip};
use crate::a2a::call::{Call, ReadRules, SkillMention, SkillPlace};
use crate::a2a::skill_rules::{KNOWN_KEYS, Step, mentioned};
use crate::a2a::strict_json::{Cursor, Kind};

/// Reads `params.metadata` or `message.metadata`: a key that folds to a skill selector without
/// being one is refused, so that no server can find a selector that we did not see.
pub(super) fn metadata<'a>(
    cursor: &mut Cursor<'a>,
    rules: &ReadRules,
    in_message: bool,
    mut selected: impl FnMut(Option<usize>, &mut Cursor<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if cursor.null()? {
        return Ok(());
    }
    if cursor.kind()? != Kind::Object {
        return refused("metadata_type");
    }
    let Some(skills) = &rules.skills else {
        return skip(cursor);
    };
    cursor.enter_object()?;
    while let Some(key) = cursor.next_key()? {
        match skills.key(&key, in_message).or_else(refused)? {
            Some(selector) => selected(selector, cursor)?,
            None => skip(cursor)?,
        }
    }
    Ok(())
}

/// Reads the metadata of the message or of the request for what may name a skill.
pub(super) fn mentions(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
    in_message: bool,
) -> Result<(), Stop> {
    let place = match in_message {
        true => SkillPlace::Message,
        false => SkillPlace::Request,
    };
    metadata(cursor, rules, in_message, |selector, cursor| {
        mention(cursor, call, selector, place)
    })
}

/// Reads the configuration's `skillId`, which some agents fall back to.
pub(super) fn configured(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    match rules.skills {
        Some(_) => mention(cursor, call, None, SkillPlace::Configuration),
        None => skip(cursor),
    }
}

/// Reads the data of a part for the selectors within data, and for what else may name a skill.
pub(super) fn data(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    let Some(skills) = &rules.skills else {
        return skip(cursor);
    };
    for (index, path) in skills.data() {
        let mark = cursor.mark();
        pick(cursor, call, path.steps(), index)?;
        cursor.rewind(mark);
    }
    if cursor.kind()? != Kind::Object {
        return skip(cursor);
    }
    let selected = |key: &str| {
        let mut paths = skills.data().map(|(_, path)| path.steps());
        paths.any(|steps| matches!(steps, [Step::Name(name)] if **name == *key))
    };
    cursor.enter_object()?;
    while let Some(key) = cursor.next_key()? {
        match KNOWN_KEYS.contains(&&*key) && !selected(&key) {
            true => mention(cursor, call, None, SkillPlace::Data)?,
            false => skip(cursor)?,
        }
    }
    Ok(())
}

/// Follows a path into the value that comes next, and consumes all of that value. The depth of
/// the recursion is the path's length, which is bounded.
fn pick(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    steps: &[Step],
    selector: usize,
) -> Result<(), Stop> {
    let Some((step, rest)) = steps.split_first() else {
        return mention(cursor, call, Some(selector), SkillPlace::Data);
    };
    match (step, cursor.kind()?) {
        (Step::Name(name), Kind::Object) => {
            cursor.enter_object()?;
            while let Some(key) = cursor.next_key()? {
                if *key == **name {
                    pick(cursor, call, rest, selector)?;
                } else if fold_alike(name, &key) {
                    return refused("inexact_selector");
                } else {
                    skip(cursor)?;
                }
            }
        }
        (Step::Index(wanted), Kind::Array) => {
            cursor.enter_array()?;
            let mut index = 0;
            while cursor.next_item()? {
                match index == *wanted {
                    true => pick(cursor, call, rest, selector)?,
                    false => skip(cursor)?,
                }
                index += 1;
            }
        }
        (Step::Name(_) | Step::Index(_), _) => skip(cursor)?,
    }
    Ok(())
}

fn mention(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    selector: Option<usize>,
    place: SkillPlace,
) -> Result<(), Stop> {
    let value = match cursor.kind()? {
        Kind::String => mentioned(&cursor.string()?),
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool | Kind::Null => {
            cursor.skip()?;
            None
        }
    };
    call.mention(SkillMention {
        selector,
        place,
        value,
    });
    Ok(())
}
