"""A hello-world agent made with the official a2a-sdk 1.x, with counters and a log of its own.

Serves JSON-RPC, HTTP+JSON and gRPC, each in 1.0 and 0.3, and its card in both shapes. Prints one
line of JSON with its ports, then serves until it is stopped. What it keeps is told by ledger.py.
With `--receipts GATEWAY AGENT LOG [KEYS MODE]` it takes calls with the gateway's assertion only, and writes
receipts, by deploy/receipts.
"""

import asyncio
import sys
from pathlib import Path

from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import (
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, a2a_pb2_grpc
from google.protobuf.json_format import MessageToDict

from ledger import Ledger, named, watched
from serving import Serving

GREETING = "hello from the python agent"
OPERATIONS = {
    "on_message_send": "SendMessage",
    "on_message_send_stream": "SendStreamingMessage",
    "on_get_task": "GetTask",
    "on_list_tasks": "ListTasks",
    "on_cancel_task": "CancelTask",
    "on_subscribe_to_task": "SubscribeToTask",
    "on_create_task_push_notification_config": "CreateTaskPushNotificationConfig",
    "on_get_task_push_notification_config": "GetTaskPushNotificationConfig",
    "on_list_task_push_notification_configs": "ListTaskPushNotificationConfigs",
    "on_delete_task_push_notification_config": "DeleteTaskPushNotificationConfig",
    "on_get_extended_agent_card": "GetExtendedAgentCard",
}


def describe(params):
    """The names in a 1.0 request message."""
    said = MessageToDict(params)
    message = said.get("message")
    if message is None:
        task = said.get("taskId") or said.get("id")
        return {"task": task, "context": said.get("contextId"), "webhook": said.get("url")}
    push = said.get("configuration", {}).get("taskPushNotificationConfig", {})
    return {**named(message, push), "tenant": said.get("tenant")}


class Hello(AgentExecutor):
    """Greets; a message that starts with `ask` leaves its task waiting for input, and one that
    starts with `wait` works until it is canceled."""

    def __init__(self, ledger):
        self.ledger = ledger

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.ledger.executions += 1
        self.ledger.note("execute", task=context.task_id, context=context.context_id)
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
        self.ledger.note("cancel", task=context.task_id, context=context.context_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(places):
    """Every binding in both versions at one address each; the SDK adds the 0.3 members."""
    return AgentCard(
        name="Hello",
        description="Says hello",
        version="1.0.0",
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=True
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for binding, url in places
            for version in ("1.0", "0.3")
        ],
        skills=[AgentSkill(id="hello", name="hello", description="Says hello", tags=["hello"])],
    )


def guards(arguments):
    """What wraps the application and what comes before other interceptors."""
    if not arguments:
        return (lambda app: app), []
    sys.path.insert(0, str(Path(__file__).parents[3] / "deploy" / "receipts"))
    from receipts import WELL_KNOWN, Gate, Receipts
    from receipts_grpc import ReceiptsInterceptor

    gate = Gate(*arguments)
    public = (*WELL_KNOWN, "/counters", "/executions")
    return (lambda app: Receipts(app, gate, public)), [ReceiptsInterceptor(gate)]


async def main():
    ledger = Ledger()
    serving = Serving(ledger, *guards(sys.argv[2:]))
    agent_card = card(serving.places())
    # No sender: what a webhook would get stays here.
    handler = watched(DefaultRequestHandler, OPERATIONS, describe, ledger)(
        agent_executor=Hello(ledger),
        task_store=InMemoryTaskStore(),
        agent_card=agent_card,
        push_config_store=InMemoryPushNotificationConfigStore(),
        extended_agent_card=agent_card,
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), serving.rpc)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), serving.rpc)
    routes = [
        *create_agent_card_routes(agent_card),
        *create_jsonrpc_routes(handler, "/a2a/jsonrpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/a2a/rest"),
    ]
    await serving.run(routes)


if __name__ == "__main__":
    asyncio.run(main())
