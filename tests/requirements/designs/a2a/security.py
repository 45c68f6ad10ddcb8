"""A2A 1.0, sections 7, 13.1 and 13.4: who calls, what it may, and approvals within a task."""

from tests.requirements.designs.a2a.proof import at_client, at_server

_CALLERS = (
    at_server(
        "auth-tls-001",
        "In production requests are encrypted.",
        "7.1, 13.4",
    ),
    at_server(
        "auth-tls-002",
        "TLS is of a modern version, older ones are switched off, and HSTS is set, by the proxy "
        "in front.",
        "7.1, 13.4",
    ),
    at_client("auth-server-001", "A client checks the certificate of a server.", "7.2"),
    at_client(
        "auth:credentials",
        "A client reads in the card what is asked for, and brings it with every request, in "
        "headers.",
        "7.3",
    ),
    at_server("auth-server-002", "Every request is authenticated.", "7.4"),
    at_server("auth:policy", "What an agent looks at to permit is its own affair.", "7.5"),
)

_SCOPE = (
    at_server("auth-scope-001", "Every operation is permitted or refused.", "13.1"),
    at_server(
        "auth-scope-002",
        "Results are those of the caller, with a filter or without.",
        "13.1",
    ),
    at_server(
        "auth-scope-tasks",
        "Showing, cancelling, subscribing and webhooks are for the owner of a task.",
        "13.1",
    ),
    at_server(
        "auth-scope-first",
        "It is judged before anything could tell that something exists.",
        "13.1",
    ),
    at_server("auth-scope-documented", "Who may do what is written down.", "13.1"),
)

_WITHIN = (
    at_server("auth-intask-001", "What needs an approval is a task.", "7.6.1"),
    at_server("auth-intask-002", "Its state says that it waits for one.", "7.6.1"),
    at_server("auth-intask-003", "A message of its status says for which.", "7.6.1"),
    at_server(
        "auth-intask-004",
        "Credentials do not come in messages, unless an extension says how.",
        "7.6.1, 7.6.3",
    ),
    at_server(
        "auth-intask-005",
        "Streams stay open while a credential comes by another way.",
        "7.6.1",
    ),
    at_server(
        "auth-intask-006",
        "Messages to a task that waits are taken; it may go on without one.",
        "7.6.1",
    ),
    at_server(
        "auth-intask-means-nothing",
        "That a task waits for an approval approves nothing, and what was approved is no more "
        "than what was asked.",
        "7.6.4",
    ),
    at_client(
        "auth-intask-chain",
        "A client that is an agent may pass the question on to its own client.",
        "7.6.2",
    ),
    at_client(
        "auth-intask-follow",
        "A client that waits subscribes, names a webhook or polls.",
        "7.6.2",
    ),
)

_PRACTICE = (
    at_server("practice:bounds", "Messages, files and requests have bounds.", "13.4"),
    at_server("practice:media", "Unexpected media types are refused.", "13.4"),
    at_server(
        "practice:secrets",
        "Credentials are secrets: in no log, revocable, and replaced from time to time.",
        "13.4",
    ),
    at_server(
        "practice:failures",
        "Failed attempts to authenticate are logged and bounded.",
        "13.4",
    ),
    at_server("practice:audit", "What was done can be read again, and is watched.", "13.4"),
    at_server("practice:rates", "Operations are bounded a minute, and that is told.", "13.4"),
    at_server(
        "practice:privacy",
        "Data can be deleted and is kept for a time that is written down.",
        "13.4",
    ),
)

ROWS = (*_CALLERS, *_SCOPE, *_WITHIN, *_PRACTICE)
