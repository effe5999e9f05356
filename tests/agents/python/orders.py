"""What the Python clients share: orders are read line by line, and each is answered with a line.

client_check.py says what orders and answers are.
"""

import asyncio
import json
import sys

import httpx

# Plain HTTP on loopback: without this every client would read the machine's certificates.
PLAIN = {"timeout": 20, "trust_env": False, "verify": False}


async def raw_card(base):
    """The card as it came, before any parser."""
    async with httpx.AsyncClient(**PLAIN) as http:
        answer = await http.get(base.rstrip("/") + "/.well-known/agent-card.json")
        answer.raise_for_status()
        return answer.text


class Gathered:
    """What a call's events said; `of_event` of a subclass takes them."""

    def __init__(self):
        self.kinds, self.texts = [], []
        self.task = self.context = self.state = None

    def gathered(self):
        """All of it, as an answer has it."""
        members = {**vars(self), "text": " ".join(text for text in self.texts if text)}
        del members["texts"]
        return members


async def follow(order, events, answer, watch):
    """Reads the events of a `send`; `watch` gives, for a task, what its watcher saw."""
    watching = None
    async for event in events:
        answer.of_event(event)
        if order.get("watch") and answer.state == "TASK_STATE_WORKING" and not watching:
            watching = asyncio.create_task(watch(answer.task))
    if order.get("watch"):
        answer.watched = await watching if watching else None


async def until_canceled(events, seen, cancel):
    """Cancels a task once it is watched; gives its last state as the watcher saw it."""
    canceling = None
    async for event in events:
        seen.of_event(event)
        if canceling is None:
            canceling = asyncio.create_task(cancel())
    if canceling:
        await canceling
    return seen.state


async def answered(order, discover, call, headers=None):
    """The answer to an order for a call. `discover` gives the card and where its gRPC is."""
    posted = []

    async def note(request):
        posted.append(str(request.url))

    order.setdefault("binding", "JSONRPC")
    try:
        card, rpc = await discover(order)
        if order["binding"] == "GRPC":
            posted.append(rpc)
        async with httpx.AsyncClient(
            headers=headers, event_hooks={"request": [note]}, **PLAIN
        ) as http:
            answer = await asyncio.wait_for(call(order, card, http), 20)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        answer = {"error": {"type": type(error).__name__, "text": str(error)}}
    return {**answer, "posted": posted}


def obey_all(obey):
    """Answers every order with what `obey` makes of it."""
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(runner.run(obey(json.loads(line)))), flush=True)
