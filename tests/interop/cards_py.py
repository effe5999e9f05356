"""Verifies a card with the Python SDK: cards_py.py CARD.json JWKS.json

Prints `valid`, or what the SDK raised; exit code 0 or 1.
"""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import ParseDict
from jwt.api_jwk import PyJWKSet


def main(card_file, keys_file):
    with open(card_file, encoding="utf-8") as file:
        card = ParseDict(json.load(file), AgentCard(), ignore_unknown_fields=True)
    with open(keys_file, encoding="utf-8") as file:
        keys = {key.key_id: key for key in PyJWKSet.from_dict(json.load(file)).keys}
    algorithms = ["EdDSA", "ES256", "RS256"]
    verify = create_signature_verifier(lambda kid, jku: keys[kid], algorithms)
    try:
        verify(card)
    except Exception as error:  # noqa: BLE001
        print(f"{type(error).__name__}: {error}")
        return 1
    print("valid")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
