"""The gateway of the interop run, as a user runs it: the program, a gateway file, an issuer."""

import json
import socket
import subprocess
import urllib.error
from dataclasses import dataclass, field

from parts import CLEAN, DIRECT, PATIENCE, Agent, Broken, Process, until

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


@dataclass
class Route:
    """One agent as the gateway file has it; several routes may lead to one agent."""

    agent: Agent
    # More members of the agent's entry, as lines of YAML.
    more: list = field(default_factory=list)
    skills: list = field(default_factory=lambda: ["hello"])
    # The backend's base path.
    below: str = ""


class Gateway(Process):
    """The gateway in front of every route."""

    def __init__(self, program, folder, routes):
        super().__init__("gateway", [program], folder / "gateway.log")
        self.program, self.folder, self.routes = program, folder, routes
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
    backend: {{url: "{route.agent.url}{route.below}"}}
    skills: [{', '.join(route.skills)}]
    skill_default: hello
"""
            + "".join(f"    {line}\n" for line in route.more)
            for name, route in self.routes.items()
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
            for name in self.routes:
                DIRECT.open(self.base(name) + "/.well-known/agent-card.json", timeout=5).close()
        except (urllib.error.URLError, OSError):
            return None
        return True

    def base(self, name):
        """Below this an agent's card is found."""
        return f"{self.origin}/agents/{name}"

    def owns(self, name, url):
        """Whether a card's URL is one of ours."""
        return url.startswith(self.base(name))

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
