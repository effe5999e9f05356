"""The processes of the interop run: agents and clients; the gateway is in gateway.py.

Each is a context manager that stops what it started, and waits on conditions for a bounded time.
"""

import contextlib
import http.client
import json
import os
import select
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

PATIENCE = 30.0

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
    """A child that talks in lines of JSON on its standard output.

    `overlay` is a folder of Python packages that come before all others.
    """

    def __init__(self, name, command, log, overlay=None):
        self.name, self.command, self.log = name, [str(c) for c in command], Path(log)
        self.env = {**CLEAN, "PYTHONPATH": str(overlay)} if overlay else CLEAN
        self.child, self.rest = None, b""

    def __enter__(self):
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.env,
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
    """A hello-world agent with counters and a log of its own."""

    def __enter__(self):
        super().__enter__()
        try:
            said = self.line()
        except BaseException:
            self.stop()
            raise
        self.address, self.rpc = f"127.0.0.1:{said['port']}", f"127.0.0.1:{said['grpc']}"
        host, port = self.address.split(":")
        self.pages = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        return self

    @property
    def url(self):
        return f"http://{self.address}"

    def page(self, path):
        """A page of its own as JSON, over one kept connection."""
        for last in (False, True):
            try:
                self.pages.request("GET", path)
                return json.load(self.pages.getresponse())
            except (OSError, http.client.HTTPException):
                # It may have closed the connection in the meantime.
                self.pages.close()
                if last:
                    raise
        return None

    def counters(self):
        """Requests and executions so far."""
        counters = self.page("/counters")
        return counters["requests"], counters["executions"]

    def executions(self, after=10**9):
        """Requests so far, the length of the log of what it was told to act on, and the log's
        entries after its first ones."""
        page = self.page(f"/executions?after={after}")
        return page["requests"], page["noted"], page["entries"]


class Client(Process):
    """An SDK's client that obeys orders; see tests/agents/python/client_check.py."""

    def ask(self, order):
        self.child.stdin.write(json.dumps(order).encode() + b"\n")
        self.child.stdin.flush()
        return self.line()
