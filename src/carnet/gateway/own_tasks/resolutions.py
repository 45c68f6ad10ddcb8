"""The callback by which an agent elsewhere says that what it asked for was done at its page (R43).

    POST /policy-resolutions   {policy_resolution: {in_reply_to_state, outcome}}, signed (RFC 9421)

Law 1. It answers what that agent asked for itself, with a link to its own host, and what costs
       nothing here: who asks cannot agree to an approval, to a value or to what we would debit.
Law 2. It is signed with a key of the agent whose part it was. Whatever else comes, an unknown
       state, a used one, another's key, is refused in the same bytes.
Law 3. The answer is durable, and its turn runs on, before it is acknowledged; the person finds both
       in her inbox.
"""

from typing import Final

from carnet.core.messages.interrupt import Interrupt, Resolution, hash_state
from carnet.core.people.address import AGENT
from carnet.core.people.proof import Asking
from carnet.errors import InvalidRequest, PolicyStateInvalid
from carnet.gateway.endpoint import request_of
from carnet.guards.caller.owner import Owners, check_time
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.calls.inbox import Deciding, Inbox, InboxEntry
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER, STRANGER
from carnet.wire.dialects.a2a.client import place_of
from carnet.wire.dialects.a2a.extensions.questions.policy import read
from carnet.wire.dialects.samvad.tasks import read_asking
from carnet.wire.grammar import json
from carnet.wire.grammar.mentionable import NAMESPACE, POLICY_RESOLUTION
from carnet.wire.stamps.stamp import Stamps

MOST_BYTES: Final = 16 * 1024  # of a callback

# What is asked of a person here, and nobody elsewhere can have been given.
_ASKED_HERE: Final = frozenset({"approval", "input"})


class PolicyCallbacks:
    """Takes the callbacks of agents elsewhere."""

    def __init__(
        self, inbox: Inbox, deciding: Deciding, owners: Owners, *, stamps: Stamps, clock: Clock
    ) -> None:
        """`inbox` has the questions, `owners` knows the keys of agents."""
        self._inbox = inbox
        self._deciding = deciding
        self._owners = owners
        self._stamps = stamps
        self._clock = clock

    async def resolve(self, exchange: Exchange) -> None:
        """POST /policy-resolutions."""
        READER.set(STRANGER)
        check_json_body(exchange.headers)
        body = await exchange.read(MOST_BYTES)
        path = exchange.path.decode("latin-1")
        asking = read_asking(request_of(exchange), body, short_path=path, stamps=self._stamps)
        check_time(asking, self._clock.wall_us())
        found = read([{NAMESPACE: json.read_object(body)}], 0)
        answer = None if found is None else found.answer
        if answer is None:
            raise InvalidRequest(POLICY_RESOLUTION, "is missing")
        entry, issuer = await self._asked(answer.state or "", asking)
        given = Resolution(
            outcome=answer.outcome, value=answer.value, resolver=f"callback:{issuer}"
        )
        await self._deciding.decide(entry, given)
        await reply_json(exchange, {"outcome": answer.outcome})

    async def _asked(self, state: str, asking: Asking) -> tuple[InboxEntry, str]:
        """What has this state, of those that the signer asked for; and who that is."""
        now = self._clock.wall_us()
        for entry in await self._inbox.of_state(hash_state(state)):
            issuer = _issuer(entry.record.interrupt)
            if issuer and await self._owners.is_signed_by(f"{AGENT}{issuer}", asking, now):
                return entry, issuer
        raise PolicyStateInvalid


def _issuer(asked: Interrupt) -> str:
    """Whose part it was that a callback may answer; empty where none may."""
    place = place_of(asked)
    is_ours = asked.amount is not None or asked.kind in _ASKED_HERE
    return "" if place is None or asked.url is None or is_ours else place.issuer


ROUTES = (
    Row(
        method="POST",
        path="/policy-resolutions",
        endpoint=PolicyCallbacks.resolve,
        auth="gate",
        summary="An agent elsewhere says that what it asked for was done at its page",
        answer="Page",
    ),
)
