"""A skill that is asked for by name with a token: its payload is judged as a signed one is."""

from typing import Any

from msgspec.structs import replace

from carnet.core.call import Ask, Claim
from carnet.errors import PermissionMissing, SchemaInvalid
from tests.guards.admission.test_gate_signed import admit, refused
from tests.guards.scene import claim
from tests.guards.signed_scene import SignedScene


def naming(payload: dict[str, Any], **more: Any) -> Claim:
    ask = Ask(messages=(), skill="chat", payload=payload)
    return replace(claim("vault", **more), ask=ask)


async def test_a_payload_that_the_schema_does_not_take_never_becomes_a_call() -> None:
    """A56: whatever endpoint it came in by."""
    scene = SignedScene()
    for payload in ({}, {"text": 3}):
        assert await refused(scene, naming(payload)) is SchemaInvalid
    await admit(scene, naming({"text": "hi"}))


async def test_who_may_not_call_learns_nothing_from_a_schema() -> None:
    assert await refused(SignedScene(), naming({}, token="ck_narrow")) is PermissionMissing
