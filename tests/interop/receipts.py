"""Agents that take calls by the gateway's assertion only, and what their receipts say."""

import json
import shutil
import subprocess
from pathlib import Path

from gateway import Gateway, Route, free_ports
from parts import CLEAN, DIRECT, Agent, Client
from peers import Pair

ROOT = Path(__file__).parents[2]
# The bindings that an agent's receipts cover.
COVERED = {"python": ["JSONRPC", "HTTP+JSON", "GRPC"], "js": ["JSONRPC", "HTTP+JSON", "GRPC"]}
VERSIONS = {"python": ["1.0", "0.3"], "js": ["1.0"]}


def receipts_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def play(arguments, folder, report, stack):
    """Calls through the gateway pass, calls past it are refused, and both logs name the same."""
    folder = folder / "receipts"
    folder.mkdir()
    # The agents must know where the gateway is before it starts.
    port = free_ports(1)[0]
    origin = f"http://localhost:{port}"
    scripts = ROOT / "tests" / "agents"
    programs = {"python": [arguments.python, scripts / "python" / "hello_agent.py"]}
    if arguments.js:
        beside = arguments.js / "node_modules" / ".portcullis"
        beside.mkdir(exist_ok=True)
        for file in ("receipts.mjs", "receipts_grpc.mjs"):
            shutil.copy(ROOT / "deploy" / "receipts" / file, beside)
        programs["js"] = ["node", arguments.js / "hello_agent.mjs"]
    agents, logs = {}, {}
    for name, command in programs.items():
        logs[name] = folder / f"{name}.jsonl"
        command = [*command, "--receipts", origin, name, logs[name]]
        agents[name] = stack.enter_context(Agent(name, command, folder / f"{name}.log"))
    routes = {
        name: Route(agent, versions=VERSIONS[name], backend=", identity: assertion")
        for name, agent in agents.items()
    }
    gateway = stack.enter_context(Gateway(arguments.gateway, folder, routes, port=port))
    client = [arguments.python, scripts / "python" / "client_check.py"]
    client = stack.enter_context(Client("python", client, folder / "client.log"))
    alice, guest = gateway.token("alice"), gateway.token("mallory", role="guest")
    for name, agent in agents.items():
        for binding in COVERED[name]:
            for version in VERSIONS[name]:
                pair = Pair(agent, client, version, binding, report)
                through(report, pair, gateway.base(name), alice, guest)
                past(report, pair)
    keys = folder / "jwks.json"
    with DIRECT.open(f"{origin}/.well-known/jwks.json") as answer:
        keys.write_bytes(answer.read())
    gateway.stop()
    _, records = gateway.records()
    for name, log in logs.items():
        same(report, name, receipts_of(log), records)
    for name, agent in agents.items():
        forged(report, arguments, folder, agent, name, origin)
    for name, command in programs.items():
        log = folder / f"{name}-lenient.jsonl"
        command = [*command, "--receipts", origin, name, log, keys, "log"]
        with Agent(f"lenient {name}", command, folder / f"{name}-lenient.log") as agent:
            lenient(report, Pair(agent, client, "1.0", "JSONRPC", report), name, log)


def through(report, pair, base, token, guest):
    told = pair.story(base, token)
    wrong = [
        f"{step.name}: {problem}"
        for step, (_, _, problems) in told.items()
        # What fails without a gateway is not ours to mend.
        for problem in problems
        if not fails_directly(pair, step, problem)
    ]
    report.check(f"receipts, {pair.name}: through the gateway", wrong, f"{len(told)} steps")
    order = {"do": "send", "text": "hi", "streaming": False}
    answer, counted = pair.ask(base, order, guest)
    wrong = [] if answer.get("error") and counted == (0, 0) else [f"{answer}, {counted}"]
    report.check(f"receipts, {pair.name}: refused by the gateway", wrong)


def fails_directly(pair, step, problem):
    from known import FAILS_DIRECTLY

    known = FAILS_DIRECTLY.get((*pair.key, step.name))
    return known is not None and known in problem


def past(report, pair):
    """Straight to the agent: the card is there, and nothing is executed."""
    for streaming in (False, True):
        order = {"do": "send", "text": "hi", "streaming": streaming}
        answer, counted = pair.ask(pair.agent.url, order)
        wrong = [] if answer.get("error") and counted[1] == 0 else [f"{answer}, {counted}"]
        how = "stream" if streaming else "unary"
        report.check(f"receipts, {pair.name}: past the gateway, {how}", wrong)


def same(report, name, receipts, records):
    """The receipts name exactly the calls that the journal has intents of."""
    intents = {r["request_id"]: r for r in records if r["kind"] == "intent" and r["agent"] == name}
    found = {receipt["request_id"] for receipt in receipts}
    wrong = []
    if found != set(intents):
        wrong.append(f"{len(found - set(intents))} theirs only, {len(set(intents) - found)} ours only")
    if not intents:
        wrong.append("no intent")
    refused = {r["request_id"] for r in records if r["kind"] == "refusal"}
    if not refused or refused & found:
        wrong.append("no refusal, or a receipt for one")
    for receipt in receipts:
        intent = intents.get(receipt["request_id"], {})
        said = (
            receipt["assertion"], receipt["sub"], receipt["aud"], receipt["rule"], receipt.get("skill")
        )
        recorded = (
            "valid", intent["caller"]["subject"], name, intent["decision"]["rule"],
            (intent.get("skill") or {}).get("id"),
        )
        if said != recorded:
            wrong.append(f"{said}, not {recorded}")
    report.check(f"receipts of {name}: the journal's intents", wrong, f"{len(found)} calls")


def lenient(report, pair, name, log):
    """An agent that refuses nothing yet writes down who came without the gateway."""
    answer, counted = pair.ask(pair.agent.url, {"do": "send", "text": "hi", "streaming": False})
    said = [(r["assertion"], r["request_id"], r["path"]) for r in receipts_of(log)]
    wrong = [] if "error" not in answer and counted == (1, 1) else [f"{answer}, {counted}"]
    if said != [("no assertion", None, "/a2a/jsonrpc")]:
        wrong.append(f"{said}")
    report.check(f"receipts, {name} agent that only writes them", wrong)


def forged(report, arguments, folder, agent, name, origin):
    """The agent alone: every assertion that is not ours, or not for this request, is refused."""
    key = folder / "made-keys" / "assertion.pem"
    script = Path(__file__).parent / "forged.py"
    words = [arguments.python, script, key, agent.url, name, origin, agent.rpc]
    before = agent.counters()[1]
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=CLEAN, check=False
    )
    answers = json.loads(done.stdout) if done.returncode == 0 else {}
    wrong = [done.stderr[-500:]] if not answers else []
    wrong += [f"{what}: {got}, not {want}" for what, (got, want) in answers.items() if got != want]
    good = sum(want in (200, "OK") for _, want in answers.values())
    executed = agent.counters()[1] - before
    if executed != good:
        wrong.append(f"{executed} executions for {good} good ones")
    report.check(f"receipts, {name} agent: forged assertions", wrong, f"{len(answers)} requests")
