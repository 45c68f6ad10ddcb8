"""Two gateways on one store: a voucher is used once at both of them together."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.replicas.scene import PRICE, House, a_house
from tests.stores.support import servers
from tests.support.http import Reply, chat_body, request

PAYERS = '[payers."voucher_"]\nverifier = "voucher"\n'
ROUNDS = 20


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    with a_house(tmp_path_factory.mktemp("two"), server, PAYERS) as house:
        house.open(2)
        yield house


def pay(house: House, gateway: int, voucher: str, *named: tuple[str, str]) -> Reply:
    fields = [
        ("authorization", f"Bearer {house.token}"),
        ("content-type", "application/json"),
        ("carnet-payment", voucher),
        *named,
    ]
    url = f"{house.replicas[gateway].url}/v1/chat/completions"
    return request("POST", url, fields, chat_body("hi", "words"))


def test_a_voucher_shown_at_two_gateways_is_taken_by_one(two: House) -> None:
    for _ in range(ROUNDS):
        made = two.operator.json("vouchers", "issue", "acme.example", "1")
        with ThreadPoolExecutor(6) as pool:
            shown = [pool.submit(pay, two, n % 2, made["voucher"]) for n in range(6)]
            replies = [each.result() for each in shown]
        assert sorted(reply.status for reply in replies) == [200] + [402] * 5
        reasons = {reply.json["error"]["reason"] for reply in replies if reply.status != 200}
        assert reasons == {"used"}
        sql = "SELECT amount FROM ledger WHERE account = ?"
        assert two.rows(sql, f"operator#{made['id']}") == [(PRICE,)]


def test_the_call_that_has_used_it_is_repeated_at_the_other(two: House) -> None:
    voucher = two.operator.json("vouchers", "issue", "acme.example", "1")["voucher"]
    named = ("x-tangle-runid", "conv_two_v"), ("x-tangle-turnid", "conv_two_v.t0.words")
    first = pay(two, 0, voucher, *named)
    again = pay(two, 1, voucher, *named)
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert two.billed("conv_two_v") == [PRICE]
    assert pay(two, 1, voucher).json["error"]["reason"] == "used"
