//! A TLS connection to an agent into which we can look without taking anything out.
//!
//! Pingora's own cannot, so an agent's early answer to a large body would be seen only after the
//! write has been stuck for its whole bound.

use async_trait::async_trait;
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::{SslDigest, TlsRef, TlsStream};
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// TLS over TCP, with what was looked at and not yet read.
#[derive(Debug)]
pub struct Secured {
    inner: TlsStream<Tcp>,
    /// Looked at, and still to be read: never more than one look's worth.
    ahead: Vec<u8>,
}

impl Secured {
    /// Around a connection whose handshake is done.
    pub fn new(inner: TlsStream<Tcp>) -> Secured {
        Secured {
            inner,
            ahead: Vec::new(),
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let many = self.ahead.len().min(buffer.remaining());
        for byte in self.ahead.drain(..many) {
            buffer.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[async_trait]
impl Peek for Secured {
    async fn try_peek(&mut self, bytes: &mut [u8]) -> io::Result<bool> {
        self.read_exact(bytes).await?;
        self.ahead.splice(..0, bytes.iter().copied());
        Ok(true)
    }
}

#[async_trait]
impl Shutdown for Secured {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut self.inner).await;
    }
}

impl UniqueID for Secured {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for Secured {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl GetTimingDigest for Secured {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        GetTimingDigest::get_timing_digest(&self.inner)
    }
}

impl GetProxyDigest for Secured {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        GetProxyDigest::get_proxy_digest(&self.inner)
    }
}

impl GetSocketDigest for Secured {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        GetSocketDigest::get_socket_digest(&self.inner)
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        GetSocketDigest::set_socket_digest(&mut self.inner, digest);
    }
}
