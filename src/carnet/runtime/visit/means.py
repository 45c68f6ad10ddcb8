"""What an agent does its work with, the same for all its visits; and who has sent one."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.dialogue.events import ConversationResult
from carnet.core.messages.events import Waiting
from carnet.core.messages.output import Output
from carnet.core.people.address import handle_of
from carnet.core.people.evidence import Evidence
from carnet.core.people.identity import Caller, Context
from carnet.core.people.sender import Sender, sender_of
from carnet.core.principal import Principal, context_of, principal_of
from carnet.ports.calls.questions import Surface
from carnet.ports.calls.steps import Progress, Steps
from carnet.ports.engine.model import LanguageModel
from carnet.ports.trust.people import People
from carnet.runtime.threads import Threads


class Converses(Protocol):
    """Has a conversation speak within a turn."""

    async def __call__(
        self, call: Call, out: Output, participants: Any, options: Mapping[str, Any], ordinal: int
    ) -> ConversationResult | Waiting:
        """What it came to, or what somebody in it asks for; `ordinal` counts them, from 1."""


class VisitMeans(Struct, frozen=True, kw_only=True, eq=False):
    """Where it keeps its steps and tells its progress, its threads, and whom it may ask."""

    steps: Steps | None = None
    progress: Progress | None = None
    threads: Threads | None = None
    models: Mapping[str, LanguageModel] = {}
    converses: Converses | None = None
    surface: Surface | None = None  # None: questions are shown when its turn waits
    domain: str = ""  # ours; empty: agents have names alone
    people: People | None = None  # whose addresses it is told


NO_MEANS: Final = VisitMeans()


class ReceivedVisit:
    """The part of a visit that tells who calls, and whom."""

    _call: Call
    _means: VisitMeans

    @property
    def sender(self) -> Sender:
        """Who has sent it, as far as that was proved: `sender.address`, `sender.how`."""
        caller, means = self._call.caller, self._means
        person = None
        if caller.person is not None and means.people is not None and caller.standing is None:
            found = means.people.numbered(caller.person)
            person = None if found is None else found.handle(means.domain)
        return sender_of(caller, self._call.carnet.path, domain=means.domain, person=person)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What others vouch for of who calls, verified: `evidence[0].subject`, `.on_behalf_of`."""
        return self._call.caller.evidence

    @property
    def recipient(self) -> str:
        """Whom it was sent to: our own address, as others call us."""
        name, domain = self._call.agent, self._means.domain
        return (handle_of(name, domain) if domain else None) or name

    @property
    def context(self) -> Context:
        """What its caller says of itself: claimed, unless `context.verified`.

        Where it says nothing, the top of a chain that began here.
        """
        return context_of(self._call)

    @property
    def acts_as(self) -> Principal:
        """As whom it acts: the person, the agent, the token's client, workspace and ceiling."""
        return principal_of(self._call)

    @property
    def caller(self) -> Caller:
        """Who calls, how that was proved, and with which rights."""
        return self._call.caller

    @property
    def principal(self) -> str | None:
        """Whose token was verified, if one was: an identity, never the token itself."""
        caller = self._call.caller
        if caller.principal is not None:
            return caller.principal
        return caller.actor.name if caller.actor.how == "token" else None
