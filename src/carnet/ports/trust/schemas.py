"""Whether what goes into a skill, and what comes out of it, has the shape that its card promises.

Law 1. Nothing is fetched to find out: a schema stands for itself.
Law 2. A refusal names the field and the constraint, never the value.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from carnet.core.people.identity import Skill


class Schemas(Protocol):
    """The compiled schemas of our skills."""

    def compile(self, agent: str, skills: Iterable[Skill]) -> None:
        """Make the skills of an agent ready, at start. Raises ConfigInvalid for a bad schema."""

    def check_input(self, agent: str, skill: Skill, payload: dict[str, Any]) -> None:
        """Refuse a payload that does not fit. Raises SchemaInvalid."""

    def check_output(self, agent: str, skill: Skill, result: dict[str, Any]) -> None:
        """Refuse a result of our own agent that does not fit. Raises AgentFailed."""
