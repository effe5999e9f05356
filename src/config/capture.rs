//! All files of one configuration, read once: what is compiled is what was looked at.
//!
//! Symbolic links are followed anew each time, so a swapped link is simply other content (FC-78).

use super::secrets::variable;
use super::snapshot::{SourceRole, SourceText};
use crate::audit::redact::Secret;
use crate::source::{Document, Kind, Node, Problem, Problems, codes};
use aws_lc_rs::digest::{Context, SHA256};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Largest file that is read; parsers have lower bounds of their own.
const MAX_FILE: u64 = 4 << 20;

/// SHA-256 over everything that a configuration consists of.
pub type ContentHash = [u8; 32];

/// The gateway file and every file that it names, as they were at one moment.
#[derive(Debug)]
pub struct Capture {
    /// The gateway file.
    pub file: PathBuf,
    /// Its tree, or why there is none.
    pub document: Result<Document, Problems>,
    /// Policy files by pattern, in the order of the gateway file.
    pub patterns: BTreeMap<String, Result<Vec<PathBuf>, PatternFault>>,
    /// Every other file by its path.
    pub files: BTreeMap<PathBuf, Content>,
    /// Environment variables that stand for secrets; `None` for one that is not set.
    pub variables: BTreeMap<String, Option<Secret<String>>>,
    /// Changes with any byte of any of the files.
    pub hash: ContentHash,
    gateway: Content,
}

/// What was found at a path. Shows its length only: it may be a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes, or why they cannot be read.
    pub bytes: Result<Vec<u8>, String>,
    /// Whether every user of the machine may write the file (LC-15).
    pub world_writable: bool,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("bytes", &self.bytes.as_ref().map(Vec::len))
            .field("world_writable", &self.world_writable)
            .finish()
    }
}

/// Why a pattern of policy files cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternFault {
    /// Special characters other than `*` in the last part.
    Unsupported,
    /// It names a file of policy tests.
    Tests,
    /// Its directory cannot be listed.
    Directory(String),
}

impl Capture {
    /// Reads the gateway file and what it names. Never fails: what cannot be read is part of the
    /// capture and becomes a problem when it is compiled.
    pub fn take(file: &Path) -> Capture {
        let gateway = read(file);
        let document = parse(file, &gateway);
        let mut capture = Capture {
            file: file.to_owned(),
            document,
            patterns: BTreeMap::new(),
            files: BTreeMap::new(),
            variables: BTreeMap::new(),
            hash: [0; 32],
            gateway,
        };
        capture.follow();
        capture.hash = capture.hash_all();
        capture
    }

    /// A path of the gateway file, relative to it.
    pub fn resolve(&self, path: &str) -> PathBuf {
        match self.file.parent() {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        }
    }

    /// Reads the files that the document names, as far as they can be found in it; whether the
    /// document is good is not asked here.
    fn follow(&mut self) {
        let Ok(document) = &self.document else { return };
        let policies = document.root.get("policies").and_then(|p| p.get("files"));
        let patterns: Vec<String> = elements(policies).filter_map(text).collect();
        let keys: Vec<String> = elements(document.root.get("issuers"))
            .filter_map(|issuer| issuer.get("keys")?.get("file"))
            .chain(
                elements(document.root.get("issuers"))
                    .filter_map(|issuer| issuer.get("keys")?.get("ca")),
            )
            .chain(
                elements(document.root.get("agents"))
                    .filter_map(|agent| agent.get("verify")?.get("keys")?.get("file")),
            )
            .filter_map(text)
            .collect();
        let mut others = keys;
        for listener in elements(document.root.get("listeners")) {
            let tls = listener.get("tls").and_then(|tls| tls.get("certificates"));
            for pair in elements(tls) {
                others.extend(pair_files(Some(pair)));
            }
            let client_ca = listener.get("client_ca").and_then(|ca| ca.get("file"));
            others.extend(client_ca.and_then(text));
        }
        for issuer in elements(document.root.get("issuers")) {
            let asked = issuer.get("introspection");
            let tls = asked.and_then(|a| a.get("tls"));
            others.extend(tls.and_then(|tls| tls.get("ca")).and_then(text));
            others.extend(pair_files(tls.and_then(|tls| tls.get("client"))));
        }
        let denylists = document.root.get("revocation").and_then(|r| r.get("files"));
        others.extend(elements(denylists).filter_map(text));
        for agent in elements(document.root.get("agents")) {
            let tls = agent.get("backend").and_then(|b| b.get("tls"));
            others.extend(tls.and_then(|tls| tls.get("ca")).and_then(text));
            others.extend(pair_files(tls.and_then(|tls| tls.get("client"))));
        }
        let secrets = elements(document.root.get("agents"))
            .filter_map(identity_secret)
            .chain(elements(document.root.get("issuers")).filter_map(client_secret))
            .chain(otlp_headers(&document.root));
        let (mut variables, mut files) = (Vec::new(), Vec::new());
        for secret in secrets {
            let named = text(secret);
            variables.extend(named.as_deref().and_then(variable).map(str::to_owned));
            files.extend(secret.get("file").and_then(text));
        }
        others.extend(files);
        for name in variables {
            let set = std::env::var(&name).ok().map(Secret::new);
            self.variables.insert(name, set);
        }
        for pattern in patterns {
            let found = expand(&self.resolve(&pattern));
            for path in found.iter().flatten() {
                self.read_once(path.clone());
            }
            self.patterns.insert(pattern, found);
        }
        for file in others {
            self.read_once(self.resolve(&file));
        }
    }

    fn read_once(&mut self, path: PathBuf) {
        self.files.entry(path).or_insert_with_key(|path| read(path));
    }

    fn hash_all(&self) -> ContentHash {
        let mut context = Context::new(&SHA256);
        add(&mut context, &self.file, &self.gateway);
        for (path, content) in &self.files {
            add(&mut context, path, content);
        }
        finish(context)
    }

    /// The texts of the gateway file and these policy files, in this order.
    pub fn sources(&self, policies: &[PathBuf]) -> Vec<SourceText> {
        let policies = policies.iter().filter_map(|path| {
            let content = self.files.get(path)?;
            Some((path, SourceRole::Policy, content))
        });
        std::iter::once((&self.file, SourceRole::Gateway, &self.gateway))
            .chain(policies)
            .filter_map(|(path, role, content)| {
                Some(SourceText {
                    name: path.display().to_string().into(),
                    role,
                    text: content.bytes.as_deref().ok()?.into(),
                })
            })
            .collect()
    }

    /// Hex SHA-256 over the gateway file and these policy files, in this order.
    pub fn digest(&self, policies: &[PathBuf]) -> Box<str> {
        let mut context = Context::new(&SHA256);
        let contents = policies.iter().filter_map(|path| self.files.get(path));
        for content in std::iter::once(&self.gateway).chain(contents) {
            if let Ok(bytes) = &content.bytes {
                add_framed(&mut context, bytes);
            }
        }
        let hex = finish(context)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>();
        hex.into()
    }
}

fn finish(context: Context) -> ContentHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// The path is part of the hash: a renamed policy file is another configuration.
fn add(context: &mut Context, path: &Path, content: &Content) {
    add_framed(context, path.as_os_str().as_encoded_bytes());
    match &content.bytes {
        Ok(bytes) => {
            context.update(&[u8::from(content.world_writable)]);
            add_framed(context, bytes);
        }
        Err(why) => {
            context.update(&[2]);
            add_framed(context, why.as_bytes());
        }
    }
}

fn add_framed(context: &mut Context, bytes: &[u8]) {
    context.update(&(bytes.len() as u64).to_be_bytes());
    context.update(bytes);
}

/// The secret by which an issuer knows us.
fn client_secret(issuer: &Node) -> Option<&Node> {
    issuer.get("introspection")?.get("client_secret")
}

/// What a collector knows us by.
fn otlp_headers(root: &Node) -> impl Iterator<Item = &Node> {
    let otlp = root.get("telemetry").and_then(|t| t.get("otlp"));
    let entries = match otlp.and_then(|otlp| otlp.get("headers")).map(|h| &h.kind) {
        Some(Kind::Map(entries)) => entries.iter(),
        _ => [].iter(),
    };
    entries.map(|(_, secret)| secret)
}

fn elements(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    match node.map(|n| &n.kind) {
        Some(Kind::Seq(items)) => items.iter(),
        _ => [].iter(),
    }
}

/// The secret that an agent and we share.
fn identity_secret(agent: &Node) -> Option<&Node> {
    let identity = agent.get("backend")?.get("identity")?;
    identity.get("header")?.get("value")
}

/// The files of a certificate and its key.
fn pair_files(pair: Option<&Node>) -> impl Iterator<Item = String> {
    let names = ["cert", "key"].into_iter();
    names.filter_map(move |name| pair?.get(name).and_then(text))
}

fn text(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Str(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn parse(file: &Path, content: &Content) -> Result<Document, Problems> {
    let name = file.display().to_string();
    let bytes = content.bytes.as_ref().map_err(|why| {
        let problem = Problem::of_file(&name, codes::UNREADABLE, format!("cannot be read: {why}"))
            .hint("check the path and the permissions; `--config FILE` names another file");
        Problems(vec![problem])
    })?;
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes
            .iter()
            .take(e.valid_up_to())
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        let problem = Problem::of_file(
            &name,
            codes::NOT_UTF8,
            format!("not UTF-8 text, first in line {line}"),
        )
        .hint("save the file as UTF-8");
        Problems(vec![problem])
    })?;
    Document::parse(&name, text)
}

/// What a key file holds now, if it can be used as one (LC-15).
pub fn key_file(path: &Path) -> Option<Vec<u8>> {
    let content = read(path);
    content.bytes.ok().filter(|_| !content.world_writable)
}

fn read(path: &Path) -> Content {
    let mut world_writable = false;
    let bytes = open(path, &mut world_writable).map_err(|e| why(&e));
    Content {
        bytes,
        world_writable,
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn open(path: &Path, world_writable: &mut bool) -> io::Result<Vec<u8>> {
    // Looked at before opening: opening a named pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    *world_writable = file.metadata()?.permissions().mode() & 0o002 != 0;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!(
            "it has more than {MAX_FILE} bytes"
        )));
    }
    Ok(bytes)
}

/// The files that a pattern means, sorted by name; a path without `*` means itself.
fn expand(pattern: &Path) -> Result<Vec<PathBuf>, PatternFault> {
    let whole = pattern.to_str().ok_or(PatternFault::Unsupported)?;
    let (folder, last) = match whole.rsplit_once('/') {
        Some(("", last)) => ("/", last),
        Some((folder, last)) => (folder, last),
        None => (".", whole),
    };
    if folder.contains('*') || last.is_empty() || last.contains("**") {
        return Err(PatternFault::Unsupported);
    }
    if is_tests(last) {
        return Err(PatternFault::Tests);
    }
    if !last.contains('*') {
        return Ok(vec![pattern.to_owned()]);
    }
    let directory = |e: io::Error| PatternFault::Directory(why(&e));
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(directory)? {
        let entry = entry.map_err(directory)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // Hidden names are bookkeeping of editors and of mounted Kubernetes volumes.
        let wanted = !name.starts_with('.') && !is_tests(&name) && matches(last, &name);
        if wanted && fs::metadata(entry.path()).is_ok_and(|m| m.is_file()) {
            names.push(name);
        }
    }
    names.sort();
    let folder = pattern.parent().unwrap_or(Path::new(""));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn is_tests(name: &str) -> bool {
    name.ends_with("_test.yaml") || name.ends_with("_test.yml")
}

/// Whether `name` fits `pattern`, in which `*` stands for any text. Greedy from the left: the
/// first place where a piece fits is always a good one, so nothing is tried twice.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", ".yaml", true),
            ("*.yaml", "a.yml", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("ab*ab", "ab", false),
            ("*", "x", true),
            ("a.yaml", "a.yaml", true),
            ("a.yaml", "a.yaml2", false),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
