"""Makes `signed.json`: cards that the Python SDK signed (form E), and one in the specification's form (S).

    python sign.py > signed.json        # needs a2a-sdk[signing]
"""
import base64, json, sys
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
import jwt
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from google.protobuf.json_format import ParseDict, MessageToDict
from a2a.types import AgentCard
from a2a.utils.signing import create_agent_card_signer
from a2a.utils._jcs import canonicalize

b64 = lambda b: base64.urlsafe_b64encode(b).rstrip(b"=").decode()
URL = "http://b.example.com:8080/a2a"

def card(**more):
    base = {"name": "Wetter \u20ac \U0001F600", "description": "tells", "version": "1.0.0",
        "supportedInterfaces": [{"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True, "pushNotifications": False, "extensions": [
            {"uri": "urn:x", "required": False, "params": {"z": 1.0, "a": 1e-7, "big": 1e21, "n": None, "e": "", "\u20ac": [1, 2.5]}}]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "securitySchemes": {"k": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "skills": [{"id": "hello", "name": "h", "description": "d", "tags": ["t"]}]}
    base.update(more)
    return base

def jwk(key, kid, alg):
    algo = {"ES256": ECAlgorithm, "EdDSA": OKPAlgorithm, "RS256": RSAAlgorithm}[alg]
    d = json.loads(algo.to_jwk(key.public_key()))
    d.pop("key_ops", None)
    d.update(kid=kid, alg=alg, use="sig")
    return d

def sdk(c, key, kid, alg, **head):
    signer = create_agent_card_signer(key, {"alg": alg, "kid": kid, "typ": "JOSE", **head})
    signed = signer(ParseDict(c, AgentCard(), ignore_unknown_fields=True))
    return {**c, "signatures": [MessageToDict(s) for s in signed.signatures]}

def spec(c, key, kid, alg):
    body = canonicalize(c)
    token = jwt.api_jws.encode(body.encode(), key, algorithm=alg, headers={"kid": kid, "typ": "JOSE"})
    p, _, s = token.split(".")
    return {**c, "signatures": [{"protected": p, "signature": s}]}

es, ed, rs = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048)
keys = {"keys": [jwk(es, "es", "ES256"), jwk(ed, "ed", "EdDSA"), jwk(rs, "rs", "RS256")]}
plain = card()
# In the specification's form the worked-out card must be written as it is hashed.
bare = card(description="", skills=[], capabilities={"streaming": False})
hybrid = card(url="http://b.example.com:8080/old", protocolVersion="0.3.0", preferredTransport="JSONRPC",
    additionalInterfaces=[{"url": URL, "transport": "JSONRPC"}], supportsAuthenticatedExtendedCard=True)
out = [
    {"case": "the Python SDK's, ES256, with what its form leaves out", "card": sdk(plain, es, "es", "ES256"), "attested": "verified_stripped"},
    {"case": "the Python SDK's, EdDSA", "card": sdk(plain, ed, "ed", "EdDSA"), "attested": "verified_stripped"},
    {"case": "the Python SDK's, RS256", "card": sdk(plain, rs, "rs", "RS256"), "attested": "verified_stripped"},
    {"case": "the specification's form, with empty required fields", "card": spec(bare, es, "es", "ES256"), "attested": "verified_spec"},
    {"case": "both forms are the same bytes", "card": sdk(card(capabilities={"streaming": True}), es, "es", "ES256"), "attested": "verified"},
    {"case": "a hybrid: the older half is not covered", "card": sdk(hybrid, es, "es", "ES256"), "attested": "verified_stripped"},
    {"case": "a key that nobody trusts", "card": sdk(plain, es, "stranger", "ES256"), "attested": "signature_unknown_key"},
    {"case": "another key under a trusted name", "card": sdk(plain, ec.generate_private_key(ec.SECP256R1()), "es", "ES256"), "attested": "signature_mismatch"},
    {"case": "a symmetric algorithm", "card": sdk(plain, "secret" * 8, "es", "HS256"), "attested": "signature_algorithm"},
    {"case": "an algorithm that is not the key's", "card": sdk(plain, ed, "es", "EdDSA"), "attested": "signature_algorithm"},
    {"case": "no signature", "card": plain, "attested": "unsigned"},
    {"case": "an empty list", "card": {**plain, "signatures": []}, "attested": "unsigned"},
]
good = sdk(plain, es, "es", "ES256")
two = sdk(plain, es, "stranger", "ES256"); two["signatures"].append(good["signatures"][0])
out.append({"case": "one of two fits", "card": two, "attested": "verified_stripped"})
for name, change in {
    "a changed name": {"name": "other"},
    "a changed address": {"supportedInterfaces": [{"url": "http://b.example.com:8080/evil", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]},
    "another skill": {"skills": good["skills"] + [{"id": "more", "name": "m", "description": "m", "tags": ["t"]}]},
    "a flag that was not there": {"capabilities": {**good["capabilities"], "extendedAgentCard": True}},
}.items():
    out.append({"case": "tampered: " + name, "card": {**good, **change}, "attested": "signature_mismatch"})
out.append({"case": "not covered: members that 1.0 does not know", "card": {**good, "url": "http://b.example.com:8080/evil", "x": 1}, "attested": "verified_stripped"})
out.append({"case": "a field of another type", "card": {**good, "name": 5}, "attested": "signature_not_canonical"})
out.append({"case": "a field in a spelling that some readers take", "card": {**good, "supported_interfaces": []}, "attested": "signature_not_canonical"})
def header(h, **more):
    return {"protected": b64(json.dumps(h).encode()), "signature": good["signatures"][0]["signature"], **more}
for name, sig, label in [
    ("no algorithm", header({"kid": "es"}), "signature_unreadable"),
    ("`none`", header({"alg": "none", "kid": "es"}), "signature_algorithm"),
    ("no key name", header({"alg": "ES256"}), "signature_unknown_key"),
    ("a critical extension", header({"alg": "ES256", "kid": "es", "crit": ["b64"], "b64": False}), "signature_unreadable"),
    ("padding", {**good["signatures"][0], "signature": good["signatures"][0]["signature"] + "=="}, "signature_unreadable"),
    ("not an object", "x", "signature_unreadable"),
    ("no signature member", {"protected": good["signatures"][0]["protected"]}, "signature_unreadable"),
]:
    out.append({"case": "header: " + name, "card": {**plain, "signatures": [sig]}, "attested": label})
print("{\n\"keys\": " + json.dumps(keys) + ",\n\"cases\": [\n" + ",\n".join(json.dumps(o, ensure_ascii=True) for o in out) + "\n]}")
