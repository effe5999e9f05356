//! Parameters of ListTasks.

use super::{Stop, id, names, object, optional_text, put, refused, skip, tenant};
use crate::a2a::call::Call;
use crate::a2a::listing::ListQuery;
use crate::a2a::strict_json::{Cursor, Kind};

/// Reads which tasks are asked for, and which part of their list.
pub(super) fn read(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    let dialect = call.dialect;
    let mut query = ListQuery::default();
    let (mut status, mut after) = ("", "");
    object(cursor, &names::LIST, dialect, |cursor, name| match name {
        "contextId" => put(&mut call.context_id, id(cursor)?),
        "tenant" => tenant(cursor, call),
        "pageToken" => {
            query.page_token = optional_text(cursor, "page_token_type")?;
            Ok(())
        }
        "pageSize" => {
            query.page_size = page_size(cursor)?;
            Ok(())
        }
        "status" => {
            status = cursor.skip()?;
            Ok(())
        }
        "statusTimestampAfter" => {
            after = cursor.skip()?;
            Ok(())
        }
        _ => skip(cursor),
    })?;
    // As JSON texts they cannot run into one another.
    let context = call.context_id.as_deref().unwrap_or_default();
    query.filters = format!("{status},{after},{context}").into();
    call.list = Some(Box::new(query));
    Ok(())
}

/// A whole number; zero and null say nothing (ProtoJSON).
fn page_size(cursor: &mut Cursor<'_>) -> Result<Option<u32>, Stop> {
    if cursor.null()? {
        return Ok(None);
    }
    if cursor.kind()? != Kind::Number {
        return refused("page_size_type");
    }
    match cursor.number()?.parse::<u32>() {
        Ok(size) => Ok(Some(size).filter(|size| *size > 0)),
        Err(_) => refused("page_size_type"),
    }
}
