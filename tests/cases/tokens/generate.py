#!/usr/bin/env python3
"""Makes concrete.json, which the tests read, from corpus.json and our own cases in OURS.

Needs `cryptography`. Keys are new at each run and are not kept, so no private key but the ones that
cases publish on purpose is in the result; `now` is fixed, and the tests hand
it to the code under test. Cases with steps and the one of a mebibyte are left out: they have tests
of their own.
"""
import argparse, json, os, token_corpus as made

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = 1750000000
OURS = ("more.json", "sender.json")
PARTS = ("headers", "path", "surface", "method", "tls_client", "skill", "http")


def answer(code):
    if code in ("no_credential", "other_scheme"):
        return {"outcome": "reject", "status": 401, "error": None}
    if code == "keys_unavailable":
        return {"outcome": "reject", "status": 503, "error": None}
    if code == "token_in_query" or code.startswith("authorization_"):
        return {"outcome": "reject", "status": 400, "error": "invalid_request"}
    if code.startswith("proof_") and code != "proof_key_other":
        return {"outcome": "reject", "status": 401, "error": "invalid_dpop_proof"}
    return {"outcome": "reject", "status": 401, "error": "invalid_token"}


def long_lived(key, common_name, now):
    """TLS goes by the clock of the machine, whatever the gateway's says."""
    name = made.x509.Name([made.x509.NameAttribute(made.NameOID.COMMON_NAME, common_name)])
    start = made.datetime.datetime(2025, 1, 1, tzinfo=made.datetime.timezone.utc)
    return (made.x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(made.x509.random_serial_number()).not_valid_before(start)
            .not_valid_after(start.replace(year=2125)).sign(key, made.hashes.SHA256()))


def clients(env):
    return {name: {"cert": cert.public_bytes(made.ser.Encoding.PEM).decode(), "key": env.keys.pem[name]}
            for name, cert in env.certs.items()}


def main():
    made.make_certificate = long_lived
    corpus = json.load(open(os.path.join(HERE, "corpus.json"), encoding="utf-8"))
    reference = corpus["reference"]
    ours = []
    for name in OURS:
        more = json.load(open(os.path.join(HERE, name), encoding="utf-8"))
        reference["jwks"]["A"].update(more["jwks"])
        ours += more["cases"]
        for issuer in more.get("issuers", []):
            name = issuer["name"]
            reference["issuers"][name] = {"issuer": issuer["issuer"]}
            reference["keys"][issuer["base_token"]["key"]] = issuer["key"]
            reference["base_tokens"][name] = issuer["base_token"]
            header = issuer["base_token"]["header"]
            entry = {"key": issuer["base_token"]["key"], "set": {"kid": header["kid"], "use": "sig"}}
            reference["jwks"][name] = {"default": [entry]}
    for case in ours:
        token = case["token"]
        if "many_claims" in case:
            token.setdefault("payload_merge", {}).update({"c%d" % n: 0 for n in range(case["many_claims"])})
        if "long_array" in case:
            token.setdefault("payload_merge", {})["long"] = [1] * case["long_array"]
        case["expect"] = {"outcome": "accept", "status": 200, "error": None}
        if "no" in case:
            case["expect"] = answer(case["no"])
        elif "grant" in case and case["grant"] is None:
            case["expect"] = {"outcome": "reject", "status": 403, "error": "insufficient_scope"}
        case.update(family="own", source="own")
        corpus["cases"].append(case)
    args = argparse.Namespace(keys=None, now=NOW, family=None, id=None, audience=None, base_url=None, issuer=None)
    with_steps = [c for c in corpus["cases"] if "steps" in c]
    corpus["cases"] = [c for c in corpus["cases"] if "steps" not in c and c["id"] != "tr-038"]
    env, _ = made.generate({**corpus, "cases": []}, args)
    out = []
    for case in corpus["cases"]:
        built = made.build_request(env, case.get("request", {}), case.get("token"))
        item = {k: case[k] for k in ("id", "rules", "title", "expect", "jwks", "policy", "settings", "no", "grant")
                if k in case}
        item.update({k: built[k] for k in PARTS if k in built})
        if "tls_client" in built:
            item["certificate"] = env.vars["X5T_" + built["tls_client"]]
        if "settings" in case:
            item["issuer"] = case["token"].get("base", "A")
        out.append(item)
    jwks = {issuer: {name: made.build_jwks(env, entries) for name, entries in variants.items()}
            for issuer, variants in corpus["reference"]["jwks"].items()}
    with open(os.path.join(HERE, "concrete.json"), "w", encoding="utf-8") as f:
        json.dump({"now": NOW, "jwks": jwks, "clients": clients(env), "cases": out}, f, indent=1)
        f.write("\n")
    # Of the same keys.
    with_steps = [made.concrete(env, case) for case in with_steps]
    for case in with_steps:
        for step in case["steps"]:
            step["requests"] = [{k: request[k] for k in (*PARTS, "expect") if k in request}
                                for request in step.get("requests", [])]
    with open(os.path.join(HERE, "steps.json"), "w", encoding="utf-8") as f:
        json.dump({"cases": [{k: case[k] for k in ("id", "title", "rules", "steps")} for case in with_steps]}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
