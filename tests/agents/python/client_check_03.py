"""The client of a2a-sdk 0.3.26, told what to do line by line.

Orders and answers are those of client_check.py, in version 0.3 alone: its client has no `list`,
`push-list` and `push-delete`.
"""

import uuid

import grpc.aio
import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

from orders import PLAIN, Gathered, answered, follow, obey_all, raw_card, until_canceled

class Answer(Gathered):
    """What this SDK's events say."""

    def of_task(self, task):
        self.task, self.context = task.id, task.context_id
        self.state = "TASK_STATE_" + task.status.state.value.upper().replace("-", "_")

    def of_artifacts(self, artifacts):
        for artifact in artifacts or []:
            self.texts += [p.root.text for p in artifact.parts if p.root.kind == "text"]

    def of_event(self, event):
        """A message, or the task as the client keeps it beside what changed it."""
        if isinstance(event, Message):
            self.kinds.append("message")
            return
        task, update = event
        self.of_task(task)
        self.kinds.append(update.kind.replace("-", "_") if update else "task")
        if update is None:
            self.of_artifacts(task.artifacts)
        elif update.kind == "artifact-update":
            self.of_artifacts([update.artifact])


def with_token(details, token):
    metadata = grpc.aio.Metadata(*(details.metadata or ()))
    metadata.add("authorization", f"Bearer {token}")
    return details._replace(metadata=metadata)


class UnaryToken(grpc.aio.UnaryUnaryClientInterceptor):
    """Sends the token with every unary call: the SDK's own gRPC transport cannot."""

    def __init__(self, token):
        self.token = token

    async def intercept_unary_unary(self, continuation, details, request):
        return await continuation(with_token(details, self.token), request)


class StreamToken(grpc.aio.UnaryStreamClientInterceptor):
    """The same for streams: a channel takes an interceptor for one kind of call alone."""

    def __init__(self, token):
        self.token = token

    async def intercept_unary_stream(self, continuation, details, request):
        return await continuation(with_token(details, self.token), request)


def channel(token):
    kinds = [UnaryToken(token), StreamToken(token)] if token else []
    return lambda url: grpc.aio.insecure_channel(url, interceptors=kinds)


def message(order):
    names = {"task": "task_id", "context": "context_id"}
    ids = {name: order[key] for key, name in names.items() if order.get(key)}
    part = Part(root=TextPart(text=order.get("text", "hi")))
    return Message(role=Role.user, parts=[part], message_id=str(uuid.uuid4()), **ids)


async def send(order, client, answer):
    def watch(task):
        named = TaskIdParams(id=task)
        return until_canceled(client.resubscribe(named), Answer(), lambda: client.cancel_task(named))

    await follow(order, client.send_message(message(order)), answer, watch)


async def push(order, client):
    task = order["task"]
    if order["do"] == "push-create":
        hook = PushNotificationConfig(url=order["url"], id="hook")
        asked = TaskPushNotificationConfig(task_id=task, push_notification_config=hook)
        made = await client.set_task_callback(asked)
    else:
        asked = GetTaskPushNotificationConfigParams(
            id=task, push_notification_config_id=order["config"]
        )
        made = await client.get_task_callback(asked)
    config = made.push_notification_config
    return [{"task": made.task_id, "id": config.id, "url": config.url}]


async def call(order, card, http):
    """Does what the order says with the official client."""
    config = ClientConfig(
        streaming=bool(order.get("streaming")),
        httpx_client=http,
        grpc_channel_factory=channel(order.get("token")),
        supported_transports=[order["binding"]],
    )
    if order["do"] == "send" and order.get("url"):
        config.push_notification_configs.append(PushNotificationConfig(url=order["url"]))
    client = ClientFactory(config).create(card)
    answer = Answer()
    match order["do"]:
        case "send":
            await send(order, client, answer)
        case "get":
            answer.of_task(await client.get_task(TaskQueryParams(id=order["task"])))
        case "cancel":
            answer.of_task(await client.cancel_task(TaskIdParams(id=order["task"])))
        case "subscribe":
            async for event in client.resubscribe(TaskIdParams(id=order["task"])):
                answer.of_event(event)
        case "extended":
            told = await client.get_card()
            answer.told = [{"skill": skill.id} for skill in told.skills]
            answer.urls = [told.url, *(i.url for i in told.additional_interfaces or [])]
        case "push-create" | "push-get":
            answer.told = await push(order, client)
        case other:
            raise ValueError(f"unknown order `{other}`")
    await client.close()
    return answer.gathered()


async def read_card(base):
    async with httpx.AsyncClient(**PLAIN) as http:
        return await A2ACardResolver(http, base).get_agent_card()


async def discover(order):
    card = await read_card(order["base"])
    offered = {i.transport: i.url for i in card.additional_interfaces or []}
    offered[card.preferred_transport] = card.url
    if order["binding"] not in offered:
        raise RuntimeError(f"the card offers no {order['binding']} 0.3")
    return card, offered.get("GRPC")


async def obey(order):
    if order["do"] == "card":
        card = await read_card(order["base"])
        urls = [card.url, *(i.url for i in card.additional_interfaces or [])]
        return {"raw": await raw_card(order["base"]), "urls": urls}
    headers = {"Authorization": f"Bearer {order['token']}"} if order.get("token") else {}
    return await answered(order, discover, call, headers)


if __name__ == "__main__":
    obey_all(obey)
