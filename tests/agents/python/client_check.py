"""The official client, told what to do line by line.

Reads one JSON object per line and answers each with one line of JSON:

    {"do": "card", "base": URL}
    {"do": "send", "base": URL, "binding": "JSONRPC", "version": "1.0", "streaming": false,
     "text": "hi", "token": TOKEN}
    {"do": "get" | "cancel" | "subscribe", ..., "task": ID}
    {"do": "list", ..., "context": ID}
    {"do": "push-create", ..., "task": ID, "url": URL}
    {"do": "push-get" | "push-list" | "push-delete", ..., "task": ID, "config": ID}
    {"do": "extended", ...}

`token`, and for `send` also `task`, `context` and `url` (a webhook), may be left out. With `"watch":
true` a streaming `send` waits until its task is at work, then watches it with a second stream, cancels
it when that has begun, and reads both to the end, which only works when events come as they happen;
`watched` is the last state that the second stream told. Every time the agent is found anew by the
card below `base`, which is fetched as a stranger would. An answer has `posted` (the URLs that were
called; for gRPC the target) and either what came back or `error`, with the exception's type and text.
"""

import json

import grpc.aio
import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.card_resolver import A2ACardResolver, parse_agent_card
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)

from orders import PLAIN, Gathered, answered, follow, obey_all, raw_card, until_canceled


async def discover(order):
    """The card as a client sees it that knows the order's version and binding alone."""
    base, version, binding = order["base"], order["version"], order["binding"]
    if version == "0.3":
        # A 0.3 client reads the 0.3 members only; the SDK's own parser makes them a card of today.
        old = {k: v for k, v in json.loads(await raw_card(base)).items() if k != "supportedInterfaces"}
        card = parse_agent_card(old)
    else:
        async with httpx.AsyncClient(**PLAIN) as http:
            card = await A2ACardResolver(http, base).get_agent_card()
    known = [
        i
        for i in card.supported_interfaces
        if i.protocol_version.startswith(version) and i.protocol_binding == binding
    ]
    if not known:
        raise RuntimeError(f"the card offers no {binding} {version}")
    narrowed = type(card)()
    narrowed.CopyFrom(card)
    del narrowed.supported_interfaces[:]
    narrowed.supported_interfaces.extend(known)
    return narrowed, known[0].url


class Answer(Gathered):
    """What this SDK's events say."""

    def of_task(self, task):
        self.task, self.context = task.id, task.context_id
        self.state = TaskState.Name(task.status.state)

    def of_event(self, event):
        kind = event.WhichOneof("payload")
        self.kinds.append(kind)
        self.texts.append(get_stream_response_text(event))
        value = getattr(event, kind)
        if kind == "task":
            self.of_task(value)
        elif kind in ("status_update", "artifact_update"):
            self.task, self.context = value.task_id, value.context_id
            if kind == "status_update":
                self.state = TaskState.Name(value.status.state)


def request(order):
    names = {"task": "task_id", "context": "context_id"}
    ids = {name: order[key] for key, name in names.items() if order.get(key)}
    message = new_text_message(order.get("text", "hi"), role=Role.ROLE_USER, **ids)
    asked = SendMessageRequest(message=message)
    if order.get("url"):
        asked.configuration.task_push_notification_config.url = order["url"]
    return asked


async def send(order, client, calling, answer):
    def cancel(task):
        return client.cancel_task(CancelTaskRequest(id=task), context=calling)

    def watch(task):
        events = client.subscribe(SubscribeToTaskRequest(id=task), context=calling)
        return until_canceled(events, Answer(), lambda: cancel(task))

    await follow(order, client.send_message(request(order), context=calling), answer, watch)


async def push(order, client, calling):
    """Works with webhooks; gives what the agent tells of them."""
    task, config = order["task"], order.get("config")
    match order["do"]:
        case "push-create":
            asked = TaskPushNotificationConfig(task_id=task, url=order["url"], id="hook")
            made = [await client.create_task_push_notification_config(asked, context=calling)]
        case "push-get":
            asked = GetTaskPushNotificationConfigRequest(task_id=task, id=config)
            made = [await client.get_task_push_notification_config(asked, context=calling)]
        case "push-list":
            asked = ListTaskPushNotificationConfigsRequest(task_id=task)
            listed = await client.list_task_push_notification_configs(asked, context=calling)
            made = listed.configs
        case _:
            asked = DeleteTaskPushNotificationConfigRequest(task_id=task, id=config)
            await client.delete_task_push_notification_config(asked, context=calling)
            made = []
    return [{"task": c.task_id, "id": c.id, "url": c.url} for c in made]


async def call(order, card, http):
    """Does what the order says with the official client."""
    config = ClientConfig(
        streaming=bool(order.get("streaming")),
        httpx_client=http,
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_protocol_bindings=[order["binding"]],
    )
    client = ClientFactory(config).create(card)
    bearer = {"Authorization": f"Bearer {order['token']}"} if order.get("token") else {}
    calling = ClientCallContext(service_parameters=bearer, timeout=20)
    answer = Answer()
    match order["do"]:
        case "send":
            await send(order, client, calling, answer)
        case "get":
            answer.of_task(await client.get_task(GetTaskRequest(id=order["task"]), context=calling))
        case "list":
            asked = ListTasksRequest(context_id=order["context"])
            listed = await client.list_tasks(asked, context=calling)
            answer.told = [{"task": t.id, "context": t.context_id} for t in listed.tasks]
        case "cancel":
            asked = CancelTaskRequest(id=order["task"])
            answer.of_task(await client.cancel_task(asked, context=calling))
        case "subscribe":
            asked = SubscribeToTaskRequest(id=order["task"])
            async for event in client.subscribe(asked, context=calling):
                answer.of_event(event)
        case "extended":
            asked = GetExtendedAgentCardRequest()
            told = await client.get_extended_agent_card(asked, context=calling)
            answer.told = [{"skill": skill.id} for skill in told.skills]
            answer.urls = [i.url for i in told.supported_interfaces]
        case other if other.startswith("push-"):
            answer.told = await push(order, client, calling)
        case other:
            raise ValueError(f"unknown order `{other}`")
    await client.close()
    return answer.gathered()


async def obey(order):
    if order["do"] == "card":
        async with httpx.AsyncClient(**PLAIN) as http:
            card = await A2ACardResolver(http, order["base"]).get_agent_card()
        urls = [i.url for i in card.supported_interfaces]
        return {"raw": await raw_card(order["base"]), "urls": urls}
    return await answered(order, discover, call)


if __name__ == "__main__":
    obey_all(obey)
