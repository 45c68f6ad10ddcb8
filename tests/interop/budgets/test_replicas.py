"""Two gateways on one store: a budget is spent once at both of them together."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from carnet.testing.wait import until
from tests.replicas.scene import House, a_house
from tests.stores.support import servers
from tests.support.http import Reply, chat_body, request

CALLS = 30
SPENT = "SELECT calls, spent_calls, held_calls FROM budget WHERE name LIKE 'token:%'"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    with a_house(tmp_path_factory.mktemp("two"), server, "") as house:
        house.open(2)
        yield house


def ask(house: House, gateway: int, token: str) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    url = f"{house.replicas[gateway].url}/v1/chat/completions"
    return request("POST", url, fields, chat_body("hi", "words"))


def test_what_is_spent_at_both_at_once_is_no_more_than_there_is(two: House) -> None:
    token = two.operator.new_token("shared")
    two.operator.carnet("budget", "set", "token:shared", "--calls", f"{CALLS}")
    for gateway in range(2):  # until each of them counts
        before = two.rows(SPENT)
        until(lambda: ask(two, gateway, token).status == 200 and two.rows(SPENT) != before)  # noqa: B023
    ((_, spent, _),) = two.rows(SPENT)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, two, n % 2, token) for n in range(2 * CALLS)]
        replies = [each.result() for each in asked]
    answered = [reply for reply in replies if reply.status == 200]
    assert len(answered) == CALLS - spent
    refused = {reply.json["error"]["code"] for reply in replies if reply.status != 200}
    assert refused == {"budget_exceeded"}
    assert two.rows(SPENT) == [(CALLS, CALLS, 0)]
