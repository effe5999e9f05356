//! Who calls, and what, as a command line says it.

use super::recorded::{self, Recorded};
use super::suite::{Suite, parse};
use crate::a2a::Operation;
use crate::cli::exit;
use crate::cli::token::{MAX_INPUT, whose};
use crate::config::snapshot::Snapshot;
use crate::identity::issuer::Grant;
use crate::identity::trial::{Beside, completed, principal};
use crate::identity::{Principal, TokenFault};
use crate::policy::Asked;
use crate::policy::trial::{Calling, is_message, payload};
use crate::source::quantity::suggest;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Who calls: exactly one of these.
#[derive(clap::Args)]
pub(in crate::cli) struct Who {
    /// The payload of a token, as JSON or YAML; what every token must have is added
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
    /// Whose token that is: an issuer entry of the gateway file
    #[arg(long, value_name = "NAME", requires = "claims")]
    issuer: Option<String>,
    /// The reach of that token, where its claims carry no mark of one
    #[arg(long, value_name = "GRANT", requires = "claims")]
    grant: Option<Reach>,
    /// A token, in a file, or `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    token: Option<PathBuf>,
    /// The caller of a request in the journal
    #[arg(long, value_name = "ID", conflicts_with_all = ["claims", "token"])]
    request: Option<String>,
    /// The gateway file
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    pub(super) config: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Reach {
    Agent,
    Full,
    None,
}

/// A caller.
pub(super) struct Caller {
    /// Whose the token is, or the rule that refuses it.
    pub(super) principal: Result<Principal, TokenFault>,
    /// The request that it was taken from.
    pub(super) recorded: Option<Recorded>,
}

/// What a command gave up for: printed, with the exit code.
pub(super) fn usage(what: impl Display, help: impl Display) -> u8 {
    eprintln!("error: {what}\n   = help: {help}");
    exit::USAGE
}

fn invalid(path: &Path, what: impl Display) -> u8 {
    eprintln!("error: `{}`: {what}", path.display());
    exit::INVALID
}

impl Who {
    /// The gateway file with its policies, and the caller.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn open(&self) -> Result<(Suite, Caller), u8> {
        let suite = Suite::of_gateway(&self.config)?;
        let caller = self.caller(&suite.snapshot)?;
        Ok((suite, caller))
    }

    fn caller(&self, snapshot: &Snapshot) -> Result<Caller, u8> {
        if let Some(file) = &self.claims {
            return self.described(snapshot, file);
        }
        if let Some(file) = &self.token {
            let text = token(file).map_err(|error| invalid(file, error))?;
            let principal = whose(snapshot, &text).map_err(|error| invalid(file, error))?;
            return Ok(Caller {
                principal,
                recorded: None,
            });
        }
        if let Some(id) = &self.request {
            let found = recorded::find(snapshot, id)?;
            let principal = found.principal.clone().ok_or_else(|| {
                usage(
                    "the request was refused before anybody knew whose it was",
                    "its record says why, under `token_reason`; `portcullis token inspect --config` explains a token",
                )
            })?;
            return Ok(Caller {
                principal: Ok(principal),
                recorded: Some(found),
            });
        }
        Err(usage(
            "nothing says who calls",
            "give --claims FILE, --token FILE or --request ID",
        ))
    }

    fn described(&self, snapshot: &Snapshot, file: &Path) -> Result<Caller, u8> {
        let issuers = &snapshot.issuers;
        let names = || issuers.iter().map(|issuer| &*issuer.name);
        let index = match &self.issuer {
            Some(name) => {
                let found = names().position(|known| *known == **name);
                found.ok_or_else(|| unknown("issuer", name, names()))?
            }
            None if issuers.len() == 1 => 0,
            None => return Err(usage("there are several issuers", "add --issuer NAME")),
        };
        let wrong = |problems| {
            eprint!("{problems}");
            exit::INVALID
        };
        let document = parse(file).map_err(wrong)?;
        let claims = payload(&document).map_err(wrong)?;
        let grant = match self.grant {
            Some(Reach::Agent) => Some(Grant::Agent),
            Some(Reach::Full) => Some(Grant::Full),
            Some(Reach::None) | None => None,
        };
        let Some(config) = issuers.get(index) else {
            return Err(exit::INVALID);
        };
        let whole = completed(&claims, config, &Beside::default());
        Ok(Caller {
            principal: principal(&whole, (index, config), grant),
            recorded: None,
        })
    }
}

fn token(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file)?)
    };
    input.by_ref().take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if bytes.len() as u64 > MAX_INPUT {
        return Err(wrong("too long for a token"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("not text"))
}

/// A name that is not there.
fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> u8 {
    let help = match suggest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    };
    usage(format!("there is no {what} `{name}`"), help)
}

/// The call that a command line names, with the message in a file.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn described(
    snapshot: &Snapshot,
    (operation, agent): (Option<&str>, Option<&str>),
    skill: Option<&str>,
    message: Option<&Path>,
) -> Result<Calling, u8> {
    let (Some(operation), Some(agent)) = (operation, agent) else {
        return Err(usage(
            "nothing says what is called",
            "give an operation such as `SendMessage`, and --agent NAME",
        ));
    };
    saying(calling(snapshot, agent, operation, skill)?, message)
}

/// A call, by its names.
pub(super) fn calling(
    snapshot: &Snapshot,
    agent: &str,
    operation: &str,
    skill: Option<&str>,
) -> Result<Calling, u8> {
    let agents = snapshot.agents.iter().map(|agent| &*agent.name);
    let found = snapshot.agents.iter().find(|known| *known.name == *agent);
    let agent = found.ok_or_else(|| unknown("agent", agent, agents))?;
    let names = || Operation::ALL.into_iter().map(Operation::name);
    let asked = match Operation::ALL.into_iter().find(|o| o.name() == operation) {
        Some(operation) => Asked::Operation(operation),
        None if operation == "backend" => Asked::Backend,
        None => return Err(unknown("operation", operation, names().chain(["backend"]))),
    };
    if let Some(skill) = skill {
        let known = agent.skills.iter().map(|skill| &**skill);
        if !is_message(asked) {
            return Err(usage("only messages have a skill", "leave out --skill"));
        }
        if !known.clone().any(|known| *known == *skill) {
            return Err(unknown("skill", skill, known));
        }
    }
    Ok(Calling {
        agent: agent.index,
        asked,
        skill: skill.map(Box::from),
        message: None,
        owned: true,
    })
}

/// The same call with this message.
fn saying(calling: Calling, message: Option<&Path>) -> Result<Calling, u8> {
    let Some(file) = message else {
        return Ok(calling);
    };
    if !is_message(calling.asked) {
        return Err(usage("only messages say anything", "leave out --message"));
    }
    let message = parse(file).and_then(|document| payload(&document));
    let message = message.map_err(|problems| {
        eprint!("{problems}");
        exit::INVALID
    })?;
    Ok(Calling {
        message: Some(message),
        ..calling
    })
}

/// A caller in one line.
pub(super) fn told(principal: &Principal) -> String {
    use crate::cli::token::safe;
    let mut text = format!(
        "{} of issuer {}",
        safe(&principal.subject),
        principal.issuer
    );
    if let Some(client) = &principal.client {
        text.push_str(&format!(", client {}", safe(client)));
    }
    if let Some(actor) = principal.actors.first() {
        text.push_str(&format!(", for whom {} acts", safe(&actor.subject)));
    }
    let grant = match principal.grant {
        Some(Grant::Agent) => "grant agent",
        Some(Grant::Full) => "grant full",
        None => "no grant",
    };
    format!(
        "{text}, {grant}, proof {}",
        principal.confirmation.kind().label()
    )
}
