"""One client with one agent over one binding, directly and through the gateway."""

import re
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlsplit

from known import COUNTED, FAILS_DIRECTLY

GREETING = {
    "python": "hello from the python agent",
    "python03": "hello from the old python agent",
    "js": "hello from the js agent",
    "js-legacy": "hello from the js agent",
    "rust": "hello from the rust agent",
}
BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
# What agents serve and clients speak.
AGENTS = {
    "python": ["1.0", "0.3"],
    "python03": ["0.3"],
    "js": ["1.0"],
    "js-legacy": ["1.0", "0.3"],
    "rust": ["1.0"],
}
CLIENTS = {"python": ["1.0", "0.3"], "python03": ["0.3"], "js": ["1.0", "0.3"], "rust": ["1.0"]}
# The Python SDK's last version before 1.3.0: for what a client makes of answers that it should not get.
OLD_CLIENTS = {"python12": ["1.0", "0.3"]}
# A public address, so that no name must be looked up. Nothing is ever sent there: no agent of the
# suite has a sender.
HOOK_HOST = "8.8.8.8"
HOOK = f"https://{HOOK_HOST}/hook"


@dataclass(frozen=True, eq=False)
class Step:
    """One call, and what must come of it."""

    name: str
    order: dict
    # Requests and executions that the agent counts for it.
    counted: tuple
    state: str | None = None
    # What the answer tells of tasks, webhooks or skills.
    told: list | None = None
    greets: bool = False
    # Names the task that an earlier step left open.
    follows: bool = False
    # The webhook that the agent's own log must have.
    hook: str | None = None
    versions: tuple = ("1.0", "0.3")


def send(text, streaming, **more):
    return {"do": "send", "text": text, "streaming": streaming, **more}


def push(what, **more):
    return {"do": f"push-{what}", **more}


# A second stream watches the task of the first; both must end when the task is canceled.
WATCH = send("wait", True, watch=True)
HOOKED = [{"task": "TASK", "id": "hook", "url": HOOK}]
LISTED = [{"task": "TASK", "context": "CONTEXT"}]
STEPS = [
    Step("unary", send("hi", False), (1, 1), "COMPLETED", greets=True),
    Step("streaming", send("hi", True), (1, 1), "COMPLETED", greets=True),
    Step("ask, unary", send("ask", False), (1, 1), "INPUT_REQUIRED"),
    Step("get", {"do": "get"}, (1, 0), "INPUT_REQUIRED", follows=True),
    Step("list", {"do": "list"}, (1, 0), told=LISTED, follows=True, versions=("1.0",)),
    Step("push, create", push("create", url=HOOK), (1, 0), told=HOOKED, follows=True, hook=HOOK),
    Step("push, get", push("get", config="hook"), (1, 0), told=HOOKED, follows=True),
    Step("push, list", push("list"), (1, 0), told=HOOKED, follows=True),
    Step("push, delete", push("delete", config="hook"), (1, 0), told=[], follows=True),
    Step("push, none left", push("list"), (1, 0), told=[], follows=True),
    Step("continue, streaming", send("hi", True), (1, 1), "COMPLETED", greets=True, follows=True),
    Step("ask, streaming", send("ask", True), (1, 1), "INPUT_REQUIRED"),
    Step("continue, unary", send("hi", False), (1, 1), "COMPLETED", greets=True, follows=True),
    Step("watch and cancel", WATCH, (3, 1), "CANCELED"),
    Step("ask with a webhook", send("ask", False, url=HOOK), (1, 1), "INPUT_REQUIRED", hook=HOOK),
    Step("ask again", send("ask", False), (1, 1), "INPUT_REQUIRED"),
    Step("cancel", {"do": "cancel"}, (1, 0), "CANCELED", follows=True),
    Step("extended card", {"do": "extended"}, (1, 0), told=[{"skill": "hello"}]),
]
# What a client has no method for.
LACKS = {"python03": ["push-list", "push-delete"]}


def origin(url):
    """Scheme, host and port; gRPC targets have no scheme."""
    parts = urlsplit(url if "://" in url else f"rpc://{url}")
    return parts.scheme, parts.hostname, parts.port


def plain(text):
    """An error's text without what differs from run to run."""
    text = re.sub(r" for url '[^']*'|For more information check: \S+", "", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"\b(127\.0\.0\.1|localhost|\[::1\]):\d+", "HOST", text)
    return " ".join(text.split())


class Pair:
    """One client in one version and binding with one agent."""

    def __init__(self, agent, client, version, binding, report):
        self.agent, self.client, self.report = agent, client, report
        self.version, self.binding = version, binding
        self.key = (agent.name, client.name, version, binding)
        self.name = f"{agent.name} agent, {client.name} client, {binding} {version}"
        # Requests and refusals that went through the gateway.
        self.calls = self.refused = 0

    def ask(self, base, order, token=None):
        """The client's answer and what the agent counted for it."""
        before = self.agent.counters()
        said = {"base": base, "version": self.version, "binding": self.binding, "token": token}
        answer = self.client.ask({**order, **said})
        after = self.agent.counters()
        return answer, (after[0] - before[0], after[1] - before[1])

    def story(self, base, token=None, without=()):
        """Every step in order: what came of it, and what is wrong with that."""
        left, told = {}, {}
        for step in STEPS:
            what = step.order["do"]
            kind = "push" if step.hook else what.split("-")[0]
            lacks = what in LACKS.get(self.client.name, ())
            if lacks or kind in without or self.version not in step.versions:
                continue
            order = dict(step.order)
            if step.follows:
                order |= left
            noted = self.agent.executions()[1] if step.hook else 0
            answer, counted = self.ask(base, order, token)
            if answer.get("task"):
                left = {"task": answer["task"], "context": answer["context"]}
            if answer.get("told"):
                names = {left.get("task"): "TASK", left.get("context"): "CONTEXT"}
                answer["told"] = [
                    {key: names.get(value, value) for key, value in one.items()}
                    for one in answer["told"]
                ]
            problems = self.judge(step, order, answer, counted, base)
            if step.hook and not problems:
                hooks = [entry.get("webhook") for entry in self.agent.executions(noted)[2]]
                problems = [] if step.hook in hooks else [f"the agent saw the webhooks {hooks}"]
            told[step] = (self.shape(answer), counted, problems)
        return told

    @staticmethod
    def shape(answer):
        """What must be the same on both ways."""
        kinds = [kind for kind, _ in groupby(answer.get("kinds", []))]
        error = answer.get("error")
        error = error and f"{error['type']}: {plain(error['text'])}"
        return [kinds, *(answer.get(key) for key in ("state", "text", "told")), error]

    def judge(self, step, order, answer, counted, base):
        if error := answer.get("error"):
            return [f"{error['type']}: {plain(error['text'])}"]
        problems = []
        if step.state and answer["state"] != f"TASK_STATE_{step.state}":
            problems.append(f"state {answer['state']}")
        if step.told is not None and answer.get("told") != step.told:
            problems.append(f"told {answer.get('told')}")
        if order.get("watch") and answer["watched"] != answer["state"]:
            problems.append(f"the second stream ended with {answer['watched']}")
        if step.greets and GREETING[self.agent.name] not in answer["text"]:
            problems.append(f"no greeting in `{answer['text']}`")
        if step.follows and step.state and answer["task"] != order["task"]:
            problems.append("another task")
        if order.get("streaming") and len(answer["kinds"]) < 2:
            problems.append("came as one piece")
        if counted != COUNTED.get((*self.key, step.name), step.counted):
            problems.append(f"the agent counted {counted}, not {step.counted}")
        # As ADK demands: calls go where the card came from. gRPC has a port of its own.
        here = origin(base)[1 if self.binding == "GRPC" else 0 :][:1 if self.binding == "GRPC" else 3]
        for url in answer["posted"] or ["nowhere"]:
            there = origin(url)[1 if self.binding == "GRPC" else 0 :][: len(here)]
            if there != here:
                problems.append(f"a call went to {url}")
        return problems

    def direct(self):
        """The story without the gateway; a step that fails must be known to."""
        told = self.story(self.agent.url)
        for step, (_, counted, wrong) in told.items():
            known = FAILS_DIRECTLY.get((*self.key, step.name))
            name = f"{self.name}: {step.name}, directly"
            if wrong and known and known in "; ".join(wrong):
                self.report.known.append(f"{self.name}: {step.name}: {'; '.join(wrong)}")
            elif wrong or known:
                self.report.check(name, wrong or [f"it works, and should fail: {known}"])
        return told

    def both_ways(self, base, token, without=()):
        """The story directly and through the gateway."""
        direct = self.direct()
        through = self.story(base, token, without)
        for step, (shape_through, counted_through, problems) in through.items():
            shape, counted, wrong = direct[step]
            self.calls += counted_through[0]
            if wrong:
                # Told by `direct`, and by name. Through the gateway it may fail or work.
                continue
            problems = [f"gateway: {p}" for p in problems]
            if not problems and shape != shape_through:
                problems.append(f"directly {shape}, through the gateway {shape_through}")
            detail = f"{counted[0]}/{counted[1]} {step.state or ''} {', '.join(shape[0])}"
            self.report.check(f"{self.name}: {step.name}", problems, detail)
