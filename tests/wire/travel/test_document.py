"""The travel document: one spelling, nothing coerced, and only what narrows."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.chain.carnet import Mark
from carnet.core.people.identity import Account
from carnet.core.people.proof import Document, Spending
from carnet.errors import DigestMismatch, TravelDocumentInvalid
from carnet.wire import travel
from carnet.wire.crypto import ed25519, jws
from carnet.wire.grammar.headers import Headers
from tests.wire.travel.scene import BODY, DOCUMENT, KID, NOW, PUBLIC, but, sign

CLAIMS: dict[str, Any] = {
    "iss": "a.example",
    "aud": "b.example",
    "iat": NOW,
    "exp": NOW + 60,
    "run": "conv_1",
    "turn": "t",
    "d": 1,
    "l": 3,
    "dig": "sha-256=:eA==:",
}


def header(typ: str = "carnet+jwt", **claims: Any) -> str:
    payload = {name: value for name, value in (CLAIMS | claims).items() if value is not ...}
    return jws.write(payload, kid=KID, typ=typ, sign=sign)


def unsigned(document: Document) -> Document:
    return replace(document, signed=b"", signature=b"")


def test_what_is_written_is_read_again_and_its_signature_holds() -> None:
    read = travel.read(travel.write(DOCUMENT, sign=sign))
    assert unsigned(read) == DOCUMENT
    assert ed25519.holds(PUBLIC, read.signed, read.signature)


WORD = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
NUMBER = st.integers(0, 2**31 - 1)
MAYBE = st.none() | NUMBER


@given(
    st.builds(
        Document,
        issuer=st.just("a.example"),
        audience=st.just("b.example"),
        issued=st.just(NOW),
        expires=st.integers(NOW, NOW + 300),
        run=WORD,
        turn=WORD,
        parent_turn=st.none() | WORD,
        depth=NUMBER,
        last_depth=NUMBER,
        path=st.lists(st.just("@x@c.example"), max_size=32).map(tuple),
        budget=st.none()
        | st.builds(Spending, money=MAYBE, currency=WORD, calls=MAYBE, tokens=MAYBE),
        deadline_ms=MAYBE,
        payer=st.none() | st.builds(Account, WORD, WORD),
        on_behalf_of=st.lists(WORD, max_size=5).map(tuple),
        digest=WORD,
        keyid=st.just(KID),
        signed=st.just(b""),
        signature=st.just(b""),
    )
)
def test_every_document_survives_the_wire(document: Document) -> None:
    assert unsigned(travel.read(travel.write(document, sign=sign))) == document


def test_what_is_absent_is_unbounded_and_a_claim_of_a_later_version_is_passed_over() -> None:
    document = travel.read(header(links=["sha-256"]))
    assert (document.parent_turn, document.path, document.budget) == (None, (), None)
    assert (document.deadline_ms, document.payer, document.on_behalf_of) == (None, None, ())


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_document_without_one_of_its_claims_is_none(claim: str) -> None:
    absent: dict[str, Any] = {claim: ...}
    with pytest.raises(TravelDocumentInvalid):
        travel.read(header(**absent))


@pytest.mark.parametrize(
    "claims",
    [
        *({"d": -1}, {"d": "1"}, {"d": 1.0}, {"d": True}, {"d": None}, {"d": 2**31}, {"l": -1}),
        *({"aud": ["b.example"]}, {"aud": "B.example"}, {"iss": "localhost"}, {"iss": "127.0.0.1"}),
        *({"exp": NOW + 301}, {"exp": NOW - 1}, {"iat": float(NOW)}, {"iat": -1}),
        *({"path": ["x@c.example"]}, {"path": ["@x"]}, {"path": ["@x@c.example"] * 33}),
        *({"path": "@x@c.example"}, {"run": ""}, {"run": "x" * 129}, {"turn": "x" * 257}),
        *({"run": "a\nb"}, {"run": "é"}, {"turn": " t"}, {"parent": ""}, {"parent": "a\u2028b"}),
        *({"bud": {"money": "1"}}, {"bud": {"money": "1e3", "currency": "credits"}}),
        *({"bud": {"money": 1, "currency": "credits"}}, {"bud": {"calls": -1}}, {"bud": []}),
        *({"dl": -1}, {"dl": "soon"}, {"dl": 2**53}, {"pay": {"issuer": "a.example"}}),
        *({"pay": "alice"}, {"pay": {"issuer": "a.example", "id": "a\0"}}, {"obo": [""]}),
        *({"obo": ["a\tb"]}, {"obo": "alice"}, {"dig": ""}),
    ],
)
def test_a_claim_that_is_not_in_its_form_makes_the_document_invalid(claims: dict[str, Any]) -> None:
    with pytest.raises(TravelDocumentInvalid) as refused:
        travel.read(header(**claims))
    assert "alice" not in refused.value.safe_text


@pytest.mark.parametrize("text", ["", "x", "a.b.c", header(typ="JWT"), header() + "A", "x" * 5000])
def test_what_is_not_a_document_is_refused_as_such(text: str) -> None:
    with pytest.raises(TravelDocumentInvalid):
        travel.read(text)


def test_a_document_longer_than_four_kibibytes_is_neither_read_nor_written() -> None:
    long = but(path=("@" + "x" * 60 + "@" + "y" * 60 + ".example",) * 32)
    with pytest.raises(TravelDocumentInvalid):
        travel.write(long, sign=sign)
    with pytest.raises(TravelDocumentInvalid):
        travel.read(header(obo=["x" * 200] * 20))


def test_the_document_beside_a_body_was_made_for_that_body() -> None:
    lines = [(b"carnet", travel.write(DOCUMENT, sign=sign).encode())]
    found = travel.read_beside(Headers(lines), BODY)
    assert found is not None
    assert unsigned(found) == DOCUMENT
    assert travel.read_beside(Headers([]), BODY) is None
    with pytest.raises(DigestMismatch):
        travel.read_beside(Headers(lines), BODY + b" ")
    assert travel.read_beside(Headers(lines), None) == found  # before the body has come


@pytest.mark.parametrize(("theirs", "ours", "counts"), [(3, 9, 3), (9, 3, 3)])
def test_the_last_depth_is_the_smaller_of_theirs_and_ours(
    theirs: int, ours: int, counts: int
) -> None:
    mark = travel.mark(but(last_depth=theirs), last_depth=ours)
    assert mark == Mark(
        stamp="travel",
        depth=1,
        last_depth=counts,
        run="conv_1",
        turn="conv_1.t0.critic",
        parent_turn="conv_0.t0.front",
        is_usual=theirs > ours,
        own_depth=theirs if theirs > ours else None,
    )


def test_a_document_is_plain_json_to_others() -> None:
    _, payload, _ = travel.write(DOCUMENT, sign=sign).split(".")
    raw = jws.read(travel.write(DOCUMENT, sign=sign), typ="carnet+jwt").payload
    assert payload
    assert msgspec.json.encode(raw)
    assert raw["bud"] == {"money": "1.5", "currency": "credits", "calls": 7, "tokens": 9}
    assert raw["pay"] == {"issuer": "a.example", "id": "alice"}
