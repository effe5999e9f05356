"""What an agent under test keeps for the suite: counters, and a log of what it was told to act on.

`GET /counters` tells how much arrived: `requests` are calls in any binding, `executions` are runs of
the executor, `cards` are card fetches. `GET /executions?after=N` gives `requests` as well, and the
`entries` after the first N of the log, which is `noted` entries long: one for every operation as the
SDK's parser understood it, before any lookup, and one (`execute`, `cancel`) for every run of the
executor.
"""

import json
import socket

from starlette.responses import JSONResponse, Response
from starlette.routing import Route


class Ledger:
    """What this agent saw."""

    def __init__(self):
        self.requests = self.executions = self.cards = 0
        self.log = []

    def note(self, operation, **what):
        """One entry; absent and empty values are left out, since parsers differ in that alone."""
        self.log.append({"op": operation, **{key: value for key, value in what.items() if value}})

    def routes(self):
        """The two pages."""

        async def counters(_request):
            return JSONResponse(
                {"requests": self.requests, "executions": self.executions, "cards": self.cards}
            )

        async def executions(request):
            entries = self.log[int(request.query_params.get("after", 0)) :]
            page = {"requests": self.requests, "noted": len(self.log), "entries": entries}
            # In ASCII: an id may hold what UTF-8 cannot.
            return Response(json.dumps(page), media_type="application/json")

        return [Route("/counters", counters), Route("/executions", executions)]


class Counting:
    """Counts HTTP requests before the SDK sees them; `calls` begins the paths of both bindings."""

    def __init__(self, app, ledger, calls="/a2a/"):
        self.app, self.ledger, self.calls = app, ledger, calls

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            if scope["path"].startswith(self.calls):
                self.ledger.requests += 1
            elif scope["path"].startswith("/.well-known/"):
                self.ledger.cards += 1
        await self.app(scope, receive, send)


def watched(handler, names, describe, ledger):
    """A subclass of the SDK's request handler that logs every call of the methods in `names`.

    `names` maps a method to its operation, `describe` gives what the parameters name.
    """

    def method(name, operation):
        inner = getattr(handler, name)

        def call(self, params, *rest, **named):
            ledger.note(operation, **describe(params))
            return inner(self, params, *rest, **named)

        return call

    methods = {name: method(name, operation) for name, operation in names.items()}
    return type(f"Watched{handler.__name__}", (handler,), methods)


def named(message, push):
    """The names in a message and in the webhook of its configuration."""
    return {
        "task": message.get("taskId"),
        "context": message.get("contextId"),
        "references": message.get("referenceTaskIds"),
        "skill": message.get("metadata", {}).get("skillId"),
        "webhook": push.get("url"),
    }


def listen():
    """A listening socket on a free loopback port, and that port."""
    # asyncio turns Nagle's algorithm off only where the protocol is named.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener, listener.getsockname()[1]
