"""The document of a `did:web` name: the keys by which what it asserts is verified.

    {"id": "did:web:connector.example",
     "verificationMethod": [{"id": "did:web:connector.example#k1", "type": "Multikey",
                             "controller": "did:web:connector.example",
                             "publicKeyMultibase": "z6Mk..."}],
     "assertionMethod": ["did:web:connector.example#k1"]}

Law 1. `read(write(...))` gives the same keys.
Law 2. A key asserts if the document lists it for that; who controls it is told as it stands.
Law 3. Methods of other kinds are passed over. A weak key, or one name for two keys, makes the whole
       document worthless (A21).
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.errors import InvalidJson, KeyInvalid
from carnet.wire.crypto import multibase
from carnet.wire.grammar import json

CONTEXTS: Final = ("https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1")
MULTIKEY: Final = "Multikey"
MOST_METHODS: Final = 64
MOST_NAME: Final = 640


class DocumentInvalid(ValueError):
    """The page is no document that can be believed; the message says why, in words of ours."""


class VerificationMethod(Struct, frozen=True):
    """One key."""

    controller: str
    key: bytes


class DidDocument(Struct, frozen=True, kw_only=True):
    """What the document of a name says."""

    id: str
    methods: Mapping[str, VerificationMethod]  # by their names
    asserting: frozenset[str]

    def vouches(self, name: str) -> bool:
        """Whether the key of this name, which is there, is its own and is for what it asserts."""
        return self.methods[name].controller == self.id and name in self.asserting


def read(body: bytes) -> DidDocument:
    """What a page says."""
    try:
        page = json.read_object(body)
    except InvalidJson as error:
        raise DocumentInvalid(error.safe_text) from None
    listed, asserting = _listed(page, "verificationMethod"), _listed(page, "assertionMethod")
    methods: dict[str, VerificationMethod] = {}
    for each in [*listed, *asserting]:
        found = _method(each) if isinstance(each, dict) else None
        if found is None:
            continue
        if methods.setdefault(found[0], found[1]) != found[1]:
            raise DocumentInvalid("it has one name for two keys")
    names = [each.get("id") if isinstance(each, dict) else each for each in asserting]
    return DidDocument(
        id=str(page.get("id")),
        methods=methods,
        asserting=frozenset([each for each in names if isinstance(each, str)]),
    )


def write(did: str, keys: Mapping[str, bytes]) -> bytes:
    """The document of ours, with all keys that are honoured."""
    names = {f"{did}#{kid}": public for kid, public in keys.items()}
    methods = [
        {
            "id": name,
            "type": MULTIKEY,
            "controller": did,
            "publicKeyMultibase": multibase.write_key(public),
        }
        for name, public in names.items()
    ]
    return json.write(
        {
            "@context": list(CONTEXTS),
            "id": did,
            "verificationMethod": methods,
            "assertionMethod": list(names),
        }
    )


def _listed(page: dict[str, Any], name: str) -> list[Any]:
    found = page.get(name, [])
    if not isinstance(found, list) or len(found) > MOST_METHODS:
        raise DocumentInvalid(f"its '{name}' is no list of at most {MOST_METHODS}")
    return found


def _method(member: dict[str, Any]) -> tuple[str, VerificationMethod] | None:
    id, controller, text = (member.get(n) for n in ("id", "controller", "publicKeyMultibase"))
    if member.get("type") != MULTIKEY or not isinstance(text, str):
        return None
    if not isinstance(id, str) or not isinstance(controller, str) or len(id) > MOST_NAME:
        return None
    try:
        return id, VerificationMethod(controller, multibase.read_key(text))
    except KeyInvalid as error:
        raise DocumentInvalid(error.safe_text) from None
    except ValueError:  # a key of another kind
        return None
