"""The official client, told what to do line by line.

Reads one JSON object per line and answers each with one line of JSON:

    {"do": "card", "base": URL}
    {"do": "send", "base": URL, "version": "1.0", "streaming": false, "text": "hi", "token": TOKEN}
    {"do": "get" | "cancel" | "subscribe", "base": URL, "version": "0.3", "task": ID, "token": TOKEN}

`token`, and for `send` also `task` and `context`, may be left out. With `"watch": true` a streaming
`send` waits until its task is at work, then watches it with a second stream, cancels it when that
has begun, and reads both to the end, which only works when events come as they happen; `watched`
is the last state that the second stream told. Every time the agent is found anew by the card below
`base`, which is fetched as a stranger would. An answer has `posted` (the URLs that were called) and
either what came back or `error`, with the exception's type and text.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver, parse_agent_card
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)


async def raw_card(base):
    """The card as it came, before any parser."""
    async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
        answer = await http.get(base.rstrip("/") + "/.well-known/agent-card.json")
        answer.raise_for_status()
        return answer.text


async def discover(base, version):
    """The card as a client sees it that knows this version alone."""
    if version == "0.3":
        # A 0.3 client reads the 0.3 members only; the SDK's own parser makes them a card of today.
        old = {k: v for k, v in json.loads(await raw_card(base)).items() if k != "supportedInterfaces"}
        card = parse_agent_card(old)
    else:
        async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
            card = await A2ACardResolver(http, base).get_agent_card()
    known = [i for i in card.supported_interfaces if i.protocol_version.startswith(version)]
    if not known:
        raise RuntimeError(f"the card offers no {version}")
    narrowed = type(card)()
    narrowed.CopyFrom(card)
    del narrowed.supported_interfaces[:]
    narrowed.supported_interfaces.extend(known)
    return narrowed


class Answer:
    """What a call's events said, gathered."""

    def __init__(self):
        self.kinds, self.texts = [], []
        self.task = self.context = self.state = None

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


def message(order):
    names = {"task": "task_id", "context": "context_id"}
    ids = {name: order[key] for key, name in names.items() if order.get(key)}
    return new_text_message(order.get("text", "hi"), role=Role.ROLE_USER, **ids)


async def watch(client, task):
    """Cancels the task once it is watched; gives its last state as the watcher saw it."""
    seen, canceling = Answer(), None
    async for event in client.subscribe(SubscribeToTaskRequest(id=task)):
        seen.of_event(event)
        if canceling is None:
            canceling = asyncio.create_task(client.cancel_task(CancelTaskRequest(id=task)))
    if canceling:
        await canceling
    return seen.state


async def call(order, card, http):
    """Does what the order says with the official client."""
    config = ClientConfig(streaming=bool(order.get("streaming")), httpx_client=http)
    client = ClientFactory(config).create(card)
    answer = Answer()
    match order["do"]:
        case "send":
            watching = None
            async for event in client.send_message(SendMessageRequest(message=message(order))):
                answer.of_event(event)
                if order.get("watch") and answer.state == "TASK_STATE_WORKING" and not watching:
                    watching = asyncio.create_task(watch(client, answer.task))
            if order.get("watch"):
                answer.watched = await watching if watching else None
        case "get":
            answer.of_task(await client.get_task(GetTaskRequest(id=order["task"])))
        case "cancel":
            answer.of_task(await client.cancel_task(CancelTaskRequest(id=order["task"])))
        case "subscribe":
            async for event in client.subscribe(SubscribeToTaskRequest(id=order["task"])):
                answer.of_event(event)
        case other:
            raise ValueError(f"unknown order `{other}`")
    answer.text = " ".join(text for text in answer.texts if text)
    del answer.texts
    return vars(answer)


async def obey(order):
    if order["do"] == "card":
        async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
            card = await A2ACardResolver(http, order["base"]).get_agent_card()
        urls = [i.url for i in card.supported_interfaces]
        return {"raw": await raw_card(order["base"]), "urls": urls}
    posted = []

    async def note(request):
        posted.append(str(request.url))

    headers = {"Authorization": f"Bearer {order['token']}"} if order.get("token") else {}
    try:
        card = await discover(order["base"], order["version"])
        async with httpx.AsyncClient(
            headers=headers, timeout=20, trust_env=False, event_hooks={"request": [note]}
        ) as http:
            answer = await call(order, card, http)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        answer = {"error": {"type": type(error).__name__, "text": str(error)}}
    return {**answer, "posted": posted}


def main():
    for line in sys.stdin:
        print(json.dumps(asyncio.run(obey(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
