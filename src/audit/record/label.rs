//! The closed sets that records are made of.

use crate::identity::ProofKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Declares an enum with one label per variant, in records, schema, metrics and `Display` alike.
macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $label)] $variant,)+
        }

        impl $name {
            /// Every one, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The name in records and metrics.
            pub fn label(self) -> &'static str {
                match self {
                    $($name::$variant => $label,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.label())
            }
        }
    };
}

labels! {
    /// How far a forwarded call got on its way to the agent (`design.md` section 9).
    Delivery {
        /// Refused, or there was no peer.
        NotAttempted = "not_attempted",
        /// DNS, TCP or TLS failed on every attempt.
        ConnectFailed = "connect_failed",
        /// Some of it was written, then the connection failed or timed out.
        SentPartial = "sent_partial",
        /// All was accepted by our kernel, no response header came.
        SentNoResponse = "sent_no_response",
        /// A response header came and the reply ended properly.
        Responded = "responded",
        /// A response header came, then agent or caller broke off.
        ResponsePartial = "response_partial",
        /// An intent without an outcome, found after a crash.
        Unknown = "unknown",
    }
}

impl Delivery {
    /// Whether the agent can have seen any of the call.
    pub fn reached(self) -> Reached {
        match self {
            Delivery::NotAttempted | Delivery::ConnectFailed => Reached::No,
            Delivery::SentPartial | Delivery::SentNoResponse | Delivery::Unknown => Reached::Maybe,
            Delivery::Responded | Delivery::ResponsePartial => Reached::Yes,
        }
    }
}

labels! {
    /// The short form of [`Delivery`].
    Reached {
        /// The agent saw nothing of it.
        No = "no",
        /// It cannot be known.
        Maybe = "maybe",
        /// The agent answered.
        Yes = "yes",
    }
}

labels! {
    /// How an exchange ended.
    Ended {
        /// The reply was relayed whole.
        Complete = "complete",
        /// The caller closed its connection.
        CallerLeft = "caller_left",
        /// The agent closed its connection early.
        AgentClosed = "agent_closed",
        /// A stream was silent for too long.
        IdleTimeout = "idle_timeout",
        /// A unary reply took too long.
        UnaryTimeout = "unary_timeout",
        /// A stream reached its longest life.
        MaxStream = "max_stream",
        /// The reply was not well-formed for its binding.
        Malformed = "malformed",
        /// The ownership store did not take the ids of the reply.
        StoreFailed = "store_failed",
        /// The gateway was stopped.
        Shutdown = "shutdown",
        /// The request's task panicked.
        Panic = "panic",
        /// Dropped without a conclusion, or found open after a crash.
        Abandoned = "abandoned",
        /// Anything else, for example no connection to the agent.
        Other = "other",
    }
}

labels! {
    /// The last stage that an attempt entered.
    Stage {
        /// Resolving, TCP, TLS.
        Connect = "connect",
        /// Writing the request header.
        Header = "header",
        /// Writing the request body.
        Body = "body",
        /// Everything is written; waiting for the response header.
        Wait = "wait",
        /// The response header came.
        Response = "response",
    }
}

labels! {
    /// Why an attempt failed.
    AttemptError {
        /// The name did not resolve.
        Dns = "dns",
        /// Nobody listens.
        Refused = "refused",
        /// No route.
        Unreachable = "unreachable",
        /// The bound of the stage passed.
        TimedOut = "timed_out",
        /// The peer reset the connection.
        Reset = "reset",
        /// The peer closed the connection.
        Closed = "closed",
        /// TLS failed.
        Tls = "tls",
        /// The peer's bytes are not its protocol.
        Protocol = "protocol",
        /// The agent speaks another version of HTTP than `backend.http` says.
        OtherHttp = "other_http",
        /// HTTP/2 `REFUSED_STREAM`, or a `GOAWAY` below our stream: not processed.
        NotProcessed = "not_processed",
        /// The caller left first.
        CallerLeft = "caller_left",
        /// Anything else.
        Other = "other",
    }
}

labels! {
    /// What we could say about the form of a reply.
    Judged {
        /// Well-formed, a result.
        Ok = "ok",
        /// Well-formed, a protocol error.
        Error = "error",
        /// Not well-formed; withheld when the guard is on.
        Malformed = "malformed",
        /// Too large to be judged whole.
        Unjudged = "unjudged",
        /// Nothing to judge: no reply, or a surface without a form.
        None = "none",
    }
}

labels! {
    /// What a path leads to (`design.md` section 2).
    Surface {
        /// Public discovery.
        Card = "card",
        /// The eleven operations.
        Agent = "agent",
        /// Another declared path of the backend.
        Backend = "backend",
        /// Our own API.
        Admin = "admin",
        /// Our own health, on a public listener.
        Health = "health",
        /// Nowhere, or not known yet.
        None = "none",
    }
}

labels! {
    /// The reach of a token.
    Grant {
        /// Nothing.
        None = "none",
        /// The A2A surface.
        Agent = "agent",
        /// That, the backend surface and the admin API.
        Full = "full",
    }
}

labels! {
    /// What was decided.
    Effect {
        /// Goes on.
        Allow = "allow",
        /// Is refused.
        Deny = "deny",
    }
}

labels! {
    /// Where a call's skill was read.
    SkillSource {
        /// The agent has one skill.
        Sole = "sole",
        /// Message metadata.
        Metadata = "metadata",
        /// The request's own metadata.
        RequestMetadata = "request_metadata",
        /// A data part of the message.
        Data = "data",
        /// A header field.
        Header = "header",
        /// The path of the interface.
        Path = "path",
        /// The configured default.
        Default = "default",
        /// The task that the message continues.
        BoundTask = "bound_task",
        /// Nowhere.
        None = "none",
    }
}

labels! {
    /// How much a call's skill is worth (`design.md` section 8).
    Assurance {
        /// The agent has one skill.
        Sole = "sole",
        /// Each skill has its own endpoint.
        Path = "path",
        /// The agent declares that it routes on our stamp.
        Bound = "bound",
        /// The caller said so, nothing more.
        Declared = "declared",
        /// The client named none.
        Defaulted = "defaulted",
    }
}

labels! {
    /// What proves that a token is its caller's own.
    Proof {
        /// Nothing: a plain bearer token.
        None = "none",
        /// The certificate of the connection (RFC 8705).
        Mtls = "mtls",
        /// A proof with the request (RFC 9449).
        Dpop = "dpop",
    }
}

impl From<ProofKind> for Proof {
    fn from(kind: ProofKind) -> Proof {
        match kind {
            ProofKind::None => Proof::None,
            ProofKind::Mtls => Proof::Mtls,
            ProofKind::Dpop => Proof::Dpop,
        }
    }
}

labels! {
    /// What we fetched for ourselves.
    Purpose {
        /// An agent's card.
        Card = "card",
        /// An agent's health.
        Health = "health",
        /// An issuer's keys.
        Keys = "keys",
    }
}

labels! {
    /// How a configuration change went.
    ConfigResult {
        /// It is in force.
        Loaded = "loaded",
        /// It was broken; the last good one stays (I-8).
        Rejected = "rejected",
    }
}

labels! {
    /// What asked for a configuration.
    Trigger {
        /// The process began.
        Start = "start",
        /// Its files changed.
        Watch = "watch",
        /// A signal (SIGHUP).
        Signal = "signal",
        /// An order by the admin API.
        Admin = "admin",
    }
}

labels! {
    /// What the journal says about itself.
    NoteTopic {
        /// The journal was opened; says what was found and mended.
        Opened = "opened",
        /// A new segment begins; says how far back open intents reach.
        Segment = "segment",
        /// Writing works again after a failure; says how much was lost.
        Recovered = "recovered",
        /// The journal was closed in order.
        Closed = "closed",
        /// Other keys are trusted, or used, from now on; says which.
        Keys = "keys",
        /// An operator gave an order by the admin API; says which, and who.
        Admin = "admin",
        /// Records do not get to where they are shipped; or they do again.
        Export = "export",
    }
}
