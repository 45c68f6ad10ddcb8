"""Names that say where their keys are."""

import pytest

from carnet.core.trust.did import WebDid, did_of, is_did, read_did
from carnet.errors import AddressInvalid


def test_a_name_leads_to_one_page() -> None:
    assert read_did(did_of("x.example")) == WebDid("x.example", "/.well-known/did.json")
    assert read_did("did:web:x.example:a:b") == WebDid("x.example", "/a/b/did.json")
    assert is_did("did:key:z6Mk")


@pytest.mark.parametrize(
    "name",
    [
        *("did:key:z6Mk", "did:web:", "did:web:localhost", "did:web:x.example%3A80", "x.example"),
        *("did:web:127.0.0.1", "did:web:x.example:..", "did:web:x.example:", "did:web:x.y/a"),
        *("did:web:x.example:" + "a" * 600, "did:web:X.example", "did:web:x.example#k"),
    ],
)
def test_what_leads_nowhere_is_refused(name: str) -> None:
    with pytest.raises(AddressInvalid):
        read_did(name)
