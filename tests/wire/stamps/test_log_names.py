"""The names by which the logs of other products find a call."""

import pytest

from carnet.config.outbound import PRODUCTS
from carnet.wire.grammar.headers import write_headers
from carnet.wire.stamps.log_names import LOG_NAMES, MOST_BYTES, write_log_names


def test_each_product_has_its_header() -> None:
    written = write_log_names(tuple(LOG_NAMES), run="conv_1", payer="alice@acme.example")
    assert written == {
        "x-bf-agent-correlation-id": "conv_1",
        "x-litellm-user-id": "alice@acme.example",
        "x-user-id": "alice@acme.example",
    }
    assert write_log_names((), run="conv_1", payer="alice") == {}


def test_the_products_that_can_be_configured_are_those_that_are_known() -> None:
    assert tuple(LOG_NAMES) == PRODUCTS


@pytest.mark.parametrize("payer", ["zoë@acme", "a b", "a\r\nx: y", "\0", "x" * 999, "€" * 300])
def test_whatever_the_name_of_an_account_it_can_stand_in_a_header(payer: str) -> None:
    written = write_log_names(["kagent"], run="r", payer=payer)
    assert dict(write_headers(written)) == written
    assert len(written["x-user-id"]) <= MOST_BYTES


def test_what_has_no_name_has_no_header() -> None:
    assert write_log_names(["kagent"], run="r", payer="") == {}
