"""Drives gateways and a real Prometheus through everything that the alerts are about.

Prometheus scrapes twice a second. The rules are those of deploy/dashboards with shorter times: a
minute is a second (`5m` becomes `5s`), and where a number of seconds is written as minutes
(`45 * 60`) a minute is two, so that keys which are fetched every minute are not old.
"""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import picture
from world import Agent, Caller, Collector, Gateway, refused, texts, url

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DASHBOARDS = os.path.join(ROOT, "deploy", "dashboards")
QUIET = 20
DEADLINE = 170
# What no cause can be made for, since the gateway has no way to do it. A scrape target that says so
# stands for it.
STAND_INS = ["portcullis_refused_reached_total"]
# More than a gateway keeps for a device that takes none.
TOO_MANY = 10_500

POLICY = """version: 1
policy: desk
rules:
{hello}  - id: reviewers-review
    allow: {{agents: [desk], operations: [messages], skills: [review], issuers: [good]}}
    grant: agent
    require: {{role: {{equals: reviewer}}}}
  - id: tasks
    allow: {{agents: [desk], operations: [tasks], issuers: [good]}}
    grant: agent
  - id: no-suspended-accounts
    deny: {{agents: [desk], operations: [messages], skills: [review]}}
    when: {{employment: {{equals: suspended}}}}
"""
HELLO = """  - id: hello-for-all
    allow: {agents: [desk], operations: [messages], skills: [hello], issuers: [good]}
    grant: agent
"""
SHADOW = """  - id: tomorrow
    mode: shadow
    until: 2099-01-01
    deny: {agents: [desk], operations: [messages], skills: [hello]}
    unless: {role: {equals: reviewer}}
"""


def gateway_yaml(agent, keys, collector, journal):
    def issuer(name, keys):
        return f"""  - name: {name}
    issuer: https://{name}.test
    audiences: [https://gateway.test]
    keys: {{url: "{keys}", loopback: true, refresh: 60s}}
    grants: [{{path: [scope], form: space_string, map: {{a2a.agent: agent}}}}]
    claims: {{role: {{path: [role], type: string}}, employment: {{path: [employment], type: string}}}}
    development: true
"""
    return f"""version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://localhost}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{issuer("good", keys["good"])}{issuer("gone", keys["gone"])}agents:
  - name: desk
    route: {{path: /agents/desk}}
    backend: {{url: "{agent}"}}
    skills: [hello, review]
    skill_from: [{{metadata: skillId}}]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{{journal}, checkpoint_every: 2s}}}}
telemetry: {{otlp: {{endpoint: "{collector}", logs: true}}}}
"""


class Load(threading.Thread):
    """About forty calls a second, of every kind."""

    def __init__(self, port, tokens):
        super().__init__(daemon=True)
        self.caller, self.tokens, self.stopped = Caller(port), tokens, False
        self.crashes = self.unknowns = False

    def run(self):
        call, token = self.caller.call, self.tokens
        while not self.stopped:
            for _ in range(10):
                call(token["author"])
                time.sleep(0.01)
            call(token["reviewer"], skill="review")
            call(token["reviewer"], task=self.caller.last_task, method="GetTask")
            call(token["reviewer"], method="SendStreamingMessage", skill="review")
            call(token["reviewer"], skill="review")
            call(token["author"], skill="review")
            call("nonsense")
            if self.crashes:
                call(token["reviewer"], skill="review", text="crash")
            if self.unknowns:
                for _ in range(3):
                    call(token["unknown"], skill="review")
            time.sleep(0.1)


class Prometheus:
    def __init__(self, folder, targets, beside):
        os.makedirs(folder)
        for name in ("recording.yml", "alerts.yml"):
            text = open(os.path.join(DASHBOARDS, name)).read()
            with open(os.path.join(folder, name), "w") as file:
                file.write(shorter(text))
        with open(os.path.join(folder, "prometheus.yml"), "w") as file:
            json.dump({
                "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
                "rule_files": ["recording.yml", "alerts.yml"],
                "scrape_configs": [
                    {"job_name": "portcullis", "static_configs": [{"targets": targets}]},
                    {"job_name": "beside", "static_configs": [{"targets": [beside]}]}],
            }, file)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = open(os.path.join(folder, "log"), "w")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file", os.path.join(folder, "prometheus.yml"),
             "--storage.tsdb.path", os.path.join(folder, "data"),
             "--web.listen-address", f"127.0.0.1:{self.port}"],
            stdout=self.log, stderr=self.log)

    def ask(self, path, **query):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            answer = json.load(urllib.request.urlopen(address, timeout=10))
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # It is still starting.
            answer = json.load(error)
        except OSError:
            return None
        assert answer["status"] == "success", (query, answer)
        return answer["data"]

    def over(self, expression, began, step=0.5):
        """Every series that there was since `began`."""
        found = self.ask("query_range", query=expression, start=began, end=time.time(), step=step)
        return found["result"]

    def knows(self, targets):
        """Waits until each target was scraped: before that, what is old would look new."""
        until = time.time() + 60
        while time.time() < until:
            up = (self.ask("query", query="up == 1") or {"result": []})["result"]
            if {s["metric"]["instance"] for s in up} >= set(targets):
                return
            time.sleep(0.2)
        raise SystemExit("Prometheus scraped nothing:\n" + open(self.log.name).read())

    def firing(self):
        alerts = (self.ask("alerts") or {"alerts": []})["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}


def shorter(text):
    text = re.sub(r"\b(\d+)h\b", lambda m: f"{int(m[1]) * 60}s", text)
    text = re.sub(r"\b(\d+)m\b", r"\1s", text)
    return text.replace("* 60", "* 2")


def queries():
    """Every query of the dashboard, with its place."""
    board = json.load(open(os.path.join(DASHBOARDS, "portcullis.json")))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield f"panel `{panel['title']}`", target["expr"]
    for note in board["annotations"]["list"]:
        yield f"annotation `{note['name']}`", note["expr"]


def names(kind):
    text = "".join(open(os.path.join(DASHBOARDS, f)).read() for f in ("recording.yml", "alerts.yml"))
    return re.findall(rf"^ *- {kind}: (\S+)$", text, re.M)


def full_device(folder):
    """A small file system; `None` where this user may not mount one."""
    os.makedirs(folder)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder],
                          capture_output=True)
    return folder if made.returncode == 0 else None


def fill(folder):
    with open(os.path.join(folder, "ballast"), "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass


def main():
    program = os.path.abspath(sys.argv[1])
    folder = tempfile.mkdtemp(prefix="portcullis-dashboards-")
    device, stops, began, failures = None, [], time.time(), []
    at = lambda *name: os.path.join(folder, *name)
    say = lambda text: print(f"{time.time() - began:6.1f} s  {text}", flush=True)
    try:
        for name in ("good", "gone"):
            subprocess.run([program, "token", "keygen", "--out", at(name)], check=True,
                           capture_output=True)
        agent, collector = Agent(at("receipts.jsonl")), Collector()
        good = texts({"/keys.json": [at("good", "jwks.json")]})
        gone = texts({"/keys.json": [at("gone", "jwks.json")]})
        beside = texts({"/metrics": [at("reconcile.prom"), at("stand-in.prom")]})
        stand_in = lambda value: open(at("stand-in.prom"), "w").write(
            "".join(f'# TYPE {n} counter\n{n}{{agent="stand-in"}} {value}\n' for n in STAND_INS))
        stand_in(0)
        keys = {"good": url(good, "/keys.json"), "gone": url(gone, "/keys.json")}
        device = full_device(at("device"))
        policy = POLICY.format(hello=HELLO + SHADOW)

        def gateway(name, journal):
            made = Gateway(program, at(name), gateway_yaml(url(agent.server), keys, url(collector.server), journal))
            made.put("policy.yaml", policy)
            stops.append(made.start().stop)
            return made

        first = gateway("first", f"dir: {at('journal')}")
        where = os.path.join(device, "journal") if device else at("journal-2")
        second = gateway("second", f"dir: {where}, segment_bytes: 64KiB")
        tokens = {}
        for name, claims in {"reviewer": ["role=reviewer", "employment=active"],
                             "author": ["role=author", "employment=active"],
                             "unknown": ["role=reviewer"]}.items():
            claims = [part for claim in claims for part in ("--claim", claim)]
            minted = subprocess.run(
                [program, "token", "mint", "--key", at("good", "dev.private.pem"), "--config",
                 at("first", "gateway.yaml"), "--issuer-name", "good", "--sub", name,
                 "--grant", "agent", *claims], capture_output=True, text=True)
            tokens[name] = minted.stdout.strip()
            assert minted.returncode == 0, minted.stderr
        targets = [f"127.0.0.1:{g.admin}" for g in (first, second)]
        prometheus = Prometheus(at("prometheus"), targets, url(beside)[len("http://"):])
        stops.append(prometheus.process.terminate)
        prometheus.knows(targets)
        load, other = Load(first.public, tokens), Load(second.public, tokens)
        load.start()
        other.start()

        # Nothing is wrong.
        began = time.time()
        early = set()
        while time.time() < began + QUIET:
            reconcile(program, at)
            early |= prometheus.firing()
            time.sleep(1)
        early |= prometheus.firing()
        if early:
            failures.append(f"fired without a cause: {sorted(early)}")
        say("nothing fires while nothing is wrong")

        # Everything is.
        gone.shutdown()
        gone.server_close()
        load.crashes = load.unknowns = True
        collector.status = 400
        stand_in(1)
        first.put("policy.yaml", POLICY.format(hello=SHADOW))
        first.reaches("portcullis_generation 2")
        if device:
            fill(device)
            flood = threading.Thread(
                target=refused, args=(second.public, tokens["author"], TOO_MANY), daemon=True)
            flood.start()
        status, denied = Caller(first.public).call(tokens["author"], skill="review")
        assert status == 403, status
        # Somebody walks around the gateway, once with the id of a refused call.
        Caller(agent.server.server_address[1], "/a2a").call(None)
        direct = http.client.HTTPConnection("127.0.0.1", agent.server.server_address[1])
        call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
        direct.request("POST", "/a2a", json.dumps(call), {"Portcullis-Request-Id": denied})
        direct.getresponse().read()
        wanted = set(names("alert"))
        unmade = set() if device else {
            "PortcullisJournalBlocked", "PortcullisCheckpointOld", "PortcullisRecordsLost"}
        for name in sorted(unmade):
            print(f"skipped: {name} (only root may mount a device that can be filled)")
        seen, broken = set(), False
        while wanted - unmade - seen and time.time() < began + DEADLINE:
            for name in sorted(prometheus.firing() - seen):
                say(f"{name} fires")
                seen.add(name)
            reconcile(program, at)
            if "PortcullisExportDropping" in seen:
                collector.status = 503
            if "PortcullisRefusalsTripled" in seen and not broken:
                broken = True
                first.put("policy.yaml", "version: 1\npolicy: desk\nrules: nonsense\n")
            time.sleep(1)
        if wanted - unmade - seen:
            failures.append(f"never fired: {sorted(wanted - unmade - seen)}")

        checked = 0
        for place, expression in queries():
            expression = expression.replace("$__rate_interval", "5s").replace("$agent", ".*")
            checked += 1
            if not prometheus.over(shorter(expression), began):
                failures.append(f"no data: {place}: {expression}")
        for name in names("record"):
            checked += 1
            if not prometheus.over(name, began):
                failures.append(f"no data: recorded `{name}`")
        say(f"{checked} queries asked")
        failures += table(first.get("/metrics"))
        if "--picture" in sys.argv:
            drawn = picture.overview(prometheus, began)
            open(os.path.join(DASHBOARDS, "overview.svg"), "w").write(drawn)
            say("drew deploy/dashboards/overview.svg")
        load.stopped = other.stopped = True
    finally:
        for stop in reversed(stops):
            stop()
        if device:
            subprocess.run(["umount", "-l", device], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    for failure in failures:
        print("failed:", failure)
    print(f"dashboards: {len(failures)} failures")
    sys.exit(bool(failures))


def reconcile(program, at):
    """The numbers of `audit reconcile` as Prometheus' textfile collector would show them."""
    # Calls of the last moments may be in one of the two only.
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))
    done = subprocess.run(
        [program, "audit", "reconcile", *journals(at), "--until", until, "--backend-log", at("receipts.jsonl"),
         "--agent", "desk", "--prometheus", at("reconcile.prom")], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode


def journals(at):
    places = [at("journal"), at("journal-2"), at("device", "journal")]
    return [part for place in places if os.path.isdir(place) for part in ("--journal", place)]


def table(metrics):
    """README's table of metrics names what is exposed, with its labels, and nothing else."""
    exposed = {}
    for line in metrics.splitlines():
        kind = re.match(r"# TYPE (portcullis_\w+)", line)
        if kind:
            exposed.setdefault(kind[1], set())
            continue
        sample = re.match(r"(portcullis_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? ", line)
        if sample:
            name = max((n for n in exposed if line.startswith(n)), key=len)
            labels = re.findall(r'(\w+)="', sample[2] or "")
            exposed[name] |= {label for label in labels if label != "le"}
    told = {}
    for row in open(os.path.join(ROOT, "README.md")):
        cells = row.split("|")
        if row.startswith("| `portcullis_") and len(cells) > 3:
            labels = set(re.findall(r"`(\w+)`", cells[2].split(";")[0]))
            for name in re.findall(r"`(portcullis_\w+)`", cells[1]):
                told[name] = labels
    wrong = [f"README lacks `{name}` with {sorted(labels)}" for name, labels in exposed.items()
             if told.get(name) != labels]
    return wrong


if __name__ == "__main__":
    main()
