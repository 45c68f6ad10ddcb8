"""Issuers that are asked about tokens: what one of them costs the others."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from carnet.core.people.address import Identities
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import Secret
from carnet.errors import Overloaded, TokenInvalid
from carnet.ports.world.http_client import Outbound
from carnet.runtime.identity.issuers import MOST_REMEMBERED, Issuers, OAuthIssuer
from carnet.runtime.peers.cards import AT_ONCE, QUEUE
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so

NOW = 1_800_000_000


class Answer:
    """What an issuer says of a token."""

    status = 200

    def __init__(self, page: dict[str, Any]) -> None:
        self._page = page

    async def read(self) -> bytes:
        return json.dumps(page).encode() if (page := self._page) else b"{}"


class Servers:
    """Two issuers: one does not answer until it is let, the other knows one token."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.let = asyncio.Event()

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Answer]:
        (token,) = parse_qs(request.body.decode())["token"]
        self.asked.append((request.url, token))
        if "slow" in request.url:
            await self.let.wait()
        good = {"active": True, "sub": "u", "aud": "acme.example", "exp": NOW + 300}
        yield Answer(good if token == "good" else {"active": False})


def issuers(http: Servers, *names: str) -> Issuers:
    listed = [
        OAuthIssuer(issuer=f"https://{name}", introspection_url=f"https://{name}/ask")
        for name in names
    ]
    at = Identities(["echo"], domain="acme.example", default="echo")
    clock = FakeClock(wall_us=NOW * 1_000_000)
    return Issuers(listed, http, clock, at, "https://acme.example")  # type: ignore[arg-type]  # send


def shown(token: str, issuer: str | None = None) -> AccessToken:
    return AccessToken(token=Secret(token), issuer=issuer)


async def test_one_that_does_not_answer_costs_another_nothing() -> None:
    http = Servers()
    both = issuers(http, "slow.example", "quick.example")
    async with asyncio.TaskGroup() as group:
        waiting = [
            group.create_task(_tried(both, shown(f"t{number}", "https://slow.example")))
            for number in range(QUEUE)
        ]
        await until_so(lambda: len(http.asked) == AT_ONCE)
        with pytest.raises(Overloaded):
            await both.find(shown("one-more", "https://slow.example"), "echo", NOW * 1_000_000)
        found = await both.find(shown("good", "https://quick.example"), "echo", NOW * 1_000_000)
        assert found.subject == "u"
        http.let.set()
    assert {each.result() for each in waiting} == {"token_invalid"}


async def _tried(of: Issuers, token: AccessToken) -> str:
    with pytest.raises(TokenInvalid) as refused:
        await of.find(token, "echo", NOW * 1_000_000)
    return refused.value.code


async def test_tokens_that_are_made_up_displace_none_that_is_known() -> None:
    http = Servers()
    one = issuers(http, "quick.example")
    for token in ("good", *[f"made-up-{number}" for number in range(MOST_REMEMBERED)]):
        if token == "good":
            await one.find(shown(token), "echo", NOW * 1_000_000)
        else:
            await _tried(one, shown(token))
    before = len(http.asked)
    assert (await one.find(shown("good"), "echo", NOW * 1_000_000)).subject == "u"
    assert len(http.asked) == before


async def test_a_token_that_names_nobody_is_told_to_no_one_of_several() -> None:
    http = Servers()
    both = issuers(http, "quick.example", "quick-too.example")
    assert await _tried(both, shown("good")) == "token_invalid"
    assert http.asked == []
