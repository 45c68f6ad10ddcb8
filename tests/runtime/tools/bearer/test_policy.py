"""The operator's policy, asked through a gateway: it can deny, and fails closed."""

import json

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import PolicyDenied, ProviderUnavailable
from carnet.runtime.tools.bearer.policy import BearerPolicy
from tests.runtime.tools.bearer.test_calls import Gateway


async def asked(gateway: Gateway) -> None:
    await BearerPolicy(gateway, "http://127.0.0.1:8700", Secret("a.b.c"), seconds=2.0)("peek")


async def test_a_gateway_that_has_nothing_against_a_tool_is_told_its_name() -> None:
    gateway = Gateway(200, {"tool": "peek", "denied": False})
    await asked(gateway)
    (sent,) = gateway.sent
    assert (sent.url, json.loads(sent.body)) == (
        "http://127.0.0.1:8700/turn/policy",
        {"tool": "peek"},
    )
    assert sent.secrets["authorization"].reveal() == "Bearer a.b.c"
    assert sent.bounds.total_seconds == 7.0


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (403, {"code": "policy_denied"}),
        (200, {}),
        (200, {"denied": True}),
        (200, {"denied": None}),
        (401, {}),
        (404, {}),
        (409, {"message": "elsewhere"}),
        (500, {}),
        (200, b"no json"),
        (0, ProviderUnavailable("nobody is there")),
    ],
)
async def test_whatever_else_it_says_denies(status: int, page: object) -> None:
    with pytest.raises(PolicyDenied):
        await asked(Gateway(status, page))
