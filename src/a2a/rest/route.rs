//! Paths of the REST binding: which operations one has, and the ids in it.

use super::escape::{decoded, write_segment};
use crate::a2a::call::Call;
use crate::a2a::operation::{Operation, Version, Versions};
use crate::a2a::payload_json::{Stop, checked_id, is_clean, refused};
use crate::a2a::wire::{Endpoint, REST};
use http::Method;
use std::borrow::Cow;

/// The first segment of every path of 0.3.
const OLDER: &str = "/v1";

/// A path of an operation.
#[derive(Debug)]
pub(super) struct Found<'p> {
    pub(super) version: Version,
    template: &'static str,
    tenant: Option<Cow<'p, str>>,
    /// The segments that stand for ids, as they were spelled.
    ids: [&'p str; 2],
}

/// Finds what a path is; the error is a code.
///
/// `/v1/…` is 0.3's, and only on an interface of 1.0 alone can it be of a tenant with that name. A
/// path that can be read with and without a tenant is ambiguous whatever the interface has: which
/// of the two a server sees depends on the order of its routes.
pub(super) fn find(
    path: &str,
    versions: Versions,
    tenants: bool,
) -> Result<Found<'_>, &'static str> {
    if is_older(path) {
        if versions.v1_0 && !versions.v0_3 && tenants {
            return of_tenant(path).ok_or("unknown_path");
        }
        return of(Version::V0_3, path).ok_or("unknown_path");
    }
    match (of(Version::V1_0, path), of_tenant(path)) {
        (Some(_), Some(_)) => Err("path_ambiguous"),
        (Some(found), None) => Ok(found),
        (None, Some(found)) if tenants => Ok(found),
        (None, _) => Err("unknown_path"),
    }
}

/// Whether a path belongs to 0.3 by its first segment.
pub(super) fn is_older(path: &str) -> bool {
    path.strip_prefix(OLDER)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn of(version: Version, path: &str) -> Option<Found<'_>> {
    REST.iter()
        .filter(|endpoint| endpoint.version == version)
        .find_map(|endpoint| {
            Some(Found {
                version,
                template: endpoint.template,
                tenant: None,
                ids: ids(endpoint.template, path)?,
            })
        })
}

/// The reading of a path whose first segment is a tenant.
fn of_tenant(path: &str) -> Option<Found<'_>> {
    let rest = path.strip_prefix('/')?;
    let (tenant, _) = rest.split_once('/')?;
    let below = rest.get(tenant.len()..)?;
    let tenant = decoded(tenant, false)?;
    let good = !tenant.is_empty() && !tenant.contains(['/', '\\', ':']) && is_clean(&tenant);
    let found = of(Version::V1_0, below)?;
    good.then_some(Found {
        tenant: Some(tenant),
        ..found
    })
}

/// The ids in a path, if it has the form of the template.
fn ids<'p>(template: &str, path: &'p str) -> Option<[&'p str; 2]> {
    let mut found = [""; 2];
    let mut free = found.iter_mut();
    let mut segments = path.split('/');
    for wanted in template.split('/') {
        let segment = segments.next()?;
        match wanted.split_once('}') {
            Some((_, verb)) => *free.next()? = segment.strip_suffix(verb)?,
            None if wanted == segment => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(found)
}

impl Found<'_> {
    fn endpoints(&self) -> impl Iterator<Item = &'static Endpoint> {
        let (version, template) = (self.version, self.template);
        REST.iter()
            .filter(move |e| e.version == version && e.template == template)
    }

    /// What the path means with a method.
    pub(super) fn operation(&self, method: &Method) -> Option<Operation> {
        self.endpoints()
            .find(|endpoint| endpoint.method == method.as_str())
            .map(|endpoint| endpoint.operation)
    }

    /// The methods that the path has.
    pub(super) fn allowed(&self) -> &'static str {
        let has = |method| self.endpoints().any(|endpoint| endpoint.method == method);
        match (has("GET"), has("POST"), has("DELETE")) {
            (true, true, _) => "GET, POST",
            (true, false, true) => "GET, DELETE",
            (true, false, false) => "GET",
            (false, _, _) => "POST",
        }
    }

    /// Whether an id has a colon, which a canonical path never escapes. What follows the last one is
    /// a verb to some servers, and to others a part of the id.
    pub(super) fn has_colon(&self) -> bool {
        self.ids.iter().any(|id| id.contains(':'))
    }

    /// Reads tenant and ids into the call, and writes the path anew.
    pub(super) fn understand(&self, call: &mut Call, path: &mut String) -> Result<(), Stop> {
        if let Some(tenant) = &self.tenant {
            path.push('/');
            write_segment(tenant, path);
            call.tenant = Some(tenant.as_ref().into());
        }
        let mut ids = self.ids.iter();
        for wanted in self.template.split('/').skip(1) {
            path.push('/');
            let Some((_, verb)) = wanted.split_once('}') else {
                path.push_str(wanted);
                continue;
            };
            let id = id(ids.next().copied().unwrap_or_default())?;
            write_segment(&id, path);
            path.push_str(verb);
            match call.task_id {
                None => call.task_id = Some(id),
                Some(_) => call.push_config_id = Some(id),
            }
        }
        Ok(())
    }
}

/// An id in a path.
fn id(segment: &str) -> Result<Box<str>, Stop> {
    let Some(id) = decoded(segment, false) else {
        return refused("path_encoding");
    };
    if id.contains(['/', '\\', ';', ':', '%']) || id == "." || id == ".." {
        return refused("id_characters");
    }
    checked_id(&id)
}
