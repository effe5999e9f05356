//! Which journals a command reads.

use crate::cli::exit;
use crate::config::check::load;
use std::path::PathBuf;

/// Where journals are.
#[derive(clap::Args)]
pub(in crate::cli) struct From {
    /// A journal's folder; may be repeated. Default: the one of the gateway file
    #[arg(long, value_name = "DIR")]
    pub(super) journal: Vec<PathBuf>,
    /// The gateway file, which says where the journal is
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    pub(super) config: PathBuf,
}

impl From {
    /// The journals' folders; the gateway file is only read where no folder is named.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, u8> {
        if !self.journal.is_empty() {
            return Ok(self.journal.clone());
        }
        match load(&self.config) {
            Ok(loaded) => Ok(vec![loaded.snapshot.audit.dir.clone()]),
            Err(problems) => {
                eprint!("{problems}");
                eprintln!("  = help: name the journal's folder with `--journal DIR`");
                Err(exit::INVALID)
            }
        }
    }
}
