"""Which skill is asked for, in a way that it can be asked, and with a payload of its shape?

Law 1. An agent elsewhere whose skills we do not know is asked unjudged: it judges for itself.
Law 2. The payload is the last thing judged before the transaction: nobody who may not call learns
       from a schema what is wrong with it.
Law 3. Of a task everything that can be wrong with its payload is told before it is accepted, also
       what no schema says: a text that is no date.
"""

import difflib

from carnet.core.call import Ask, Claim
from carnet.core.people.skill import CHAT, Mode, Skill
from carnet.errors import SchemaInvalid, SkillNotFound
from carnet.guards.candidate import Candidate
from carnet.ports.trust.schemas import Schemas
from carnet.ports.work.agent import Target


def find_skill(target: Target, ask: Ask) -> Skill | None:
    """The skill that is asked for; None where the target's skills are not known.

    Who just talks asks for `chat`, which an agent with skills need not have.
    """
    wanted = CHAT.id if ask.skill is None else ask.skill
    for skill in target.skills:
        if skill.id == wanted:
            return skill
    if not target.skills:
        return None
    names = [skill.id for skill in target.skills]
    near = names if ask.skill is None else difflib.get_close_matches(wanted, names, n=1)
    raise SkillNotFound(suggestion=near[0] if near else "")


def known_skill(candidate: Candidate, /) -> None:
    """Refuse a skill that the agent has not, or a mode that the skill has not."""
    ask = candidate.claim.ask
    skill = candidate.skill = find_skill(candidate.target, ask)
    if skill is not None and ask.skill is not None and _mode(candidate.claim) not in skill.modes:
        modes = ", ".join(skill.modes)
        task = "; it cannot be a task" if candidate.claim.is_task else ""
        raise SchemaInvalid("mode", f"must be one of the skill's: {modes}{task}")


def _mode(claim: Claim) -> Mode:
    if claim.is_task:
        return "async"
    return "stream" if claim.ask.stream else "sync"


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
