"""Random signed requests: no bit of them may differ, and an independent implementation agrees."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
)
from http_message_signatures.algorithms import ED25519
from msgspec.structs import replace

from carnet.wire.grammar.structured import write_bytes
from tests.wire.crypto.messages import SEED, Draft, draw, draw_samvad, flip_all

KEY = Ed25519PrivateKey.from_private_bytes(SEED)
MESSAGES = int(os.environ.get("SIGNED_MESSAGES", "2000"))  # `make signatures` draws 20,000


@pytest.mark.parametrize("drawn", [draw_samvad, draw])
def test_no_single_bit_of_a_signed_request_may_differ(drawn: Any) -> None:
    draft = drawn(Random(5)).signed()  # noqa: S311
    assert draft.holds()
    places = set()
    for place, flipped in flip_all(draft):
        places.add(place)
        assert not flipped.holds(), flipped
    assert {"method", "path", "body", "content-digest", "signature", "signature-input"} <= places


def test_a_part_that_is_not_covered_may_differ() -> None:
    draft = draw_samvad(Random(5)).signed()  # noqa: S311
    assert replace(draft, authority="b.example", query="x").holds()
    assert replace(draft, lines=(*draft.lines, ("x-other", "1"))).holds()


# ------------------------------------------------------------------- an independent implementation


class Lines:
    """Field lines as that implementation wants them: a mapping that keeps what stands twice."""

    def __init__(self, lines: tuple[tuple[str, str], ...]) -> None:
        self.lines = list(lines)

    def items(self) -> list[tuple[str, str]]:
        return self.lines

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self.lines])

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self.lines)

    def __setitem__(self, name: str, value: str) -> None:
        self.lines.append((name, value))

    def __delitem__(self, name: str) -> None:
        self.lines = [line for line in self.lines if line[0] != name]


class Theirs:
    """The same request for that implementation."""

    def __init__(self, draft: Draft) -> None:
        self.method = draft.method
        query = "" if draft.query is None else f"?{draft.query}"
        self.url = f"{draft.scheme}://{draft.authority}{draft.path}{query}"
        self.headers = Lines(draft.lines)


class OneKey(HTTPSignatureKeyResolver):
    """The same key, whatever its name."""

    def resolve_public_key(self, _: str) -> Ed25519PublicKey:
        return KEY.public_key()


def moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def they_verify_ours(draft: Draft) -> None:
    [verified] = VERIFIER.verify(Theirs(draft.signed()), max_age=None)
    assert [name.strip('"') for name in verified.covered_components][:-1] == list(draft.covered)


def we_verify_theirs(draft: Draft) -> None:
    made = SIGNER.prepare(
        Theirs(draft),
        key_id=draft.keyid,
        created=moment(draft.created),
        expires=moment(draft.expires),
        nonce=draft.nonce,
        tag=draft.tag,
        covered_component_ids=draft.covered,
        use_existing_digest=True,
    )
    theirs = (
        ("signature-input", f"{made.label}={made.signature_params}"),
        ("signature", f"{made.label}={write_bytes(KEY.sign(made.signature_base))}"),
    )
    assert replace(draft, lines=(*draft.lines, *theirs)).holds()


SIGNER = HTTPMessageSigner(signature_algorithm=ED25519)
VERIFIER = HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=OneKey())


def test_they_verify_what_we_sign_and_we_verify_what_they_sign() -> None:
    random = Random(9421)  # noqa: S311
    for _ in range(MESSAGES // 2):
        they_verify_ours(draw(random))
        we_verify_theirs(draw(random))
