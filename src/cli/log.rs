//! The program's log: what is shown, and what is never shown (I-9).
//!
//! `PORTCULLIS_LOG` opens this program's own targets as far as an operator likes: nothing in them
//! carries a token, a credential or a message. Libraries are another matter: Pingora has lines that
//! print header blocks and buffers, HTTP clients have lines that print fields, and which of them a
//! call meets changes with every update. So no setting opens them.

use std::any::Any;
use std::io::IsTerminal;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterFn, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Names the filter.
const VARIABLE: &str = "PORTCULLIS_LOG";
/// Without it.
const DEFAULT: &str = "info";
/// The one place in a library that says something which we cannot say, that a connection could not
/// be accepted, and nothing that a caller wrote.
const ACCEPTING: &str = "pingora_core::services::listening";

/// How the log looks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogForm {
    /// For people
    Pretty,
    /// One JSON object per line
    Json,
}

/// Starts the log on stderr. A second start in one process keeps the first log.
pub(super) fn start(form: LogForm) {
    let filter = std::env::var(VARIABLE).unwrap_or_else(|_| DEFAULT.to_owned());
    let parsed = EnvFilter::try_new(&filter);
    let wrong = parsed.as_ref().err().map(ToString::to_string);
    let filter = parsed.unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let colors = std::io::stderr().is_terminal();
    let _ = match form {
        LogForm::Pretty => pretty(filter, std::io::stderr, colors).try_init(),
        LogForm::Json => json(filter, std::io::stderr).try_init(),
    };
    if let Some(wrong) = wrong {
        tracing::warn!("`{VARIABLE}` cannot be read, `{DEFAULT}` is used: {wrong}");
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic: {}", words(panic.payload()));
    }));
}

/// What may be said of a panic: a text that stands in the program's source. One that was made when
/// it happened may quote what was being worked on.
fn words(payload: &(dyn Any + Send)) -> &'static str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .unwrap_or("its text is withheld, since it may quote a request")
}

fn pretty<W>(filter: EnvFilter, writer: W, colors: bool) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colors)
        .with_writer(writer)
        .finish()
        .with(ours_only())
}

fn json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
        .with(ours_only())
}

fn ours_only() -> FilterFn {
    filter_fn(is_ours)
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let own = target
        .strip_prefix(env!("CARGO_PKG_NAME"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    own || (target == ACCEPTING && *metadata.level() == Level::ERROR)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn speak() {
        tracing::trace!("ours, the smallest");
        tracing::error!(target: "portcullis", "ours, the root");
        tracing::error!(target: ACCEPTING, "theirs, of use");
        tracing::warn!(target: ACCEPTING, "secret 1");
        tracing::error!(target: "pingora_core::protocols::http::v1::server", "secret 2");
        tracing::error!(target: "portcullis_like", "secret 3");
        tracing::trace!(target: "hyper_util::client", "secret 4");
        tracing::debug!(target: "rustls::conn", "secret 5");
    }

    /// `trace` opens everything of ours and nothing of anybody else's, in both forms.
    #[test]
    fn no_setting_opens_a_library() {
        for filter in ["trace", "trace,pingora_core=trace,hyper_util=trace"] {
            for form in [LogForm::Pretty, LogForm::Json] {
                let kept = Kept::default();
                let writer = {
                    let kept = kept.clone();
                    move || kept.clone()
                };
                let filter = EnvFilter::new(filter);
                match form {
                    LogForm::Pretty => {
                        tracing::subscriber::with_default(pretty(filter, writer, false), speak);
                    }
                    LogForm::Json => {
                        tracing::subscriber::with_default(json(filter, writer), speak);
                    }
                }
                let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
                assert_eq!(text.lines().count(), 3, "{text}");
                assert!(
                    !text.contains("secret") && !text.contains('\u{1b}'),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_panic_may_only_say_what_the_source_says() {
        assert_eq!(words(&"a text of the source"), "a text of the source");
        assert!(words(&String::from("a quoted message")).contains("withheld"));
    }
}
