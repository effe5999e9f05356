"""Real agents and real clients, with the gateway between them and without it.

    interop.py GATEWAY_PROGRAM [--python PYTHON --python03 PYTHON --overlay FOLDER]
               [--js FOLDER] [--rust FOLDER_OF_PROGRAMS] [--only NAME]...

Every step is first done directly and then through the gateway; both must come out the same, so that
nothing fails through the gateway alone. The agents' own counters say what reached them. Prints one
line for every check, then what is worth reading; exits 0 only when all passed.
"""

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import receipts
import refusals
from differentials import Differentials
from gateway import Gateway, Route
from parts import CLEAN, DIRECT, Agent, Broken, Client, until
from peers import AGENTS, BINDINGS, CLIENTS, OLD_CLIENTS, Pair
from report import Report
from situations import Situations, routes as situation_routes

AGENTS_FOLDER = Path(__file__).parent.parent / "agents"
# What the gateway serves, and operations that it refuses.
THROUGH = ["JSONRPC", "HTTP+JSON", "GRPC"]
WITHOUT = ()


def commands(arguments):
    """Programs by name: agents and clients."""
    agents, clients = {}, {}
    if arguments.python:
        scripts = AGENTS_FOLDER / "python"
        agents["python"] = [arguments.python, scripts / "hello_agent.py"]
        clients["python"] = [arguments.python, scripts / "client_check.py"]
        agents["python03"] = [arguments.python03, scripts / "hello_agent_03.py"]
        clients["python03"] = [arguments.python03, scripts / "client_check_03.py"]
    if arguments.js:
        agents["js"] = ["node", arguments.js / "hello_agent.mjs"]
        agents["js-legacy"] = [*agents["js"], "--legacy"]
        clients["js"] = ["node", arguments.js / "client_check.mjs"]
    if arguments.rust:
        agents["rust"] = [arguments.rust / "hello_agent"]
        clients["rust"] = [arguments.rust / "client_check"]
    return agents, clients


def card(report, client, gateway, name, agent):
    """The card's interfaces are the gateway's, and no field holds an address of the agent."""
    answer = client.ask({"do": "card", "base": gateway.base(name)})
    wrong = [
        f"the card contains `{text}`"
        for text in (agent.address, *(a.split(":")[1] for a in (agent.address, agent.rpc)))
        if text in answer["raw"]
    ]
    if not answer["urls"]:
        wrong.append("no interface")
    wrong += [f"interface `{url}`" for url in answer["urls"] if not gateway.owns(name, url)]
    report.check(f"card of {name}, {client.name} client: only the gateway's address", wrong)


def signatures(report, arguments, gateway, names, folder):
    """Our signature on a card is good to the verifiers of both SDKs that have one."""
    keys, published = folder / "jwks.json", folder / "card.json"
    with DIRECT.open(f"{gateway.origin}/.well-known/jwks.json") as answer:
        keys.write_bytes(answer.read())
    verifiers = {"python": [arguments.python, Path(__file__).parent / "cards_py.py"]}
    if arguments.js:
        verifiers["js"] = ["node", arguments.js / "cards_js.mjs"]
    for name in names:
        with DIRECT.open(f"{gateway.base(name)}/.well-known/agent-card.json") as answer:
            card = json.load(answer)
        altered = {**card, "name": "Altered"}
        for verifier, command in verifiers.items():
            for what, document, code in (("signed", card, 0), ("altered", altered, 1)):
                published.write_text(json.dumps(document))
                words = [str(word) for word in (*command, published, keys)]
                done = subprocess.run(words, capture_output=True, text=True, env=CLEAN, check=False)
                wrong = [] if done.returncode == code else [done.stdout + done.stderr[-300:]]
                text = f"card of {name}, {what}: verified by the {verifier} SDK"
                report.check(text, wrong, done.stdout.strip()[:60])


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


def play(arguments, folder, report, stack):
    programs, client_programs = commands(arguments)
    agents, clients = {}, {}
    for name, command in programs.items():
        agents[name] = stack.enter_context(Agent(name, command, folder / f"{name}.log"))
    if arguments.overlay:
        # The last version before 1.3.0, laid over the newest one's packages.
        client_programs["python12"] = client_programs["python"]
    for name, command in client_programs.items():
        overlay = arguments.overlay if name == "python12" else None
        clients[name] = stack.enter_context(
            Client(name, command, folder / f"{name}.log", overlay)
        )
    rpc = None
    if arguments.python:
        raw = [arguments.python, AGENTS_FOLDER / "python" / "raw_rpc.py"]
        rpc = stack.enter_context(Client("raw gRPC", raw, folder / "raw.log"))
    # The same agents again, refusals told inside JSON-RPC: what Python clients show their users.
    routes = {name: Route(agent, versions=AGENTS[name]) for name, agent in agents.items()}
    told = ["deny_status: 200"]
    routes |= {
        f"{name}-told": Route(agent, told, versions=AGENTS[name]) for name, agent in agents.items()
    }
    strict = ["skill_from: [{metadata: skillId}]"]
    routes |= {
        f"{name}-strict": Route(agent, strict, ["hello", "review"], AGENTS[name])
        for name, agent in agents.items()
    }
    if "python" in agents:
        stub_command = [arguments.python, AGENTS_FOLDER / "python" / "stub_agent.py"]
        stub, away = (
            stack.enter_context(Agent(name, stub_command, folder / f"{name}.log"))
            for name in ("stub", "away")
        )
        routes |= situation_routes(Route, stub, away, agents["python"])
    gateway = stack.enter_context(Gateway(arguments.gateway, folder, routes, "GRPC" in THROUGH))
    alice, bob = gateway.token("alice"), gateway.token("bob")
    expired = gateway.token("alice", ttl="1s")
    gone = time.time() + 2
    table = refusals.Exceptions()
    bad = [
        ("401, no token", None, ["401", "authentication", "unauthenticated"]),
        ("403, wrong role", gateway.token("mallory", role="guest"), ["403", "not allowed"]),
        ("401, expired token", expired, ["401", "authentication", "unauthenticated"]),
        ("401, unknown key", gateway.token("alice", keys="strange"), ["401", "authentication"]),
    ]
    for client in clients.values():
        for name, agent in agents.items():
            if set(CLIENTS.get(client.name, ())) & set(AGENTS[name]):
                card(report, client, gateway, name, agent)
    if arguments.python:
        # 0.3 says not how a card is signed, so one that is of 0.3 alone is not.
        newer = [name for name in agents if "1.0" in AGENTS[name]]
        signatures(report, arguments, gateway, newer, folder)
    pairs = [
        Pair(agents[agent], clients[client], version, binding, report)
        for binding in BINDINGS
        for agent in agents
        for client in clients
        for version in AGENTS[agent]
        if version in CLIENTS.get(client, ())
    ]
    told = set()
    for pair in pairs:
        if pair.binding not in THROUGH:
            pair.direct()
            continue
        base = gateway.base(pair.agent.name)
        pair.both_ways(base, alice, WITHOUT)
        # What a client makes of refusals depends on no agent.
        if pair.key[1:] in told:
            continue
        told.add(pair.key[1:])
        until("the short token is over", lambda: True if time.time() > gone else None)
        refusals.bad_tokens(pair, base, bad, table)
        if pair.binding == "JSONRPC":
            wrong_role = [("403 told in 200, wrong role", bad[1][1], ["not allowed", refusals.OLD_SSE])]
            refusals.bad_tokens(pair, gateway.base(f"{pair.agent.name}-told"), wrong_role, table)
        refusals.somebody_elses(pair, base, alice, bob, table)
    situations = None
    if "python" in agents:
        away.stop()
        situations = Situations(gateway, stub, agents["python"], table, report, alice)
        ways = [
            [(c, v, b) for v in (CLIENTS | OLD_CLIENTS)[c.name] for b in THROUGH]
            for c in clients.values()
        ]
        situations.slow(ways)
        for way in (way for of_client in ways for way in of_client):
            situations.run(*way)
            # The replies of MALFORMED are JSON; gRPC's are told by the gateway's own tests.
            if way[2] != "GRPC":
                situations.malformed(*way)
    table.compare(report)
    differentials = Differentials(gateway, report, (alice, bob), rpc)
    for agent in agents.values():
        for binding in THROUGH:
            for version in AGENTS[agent.name]:
                if binding != "GRPC" or rpc:
                    differentials.run(agent, binding, version)
    code = gateway.stop()
    report.check("gateway: stops in order", [] if code == 0 else [f"exit code {code}"])
    everyone = [one for one in (*pairs, differentials, situations) if one]
    journal(report, gateway, sum(p.calls for p in everyone), sum(p.refused for p in everyone))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gateway", type=Path)
    for name in ("python", "python03", "overlay", "js", "rust"):
        parser.add_argument(f"--{name}", type=Path)
    arguments = parser.parse_args()
    # So that a run that is told to stop stops its children, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="portcullis-interop-") as folder:
        try:
            with contextlib.ExitStack() as stack:
                play(arguments, Path(folder), report, stack)
            if arguments.python:
                with contextlib.ExitStack() as stack:
                    receipts.play(arguments, Path(folder), report, stack)
        except Broken as error:
            report.check("the run", [str(error)])
    return 0 if report.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
