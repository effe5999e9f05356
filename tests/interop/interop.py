"""Real agents and real clients, with the gateway between them and without it.

    interop.py GATEWAY_PROGRAM [--python PYTHON] [--rust FOLDER_OF_PROGRAMS]

Every step is first done directly and then through the gateway; both must come out the same, so that
nothing fails through the gateway alone. The agents' own counters say what reached them. Prints one
line for every check, then what the clients make of refusals; exits 0 only when all passed.
"""

import argparse
import contextlib
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from parts import Agent, Broken, Client, Gateway, until

HERE = Path(__file__).parent
GREETING = {"python": "hello from the python agent", "rust": "hello from the rust agent"}
# Agent, client, version. The Rust SDK speaks 1.0 alone.
PAIRS = [
    ("python", "python", "1.0"),
    ("python", "python", "0.3"),
    ("rust", "rust", "1.0"),
    ("rust", "python", "1.0"),
    ("python", "rust", "1.0"),
]
# Steps that fail without the gateway as well, as (agent, client, version, step): the reason.
FAILS_DIRECTLY = {}


@dataclass(frozen=True)
class Step:
    """One call, and what must come of it."""

    name: str
    order: dict
    state: str
    # Requests and executions that the agent counts for it.
    counted: tuple
    greets: bool = False
    # Follows up the task that an earlier step left open.
    follows: bool = False


def send(text, streaming):
    return {"do": "send", "text": text, "streaming": streaming}


# A second stream watches the task of the first; both must end when the task is canceled.
WATCH = {**send("wait", True), "watch": True}
STEPS = [
    Step("unary", send("hi", False), "COMPLETED", (1, 1), greets=True),
    Step("streaming", send("hi", True), "COMPLETED", (1, 1), greets=True),
    Step("ask, unary", send("ask", False), "INPUT_REQUIRED", (1, 1)),
    Step("get", {"do": "get"}, "INPUT_REQUIRED", (1, 0), follows=True),
    Step("continue, streaming", send("hi", True), "COMPLETED", (1, 1), greets=True, follows=True),
    Step("ask, streaming", send("ask", True), "INPUT_REQUIRED", (1, 1)),
    Step("continue, unary", send("hi", False), "COMPLETED", (1, 1), greets=True, follows=True),
    Step("watch and cancel", WATCH, "CANCELED", (3, 1)),
    Step("ask again", send("ask", False), "INPUT_REQUIRED", (1, 1)),
    Step("cancel", {"do": "cancel"}, "CANCELED", (1, 0), follows=True),
]
# What a stranger tries with a task that is somebody else's.
PRYING = [
    {"do": "get"},
    {"do": "cancel"},
    {"do": "subscribe", "streaming": True},
    send("hi", False),
    send("hi", True),
]


def origin(url):
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


class Report:
    """The table of checks."""

    def __init__(self):
        self.passed = self.failed = 0
        self.known, self.refusals = [], {}
        self.began = time.monotonic()

    def check(self, name, problems, detail=""):
        good = not problems
        self.passed += good
        self.failed += not good
        line = f"{'ok' if good else 'FAIL':<5} {name:<74} {detail if good else '; '.join(problems)}"
        print(line.rstrip(), flush=True)

    def refusal(self, client, what, text, mode):
        """Notes what a client made of a refusal, without the URL that httpx adds."""
        text = re.sub(r" for url '[^']*'|For more information check: \S+", "", text)
        texts = self.refusals.setdefault((client, what), {})
        texts.setdefault(" ".join(text.split()), set()).add(mode)

    def finish(self):
        """What came out, after the table."""
        print("\nwhat the clients make of a refusal")
        for (client, what), texts in sorted(self.refusals.items()):
            for text, modes in texts.items():
                print(f"  {client:<11} {what:<21} {text}  [{'; '.join(sorted(modes))}]")
        if self.known:
            print("\nfails without the gateway as well")
            for name in self.known:
                print(f"  {name}")
        print(f"\nagents and clients: {time.monotonic() - self.began:.0f} s")
        print(f"{self.passed} passed, {self.failed} failed")
        return self.passed > 0 and self.failed == 0


class Pair:
    """One client in one version with one agent."""

    def __init__(self, agent, client, version, report):
        self.agent, self.client, self.version, self.report = agent, client, version, report
        self.key = (agent.name.split()[0], client.name.split()[0], version)
        self.name = f"{self.key[0]} agent, {self.key[1]} client {version}"
        # Requests and executions that came through the gateway.
        self.calls = self.refused = 0

    def ask(self, base, order, token=None):
        """The client's answer and what the agent counted for it."""
        before = self.agent.counters()
        answer = self.client.ask({**order, "base": base, "version": self.version, "token": token})
        after = self.agent.counters()
        return answer, (after[0] - before[0], after[1] - before[1])

    def story(self, base, token=None):
        """Every step in order: what came of it, and what is wrong with that."""
        left, told = {}, {}
        for step in STEPS:
            order = dict(step.order)
            if step.follows:
                order |= left
            answer, counted = self.ask(base, order, token)
            if answer.get("task"):
                left = {"task": answer["task"], "context": answer["context"]}
            problems = self.judge(step, order, answer, counted, base)
            shape = [answer.get(k) for k in ("kinds", "state", "text", "error")]
            told[step.name] = (shape, counted, problems)
        return told

    def judge(self, step, order, answer, counted, base):
        if error := answer.get("error"):
            return [f"{error['type']}: {error['text']}"]
        problems = []
        if answer["state"] != f"TASK_STATE_{step.state}":
            problems.append(f"state {answer['state']}")
        if order.get("watch") and answer["watched"] != answer["state"]:
            problems.append(f"the second stream ended with {answer['watched']}")
        if step.greets and GREETING[self.key[0]] not in answer["text"]:
            problems.append(f"no greeting in `{answer['text']}`")
        if step.follows and answer["task"] != order["task"]:
            problems.append("another task")
        if order.get("streaming") and len(answer["kinds"]) < 2:
            problems.append("came as one piece")
        if counted != step.counted:
            problems.append(f"the agent counted {counted}, not {step.counted}")
        # As ADK demands: calls go where the card came from.
        if any(origin(url) != origin(base) for url in answer["posted"]) or not answer["posted"]:
            problems.append(f"calls went to {answer['posted']}")
        return problems

    def both_ways(self, base, token):
        """The story directly and through the gateway."""
        direct = self.story(self.agent.url)
        through = self.story(base, token)
        for step in STEPS:
            shape, counted, wrong = direct[step.name]
            shape_through, counted_through, problems = through[step.name]
            self.calls += counted_through[0]
            name = f"{self.name}: {step.name}"
            if (*self.key, step.name) in FAILS_DIRECTLY and wrong:
                self.report.known.append(f"{name}: {'; '.join(wrong)}")
                continue
            problems = [f"directly: {p}" for p in wrong] + [f"gateway: {p}" for p in problems]
            if not problems and shape != shape_through:
                problems.append(f"directly {shape}, through the gateway {shape_through}")
            kinds = ", ".join(shape[0] or [])
            self.report.check(name, problems, f"{counted[0]}/{counted[1]} {step.state} {kinds}")

    def refuse(self, what, base, order, token, like):
        """The client gets an error in which one of `like` stands, and the agent sees nothing."""
        answer, counted = self.ask(base, order, token)
        self.calls += counted[0]
        self.refused += counted == (0, 0)
        mode = order["do"] + (", streaming" if order.get("streaming") else "")
        name = f"{self.name}: {what}, {mode}"
        problems = []
        error = answer.get("error")
        if error is None:
            problems.append(f"it worked: {answer}")
        else:
            text = f"{error['type']}: {error['text']}"
            self.report.refusal(f"{self.key[1]} {self.version}", what, text, mode)
            if not any(word.lower() in text.lower() for word in like):
                problems.append(f"`{text}` says none of {like}")
        if counted != (0, 0):
            problems.append(f"the agent counted {counted}")
        if len(answer["posted"]) != 1:
            problems.append(f"calls went to {answer['posted']}")
        self.report.check(name, problems, "0/0")

    def somebody_elses(self, base, alice, bob):
        """A task that alice left open does not exist for bob; afterwards alice can go on with it."""
        answer, counted = self.ask(base, send("ask", False), alice)
        left = {key: answer.get(key) for key in ("task", "context")}
        self.calls += counted[0]
        for order in PRYING:
            self.refuse("somebody else's task", base, {**order, **left}, bob, ["not found", "-32001"])
        answer, counted = self.ask(base, {**send("hi", False), **left}, alice)
        self.calls += counted[0]
        problems = [] if answer.get("state") == "TASK_STATE_COMPLETED" else [str(answer)]
        if counted != (1, 1):
            problems.append(f"the agent counted {counted}")
        self.report.check(f"{self.name}: its owner goes on with it", problems, "1/1 COMPLETED")


def card(report, client, gateway, name, agent):
    """The card's interfaces are the gateway's, and no field holds an address of the agent."""
    answer = client.ask({"do": "card", "base": gateway.base(name)})
    wrong = [
        f"the card contains `{text}`"
        for text in (agent.address, agent.address.split(":")[1], "127.0.0.1")
        if text in answer["raw"].replace(gateway.origin, "")
    ]
    wrong += [f"interface `{u}`" for u in answer["urls"] if not u.startswith(gateway.base(name))]
    if not answer["urls"]:
        wrong.append("no interface")
    report.check(f"card of {name}, {client.name}: only the gateway's address", wrong, answer["urls"][0])


def journal(report, gateway, calls, refused):
    """Every call that reached an agent, and every refusal, is on record; no token is anywhere.

    The gateway has stopped: what nobody waits for is written now, too.
    """
    text, records = gateway.records()
    # A card that was asked for before it was there is a refusal of another kind.
    kinds = [record["kind"] for record in records if record.get("surface") != "card"]
    counts = (kinds.count("intent"), kinds.count("outcome"), kinds.count("refusal"))
    expected = (calls, calls, refused)
    wrong = [] if counts == expected else [f"{counts} records, not {expected}"]
    report.check("journal: intents, outcomes and refusals", wrong, "/".join(map(str, counts)))
    log = gateway.log.read_text()
    wrong = [
        f"a token is in the {place}"
        for place, said in (("journal", text), ("log", log))
        if any(token in said or token.rsplit(".", 1)[1] in said for token in gateway.minted)
    ]
    report.check("journal and log: no token", wrong, f"{len(gateway.minted)} tokens looked for")
    wrong = [line for line in log.splitlines() if "panicked" in line or " ERROR " in line]
    report.check("log: no error and no panic", wrong)


def commands(arguments):
    """Programs by language: agent and client."""
    python = HERE.parent / "agents" / "python"
    found = {}
    if arguments.python:
        found["python"] = (
            [arguments.python, python / "hello_agent.py"],
            [arguments.python, python / "client_check.py"],
        )
    if arguments.rust:
        found["rust"] = ([arguments.rust / "hello_agent"], [arguments.rust / "client_check"])
    return found


def play(arguments, folder, report, stack):
    found = commands(arguments)
    agents, clients = {}, {}
    for language, (agent, client) in found.items():
        log = folder / f"{language}.log"
        agents[language] = stack.enter_context(Agent(f"{language} agent", agent, log))
        clients[language] = stack.enter_context(Client(f"{language} client", client, log))
    # The same agents again, refusals told inside JSON-RPC: what Python clients show their users.
    routes = {name: (agent, 403) for name, agent in agents.items()}
    routes |= {f"{name}-told": (agent, 200) for name, agent in agents.items()}
    gateway = stack.enter_context(Gateway(arguments.gateway, folder, routes))
    alice, bob = gateway.token("alice"), gateway.token("bob")
    expired = gateway.token("alice", ttl="1s")
    gone = time.time() + 2
    bad = [
        ("no token", None, ["401"]),
        ("wrong role", gateway.token("mallory", role="guest"), ["403"]),
        ("expired token", expired, ["401"]),
        ("unknown key", gateway.token("alice", keys="strange"), ["401"]),
    ]
    for client in clients.values():
        for name, (agent, _) in routes.items():
            card(report, client, gateway, name, agent)
    pairs = [
        Pair(agents[agent], clients[client], version, report)
        for agent, client, version in PAIRS
        if agent in agents and client in clients
    ]
    for pair in pairs:
        base = gateway.base(pair.key[0])
        pair.both_ways(base, alice)
        until("the short token is over", lambda: True if time.time() > gone else None)
        for what, token, like in bad:
            for streaming in (False, True):
                pair.refuse(what, base, send("hi", streaming), token, like)
        for streaming in (False, True):
            told = gateway.base(f"{pair.key[0]}-told")
            pair.refuse("wrong role, told", told, send("hi", streaming), bad[1][1], ["not allowed"])
        pair.somebody_elses(base, alice, bob)
    code = gateway.stop()
    report.check("gateway: stops in order", [] if code == 0 else [f"exit code {code}"])
    journal(report, gateway, sum(p.calls for p in pairs), sum(p.refused for p in pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gateway", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--rust", type=Path)
    arguments = parser.parse_args()
    # So that a run that is told to stop stops its children, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="portcullis-interop-") as folder:
        try:
            with contextlib.ExitStack() as stack:
                play(arguments, Path(folder), report, stack)
        except Broken as error:
            report.check("the run", [str(error)])
    return 0 if report.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
