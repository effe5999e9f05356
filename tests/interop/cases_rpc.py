"""The inputs that parsers read differently, in gRPC.

A body is a list of fields, each a number and a value: text, a list of fields, a number (a varint), or
bytes as they are. Raw stands for bytes without a field around them.
"""

from cases import Case

SERVICE = {"1.0": "/lf.a2a.v1.A2AService/", "0.3": "/a2a.v1.A2AService/"}


class Raw(bytes):
    """Bytes that stand in a message without a field around them."""


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def encode(fields, fill):
    """The message's bytes; `fill` replaces placeholders in text."""
    out = b""
    for field in fields:
        if isinstance(field, Raw):
            out += fill(bytes(field))
            continue
        number, value = field
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, list):
            value = encode(value, fill)
        elif isinstance(value, str):
            value = fill(value.encode())
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def message(more, text="ask"):
    """A message: the numbers are the same in both versions."""
    return [(1, "@m@"), (4, 1), (5, [(1, text)]), *more]


def struct(*members):
    """A google.protobuf.Struct of texts, in this order, doubled keys included."""
    return [(1, [(1, key), (2, [(3, value)])]) for key, value in members]


MINE, THEIRS = (3, "@mine@"), (3, "@theirs@")
MINE_C, THEIRS_C = (2, "@mine-c@"), (2, "@theirs-c@")


def messages():
    """(row, further fields of a message, expectation)."""
    yield "honest", [MINE_C, MINE], "pass"
    yield "task theirs", [THEIRS], "refuse"
    yield "task twice", [MINE, THEIRS], "refuse"
    yield "task twice, mine last", [THEIRS, MINE], "refuse"
    yield "task twice, last empty", [THEIRS, (3, "")], "refuse"
    yield "context theirs", [THEIRS_C], "refuse"
    yield "context twice", [MINE_C, THEIRS_C], "refuse"
    yield "task as a varint", [(3, 5)], "refuse"
    yield "task as a fixed32", [Raw(b"\x1d\x05\x00\x00\x00")], "refuse"
    yield "task as a group", [Raw(b"\x1b\x1c")], "refuse"
    yield "task not UTF-8", [(3, b"\xff\xfe")], "refuse"
    yield "task with NUL", [(3, "@theirs@\0")], "refuse"
    yield "message id twice", [(1, "again"), MINE], "refuse"
    yield "field number zero", [Raw(b"\x02\x00"), MINE], "refuse"
    yield "unknown field", [(99, "x"), MINE], "either"
    # Field 3 again, its key as a longer varint than need be.
    yield "overlong key", [MINE, Raw(b"\x9a\x00\x01x")], "refuse"
    yield "overlong length", [Raw(b"\x1a\x81\x00x")], "either"
    yield "truncated", [Raw(b"\x1a\xff\x01")], "refuse"
    yield "end of a group alone", [Raw(b"\x1c")], "refuse"
    yield "role unknown", [(4, 77), MINE], "either"
    yield "skill listed", [(6, struct(("skillId", "hello")))], "pass"
    yield "skill forbidden", [(6, struct(("skillId", "review")))], "refuse"
    yield "skill twice", [(6, struct(("skillId", "hello"), ("skillId", "review")))], "refuse"
    doubled = [(6, struct(("skillId", "hello"))), (6, struct(("skillId", "review")))]
    yield "skill in doubled metadata", doubled, "refuse"
    yield "skill in snake case too", [(6, struct(("skillId", "hello"), ("skill_id", "review")))], "refuse"


def rpc(version):
    """Every case of gRPC in one version."""
    at, hook, config = {"1.0": (2, (2, 4), 3), "0.3": (1, (2, 2), 2)}[version]
    service = SERVICE[version]
    declared = (("a2a-version", version),) if version == "1.0" else ()

    def case(name, body, expect, method="SendMessage", headers=declared, **more):
        path = method if method.startswith("/") else service + method
        return Case(name, expect, body, version, path=path, method="RPC", headers=headers, **more)

    for row, more, expect in messages():
        yield case(row, [(at, message(more))], expect)
    mine, theirs = (at, message([MINE_C, MINE])), (at, message([THEIRS]))
    yield case("message twice", [mine, theirs], "refuse")
    yield case("message twice, mine last", [theirs, mine], "refuse")
    yield case("second message with the task alone", [mine, (at, [THEIRS])], "refuse")
    yield case("nothing", [], "refuse")
    yield case("text after the message", [mine, Raw(b"\xff")], "refuse")
    yield case("unknown field beside", [mine, (99, "x")], "either")
    if version == "1.0":
        yield case("references theirs", [(2, message([(8, "@theirs@")]))], "refuse")
        yield case("references both", [(2, message([(8, "@mine@"), (8, "@theirs@")]))], "refuse")
        yield case("references mine", [(2, message([(8, "@mine@")]))], "pass")
        yield case("tenant", [(1, "other"), mine], "either")
        yield case("tenant twice", [(1, ""), (1, "other"), mine], "refuse")
        named = {"mine": [(2, "@mine@")], "theirs": [(2, "@theirs@")]}
    else:
        named = {"mine": [(1, "tasks/@mine@")], "theirs": [(1, "tasks/@theirs@")]}
        for row, name in [
            ("without tasks/", "@theirs@"),
            ("with more behind", "tasks/@theirs@/pushNotificationConfigs/x"),
            ("with a slash behind", "tasks/@theirs@/"),
            ("with a slash before", "/tasks/@theirs@"),
            ("with dots", "tasks/@mine@/../@theirs@"),
            ("upper case", "TASKS/@theirs@"),
            ("two", "tasks/tasks/@theirs@"),
        ]:
            yield case(f"get: name {row}", [(1, name)], "refuse", "GetTask")
            yield case(f"cancel: name {row}", [(1, name)], "refuse", "CancelTask")
    for what, method in (("get", "GetTask"), ("cancel", "CancelTask")):
        if what == "get":
            yield case(f"{what}: mine", named["mine"], "pass", method)
        yield case(f"{what}: theirs", named["theirs"], "refuse", method)
        yield case(f"{what}: twice", named["mine"] + named["theirs"], "refuse", method)
        yield case(f"{what}: twice, mine last", named["theirs"] + named["mine"], "refuse", method)
    good, evil = [(hook[1], "@hook@")], [(hook[1], "@evil@")]
    said = (at, message([]))
    for row, hooks, expect in [
        ("allowed", [(config, [(hook[0], good)])], "pass"),
        ("forbidden", [(config, [(hook[0], evil)])], "refuse"),
        ("twice", [(config, [(hook[0], good), (hook[0], evil)])], "refuse"),
        ("url twice", [(config, [(hook[0], good + evil)])], "refuse"),
        ("configuration twice", [(config, [(hook[0], good)]), (config, [(hook[0], evil)])], "refuse"),
        ("second configuration with the url alone", [(config, []), (config, [(hook[0], evil)])], "refuse"),
    ]:
        yield case(f"webhook {row}", [said, *hooks], expect)
    for row, values in [("0.3", ["0.3"]), ("1.0", ["1.0"]), ("9.9", ["9.9"]), ("twice", ["1.0", "0.3"])]:
        headers = tuple(("a2a-version", value) for value in values)
        expect = "pass" if values == [version] else "refuse"
        yield case(f"a2a-version {row}", [mine], expect, headers=headers)
    yield case("no a2a-version", [mine], "pass", headers=())
    other = {"1.0": "0.3", "0.3": "1.0"}[version]
    yield case("service of the other version", [mine], "refuse", SERVICE[other] + "SendMessage")
    for row, method in [
        ("method in another case", "sendMessage"),
        ("method of JSON-RPC 0.3", "message/send"),
        ("unknown method", "DeleteEverything"),
    ]:
        yield case(row, [mine], "refuse", method)
    # The gateway's paths have no slash at the end, whether the caller's had one or not.
    yield case("trailing slash", [mine], "either", "SendMessage/")
    yield case("compressed", [mine], "refuse", headers=(*declared, ("@gzip", "")))
