"""What official SDKs do among themselves, without any gateway, that is not what their users expect."""


def spread(rows):
    """One entry for every combination of a row's lists."""
    return {
        (agent, client, version, binding, step): text
        for agents, client, version, binding, steps, text in rows
        for agent in agents
        for step in steps
    }


PUSH_LISTS = ["push, list", "push, delete", "push, none left"]
PYTHONS = ["python", "python03"]

# Agents, client, version, binding, steps: a part of the problem.
FAILS_DIRECTLY = spread(
    [
        # Python's client has no 0.3 form of these over REST.
        ([*PYTHONS, "js-legacy"], "python", "0.3", "HTTP+JSON", PUSH_LISTS, "NotImplementedError"),
        # Python's client reads JSON from the empty answer to a deletion (204 from JS, 200 from Rust).
        (
            ["js", "js-legacy", "rust"],
            "python",
            "1.0",
            "HTTP+JSON",
            ["push, delete"],
            "JSON Decode Error",
        ),
        # The old Python server has none of these over gRPC.
        (["python03"], "python", "0.3", "GRPC", PUSH_LISTS, "UNIMPLEMENTED"),
        (["python03"], "js", "0.3", "GRPC", PUSH_LISTS, "not implemented"),
        # Python and JavaScript disagree about the body that creates a webhook over REST in 0.3 ...
        (PYTHONS, "js", "0.3", "HTTP+JSON", ["push, create"], "Status: "),
        (PYTHONS, "js", "0.3", "HTTP+JSON", ["push, get"], "Status: "),
        (["js-legacy"], "python", "0.3", "HTTP+JSON", ["push, create"], "400 Bad Request"),
        (["js-legacy"], "python", "0.3", "HTTP+JSON", ["push, get"], "Resource not found"),
        (["js-legacy"], "python03", "0.3", "HTTP+JSON", ["push, create"], "400 Bad Request"),
        (["js-legacy"], "python03", "0.3", "HTTP+JSON", ["push, get"], "404 Not Found"),
        # ... so that there is nothing to list, and Python's servers have no such deletion.
        (["python"], "js", "0.3", "HTTP+JSON", ["push, list"], "told []"),
        (["python"], "js", "0.3", "HTTP+JSON", ["push, delete"], "404 Not Found"),
        (["python03"], "js", "0.3", "HTTP+JSON", ["push, list", "push, none left"], "Status: 500"),
        (["python03"], "js", "0.3", "HTTP+JSON", ["push, delete"], "405 Method Not Allowed"),
    ]
)

# Agent, client, version, binding, step: requests and executions where they are not the usual ones.
COUNTED = {
    # POST is answered with 405, then the client tries GET.
    ("python03", "python", "0.3", "HTTP+JSON", "watch and cancel"): (4, 1),
}
