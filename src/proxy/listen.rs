//! Listeners: bound by us, so that port 0 works and the address is known, then handed to Pingora.

use super::door::Door;
use super::plain::Plain;
use pingora::apps::ServerApp;
use pingora::listeners::ListenerConfig;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::{Fds, ListenFds};
use pingora::services::Service as Start;
use pingora::services::listening::Service;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Small read buffers keep an idle stream cheap; a request head fits in one or two reads.
const READ_BUFFER: usize = 4 * 1024;

/// A bound address that nobody serves yet.
pub struct Bound {
    listener: TcpListener,
    /// Where it really listens.
    pub address: SocketAddr,
}

/// Binds an address; connections queue from now on.
pub fn bind(address: SocketAddr) -> io::Result<Bound> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// Serves callers of agents until `stop` says true; then no more connections are accepted.
    pub fn serve(self, door: Door, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        self.start("public", door, stop)
    }

    /// Serves plain answers, for the admin listener.
    pub fn serve_plain(self, plain: Plain, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        self.start("admin", plain, stop)
    }

    /// Serves any application.
    pub(super) fn start<A>(self, name: &str, app: A, stop: watch::Receiver<bool>) -> JoinHandle<()>
    where
        A: ServerApp + Send + Sync + 'static,
    {
        let address = self.address.to_string();
        let config = ListenerConfig::tcp(address.clone());
        let fd = self.listener.into_raw_fd();
        run(name, app, config, address, fd, stop)
    }
}

/// Serves an application on a listening socket that is ours already.
pub(super) fn run<A>(
    name: &str,
    app: A,
    config: ListenerConfig,
    address: String,
    fd: RawFd,
    stop: watch::Receiver<bool>,
) -> JoinHandle<()>
where
    A: ServerApp + Send + Sync + 'static,
{
    let mut service = Service::new(name.to_owned(), app);
    let buffers = L4BufferSettings::default().read(READ_BUFFER);
    service.add_listener(config.l4_buffer(buffers));
    let mut table = Fds::new();
    table.add(address, fd);
    let table: ListenFds = Arc::new(table.into());
    tokio::spawn(async move { Start::start_service(&mut service, Some(table), stop, 1).await })
}
