"""The inputs that parsers read differently, in HTTP+JSON. Placeholders are those of cases.py;
`@mine-p@` and `@theirs-p@` are the tasks with every character percent-encoded."""

from dataclasses import replace

from cases import Case, around, declared, message, messages, webhooks

# Ways to write the path of a task, (row, path, expectation); `ID` stands for what reads as `I`.
PATHS = [
    ("honest", "/tasks/@mine@", "pass"),
    ("theirs", "/tasks/@theirs@", "refuse"),
    ("percent-encoded", "/tasks/@mine-p@", "pass"),
    ("theirs, percent-encoded", "/tasks/@theirs-p@", "refuse"),
    ("upper case", "/TASKS/@mine@", "refuse"),
    ("first letter upper case", "/Tasks/@mine@", "refuse"),
    # The gateway's paths have no slash at the end, whether the caller's had one or not.
    ("trailing slash", "/tasks/@mine@/", "either"),
    ("theirs, trailing slash", "/tasks/@theirs@/", "refuse"),
    ("double slash", "/tasks//@mine@", "refuse"),
    ("dot segment", "/tasks/./@mine@", "refuse"),
    ("dot-dot segment", "/tasks/@mine@/../@theirs@", "refuse"),
    ("encoded dot-dot", "/tasks/@mine@/%2e%2e/@theirs@", "refuse"),
    ("encoded slash", "/tasks/@mine@%2f..%2f@theirs@", "refuse"),
    ("encoded slash alone", "/tasks%2f@mine@", "refuse"),
    ("backslash", "/tasks/@mine@%5c..%5c@theirs@", "refuse"),
    ("NUL", "/tasks/@mine@%00", "refuse"),
    ("encoded twice", "/tasks/%2540", "refuse"),
    ("query names another", "/tasks/@mine@?id=@theirs@", "either"),
    ("query names another task", "/tasks/@mine@?taskId=@theirs@", "either"),
    ("query with a tenant", "/tasks/@mine@?tenant=other", "either"),
    ("query doubled", "/tasks/@mine@?historyLength=1&historyLength=2", "either"),
    ("tenant", "/other/tasks/@mine@", "refuse"),
    ("tenant of two segments", "/a/b/tasks/@mine@", "refuse"),
    ("matrix parameter", "/tasks/@mine@;id=@theirs@", "refuse"),
    ("fragment, encoded", "/tasks/@theirs@%23", "refuse"),
    ("space after", "/tasks/@theirs@%20", "refuse"),
]
# Paths that some server takes for an operation, and nobody else.
SIDE_DOORS = [
    ("POST", "/message/send"),
    ("POST", "/tasks/@theirs@/cancel"),
    ("GET", "/tasks/@theirs@/subscribe"),
    ("GET", "/tasks/@theirs@/push-configs"),
    ("GET", "/agent-card/extended"),
    ("GET", "/agent/authenticatedExtendedCard"),
    ("POST", "/Message:Send"),
    ("POST", "/other/message:send"),
    ("PUT", "/message:send"),
    ("DELETE", "/tasks/@theirs@"),
    ("HEAD", "/tasks/@theirs@"),
    ("PATCH", "/tasks/@theirs@"),
]
OWN = '"taskId":"@mine@","contextId":"@mine-c@"'


def rest(version):
    """Every case of HTTP+JSON in one version."""
    shape, before = ("1.0", "") if version == "1.0" else ("0.3 REST", "/v1")
    headers = (("Content-Type", "application/json"), *declared(version))
    send = f"{before}/message:send"

    def case(name, text, expect, path=send, **more):
        body = text.encode("utf-8", "surrogatepass")
        return Case(name, expect, body, version, path=path, **{"headers": headers, **more})

    honest = f'{{"message":{message(shape, OWN)}}}'
    yield case("honest", honest, "pass")
    for row, said, more, expect in messages(shape):
        yield case(row, f'{{"message":{said}{more}}}', expect)
    for row, text, expect in webhooks(shape):
        said = f'{{"message":{message(shape, "")},"configuration":{{{text}}}}}'
        yield case(f"webhook {row}", said, expect)
    for row, text in [
        ("text after the value", f"{honest}x"),
        ("value after the value", f"{honest}{honest}"),
        ("array", f"[{honest}]"),
        ("NaN", honest[:-1] + ',"x":NaN}'),
        ("empty", ""),
        ("JSON-RPC's envelope", f'{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{honest}}}'),
    ]:
        yield case(row, text, "refuse")
    other = {"1.0": "0.3 REST", "0.3 REST": "1.0"}[shape]
    yield case("message of the other version", f'{{"message":{message(other, OWN)}}}', "either")
    yield from around(case("honest", honest, "pass"), honest)
    bare = tuple(header for header in headers if header[0] != "Content-Type")
    for row, path, expect in PATHS:
        get = {"method": "GET", "headers": bare}
        yield case(f"get: {row}", "", expect, path=before + path, **get)
    for row, path, expect in PATHS:
        if expect == "refuse" and "?" not in path:
            cancel = f"{before}{path}:cancel"
            yield case(f"cancel: {row}", "{}", expect, path=cancel)
    yield case("cancel: colon encoded", "{}", "refuse", path=f"{before}/tasks/@theirs@%3Acancel")
    yield case("send: colon encoded", honest, "either", path=f"{before}/message%3Asend")
    yield case("cancel: body names another", '{"id":"@theirs@"}', "either", path=f"{before}/tasks/@mine@:cancel")
    for method, path in SIDE_DOORS:
        yield case(f"{method} {path}", honest, "refuse", path=before + path, method=method)
    yield case("send: trailing slash", honest, "either", path=f"{send}/")
    crossed = "/message:send" if before else "/v1/message:send"
    yield case("path of the other version", honest, "either", path=crossed)
    declared_twice = f"{send}?A2A-Version={version}"
    yield case("version in the query", honest, "either", path=declared_twice)
    wrong = {"1.0": "0.3", "0.3": "1.0"}[version]
    yield case("another version in the query", honest, "refuse", path=f"{send}?A2A-Version={wrong}")


def with_a2a_json(every):
    """The honest case again under the media type that 1.0 prefers."""
    for one in every:
        if one.name == "honest" and one.version == "1.0":
            kind = (("Content-Type", "application/a2a+json"), *declared("1.0"))
            yield replace(one, name="application/a2a+json", headers=kind)
        yield one
