"""The official client against an agent that it finds by its card.

    client_check.py BASE_URL [--token TOKEN] [--expect TEXT] [--forbid TEXT]... [--versions 1.0,0.3]

Fetches the card below BASE_URL, then sends one message unary and one streaming, in each version.
Each answer must contain TEXT. Checks that the interface has the card's own origin (as ADK does),
and that no forbidden text (a backend's address) is in the card. Prints one line of JSON; exits 0
only when everything held.
"""

import argparse
import asyncio
import json
import sys
from urllib.parse import urlsplit

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver, parse_agent_card
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import GetTaskRequest, Role, SendMessageRequest


def origin(url):
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def only(card, version):
    """The card as a client sees it that knows this version alone."""
    narrowed = type(card)()
    narrowed.CopyFrom(card)
    del narrowed.supported_interfaces[:]
    narrowed.supported_interfaces.extend(
        i for i in card.supported_interfaces if i.protocol_version.startswith(version)
    )
    return narrowed


async def call(card, version, streaming, headers, text):
    """Texts of all answers, their task id and kinds."""
    narrowed = only(card, version)
    if not narrowed.supported_interfaces:
        raise RuntimeError(f"the card offers no {version}")
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        client = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(narrowed)
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        texts, kinds, task = [], [], None
        async for event in client.send_message(request):
            kind = event.WhichOneof("payload")
            kinds.append(kind)
            texts.append(get_stream_response_text(event))
            if kind == "task":
                task = event.task.id
            elif kind in ("status_update", "artifact_update"):
                task = getattr(event, kind).task_id
        followed = task and (await client.get_task(GetTaskRequest(id=task))).id == task
        return {"text": " ".join(t for t in texts if t), "kinds": kinds, "followed": bool(followed)}


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    parser.add_argument("--token")
    parser.add_argument("--expect", default="hello")
    parser.add_argument("--text", default="hi")
    parser.add_argument("--forbid", action="append", default=[])
    parser.add_argument("--versions", default="1.0,0.3")
    args = parser.parse_args()
    headers = {"Authorization": f"Bearer {args.token}"} if args.token else {}
    problems, calls = [], {}
    # The card is public: it is fetched as a stranger would.
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, args.base_url).get_agent_card()
        raw = (await http.get(args.base_url.rstrip("/") + "/.well-known/agent-card.json")).text
    problems += [f"the card contains `{text}`" for text in args.forbid if text in raw]
    for interface in card.supported_interfaces:
        if origin(interface.url) != origin(args.base_url):
            problems.append(f"interface `{interface.url}` is not on the card's origin")
    cards = {"1.0": card}
    if "0.3" in args.versions.split(","):
        # A 0.3 client reads the 0.3 members only.
        legacy = {k: v for k, v in json.loads(raw).items() if k != "supportedInterfaces"}
        cards["0.3"] = parse_agent_card(legacy)
    cards = {version: cards[version] for version in args.versions.split(",")}
    for version, seen in cards.items():
        for streaming in (False, True):
            name = f"{version} {'streaming' if streaming else 'unary'}"
            try:
                calls[name] = await call(seen, version, streaming, headers, args.text)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                calls[name] = {"error": f"{type(error).__name__}: {error}"}
                problems.append(f"{name}: {calls[name]['error']}")
                continue
            if args.expect not in calls[name]["text"]:
                problems.append(f"{name}: no `{args.expect}` in the answer")
            if not calls[name]["followed"]:
                problems.append(f"{name}: its task could not be read back")
            if streaming and len(calls[name]["kinds"]) < 2:
                problems.append(f"{name}: came as one piece")
    print(json.dumps({"ok": not problems, "problems": problems, "calls": calls}))
    return 0 if not problems else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
