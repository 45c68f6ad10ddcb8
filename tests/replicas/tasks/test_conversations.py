"""Conversations at gateways that share a store: begun at one, gone on with at another."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from carnet.testing.wait import until
from tests.replicas.scene import House, Replica, a_house
from tests.stores.support import servers
from tests.support.http import Reply, request, stream

JSON: Final = ("content-type", "application/json")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    with a_house(tmp_path_factory.mktemp("talks"), server) as house:
        house.open(2)
        yield house


def asked(
    house: House, replica: Replica, method: str, path: str, page: Any = None, **more: str
) -> Reply:
    fields = [("authorization", f"Bearer {house.token}"), JSON, *more.items()]
    body = b"" if page is None else json.dumps(page).encode()
    named = [(name.replace("_", "-"), value) for name, value in fields]
    return request(method, replica.url + path, named, body)


def sent(house: House, replica: Replica, text: str, talk: str = "", agent: str = "echo") -> str:
    """Say something; the conversation that it is in."""
    more = {"x_conversation_id": talk} if talk else {}
    reply = asked(house, replica, "POST", "/message", {"content": text, "agent": agent}, **more)
    assert reply.status == 200, reply
    lines = [line[6:] for line in reply.body.splitlines() if line.startswith(b"data: ")]
    return str(json.loads(lines[-1])["conversation_id"])


def words_of(house: House, replica: Replica, talk: str) -> list[tuple[str, str]]:
    """Who has written what, the newest first."""
    page = asked(house, replica, "GET", f"/conversations/{talk}").json
    return [(each["role"], each["content"]) for each in page["messages"]]


def test_what_is_begun_at_one_is_read_and_gone_on_with_at_another(house: House) -> None:
    one, other = house.replicas
    talk = sent(house, one, "first")
    assert sent(house, other, "second", talk) == talk
    both = [words_of(house, replica, talk) for replica in (one, other)]
    assert both[0] == both[1]
    assert [words for _, words in both[0]] == ["second", "second", "first", "first"]
    listed = asked(house, other, "GET", "/conversations").json["conversations"]
    assert talk in [each["id"] for each in listed]


def test_what_one_gives_another_stops(house: House) -> None:
    one, other = house.replicas
    body = json.dumps({"content": "go on " * 1000, "agent": "words"}).encode()
    fields = [("authorization", f"Bearer {house.token}"), JSON]
    answer = stream("POST", f"{one.url}/message", fields, body)
    first = next(line for line in answer if line.startswith(b"data: "))
    assert first
    listed = asked(house, other, "GET", "/conversations").json["conversations"]
    talk = listed[0]["id"]
    assert asked(house, other, "POST", f"/conversations/{talk}/stop").status == 200
    assert b"".join(answer)  # it ends
    until(lambda: words_of(house, one, talk)[0][0] == "assistant")
    assert sent(house, other, "on", talk) == talk


def test_what_one_deletes_is_gone_at_another(house: House) -> None:
    one, other = house.replicas
    talk = sent(house, one, "a word that goes")
    assert asked(house, other, "DELETE", f"/conversations/{talk}").status == 200
    for replica in (one, other):
        gone = asked(house, replica, "GET", f"/conversations/{talk}")
        assert (gone.status, gone.code) == (410, "deleted")
    assert house.rows("SELECT COUNT(*) FROM message WHERE parts LIKE '%a word that goes%'") == [
        (0,)
    ]
