"""The Mentionable card of an agent: its address, and how it is called over A2A.

Law 1. Ours says what our A2A card says, in its own words; the same facts give the same bytes.
Law 2. Of a card of others what decides where a request goes is judged strictly; members that we do
       not know pass. It is read as the card that A2A has, so that one client calls both.
Law 3. `read_card(write_card(facts))` leads to the same interface.
"""

import re
from typing import Any, Final

from carnet.core.people.address import Address, parse_handle
from carnet.core.people.identity import Skill
from carnet.errors import AddressInvalid, InvalidJson, PeerUnreachable
from carnet.wire.dialects.a2a.card import A2aCard, A2aFacts, CardInterface, DeclaredExtension
from carnet.wire.dialects.a2a.card.reader import CardSkill
from carnet.wire.grammar import json

PROTOCOL: Final = "0.1"
SSE: Final = "https+sse"
RPC: Final = "https+jsonrpc"
PLAIN: Final = "https+json"
MOST_SKILLS: Final = 256
MOST_EXTENSIONS: Final = 128
MOST_TEXT: Final = 4096

_BINDINGS: Final = {SSE: "JSONRPC", RPC: "JSONRPC", PLAIN: "HTTP+JSON"}
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,1024})?",
    re.ASCII,
)
_ENDPOINT: Final = "/a2a"
_TEXT_MODES: Final = {
    "text": "text/plain",
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "markdown": "text/markdown",
    "text/html": "text/html",
}


def write_card(facts: A2aFacts, address: str, *, a2a_card: str) -> dict[str, Any]:
    """The card of an agent of ours; `a2a_card` is where its other one is."""
    modes = ["text", "application/json"]
    return {
        "address": address,
        "name": facts.name,
        "description": facts.description,
        "version": facts.version,
        "protocol_version": PROTOCOL,
        "a2a": {
            "endpoint": facts.url + _ENDPOINT,
            "transport": SSE,  # it streams
            "capabilities": {
                "streaming": True,
                "push_notifications": True,
                "state_transition_history": False,
                "extensions": [_extension(each) for each in facts.declared],
            },
            "skills": [_skill(each) for each in facts.skills],
            "input_modes": [write_mode(each) for each in modes],
            "output_modes": [write_mode(each) for each in modes],
            "auth": {"schemes": ["bearer"]},
        },
        "mentionable": {"a2a_card": a2a_card},
    }


def write_mode(mode: str) -> dict[str, str]:
    """What goes in or comes out, as a card of this kind names it."""
    if mode in _TEXT_MODES:
        return {"kind": "text", "mime": _TEXT_MODES[mode]}
    if mode in {"link", "artifact"}:
        return {"kind": mode}
    return {"kind": "file", "mime": mode}


def _extension(each: DeclaredExtension) -> dict[str, Any]:
    written: dict[str, Any] = {"uri": each.uri}
    if each.description:
        written["description"] = each.description
    if each.required:
        written["required"] = True
    if each.params:
        written["params"] = each.params
    return written


def _skill(skill: Skill) -> dict[str, Any]:
    return {
        "id": skill.id,
        "name": skill.name or skill.id,
        "description": skill.description or skill.id,
        "tags": list(skill.tags),
    }


def read_card(body: bytes, address: Address) -> A2aCard:
    """The card of anybody's agent, which must be the one that was asked for.

    Raises:
        PeerUnreachable: It cannot be read, or is another's; nothing of the peer's is told.
    """
    try:
        stated = json.read_object(body)
    except InvalidJson:
        raise PeerUnreachable("its card is no JSON") from None
    _check_address(stated.get("address"), address)
    a2a = stated.get("a2a")
    if not isinstance(a2a, dict):
        raise PeerUnreachable("its card does not say how it is called over A2A")
    endpoint, binding = a2a.get("endpoint"), _BINDINGS.get(str(a2a.get("transport")))
    if not isinstance(endpoint, str) or not _URL.fullmatch(endpoint):
        raise PeerUnreachable("its card names no endpoint that is a URL")
    if binding is None:
        raise PeerUnreachable("its card names a transport that is not spoken here")
    able = a2a.get("capabilities")
    able = able if isinstance(able, dict) else {}
    return A2aCard(
        name=_text(stated.get("name")) or address.local,
        description=_text(stated.get("description")),
        version=_text(stated.get("version")),
        interfaces=(CardInterface(url=endpoint, binding=binding, version="1.0"),),
        streaming=a2a["transport"] == SSE or able.get("streaming") is True,
        push_notifications=able.get("push_notifications") is True,
        extensions=tuple(_extensions(able.get("extensions"))),
        skills=tuple(_skills(a2a.get("skills"))),
    )


def _check_address(value: object, address: Address) -> None:
    try:
        stated = parse_handle(value) if isinstance(value, str) else None
    except AddressInvalid:
        stated = None
    if stated is None or str(stated).lower() != str(address).lower():
        raise PeerUnreachable("its card is that of another address")


def _text(value: object) -> str:
    return value[:MOST_TEXT] if isinstance(value, str) else ""


def _extensions(value: object) -> list[DeclaredExtension]:
    listed = value if isinstance(value, list) else []
    if len(listed) > MOST_EXTENSIONS:
        raise PeerUnreachable(f"its card names more than {MOST_EXTENSIONS} extensions")
    return [
        DeclaredExtension(
            uri=each["uri"],
            required=each.get("required") is True,
            params=each["params"] if isinstance(each.get("params"), dict) else {},
        )
        for each in listed
        if isinstance(each, dict) and isinstance(each.get("uri"), str)
    ]


def _skills(value: object) -> list[CardSkill]:
    listed = value if isinstance(value, list) else []
    if len(listed) > MOST_SKILLS:
        raise PeerUnreachable(f"its card names more than {MOST_SKILLS} skills")
    return [
        CardSkill(id=each["id"], name=_text(each.get("name")))
        for each in listed
        if isinstance(each, dict) and isinstance(each.get("id"), str)
    ]
