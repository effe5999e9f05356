"""Sends gRPC requests of any bytes, told what to do line by line.

    {"target": "HOST:PORT", "path": "/SERVICE/METHOD", "metadata": [[NAME, VALUE]], "body": HEX,
     "gzip": false}

answers with `code` (the status' name), `text`, and the `metadata` of head and trailers together.
"""

import json
import sys

import grpc

CHANNELS = {}


def send(order):
    target = order["target"]
    channel = CHANNELS.setdefault(target, grpc.insecure_channel(target))
    call = channel.unary_unary(order["path"], lambda body: body, lambda body: body)
    compression = grpc.Compression.Gzip if order.get("gzip") else grpc.Compression.NoCompression
    metadata = [tuple(pair) for pair in order["metadata"]]
    try:
        _, done = call.with_call(
            bytes.fromhex(order["body"]), metadata=metadata, compression=compression, timeout=20
        )
    except grpc.RpcError as error:
        done = error
    said = [*(done.initial_metadata() or ()), *(done.trailing_metadata() or ())]
    texts = {name: value for name, value in said if isinstance(value, str)}
    return {"code": done.code().name, "text": done.details() or "", "metadata": texts}


def main():
    for line in sys.stdin:
        print(json.dumps(send(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
