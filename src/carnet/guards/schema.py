"""Does the payload have the shape that the skill asks for?

Law. It is the last thing judged before the transaction: nobody who may not call learns from a
schema what is wrong with a payload.
"""

from carnet.guards.candidate import Candidate
from carnet.ports.schemas import Schemas


class WellFormed:
    """Refuses a payload that the schema of the skill does not take."""

    def __init__(self, schemas: Schemas) -> None:
        """`schemas` were compiled when the gateway started."""
        self._schemas = schemas

    def __call__(self, candidate: Candidate, /) -> None:
        """Check what goes into the skill."""
        skill, payload = candidate.skill, candidate.claim.ask.payload
        if skill is not None and payload is not None:
            self._schemas.check_input(candidate.target.name, skill, payload)
