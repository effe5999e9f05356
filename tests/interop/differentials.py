"""Sends what parsers read differently, and holds each agent to what was judged.

A case must be refused, and then the agent saw nothing, or the agent must act on exactly what the
gateway's journal says was judged: the same operation, task, context, other tasks, skill and webhook,
as the agent's own log tells after its SDK has parsed the request.
"""

import http.client
import itertools
import json
from collections import Counter
from urllib.parse import urlsplit

import cases
from cases_rest import rest, with_a2a_json
from cases_rpc import encode, rpc
from parts import PATIENCE, Broken
from peers import HOOK

# Policy allows HOOK alone.
EVIL = "https://8.8.4.4/hook"
PATHS = {"JSONRPC": "/a2a/jsonrpc", "HTTP+JSON": "/a2a/rest", "GRPC": ""}
CASES = {
    "JSONRPC": cases.jsonrpc,
    "HTTP+JSON": lambda version: with_a2a_json(rest(version)),
    "GRPC": rpc,
}
NUMBERS = itertools.count(1)


class Sender:
    """Raw requests on one kept connection."""

    def __init__(self, base, token=None):
        parts = urlsplit(base)
        self.prefix = parts.path
        self.token = token
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)

    def send(self, case, path, body):
        """Status, headers and body of the answer."""
        try:
            self.connection.putrequest(case.method, self.prefix + path, skip_accept_encoding=True)
            if self.token:
                self.connection.putheader("Authorization", f"Bearer {self.token}")
            for name, value in case.headers:
                self.connection.putheader(name, value)
            if body is not None:
                self.connection.putheader("Content-Length", str(len(body)))
            self.connection.endheaders(body)
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            return 0, {}, repr(error).encode()


class RpcSender:
    """Raw gRPC, by tests/agents/python/raw_rpc.py."""

    def __init__(self, process, target, token=None):
        self.process, self.target = process, target
        self.bearer = [("authorization", f"Bearer {token}")] if token else []

    def send(self, case, path, body):
        squeezed = ("@gzip", "") in case.headers
        plain = [pair for pair in case.headers if pair[0] != "@gzip"]
        answer = self.process.ask(
            {
                "target": self.target,
                "path": path,
                "metadata": [*self.bearer, *plain],
                "body": body.hex(),
                "gzip": squeezed,
            }
        )
        request_id = answer["metadata"].get("portcullis-request-id")
        return answer["code"], {"Portcullis-Request-Id": request_id}, answer["text"].encode()


class Subject:
    """One agent in one binding and version, with a task of the caller and one of somebody else."""

    def __init__(self, agent, base, binding, version, tokens):
        self.agent, self.base, self.binding, self.version = agent, base, binding, version
        self.tokens = tokens
        self.mine = self.theirs = None
        # Requests and length of the log after the last case.
        self.state = None

    def open(self, base, token):
        """A task that waits for input, and its context."""
        said = cases.call(
            cases.SEND[self.version], f'{{"message":{cases.message(self.version, "")}}}'
        )
        headers = (("Content-Type", "application/json"), *cases.declared(self.version))
        case = cases.Case("open", "pass", said.encode(), self.version, headers=headers)
        status, _, body = Sender(base, token).send(case, PATHS["JSONRPC"], self.fill(case.body))
        try:
            task = json.loads(body)["result"]
            task = task.get("task", task)
            return task["id"], task["contextId"]
        except (ValueError, KeyError, TypeError):
            raise Broken(f"no task from {self.agent.name}: {status} {body[:300]}") from None

    def fill(self, body):
        """The body with its placeholders replaced."""
        names = {"@m@": f"message-{next(NUMBERS)}", "@hook@": HOOK, "@evil@": EVIL}
        if self.mine:
            names |= {"@mine@": self.mine[0], "@mine-c@": self.mine[1]}
            names |= {"@theirs@": self.theirs[0], "@theirs-c@": self.theirs[1]}
            for name, task in (("@mine-p@", self.mine[0]), ("@theirs-p@", self.theirs[0])):
                names[name] = "".join(f"%{ord(character):02X}" for character in task)
        for name, value in names.items():
            for form in ("utf-8", "utf-16-le", "utf-32-le"):
                body = body.replace(name.encode(form), value.encode(form))
        return body

    def send(self, sender, case):
        """The answer, how many requests reached the agent, and what its log has for them."""
        requests, noted, _ = self.state or self.agent.executions()
        if isinstance(case.body, list):
            body = encode(case.body, self.fill)
        else:
            body = self.fill(case.body) or None
        path = PATHS[self.binding] + self.fill(case.path.encode()).decode()
        answer = sender.send(case, path, body)
        self.state = self.agent.executions(noted)
        return answer, self.state[0] - requests, self.state[2]

    def reaches_theirs(self, entries):
        """Whether the agent acted on what is somebody else's, or on a forbidden webhook."""
        said = [value for entry in entries for value in entry.values()]
        said += [one for value in said if isinstance(value, list) for one in value]
        return any(name in said for name in (*self.theirs, EVIL))


def judged(record):
    """What an intent says, in the words of the agents' logs."""
    skill = record.get("skill") or {}
    return {
        "op": record.get("operation"),
        "task": record.get("task_id"),
        "context": record.get("context_id"),
        "references": record.get("reference_task_ids"),
        "skill": skill.get("id"),
        "webhook": (record.get("webhook_hosts") or [None])[0],
    }


def compare(entry, record):
    """What an agent understood otherwise than was judged."""
    said = judged(record)
    # A default is not in the request.
    names = [name for name in said if name != "skill" or "skill" in entry]
    if "webhook" in entry:
        entry = {**entry, "webhook": urlsplit(entry["webhook"]).hostname}
    return [
        f"{name}: judged {said[name]}, the agent read {entry.get(name)}"
        for name in names
        if (said[name] or None) != entry.get(name)
    ]


class Differentials:
    """All subjects behind one gateway."""

    def __init__(self, gateway, report, tokens, rpc=None):
        self.gateway, self.report, self.tokens, self.rpc = gateway, report, tokens, rpc
        self.calls = self.refused = 0

    def intents(self):
        records = self.gateway.records()[1]
        return {r["request_id"]: r for r in records if r["kind"] == "intent"}

    def sender(self, binding, base, target, token=None):
        if binding == "GRPC":
            return RpcSender(self.rpc, target, token)
        return Sender(base, token)

    def run(self, agent, binding, version):
        alice, bob = self.tokens
        base = self.gateway.base(f"{agent.name}-strict")
        subject = Subject(agent, base, binding, version, self.tokens)
        subject.mine, subject.theirs = subject.open(base, alice), subject.open(base, bob)
        self.calls += 2
        name = f"{agent.name}-strict"
        sender = self.sender(binding, base, self.gateway.rpc(name), alice)
        every, sent = list(CASES[binding](version)), []
        for case in every:
            (status, headers, body), reached, entries = subject.send(sender, case)
            self.calls += reached
            self.refused += reached == 0
            sent.append((case, status, headers, body, entries, reached))
            if any(entry["op"] == "CancelTask" for entry in entries):
                subject.mine, subject.state = subject.open(base, alice), None
                self.calls += 1
        problems, counts = self.judge(subject, sent)
        counts["directly"] = self.direct(agent, binding, version, every)
        name = f"differentials: {agent.name} agent, {binding} {version}"
        detail = (
            f"{len(sent)} inputs: {counts['refused']} refused, {counts['passed']} acted on as judged, "
            f"{counts['agent']} refused by the agent; "
            f"without the gateway {counts['directly']} reach what is not the caller's"
        )
        self.report.check(name, problems, detail)

    def judge(self, subject, sent):
        """What is wrong with what came of every case, and how often what came."""
        intents, problems, counts = self.intents(), [], Counter()
        for case, status, headers, body, entries, reached in sent:
            record = intents.get(headers.get("Portcullis-Request-Id"))
            wrong = self.one(subject, case, record, entries, reached)
            counts["refused" if not reached else "passed" if entries else "agent"] += 1
            if wrong:
                problems.append(f"{case.name}: {', '.join(wrong)} ({status} {body[:160]!r})")
        return problems, counts

    def one(self, subject, case, record, entries, reached):
        if record is None and reached:
            return ["it reached the agent without an intent"]
        wrong = []
        if case.expect == "refuse" and reached:
            wrong.append("it was not refused")
        if case.expect == "pass" and not entries:
            wrong.append("it was not acted on")
        if subject.reaches_theirs(entries):
            wrong.append(f"the agent acted on what is not the caller's: {entries}")
        calls = [entry for entry in entries if entry["op"] not in ("execute", "cancel")]
        if len(calls) > 1:
            wrong.append(f"the agent acted {len(calls)} times")
        for entry in calls:
            wrong += compare(entry, record or {})
        for entry in entries:
            task = record and record.get("task_id")
            if entry["op"] in ("execute", "cancel") and task and entry["task"] != task:
                wrong.append(f"judged task {task}, run on {entry['task']}")
        return wrong

    def direct(self, agent, binding, version, every):
        """How many of the cases reach another's task or webhook when nobody stands in between."""
        subject = Subject(agent, agent.url, binding, version, self.tokens)
        subject.mine, subject.theirs = (subject.open(agent.url, None) for _ in range(2))
        sender, reached = self.sender(binding, agent.url, agent.rpc), 0
        for case in every:
            if case.expect == "refuse":
                _, _, entries = subject.send(sender, case)
                reached += subject.reaches_theirs(entries)
        return reached
