"""The inputs that parsers read differently: what a case is, those of JSON-RPC, and bodies of REST.

cases_rest.py and cases_rpc.py have the other bindings. A shape is a version of JSON-RPC, `1.0` or
`0.3`, whose first is also that of REST, or `0.3 REST`.

Bodies are bytes with placeholders: `@mine@` and `@mine-c@` are a task and a context of the caller,
`@theirs@` and `@theirs-c@` of somebody else, `@m@` is a new message id, `@hook@` is a webhook that
policy allows and `@evil@` one that it does not. A message says `ask`, so that its task stays open.
"""

import gzip
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Case:
    """One request. `expect` is what the gateway must do with it: `refuse` it, let it `pass`, or
    `either`: whatever passes must be acted on as it was judged."""

    name: str
    expect: str
    # Bytes; or for gRPC fields, see cases_rpc.py.
    body: bytes | list
    version: str
    # Below the interface's URL.
    path: str = ""
    method: str = "POST"
    headers: tuple = (("Content-Type", "application/json"),)


# A body's members that name the task, or try to: `K` stands for the exact name, `S` for snake case.
MINE, THEIRS = '"@mine@"', '"@theirs@"'
NAMES = [
    ("exact", f'"K":{MINE}', "pass"),
    ("snake case", f'"S":{THEIRS}', "refuse"),
    ("own, snake case", f'"S":{MINE}', "refuse"),
    ("exact, then snake case", f'"K":{MINE},"S":{THEIRS}', "refuse"),
    ("snake case, then exact", f'"S":{THEIRS},"K":{MINE}', "refuse"),
    ("null, then snake case", f'"K":null,"S":{THEIRS}', "refuse"),
    ("snake case, then null", f'"S":{THEIRS},"K":null', "refuse"),
    ("null", '"K":null', "refuse"),
    ("twice, last is theirs", f'"K":{MINE},"K":{THEIRS}', "refuse"),
    ("twice, first is theirs", f'"K":{THEIRS},"K":{MINE}', "refuse"),
    ("twice, last is null", f'"K":{THEIRS},"K":null', "refuse"),
    ("number", '"K":5', "refuse"),
    ("true", '"K":true', "refuse"),
    ("array", f'"K":[{THEIRS}]', "refuse"),
    ("own in an array", f'"K":[{MINE}]', "refuse"),
    ("object", f'"K":{{"value":{THEIRS}}}', "refuse"),
    ("empty", '"K":""', "either"),
    ("lone surrogate", '"K":"@mine@\\ud800"', "refuse"),
    ("NUL", '"K":"@mine@\\u0000"', "refuse"),
    ("spaces around", '"K":" @theirs@ "', "either"),
    ("theirs", f'"K":{THEIRS}', "refuse"),
]


def spellings(name):
    """Other spellings of a name: by case, Unicode folding, and JSON escapes."""
    upper = name[0].upper() + name[1:]
    yield "upper first letter", upper, "refuse"
    yield "all lower case", name.lower(), "refuse"
    yield "all upper case", name.upper(), "refuse"
    if "s" in name:
        yield "long s", name.replace("s", "\u017f", 1), "refuse"
        yield "long s, escaped", name.replace("s", "\\u017f", 1), "refuse"
    if "k" in name:
        yield "Kelvin sign", name.replace("k", "\u212a", 1), "refuse"
        yield "Kelvin sign, escaped", name.replace("k", "\\u212a", 1), "refuse"
    yield "fullwidth letter", name.replace("d", "\uff44", 1), "either"


def members(name, snake):
    """(row, members, expectation) for one known name."""
    for row, text, expect in NAMES:
        text = text.replace('"K"', f'"{name}"').replace('"S"', f'"{snake}"')
        yield row, text, expect
    for row, spelled, expect in spellings(name):
        if spelled == name:
            continue
        yield f"{row}, alone", f'"{spelled}":{THEIRS}', expect
        yield f"{row}, after the exact name", f'"{name}":{MINE},"{spelled}":{THEIRS}', expect
        yield f"{row}, before the exact name", f'"{spelled}":{THEIRS},"{name}":{MINE}', expect
    escaped = f"\\u{ord(name[0]):04x}{name[1:]}"
    yield "escaped", f'"{escaped}":{MINE}', "pass"
    yield "escaped, theirs", f'"{escaped}":{THEIRS}', "refuse"
    yield "exact and escaped", f'"{name}":{MINE},"{escaped}":{THEIRS}', "refuse"
    yield "escaped and exact", f'"{escaped}":{THEIRS},"{name}":{MINE}', "refuse"


def of_context(text):
    """The same with contexts instead of tasks."""
    return text.replace("@mine@", "@mine-c@").replace("@theirs@", "@theirs-c@")


def message(shape, more, text="ask"):
    """A message as an object's text; `more` are its further members."""
    if shape == "1.0":
        said = f'"role":"ROLE_USER","parts":[{{"text":"{text}"}}]'
    elif shape == "0.3 REST":
        said = f'"role":"ROLE_USER","content":[{{"text":"{text}"}}]'
    else:
        said = f'"kind":"message","role":"user","parts":[{{"kind":"text","text":"{text}"}}]'
    return f'{{"messageId":"@m@",{said}{"," if more else ""}{more}}}'


SEND = {"1.0": "SendMessage", "0.3": "message/send"}
GET = {"1.0": "GetTask", "0.3": "tasks/get"}
CANCEL = {"1.0": "CancelTask", "0.3": "tasks/cancel"}
CREATE = {
    "1.0": "CreateTaskPushNotificationConfig",
    "0.3": "tasks/pushNotificationConfig/set",
}
OWN = f'"taskId":{MINE},"contextId":"@mine-c@"'


def call(method, params, identity='"id":1'):
    return f'{{"jsonrpc":"2.0",{identity}{"," if identity else ""}"method":"{method}","params":{params}}}'


def envelopes(version, of_mine, of_theirs):
    """The envelope: names, doubled members, what stands around the value."""
    send, mine = SEND[version], call(SEND[version], of_mine)
    inner = mine[1:-1]
    yield "honest", mine, "pass"
    yield "params twice", f'{{{inner},"params":{of_theirs}}}', "refuse"
    yield "params and Params", f'{{{inner},"Params":{of_theirs}}}', "refuse"
    yield "PARAMS alone", mine.replace('"params"', '"PARAMS"'), "refuse"
    yield "Method alone", mine.replace('"method"', '"Method"'), "refuse"
    yield "method twice", f'{{{inner},"method":"{CANCEL[version]}"}}', "refuse"
    yield "method and Method", f'{{{inner},"Method":"{CANCEL[version]}"}}', "refuse"
    yield "method escaped", call(f"\\u{ord(send[0]):04x}{send[1:]}", of_mine), "pass"
    yield "method in another case", call(send.swapcase(), of_mine), "refuse"
    yield "method with a space", call(f"{send} ", of_mine), "refuse"
    yield "method with a dot", call("message.send", of_mine), "refuse"
    yield "no id", call(send, of_mine, ""), "refuse"
    yield "id null", call(send, of_mine, '"id":null'), "refuse"
    yield "id fraction", call(send, of_mine, '"id":1.5'), "refuse"
    yield "id object", call(send, of_mine, '"id":{}'), "refuse"
    yield "id twice", call(send, of_mine, '"id":1,"id":2'), "refuse"
    yield "jsonrpc 1.0", mine.replace('"2.0"', '"1.0"'), "refuse"
    yield "no jsonrpc", mine.replace('"jsonrpc":"2.0",', ""), "refuse"
    yield "batch of one", f"[{mine}]", "refuse"
    yield "batch of two", f"[{mine},{call(send, of_theirs)}]", "refuse"
    yield "text after the value", f"{mine}x", "refuse"
    yield "value after the value", f"{mine}{call(send, of_theirs)}", "refuse"
    yield "value on the next line", f"{mine}\n{call(send, of_theirs)}", "refuse"
    yield "space around the value", f" \r\n\t{mine} \n", "pass"
    yield "NaN", mine[:-1] + ',"x":NaN}', "refuse"
    yield "number too large", mine[:-1] + ',"x":1e999}', "either"
    yield "comment", f"/* */{mine}", "refuse"
    yield "trailing comma", mine[:-1] + ",}", "refuse"


def messages(version):
    """Parameters of a send in which parsers find different tasks, contexts, skills or webhooks."""
    def forgiven(row, expect):
        # ProtoJSON has both spellings, and 0.3 over REST is ProtoJSON.
        return "either" if (version, row) == ("0.3 REST", "own, snake case") else expect

    for row, text, expect in members("taskId", "task_id"):
        yield f"taskId {row}", message(version, text), "", forgiven(row, expect)
    for row, text, expect in members("contextId", "context_id"):
        text = of_context(text)
        yield f"contextId {row}", message(version, text), "", forgiven(row, expect)
    for row, text in [
        ("theirs", '"referenceTaskIds":["@theirs@"]'),
        ("mine and theirs", '"referenceTaskIds":["@mine@","@theirs@"]'),
        ("snake case", '"reference_task_ids":["@theirs@"]'),
        ("doubled", '"referenceTaskIds":["@mine@"],"referenceTaskIds":["@theirs@"]'),
        ("text", '"referenceTaskIds":"@theirs@"'),
        ("nested", '"referenceTaskIds":[["@theirs@"]]'),
    ]:
        yield f"referenceTaskIds {row}", message(version, text), "", "refuse"
    # The messages of 0.3 over REST have no such field.
    known = "either" if version == "0.3 REST" else "pass"
    yield "referenceTaskIds mine", message(version, '"referenceTaskIds":["@mine@"]'), "", known
    mine, theirs = message(version, OWN), message(version, f'"taskId":{THEIRS}')
    yield "message twice", mine, f',"message":{theirs}', "refuse"
    yield "message twice, mine last", theirs, f',"message":{mine}', "refuse"
    yield "message and Message", mine, f',"Message":{theirs}', "refuse"
    yield "message and request", mine, f',"request":{theirs}', "either"
    for row, text, expect in [
        ("listed", '{"skillId":"hello"}', "pass"),
        ("forbidden", '{"skillId":"review"}', "refuse"),
        ("unlisted", '{"skillId":"nonsense"}', "refuse"),
        ("twice", '{"skillId":"hello","skillId":"review"}', "refuse"),
        ("twice, escaped", '{"skillId":"hello","skill\\u0049d":"review"}', "refuse"),
        ("escaped, forbidden", '{"skill\\u0049d":"review"}', "refuse"),
        ("in another case", '{"skillId":"hello","SkillId":"review"}', "refuse"),
        ("in snake case", '{"skillId":"hello","skill_id":"review"}', "refuse"),
        ("long s", '{"\u017fkillId":"review"}', "refuse"),
        ("Kelvin sign", '{"s\u212aillId":"review"}', "refuse"),
        ("array", '{"skillId":["review"]}', "refuse"),
        ("number", '{"skillId":5}', "refuse"),
        ("null", '{"skillId":null}', "refuse"),
    ]:
        yield f"skill {row}", message(version, f'"metadata":{text}'), "", expect
    doubled = '"metadata":{"skillId":"hello"},"metadata":{"skillId":"review"}'
    yield "skill in doubled metadata", message(version, doubled), "", "refuse"
    yield "tenant", mine, ',"tenant":"other"', "either"
    deep = "[" * 200 + "]" * 200
    yield "nesting 200 deep", message(version, f'{OWN},"metadata":{{"x":{deep}}}'), "", "refuse"
    shallow = "[" * 40 + "]" * 40
    yield "nesting 40 deep", message(version, f'{OWN},"metadata":{{"x":{shallow}}}'), "", "pass"
    for role in ("user", "ROLE_USER", 1, "agent"):
        role = f'"{role}"' if isinstance(role, str) else role
        honest = '"role":"user"' if version == "0.3" else '"role":"ROLE_USER"'
        yield f"role {role}", mine.replace(honest, f'"role":{role}'), "", "either"
    both = '"parts":[{"text":"ask","url":"file:///etc/passwd"}]'
    yield "part of two kinds", mine.replace('"parts":[{"text":"ask"}]', both), "", "either"


HOOKS = {
    "1.0": ("taskPushNotificationConfig", "task_push_notification_config"),
    "0.3": ("pushNotificationConfig", "push_notification_config"),
    "0.3 REST": ("pushNotification", "push_notification"),
}


def webhooks(version):
    """(row, configuration or parameters, expectation, whether it creates one)."""
    exact, snake = HOOKS[version]
    good, evil = '{"url":"@hook@"}', '{"url":"@evil@"}'
    yield "allowed", f'"{exact}":{good}', "pass"
    yield "forbidden", f'"{exact}":{evil}', "refuse"
    yield "in snake case", f'"{snake}":{evil}', "refuse"
    yield "allowed and in snake case", f'"{exact}":{good},"{snake}":{evil}', "refuse"
    yield "in snake case and allowed", f'"{snake}":{evil},"{exact}":{good}', "refuse"
    yield "twice", f'"{exact}":{good},"{exact}":{evil}', "refuse"
    yield "in another case", f'"{exact[0].upper()}{exact[1:]}":{evil}', "refuse"
    yield "url twice", f'"{exact}":{{"url":"@hook@","url":"@evil@"}}', "refuse"
    yield "url and URL", f'"{exact}":{{"url":"@hook@","URL":"@evil@"}}', "refuse"
    yield "URL alone", f'"{exact}":{{"URL":"@evil@"}}', "refuse"
    yield "url escaped", f'"{exact}":{{"\\u0075rl":"@evil@"}}', "refuse"
    yield "url array", f'"{exact}":{{"url":["@evil@"]}}', "refuse"
    for other in ("taskPushNotificationConfig", "pushNotificationConfig", "pushNotification"):
        if other != exact:
            yield f"as {other}", f'"{other}":{evil}', "refuse"
            yield f"allowed and as {other}", f'"{exact}":{good},"{other}":{evil}', "refuse"


def creations(version):
    """Parameters that attach a webhook to a task."""
    task, evil_task = f'"taskId":{MINE}', f'"taskId":{THEIRS}'
    if version == "1.0":
        good, evil = '"url":"@hook@"', '"url":"@evil@"'
        yield "nested config", f'{task},{good},"config":{{{evil}}}', "refuse"
        yield "nested config alone", f'{task},"config":{{{evil}}}', "refuse"
        yield "nested 0.3 config", f'{task},{good},"pushNotificationConfig":{{{evil}}}', "refuse"
        yield "url and URL", f'{task},{good},"URL":"@evil@"', "refuse"
    else:
        good, evil = (f'"pushNotificationConfig":{{"url":"@{u}@"}}' for u in ("hook", "evil"))
        snake = evil.replace("pushNotificationConfig", "push_notification_config")
        yield "in snake case", f"{task},{snake}", "refuse"
        yield "exact and in snake case", f"{task},{good},{snake}", "refuse"
        yield "flat beside nested", f'{task},{good},"url":"@evil@"', "either"
    yield "allowed", f"{task},{good}", "pass"
    yield "forbidden", f"{task},{evil}", "refuse"
    yield "twice", f"{task},{good},{evil}", "refuse"
    yield "their task", f"{evil_task},{good}", "refuse"
    yield "taskId twice", f"{task},{evil_task},{good}", "refuse"
    yield "task_id too", f'{task},"task_id":{THEIRS},{good}', "refuse"


# A2A-Version headers beside a body of each version: (row, values, expectations in 1.0 and 0.3).
VERSIONS = [
    ("none", [], "pass", "pass"),
    ("1.0", ["1.0"], "pass", "refuse"),
    ("0.3", ["0.3"], "refuse", "pass"),
    ("empty", [""], "either", "either"),
    ("1", ["1"], "refuse", "refuse"),
    ("1.0.1", ["1.0.1"], "either", "refuse"),
    ("1.1", ["1.1"], "refuse", "refuse"),
    ("v1.0", ["v1.0"], "refuse", "refuse"),
    ("2.0", ["2.0"], "refuse", "refuse"),
    ("0.9", ["0.9"], "refuse", "refuse"),
    ("abc", ["abc"], "refuse", "refuse"),
    ("a list", ["1.0, 0.3"], "refuse", "refuse"),
    ("twice, differing", ["1.0", "0.3"], "refuse", "refuse"),
    ("twice, alike", ["1.0", "1.0"], "refuse", "refuse"),
]


def declared(version):
    """The A2A-Version header that honest clients send."""
    return (("A2A-Version", version),) if version == "1.0" else ()


def around(case, text):
    """The same body with other heads, or as other bytes."""
    plain = (("Content-Type", "application/json"),)
    for row, values, new, old in VERSIONS:
        headers = plain + tuple(("A2A-Version", value) for value in values)
        expect = new if case.version == "1.0" else old
        yield replace(case, name=f"A2A-Version {row}", headers=headers, expect=expect)
    for content, expect in [
        ("text/plain", "refuse"),
        ("application/x-www-form-urlencoded", "refuse"),
        ("application/grpc", "refuse"),
        ("application/json; charset=utf-16", "refuse"),
        ("application/json; charset=utf-8", "pass"),
        ("application/jsonx", "refuse"),
    ]:
        headers = (("Content-Type", content), *declared(case.version))
        yield replace(case, name=f"Content-Type {content}", headers=headers, expect=expect)
    headers = plain + declared(case.version)
    for row, body in [
        ("BOM", b"\xef\xbb\xbf" + text.encode()),
        ("UTF-16", text.encode("utf-16")),
        ("UTF-16 without BOM", text.encode("utf-16-le")),
        ("UTF-32", text.encode("utf-32")),
        ("invalid UTF-8", text.encode().replace(b"ask", b"ask\xff")),
        ("overlong UTF-8", text.encode().replace(b"ask", b"ask\xc0\xaf")),
    ]:
        yield replace(case, name=row, body=body, headers=headers, expect="refuse")
    encoded = (*headers, ("Content-Encoding", "gzip"))
    squeezed = gzip.compress(text.encode(), mtime=0)
    yield replace(case, name="gzip", body=squeezed, headers=encoded, expect="refuse")
    yield replace(case, name="gzip, said but not done", headers=encoded, expect="refuse")


def jsonrpc(version):
    """Every case of JSON-RPC in one version."""
    headers = (("Content-Type", "application/json"), *declared(version))

    def case(name, text, expect, **more):
        return Case(name, expect, text.encode("utf-8", "surrogatepass"), version, headers=headers, **more)

    of_mine = f'{{"message":{message(version, OWN)}}}'
    of_theirs = f'{{"message":{message(version, f"{chr(34)}taskId{chr(34)}:{THEIRS}")}}}'
    for row, text, expect in envelopes(version, of_mine, of_theirs):
        yield case(row, text, expect)
    for row, said, more, expect in messages(version):
        yield case(row, call(SEND[version], f'{{"message":{said}{more}}}'), expect)
    for what, method in (("get", GET[version]), ("cancel", CANCEL[version])):
        for row, text, expect in members("id", "ID"):
            if what == "get" or expect == "refuse":
                yield case(f"{what}: id {row}", call(method, f"{{{text}}}"), expect)
        beside = f'{{"id":{MINE},"taskId":{THEIRS}}}'
        yield case(f"{what}: id beside taskId", call(method, beside), "either")
    for row, text, expect in webhooks(version):
        said = f'{{"message":{message(version, "")},"configuration":{{{text}}}}}'
        yield case(f"webhook {row}", call(SEND[version], said), expect)
    for row, text, expect in creations(version):
        yield case(f"create webhook: {row}", call(CREATE[version], f"{{{text}}}"), expect)
    other = {"1.0": "0.3", "0.3": "1.0"}[version]
    crossed = f'{{"message":{message(other, OWN)}}}'
    yield case("message of the other version", call(SEND[version], crossed), "either")
    honest = call(SEND[version], of_mine)
    yield from around(case("honest", honest, "pass"), honest)
