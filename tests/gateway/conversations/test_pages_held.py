"""What is held of messages until somebody has read it is counted, for as long as it is held."""

from types import SimpleNamespace
from typing import Any

import pytest

from carnet.core.people.identity import Actor, Caller
from carnet.gateway.conversations.claims import FrontPolicy
from carnet.gateway.conversations.messages import REPEAT_BYTES, MessageEndpoint
from carnet.gateway.conversations.pages import PAGE_BYTES, ConversationPages
from carnet.guards.readers import Readers
from carnet.ports.calls.conversations import BegunAnswer, KeptConversation, KeptMessage
from carnet.runtime.system import SystemClock
from carnet.wire.grammar.headers import Headers

CALLER = Caller(actor=Actor(name="token:alice"), scopes=frozenset())
CONVERSATION = KeptConversation(
    n=1,
    id="cnv_1",
    owner="token:alice",
    agent="echo",
    title="hello",
    trigger="message",
    created=1,
    updated=1,
    head=None,
    answering=None,
    unread=0,
    archived=None,
    size=0,
    tokens_in=0,
    tokens_out=0,
    cost=0,
)
ANSWER = KeptMessage(
    n=2,
    id="msg_2",
    conversation=1,
    parent=1,
    role="assistant",
    author="echo",
    parts=b"",
    metadata=None,
    state="whole",
    run=None,
    turn=None,
    waits=False,
    code=None,
    client_id=None,
    tokens_in=None,
    tokens_out=None,
    cost=None,
    created=1,
    ended=1,
)


class KeptOnes:
    """A store with one conversation, in which one answer is whole."""

    async def find(self, *_: object) -> KeptConversation:
        return CONVERSATION

    async def branch(self, *_: object, **__: object) -> list[KeptMessage]:
        return []

    async def message(self, *_: object) -> None:
        return None

    async def begin(self, *_: object) -> BegunAnswer:
        return BegunAnswer(CONVERSATION, ANSWER, ANSWER, is_new=False)


class SlowReader:
    """An exchange that notes how much is counted whenever its reader is given something."""

    query, method, headers = b"", "GET", Headers([(b"content-type", b"application/json")])

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self.counted: set[int] = set()

    async def read(self, *_: object) -> bytes:
        return b'{"content": "hello", "client_message_id": "one"}'

    async def write(self, *_: object, **__: object) -> None:
        self.counted.add(self._readers.total)

    start = reply = write


@pytest.mark.parametrize("page", ["show", "export"])
async def test_a_page_is_counted_until_its_reader_has_it(page: str) -> None:
    readers, kept = Readers(), KeptOnes()
    clock, policy = SystemClock(), FrontPolicy()
    exchange: Any = SlowReader(readers)
    store: Any = kept
    pages = ConversationPages(store, policy, clock, readers=readers, words=lambda text: (text,))
    await getattr(pages, page)(exchange, CALLER, "cnv_1")
    assert exchange.counted == {PAGE_BYTES}
    assert readers.total == 0


async def test_an_answer_that_is_told_again_is_counted_until_its_reader_has_it() -> None:
    readers, kept = Readers(), KeptOnes()
    exchange: Any = SlowReader(readers)

    async def as_they_are(_: str, __: KeptMessage, events: object) -> object:
        return events

    parts: Any = SimpleNamespace(
        begin=lambda: 0.0,
        readers=readers,
        choose=lambda *_: SimpleNamespace(name="echo"),
        message=lambda *_, **__: None,
        with_resolutions=as_they_are,
    )
    store: Any = kept
    own = (parts, store, parts, parts, parts, FrontPolicy(), parts)
    await MessageEndpoint(*own).send(exchange, CALLER)
    assert exchange.counted == {REPEAT_BYTES}
    assert readers.total == 0
