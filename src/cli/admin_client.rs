//! Orders to a running gateway, by its Unix socket.

use super::exit;
use crate::config::capture::Capture;
use crate::source::Kind;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Largest answer that is read.
const MAX_ANSWER: u64 = 16 << 20;
/// Longest wait for the gateway.
const WAIT: Duration = Duration::from_secs(30);

/// Which gateway.
#[derive(clap::Args)]
pub(super) struct Where {
    /// The gateway file, for its `admin.socket`
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// The socket itself; the gateway file is not read then
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Why there is no answer, and the exit code of that.
pub(super) struct Unanswered {
    what: String,
    help: String,
    exit: u8,
}

impl Unanswered {
    /// Tells it on standard error.
    pub(super) fn told(self) -> u8 {
        eprintln!("error: {}", self.what);
        eprintln!("help: {}", self.help);
        self.exit
    }
}

/// What the gateway answered.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Answered {
    /// The body of a success; a refusal is told on standard error.
    pub(super) fn good(self) -> Result<Value, u8> {
        if self.status < 300 {
            return Ok(self.body);
        }
        let message = self.body.pointer("/error/message").and_then(Value::as_str);
        eprintln!("error: {}", message.unwrap_or("the gateway refused"));
        Err(exit::NO)
    }
}

impl Where {
    /// Sends one order.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answered, Unanswered> {
        let socket = match &self.socket {
            Some(socket) => socket.clone(),
            None => self.configured()?,
        };
        exchange(&socket, method, path, body).map_err(|error| Unanswered {
            what: format!("no answer at the socket `{}`: {error}", socket.display()),
            help: "is the gateway running, and as this user? Only its own user may open the socket"
                .to_owned(),
            exit: exit::NO,
        })
    }

    /// The socket that the gateway file names. The rest of the file may be wrong: whoever must
    /// revoke something cannot wait for that.
    fn configured(&self) -> Result<PathBuf, Unanswered> {
        let capture = Capture::take(&self.config);
        let invalid = |what: String| Unanswered {
            what,
            help:
                "name the socket with `--socket PATH`, or another gateway file with `--config FILE`"
                    .to_owned(),
            exit: exit::INVALID,
        };
        let document = capture
            .document
            .as_ref()
            .map_err(|problems| invalid(problems.to_string()))?;
        let socket = document.root.get("admin").and_then(|a| a.get("socket"));
        match socket.map(|node| &node.kind) {
            Some(Kind::Str(socket)) => Ok(capture.resolve(socket)),
            Some(_) | None => Err(invalid(format!(
                "`{}` names no `admin.socket`",
                self.config.display()
            ))),
        }
    }
}

fn exchange(
    socket: &PathBuf,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<Answered> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let media = match body.is_empty() {
        true => "",
        false => "Content-Type: application/json\r\n",
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{media}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut bytes)?;
    let broken = || io::Error::other("the answer is not that of a gateway");
    let text = String::from_utf8(bytes).map_err(|_| broken())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok(Answered {
        status: status.ok_or_else(broken)?,
        body: serde_json::from_str(body).map_err(|_| broken())?,
    })
}
