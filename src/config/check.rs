//! From a capture of files to a compiled [`Snapshot`], or to everything that is wrong with them.
//!
//! Readers go on after a problem with a stand-in value: a snapshot is only handed out when there
//! was no error at all, so a stand-in never takes effect.

use super::capture::Capture;
use super::document;
use super::policies::PolicyFiles;
use super::route::Routes;
use super::snapshot::{Admin, Audit, Listener, Ownership, SigningKeys, Snapshot};
use super::{
    agents, audit, cards, issuers, listeners, ownership, policies, revocation, secrets, telemetry,
};
use crate::source::tree::clip;
use crate::source::{Kind, Problems, Value, Walker, codes};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A configuration without errors.
#[derive(Debug)]
pub struct Loaded {
    /// The compiled configuration.
    pub snapshot: Snapshot,
    /// What the operator should look at.
    pub warnings: Problems,
}

/// What a running process cannot change without a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    listeners: Vec<SocketAddr>,
    admin: SocketAddr,
    ownership: Ownership,
    audit: Audit,
    keys: SigningKeys,
    socket: Option<PathBuf>,
    revocation_state: Option<PathBuf>,
}

impl From<&Snapshot> for Running {
    fn from(snapshot: &Snapshot) -> Running {
        Running {
            listeners: snapshot.listeners.iter().map(|l| l.bind).collect(),
            admin: snapshot.admin.bind,
            ownership: snapshot.ownership,
            audit: snapshot.audit.clone(),
            keys: snapshot.keys.clone(),
            socket: snapshot.admin.socket.clone(),
            revocation_state: snapshot.revocation.state.clone(),
        }
    }
}

/// Reads a gateway file and everything that it names, for generation 1.
///
/// # Errors
/// Every problem of the files, errors and warnings.
pub fn load(file: &Path) -> Result<Loaded, Problems> {
    compile(&Capture::take(file), 1, None)
}

/// Compiles what was captured. With `running`, a change of what needs a restart is an error.
///
/// # Errors
/// Every problem of the files, errors and warnings.
pub fn compile(
    capture: &Capture,
    generation: u64,
    running: Option<&Running>,
) -> Result<Loaded, Problems> {
    let document = capture.document.as_ref().map_err(Problems::clone)?;
    let walker = Walker::new(document);
    let reader = Reader {
        capture,
        generation,
        running,
    };
    let (mut snapshot, files, of_denylists) = reader.gateway(&walker.root());
    let mut problems = walker.into_problems();
    problems.extend(of_denylists);
    let complete = !problems.has_errors();
    let (policy, found) = files.compile(snapshot.as_ref(), complete);
    problems.extend(found);
    if let Some(snapshot) = &mut snapshot {
        snapshot.policy = policy;
    }
    match snapshot {
        Some(snapshot) if !problems.has_errors() => Ok(Loaded {
            snapshot,
            warnings: problems,
        }),
        Some(_) | None => Err(problems),
    }
}

struct Reader<'a> {
    capture: &'a Capture,
    generation: u64,
    running: Option<&'a Running>,
}

impl Reader<'_> {
    /// The snapshot, still without its rules, the policy files that they come from, and the
    /// problems of the denylists.
    fn gateway(&self, root: &Value<'_, '_>) -> (Option<Snapshot>, PolicyFiles, Problems) {
        root.each_text(&mut |value, text| {
            if secrets::is_secret(value.path()) {
                secrets::keep(value, text);
            } else if text.contains("${") {
                value.error(
                    codes::NO_SECRET_HERE,
                    "a `${…}` reference stands in a field that is no secret",
                    "write the value itself; references are for secrets only",
                );
            }
        });
        let Some(fields) = root.fields(&document::GATEWAY) else {
            return (None, PolicyFiles::default(), Problems::default());
        };
        if let Some(version) = fields.get("version") {
            version_1(&version);
        }
        let (issuers, introspection) = fields
            .get("issuers")
            .map(|v| issuers::read(&v, self.capture))
            .unzip();
        if issuers.is_none() {
            root.warn(
                codes::NO_ISSUER,
                "no issuer is configured: every call is refused",
                "add `issuers`",
            );
        }
        let place = fields.get("keys");
        let keys = place.as_ref().map(|v| cards::signing_keys(v, self.capture));
        let keys = keys.unwrap_or_default();
        if self.running.is_some_and(|r| r.keys != keys) {
            restart(place.as_ref().unwrap_or(root), "where our own keys are");
        }
        let listeners = fields
            .get("listeners")
            .map(|v| {
                let issuers = issuers.as_deref().unwrap_or_default();
                listeners::read(&v, self.capture, issuers, &keys)
            })
            .unwrap_or_default();
        let admin = self.admin(root, fields.get("admin"), &listeners);
        let agents = fields
            .get("agents")
            .map(|v| {
                let issuers = issuers.as_deref().unwrap_or_default();
                agents::read(&v, self.capture, &listeners, issuers, &keys)
            })
            .unwrap_or_default();
        let policies = fields.get("policies");
        if policies.is_none() {
            root.warn(
                codes::NO_POLICY,
                "no policy is configured: every call is refused",
                "add `policies: {files: [...]}`",
            );
        }
        let mut policies = policies
            .map(|v| policies::read(&v, self.capture))
            .unwrap_or_default();
        let place = fields.get("ownership");
        let ownership = ownership::read(place.as_ref(), &agents);
        if self.running.is_some_and(|r| r.ownership != ownership) {
            restart(place.as_ref().unwrap_or(root), "how long ids are kept");
        }
        let place = fields.get("revocation");
        let trusted = issuers.as_deref().unwrap_or_default();
        let (revocation, of_denylists) = place
            .as_ref()
            .map(|v| revocation::read(v, self.capture, trusted))
            .unwrap_or_default();
        let state = |r: &Running| r.revocation_state != revocation.state;
        if self.running.is_some_and(state) {
            restart(place.as_ref().unwrap_or(root), "the file of revocations");
        }
        let shipped = fields.get("telemetry");
        let telemetry = shipped.map(|v| telemetry::read(&v, self.capture));
        let audit = fields.get("audit").and_then(|v| self.audit(&v));
        if let (Some(running), Some(value)) = (self.running, fields.get("listeners"))
            && !listeners
                .iter()
                .map(|l| l.bind)
                .eq(running.listeners.iter().copied())
        {
            restart(&value, "listener addresses");
        }
        let Some(audit) = audit else {
            return (None, policies, of_denylists);
        };
        let paths: Vec<PathBuf> = policies.files.iter().map(|p| p.path.clone()).collect();
        let snapshot = Snapshot {
            generation: self.generation,
            digest: self.capture.digest(&paths),
            sources: self.capture.sources(&paths),
            listeners,
            admin,
            routes: Routes::new(&agents),
            agents,
            issuers: issuers.unwrap_or_default(),
            introspection: introspection.unwrap_or_default(),
            policies: std::mem::take(&mut policies.files),
            policy: Arc::default(),
            policy_names: std::mem::take(&mut policies.names),
            revocation,
            ownership,
            audit,
            keys,
            telemetry: telemetry.unwrap_or_default(),
            redact: fields
                .get("audit")
                .map(|v| audit::redact(&v))
                .unwrap_or_default(),
        };
        (Some(snapshot), policies, of_denylists)
    }

    fn admin(
        &self,
        root: &Value<'_, '_>,
        value: Option<Value<'_, '_>>,
        listeners: &[Arc<Listener>],
    ) -> Admin {
        let default = SocketAddr::from(([127, 0, 0, 1], 9901));
        let fields = value.as_ref().and_then(|v| v.fields(&document::ADMIN));
        let socket = fields.as_ref().and_then(|f| f.get("socket"));
        let path = socket.as_ref().and_then(|v| v.text());
        let path = path.map(|path| self.capture.resolve(path));
        if self.running.is_some_and(|r| r.socket != path) {
            let place = socket.as_ref().or(value.as_ref()).unwrap_or(root);
            restart(place, "the admin socket");
        }
        let place = fields.and_then(|f| f.get("bind"));
        let bind = place
            .as_ref()
            .and_then(listeners::address)
            .unwrap_or(default);
        let place = place.as_ref().or(value.as_ref()).unwrap_or(root);
        if let Some(other) = listeners.iter().find(|l| listeners::collide(l.bind, bind)) {
            place.error(
                codes::ADDRESS_TAKEN,
                format!(
                    "the admin address `{bind}` is already that of listener `{}`",
                    other.name
                ),
                "give the admin listener a port of its own with `admin: {bind: ...}`",
            );
        }
        if !bind.ip().is_loopback() {
            place.warn(
                codes::ADMIN_EXPOSED,
                "the admin listener can be reached from other machines, in plain text and without a token",
                "bind it to a loopback address, or close the port to everybody but your monitoring",
            );
        }
        if self.running.is_some_and(|r| r.admin != bind) {
            restart(place, "the admin address");
        }
        Admin { bind, socket: path }
    }

    fn audit(&self, value: &Value<'_, '_>) -> Option<Audit> {
        let (audit, place) = audit::read(value, self.capture)?;
        if self.running.is_some_and(|r| r.audit != audit) {
            restart(&place, "the journal's settings");
        }
        Some(audit)
    }
}

fn version_1(value: &Value<'_, '_>) {
    if value.node.written.as_ref() != "1" || value.node.quoted {
        value.error(
            codes::BAD_VERSION,
            "this version of the format is not known",
            "write `version: 1`",
        );
    }
}

fn restart(value: &Value<'_, '_>, what: &str) {
    value.error(
        codes::NEEDS_RESTART,
        format!("{what} cannot change while the gateway runs"),
        "restart the gateway, or take the change back; until then the last good configuration stays",
    );
}

/// A name: letters, digits, `.`, `_` and `-`, at most 64, safe in labels and file names.
pub(super) fn name_of(value: &Value<'_, '_>) -> Option<Box<str>> {
    let name = value.text()?;
    let good = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if !good {
        value.error(
            codes::BAD_NAME,
            "not a name",
            "a name starts with a letter or digit and has at most 64 letters, digits, `.`, `_` and `-`",
        );
    }
    good.then(|| name.into())
}

/// Reports a text that `seen` already has; `seen` maps texts to the lines of their first use.
pub(super) fn unique<'d>(
    seen: &mut HashMap<&'d str, usize>,
    value: &Value<'_, 'd>,
    code: &'static str,
    what: &str,
) {
    let Kind::Str(text) = &value.node.kind else {
        return;
    };
    match seen.get(text.as_str()) {
        Some(line) => value.error(
            code,
            format!("a second {what} `{}`", clip(text)),
            format!("the first one is in line {line}"),
        ),
        None => {
            seen.insert(text, value.node.position.line);
        }
    }
}

/// A list of different texts.
pub(super) fn list_of(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let texts = value.texts().unwrap_or_default();
    texts.into_iter().map(|(_, text)| text.into()).collect()
}

/// A list of different words of a closed set.
pub(super) fn words<T: Copy>(value: &Value<'_, '_>, allowed: &[(&str, T)]) -> Vec<T> {
    let texts = value.texts().unwrap_or_default();
    texts
        .into_iter()
        .filter_map(|(v, _)| v.word(allowed))
        .collect()
}

/// A duration in whole seconds.
pub(super) fn seconds(value: &Value<'_, '_>, range: RangeInclusive<u64>) -> Option<u64> {
    let (low, high) = (*range.start(), *range.end());
    let duration = value.duration(Duration::from_secs(low)..=Duration::from_secs(high))?;
    if duration.subsec_millis() != 0 {
        value.error(
            codes::BAD_DURATION,
            "not a whole number of seconds",
            "the times in tokens have whole seconds",
        );
        return None;
    }
    Some(duration.as_secs())
}
