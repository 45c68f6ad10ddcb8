"""Is this caller on the list of the agent?

Law 1. An agent without a list is for whoever has the right to call it; once it has one, only those
       are admitted whom a rule admits (R40).
Law 2. What counts is proved: who authenticated, and the subjects of verified evidence, each with
       whom it acts for. What a caller says of itself counts for nothing (M29).
Law 3. Who is refused is told which rule is nearest and what it lacks, and never what rules say.
"""

from collections.abc import Sequence

from carnet.core.call import Ask, Call, Target
from carnet.core.people.address import handle_of
from carnet.core.people.evidence import CHATS, Evidence, ProvedNames, denied_by
from carnet.core.people.identity import Caller
from carnet.errors import AccessDenied
from carnet.guards.candidate import Candidate
from carnet.ports.trust.people import People


def check_access(
    target: Target, ask: Ask, named: Sequence[ProvedNames], contact: str | None
) -> None:
    """Refuse who is not on the list of the agent."""
    if target.allow is None:
        return
    denied = denied_by(target.allow, ask.skill or CHATS, named)
    if denied is not None:
        number, lacks = denied
        rule = f"agents.{target.name}.allow[{number}]"
        raise AccessDenied(rule=rule, lacks=lacks, contact=contact)


class OnList:
    """Refuses callers that are not on the list of an agent that has one."""

    def __init__(self, domain: str, people: People | None, contact: str | None) -> None:
        """`people` have the names of those whose tokens are shown; `contact` is whom to ask."""
        self._domain = domain
        self._people = people
        self._contact = contact

    def __call__(self, candidate: Candidate, /) -> None:
        """Look the caller up."""
        target = candidate.target
        if target.allow is None:
            return
        behalf = candidate.on_behalf_of
        own = ProvedNames(
            self._subjects(candidate.caller, candidate.path), behalf[0] if behalf else None
        )
        named = [own, *named_by(candidate.evidence)]
        check_access(target, candidate.claim.ask, named, self._contact)

    def check_child(self, parent: Call, target: Target, ask: Ask) -> None:
        """The same of a call that an agent makes: it calls, for whoever called it."""
        if target.allow is None:
            return
        above = self._subjects(parent.caller, parent.carnet.path)
        own = handle_of(parent.agent, self._domain) or parent.agent
        named = [ProvedNames((own, f"agent:{parent.agent}"), each) for each in above or (None,)]
        check_access(target, ask, named, self._contact)

    def _subjects(self, caller: Caller, path: Sequence[str]) -> tuple[str, ...]:
        """The names of who authenticated, that were proved."""
        actor, standing = caller.actor, caller.standing
        found = [actor.name]
        if standing is not None:
            found.append(standing.sender)
            last = standing.subject or (path[-1] if path else None)
            if last is not None and actor.domain and last.endswith(f"@{actor.domain}"):
                found.append(last)
        elif caller.person is not None and self._people is not None:
            person = self._people.numbered(caller.person)
            if person is not None:
                found.append(person.handle(self._domain))
                found += [each.address for each in person.addresses if each.how == "verified"]
        return tuple(found)


def named_by(evidence: Sequence[Evidence]) -> list[ProvedNames]:
    """The subjects of verified evidence, each with whom it acts for."""
    return [ProvedNames((each.subject,), each.principal) for each in evidence]
