"""A signed request is for one agent of one gateway; nobody else takes it."""

import pytest

from carnet import errors
from tests.security.support.signing import AUTH, CANARY, REPLAY, SHAPE, Door
from tests.support.signing.signed import MESSAGE, STREAM, Sender, frames, refusal, result

SPEAKER = "/agents/speaker"


def test_identical_bytes_sent_to_a_second_agent_are_refused(door: Door, alice: Sender) -> None:
    """A08: the client signs the same short path for every agent, so it is `to` that tells."""
    genuine = door.message(alice)
    elsewhere = genuine.but(target=SPEAKER + MESSAGE)
    door.refuses_but_then_accepts(elsewhere, genuine, errors.DestinationMismatch)
    door.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_identical_bytes_sent_to_a_second_gateway_are_refused(
    door: Door, second: Door, alice: Sender
) -> None:
    """A08: one that knows the sender as well."""
    genuine = door.message(alice)
    second.refuses(genuine, errors.DestinationMismatch)
    door.accepts(genuine)
    second.refuses(genuine, errors.DestinationMismatch)
    second.accepts(second.message(alice))


def test_a_named_agent_answers_under_its_prefix_and_nowhere_else(door: Door, alice: Sender) -> None:
    """A08, R9: signed over the literal path, or over the one behind the prefix."""
    identity, target = "agent://speaker.acme.example", SPEAKER + MESSAGE
    for path, why in ((MESSAGE, errors.DestinationMismatch), (target, errors.SignatureInvalid)):
        request = door.message(alice, identity, target=target, signing={"path": path})
        door.refuses(request.but(target=MESSAGE), why)
        assert result(door.send(request)) == {"text": f"{CANARY} "}
        door.refuses(request, errors.NonceReplayed, REPLAY)


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
def test_another_path_is_another_request(door: Door, alice: Sender, target: str) -> None:
    """A08: neither is one spelling of a path taken for another."""
    genuine = door.message(alice)
    with door.untouched():
        assert door.send(genuine.but(target=target)).status in {401, 404}
    door.accepts(genuine)


def test_the_default_agent_is_the_same_one_under_its_own_prefix(door: Door, alice: Sender) -> None:
    """A08: the same identity, so the same request; and once for both."""
    genuine = door.message(alice)
    door.accepts(genuine.but(target="/agents/echo" + MESSAGE))
    door.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_a_message_is_no_stream(door: Door, alice: Sender) -> None:
    """A08: neither by its path nor by its mode."""
    genuine = door.message(alice)
    with door.untouched():
        reply = door.send(genuine.but(target=STREAM))
    assert refusal(reply) in {AUTH, SHAPE}
    door.accepts(genuine)
    request = door.message(alice, target=STREAM)
    with door.untouched():
        assert refusal(door.send(request.but(target=MESSAGE))) in {AUTH, SHAPE}
    *_, last = frames(door.send(request).body)
    assert last["done"] is True


@pytest.mark.parametrize("query", ["?x=1", "?x", "?%20", "?to=agent://words.acme.example"])
def test_a_query_is_not_covered_and_so_not_taken(door: Door, alice: Sender, query: str) -> None:
    """A08, R9."""
    genuine = door.message(alice)
    door.refuses_but_then_accepts(
        genuine.but(target=MESSAGE + query), genuine, errors.HeaderNotSigned
    )


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_another_method_is_not_served(door: Door, alice: Sender, method: str) -> None:
    """A08."""
    genuine = door.message(alice)
    with door.untouched():
        assert door.send(genuine.but(method=method)).status == 405
    door.accepts(genuine)


def test_the_host_of_another_agent_does_not_make_a_request_its_own(
    door: Door, alice: Sender
) -> None:
    """A08: an agent is also served at the root of its own host."""
    genuine = door.message(alice)
    with door.untouched():
        reply = door.send(genuine.raw("speaker.acme.example"))
    assert refusal(reply) == AUTH
    door.accepts(genuine)
    request = door.message(alice, "agent://speaker.acme.example")
    assert result(door.send(request.raw("speaker.acme.example")))["text"].strip()


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
    door: Door, alice: Sender, to: str
) -> None:
    """A08."""
    door.refuses(door.message(alice, to), errors.DestinationMismatch)


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
    "agent://",
    "",
]


@pytest.mark.parametrize("identity", CONFUSABLES)
def test_an_identity_has_one_spelling(door: Door, alice: Sender, identity: str) -> None:
    """A57: nothing is folded, stripped or taken for near enough, at either end."""
    with door.untouched():
        for request in (
            door.message(alice, identity),
            door.message(alice, **{"from": identity}),
        ):
            reply = door.send(request)
            assert refusal(reply) in {SHAPE, AUTH}
            assert identity in {"", "agent://"} or identity.encode() not in reply.body
