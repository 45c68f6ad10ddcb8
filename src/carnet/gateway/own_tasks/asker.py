"""Who asks about a task, and whether it is theirs.

Law 1. Who asks is known by a token, a signature, a credential or an access token, as who calls is.
       A credential is good for one question; of a message that goes on with a task, the call uses
       it up.
Law 2. A task that is unknown, another's, or of another agent gets the same bytes: whoever asks
       learns nothing of what is not theirs, an operator neither.
"""

from msgspec import Struct

from carnet.core.call import ANY_AGENT
from carnet.core.people.identity import Caller
from carnet.core.people.proof import Asking
from carnet.core.trust.federation import lacks, scope_for
from carnet.errors import (
    CarnetError,
    DestinationMismatch,
    PermissionMissing,
    TaskNotFound,
    TokenMissing,
)
from carnet.gateway.endpoint import request_of
from carnet.gateway.own_tasks.bearer import NO_OTHERS, Bearers
from carnet.gateway.published import Published
from carnet.gateway.tasks import TaskRecords
from carnet.guards.admission.asker import KnownAskers
from carnet.guards.caller.owner import Owners, check_time
from carnet.http.exchange import Access, Exchange, read_authorization
from carnet.ports.calls.tasks import StoredTask, TaskScope
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER, STRANGER
from carnet.wire.dialects.a2a.extensions import envoys
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.dialects.samvad.tasks import read_asking


class Asker(Struct, frozen=True):
    """Who asks: somebody with a token, or with a signature."""

    caller: Caller | None = None
    asking: Asking | None = None

    @property
    def name(self) -> str:
        """Under which tasks are asked for, where it is no signature that says so."""
        caller = self.caller
        if caller is None:
            return ""
        return caller.actor.name if caller.standing is None else caller.standing.principal

    def scope(self, agent: str | None) -> TaskScope:
        """The tasks of an agent, or of all, that may be theirs: with a signature, any."""
        if self.caller is None:
            return TaskScope(agent=agent, has_context=True)
        standing = self.caller.standing
        if standing is None:
            return TaskScope(agent=agent, has_context=True, actor=self.caller.actor.name)
        speakers = f"{standing.sender}#" if standing.subject is None else None
        sender = standing.principal
        return TaskScope(agent=agent, has_context=True, sender=sender, speakers=speakers)

    def check(self, permission: str, about: str) -> None:
        """Refuse a token that may not; a signature is good for what its sender asked for."""
        if self.caller is None:
            return
        if not self.caller.may(permission):
            raise PermissionMissing(permission=permission)
        if lacks(self.caller.scopes, scope_for(about)):
            raise PermissionMissing(permission=scope_for(about))


class Askers:
    """Finds out who asks, and which tasks are theirs."""

    def __init__(
        self,
        access: Access,
        records: TaskRecords,
        owners: Owners,
        published: Published,
        clock: Clock,
        bearers: Bearers = NO_OTHERS,
        known: KnownAskers | None = None,
    ) -> None:
        """`access` knows tokens, `owners` the keys of those who sign.

        `bearers` tells credentials apart, and `known` judges those that are no tokens.
        """
        self._bearers = bearers
        self._known = known
        self._access = access
        self._records = records
        self._owners = owners
        self._published = published
        self._clock = clock

    async def who(self, exchange: Exchange, arrival: Arrival, *, uses: bool = True) -> Asker:
        """Who sends a request, whose body has come; with `uses` its credential is used up."""
        headers = arrival.headers
        if read_authorization(headers) is None and headers.get("signature") is not None:
            READER.set(STRANGER)
            asking = self._asking(exchange, arrival)
            check_time(asking, self._clock.wall_us())
            return Asker(asking=asking)
        shown = self._bearers.read(read_authorization(headers))
        if shown is not None and self._known is not None:
            READER.set(STRANGER)
            agent = arrival.agent if arrival.agent is not None else arrival.by_host()
            return Asker(caller=await self._known.who(shown, agent, uses=uses))
        caller = await self._access.check(exchange, None)
        READER.set(caller.actor.name)
        return Asker(caller=caller)

    def _asking(self, exchange: Exchange, arrival: Arrival) -> Asking:
        request = request_of(exchange)
        if envoys.is_presented(arrival.headers):
            if arrival.recipient() is None:  # signed for another host
                raise DestinationMismatch
            return envoys.read_asking(request, arrival.body, arrival.stamps)
        short_path = exchange.path.decode("latin-1")
        return read_asking(request, arrival.body, short_path=short_path, stamps=arrival.stamps)

    def known(self, asker: Asker) -> Caller:
        """Who asks, where nobody but the holder of a token can."""
        if asker.caller is None:
            raise TokenMissing
        if asker.caller.task is not None:  # it may ask about that, and list nothing
            raise PermissionMissing(permission="run:read")
        return asker.caller

    async def find(self, task: str, agent: str, asker: Asker) -> StoredTask:
        """A task of whoever asks, at this agent or at `ANY_AGENT`; TaskNotFound for any other.

        At the hub, which has no name, it may be of any agent here.
        """
        try:
            name = None if agent in {"", ANY_AGENT} else self._published.target(agent).name
        except CarnetError:  # no such agent, so no such task of it
            raise TaskNotFound from None
        if asker.caller is not None and asker.caller.task not in {None, task}:
            raise TaskNotFound  # before it is looked for, so that its time tells nothing
        found = await self._records.seek(task, asker.scope(name))
        is_theirs = found is not None
        if asker.asking is not None:
            sender, now = None if found is None else found.sender, self._clock.wall_us()
            is_theirs = await self._owners.is_signed_by(sender, asker.asking, now)
        if found is None or not is_theirs:
            raise TaskNotFound
        return found

    async def waiting_for(self, state_hash: bytes, agent: str, asker: Asker) -> list[StoredTask]:
        """Their tasks of this agent that wait for the answer which has this state."""
        try:
            name = self._published.target(agent).name
        except CarnetError:  # no such agent, so no such task of it
            return []
        actor = None if asker.caller is None else asker.caller.actor.name
        found = await self._records.of_state(state_hash, name, actor)
        return [task for task in found if await self._is_theirs(task, asker)]

    async def _is_theirs(self, task: StoredTask, asker: Asker) -> bool:
        if asker.caller is not None:
            if asker.caller.task not in {None, task.id}:
                return False
            standing = asker.caller.standing
            if standing is not None:
                return standing.owns(task.sender)
            return task.turn.actor == asker.caller.actor.name
        if asker.asking is None:
            return False
        return await self._owners.is_signed_by(task.sender, asker.asking, self._clock.wall_us())
