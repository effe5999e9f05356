//! Where a message may name its skill: metadata, data parts, the configuration.

use super::{Stop, fold_alike, refused, skip, slot_ahead};
use crate::a2a::call::{Call, ReadRules, SkillMention, SkillPlace};
use crate::a2a::skill_rules::{Step, mentioned};
use crate::a2a::splice::{STAMP, Slot};
use crate::a2a::strict_json::{Cursor, Kind};

/// Reads the metadata of a request that has no skill.
pub(super) fn metadata(cursor: &mut Cursor<'_>, rules: &ReadRules) -> Result<(), Stop> {
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
        skills.key(&key, false).or_else(refused)?;
        skip(cursor)?;
    }
    Ok(())
}

/// Reads the metadata of the message or of the request for what may name a skill, and for a stamp.
/// A key that folds to a skill selector or to the stamp without being it is refused, so that no
/// server can find one that we did not see.
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
    let (slot, null) = slot_ahead(cursor, call)?;
    if in_message && let Some(spots) = call.json_spots() {
        spots.metadata = slot;
    }
    if null {
        return Ok(());
    }
    if cursor.kind()? != Kind::Object {
        return refused("metadata_type");
    }
    if rules.skills.is_none() && !rules.stamp {
        return skip(cursor);
    }
    cursor.enter_object()?;
    let mut before = cursor.offset();
    let mut first = true;
    while let Some(key) = cursor.next_key()? {
        if rules.stamp && fold_alike(STAMP, &key) {
            if *key != *STAMP {
                return refused("inexact_stamp");
            }
            let at = cursor.ahead();
            skip(cursor)?;
            let value = at..cursor.offset();
            // Of a first member the comma behind it goes too, of any other the one before it.
            let behind = cursor.comma_ahead().filter(|_| first);
            let member = before..behind.unwrap_or(value.end);
            match (in_message, call.json_spots()) {
                (true, Some(spots)) => spots.stamp = Slot::Value(value),
                (false, Some(spots)) => spots.elsewhere = Some(member),
                (_, None) => {}
            }
        } else {
            let selector = match &rules.skills {
                Some(skills) => skills.key(&key, in_message).or_else(refused)?,
                None => None,
            };
            match selector {
                Some(selector) => mention(cursor, call, selector, place)?,
                None => skip(cursor)?,
            }
        }
        before = cursor.offset();
        first = false;
    }
    Ok(())
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
    cursor.enter_object()?;
    while let Some(key) = cursor.next_key()? {
        match skills.is_unselected(&key) {
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
