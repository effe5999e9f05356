"""What clients make of our refusals: each is checked, and the texts are compared with a file."""

import json
import os
import re
from pathlib import Path

from peers import plain, send

TABLE = Path(__file__).parent / "exceptions.json"
LONGEST = 200
# What the 0.3.26 client makes of a streaming call that is answered with plain JSON in HTTP 200; only
# JavaScript's server does that as well.
OLD_SSE = "Invalid SSE response"
# What a stranger tries with a task that is somebody else's.
PRYING = [
    {"do": "get"},
    {"do": "cancel"},
    {"do": "subscribe", "streaming": True},
    send("hi", False),
    send("hi", True),
]


class Exceptions:
    """The table: client, version and binding, then situation, then the exception's type and text.

    exceptions.json holds it; UPDATE_EXPECT=1 rewrites what was run.
    """

    def __init__(self):
        self.seen = {}

    def note(self, pair, situation, error):
        client = f"{pair.client.name} {pair.version} {pair.binding}"
        text = f"{error['type']}: {plain(error['text'])}"[:LONGEST] if error else "no error"
        # JavaScript's client counts its requests, and pydantic shows the ends of ids.
        text = re.sub(r"input_value=.*?, input_type", "input_value=VALUE, input_type", text)
        text = re.sub(r"Expected \d+, got", "Expected its id, got", text)
        self.seen.setdefault(client, {})[situation] = text

    def compare(self, report):
        expected = json.loads(TABLE.read_text()) if TABLE.exists() else {}
        if os.environ.get("UPDATE_EXPECT"):
            for client, situations in self.seen.items():
                expected[client] = dict(sorted(situations.items()))
            TABLE.write_text(json.dumps(dict(sorted(expected.items())), indent=1) + "\n")
        for client, situations in sorted(self.seen.items()):
            known = expected.get(client, {})
            wrong = [
                f"{situation}: `{text}`, not `{known.get(situation)}`"
                for situation, text in situations.items()
                if known.get(situation) != text
            ]
            wrong += [f"{situation} was not tried" for situation in known if situation not in situations]
            report.check(f"exceptions of {client}", wrong, f"{len(situations)} situations")


def refuse(pair, what, base, order, token, like, table):
    """The client gets an error in which one of `like` stands, and the agent sees nothing."""
    answer, counted = pair.ask(base, order, token)
    pair.calls += counted[0]
    pair.refused += counted == (0, 0)
    mode = order["do"] + (", streaming" if order.get("streaming") else "")
    problems = []
    error = answer.get("error")
    table.note(pair, f"{what}: {mode}", error)
    if error is None:
        problems.append(f"it worked: {answer}")
    else:
        text = f"{error['type']}: {error['text']}"
        if not any(word.lower() in text.lower() for word in like):
            problems.append(f"`{text}` says none of {like}")
    if counted != (0, 0):
        problems.append(f"the agent counted {counted}")
    if len(answer["posted"]) != 1:
        problems.append(f"calls went to {answer['posted']}")
    pair.report.check(f"{pair.name}: {what}, {mode}", problems, "0/0")


def bad_tokens(pair, base, bad, table):
    """Every bad token, in a unary and in a streaming call."""
    for what, token, like in bad:
        for streaming in (False, True):
            refuse(pair, what, base, send("hi", streaming), token, like, table)


def somebody_elses(pair, base, alice, bob, table):
    """A task that alice left open does not exist for bob; afterwards alice can go on with it."""
    answer, counted = pair.ask(base, send("ask", False), alice)
    left = {key: answer.get(key) for key in ("task", "context")}
    pair.calls += counted[0]
    for order in PRYING:
        what, like = "somebody else's task", ["not found", "-32001", "TaskNotFound", OLD_SSE]
        refuse(pair, what, base, {**order, **left}, bob, like, table)
    answer, counted = pair.ask(base, {**send("hi", False), **left}, alice)
    pair.calls += counted[0]
    problems = [] if answer.get("state") == "TASK_STATE_COMPLETED" else [str(answer)]
    if counted != (1, 1):
        problems.append(f"the agent counted {counted}")
    pair.report.check(f"{pair.name}: its owner goes on with it", problems, "1/1 COMPLETED")
