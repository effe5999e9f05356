//! `portcullis token inspect`: what a token says, for operators on their own machine.

use super::show::{Moment, Shown, moments, pretty, take_apart};
use super::{Trouble, warn};
use crate::a2a::strict_json::Value;
use crate::adapters::clock::SystemClock;
use crate::cli::exit;
use crate::pipeline::ports::Clock;
use std::io::{IsTerminal, Read};

/// Which token.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The token; `-` or nothing reads it from standard input, which keeps it out of the shell's
    /// history
    #[arg(value_name = "TOKEN")]
    // More than one is taken here and refused by us: the parser's own message would show it.
    token: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Longest input in bytes, far above what any gateway takes (TR-6).
const MAX_INPUT: u64 = 65_536;

pub(super) fn run(arguments: &Arguments) -> Result<u8, Trouble> {
    let text = match &arguments.token[..] {
        [] => from_input()?,
        [dash] if dash == "-" => from_input()?,
        [token] => {
            warn(
                "a token on the command line stays in the shell's history; pipe it into `portcullis token inspect` instead",
            );
            token.clone()
        }
        _ => {
            return Err(Trouble::usage(
                "more than one token was given",
                "give one, or pipe it into `portcullis token inspect`",
            ));
        }
    };
    let token = bare(&text);
    let now = i64::try_from(SystemClock::new().now() / 1000).unwrap_or(i64::MAX);
    let shown = take_apart(token).map_err(|what| Trouble {
        what,
        help: "give a signed token as it stands behind `Bearer` in the request".to_owned(),
        exit: exit::NO,
    })?;
    let moments = moments(&shown.payload, now);
    if arguments.json {
        println!("{}", as_json(shown, moments));
    } else {
        print!("{}", as_text(&shown, &moments));
    }
    Ok(exit::YES)
}

fn from_input() -> Result<String, Trouble> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        eprintln!("paste the token, then press Enter and Ctrl-D");
    }
    let mut bytes = Vec::new();
    let read = input.by_ref().take(MAX_INPUT + 1).read_to_end(&mut bytes);
    let wrong =
        |what: String| Trouble::usage(what, "pipe one token into `portcullis token inspect`");
    read.map_err(|error| wrong(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(wrong("standard input is too long for a token".to_owned()));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| wrong("standard input is not text".to_owned()))?;
    if text.trim_ascii().is_empty() {
        return Err(wrong("there is no token on standard input".to_owned()));
    }
    Ok(text)
}

/// The token alone, without the scheme that often comes along when a header is copied.
fn bare(text: &str) -> &str {
    let text = text.trim_ascii();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim_ascii(),
        _ => text,
    }
}

fn as_text(shown: &Shown, moments: &[Moment]) -> String {
    let mut text = String::from("signature not verified\n");
    for (name, part) in [("header", &shown.header), ("payload", &shown.payload)] {
        text.push_str(&format!("\n{name}\n  {}\n", pretty(part, 2)));
    }
    if !moments.is_empty() {
        text.push_str("\ntimes\n");
    }
    for moment in moments {
        let at = moment.at.as_deref().unwrap_or("-");
        text.push_str(&format!(
            "  {:<9}  {at:<20}  {}\n",
            moment.claim, moment.words
        ));
    }
    text
}

fn as_json(shown: Shown, moments: Vec<Moment>) -> String {
    let text = |text: &str| Value::String(text.into());
    let times = moments.into_iter().map(|moment| {
        let at = moment.at.as_deref().map_or(Value::Null, text);
        let members = vec![("at".into(), at), ("words".into(), text(&moment.words))];
        (Box::from(moment.claim), Value::Object(members))
    });
    let whole = vec![
        ("signature".into(), text("not_verified")),
        ("header".into(), shown.header),
        ("payload".into(), shown.payload),
        ("times".into(), Value::Object(times.collect())),
    ];
    pretty(&Value::Object(whole), 0)
}
