"""An agent that does what no SDK does: it says nothing, or says it wrong.

Serves JSON-RPC and HTTP+JSON of both versions below `/ROLE`, with a card of its own for each role, and
gRPC. Prints one line of JSON with its ports, then serves until it is stopped. Roles:

* `slow` never answers;
* `limited` answers everything as the gateway answers who asks too often;
* `malformed` answers as the message's text says, see MALFORMED.
"""

import asyncio
import json

import grpc.aio
import uvicorn

from ledger import Counting, Ledger, listen

HTML = b"<html><body><h1>Internal Server Error</h1></body></html>"
# What a message's text asks for: status, media type, and a body in which ID is the request's id.
MALFORMED = {
    "a list": (200, "application/json", b'[{"kind":"task"}]'),
    "a string": (200, "application/json", b'"boom"'),
    "neither result nor error": (200, "application/json", b'{"jsonrpc":"2.0","id":ID}'),
    "error is a string": (200, "application/json", b'{"jsonrpc":"2.0","id":ID,"error":"boom"}'),
    "error without a message": (
        200,
        "application/json",
        b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000}}',
    ),
    "an event that is not JSON": (200, "text/event-stream", b"data: boom\n\n"),
    "HTML": (500, "text/html", HTML),
}
# The gateway's answers to a caller over its limit: src/a2a/fault.rs, RateLimited.
INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "RATE_LIMITED",
    "domain": "portcullis",
    "metadata": {"code": "rate_limited"},
}
TOO_MANY = "too many requests; try again later"


def limited(rest, old, identity):
    if rest and old:
        return {"type": "RateLimitedError", "code": -32603, "message": TOO_MANY}
    if rest:
        error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": TOO_MANY}
        return {"error": {**error, "details": [INFO]}}
    error = {"code": -32603, "message": TOO_MANY} | ({} if old else {"data": [INFO]})
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def card(base, rpc_ports, role):
    places = [
        ("JSONRPC", f"{base}/{role}/rpc"),
        ("HTTP+JSON", f"{base}/{role}/rest"),
        ("GRPC", f"127.0.0.1:{rpc_ports[role == 'limited']}"),
    ]
    interfaces = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version}
        for binding, url in places
        for version in ("1.0", "0.3")
    ]
    return {
        "name": "Stub",
        "description": "Says it wrong",
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "url": places[0][1],
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": name} for name, url in places],
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "hello", "name": "hello", "description": "Says hello", "tags": ["a"]}],
    }


class Stub:
    """The HTTP side."""

    def __init__(self, base, rpc_ports, ledger):
        self.base, self.rpc_ports, self.ledger = base, rpc_ports, ledger

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        _, role, *rest = scope["path"].split("/")
        rest = "/".join(rest)
        if role == "counters":
            counters = {"requests": self.ledger.requests, "executions": 0, "cards": 0}
            await self.answer(send, 200, "application/json", json.dumps(counters).encode())
        elif rest.startswith(".well-known/"):
            said = json.dumps(card(self.base, self.rpc_ports, role))
            await self.answer(send, 200, "application/json", said.encode())
        elif role == "slow":
            # Until the other side has left.
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            await self.wrong(send, role, rest, body)

    async def wrong(self, send, role, rest, body):
        try:
            said = json.loads(body)
        except ValueError:
            said = {}
        if role == "limited":
            is_rest = rest.startswith("rest")
            old = rest.startswith("rest/v1/") or "/" in str(said.get("method", ""))
            answer = limited(is_rest, old, said.get("id"))
            more = [(b"retry-after", b"1")]
            await self.answer(send, 429, "application/json", json.dumps(answer).encode(), more)
            return
        for text, (status, media, answer) in MALFORMED.items():
            if f'"{text}"'.encode() in body:
                answer = answer.replace(b"ID", json.dumps(said.get("id")).encode())
                await self.answer(send, status, media, answer)
                return
        await self.answer(send, 404, "text/plain", b"no such role")

    async def answer(self, send, status, media, body, more=()):
        headers = [(b"content-type", media.encode()), *more]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Rpc(grpc.GenericRpcHandler):
    """The gRPC side: `slow`, or `limited`."""

    def __init__(self, ledger, limited):
        self.ledger, self.limited = ledger, limited

    def service(self, details):
        async def unary(_request, context):
            self.ledger.requests += 1
            if self.limited:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, TOO_MANY)
            await asyncio.Event().wait()

        async def stream(request, context):
            await unary(request, context)
            yield b""

        if details.method.endswith(("SendStreamingMessage", "SubscribeToTask", "TaskSubscription")):
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)


async def serve(ledger, limited):
    """A gRPC server and its port."""
    server = grpc.aio.server(handlers=[Rpc(ledger, limited)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def main():
    ledger = Ledger()
    listener, port = listen()
    slow, slow_port = await serve(ledger, limited=False)
    limited_server, limited_port = await serve(ledger, limited=True)
    stub = Stub(f"http://127.0.0.1:{port}", (slow_port, limited_port), ledger)
    app = Counting(stub, ledger, calls=("/slow/r", "/malformed/r", "/limited/r"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    print(json.dumps({"port": port, "grpc": slow_port}), flush=True)
    await server.serve(sockets=[listener])
    await slow.stop(0)
    await limited_server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
