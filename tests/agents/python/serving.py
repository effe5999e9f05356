"""How the agents made with an SDK listen: HTTP and gRPC on free ports of loopback, and both counted."""

import json

import grpc.aio
import uvicorn
from starlette.applications import Starlette

from ledger import Counting, listen


class CountingCalls(grpc.aio.ServerInterceptor):
    """Counts gRPC calls before the SDK sees them."""

    def __init__(self, ledger):
        self.ledger = ledger

    async def intercept_service(self, continuation, details):
        self.ledger.requests += 1
        return await continuation(details)


class Serving:
    """Both sockets; `rpc` takes servicers. `guarded` wraps the application, and `interceptors` come
    before the counting."""

    def __init__(self, ledger, guarded=lambda app: app, interceptors=()):
        self.ledger, self.guarded = ledger, guarded
        self.listener, self.port = listen()
        self.rpc = grpc.aio.server(interceptors=[*interceptors, CountingCalls(ledger)])
        self.rpc_port = self.rpc.add_insecure_port("127.0.0.1:0")

    def places(self):
        """Every binding and its address."""
        base = f"http://127.0.0.1:{self.port}/a2a"
        return [
            ("JSONRPC", f"{base}/jsonrpc"),
            ("HTTP+JSON", f"{base}/rest"),
            ("GRPC", f"127.0.0.1:{self.rpc_port}"),
        ]

    async def run(self, routes):
        """Prints one line of JSON with the ports, then serves until it is stopped."""
        app = Counting(Starlette(routes=[*self.ledger.routes(), *routes]), self.ledger)
        server = uvicorn.Server(uvicorn.Config(self.guarded(app), log_level="warning"))
        await self.rpc.start()
        print(json.dumps({"port": self.port, "grpc": self.rpc_port}), flush=True)
        await server.serve(sockets=[self.listener])
        await self.rpc.stop(0)
