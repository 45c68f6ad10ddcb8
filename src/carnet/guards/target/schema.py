"""Does the payload have the shape that the skill asks for?

Law 1. It is the last thing judged before the transaction: nobody who may not call learns from a
       schema what is wrong with a payload.
Law 2. Of a task everything that can be wrong with its payload is told before it is accepted, also
       what no schema says: a text that is no date.
"""

from carnet.guards.candidate import Candidate
from carnet.ports.trust.schemas import Schemas


class WellFormed:
    """Refuses a payload that the schema of the skill does not take."""

    def __init__(self, schemas: Schemas) -> None:
        """`schemas` were compiled when the gateway started."""
        self._schemas = schemas

    def __call__(self, candidate: Candidate, /) -> None:
        """Check what goes into the skill."""
        skill, payload = candidate.skill, candidate.claim.ask.payload
        if skill is None or payload is None:
            return
        self._schemas.check_input(candidate.target.name, skill, payload)
        converts = candidate.target.converts
        if candidate.claim.is_task and converts is not None:  # a call learns it from the function
            converts(skill.id, payload)
