"""Whose key it is: pinned, published, revoked, weak, or asked for by somebody who has none."""

import gzip
import json
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from carnet import errors
from carnet.testing.wait import until
from tests.security.support.cards import CardHost, card, key_of, never_ends, raw_key, says, shows
from tests.security.support.scene import Scene
from tests.security.support.signing import AUTH, WEAK, SignedEdge
from tests.support.http import Reply
from tests.support.signing.signed import PATIENCE_SECONDS, Sender, b64, refusal
from tests.support.signing.weak_keys import SMALL_ORDER

FLOOD = 300

UNIVERSAL = b64(b"\x01" + bytes(63))


def publisher(name: str) -> Sender:
    return Sender(f"agent://{name}.example")


def publish(cards: CardHost, sender: Sender, *keys: dict[str, object]) -> None:
    name = sender.identity.removeprefix("agent://").removesuffix(".example")
    cards.answers[name] = shows(card(sender.identity, *(keys or [key_of(sender)])))


# ------------------------------------------------------------------------------ A18


ODD_KEYIDS = [
    "k2",
    "K1",
    "k1 ",
    "",
    "https://127.0.0.1:9/keys.json",
    "agent://client-bob#k1",
    "../../etc/passwd",
    "' OR 1=1 --",
    "%00",
    "x" * 128,
]


@pytest.mark.parametrize("keyid", ODD_KEYIDS)
def test_a_keyid_is_looked_up_with_its_sender_and_nowhere_else(
    edge: SignedEdge, cards: CardHost, bob: Sender, keyid: str
) -> None:
    """A18: nothing is fetched from where it points, and nothing is made of it."""
    carol = publisher("carol")
    publish(cards, carol)
    other = Sender(carol.identity, keyid)
    asked = Counter(cards.asked)
    with edge.untouched():
        reply = edge.send(edge.message(other))
    assert refusal(reply) == AUTH
    assert reply.headers["carnet-code"] in {"key_unknown", "signature_invalid"}
    assert {peer for peer, _ in cards.asked - asked} <= {"carol"}
    assert cards.fetches("carol") == 1
    assert bob.identity not in reply.json["error"]["message"]


def test_the_key_of_one_sender_is_not_that_of_another(
    edge: SignedEdge, alice: Sender, bob: Sender
) -> None:
    """A18: bob signs for alice, with his kid and with hers."""
    for kid in ("k1", "k2"):
        impostor = edge.message(Sender("agent://client-alice", kid))
        edge.refuses(impostor, errors.SignatureInvalid)
    forged = edge.message(bob, **{"from": alice.identity})
    edge.refuses(forged, errors.SignatureInvalid)
    edge.accepts(edge.message(alice))


def test_who_is_unknown_is_told_the_command_that_would_admit_it(
    edge: SignedEdge, mallory: Sender, cards: CardHost
) -> None:
    """A18, R14: a host of one label is never asked for a card."""
    asked = Counter(cards.asked)
    reply = edge.refuses(edge.message(mallory), errors.KeyUnknown)
    message = reply.json["error"]["message"]
    assert "carnet peers add agent://client-mallory --key BASE64" in message
    assert cards.asked == asked


# ------------------------------------------------------------------------------ R14, A23


def test_a_key_that_its_owner_publishes_is_learned_and_kept(
    edge: SignedEdge, cards: CardHost
) -> None:
    """R14: one fetch, however many requests come at once."""
    carol = Sender("agent://rotated.example", "new")
    old = Sender("agent://rotated.example", "old")
    publish(cards, carol, key_of(carol), key_of(old))
    requests = [edge.message(sender) for sender in (carol, old) * 8]
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(edge.send_alone, requests))
    assert [reply.status for reply in replies] == [200] * 16
    assert cards.fetches("rotated") == 1


def test_a_key_that_its_owner_has_ended_is_refused(edge: SignedEdge, cards: CardHost) -> None:
    """A23: by the card, whatever it signs; the other keys of the card are not ended with it."""
    good, ended = Sender("agent://revoked.example", "k2"), Sender("agent://revoked.example", "k1")
    publish(cards, good, key_of(ended, active=False), key_of(good))
    edge.refuses(edge.message(ended), errors.KeyRevoked)
    edge.accepts(edge.message(good))


def test_a_pinned_key_is_ended_within_five_seconds(scene: Scene, edge: SignedEdge) -> None:
    """A23."""
    passing = Sender("agent://client-passing")
    scene.acme.carnet("peers", "add", passing.identity, "--key", passing.public)
    until(lambda: edge.send(edge.message(passing)).status == 200)
    scene.acme.carnet("peers", "revoke-key", passing.identity)
    until(lambda: edge.send(edge.message(passing)).status == 401)
    edge.refuses(edge.message(passing), errors.KeyRevoked)
    scene.acme.carnet("peers", "remove", passing.identity)
    until(lambda: edge.send(edge.message(passing)).headers["carnet-code"] == "key_unknown")


# ------------------------------------------------------------------------------ A24


def test_a_flood_of_unknown_keyids_asks_for_one_card(edge: SignedEdge, cards: CardHost) -> None:
    """A24: single flight, and nobody is asked again for a minute; honest requests go through."""
    honest = publisher("flooded")
    publish(cards, honest)
    flood = [Sender(honest.identity, f"no-such-key-{number}") for number in range(FLOOD)]
    with edge.untouched(), ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda sender: edge.send_alone(edge.message(sender)), flood))
    assert {refusal(reply) for reply in replies} == {AUTH}
    assert {reply.headers["carnet-code"] for reply in replies} == {"key_unknown"}
    assert cards.fetches("flooded") == 1
    edge.accepts(edge.message(honest))
    assert cards.fetches("flooded") == 1


def test_a_flood_of_senders_that_cannot_have_a_card_asks_for_none(
    edge: SignedEdge, cards: CardHost
) -> None:
    """A24, R14: names of one label, and addresses."""
    asked = Counter(cards.asked)
    names = ["localhost", "metadata", "127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]"]
    hosts = [*names, *(f"client-{number}" for number in range(60))]
    with edge.untouched():
        replies = [edge.send(edge.message(Sender(f"agent://{host}"))) for host in hosts]
    assert {reply.status for reply in replies} <= {400, 401}
    assert cards.asked == asked


# ------------------------------------------------------------------------------ A21


@pytest.mark.parametrize(("name", "key"), list(zip(WEAK, SMALL_ORDER, strict=True)))
def test_a_card_with_a_key_of_small_order_is_not_believed(
    edge: SignedEdge, cards: CardHost, name: str, key: str
) -> None:
    """A21: the made-up signature that such a key would verify does not help."""
    sender = publisher(name)
    publish(cards, sender, raw_key(bytes.fromhex(key)))
    for attempt in range(4):
        forged = edge.message(sender, payload={"text": f"attempt {attempt}"})
        with edge.untouched():
            reply = edge.send(forged.but(signature=f"sig1=:{UNIVERSAL}:"))
        assert refusal(reply) == AUTH
    assert cards.fetches(name) == 1


@pytest.mark.parametrize("key", [SMALL_ORDER[0], SMALL_ORDER[5], SMALL_ORDER[13]])
def test_a_key_of_small_order_is_refused_when_it_is_written_down(scene: Scene, key: str) -> None:
    """A21."""
    done = scene.globex.try_carnet(
        "--format", "json", "peers", "add", "agent://client-weak", "--key", b64(bytes.fromhex(key))
    )
    assert done.returncode == 2
    assert json.loads(done.stdout or done.stderr)["code"] == "key_invalid"


# ------------------------------------------------------------------------------ A64, F33

PACKED = gzip.compress(b" " * 10_000_000)

ANSWERS = {
    "huge": never_ends,
    "packed": says(PACKED, ("content-encoding", "gzip")),
    "moved": says(b"", ("location", "http://169.254.169.254/latest/meta-data"), status=302),
    "refusing": says(b"{}", status=500),
    "garbage": says(b"<html>" + bytes(range(256))),
    "cut": says(b'{"id": "agent://cut.example", "publicKeys": [', status=200),
    "twice": shows(card("agent://twice.example", key_of(Sender("x")), key_of(Sender("x", "k1")))),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_host_of_cards_that_misbehaves_gets_nothing_and_nobody_in(
    edge: SignedEdge, cards: CardHost, name: str
) -> None:
    """A64: bounded in size, not unpacked, not followed; and asked once a minute."""
    cards.answers[name] = ANSWERS[name]
    sender = publisher(name)
    with edge.untouched():
        replies = [edge.send(edge.message(sender)) for _ in range(3)]
    for reply in replies:
        assert refusal(reply) in {AUTH, (500, "AGENT_UNAVAILABLE")}
        assert reply.headers["carnet-code"] in {"key_unknown", "peer_unreachable"}
        assert b"169.254" not in reply.body
        assert b"127.0.0.1" not in reply.body
    assert cards.fetches(name) == 1


def test_a_host_that_is_down_costs_a_known_sender_nothing(
    edge: SignedEdge, cards: CardHost
) -> None:
    """F33: what was learned holds until its end; nothing is accepted that was not learned."""
    sender = publisher("down")
    publish(cards, sender)
    edge.accepts(edge.message(sender))
    cards.answers["down"] = says(b"", status=503)
    edge.accepts(edge.message(sender))
    with edge.untouched():
        reply = edge.send(edge.message(Sender(sender.identity, "k2")))
    assert refusal(reply) == AUTH


def test_a_card_that_drips_is_left_in_time(
    edge: SignedEdge, dripping: Future[Reply], cards: CardHost
) -> None:
    """A64: it was asked for when these tests began; ten seconds, and nobody else waited."""
    reply = dripping.result(PATIENCE_SECONDS)
    assert reply.headers["carnet-code"] in {"key_unknown", "peer_unreachable"}
    assert cards.fetches("slow") == 1
    assert edge.gateway.get("/healthz").status == 200
