"""The card of an agent of ours, as clients of A2A 1.0 and of 0.3 read it.

Law 1. Every required field is there and holds something; nothing in the card is empty or null, so
       that all forms in which a signature covers it are one (`presence`).
Law 2. The members of 0.3 stand beside those of 1.0, unless they are not wanted, and contradict none
       of them: a reader of either version passes over the other's.
Law 3. The same facts give the same bytes.
"""

from typing import Any, Final

from carnet.core.people.identity import Skill
from carnet.wire.dialects.a2a.card.facts import BEARER, A2aFacts, DeclaredExtension

PATH: Final = "/a2a"
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")  # the first is preferred
VERSIONS: Final = ("1.0", "0.3")
LEGACY: Final = "0.3.0"  # as cards of that version wrote it

TEXT: Final = "text/plain"
JSON: Final = "application/json"

_ABOUT_TOKENS: Final = "A token of this gateway: carnet tokens create."


def write_members(facts: A2aFacts) -> dict[str, Any]:
    """The members of a card that is not signed yet."""
    url = facts.url + PATH
    scopes = [facts.permission]
    return {
        "name": facts.name,
        "description": facts.description,
        "version": facts.version,
        "provider": {"organization": facts.organization, "url": facts.organization_url},
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": version}
            for version in VERSIONS
            for binding in BINDINGS
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": True,
            **_unless_empty("extensions", [_extension(each) for each in facts.declared]),
        },
        "securitySchemes": {BEARER: _scheme(is_legacy=facts.is_legacy)},
        "securityRequirements": [{"schemes": {BEARER: {"list": scopes}}}],
        "defaultInputModes": [TEXT, JSON],
        "defaultOutputModes": [TEXT, JSON],
        "skills": [_skill(skill) for skill in facts.skills],
        **(_legacy(url, scopes) if facts.is_legacy else {}),
    }


def _legacy(url: str, scopes: list[str]) -> dict[str, Any]:
    """What a client of 0.3 reads in place of the interfaces and requirements of 1.0."""
    first = BINDINGS[0]
    return {
        "url": url,
        "preferredTransport": first,
        "protocolVersion": LEGACY,
        "additionalInterfaces": [{"url": url, "transport": each} for each in BINDINGS],
        "security": [{BEARER: scopes}],
        "supportsAuthenticatedExtendedCard": True,
    }


def _scheme(*, is_legacy: bool) -> dict[str, Any]:
    """Tokens, told in both versions at once if need be."""
    scheme = {"scheme": "Bearer", "description": _ABOUT_TOKENS}
    former = {"type": "http", **scheme} if is_legacy else {}
    return {"httpAuthSecurityScheme": scheme, **former}


def _extension(each: DeclaredExtension) -> dict[str, Any]:
    return {
        "uri": each.uri,
        **_unless_empty("description", each.description),
        **_unless_empty("required", each.required),
        **_unless_empty("params", each.params),
    }


def _skill(skill: Skill) -> dict[str, Any]:
    return {
        "id": skill.id,
        "name": skill.name or skill.id,
        "description": skill.description or skill.id,
        "tags": list(skill.tags) or [skill.id],
        **_unless_empty("examples", list(skill.examples)),
        "inputModes": _modes(skill.input_schema),
        "outputModes": _modes(skill.output_schema),
    }


def _modes(schema: dict[str, Any]) -> list[str]:
    """Plain text for what is a text alone, JSON for all that has a shape."""
    needed = schema.get("required")
    is_text = needed in (["text"], []) and "text" in schema.get("properties", {})
    return [TEXT, JSON] if is_text else [JSON]


def _unless_empty(name: str, value: object) -> dict[str, Any]:
    return {name: value} if value else {}
