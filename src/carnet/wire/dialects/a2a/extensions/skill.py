"""Our own extension by which a message asks for a skill by its name.

    urn:carnet:a2a:skill:v1   {skill, payload}

Law 1. A skill is asked for by name, and its payload goes in as it is: what the schema of the skill
       says of it is judged where every payload is.
Law 2. What is not in this form is refused: nobody may guess what was asked for.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.row import (
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    members,
    needed,
    payload,
)

SKILL_URI: Final = "urn:carnet:a2a:skill:v1"

MOST_SKILL: Final = 128


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The skill that a message asks for, and what goes in."""
    del last_depth
    try:
        value = payload(found, SKILL_URI)
        return None if value is None else _read_skill(members(value))
    except PayloadBroken as broken:
        raise InvalidRequest(f"metadata[{SKILL_URI}]", str(broken)) from None


def _read_skill(given: dict[str, Any]) -> ExtensionClaim:
    skill = needed(given, "skill", MOST_SKILL)
    goes_in = given.get("payload")
    return ExtensionClaim(
        skill=skill,
        payload={} if goes_in is None else members(goes_in),
        shown={"skill": skill},
    )


SKILL: Final = ExtensionRow(
    name="skill",
    uris=(SKILL_URI,),
    keys=(SKILL_URI,),
    is_own=True,
    is_declared=True,
    description="A skill that is asked for by its name, with a payload that its schema describes.",
    reads="the name of a skill, and the payload that goes in",
    writes="nothing: what the skill gives is the artifact `result`",
    believes="as every request: the agent must offer the skill, and its schema judges the payload",
    read=read,
)
