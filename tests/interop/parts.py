"""The processes of the interop run: agents, clients, the gateway and its issuer.

Each is a context manager that stops what it started, and waits on conditions for a bounded time.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

PATIENCE = 30.0
ISSUER, AUDIENCE = "https://issuer.interop.invalid", "https://agents.interop.invalid"
POLICY = """\
version: 1
policy: interop
rules:
  - id: reviewers-say-hello
    allow: {agents: any, operations: [messages], skills: [hello], issuers: any}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: own-tasks
    allow: {agents: any, operations: [tasks], issuers: any}
    grant: agent
"""

# Loopback only: whatever proxy the surroundings name is not meant.
CLEAN = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Broken(Exception):
    """The run itself cannot go on."""


def until(what, condition):
    """Waits until `condition` gives something, and gives that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if (found := condition()) is not None:
            return found
        time.sleep(0.02)
    raise Broken(f"waited {PATIENCE:.0f} s in vain: {what}")


class Process:
    """A child that talks in lines of JSON on its standard output."""

    def __init__(self, name, command, log):
        self.name, self.command, self.log = name, [str(c) for c in command], Path(log)
        self.child, self.rest = None, b""

    def __enter__(self):
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=CLEAN,
                # The terminal's Ctrl-C is for us; we stop our children ourselves.
                start_new_session=True,
            )
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Its exit code, by SIGTERM, or by SIGKILL when it does not listen."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return self.child.returncode

    def line(self):
        """The next line of its output, read as JSON."""
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))
            piece = os.read(self.child.stdout.fileno(), 65536) if ready else b""
            if not piece:
                why = "ended" if ready else f"is silent for {PATIENCE:.0f} s"
                raise Broken(f"the {self.name} {why}:\n{self.log.read_text()[-2000:]}")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)


class Agent(Process):
    """A hello-world agent with counters of its own."""

    def __enter__(self):
        super().__enter__()
        try:
            self.address = f"127.0.0.1:{self.line()['port']}"
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def url(self):
        return f"http://{self.address}"

    def counters(self):
        """Requests and executions so far."""
        with DIRECT.open(f"{self.url}/counters", timeout=PATIENCE) as answer:
            counters = json.load(answer)
        return counters["requests"], counters["executions"]


class Client(Process):
    """An SDK's client that obeys orders; see tests/agents/python/client_check.py."""

    def ask(self, order):
        self.child.stdin.write(json.dumps(order).encode() + b"\n")
        self.child.stdin.flush()
        return self.line()


class Gateway(Process):
    """The gateway as a user runs it: the program, a gateway file, a development issuer."""

    def __init__(self, program, folder, agents):
        super().__init__("gateway", [program], folder / "gateway.log")
        self.program, self.folder, self.agents = program, folder, agents
        self.file, self.journal = folder / "gateway.yaml", folder / "journal"
        self.minted = []

    def __enter__(self):
        (self.folder / "policy.yaml").write_text(POLICY)
        issuer = self.keygen("keys")
        self.keygen("strange")
        # Another process may take a port between our look and the gateway's own bind.
        for _ in range(5):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            self.origin = f"http://localhost:{port}"
            self.file.write_text(self.configuration(port, issuer))
            self.command = [self.program, "run", "--config", self.file, "--grace", "5"]
            super().__enter__()
            try:
                if until("the gateway has every card", self.standing):
                    return self
            except BaseException:
                super().stop()
                raise
            super().stop()
        raise Broken(f"the gateway does not start:\n{self.log.read_text()[-3000:]}")

    def configuration(self, port, issuer):
        agents = "".join(
            f"""\
  - name: {name}
    route: {{path: /agents/{name}}}
    publish: true
    backend: {{url: "{agent.url}"}}
    skills: [hello]
    skill_default: hello
    deny_status: {status}
"""
            for name, (agent, status) in self.agents.items()
        )
        # `localhost` outside and 127.0.0.1 behind: an agent's address in a card cannot hide.
        return f"""\
version: 1
listeners: [{{name: public, bind: "127.0.0.1:{port}", public_url: "{self.origin}"}}]
admin: {{bind: "127.0.0.1:0"}}
{issuer}    leeway: 0s
    claims: {{role: {{path: [role], type: string}}}}
agents:
{agents}policies: {{files: [policy.yaml], names: [interop]}}
audit: {{journal: {{dir: journal}}}}
"""

    def standing(self):
        """True when it serves every card, False when it ended instead."""
        if self.child.poll() is not None:
            return False
        try:
            for name in self.agents:
                DIRECT.open(self.base(name) + "/.well-known/agent-card.json", timeout=5).close()
        except (urllib.error.URLError, OSError):
            return None
        return True

    def base(self, name):
        """Below this an agent's card is found."""
        return f"{self.origin}/agents/{name}"

    def tool(self, *arguments):
        done = subprocess.run(
            [str(a) for a in (self.program, "token", *arguments)],
            capture_output=True, text=True, timeout=PATIENCE, env=CLEAN, check=False,
        )
        if done.returncode != 0:
            raise Broken(f"`portcullis token {arguments[0]}` failed:\n{done.stderr}")
        return done.stdout

    def keygen(self, name):
        return self.tool(
            "keygen", "--out", self.folder / name, "--issuer", ISSUER, "--audience", AUDIENCE
        )

    def token(self, subject, role="reviewer", ttl="1h", keys="keys"):
        key = self.folder / keys / "dev.private.pem"
        token = self.tool(
            "mint", "--key", key, "--config", self.file, "--sub", subject,
            "--claim", f"role={role}", "--grant", "agent", "--ttl", ttl,
        ).strip()
        self.minted.append(token)
        return token

    def records(self):
        """Every record of the journal, as text and as values."""
        texts = [path.read_text() for path in sorted(self.journal.glob("*.jsonl"))]
        return "".join(texts), [json.loads(line) for text in texts for line in text.splitlines()]
