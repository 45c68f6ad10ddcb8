"""A signed request is for one agent of one gateway; nobody else takes it."""

from collections import Counter

import pytest

from carnet import errors
from tests.security.support.cards import CardHost
from tests.security.support.signing import AUTH, CANARY, REPLAY, SHAPE, SignedEdge
from tests.support.signing.signed import MESSAGE, STREAM, Sender, frames, refusal, result

SPEAKER = "/agents/speaker"


def test_identical_bytes_sent_to_a_second_agent_are_refused(
    edge: SignedEdge, alice: Sender
) -> None:
    """A08: the client signs the same short path for every agent, so it is `to` that tells."""
    genuine = edge.message(alice)
    elsewhere = genuine.but(target=SPEAKER + MESSAGE)
    edge.refuses_but_then_accepts(elsewhere, genuine, errors.DestinationMismatch)
    edge.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_identical_bytes_sent_to_a_second_gateway_are_refused(
    edge: SignedEdge, second: SignedEdge, alice: Sender
) -> None:
    """A08: one that knows the sender as well."""
    genuine = edge.message(alice)
    second.refuses(genuine, errors.DestinationMismatch)
    edge.accepts(genuine)
    second.refuses(genuine, errors.DestinationMismatch)
    second.accepts(second.message(alice))


def test_a_named_agent_answers_under_its_prefix_and_nowhere_else(
    edge: SignedEdge, alice: Sender
) -> None:
    """A08, R9: signed over the literal path, or over the one behind the prefix."""
    identity, target = "agent://speaker.acme.example", SPEAKER + MESSAGE
    for path, why in ((MESSAGE, errors.DestinationMismatch), (target, errors.SignatureInvalid)):
        request = edge.message(alice, identity, target=target, signing={"path": path})
        edge.refuses(request.but(target=MESSAGE), why)
        assert result(edge.send(request)) == {"text": f"{CANARY} "}
        edge.refuses(request, errors.NonceReplayed, REPLAY)


@pytest.mark.parametrize(
    "target",
    [
        "/agents/nobody/agent/message",
        "/agents/echo/agent/message/",
        "/agents/echo//agent/message",
        "//agent/message",
        "/agent/message/",
        "/agent/Message",
        "/agents/../agent/message",
        "/agent%2Fmessage",
    ],
)
def test_another_path_is_another_request(edge: SignedEdge, alice: Sender, target: str) -> None:
    """A08: neither is one spelling of a path taken for another."""
    genuine = edge.message(alice)
    with edge.untouched():
        assert edge.send(genuine.but(target=target)).status in {401, 404}
    edge.accepts(genuine)


def test_the_default_agent_is_the_same_one_under_its_own_prefix(
    edge: SignedEdge, alice: Sender
) -> None:
    """A08: the same identity, so the same request; and once for both."""
    genuine = edge.message(alice)
    edge.accepts(genuine.but(target="/agents/echo" + MESSAGE))
    edge.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_a_message_is_no_stream(edge: SignedEdge, alice: Sender) -> None:
    """A08: neither by its path nor by its mode."""
    genuine = edge.message(alice)
    with edge.untouched():
        reply = edge.send(genuine.but(target=STREAM))
    assert refusal(reply) in {AUTH, SHAPE}
    edge.accepts(genuine)
    request = edge.message(alice, target=STREAM)
    with edge.untouched():
        assert refusal(edge.send(request.but(target=MESSAGE))) in {AUTH, SHAPE}
    *_, last = frames(edge.send(request).body)
    assert last["done"] is True


@pytest.mark.parametrize("query", ["?x=1", "?x", "?%20", "?to=agent://words.acme.example"])
def test_a_query_is_not_covered_and_so_not_taken(
    edge: SignedEdge, alice: Sender, query: str
) -> None:
    """A08, R9."""
    genuine = edge.message(alice)
    edge.refuses_but_then_accepts(
        genuine.but(target=MESSAGE + query), genuine, errors.HeaderNotSigned
    )


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_another_method_is_not_served(edge: SignedEdge, alice: Sender, method: str) -> None:
    """A08."""
    genuine = edge.message(alice)
    with edge.untouched():
        assert edge.send(genuine.but(method=method)).status == 405
    edge.accepts(genuine)


def test_the_host_of_another_agent_does_not_make_a_request_its_own(
    edge: SignedEdge, alice: Sender
) -> None:
    """A08: an agent is also served at the root of its own host."""
    genuine = edge.message(alice)
    with edge.untouched():
        reply = edge.send(genuine.raw("speaker.acme.example"))
    assert refusal(reply) == AUTH
    edge.accepts(genuine)
    request = edge.message(alice, "agent://speaker.acme.example")
    assert result(edge.send(request.raw("speaker.acme.example")))["text"].strip()


@pytest.mark.parametrize(
    "to",
    [
        "agent://globex.example",
        "agent://nobody.acme.example",
        "agent://example",
        "agent://acme",
        "agent://acme.example.evil.example",
        "agent://client-alice",
    ],
)
def test_a_request_to_somebody_else_is_refused_though_its_signature_holds(
    edge: SignedEdge, alice: Sender, to: str
) -> None:
    """A08."""
    edge.refuses(edge.message(alice, to), errors.DestinationMismatch)


CONFUSABLES = [
    "agent://ACME.example",
    "agent://acme.example.",
    "agent://acme.example:8700",
    "agent://acme.example/",
    "agent://user@acme.example",
    "agent://acme.example#x",
    "agent://acme.example?x",
    "agent://127.0.0.1",
    "agent://[::1]",
    "agent://аcme.example",  # a Cyrillic letter
    "agent://acme\u200b.example",
    "agent://acme。example",
    "agent://xn--cme-7cd.example.",
    "agent://acme..example",
    "agent://-acme.example",
    "agent://acme_.example",
    " agent://acme.example",
    "agent://acme.example\n",
    "agent:/acme.example",
    "Agent://acme.example",
    "https://acme.example",
    "acme.example",
    # What an SDK makes of the name of a key is no way around it.
    "agent://Client-alice",
    "agent://client-alice.",
    "agent://client-alice-",
    "agent://client-al..ice",
    "agent://client-alice.acme.example:8700",
    "agent://client-\u0430lice",
    "agent://client-Alice.xn--cme-7cd",
    "agent://client-",
    "agent://client_alice",
    "agent://",
    "",
]


@pytest.mark.parametrize("identity", CONFUSABLES)
def test_an_identity_has_one_spelling(edge: SignedEdge, alice: Sender, identity: str) -> None:
    """A57: nothing is folded, stripped or taken for near enough, at either end."""
    with edge.untouched():
        for request in (
            edge.message(alice, identity),
            edge.message(alice, **{"from": identity}),
        ):
            reply = edge.send(request)
            assert refusal(reply) in {SHAPE, AUTH}
            assert identity in {"", "agent://"} or identity.encode() not in reply.body


@pytest.mark.parametrize("host", ["client-Alice", "client-alice_", "client-alice.Acme.example"])
def test_a_clients_name_in_other_letters_is_another_clients(
    edge: SignedEdge, cards: CardHost, alice: Sender, host: str
) -> None:
    """A57: it is well formed, nobody has pinned it, and no card is looked for."""
    identity, asked = f"agent://{host}", Counter(cards.asked)
    edge.refuses(edge.message(alice, **{"from": identity}), errors.KeyUnknown)
    edge.refuses(edge.message(alice, identity), errors.DestinationMismatch)
    assert cards.asked == asked
