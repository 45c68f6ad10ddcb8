"""The document of a name: which keys assert for it."""

from typing import Any

import msgspec
import pytest

from carnet.wire.crypto import ed25519, multibase
from carnet.wire.identity import did_document
from carnet.wire.identity.did_document import DocumentInvalid

DID = "did:web:x.example"
PUBLIC = ed25519.public_of(bytes(32))
METHOD: dict[str, Any] = {
    "id": f"{DID}#k1",
    "type": "Multikey",
    "controller": DID,
    "publicKeyMultibase": multibase.write_key(PUBLIC),
}


def page(**more: Any) -> bytes:
    given = {"id": DID, "verificationMethod": [METHOD], "assertionMethod": [METHOD["id"]]}
    return msgspec.json.encode(given | more)


def test_what_is_written_is_read() -> None:
    found = did_document.read(did_document.write(DID, {"k1": PUBLIC}))
    assert (found.id, found.methods[f"{DID}#k1"].key) == (DID, PUBLIC)
    assert found.vouches(f"{DID}#k1")


def test_a_key_may_stand_where_it_is_listed() -> None:
    found = did_document.read(page(verificationMethod=[], assertionMethod=[METHOD, 7]))
    assert found.vouches(f"{DID}#k1")


def test_a_key_of_another_or_for_something_else_does_not_vouch() -> None:
    assert not did_document.read(page(assertionMethod=[])).vouches(f"{DID}#k1")
    other = METHOD | {"controller": "did:web:y.example"}
    assert not did_document.read(page(verificationMethod=[other])).vouches(f"{DID}#k1")


@pytest.mark.parametrize(
    "method",
    [
        *(7, METHOD | {"type": "JsonWebKey"}, METHOD | {"publicKeyMultibase": 7}),
        *(METHOD | {"id": 7}, METHOD | {"controller": None}),
        METHOD | {"publicKeyMultibase": "uAAAA"},
    ],
)
def test_methods_of_other_kinds_are_passed_over(method: object) -> None:
    assert did_document.read(page(verificationMethod=[method])).methods == {}


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b"{", page(verificationMethod={}), page(assertionMethod=["x"] * 65)),
        page(verificationMethod=[METHOD, METHOD | {"controller": "did:web:y.example"}]),
        page(
            verificationMethod=[
                METHOD | {"publicKeyMultibase": multibase.write(b"\xed\x01" + bytes(32))}
            ]
        ),
    ],
)
def test_what_cannot_be_believed_is_worth_nothing(body: bytes) -> None:
    with pytest.raises(DocumentInvalid):
        did_document.read(body)
