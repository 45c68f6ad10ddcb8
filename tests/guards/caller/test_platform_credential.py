"""Credentials whose use cannot be recorded, or that end while they are looked at."""

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from msgspec import structs

from carnet.core.call import Ask, Claim
from carnet.core.people.address import Identities
from carnet.core.people.evidence import Carried, Evidence
from carnet.core.people.identity import Actor, Caller
from carnet.errors import PeerUnreachable, StorageUnavailable
from carnet.guards.caller.platform_credential import CredentialsPresented
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import Nonce
from carnet.testing.clock import FakeClock
from carnet.wire.crypto import ed25519
from carnet.wire.grammar import jcs
from carnet.wire.identity import did_document, platform_credential
from carnet.wire.identity.did_document import DidDocument

SEED = bytes(range(32))
DID = "did:web:x.example"
NOW = 1_800_000_000


class Documents:
    """Shows one document, and counts how often it is asked for."""

    def __init__(self, body: bytes | None = None) -> None:
        keys = {"k1": ed25519.public_of(SEED)}
        self._body = did_document.write(DID, keys) if body is None else body
        self.asked = 0

    async def find(self, did: str, /, *, again: bool = False) -> DidDocument:
        assert did == DID
        assert again is bool(self.asked)
        self.asked += 1
        if not self._body:
            raise PeerUnreachable("nothing answers")
        return did_document.read(self._body)


class Uses:
    """A store that takes its time, or has none."""

    def __init__(self, clock: FakeClock, seconds: float = 0, *, fails: bool = False) -> None:
        self._clock = clock
        self._seconds = seconds
        self._fails = fails

    async def use(self, nonce: Nonce, by: str, now: int, /) -> bool:
        self._clock.advance(self._seconds)
        if self._fails:
            raise StorageUnavailable("down")
        return bool(nonce.nonce and by and now)


class Everybody:
    """Is believed."""

    def admits(self, found: Evidence, /) -> bool:
        return bool(found.issuer)


class Nobody:
    """Is believed."""

    def admits(self, found: Evidence, /) -> bool:
        return not found.issuer


def candidate(**more: Any) -> Candidate:
    made = Evidence(
        id="urn:uuid:1",
        subject="slack:T1/U2",
        issuer=DID,
        method="urn:m",
        audience=("@echo@acme.example",),
        issued=NOW,
        expires=NOW + 300,
        source=more.get("source", {}),
    )
    written = platform_credential.write(
        made, challenge="m-1", method=f"{DID}#k1", sign=ed25519.signer(SEED)
    )
    carried = Carried(credentials=[written], message=more.get("message", "m-1"))
    claim = Claim(
        dialect="a2a",
        agent="echo",
        ask=Ask(messages=()),
        digest=b"d",
        request=b"",
        carried=carried,
    )
    found = Candidate(claim, NOW * 1_000_000)
    found.caller = Caller(actor=Actor(name="token:a", how="token"), scopes=frozenset())
    return found


async def judged(
    uses: Uses | None, clock: FakeClock, documents: Documents, **more: Any
) -> Candidate:
    at = Identities(["echo"], domain="acme.example", default="echo")
    guard = CredentialsPresented(documents, Everybody(), at, clock, uses)
    found = candidate(**more)
    waiting = guard(found)
    assert waiting is not None
    await waiting
    return found


async def test_a_store_that_is_down_leaves_it_unused_and_raises_nothing() -> None:
    """M40."""
    clock = FakeClock(wall_us=NOW * 1_000_000)
    found = await judged(Uses(clock, fails=True), clock, Documents())
    assert (found.evidence, found.faults) == ((), ("replay_store_failed",))
    without = await judged(None, clock, Documents())
    assert without.faults == ("replayed",)


@pytest.mark.parametrize(("seconds", "faults"), [(359.0, ()), (361.0, ("expired",))])
async def test_its_time_is_looked_at_again_when_it_was_used(
    seconds: float, faults: tuple[str, ...]
) -> None:
    clock = FakeClock(wall_us=NOW * 1_000_000)
    found = await judged(Uses(clock, seconds), clock, Documents())
    assert bool(found.evidence) is not bool(faults)
    assert found.faults == faults


async def test_nothing_is_asked_for_what_is_for_another_message() -> None:
    """M37."""
    clock, documents = FakeClock(wall_us=NOW * 1_000_000), Documents()
    found = await judged(Uses(clock), clock, documents, message="m-2")
    assert (found.faults, documents.asked) == (("challenge_mismatch",), 0)


async def test_a_document_that_cannot_be_had_or_lacks_the_key_is_asked_for_once_more() -> None:
    """M41."""
    clock = FakeClock(wall_us=NOW * 1_000_000)
    gone = Documents(b"")
    assert (await judged(Uses(clock), clock, gone)).faults == ("key_fetch_failed",)
    assert gone.asked == 1
    lacking = Documents(did_document.write(DID, {}))
    found = await judged(Uses(clock), clock, lacking)
    assert (found.faults, lacking.asked) == (("issuer_controller_mismatch",), 2)


def test_a_claim_without_credentials_costs_nothing() -> None:
    clock = FakeClock()
    at = Identities([], domain="acme.example", default=None)
    guard = CredentialsPresented(Documents(), Everybody(), at, clock, None)
    found = candidate()
    found.claim = Claim(dialect="", agent="", ask=Ask(messages=()), digest=b"", request=b"")
    assert guard(found) is None


@pytest.mark.parametrize(
    ("policy", "numbers", "faults", "at_once"),
    [
        (Everybody(), 1, (), 2),  # of the proof, and of the rest
        (Everybody(), 3_000, (), 0),  # which is long: beside the loop
        (Nobody(), 1, ("untrusted_issuer",), 0),
        (Nobody(), 3_000, ("untrusted_issuer",), 0),
    ],
)
async def test_what_is_signed_is_gone_through_for_who_is_trusted_and_beside_the_loop(
    policy: Everybody | Nobody, numbers: int, faults: tuple[str, ...], at_once: int
) -> None:
    """A73: whoever may call could have the loop held by a credential that it has made up."""
    clock, entered = FakeClock(wall_us=NOW * 1_000_000), Counter[object]()
    source = {"source": {"seen": list(range(numbers))}}
    carried = candidate(source=source).claim.carried  # which is signed beforehand
    assert carried is not None
    at = Identities(["echo"], domain="acme.example", default="echo")
    guard = CredentialsPresented(Documents(), policy, at, clock, Uses(clock))
    found = candidate()
    found.claim = structs.replace(found.claim, carried=carried)

    def note(frame: FrameType, event: str, _: object) -> None:
        entered[frame.f_code] += event == "call"

    waiting = guard(found)
    assert waiting is not None
    sys.setprofile(note)  # of this thread, which is the loop's
    try:
        await waiting
    finally:
        sys.setprofile(None)
    assert found.faults == faults
    assert entered[jcs.canonical.__code__] == at_once
