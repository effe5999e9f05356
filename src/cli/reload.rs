//! `portcullis reload`: asks a running gateway to look at its files.

use super::admin_client::Where;
use super::exit;

/// Which gateway.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    gateway: Where,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let answered = match arguments.gateway.ask("POST", "/admin/v1/reload", None) {
        Ok(answered) => answered,
        Err(unanswered) => return unanswered.told(),
    };
    let body = match answered.good() {
        Ok(body) => body,
        Err(code) => return code,
    };
    match arguments.json {
        true => println!("{body}"),
        false => println!(
            "asked; generation {} is in force until the files have been looked at",
            body["generation"]
        ),
    }
    exit::YES
}
