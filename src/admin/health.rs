//! `/livez`, `/readyz` and `/metrics`, as a function from values to a reply.

use serde::Serialize;

/// What kind of thing keeps the gateway from being ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An issuer without usable keys.
    Issuer,
    /// An issuer whose keys should be looked at, while there are callers that can be served.
    IssuerKeys,
    /// An issuer that does not answer about its tokens, which are refused until it does. It is only
    /// asked because of calls, so it must not keep them away.
    Introspection,
    /// An agent whose card was never fetched.
    Agent,
    /// The journal cannot be written.
    Journal,
    /// A checkpoint of the journal was not copied to where it should be.
    Checkpoints,
    /// The ownership store does not answer.
    Store,
    /// A rule in shadow mode whose time is over.
    Shadow,
    /// The last reload was refused. Traffic goes on with the last good generation.
    Reload,
    /// The process is about to stop.
    Shutdown,
}

impl Cause {
    /// Whether traffic should go elsewhere. A refused reload or one agent without a card is shown
    /// but keeps the rest of the agents in service.
    fn blocks(self) -> bool {
        match self {
            Cause::Issuer | Cause::Journal | Cause::Store | Cause::Shutdown => true,
            Cause::IssuerKeys
            | Cause::Checkpoints
            | Cause::Introspection
            | Cause::Agent
            | Cause::Shadow
            | Cause::Reload => false,
        }
    }
}

/// One reason in the answer of `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The kind.
    pub what: Cause,
    /// The configured name, empty where there is only one.
    pub name: String,
    /// In words: lower case, no final period, no secret.
    pub why: String,
}

/// What [`respond`] looks at.
pub struct HealthView<'a> {
    /// Everything that is not as it should be now.
    pub reasons: &'a [Reason],
    /// The generation in use.
    pub generation: u64,
    /// Renders the metrics; called for `/metrics` only.
    pub metrics: &'a dyn Fn() -> String,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub content_type: &'static str,
    /// Methods for an `Allow` header, with status 405 only.
    pub allow: Option<&'static str>,
    /// The challenge of a refused token.
    pub challenge: Option<String>,
    /// Seconds after which it may be tried again.
    pub retry_after: Option<u32>,
    /// Body; the caller leaves it out for HEAD and keeps its length.
    pub body: String,
}

#[derive(Serialize)]
struct Ready<'a> {
    ready: bool,
    generation: u64,
    reasons: &'a [Reason],
}

/// Answers a request of the admin listener. `path` comes without its query.
pub fn respond(path: &str, method: &str, view: &HealthView<'_>) -> AdminReply {
    let answer = match path {
        "/livez" => live,
        "/readyz" => ready,
        "/metrics" => metrics,
        _ => return plain(404, "not found\n"),
    };
    if method == "GET" || method == "HEAD" {
        answer(view)
    } else {
        AdminReply {
            allow: Some("GET, HEAD"),
            ..plain(405, "method not allowed\n")
        }
    }
}

/// Alive means that this function ran: a restart would cure nothing that `/readyz` reports.
fn live(_: &HealthView<'_>) -> AdminReply {
    plain(200, "ok\n")
}

/// Whether none of the reasons keeps the gateway from being ready.
pub fn is_ready(reasons: &[Reason]) -> bool {
    !reasons.iter().any(|reason| reason.what.blocks())
}

fn ready(view: &HealthView<'_>) -> AdminReply {
    let ready = is_ready(view.reasons);
    let body = serde_json::to_string(&Ready {
        ready,
        generation: view.generation,
        reasons: view.reasons,
    });
    AdminReply {
        status: if ready { 200 } else { 503 },
        content_type: "application/json",
        allow: None,
        challenge: None,
        retry_after: None,
        // Strings and numbers always serialise; should that change, the status still tells.
        body: body.unwrap_or_default() + "\n",
    }
}

fn metrics(view: &HealthView<'_>) -> AdminReply {
    AdminReply {
        status: 200,
        content_type: crate::pipeline::metrics::CONTENT_TYPE,
        allow: None,
        challenge: None,
        retry_after: None,
        body: (view.metrics)(),
    }
}

fn plain(status: u16, body: &str) -> AdminReply {
    AdminReply {
        status,
        content_type: "text/plain; charset=utf-8",
        allow: None,
        challenge: None,
        retry_after: None,
        body: body.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, method: &str, reasons: &[Reason]) -> AdminReply {
        let metrics = || "portcullis_generation 7\n".to_owned();
        respond(
            path,
            method,
            &HealthView {
                reasons,
                generation: 7,
                metrics: &metrics,
            },
        )
    }

    fn reason(what: Cause) -> Reason {
        Reason {
            what,
            name: "corp".into(),
            why: "its key file has no usable key".into(),
        }
    }

    #[test]
    fn readiness_names_its_reasons() {
        let reply = ask("/readyz", "GET", &[reason(Cause::Issuer)]);
        assert_eq!(reply.status, 503);
        assert_eq!(
            reply.body,
            concat!(
                r#"{"ready":false,"generation":7,"reasons":[{"what":"issuer","name":"corp","#,
                r#""why":"its key file has no usable key"}]}"#,
                "\n"
            )
        );
    }

    #[test]
    fn what_keeps_traffic_away_and_what_is_only_shown() {
        for (cause, status) in [
            (Cause::Issuer, 503),
            (Cause::IssuerKeys, 200),
            (Cause::Introspection, 200),
            (Cause::Journal, 503),
            (Cause::Checkpoints, 200),
            (Cause::Store, 503),
            (Cause::Shutdown, 503),
            (Cause::Agent, 200),
            (Cause::Shadow, 200),
            (Cause::Reload, 200),
        ] {
            let reply = ask("/readyz", "GET", &[reason(cause)]);
            assert_eq!(reply.status, status, "{cause:?}");
            assert!(reply.body.contains("corp"), "{cause:?}");
        }
        assert_eq!(ask("/readyz", "GET", &[]).status, 200);
    }

    #[test]
    fn life_does_not_depend_on_readiness() {
        let reply = ask("/livez", "GET", &[reason(Cause::Journal)]);
        assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
    }

    #[test]
    fn paths_and_methods() {
        for (path, method, status) in [
            ("/metrics", "GET", 200),
            ("/metrics", "HEAD", 200),
            ("/metrics", "POST", 405),
            ("/readyz", "DELETE", 405),
            ("/livez/", "GET", 404),
            ("/", "GET", 404),
            ("/nothing", "POST", 404),
        ] {
            let reply = ask(path, method, &[]);
            assert_eq!(reply.status, status, "{method} {path}");
            assert_eq!(reply.allow.is_some(), status == 405, "{method} {path}");
        }
    }
}
