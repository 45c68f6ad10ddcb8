"""The exchange of tokens as a form."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.trust.federation import (
    SCOPES,
    SEND,
    FederationRule,
    admitting,
    permissions_of,
)
from carnet.wire.identity.token_exchange import (
    ExchangeRefused,
    read_request,
    request_form,
    write_answer,
)

FORM = request_form(subject_token="s", client_assertion="c", resource="r", scopes=SCOPES)


def test_what_is_written_is_read() -> None:
    found = read_request(urlencode(FORM).encode())
    assert (found.subject_token, found.client_assertion, found.resource) == ("s", "c", "r")
    assert (found.scopes, found.wants_messages) == (SCOPES, True)
    assert write_answer("t", (SEND,), 300)["scope"] == SEND


@given(st.binary())
def test_whatever_the_body_it_is_a_request_or_refused(body: bytes) -> None:
    with pytest.raises(ExchangeRefused) as raised:
        read_request(body)
    assert raised.value.status in {400, 401}


def test_a_rule_is_for_its_methods_users_and_agents() -> None:
    rule = FederationRule(issuer="i", methods=("m",), subjects=("u:1/*",), agents=("a",))
    assert admitting([rule], "i", "m", "u:1/x", "a") is rule
    assert admitting([rule], "i", None, "u:1/x", "a") is rule
    for issuer, method, subject, agent in (
        ("j", "m", "u:1/x", "a"),
        ("i", "n", "u:1/x", "a"),
        ("i", "m", "u:2/x", "a"),
        ("i", "m", "u:1/x", "b"),
    ):
        assert admitting([rule], issuer, method, subject, agent) is None


def test_scopes_permit_what_they_stand_for_at_one_agent() -> None:
    rights = {"call:a", "pay", "run:read", "run:cancel"}
    assert permissions_of(SCOPES, "a", pays=True) == rights | set(SCOPES)
    assert permissions_of([SEND], "a", pays=False) == {"call:a", SEND}
    assert permissions_of(["x"], "a", pays=True) == frozenset()
