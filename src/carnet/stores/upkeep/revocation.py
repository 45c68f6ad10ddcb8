"""What is stopped when a token, a person, a peer, a sender's keys or a delegation has ended (R54).

Law 1. A call goes on only while all that let it in holds: the token that was shown, the person
       whose it is, the token that pays where one was forwarded, the peer that signed or is known by
       its certificate, a live key of a pinned sender, and the delegation. What is called for it
       inherits that.
Law 2. What runs is judged by the gateway that runs it, what waits by every gateway on the store. A
       gateway sees within a second what was revoked.
Law 3. What waits is found by its row: token, person, delegation, actor and quota. It ends as a
       cancelled one does.
Law 4. Who only reads is held to the token that it has shown, and to its session. What a session has
       begun goes on when it ends, as long as its token holds.
Law 5. The token that a command makes for itself ends with the command, and nothing ends with it: it
       stands for the operator, who is not revoked.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import math
from collections.abc import Callable, Iterable
from typing import Final

from carnet.core.call import Admitted
from carnet.core.people.address import AGENT
from carnet.core.people.delegation import SKEW_SECONDS, Delegation
from carnet.core.people.identity import OPERATOR_NAME, Caller, Standing
from carnet.core.people.proof import SECOND_US
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, Value
from carnet.stores.trust.trust import StoredTrust
from carnet.stores.upkeep.expiry import Expiry

# A call that was admitted a moment before is written a moment later: it is found by another look.
MORE_LOOKS: Final = 3

OWN: Final = "token:"  # how the names of actors and quotas begin
VOUCHER: Final = "voucher:"
PEER: Final = "peer:"
SENDER: Final = "sender:"
CERTIFICATE: Final = "certificate"  # how a peer is known whose proxy tells one

_WHOSE: Final = (
    "SELECT DISTINCT token, person, delegation, actor, purse FROM turn WHERE state = '{}'"
)
_OF: Final = (
    "SELECT t.n FROM turn t WHERE t.state = '{}'"
    " AND COALESCE(t.token, '') = ? AND COALESCE(t.person, 0) = ?"
    " AND COALESCE(t.delegation, '') = ? AND t.actor = ? AND t.purse = ?"
)
_CANCEL: Final = (
    f"UPDATE task SET cancelled = ? WHERE cancelled IS NULL AND ended IS NULL AND turn IN ({_OF})"
)
_WITHOUT_TASK: Final = f"{_OF} AND NOT EXISTS (SELECT 1 FROM task k WHERE k.turn = t.n)"


class Revocations:
    """Knows what has ended, and ends what waits because of it."""

    def __init__(
        self, trust: StoredTrust, database: Database, clock: Clock, expiry: Expiry
    ) -> None:
        self._trust = trust
        self._database = database
        self._clock = clock
        self._expiry = expiry
        self._numbers: set[str] = set()  # of live tokens, and of those that commands made
        self._accounts: set[str] = set()  # that have a live token
        self._peers: frozenset[str] = frozenset()  # organisations that have one
        self._people: frozenset[int] = frozenset()  # who have not ended
        self._next_end = math.inf  # of a live token, microseconds since the epoch
        self._looks = MORE_LOOKS
        self._is_read = False
        self._stops: list[Callable[[], None]] = []

    def listen(self, stop: Callable[[], None]) -> None:
        """Call `stop` at every look: it ends what runs or is read here and `has_ended`.

        Until somebody listens nothing is ended: only a gateway does it.
        """
        self._stops.append(stop)

    def leave(self, stop: Callable[[], None]) -> None:
        """Call one that listened no more."""
        self._stops.remove(stop)

    def read(self) -> None:
        """Take over what is known of tokens by now; something may have ended."""
        now = self._clock.wall_us()
        known = self._trust.tokens.known()
        live = [token for token in known if token.is_live(now) and not token.is_of_command]
        commands = {token.number for token in known if token.is_of_command}
        self._numbers = commands.union(token.number for token in live)
        own = {token.account for token in live if token.peer is None}
        self._accounts = own | {OPERATOR_NAME}
        self._peers = frozenset(token.peer for token in live if token.peer is not None)
        self._people = self._trust.people.live()
        self._next_end = min((t.expires for t in live if t.expires is not None), default=math.inf)
        self._looks = MORE_LOOKS
        self._is_read = True

    def has_ended(self, call: Admitted, /) -> bool:
        """Whether something has ended that a call was admitted by."""
        now = self._clock.wall_us()
        if not self._is_read or now >= self._next_end:
            self.read()
        caller, payer, delegation = call.caller, call.payer, call.delegation
        standing = caller.standing
        return (
            (caller.token is not None and caller.token not in self._numbers)
            or (caller.person is not None and caller.person not in self._people)
            or (payer.by_forwarding and payer.own_issue and self._is_unpaid(payer.quota))
            or (delegation is not None and self._is_past(delegation, now))
            or (standing is not None and self._is_unknown(standing))
            or ((caller.origin or caller.actor).how == CERTIFICATE and self._is_uncertified(caller))
        )

    def _is_uncertified(self, caller: Caller) -> bool:
        """Whether a peer that was known by its certificate is no longer."""
        peer = self._trust.peers.find((caller.origin or caller.actor).domain or "")
        return peer is None or peer.certificate is None

    def _is_past(self, delegation: Delegation, now: int) -> bool:
        """Whether a delegation has expired, or a link of it was ended (R59)."""
        is_over = delegation.expires + SKEW_SECONDS <= now // SECOND_US
        return is_over or self._trust.delegations.ended_link(delegation) is not None

    def has_left(self, caller: Caller, /) -> bool:
        """Whether the token that a reader has shown has ended, or its session."""
        if not self._is_read or self._clock.wall_us() >= self._next_end:
            self.read()
        return (caller.token is not None and caller.token not in self._numbers) or (
            (caller.session is not None and self._trust.sessions.is_over(caller.session))
            or (caller.actor.how == CERTIFICATE and self._is_uncertified(caller))
        )

    def has_other_rights(self, caller: Caller, /) -> bool:
        """Whether the token that a reader has shown gives other rights than when it was shown."""
        if caller.token is None:
            return False
        token = self._trust.tokens.numbered(int(caller.token))
        return token is None or (token.scopes, token.ceiling) != (caller.scopes, caller.ceiling)

    def _is_unknown(self, standing: Standing) -> bool:
        """Whether a signed caller is not what it was when it was admitted."""
        is_removed = standing.peer is not None and self._trust.peers.find(standing.peer) is None
        return is_removed or self._is_keyless(standing.sender)

    async def keep(self) -> None:
        """End what runs here, and what waits if something has ended since."""
        if not self._stops:
            return
        now = self._clock.wall_us()
        if not self._is_read or now >= self._next_end:
            self.read()
        for stop in self._stops:
            stop()
        if self._looks <= 0:
            return
        for state in ("queued", "waiting"):
            for row in await self._database.fetch(_WHOSE.format(state)):
                if self._is_over(*row):
                    await self._end(state, row, now)
        self._looks -= 1

    async def _end(self, state: str, whose: Iterable[Value], now: int) -> None:
        token, person, delegation, actor, quota = whose
        args = (token or "", person or 0, delegation or "", actor, quota)
        await self._database.execute(_CANCEL.format(state), (now, *args))
        if state == "waiting":
            alone = await self._database.fetch(_WITHOUT_TASK.format(state), args)
            await self._expiry.cancel([n for (n,) in alone], now)

    def _is_over(
        self, token: str | None, person: int | None, ids: str | None, actor: str, quota: str
    ) -> bool:
        """Whether what let a turn in has ended, by its row; the former release named no token."""
        if (
            (token is not None and token not in self._numbers)
            or (person is not None and person not in self._people)
            or (ids is not None and self._trust.delegations.has_ended(ids.split()))
        ):
            return True
        if self._is_unpaid(quota):
            return True
        if actor.startswith(SENDER):
            return self._is_keyless(actor.removeprefix(SENDER))
        if actor.startswith(PEER) and token is None:
            domain = actor.removeprefix(PEER)
            known = self._trust.peers.find(domain) is not None or domain in self._peers
            return not known or self._is_keyless(AGENT + domain)
        return False

    def _is_unpaid(self, quota: str) -> bool:
        if quota.startswith(VOUCHER):  # one of ours, which has a quota of its own
            return self._trust.vouchers.is_ended(quota.rpartition("#")[2])
        return quota.startswith(OWN) and quota.removeprefix(OWN) not in self._accounts

    def _is_keyless(self, sender: str) -> bool:
        """Whether the operator has ended every key that was written down for a sender."""
        keys = self._trust.pinned.of(sender)
        return bool(keys) and all(key.revoked is not None for key in keys)
