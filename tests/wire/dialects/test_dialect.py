"""What every dialect sees of a request, and what callers may know before they call."""

import pytest

from carnet.core.call import Price, Target
from carnet.wire.crypto.components import Request
from carnet.wire.dialects import openai
from carnet.wire.dialects.dialect import Arrival, Terms, most_cost
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from tests.wire.dialects.scene import target


def test_the_head_and_the_stamps_of_a_request_are_read_once_and_by_those_who_look() -> None:
    heads: list[Request] = []
    headers = Headers([(b"x-tangle-runid", b"conv_1")])

    def head() -> Request:
        heads.append(Request(method="POST", authority="", path="/", headers=headers))
        return heads[-1]

    arrival = Arrival(openai.DIALECT.ways[0], headers, head=head, stamps=STAMPS)
    assert (heads, arrival.body, arrival.agent, arrival.run) == ([], b"", None, None)
    assert (dict(arrival.names), arrival.by_host()) == ({}, "")
    assert arrival.stamped().run == "conv_1"
    assert arrival.stamped() is arrival.stamped()
    assert arrival.request is arrival.request
    assert heads == [arrival.request]


@pytest.mark.parametrize(
    ("found", "most"),
    [
        (target(kind="http", price=Price(per_call=5), most_cost=7), 5),
        (target(kind="http", price=Price(per_call=5), most_cost=7, is_remote=True), 12),
        (target(kind="http", price=Price(per_call=5, per_million_in=1)), None),
        (target(kind="python", price=Price(per_call=5)), None),  # which may call others
    ],
)
def test_the_most_that_a_call_costs_is_told_where_it_is_known(
    found: Target, most: int | None
) -> None:
    assert most_cost(found) == most


def test_terms_are_shown_in_the_currency_and_not_in_its_smallest_part() -> None:
    price = Price(per_call=1_500_000, per_million_in=2_000_000)
    terms = Terms(currency="credits", price=price, max_depth=4, calls_per_minute=60, body_bytes=9)
    page = terms.page()
    assert (page["price"], page["price_in"], page["price_out"]) == ("1.5", "2", "0")
    assert (page["currency"], page["most_cost"]) == ("credits", None)
    assert (page["max_depth"], page["calls_per_minute"], page["body_bytes"]) == (4, 60, 9)
    bounded = Terms(
        currency="credits",
        price=price,
        most_cost=250_000,
        max_depth=4,
        calls_per_minute=60,
        body_bytes=9,
    )
    assert bounded.page()["most_cost"] == "0.25"
