"""Receipts for ASGI agents: refuses what did not come through the gateway, writes down what did.

    from receipts import Gate, Receipts
    gate = Gate("https://agents.example.com", "my-agent", "receipts.jsonl")
    app = Receipts(app, gate)

The gateway's entry for the agent has `backend: {identity: assertion}`. Its assertion, a JWT in the
header `Portcullis-Assertion`, must verify by the gateway's published key and be for this agent, for
this method, path, query and body, for now, and new. The card's well-known paths stay public: the
gateway fetches the card without an assertion. Needs `pip install "pyjwt[crypto]"`.

Every request that goes on is one line of JSON in the log, written before the agent sees it. With
`mode="log"` nothing is refused, and `assertion` says what was wrong. Assertions are remembered in
this process, so with several workers one can be used once in each; they live for a minute.
"""

import asyncio
import hashlib
import json
import os
import re
import time
import urllib.request
from datetime import UTC, datetime
from urllib.parse import quote

import jwt

HEADER = "portcullis-assertion"
TYPE = "portcullis-assertion+jwt"
# A signed JWT and nothing beside it, whatever a decoder makes of the comma that servers put between
# the values of two header lines.
ONE_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
WELL_KNOWN = ("/.well-known/agent-card.json", "/.well-known/agent.json")
# Seconds: difference of clocks, longest life of an assertion, age of keys, pause between fetches.
LEEWAY, LIFETIME, KEYS_FRESH, KEYS_KEPT, PAUSE = 5, 60, 600, 3600, 30
MAX_KEYS, MAX_SEEN = 262_144, 100_000
SAID = ("iss", "aud", "sub", "issuer", "client_id", "act", "grant", "skill", "rule")


class Refused(Exception):
    """Why a request does not go on."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status, self.why = status, why


class Gate:
    """Judges requests, and writes receipts.

    `gateway` is the `public_url` of the gateway's first listener, `agent` the agent's name in its
    file, `log` the file of receipts. `keys` is the URL or file of the gateway's JWKS, by default
    what the gateway publishes. `max_body` bounds the bytes of a request that are held.
    """

    def __init__(self, gateway, agent, log, keys=None, mode="enforce", max_body=10 << 20):
        if mode not in ("enforce", "log"):
            raise ValueError("mode is `enforce` or `log`")
        self.gateway, self.agent, self.mode, self.max_body = gateway, agent, mode, max_body
        self.place = str(keys or f"{gateway}/.well-known/jwks.json")
        self.keys, self.fetched, self.tried = {}, None, None
        self.seen = {}
        self.fetching = asyncio.Lock()
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def admit(self, method, target, path, body, tokens):
        """Writes the receipt of a request and returns what is asserted of it; raises `Refused`.

        `target` is path and query as they came, `tokens` are all values of the header.
        """
        digest = hashlib.sha256(body).hexdigest()
        said, state = {}, "valid"
        try:
            said = await self.verified(method, target, digest, tokens)
        except Refused as refused:
            if self.mode == "enforce":
                raise
            state = refused.why
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        receipt = {
            "v": 1,
            "time": moment.replace("+00:00", "Z"),
            "request_id": said.get("request_id"),
            "jti": said.get("jti"),
            "assertion": state,
            **{name: said[name] for name in SAID if name in said},
            "method": method,
            "path": path,
            "body_sha256": digest,
        }
        try:
            # One write, so that lines of several workers do not mix.
            os.write(self.log, json.dumps(receipt).encode() + b"\n")
        except OSError as error:
            if self.mode == "enforce":
                raise Refused(503, "the receipt cannot be written") from error
        return said

    async def verified(self, method, target, digest, tokens):
        """The claims of a request's assertion."""
        if not tokens:
            raise Refused(401, "no assertion")
        if len(tokens) != 1:
            raise Refused(403, "more than one assertion")
        if not ONE_TOKEN.fullmatch(tokens[0]):
            raise Refused(403, "not one assertion")
        try:
            header = jwt.get_unverified_header(tokens[0])
            if header.get("typ") != TYPE:
                raise Refused(403, "not an assertion")
            key = await self.key(header.get("kid"))
            said = jwt.decode(
                tokens[0],
                key,
                # One algorithm, whatever the header says.
                algorithms=["EdDSA"],
                issuer=self.gateway,
                audience=self.agent,
                leeway=LEEWAY,
                options={
                    "require": ["iss", "aud", "sub", "jti", "iat", "exp"],
                    "strict_aud": True,
                },
            )
        except jwt.PyJWTError as error:
            raise Refused(403, f"bad assertion: {type(error).__name__}") from error
        if said["exp"] - said["iat"] > LIFETIME:
            raise Refused(403, "an assertion that lives too long")
        if said.get("body_sha256") != digest:
            raise Refused(403, "an assertion for another body")
        # A query that is empty cannot be told from none here.
        asserted = [target] if "?" in target else [target, f"{target}?"]
        targets = [hashlib.sha256(f"{method} {t}".encode()).hexdigest() for t in asserted]
        if said.get("target_sha256") not in targets:
            raise Refused(403, "an assertion for another target")
        self.once(said["jti"], said["exp"])
        return said

    def once(self, jti, exp):
        """Takes each assertion once."""
        now = time.time()
        if len(self.seen) >= MAX_SEEN:
            self.seen = {jti: end for jti, end in self.seen.items() if end + LEEWAY > now}
        if jti in self.seen:
            raise Refused(403, "an assertion that was used before")
        if len(self.seen) >= MAX_SEEN:
            raise Refused(503, "too many assertions to remember")
        self.seen[jti] = exp

    async def key(self, kid):
        """The gateway's key of this name; fetches the set when it must, and never too often."""
        async with self.fetching:
            now = time.monotonic()
            stale = self.fetched is None or now - self.fetched > KEYS_FRESH
            rested = self.tried is None or now - self.tried > PAUSE
            if (stale or kid not in self.keys) and rested:
                self.tried = now
                try:
                    self.keys = await asyncio.to_thread(self.fetch)
                    self.fetched = now
                except (OSError, ValueError, jwt.PyJWTError):
                    # The last good set stays for a while.
                    if self.fetched is None or now - self.fetched > KEYS_KEPT:
                        self.keys = {}
            if not self.keys:
                raise Refused(503, "the gateway's keys are not there")
        if kid not in self.keys:
            raise Refused(403, "an assertion by an unknown key")
        return self.keys[kid]

    def fetch(self):
        if self.place.startswith(("https://", "http://")):
            with urllib.request.urlopen(self.place, timeout=5) as answer:
                text = answer.read(MAX_KEYS + 1)
        else:
            with open(self.place, "rb") as file:
                text = file.read(MAX_KEYS + 1)
        if len(text) > MAX_KEYS:
            raise ValueError("too large")
        found = jwt.PyJWKSet.from_dict(json.loads(text)).keys
        return {key.key_id: key for key in found if key.algorithm_name == "EdDSA"}


class Receipts:
    """ASGI middleware. `public` are paths that may be read without an assertion."""

    def __init__(self, app, gate, public=WELL_KNOWN):
        self.app, self.gate, self.public = app, gate, frozenset(public)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            # A2A has no other kind, and this one has no body that could be asserted.
            if self.gate.mode == "enforce":
                return await send({"type": "websocket.close", "code": 1008})
            return await self.app(scope, receive, send)
        if scope["method"] in ("GET", "HEAD") and scope["path"] in self.public:
            return await self.app(scope, receive, send)
        try:
            body = await self.body(receive)
            path = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
            query = scope["query_string"].decode("latin-1")
            target = f"{path}?{query}" if query else path
            name = HEADER.encode()
            tokens = [v.decode("latin-1") for n, v in scope["headers"] if n.lower() == name]
            said = await self.gate.admit(scope["method"], target, path, body, tokens)
        except Refused as refused:
            return await self.refuse(send, refused)
        # For the agent: who calls, and the skill and rule that were judged.
        scope = {**scope, "state": {**scope.get("state", {}), "portcullis": said}}
        held = [{"type": "http.request", "body": body, "more_body": False}]

        async def again():
            return held.pop() if held else await receive()

        return await self.app(scope, again, send)

    async def body(self, receive):
        """The whole body; requests of A2A are small."""
        pieces, length, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the caller left")
            pieces.append(message.get("body", b""))
            length += len(pieces[-1])
            if length > self.gate.max_body:
                raise Refused(413, "the body is too large")
            more = message.get("more_body", False)
        return b"".join(pieces)

    async def refuse(self, send, refused):
        body = json.dumps({"error": refused.why}).encode()
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})
