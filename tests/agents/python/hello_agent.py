"""A hello-world agent made with the official a2a-sdk, with counters of its own.

Serves JSON-RPC in 1.0 and 0.3 on one URL, and its card in both shapes. Prints one line of JSON
with its port, then serves until it is stopped. `GET /counters` tells what arrived: `requests` are
HTTP requests at the JSON-RPC URL, `executions` are runs of the executor, `cards` are card fetches.
"""

import argparse
import asyncio
import json
import socket

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

GREETING = "hello from the python agent"
RPC_PATH = "/a2a/jsonrpc"


class Counters:
    """What this agent saw."""

    def __init__(self):
        self.requests = 0
        self.executions = 0
        self.cards = 0


class Hello(AgentExecutor):
    """Greets; a message that starts with `ask` leaves its task waiting for input, and one that
    starts with `wait` works until it is canceled."""

    def __init__(self, counters):
        self.counters = counters

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.counters.executions += 1
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if context.get_user_input().startswith("wait"):
            # The handler ends this when the task is canceled.
            await asyncio.Event().wait()
        if context.get_user_input().startswith("ask"):
            await updater.requires_input()
            return
        await updater.add_artifact([new_text_part(GREETING)], name="greeting", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Counting:
    """Counts requests before the SDK sees them."""

    def __init__(self, app, counters):
        self.app = app
        self.counters = counters

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            if scope["path"] == RPC_PATH:
                self.counters.requests += 1
            elif scope["path"].startswith("/.well-known/"):
                self.counters.cards += 1
        await self.app(scope, receive, send)


def card(base):
    """Both versions at one address; the SDK adds the 0.3 members."""
    return AgentCard(
        name="Hello",
        description="Says hello",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(
                url=base + RPC_PATH, protocol_binding="JSONRPC", protocol_version=version
            )
            for version in ("1.0", "0.3")
        ],
        skills=[AgentSkill(id="hello", name="hello", description="Says hello", tags=["hello"])],
    )


def build(base, counters):
    """The application and its counters' page."""
    agent_card = card(base)
    handler = DefaultRequestHandler(
        agent_executor=Hello(counters), task_store=InMemoryTaskStore(), agent_card=agent_card
    )

    async def page(_request):
        return JSONResponse(vars(counters))

    routes = [
        *create_agent_card_routes(agent_card),
        *create_jsonrpc_routes(handler, RPC_PATH, enable_v0_3_compat=True),
        Route("/counters", page),
    ]
    return Counting(Starlette(routes=routes), counters)


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", parser.parse_args().port))
    listener.listen(128)
    port = listener.getsockname()[1]
    app = build(f"http://127.0.0.1:{port}", Counters())
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(json.dumps({"port": port, "rpc": RPC_PATH}), flush=True)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
