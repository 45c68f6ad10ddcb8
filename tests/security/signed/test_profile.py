"""Between two Carnets: everything is signed, the travel document says the rest.

The requests are made here from the text of the profile, with no code of ours.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.security.support.scene import fresh
from tests.security.support.signing import SignedEdge
from tests.support.http import Reply, chat_body
from tests.support.signing.signed import (
    CHAT,
    PROFILE,
    Sender,
    Signed,
    digest,
    document,
    fresh_nonce,
    now,
    sign,
    token,
    travelling,
)

US = "acme.example"
BODY = chat_body("hi", "echo")


@pytest.fixture
def ask(edge: SignedEdge, neighbour: Sender) -> Callable[..., Signed]:
    """A genuine request of the neighbour, changed before it is signed."""
    assert edge.gateway.domain == US
    return lambda **more: travelling(neighbour, US, more.pop("body", BODY), **more)


Ask = Callable[..., Signed]


def refused(edge: SignedEdge, request: Signed | bytes) -> tuple[int, str]:
    """What it was told; nothing is done meanwhile."""
    with edge.untouched():
        reply = edge.send(request)
    return reply.status, reply.code


def accepted(edge: SignedEdge, request: Signed) -> Reply:
    reply = edge.send(request)
    assert (reply.status, reply.text) == (200, "hi"), reply.body
    return reply


def signed_with(sender: Sender, **parameters: Any) -> str:
    """The parameters of a signature; one that is None is left out, text is quoted."""
    whole = {
        "keyid": sender.kid,
        "created": int(now()),
        "nonce": fresh_nonce(),
        "tag": "carnet",
        **parameters,
    }
    quoted = {k: f'"{v}"' if isinstance(v, str) else v for k, v in whole.items() if v is not None}
    return "".join(f";{name}={value}" for name, value in quoted.items())


def test_a_request_that_is_all_signed_is_accepted_once(edge: SignedEdge, ask: Ask) -> None:
    """A09: the receipt of its answer is there."""
    request = ask()
    reply = accepted(edge, request)
    assert reply.headers["carnet-receipt"].count(".") == 2
    assert refused(edge, request) == (401, "nonce_replayed")


@pytest.mark.parametrize("missing", [*PROFILE, "carnet"])
def test_whatever_is_not_covered_is_missed(edge: SignedEdge, ask: Ask, missing: str) -> None:
    """A06, A07."""
    components = [name for name in (*PROFILE, "carnet") if name != missing]
    answer = refused(edge, ask(components=components))
    code = "header_not_signed" if missing == "carnet" else "insufficient_coverage"
    assert answer == (401, code)


FIELDS = [
    ("x-tangle-forwarded-depth", "1"),
    ("x-tangle-runid", "x"),
    ("x-tangle-forwarded-authorization", "Bearer of-somebody"),
    ("x-agents-api-chain-depth", "0"),
    ("x-actor-id", "root"),
    ("carnet-resolution", "x"),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field[0])
def test_a_header_that_was_added_on_the_way_is_refused(
    edge: SignedEdge, ask: Ask, field: tuple[str, str]
) -> None:
    """A07."""
    request = ask()
    assert refused(edge, request.beside(field)) == (401, "header_not_signed")
    accepted(edge, request)


ELSEWHERE: dict[str, Callable[[Signed], Signed | bytes]] = {
    "agent": lambda r: r.but(target="/agents/speaker" + CHAT),
    "own prefix": lambda r: r.but(target="/agents/echo" + CHAT),
    "host": lambda r: r.raw("127.0.0.1:8700"),
    "body": lambda r: r.but(body=BODY + b" "),
    "body and digest": lambda r: r.but(body=BODY + b" ", content_digest=digest(BODY + b" ")),
    "media type": lambda r: r.but(content_type="application/json; charset=utf-8"),
    "query": lambda r: r.but(target=CHAT + "?x=1"),
    "no document": lambda r: r.but(without=("carnet",)),
}


@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_request_that_was_changed_on_the_way_is_another_one(
    edge: SignedEdge, ask: Ask, change: Callable[[Signed], Signed | bytes]
) -> None:
    """A03, A04, A08."""
    request = ask()
    status, code = refused(edge, change(request))
    assert status == 401
    assert code in {"signature_invalid", "header_not_signed", "digest_mismatch"}
    accepted(edge, request)


def test_a_request_is_for_one_gateway(edge: SignedEdge, second: SignedEdge, ask: Ask) -> None:
    """A08: also under the same name of a host, from a peer that both know."""
    request = ask()
    assert refused(second, request) == (401, "destination_mismatch")
    accepted(edge, request)


@pytest.mark.parametrize(
    ("created", "refusal"),
    [
        (120, (401, "timestamp_out_of_window")),
        (-75, (401, "timestamp_out_of_window")),
        (-86_400, (401, "timestamp_out_of_window")),
        (None, (400, "timestamp_invalid")),
    ],
)
def test_the_window_is_narrower_between_carnets(
    edge: SignedEdge, ask: Ask, neighbour: Sender, created: int | None, refusal: tuple[int, str]
) -> None:
    """A16, R11."""
    moment = None if created is None else int(now()) + created
    assert refused(edge, ask(parameters=signed_with(neighbour, created=moment))) == refusal


@pytest.mark.parametrize("expires", [-1, -3600])
def test_a_signature_that_names_its_own_end_is_not_honoured_beyond_it(
    edge: SignedEdge, ask: Ask, neighbour: Sender, expires: int
) -> None:
    """A17."""
    parameters = signed_with(neighbour, expires=int(now()) + expires)
    assert refused(edge, ask(parameters=parameters)) == (401, "signature_expired")
    created = int(now()) - 20
    parameters = signed_with(neighbour, created=created, expires=created + 5)
    assert refused(edge, ask(parameters=parameters)) == (401, "signature_expired")


@pytest.mark.parametrize("nonce", [None, "", "short", "n" * 65, "with space"])
def test_the_nonce_of_a_signature_has_one_form(
    edge: SignedEdge, ask: Ask, neighbour: Sender, nonce: str | None
) -> None:
    """A15."""
    answer = refused(edge, ask(parameters=signed_with(neighbour, nonce=nonce)))
    assert answer == (400, "nonce_invalid")


@pytest.mark.parametrize("more", [{"tag": "other"}, {"alg": "hmac-sha256"}, {"alg": "none"}])
def test_a_signature_for_something_else_is_none(
    edge: SignedEdge, ask: Ask, neighbour: Sender, more: dict[str, str]
) -> None:
    """A02, A19."""
    assert refused(edge, ask(parameters=signed_with(neighbour, **more)))[0] == 401


# ------------------------------------------------------------------------------ the document


def test_a_document_is_its_senders_own(
    edge: SignedEdge, ask: Ask, neighbour: Sender, alice: Sender
) -> None:
    """A18: neither signed by another, nor in the name of another, nor for another body."""
    other = Sender(neighbour.identity)
    claims = document(neighbour, US, BODY)
    assert refused(edge, ask(carnet=token(other, claims))) == (401, "signature_invalid")
    stolen = token(neighbour, {**claims, "iss": "globex.example"})
    assert refused(edge, ask(carnet=stolen))[0] == 401
    late = token(neighbour, {**claims, "dig": digest(b"other")})
    assert refused(edge, ask(carnet=late))[0] in {400, 401}
    renamed = token(neighbour, claims, kid="k2")
    assert refused(edge, ask(carnet=renamed)) == (401, "signature_invalid")
    assert alice.identity != neighbour.identity


HEADERS: list[dict[str, Any]] = [
    {"alg": "none"},
    {"alg": "HS256"},
    {"alg": "ES256"},
    {"alg": None},
    {"typ": "JWT"},
    {"typ": None},
    {"kid": None},
    {"crit": ["b64"], "b64": False},
    {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": "AA"}},
    {"jku": "http://127.0.0.1:9/keys"},
    {"x5u": "http://127.0.0.1:9/keys"},
]


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_document_of_another_kind_is_none(
    edge: SignedEdge, ask: Ask, neighbour: Sender, header: dict[str, Any]
) -> None:
    """A28, A19: whatever its header asks for, nothing is fetched."""
    paper = token(neighbour, document(neighbour, US, BODY), **header)
    assert refused(edge, ask(carnet=paper)) == (400, "travel_document_invalid")


class From(int):
    """Seconds from now. A test is named by them: every process must name it alike."""

    def moment(self) -> int:
        return int(now()) + self


CLAIMS: list[tuple[dict[str, Any], tuple[int, str]]] = [
    ({"aud": "globex.example"}, (401, "destination_mismatch")),
    ({"aud": ["acme.example"]}, (400, "travel_document_invalid")),
    ({"exp": From(-3600), "iat": From(-3660)}, (401, "signature_expired")),
    ({"iat": From(3600), "exp": From(3660)}, (401, "timestamp_out_of_window")),
    ({"exp": From(3600)}, (400, "travel_document_invalid")),
    ({"d": 4}, (429, "bridge_depth_exceeded")),
    ({"d": 10**9}, (429, "bridge_depth_exceeded")),
    ({"d": -1}, (400, "travel_document_invalid")),
    ({"d": "1"}, (400, "travel_document_invalid")),
    ({"d": 1.0}, (400, "travel_document_invalid")),
    ({"d": None}, (400, "travel_document_invalid")),
    ({"d": 2, "l": 1}, (429, "bridge_depth_exceeded")),
    ({"dl": 1}, (504, "provider_timeout")),
    ({"path": ["@echo@acme.example"]}, (409, "loop_detected")),
    ({"path": ["acct:echo@acme.example"]}, (400, "travel_document_invalid")),
    ({"path": ["@a@b.example"] * 33}, (400, "travel_document_invalid")),
    ({"run": "x" * 129}, (400, "travel_document_invalid")),
    ({"run": "a\u200bb"}, (400, "travel_document_invalid")),
    ({"bud": {"money": "1"}}, (400, "travel_document_invalid")),
    ({"bud": {"calls": -1}}, (400, "travel_document_invalid")),
]


@pytest.mark.parametrize(("claims", "refusal"), CLAIMS, ids=str)
def test_a_document_that_may_not_be_honoured_is_refused(
    edge: SignedEdge, ask: Ask, claims: dict[str, Any], refusal: tuple[int, str]
) -> None:
    """A38, A39: and costs the sender no nonce that it could not use again."""
    given = {
        name: value.moment() if isinstance(value, From) else value for name, value in claims.items()
    }
    assert refused(edge, ask(**given)) == refusal


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-tangle-forwarded-depth", "0"),
        ("x-tangle-forwarded-depth", "2"),
        ("x-tangle-runid", "another"),
        ("x-tangle-turnid", "another"),
    ],
)
def test_a_stamp_that_contradicts_the_document_is_refused(
    edge: SignedEdge, ask: Ask, name: str, value: str
) -> None:
    """A40: signed or not, the two tell one chain."""
    request = ask(beside=((name, value),))
    assert refused(edge, request) == (400, "chain_mismatch")


def test_a_hop_cannot_take_its_depth_back(edge: SignedEdge, ask: Ask) -> None:
    """A40: below one parent turn everybody is as deep; another branch may be less so."""
    run = fresh("chain")

    def at(depth: int, parent: str, turn: str) -> Signed:
        return ask(run=run, turn=f"{run}.{turn}", parent=f"{run}.{parent}", d=depth)

    accepted(edge, at(3, "p", "one"))
    for depth in (0, 1, 2):
        for turn in (f"reset-{depth}", "one"):  # a new turn, and the same sent again
            answer = refused(edge, at(depth, "p", turn))
            assert answer == (400, "chain_mismatch")
    accepted(edge, at(3, "p", "two"))
    accepted(edge, at(1, "q", "three"))


def test_a_signature_over_another_paper_does_not_hold(
    edge: SignedEdge, ask: Ask, neighbour: Sender
) -> None:
    """A08: the document of one request does not travel with another."""
    first, request = ask(), ask()
    assert refused(edge, request.but(carnet=first.field("carnet"))) == (401, "signature_invalid")
    accepted(edge, request)
    unsigned_again = sign(neighbour, request, components=PROFILE, newline=False)
    assert refused(edge, unsigned_again)[0] == 401
