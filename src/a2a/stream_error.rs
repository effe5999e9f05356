//! Our own last word in an event stream that has begun.

use super::fault::Fault;
use super::operation::{Binding, Dialect, Version};
use super::render;
use bytes::{BufMut, Bytes, BytesMut};

/// Says `fault` as the last event of a stream.
///
/// The event is named `error`, as the servers of 1.0 do and as REST clients of both versions need
/// in order to look at it; clients of JSON-RPC 0.3 take a typed error only from an event without a
/// name (`a2a-protocol.md` f). Streams of gRPC end with trailers instead.
pub fn render_event(fault: Fault, dialect: Dialect, rpc_id: Option<&str>) -> Bytes {
    let name: &[u8] = match (dialect.binding, dialect.version) {
        (Binding::JsonRpc, Version::V0_3) => b"",
        (Binding::JsonRpc, Version::V1_0) | (Binding::Rest, _) => b"event: error\n",
        (Binding::Grpc, _) => return Bytes::new(),
    };
    let answer = render(fault, Some(dialect), rpc_id);
    let mut event = BytesMut::with_capacity(name.len() + answer.body.len() + 8);
    event.put_slice(name);
    event.put_slice(b"data: ");
    event.put_slice(&answer.body);
    event.put_slice(b"\n\n");
    event.freeze()
}
