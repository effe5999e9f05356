"""The client of a2a-sdk 0.3.26, told what to do line by line.

Orders and answers are those of client_check.py, in version 0.3 alone: its client has no `list`,
`push-list` and `push-delete`.
"""

import asyncio
import json
import sys
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

# Plain HTTP on loopback: without this every client would read the machine's certificates.
PLAIN = {"timeout": 20, "trust_env": False, "verify": False}


class Answer:
    """What a call's events said, gathered."""

    def __init__(self):
        self.kinds, self.texts = [], []
        self.task = self.context = self.state = None

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


async def watch(client, task):
    """Cancels the task once it is watched; gives its last state as the watcher saw it."""
    seen, canceling = Answer(), None
    async for event in client.resubscribe(TaskIdParams(id=task)):
        seen.of_event(event)
        if canceling is None:
            canceling = asyncio.create_task(client.cancel_task(TaskIdParams(id=task)))
    if canceling:
        await canceling
    return seen.state


async def send(order, client, answer):
    watching = None
    async for event in client.send_message(message(order)):
        answer.of_event(event)
        if order.get("watch") and answer.state == "TASK_STATE_WORKING" and not watching:
            watching = asyncio.create_task(watch(client, answer.task))
    if order.get("watch"):
        answer.watched = await watching if watching else None


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
    answer.text = " ".join(text for text in answer.texts if text)
    del answer.texts
    return vars(answer)


async def discover(base):
    async with httpx.AsyncClient(**PLAIN) as http:
        answer = await http.get(base.rstrip("/") + "/.well-known/agent-card.json")
        answer.raise_for_status()
        return await A2ACardResolver(http, base).get_agent_card(), answer.text


async def obey(order):
    if order["do"] == "card":
        card, raw = await discover(order["base"])
        return {"raw": raw, "urls": [card.url, *(i.url for i in card.additional_interfaces or [])]}
    posted = []

    async def note(request):
        posted.append(str(request.url))

    order.setdefault("binding", "JSONRPC")
    headers = {"Authorization": f"Bearer {order['token']}"} if order.get("token") else {}
    try:
        card, _ = await discover(order["base"])
        offered = {i.transport: i.url for i in card.additional_interfaces or []}
        offered[card.preferred_transport] = card.url
        if order["binding"] not in offered:
            raise RuntimeError(f"the card offers no {order['binding']} 0.3")
        if order["binding"] == "GRPC":
            posted.append(offered["GRPC"])
        async with httpx.AsyncClient(
            headers=headers, event_hooks={"request": [note]}, **PLAIN
        ) as http:
            answer = await asyncio.wait_for(call(order, card, http), 20)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        answer = {"error": {"type": type(error).__name__, "text": str(error)}}
    return {**answer, "posted": posted}


def main():
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(runner.run(obey(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
