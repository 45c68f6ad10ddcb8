"""The hub at the root: whom a message is for that no path and no host names.

Law 1. The handle that its text begins with, if it is one of our agents; else whoever answered last
       in the context that it names, of the same caller; else the default agent.
Law 2. Nobody is led to another organisation: a handle of others is what was said.
Law 3. What was said stays as it is, handle included.
"""

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.messages.mentions import leading_handles, named
from carnet.errors import CarnetError
from carnet.gateway.own_tasks.asker import Askers
from carnet.gateway.published import Published
from carnet.gateway.tasks import TaskRecords
from carnet.http.exchange import Exchange
from carnet.ports.calls.tasks import ChangedTasks
from carnet.wire.dialects.dialect import Arrival


class Hub:
    """Finds the agent of a message."""

    def __init__(self, askers: Askers, records: TaskRecords, published: Published) -> None:
        """`records` know who has answered in a context."""
        self._askers = askers
        self._records = records
        self._published = published

    async def route(self, exchange: Exchange, claim: Claim, arrival: Arrival) -> Claim:
        """The same claim, for whom it is; the default agent has no name."""
        text = claim.ask.text
        handles = leading_handles(text)[0] if "@" in text else ()
        name = self._own(named(handles[0])) if handles else None
        if name is None and _names_context(claim):
            name = await self._last(exchange, claim, arrival)
        return claim if name is None else replace(claim, agent=name)

    def _own(self, name: str) -> str | None:
        try:
            return self._published.target(name).name
        except CarnetError:  # a word that begins with @
            return None

    async def _last(self, exchange: Exchange, claim: Claim, arrival: Arrival) -> str | None:
        """Who has answered last in a context; whose it is, is told by who asks."""
        if claim.proof is not None:  # which is judged once it is known for whom it is
            sender = claim.proof.sender
        else:
            sender = self._askers.known(await self._askers.who(exchange, arrival)).actor.name
        asked = ChangedTasks(sender=sender, agent=None, limit=1, context=claim.ask.context)
        found = await self._records.changed(asked)
        return self._own(found.tasks[0].turn.agent) if found.tasks else None


def _names_context(claim: Claim) -> bool:
    form = claim.ask.form
    message = form["message"] if form and "message" in form else None
    if not message or not ("contextId" in message or "context_id" in message):
        return False
    return bool(message.get("contextId") or message.get("context_id"))
