//! `skill_from` and `skill_default`: how it is known which skill a call means.

use super::agents::canonical_path;
use super::check::unique;
use super::document;
use super::snapshot::{Interface, Interfaces, SkillPath};
use crate::a2a::skill_rules::{DataPath, Selector, SkillRules};
use crate::source::tree::clip;
use crate::source::{Mapping, Value, codes, quantity::suggest};
use http::header::HeaderName;
use std::collections::HashMap;
use std::sync::Arc;

/// More selectors than any agent has; each is looked for in every message.
const MAX_SELECTORS: usize = 16;

/// What an agent's entry says about the skills of calls.
#[derive(Default)]
pub(super) struct OfCalls {
    /// What is read; `None` without `skill_from`.
    pub(super) rules: Option<Arc<SkillRules>>,
    /// The paths that stand for skills.
    pub(super) paths: Vec<SkillPath>,
    /// The skill of a call that names none.
    pub(super) default: Option<Box<str>>,
}

/// Reads `skill_from` and `skill_default`.
pub(super) fn of_calls(
    fields: &Mapping<'_, '_>,
    skills: &[Box<str>],
    interfaces: &Interfaces,
) -> OfCalls {
    let mut reader = Reader {
        skills,
        interfaces,
        selectors: Vec::new(),
        paths: Vec::new(),
    };
    if let Some(place) = fields.get("skill_from") {
        reader.selectors(&place);
    }
    if skills.len() > 1 && !fields.has("skill_from") {
        fields.whole().error(
            codes::SKILL_UNDECIDABLE,
            format!(
                "{} skills, and nothing says which one a call means",
                skills.len()
            ),
            "add `skill_from: [{metadata: skillId}]`: A2A itself names no skill in a call",
        );
    }
    let default = fields.get("skill_default").and_then(|place| {
        let text = place.text()?;
        declared(&place, text, skills);
        Some(text.into())
    });
    OfCalls {
        rules: (!reader.selectors.is_empty()).then(|| Arc::new(SkillRules::new(reader.selectors))),
        paths: reader.paths,
        default,
    }
}

struct Reader<'a> {
    skills: &'a [Box<str>],
    interfaces: &'a Interfaces,
    selectors: Vec<Selector>,
    paths: Vec<SkillPath>,
}

impl Reader<'_> {
    fn selectors(&mut self, place: &Value<'_, '_>) {
        let mut seen = HashMap::new();
        for entry in place.list().unwrap_or_default() {
            let Some(fields) = entry.fields(&document::SKILL_FROM) else {
                continue;
            };
            let kinds = document::SKILL_FROM.fields.iter();
            let mut given = kinds.filter(|field| fields.has(field.name));
            let (Some(kind), None) = (given.next(), given.next()) else {
                entry.error(
                    codes::SKILL_SELECTOR,
                    "a selector names exactly one place",
                    "write one of `metadata`, `request_metadata`, `data`, `header`, `path`; several places are several elements: `[{metadata: skillId}, {header: X-Skill}]`",
                );
                continue;
            };
            let Some(value) = fields.get(kind.name) else {
                continue;
            };
            if kind.name == "path" {
                self.skill_paths(&entry, &value);
                continue;
            }
            unique(
                seen.entry(kind.name).or_insert_with(HashMap::new),
                &value,
                codes::DUPLICATE_VALUE,
                "selector",
            );
            let selector = match kind.name {
                "metadata" => value.text().map(|key| Selector::Metadata(key.into())),
                "request_metadata" => value
                    .text()
                    .map(|key| Selector::RequestMetadata(key.into())),
                "data" => data(&value),
                _ => header(&value),
            };
            self.selectors.extend(selector);
        }
        if self.selectors.len() > MAX_SELECTORS {
            place.error(
                codes::SKILL_SELECTOR,
                format!("more than {MAX_SELECTORS} selectors"),
                "name only the places that the agent obeys",
            );
        }
    }

    /// Paths that stand for skills.
    fn skill_paths(&mut self, entry: &Value<'_, '_>, value: &Value<'_, '_>) {
        if self.selectors.contains(&Selector::Path) {
            entry.error(
                codes::DUPLICATE_VALUE,
                "a second selector by path",
                "name all skills and their paths in one",
            );
        }
        self.selectors.push(Selector::Path);
        for (key, place) in value.entries().unwrap_or_default() {
            declared(&place, &key.name, self.skills);
            let Some(path) = canonical_path(&place) else {
                continue;
            };
            if let Some(other) = self.paths.iter().find(|other| other.path == path) {
                place.error(
                    codes::SKILL_PATH,
                    format!("the path already stands for skill `{}`", clip(&other.skill)),
                    "give each skill a path of its own",
                );
                continue;
            }
            self.offered(&place, &path);
            self.paths.push(SkillPath {
                path,
                skill: key.name.as_str().into(),
            });
        }
        self.bypassed(value);
    }

    /// A skill's own path is worth nothing if another path leads to the same place.
    fn bypassed(&self, place: &Value<'_, '_>) {
        let Some(listed) = self.listed() else {
            return;
        };
        let skill_of = |path: &str| self.paths.iter().find(|known| *known.path == *path);
        for free in listed.iter().filter(|i| skill_of(&i.public_path).is_none()) {
            let same =
                |i: &&&Interface| i.backend == free.backend && i.backend_path == free.backend_path;
            let skill = listed
                .iter()
                .filter(same)
                .find_map(|i| skill_of(&i.public_path));
            if let Some(skill) = skill {
                place.error(
                    codes::SKILL_PATH,
                    format!(
                        "the interface on `{}` leads to the backend path of skill `{}` and stands for no skill",
                        clip(shown(&free.public_path)),
                        clip(&skill.skill)
                    ),
                    "remove that interface, or give it another `backend` path: who calls it could name any skill",
                );
            }
        }
    }

    /// The interfaces that have a path, when they are listed.
    fn listed(&self) -> Option<Vec<&Interface>> {
        match self.interfaces {
            Interfaces::Auto => None,
            Interfaces::Listed(listed) => {
                Some(listed.iter().filter(|i| i.binding.has_path()).collect())
            }
        }
    }

    /// With listed interfaces, a path must be one of theirs, and the agent must be able to tell it
    /// from the paths of other skills.
    fn offered(&self, place: &Value<'_, '_>, path: &str) {
        let Some(listed) = self.listed() else {
            return;
        };
        let here = |wanted: &str| {
            let wanted: Box<str> = wanted.into();
            let all = listed.iter();
            all.filter(move |i| i.public_path == wanted)
        };
        if here(path).next().is_none() {
            let known: Vec<_> = listed
                .iter()
                .map(|i| format!("`{}`", shown(&i.public_path)))
                .collect();
            place.error(
                codes::SKILL_PATH,
                format!("no interface has the public path `{}`", clip(shown(path))),
                format!("list one in `interfaces`; there are: {}", known.join(", ")),
            );
        }
        let same = |other: &&SkillPath| {
            here(&other.path).any(|theirs| {
                here(path).any(|ours| {
                    ours.backend == theirs.backend && ours.backend_path == theirs.backend_path
                })
            })
        };
        if let Some(other) = self.paths.iter().find(same) {
            place.error(
                codes::SKILL_PATH,
                format!(
                    "it leads to the same path on the backend as that of skill `{}`",
                    clip(&other.skill)
                ),
                "give the interfaces `backend` paths of their own: the agent could not tell the skills apart",
            );
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn data(value: &Value<'_, '_>) -> Option<Selector> {
    match DataPath::parse(value.text()?) {
        Ok(path) => Some(Selector::Data(path)),
        Err(why) => {
            value.error(
                codes::SKILL_SELECTOR,
                format!("not a path to one value: {why}"),
                "write names and indexes, from the data of a part: `$.skill`, `$.action['skill-id']`, `$[0].skill`",
            );
            None
        }
    }
}

fn header(value: &Value<'_, '_>) -> Option<Selector> {
    let text = value.text()?;
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    let fault = match &name {
        None => "it is no name of a header field",
        Some(name) if name.as_str().contains('_') => "servers of the CGI kind read `_` as `-`",
        Some(name) if name.as_str().ends_with("-bin") => "in gRPC its value would be base64",
        Some(name) if !is_free(name.as_str()) => "it has a meaning of its own",
        Some(name) => return Some(Selector::Header(name.clone())),
    };
    value.error(
        codes::SKILL_SELECTOR,
        format!("a skill cannot be named by this header field: {fault}"),
        "write the name of a field of your own, such as `X-Skill`",
    );
    None
}

/// How fields begin in which TLS terminators tell of a client's certificate (RFC 9440, and what
/// products call it). No peer may tell us so, hence none of them counts and none passes (SC-8).
pub const CERTIFICATE_PREFIXES: [&str; 9] = [
    "client-cert",
    "x-client-cert",
    "x-clientcert",
    "x-arr-clientcert",
    "ssl-client-",
    "tls-client-",
    "x-ssl-",
    "x-tls-client-",
    "x-amzn-mtls-",
];

/// Whether a header field goes to the agent as the caller sent it, and says nothing else.
pub fn is_free(name: &str) -> bool {
    const PREFIXES: [&str; 13] = [
        "a2a-",
        "x-a2a-",
        "accept",
        "access-control-",
        "content-",
        "grpc-",
        "if-",
        "portcullis-",
        "proxy-",
        "sec-",
        "x-forwarded-",
        "x-original-",
        "x-rewrite-",
    ];
    const NAMES: [&str; 29] = [
        "authorization",
        "cache-control",
        "connection",
        "cookie",
        "date",
        "dpop",
        "expect",
        "forwarded",
        "host",
        "http2-settings",
        "keep-alive",
        "origin",
        "pragma",
        "range",
        "referer",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "true-client-ip",
        "upgrade",
        "user-agent",
        "via",
        "x-client-ip",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-real-ip",
    ];
    let of_meaning = |prefix: &&str| name.starts_with(prefix);
    !NAMES.contains(&name) && !PREFIXES.iter().chain(&CERTIFICATE_PREFIXES).any(of_meaning)
}

/// Reports a skill that the agent does not declare.
pub(super) fn declared(place: &Value<'_, '_>, skill: &str, skills: &[Box<str>]) {
    if skills.iter().any(|declared| **declared == *skill) {
        return;
    }
    let hint = match suggest(skill, skills.iter().map(AsRef::as_ref)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "declare it in `skills`".to_owned(),
    };
    place.error(
        codes::UNKNOWN_SKILL,
        format!("`{}` is not among the agent's skills", clip(skill)),
        hint,
    );
}
