//! The exchange below the pipeline: real sockets, a real recorder, an assumed decision.
//!
//! Here agents refuse, close, hang and die at chosen points, and the outcome record must say how
//! far the call got.
#![allow(clippy::unwrap_used)]

mod cells;
mod chaos;
mod connections;
mod deliveries;
mod deliveries_h2;
mod matrix;
mod replies;

use super::app::{App, Failure, check};
use super::forward::{Order, forward};
use super::limits::Connections;
use super::{Links, Stopping, body, listen};
use crate::a2a::{Binding, ReadRules, Request, Version, Versions, parse};
use crate::audit::record::Surface;
use crate::config::snapshot::{Agent, Backend, BackendHttp, Limits, Snapshot};
use crate::pipeline::recorder::Arrival;
use crate::pipeline::trace::Parent;
use crate::pipeline::{Permit, Recorder};
use crate::test_support::client::{Client, Response, request_head};
use crate::test_support::gates::{backend_at, gate_for};
use crate::test_support::memory_journal::MemoryJournal;
use async_trait::async_trait;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A listener that forwards everything to one agent.
struct Exchange {
    address: SocketAddr,
    journal: Arc<MemoryJournal>,
    app: Arc<App>,
    stop: watch::Sender<bool>,
}

/// An agent that is spoken to in HTTP/2, in plaintext.
fn h2_at(agent: SocketAddr) -> Backend {
    Backend {
        http: Some(BackendHttp::H2),
        ..backend_at(agent)
    }
}

/// Short bounds, so that waiting for one is no long wait.
fn quick() -> Limits {
    Limits {
        body: 10 * 1024 * 1024,
        idle_stream: Duration::from_millis(300),
        max_stream: Duration::from_secs(5),
        unary_timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(400),
        send_timeout: Duration::from_millis(400),
    }
}

/// Bounds that no test should meet.
fn patient() -> Limits {
    Limits {
        body: 10 * 1024 * 1024,
        idle_stream: Duration::from_secs(20),
        max_stream: Duration::from_secs(20),
        unary_timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
        send_timeout: Duration::from_secs(20),
    }
}

impl Exchange {
    fn start(agent: SocketAddr, limits: Limits) -> Exchange {
        Exchange::to(backend_at(agent), limits)
    }

    fn to(backend: Backend, limits: Limits) -> Exchange {
        let journal = Arc::new(MemoryJournal::default());
        let gate = gate_for(backend, limits, journal.clone());
        let live = gate.live();
        let app = App {
            listener: live.snapshot.listeners[0].clone(),
            index: 0,
            ready: Arc::new(|| true),
            gate,
            links: Arc::new(Links::new()),
            connections: Connections::DEFAULT,
            stopping: Stopping::new(),
        };
        let bound = listen::bind(crate::test_support::loopback()).unwrap();
        let address = bound.address;
        let mut options = HttpServerOptions::default();
        options.h2c = true;
        let (stop, stopped) = watch::channel(false);
        let app = Arc::new(app);
        bound.start("exchange", Bare(app.clone(), options), stopped);
        Exchange {
            address,
            journal,
            app,
            stop,
        }
    }

    /// Posts a body on a connection of its own.
    async fn post(&self, body: &str) -> Response {
        let mut client = Client::connect(self.address).await.unwrap();
        client.post_json("/", None, &[], body).await.unwrap()
    }

    /// The same, without waiting for anything.
    async fn begin(&self, body: &str) -> Client {
        let mut client = Client::connect(self.address).await.unwrap();
        let fields = [("Content-Type", "application/json")];
        let head = request_head("POST", "/", &fields, Some(body.len()));
        client.send((head + body).as_bytes()).await.unwrap();
        client
    }

    /// The outcome record of the only call so far.
    async fn outcome(&self) -> Value {
        self.outcomes(1).await.pop().unwrap()
    }

    async fn outcomes(&self, many: usize) -> Vec<Value> {
        self.journal.of_kind("outcome", many).await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A JSON-RPC call with `padding` bytes of text, exactly as it must arrive.
fn call(method: &str, padding: usize) -> String {
    let text = "x".repeat(padding);
    let params = match method {
        "GetTask" | "SubscribeToTask" => format!(r#"{{"id":"t1","pad":"{text}"}}"#),
        _ => format!(
            r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#
        ),
    };
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// A good reply to it.
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}}}"#;

/// An event that tells the state of a task.
fn event(task: &str, state: &str) -> String {
    format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"statusUpdate\":{{\"taskId\":\"{task}\",\"contextId\":\"c1\",\"status\":{{\"state\":\"{state}\"}}}}}}}}\n\n"
    )
}

/// The application of the tests: the straight line from the body on, in either HTTP version.
struct Bare(Arc<App>, HttpServerOptions);

#[async_trait]
impl HttpServerApp for Bare {
    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.1)
    }

    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        session.set_pipelining_enabled(true);
        if !matches!(session.read_request().await, Ok(true)) {
            return None;
        }
        session.set_keepalive(Some(60));
        let app = &self.0;
        let arrival = Arrival {
            listener: app.listener.clone(),
            source: *session.client_addr().unwrap().as_inet().unwrap(),
            method: session.req_header().method.clone(),
            certificate: None,
            parent: Parent::of(&session.req_header().headers),
        };
        let mut recorder = Recorder::begin(&app.gate, arrival);
        let reusable = match line(app, &mut session, &mut recorder).await {
            Ok(()) => true,
            Err(failure) => app.rescue(&mut session, &mut recorder, failure).await,
        };
        drop(recorder);
        if !reusable {
            session.shutdown().await;
            return None;
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let connection = session.finish().await.ok().flatten()?;
        Some(ReusedHttpStream::from_reusable_stream(connection, settings))
    }
}

async fn line(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    check(session).map_err(Failure::Rejected)?;
    let snapshot: &Snapshot = &recorder.live.snapshot;
    let agent: Arc<Agent> = snapshot.agents[0].clone();
    recorder.surface = Surface::Agent;
    recorder.agent = Some(agent.clone());
    let body = body::read(session, agent.limits.body)
        .await
        .map_err(|fault| match fault {
            body::BodyFault::Refuse(fault, code) => {
                Failure::Rejected(crate::pipeline::Rejection::plain(fault, code))
            }
            body::BodyFault::CallerLeft => Failure::CallerLeft,
        })?;
    let rules = ReadRules {
        versions: Versions {
            v0_3: true,
            v1_0: true,
        },
        ..ReadRules::default()
    };
    let request = Request {
        method: &session.req_header().method,
        path: "",
        query: None,
        headers: &session.req_header().headers,
        body: &body,
    };
    let reading = parse(Binding::JsonRpc, &request, &rules).unwrap();
    recorder.call = Some(reading.call);
    let recorded = recorder.intend().await.unwrap();
    let permit = Permit::for_exchange_tests(&recorded);
    let order = Order {
        permit,
        agent,
        backend: 0,
        target: "/".into(),
        body,
        a2a_version: Some(Version::V1_0),
        extensions: None,
        rework: None,
        asked: 0,
    };
    forward(app, session, recorder, order, None).await
}
