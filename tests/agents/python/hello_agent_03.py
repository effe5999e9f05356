"""A hello-world agent made with a2a-sdk 0.3.26, the last that knows 0.3 alone.

Serves JSON-RPC, HTTP+JSON and gRPC in 0.3. Prints one line of JSON with its ports, then serves until
it is stopped. What it keeps is told by ledger.py; operations have their 1.0 names there.
"""

import asyncio

from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import (
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TextPart
from a2a.utils import new_task
from starlette.routing import Mount

from ledger import Ledger, named, watched
from serving import Serving

GREETING = "hello from the old python agent"
OPERATIONS = {
    "on_message_send": "SendMessage",
    "on_message_send_stream": "SendStreamingMessage",
    "on_get_task": "GetTask",
    "on_cancel_task": "CancelTask",
    "on_resubscribe_to_task": "SubscribeToTask",
    "on_set_task_push_notification_config": "CreateTaskPushNotificationConfig",
    "on_get_task_push_notification_config": "GetTaskPushNotificationConfig",
    "on_list_task_push_notification_config": "ListTaskPushNotificationConfigs",
    "on_delete_task_push_notification_config": "DeleteTaskPushNotificationConfig",
}


def describe(params):
    """The names in the parameters of a 0.3 request."""
    said = params.model_dump(mode="json", by_alias=True, exclude_none=True)
    message = said.get("message")
    if message is None:
        push = said.get("pushNotificationConfig", {})
        return {"task": said.get("taskId") or said.get("id"), "webhook": push.get("url")}
    push = said.get("configuration", {}).get("pushNotificationConfig", {})
    return named(message, push)


class Hello(AgentExecutor):
    """Greets; `ask` and `wait` do what they do in hello_agent.py. While it waits it says so again
    and again: in this SDK somebody who subscribes hears nothing before the next event."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.waiting = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.ledger.executions += 1
        self.ledger.note("execute", task=context.task_id, context=context.context_id)
        if context.current_task is None:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if context.get_user_input().startswith("wait"):
            self.waiting[context.task_id] = event_queue
            while True:
                await asyncio.sleep(0.05)
                await updater.start_work()
        if context.get_user_input().startswith("ask"):
            await updater.requires_input(final=True)
            return
        part = Part(root=TextPart(text=GREETING))
        await updater.add_artifact([part], name="greeting", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.ledger.note("cancel", task=context.task_id, context=context.context_id)
        # What goes into the queue that this SDK passes in, no other stream hears.
        queue = self.waiting.pop(context.task_id, event_queue)
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card(places):
    return AgentCard(
        name="Hello",
        description="Says hello",
        version="1.0.0",
        url=places[0][1],
        preferred_transport="JSONRPC",
        protocol_version="0.3.0",
        additional_interfaces=[
            AgentInterface(url=url, transport=transport) for transport, url in places
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        supports_authenticated_extended_card=True,
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="hello", name="hello", description="Says hello", tags=["hello"])],
    )


async def main():
    ledger = Ledger()
    serving = Serving(ledger)
    agent_card = card(serving.places())
    # No sender: what a webhook would get stays here.
    handler = watched(DefaultRequestHandler, OPERATIONS, describe, ledger)(
        agent_executor=Hello(ledger),
        task_store=InMemoryTaskStore(),
        push_config_store=InMemoryPushNotificationConfigStore(),
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(agent_card, handler), serving.rpc)
    jsonrpc = A2AStarletteApplication(agent_card, handler, extended_agent_card=agent_card)
    rest = A2ARESTFastAPIApplication(agent_card, handler, extended_agent_card=agent_card)
    routes = [
        *jsonrpc.routes(rpc_url="/a2a/jsonrpc"),
        Mount("/a2a/rest", rest.build()),
    ]
    await serving.run(routes)


if __name__ == "__main__":
    asyncio.run(main())
