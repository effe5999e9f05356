"""Sends requests with good and bad assertions straight to an agent.

    forged.py KEY_FILE AGENT_URL AGENT_NAME GATEWAY_URL GRPC_ADDRESS

Prints, as one JSON object, for each request the status that came and the one that must, over gRPC
the name of its code. It has the
gateway's own key, which nobody else has, so that each request is wrong in one thing only.
"""

import base64
import hashlib
import http.client
import json
import sys
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import jwt
from a2a.types import a2a_pb2
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PATH = "/a2a/jsonrpc"
METHOD = "/lf.a2a.v1.A2AService/SendMessage"
TYPE = "portcullis-assertion+jwt"
HEADER = "Portcullis-Assertion"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def kid_of(key):
    """The RFC 7638 thumbprint."""
    raw = key.public_key().public_bytes_raw()
    members = {"crv": "Ed25519", "kty": "OKP", "x": encoded(raw)}
    text = json.dumps(members, separators=(",", ":"), sort_keys=True)
    return encoded(hashlib.sha256(text.encode()).digest())


def message():
    return json.dumps(
        {
            "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
            "params": {"message": {
                "messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": "hi"}],
            }},
        }
    ).encode()


def rpc_message():
    said = {"message_id": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    return a2a_pb2.SendMessageRequest(message=said).SerializeToString()


class Sender:
    def __init__(self, key, url, agent, gateway):
        self.key, self.kid = key, kid_of(key)
        self.place = urlsplit(url).netloc
        self.agent, self.gateway = agent, gateway

    def claims(self, body, method="POST", target=PATH, **other):
        now, new = int(time.time()), uuid.uuid4().hex
        said = {
            "iss": self.gateway, "aud": self.agent, "sub": "alice", "issuer": "dev",
            "request_id": new, "jti": new, "iat": now, "exp": now + 60,
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "target_sha256": hashlib.sha256(f"{method} {target}".encode()).hexdigest(),
        }
        said |= other
        return {name: value for name, value in said.items() if value is not None}

    def sign(self, claims, key=None, alg="EdDSA", **header):
        header = {"typ": TYPE, "kid": self.kid, **header}
        return jwt.encode(claims, key or self.key, algorithm=alg, headers=header)

    def send(self, tokens, body, target=PATH):
        connection = http.client.HTTPConnection(self.place, timeout=20)
        connection.putrequest("POST", target)
        fields = [("Content-Type", "application/json"), ("A2A-Version", "1.0")]
        fields += [(HEADER, token) for token in tokens]
        for name, value in [*fields, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        status = connection.getresponse().status
        connection.close()
        return status

    def call(self, channel, tokens, raw):
        metadata = [("a2a-version", "1.0"), *((HEADER.lower(), token) for token in tokens)]
        try:
            channel.unary_unary(METHOD)(raw, metadata=metadata, timeout=20)
        except grpc.RpcError as error:
            return error.code().name
        return "OK"


def several(signed):
    """Lists of values that are not one assertion, though what stands in them is good: as lines of
    their own, and as servers join lines."""
    yield "two of them", [*signed(), *signed()]
    same = signed()
    yield "the same twice", [*same, *same]
    yield "one and an empty one", [*signed(), ""]
    yield "an empty one and one", ["", *signed()]
    yield "one and something else", [*signed(), "x"]
    for sign in (",", ", "):
        yield f"two, joined by `{sign}`", [sign.join([*signed(), *signed()])]
        same = signed()
        yield f"the same twice, joined by `{sign}`", [sign.join([*same, *same])]
    yield "one, joined with an empty one", [f"{signed()[0]},"]
    # Decoders of base64 that skip what is not theirs find so many characters of padding enough.
    yield "one, joined with two empty ones", [f"{signed()[0]}, ,"]
    yield "one, joined with four empty ones", [f"{signed()[0]},,,,"]
    yield "an empty one, joined with one", [f",{signed()[0]}"]
    yield "one, joined with something else", [f"{signed()[0]}, x"]


def main():
    pem = Path(sys.argv[1]).read_bytes()
    sender = Sender(serialization.load_pem_private_key(pem, None), *sys.argv[2:5])
    now = int(time.time())
    other = Ed25519PrivateKey.generate()
    body = message()
    answers = {}

    def one(what, wanted, tokens, body=body, target=PATH):
        answers[what] = (sender.send(tokens, body, target), wanted)

    def signed(**claims):
        return [sender.sign(sender.claims(body, **claims))]

    good = signed()
    one("none", 401, [])
    one("good", 200, good)
    one("used before", 403, good)
    one("another good one", 200, signed())
    for what, tokens in several(signed):
        one(what, 403, tokens)
    one("no JWT", 403, ["x"])
    one("another gateway", 403, signed(iss="http://elsewhere"))
    one("another agent", 403, signed(aud="other"))
    one("several agents", 403, signed(aud=[sender.agent, "other"]))
    one("over", 403, signed(iat=now - 120, exp=now - 60))
    one("lives too long", 403, signed(exp=now + 3600))
    one("from the future", 403, signed(iat=now + 600, exp=now + 660))
    for name in ("iss", "aud", "sub", "jti", "iat", "exp", "body_sha256", "target_sha256"):
        one(f"without {name}", 403, signed(**{name: None}))
    one("another body", 403, signed(), body=message())
    one("another path", 403, signed(target="/a2a/rest"))
    one("another query", 403, signed(), target=f"{PATH}?x=1")
    one("a query that is asserted", 200, signed(target=f"{PATH}?x=1"), target=f"{PATH}?x=1")
    one("another method", 403, signed(method="GET"))
    plain = sender.claims(body)
    one("an access token", 403, [sender.sign(plain, typ="at+jwt")])
    one("no type", 403, [sender.sign(plain, typ="JWT")])
    one("another key, its name", 403, [sender.sign(plain, kid=kid_of(other), key=other)])
    one("another key, our name", 403, [sender.sign(plain, key=other)])
    one("no key's name", 403, [sender.sign(plain, kid="")])
    secret = sender.key.public_key().public_bytes_raw() + bytes(32)
    one("HMAC", 403, [sender.sign(plain, key=secret, alg="HS256")])
    token = sender.sign(plain)
    header = encoded(json.dumps({"alg": "none", "typ": TYPE, "kid": sender.kid}).encode())
    one("no signature", 403, [f"{header}.{token.split('.')[1]}."])
    one("a changed claim", 403, [token[:60] + ("A" if token[60] != "A" else "B") + token[61:]])
    raw = rpc_message()
    frame = b"\0" + len(raw).to_bytes(4, "big") + raw

    def framed(**claims):
        return [sender.sign(sender.claims(frame, target=METHOD, **claims))]

    with grpc.insecure_channel(sys.argv[5]) as channel:

        def rpc(what, wanted, tokens, raw=raw):
            answers[f"gRPC, {what}"] = (sender.call(channel, tokens, raw), wanted)

        good = framed()
        rpc("none", "UNAUTHENTICATED", [])
        rpc("good", "OK", good)
        rpc("used before", "PERMISSION_DENIED", good)
        for what, tokens in several(framed):
            rpc(what, "PERMISSION_DENIED", tokens)
        rpc("another message", "PERMISSION_DENIED", framed(), raw=rpc_message())
        rpc("for HTTP", "PERMISSION_DENIED", signed())
        rpc("another agent", "PERMISSION_DENIED", framed(aud="other"))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
