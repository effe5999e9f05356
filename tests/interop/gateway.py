"""The gateway of the interop run, as a user runs it: the program, a gateway file, an issuer."""

import contextlib
import json
import socket
import subprocess
import urllib.error
from dataclasses import dataclass, field

from parts import CLEAN, DIRECT, PATIENCE, Agent, Broken, Process, until
from peers import HOOK_HOST

ISSUER, AUDIENCE = "https://issuer.interop.invalid", "https://agents.interop.invalid"
POLICY = f"""\
version: 1
policy: interop
rules:
  - id: reviewers-say-hello
    allow: {{agents: any, operations: [messages], skills: [hello], issuers: any}}
    grant: agent
    require: {{role: {{equals: reviewer}}}}
  - id: own-tasks
    allow: {{agents: any, operations: [tasks, push, list, card], issuers: any}}
    grant: agent
webhooks:
  allow: [{{agents: any, host: "{HOOK_HOST}"}}]
"""


def free_ports(count):
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def interfaces(route, rpc):
    """An agent's interfaces as the gateway file lists them: gRPC has a port of its own."""
    versions = ", ".join(f'"{version}"' for version in route.versions)
    places = [
        ("JSONRPC", route.paths[0], f", public_path: {route.paths[0]}"),
        ("HTTP+JSON", route.paths[1], f", public_path: {route.paths[1]}"),
        ("GRPC", f"http://{route.agent.rpc}", ""),
    ]
    return ", ".join(
        f'{{binding: {binding}, version: [{versions}], backend: "{backend}"{public}}}'
        for binding, backend, public in places
        if rpc or binding != "GRPC"
    )


@dataclass
class Route:
    """One agent as the gateway file has it; several routes may lead to one agent."""

    agent: Agent
    # More members of the agent's entry, as lines of YAML.
    more: list = field(default_factory=list)
    skills: list = field(default_factory=lambda: ["hello"])
    versions: list = field(default_factory=lambda: ["1.0", "0.3"])
    # Paths of JSON-RPC and REST.
    paths: tuple = ("/a2a/jsonrpc", "/a2a/rest")
    # The backend's base path.
    below: str = ""
    # More members of `backend`.
    backend: str = ""


class Gateway(Process):
    """The gateway in front of every route; `port` is its first one, where that must be known."""

    def __init__(self, program, folder, routes, rpc=True, port=None):
        super().__init__("gateway", [program], folder / "gateway.log")
        self.program, self.folder, self.routes = program, folder, routes
        self.file, self.journal = folder / "gateway.yaml", folder / "journal"
        self.minted, self.serves_rpc, self.port = [], rpc, port
        # By route: the address of its gRPC listener.
        self.targets = {}

    def __enter__(self):
        (self.folder / "policy.yaml").write_text(POLICY)
        issuer = self.keygen("keys")
        self.keygen("strange")
        # Another process may take a port between our look and the gateway's own bind.
        for _ in range(5):
            port, *ports = free_ports(1 + len(self.routes))
            if self.serves_rpc:
                self.targets = {name: f"localhost:{p}" for name, p in zip(self.routes, ports)}
            port = self.port or port
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
        listeners = f"  - {{name: public, bind: '127.0.0.1:{port}', public_url: '{self.origin}'}}\n"
        listeners += "".join(
            f"  - {{name: rpc-{name}, bind: '127.0.0.1:{target.split(':')[1]}', "
            f"public_url: 'http://{target}', h2c: true}}\n"
            for name, target in self.targets.items()
        )
        agents = "".join(
            f"""\
  - name: {name}
    route: {{path: /agents/{name}}}
    publish: true
    backend: {{url: "{route.agent.url}{route.below}"{route.backend}}}
    interfaces: [{interfaces(route, self.serves_rpc)}]
{f"    grpc: {{listener: rpc-{name}}}" if self.serves_rpc else ""}
    skills: [{', '.join(route.skills)}]
    skill_default: hello
    sign: true
"""
            + "".join(f"    {line}\n" for line in route.more)
            for name, route in self.routes.items()
        )
        # `localhost` outside and 127.0.0.1 behind: an agent's address in a card cannot hide.
        return f"""\
version: 1
listeners:
{listeners}admin: {{bind: "127.0.0.1:0"}}
{issuer}    leeway: 0s
    claims: {{role: {{path: [role], type: string}}}}
agents:
{agents}policies: {{files: [policy.yaml], names: [interop]}}
audit: {{journal: {{dir: journal}}}}
keys: {{dir: made-keys}}
"""

    def standing(self):
        """True when it serves every card, False when it ended instead."""
        if self.child.poll() is not None:
            return False
        try:
            for name in self.routes:
                DIRECT.open(self.base(name) + "/.well-known/agent-card.json", timeout=5).close()
        except (urllib.error.URLError, OSError):
            return None
        return True

    def base(self, name):
        """Below this an agent's card is found."""
        return f"{self.origin}/agents/{name}"

    def rpc(self, name):
        """Where an agent's gRPC interface is."""
        return self.targets.get(name)

    def owns(self, name, url):
        """Whether a card's URL is one of ours."""
        return url.startswith(self.base(name)) or url == self.targets.get(name)

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
