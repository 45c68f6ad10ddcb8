"""Money: exact, in integer micro-units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.call import Price
from carnet.core.money.amount import MICROS, MOST_MICROS, format_amount, parse_amount
from carnet.errors import InvalidRequest

AMOUNTS = st.integers(min_value=0, max_value=MOST_MICROS)


@given(micros=AMOUNTS)
def test_an_amount_is_read_as_it_was_written(micros: int) -> None:
    assert parse_amount(format_amount(micros)) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("1", MICROS),
        ("0.0002", 200),
        ("0.000001", 1),
        ("12.50", 12_500_000),
        ("007", 7_000_000),
    ],
)
def test_decimal_text_becomes_micro_units(text: str, micros: int) -> None:
    assert parse_amount(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1", "1 ", "1\n", "-1", "+1", "1,5", ".5", "5.", "1e3", "NaN", "1_0", "٣", "0x1"),
        *("0.0000001", "1" * 13, "1.1.1"),
    ],
)
def test_what_is_not_a_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="'price' must be a decimal number"):
        parse_amount(text, field="price")


def test_an_amount_that_can_only_be_a_mistake_is_refused() -> None:
    assert parse_amount("1000000000") == MOST_MICROS
    with pytest.raises(InvalidRequest, match="'amount' is too large"):
        parse_amount("1000000000.000001")


@pytest.mark.parametrize(
    ("micros", "text"), [(-200, "-0.0002"), (-MICROS, "-1"), (1_500_000, "1.5"), (0, "0")]
)
def test_an_amount_is_written_in_its_shortest_form(micros: int, text: str) -> None:
    assert format_amount(micros) == text


def test_a_price_counts_each_call_and_each_started_micro_unit_of_tokens() -> None:
    price = Price(per_call=10, per_million_in=1_000_000, per_million_out=2_000_000)
    assert price.of(3, 4) == 10 + 3 + 8
    assert Price(per_million_in=1).of(1, 0) == 1
    assert Price(per_million_in=1).of(0, 5) == 0


@pytest.mark.parametrize(
    ("price", "free"),
    [
        (Price(), True),
        (Price(per_call=1), False),
        (Price(per_million_in=1), False),
        (Price(per_million_out=1), False),
    ],
)
def test_only_a_price_of_nothing_is_free(price: Price, *, free: bool) -> None:
    assert price.is_free is free


@given(tokens_in=st.integers(0, 10**9), tokens_out=st.integers(0, 10**9))
def test_more_tokens_never_cost_less(tokens_in: int, tokens_out: int) -> None:
    price = Price(per_call=1, per_million_in=7, per_million_out=11)
    assert price.of(tokens_in, tokens_out) <= price.of(tokens_in + 1, tokens_out)
    assert price.of(tokens_in, tokens_out) <= price.of(tokens_in, tokens_out + 1)


def test_a_price_counts_tokens_only_if_tokens_have_one() -> None:
    assert not Price(per_call=1).counts_tokens
    assert Price(per_million_out=1).counts_tokens
