"""A2A 1.0, sections 3.1.2, 3.1.6 to 3.1.10, 3.5, 4.3 and 13.2: streams and notifications."""

from tests.requirements.designs.a2a.proof import at_client, at_server

_STREAMS = (
    at_server("core-stream-001", "A streamed message opens a stream.", "3.1.2"),
    at_server(
        "core-stream-002",
        "An answer that is a message is the only one of its stream.",
        "3.1.2",
    ),
    at_server(
        "core-stream-003",
        "One that is a task begins with it, goes on with updates and closes when the task has "
        "ended.",
        "3.1.2",
    ),
    at_server(
        "stream:at-once",
        "What is known of the progress is told as it happens.",
        "3.1.2",
    ),
    at_server("stream-sub-001", "A subscription begins with the task as it is.", "3.1.6"),
    at_server("stream-sub-002", "It closes when the task has ended.", "3.1.6"),
    at_server(
        "stream-sub-003",
        "A task that has ended cannot be subscribed to.",
        "3.1.6",
    ),
    at_server("stream-sub-004", "One that is not there is not found.", "3.1.6"),
    at_server(
        "stream-order-001",
        "Events come in the order in which they were made.",
        "3.5.2",
    ),
    at_server("stream-order-002", "Every open stream of a task has every event.", "3.5.2"),
    at_server("stream-order-003", "All of them in the same order.", "3.5.2"),
    at_server(
        "stream-order-004",
        "Who leaves one stream disturbs no other, nor the task.",
        "3.5.2",
    ),
    at_server(
        "stream:several",
        "A task may have several streams, of one client or more.",
        "3.5.2",
    ),
    at_server(
        "stream:snapshot",
        "The last event may be the whole task once more.",
        "11.7",
    ),
    at_client(
        "stream:away",
        "A client that was away may have missed messages.",
        "3.7",
    ),
)

_CONFIGS = (
    at_server("push-create-001", "A webhook can be named for a task.", "3.1.7"),
    at_server(
        "push-create-002",
        "It stays until the task has ended or it is deleted.",
        "3.1.7",
    ),
    at_server("push-get-001", "It is shown with its URL and settings.", "3.1.8"),
    at_server(
        "push-get-002",
        "One that is not there, or not the caller's, is not found.",
        "3.1.8",
    ),
    at_server("push-list-001", "All of a task are listed, page by page if wanted.", "3.1.9"),
    at_server(
        "push-del-001",
        "A deleted one is gone, and is sent nothing more.",
        "3.1.10",
    ),
    at_server("push-del-002", "Deleting it twice is like once.", "3.1.10"),
)

_DELIVERY = (
    at_server(
        "push-deliver-001",
        "A notification has the credentials that its configuration names.",
        "4.3.3, 13.2",
    ),
    at_server("push-deliver-002", "Each webhook is tried at least once.", "4.3.3"),
    at_server(
        "push-deliver-003",
        "What is sent is one event of a stream, whatever the binding.",
        "4.3.3, 3.5.1",
    ),
    at_server(
        "push:retries",
        "What fails is tried again, each time later, and not for ever.",
        "4.3.3, 13.2",
    ),
    at_server("push:timeout", "An attempt lasts 10 to 30 seconds at the most.", "4.3.3, 13.2"),
    at_server(
        "push:ssrf",
        "A URL that leads to a private, local or link-local address is refused.",
        "13.2",
    ),
    at_server("push:https", "Webhooks are https.", "13.2"),
    at_server(
        "push:secrets",
        "Their credentials are secrets, kept as such.",
        "13.2",
    ),
    at_client(
        "push:receiver",
        "Who receives one checks who sent it and of which task it is, answers 2xx, takes it twice "
        "as once, and bounds how many come.",
        "4.3.3, 13.2",
    ),
    at_client(
        "push:own-token",
        "A client has a credential of its own for each webhook.",
        "13.2",
    ),
)

ROWS = (*_STREAMS, *_CONFIGS, *_DELIVERY)
