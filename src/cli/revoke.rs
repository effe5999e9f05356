//! `portcullis revoke`: tokens that a running gateway is to refuse from now on.

use super::admin_client::Where;
use super::exit;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest file that is read for a token; gateways take no token of that length (TR-6).
const MAX_TOKEN: u64 = 65_536;

/// What to revoke.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("order").required(true))]
pub(super) struct Arguments {
    /// Show what is revoked
    #[arg(long, group = "order")]
    list: bool,
    /// Take the entry with this id back
    #[arg(long, value_name = "ID", group = "order")]
    remove: Option<String>,
    /// One token, by its `jti`
    #[arg(long, value_name = "JTI", group = "order", requires = "issuer")]
    jti: Option<String>,
    /// The tokens of a subject
    #[arg(long, value_name = "SUB", group = "order", requires = "issuer")]
    sub: Option<String>,
    /// The tokens of a client
    #[arg(long, value_name = "CLIENT", group = "order", requires = "issuer")]
    client_id: Option<String>,
    /// The tokens of a session
    #[arg(long, value_name = "SID", group = "order", requires = "issuer")]
    sid: Option<String>,
    /// The tokens that a key signed, by its RFC 7638 thumbprint
    #[arg(long, value_name = "THUMBPRINT", group = "order")]
    key: Option<String>,
    /// The token in this file, `-` for standard input; it does not leave this machine, only the
    /// hash of what was signed does
    #[arg(long, value_name = "FILE", group = "order")]
    token: Option<PathBuf>,
    /// The issuer's entry in the gateway file, by its name
    #[arg(long, value_name = "NAME")]
    issuer: Option<String>,
    /// With --sub: only tokens issued before this instant, in RFC 3339
    #[arg(long, value_name = "INSTANT", requires = "sub")]
    issued_before: Option<String>,
    /// When the entry ends, in RFC 3339; by default with the last token that it can meet, and never
    /// for a key, a client, or a subject without --issued-before
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,
    /// Why, for those who list the entries
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    gateway: Where,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let done = if arguments.list {
        list(&arguments)
    } else if let Some(id) = &arguments.remove {
        remove(&arguments, id)
    } else {
        add(&arguments)
    };
    done.unwrap_or_else(|code| code)
}

fn ask(arguments: &Arguments, method: &str, path: &str, body: Option<&Value>) -> Result<Value, u8> {
    let answered = arguments.gateway.ask(method, path, body);
    answered.map_err(|unanswered| unanswered.told())?.good()
}

fn list(arguments: &Arguments) -> Result<u8, u8> {
    let mut entries = Vec::new();
    loop {
        let path = format!("/admin/v1/revocations?from={}", entries.len());
        let mut page = ask(arguments, "GET", &path, None)?;
        match page.get_mut("revocations").map(Value::take) {
            Some(Value::Array(page)) if !page.is_empty() => entries.extend(page),
            Some(_) | None => break,
        }
    }
    if arguments.json {
        println!("{}", json!({ "revocations": entries }));
        return Ok(exit::YES);
    }
    for entry in &entries {
        println!("{}", line(entry));
    }
    if entries.is_empty() {
        println!("nothing is revoked");
    }
    Ok(exit::YES)
}

/// One entry in one line. Values came from outside, so they are written as JSON, which escapes.
fn line(entry: &Value) -> String {
    let Some(members) = entry.as_object() else {
        return String::new();
    };
    let mut words = Vec::new();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("id", Value::String(id)) => words.push(id.clone()),
            ("until", Value::Null) => words.push("until=forever".to_owned()),
            _ => words.push(format!("{name}={value}")),
        }
    }
    words.join("  ")
}

fn remove(arguments: &Arguments, id: &str) -> Result<u8, u8> {
    // It becomes part of a path.
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        eprintln!("error: not the id of an entry");
        eprintln!("help: `portcullis revoke --list` shows them");
        return Ok(exit::USAGE);
    }
    let path = format!("/admin/v1/revocations/{id}");
    let removed = ask(arguments, "DELETE", &path, None)?;
    match arguments.json {
        true => println!("{removed}"),
        false => println!("{id} is taken back"),
    }
    Ok(exit::YES)
}

fn add(arguments: &Arguments) -> Result<u8, u8> {
    let mut order = Map::new();
    let texts = [
        ("issuer", &arguments.issuer),
        ("jti", &arguments.jti),
        ("sub", &arguments.sub),
        ("client_id", &arguments.client_id),
        ("sid", &arguments.sid),
        ("key", &arguments.key),
        ("issued_before", &arguments.issued_before),
        ("until", &arguments.until),
        ("note", &arguments.note),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            order.insert(name.to_owned(), text.as_str().into());
        }
    }
    if let Some(file) = &arguments.token {
        let hash = signing_input(file).map_err(|why| {
            eprintln!("error: {why}");
            exit::INVALID
        })?;
        order.insert("signing_input".to_owned(), hash.into());
    }
    let order = Value::Object(order);
    let shown = ask(arguments, "POST", "/admin/v1/revocations", Some(&order))?;
    match arguments.json {
        true => println!("{shown}"),
        false => println!("revoked: {}", line(&shown)),
    }
    Ok(exit::YES)
}

/// The SHA-256 of what was signed; no error shows the token.
fn signing_input(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().take(MAX_TOKEN).read_to_string(&mut text)
    } else {
        let opened = std::fs::File::open(file);
        opened.and_then(|opened| opened.take(MAX_TOKEN).read_to_string(&mut text))
    };
    read.map_err(|error| format!("the token cannot be read: {error}"))?;
    let token = text.trim_ascii();
    let input = token.rsplit_once('.').map(|(input, _)| input);
    let signed = input.filter(|input| token.split('.').count() == 3 && !input.contains(' '));
    let signed = signed.ok_or("that is no signed token: three segments with dots between")?;
    let hash = digest(&SHA256, signed.as_bytes());
    Ok(hash.as_ref().iter().map(|b| format!("{b:02x}")).collect())
}
