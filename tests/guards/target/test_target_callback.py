"""May a task call back to that address: judged once, of those alone that name one."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import CallbackForbidden, KeyUnknown, SchemaInvalid
from carnet.guards.target.target import CalledBack
from tests.guards.signed_scene import candidate, signed_claim

URL = "https://hooks.example/in"


class Judging:
    """Refuses what it is told to, and notes what it was asked."""

    def __init__(self, *forbidden: str) -> None:
        self._forbidden = forbidden
        self.asked: list[str] = []
        self.senders: set[str] = set()

    async def check(self, url: str, sender: str, /) -> None:
        self.asked.append(url)
        self.senders.add(sender)
        if url in self._forbidden:
            raise CallbackForbidden


def naming(url: str | None) -> Any:
    return candidate(replace(signed_claim(), is_task=url is not None, callback=url))


async def test_a_callback_is_judged() -> None:
    judging = Judging()
    waiting = CalledBack(judging)(naming(URL))
    assert waiting is not None
    await waiting
    assert (judging.asked, judging.senders) == ([URL], {candidate(signed_claim()).proof.sender})


async def test_a_callback_that_is_forbidden_is_refused() -> None:
    waiting = CalledBack(Judging(URL))(naming(URL))
    assert waiting is not None
    with pytest.raises(CallbackForbidden):
        await waiting


def test_a_claim_without_one_waits_for_nothing() -> None:
    judging = Judging()
    assert CalledBack(judging)(naming(None)) is None
    assert judging.asked == []


def test_where_nothing_is_delivered_none_is_accepted() -> None:
    with pytest.raises(CallbackForbidden) as refused:
        CalledBack(None)(naming(URL))
    assert "nothing is delivered" in str(refused.value)
    assert CalledBack(None)(naming(None)) is None


def test_it_is_malformed_and_neither_unknown_nor_retryable() -> None:
    assert CallbackForbidden.status == SchemaInvalid.status == 422
    assert not CallbackForbidden.retryable
    assert not issubclass(CallbackForbidden, KeyUnknown)
