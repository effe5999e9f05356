"""What clients make of answers that no honest agent gives: too large, too often, gone, slow, malformed.

Each is checked for being an error and noted in the table of refusals.py. The stub agent is
tests/agents/python/stub_agent.py.
"""

from concurrent.futures import ThreadPoolExecutor

from peers import Pair, send
from refusals import OLD_SSE

LONG = "x" * 4096
# Texts of stub_agent.py, and whether they answer a streaming call.
MALFORMED = [
    ("a list", False),
    ("a string", False),
    ("neither result nor error", False),
    ("error is a string", False),
    ("error without a message", False),
    ("an event that is not JSON", True),
    ("HTML", False),
    ("HTML", True),
]
# How the clients tell InvalidAgentResponse.
TYPED = ["InvalidAgentResponse", "-32006", OLD_SSE]
# Clients that read no error of HTTP+JSON but its status, and none at all in a stream.
UNTYPED = {
    "python03": ["HTTP Error 500", "ParseError"],
    "rust": ["SSE parse error"],
}


def routes(route, stub, gone, hello):
    """The routes that the situations need."""
    return {
        "small": route(hello, ["limits: {body: 1KiB}"]),
        "gone": route(gone, **stub_at("slow")),
        "slow": route(stub, ["limits: {unary_timeout: 1s, idle_stream: 1s}"], **stub_at("slow")),
        "malformed": route(stub, **stub_at("malformed")),
    }


def stub_at(role):
    """Where the stub agent has a role."""
    return {"below": f"/{role}", "paths": (f"/{role}/rpc", f"/{role}/rest")}


class Situations:
    """All of them, for one client in one version and binding."""

    def __init__(self, gateway, stub, hello, table, report, token):
        self.gateway, self.stub, self.hello = gateway, stub, hello
        self.table, self.report, self.token = table, report, token
        # Calls for which the journal has an intent, and refusals.
        self.calls = self.refused = 0

    def run(self, client, version, binding):
        base, limited = self.gateway.base, f"{self.stub.url}/limited"
        hello = Pair(self.hello, client, version, binding, self.report)
        stub = Pair(self.stub, client, version, binding, self.report)
        for streaming in (False, True):
            self.one("413", hello, base("small"), send(LONG, streaming), (0, 0))
            self.one("429", stub, limited, send("hi", streaming), (1, 0), own=False)
            self.one("502", stub, base("gone"), send("hi", streaming), (0, 0), intent=True)

    def slow(self, clients):
        """504 for everybody at once, since each takes as long as the gateway waits.

        `clients` are lists of (client, version, binding), by client.
        """
        before = self.stub.counters()[0]
        with ThreadPoolExecutor(len(clients)) as pool:
            told = [one for answers in pool.map(self.wait, clients) for one in answers]
        self.calls += len(told)
        for pair, mode, answer in told:
            self.table.note(pair, f"504: {mode}", answer.get("error"))
            problems = [] if answer.get("error") else [f"it worked: {answer}"]
            name = f"{pair.client.name} client, {pair.binding} {pair.version}: 504, {mode}"
            self.report.check(name, problems)
        counted = self.stub.counters()[0] - before
        wrong = [] if counted == len(told) else [f"{counted} calls reached it, not {len(told)}"]
        self.report.check("504: every call reached the agent once", wrong, str(counted))

    def wait(self, ways):
        answers = []
        for client, version, binding in ways:
            pair = Pair(self.stub, client, version, binding, self.report)
            for streaming, mode in ((False, "send"), (True, "send, streaming")):
                order = {"base": self.gateway.base("slow"), "version": version, "binding": binding}
                order |= {"token": self.token, **send("hi", streaming)}
                answers.append((pair, mode, client.ask(order)))
        return answers

    def malformed(self, client, version, binding):
        """A malformed reply reaches no client: each gets the same A2A error."""
        pair = Pair(self.stub, client, version, binding, self.report)
        for text, streaming in MALFORMED:
            order, what = send(text, streaming), f"malformed, {text}"
            self.one(f"{what}, directly", pair, f"{self.stub.url}/malformed", order, own=False)
            base = self.gateway.base("malformed")
            like = TYPED + (UNTYPED.get(client.name, []) if binding == "HTTP+JSON" else [])
            self.one(what, pair, base, order, (1, 0), intent=True, like=like)

    def one(self, what, pair, base, order, counted=None, own=True, intent=False, like=()):
        """One call that must come out as an error. `own`: it goes through the gateway."""
        answer, seen = pair.ask(base, order, self.token)
        if own:
            self.calls += intent
            self.refused += not intent
        mode = order["do"] + (", streaming" if order["streaming"] else "")
        error = answer.get("error")
        self.table.note(pair, f"{what}: {mode}", error)
        if counted is None:
            return
        problems = [] if error else [f"it worked: {answer}"]
        text = error and f"{error['type']}: {error['text']}"
        if error and like and not any(word in text for word in like):
            problems.append(f"`{text}` says none of {like}")
        if seen != counted:
            problems.append(f"the agent counted {seen}")
        name = f"{pair.client.name} client, {pair.binding} {pair.version}: {what}, {mode}"
        self.report.check(name, problems, f"{seen[0]}/{seen[1]}")
