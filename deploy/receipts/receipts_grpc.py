"""Receipts for gRPC agents made with grpc.aio; see receipts.py.

    server = grpc.aio.server(interceptors=[ReceiptsInterceptor(gate)])

It comes first among the interceptors. One `gate` may serve both, so that both write one log.
"""

import inspect

import grpc
import grpc.aio

from receipts import HEADER, Refused

CODES = {
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}


class ReceiptsInterceptor(grpc.aio.ServerInterceptor):
    """`public` are whole method names that need no assertion, such as those of health checks."""

    def __init__(self, gate, public=()):
        self.gate, self.public = gate, frozenset(public)

    async def intercept_service(self, continuation, details):
        handler = await continuation(details)
        if handler is None or details.method in self.public:
            return handler
        tokens = [value for name, value in details.invocation_metadata if name == HEADER]
        read = handler.request_deserializer or (lambda raw: raw)

        async def admit(raw, context):
            # What was asserted is the frame: no compression, four bytes of length, the message.
            frame = b"\0" + len(raw).to_bytes(4, "big") + raw
            try:
                if len(raw) > self.gate.max_body:
                    raise Refused(413, "the message is too large")
                await self.gate.admit("POST", details.method, details.method, frame, tokens)
            except Refused as refused:
                await context.abort(CODES[refused.status], refused.why)

        async def unary(raw, context):
            await admit(raw, context)
            reply = handler.unary_unary(read(raw), context)
            return await reply if inspect.isawaitable(reply) else reply

        async def streaming(raw, context):
            await admit(raw, context)
            replies = handler.unary_stream(read(raw), context)
            if inspect.isawaitable(replies):
                # It writes by `context.write`.
                await replies
                return
            async for reply in replies:
                yield reply

        async def refuse(_requests, context):
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "A2A has no streams of requests")

        write = handler.response_serializer
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(refuse, response_serializer=write)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(streaming, response_serializer=write)
        return grpc.unary_unary_rpc_method_handler(unary, response_serializer=write)
