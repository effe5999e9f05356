//! `portcullis check`: every problem of a configuration, all at once.

use super::exit;
use crate::config::check::load;
use crate::source::Problems;
use std::path::PathBuf;

/// What to check.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The gateway file
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let (problems, good) = match load(&arguments.config) {
        Ok(loaded) => (loaded.warnings, true),
        Err(problems) => (problems, false),
    };
    if arguments.json {
        println!("{:#}", as_json(&problems, good));
    } else {
        eprint!("{problems}");
        if good {
            println!("{}: good", arguments.config.display());
        }
    }
    if good { exit::YES } else { exit::INVALID }
}

fn as_json(problems: &Problems, good: bool) -> serde_json::Value {
    let list: Vec<_> = problems
        .0
        .iter()
        .map(|p| {
            serde_json::json!({
                "severity": match p.severity {
                    crate::source::Severity::Error => "error",
                    crate::source::Severity::Warning => "warning",
                },
                "code": p.code, "message": p.message, "file": p.file, "line": p.line,
                "column": p.column, "path": p.path, "hint": p.hint,
            })
        })
        .collect();
    serde_json::json!({ "good": good, "problems": list })
}
