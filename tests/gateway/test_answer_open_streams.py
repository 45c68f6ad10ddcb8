"""What an open stream holds: the call, and nothing of the request that it came with."""

import asyncio
import gc
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.core.call import Call, Claim
from carnet.guards.admission.transaction import Entry
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import TurnClaim
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.grammar.headers import Headers
from tests.runtime.peer import Line, Peer, chunk, stream_head
from tests.support.house import House, _scope, housed

AGENT = """
import asyncio

async def silent(visit):
    yield "one word"
    await asyncio.Event().wait()
"""
CONFIG = """
[agents.silent]
kind = "python"
target = "silent_agents:silent"
"""
SENTENCE = "a sentence that stands nowhere else"
OVER = (Arrival, Claim, Candidate, Entry, TurnClaim, Headers)


def alive() -> Counter[object]:
    """The objects there are, by their type, and how many bytes objects hold the sentence."""
    gc.collect()
    found: Counter[object] = Counter()
    for each in gc.get_objects():
        found[type(each)] += 1
        for held in gc.get_referents(each):
            if isinstance(held, bytes | bytearray) and SENTENCE.encode() in held:
                found["bodies"] += 1
    return found


@asynccontextmanager
async def streaming(house: House) -> AsyncIterator[list[bytes]]:
    """A stream that has said its first word; what it has written."""
    written: list[bytes] = []
    spoken = asyncio.Event()
    ask = {"model": "silent", "stream": True, "messages": [{"role": "user", "content": SENTENCE}]}
    parts: list[dict[str, Any]] = [
        {"type": "http.request", "body": json.dumps(ask).encode(), "more_body": False}
    ]

    async def receive() -> Any:
        return parts.pop()

    async def send(event: Any) -> None:
        written.append(event.get("body", b""))
        if b"one word" in written[-1]:
            spoken.set()

    fields = [("authorization", f"Bearer {house.token}"), ("content-type", "application/json")]
    scope = _scope("POST", "/v1/chat/completions", fields, len(parts[0]["body"]))
    answering = asyncio.create_task(house.gateway.app(scope, receive, send))
    try:
        await asyncio.wait_for(spoken.wait(), 30)
        yield written
    finally:
        answering.cancel()
        await asyncio.wait([answering])


async def one_word(line: Line) -> None:
    await line.request()
    word = {"choices": [{"index": 0, "delta": {"content": "one word"}}]}
    await line.say(stream_head() + chunk(b"data: " + json.dumps(word).encode() + b"\n\n"))
    await line.until_gone()


@pytest.mark.parametrize("kind", ["openai", "tangle"])
async def test_what_was_sent_on_ends_when_the_answer_begins(tmp_path: Path, kind: str) -> None:
    gc.collect()
    gc.freeze()
    async with Peer(one_word) as peer:
        elsewhere = f'[agents.silent]\nkind = "{kind}"\nurl = "{peer.url}"\nmodel = "m"\n'
        async with housed(tmp_path, elsewhere) as house:
            before = alive()
            async with streaming(house):
                (sent,) = peer.requests
                assert SENTENCE.encode() in sent.body
                del sent
                peer.requests.clear()
                now = alive()
    assert now["bodies"] == before["bodies"]


async def test_body_head_and_claim_end_before_an_answer_is_open(tmp_path: Path) -> None:
    (tmp_path / "silent_agents.py").write_text(AGENT)
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through: a million objects, twice
    async with housed(tmp_path, CONFIG) as house:
        before = alive()
        async with streaming(house):
            now = alive()
    assert now[Call] > before[Call]
    assert {kind: now[kind] - before[kind] for kind in (*OVER, "bodies")} == dict.fromkeys(
        (*OVER, "bodies"), 0
    )
