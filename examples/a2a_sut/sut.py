"""The agent that the public conformance kit of A2A asks.

What it does is decided by how the id of the message begins, as the kit says.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable

import carnet

HISTORY = "TCK history message"  # how the kit begins what it says in between
LONG_SECONDS = 4.0  # twice what the kit waits for the events of a stream

FILE = carnet.File(b64encode(b"tck").decode(), "output.txt", "text/plain")
LINK = carnet.Link("https://example.com/output.txt", "output.txt", "text/plain")
MESSAGE = carnet.Message("assistant", ("Direct message response",))

Answer = AsyncIterator[object]


def say(*parts: object) -> Callable[[carnet.Visit], Answer]:
    """What answers with these parts, one after the other."""

    async def answer(_visit: carnet.Visit) -> Answer:
        for part in parts:
            yield part

    return answer


async def ask(visit: carnet.Visit) -> Answer:
    """Wait for the caller to say more."""
    given = await visit.interrupt(input="What more is there to say?")
    while str(given.value).startswith(HISTORY):  # the kit says some of it before the end
        given = await visit.interrupt(input="What more is there to say?")
    yield f"You said {given.value}."


async def take_long(_visit: carnet.Visit) -> Answer:
    """Run for so long that somebody can subscribe."""
    yield "It takes "
    await asyncio.sleep(LONG_SECONDS)
    yield "a while."


async def refuse(_visit: carnet.Visit) -> Answer:
    """Do not take it on."""
    raise carnet.TaskRejected
    yield ""


# The longer of two beginnings comes first.
ANSWERS = {
    "tck-stream-artifact-chunked": say("chunk-1 ", "chunk-2"),
    "tck-stream-artifact-file": say(FILE),
    "tck-stream-artifact-text": say("Streamed text content"),
    "tck-stream-ordering-001": say("Ordered output"),
    "tck-stream-001": say("Stream hello from TCK"),
    "tck-stream-002": say(),
    "tck-stream-003": say("Stream task lifecycle"),
    "tck-artifact-file-url": say(LINK),
    "tck-artifact-file": say(FILE),
    "tck-artifact-text": say("Generated text content"),
    "tck-artifact-data": say({"key": "value", "count": 42}),
    "tck-message-response": say(MESSAGE),
    "tck-complete-task": say("Hello from TCK"),
    "tck-input-required": ask,
    "tck-reject-task": refuse,
    "test-resubscribe-message-id": take_long,
}


@carnet.agent("tck")
async def tck(visit: carnet.Visit) -> Answer:
    """Answer by how the id of the message begins."""
    name = visit.messages[-1].id or ""
    found = [answer for begins, answer in ANSWERS.items() if name.startswith(begins)]
    answer = found[0] if found else say(f"Nothing is known that begins as {name} does.")
    async for part in answer(visit):
        yield part
