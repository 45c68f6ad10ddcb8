"""What is left of the tokens of a turn, asked through a gateway: it fails closed."""

import json

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import BudgetExceeded, ProviderUnavailable, ToolUnusable
from carnet.runtime.tools.bearer.tokens import BearerTokens
from tests.runtime.tools.bearer.test_calls import Gateway

SHORT = {"budget": "call", "part": "tokens", "observed": 1201, "limit": 1000}


def tokens(gateway: Gateway) -> BearerTokens:
    return BearerTokens(gateway, "http://127.0.0.1:8700", Secret("a.b.c"))


@pytest.mark.parametrize("left", [None, 1, 700])
async def test_a_gateway_is_told_what_was_used_and_says_what_is_left(left: int | None) -> None:
    gateway = Gateway(200, {"left": left})
    asked = tokens(gateway)
    assert await asked.left(300) == left
    asked.count(300)
    (sent,) = gateway.sent
    assert (sent.url, json.loads(sent.body)) == (
        "http://127.0.0.1:8700/turn/tokens",
        {"used": 300},
    )
    assert sent.secrets["authorization"].reveal() == "Bearer a.b.c"
    assert (asked.known, asked.short) == (0, None)


async def test_its_refusal_is_a_budget_that_is_exceeded_with_what_it_says_of_it() -> None:
    page = {"error": {"code": "budget_exceeded", **SHORT, "more": "x"}}
    asked = tokens(Gateway(402, page))
    with pytest.raises(BudgetExceeded) as refused:
        await asked.left(300)
    assert refused.value.facts == SHORT
    assert asked.short is refused.value
    with pytest.raises(BudgetExceeded) as hidden:
        await tokens(Gateway(402, {"budget": "token", "part": "tokens", "limit": "9"})).left(0)
    assert hidden.value.facts == {"budget": "token", "part": "tokens"}


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (200, {"left": 0}),
        (200, {"left": -1}),
        (200, {"left": True}),
        (200, {"left": "9"}),
        (401, {}),
        (403, {}),
        (404, {}),
        (500, {}),
        (200, b"no json"),
        (0, ProviderUnavailable("nobody is there")),
    ],
)
async def test_whatever_else_it_says_no_model_is_asked(status: int, page: object) -> None:
    with pytest.raises(ToolUnusable):
        await tokens(Gateway(status, page)).left(0)
