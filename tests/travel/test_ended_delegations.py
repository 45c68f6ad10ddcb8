"""R59 between two organisations: what one has ended holds nowhere, nor does what is below it."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from carnet.testing.wait import until
from carnet.wire import travel
from carnet.wire.crypto import delegation as tokens
from tests.support.federation import introduce, organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.signing.delegations import ours
from tests.support.signing.signed import Line, Sender, message, refusal

B = "agent://b.example"


class Pair(NamedTuple):
    """Who delegates, who is asked, and who asks."""

    a: Organisation
    b: Organisation
    bob: Sender


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("ended")
    a, b = (organisation(folder / name, f"{name}.example") for name in "ab")
    introduce(a, b)
    introduce(b, a)
    bob = Sender("agent://client-bob")
    b.carnet("peers", "add", bob.identity, "--key", bob.public)
    a.start()
    b.start()
    yield Pair(a, b, bob)
    assert (a.stop(), b.stop()) == (0, 0)


def granted(pair: Pair, *options: str) -> tuple[str, str]:
    words = ("--scope", "*", "--for", B, *options)
    page = pair.a.json("tokens", "delegate", pair.bob.identity, *words)
    return page["token"], page["jti"]


def shown(pair: Pair, token: str) -> Reply:
    with Line(pair.b.port) as line:
        return line.send(message(pair.bob, B, delegationToken=token))


def ended_at(gateway: Organisation) -> travel.EndedList:
    reply = request("GET", f"{gateway.url}/.well-known/carnet-ended.json")
    assert reply.status == 200
    return travel.read_ended(reply.body)


def test_what_was_ended_before_it_was_shown_is_refused_elsewhere(pair: Pair) -> None:
    kept, (gone, id) = granted(pair, "--budget", "1")[0], granted(pair, "--budget", "1")
    pair.a.carnet("tokens", "undelegate", id)
    found = until(lambda: ended_at(pair.a), lambda found: id in found.ids)
    assert (found.domain, found.whole) == ("a.example", True)
    reply = shown(pair, gone)
    assert refusal(reply) == (401, "AUTH_FAILED")
    assert "it was ended" in reply.json["error"]["message"]
    assert shown(pair, kept).status == 200


def test_a_person_who_ended_ends_what_was_delegated_for_her_elsewhere(pair: Pair) -> None:
    pair.a.carnet("people", "add", "alice")
    token, id = granted(pair, "--person", "alice")
    pair.a.carnet("people", "end", "alice")
    until(lambda: id in ended_at(pair.a).ids)
    assert tokens.read(token).token_id == id


def test_who_has_ended_nothing_shows_an_empty_list(pair: Pair) -> None:
    assert ended_at(pair.b).ids == frozenset()


def test_a_token_of_ones_own_key_needs_no_list(pair: Pair) -> None:
    """Its key was pinned: the operator ends it, and asks nobody."""
    bob = pair.bob
    assert shown(pair, ours(bob, bob.identity, B)).status == 200
