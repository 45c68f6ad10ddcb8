"""Where a dialogue stands in its chain, and the calls that its turns are.

Law 1. Participants are called one hop deeper than the driver was; where no hop is left, nobody is
       called and nothing is written.
Law 2. At the first level of a run a turn is `<run>.t<index>.<name>`; below another turn that turn
       scopes it (R6): the same agents, called in two turns, speak under different ids.
       Where a gateway drives it, its turns are calls out of a turn there, under the ids of those.
Law 3. Nothing that was inherited grows: depth, time and money are those of the turn above or less.
"""

from hashlib import blake2b
from typing import Final

from msgspec import Struct

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Agent, Ask, Call, Target, turn_key
from carnet.core.chain.carnet import Carnet, Trace
from carnet.core.chain.turn import Turn
from carnet.core.chain.turn_id import scoped_turn_id, turn_id
from carnet.core.people.identity import EVERYTHING, Account, Actor, Caller, Payer, Secret
from carnet.errors import DepthExceeded

_DRIVER: Final = "driver"
_ACCOUNT: Final = Account(_DRIVER, _DRIVER)
_PAYER: Final = Payer(account=_ACCOUNT, quota=_DRIVER)
_CALLER: Final = Caller(actor=Actor(name=_DRIVER, how="in_process"), scopes=frozenset({EVERYTHING}))


class DialoguePlace(Struct, frozen=True, kw_only=True):
    """Where a dialogue stands, and what it inherits."""

    run_id: str
    depth: int = 0  # at which its driver was called
    last_depth: int  # that is still answered
    parent_turn_id: str | None = None
    ordinal: int = 0  # which of the dialogues that are run at this place
    credential: Secret | None = None  # of whoever pays
    caller: str | None = None  # who began it from outside, as a digest
    trace: Trace | None = None
    deadline: float | None = None  # seconds of the steady clock
    most: int | None = None  # micro-units that may be spent
    made_in: Carnet | None = None  # of the turn of a gateway whose calls its turns are
    key: bytes = b""  # of the record of that turn

    def refuse_if_final(self) -> None:
        """Raise before anything is written or called where no hop is left."""
        if self.depth >= self.last_depth:  # tangle:depth:refuse
            raise DepthExceeded(observed=self.depth + 1, limit=self.last_depth + 1, leaving=True)

    @property
    def scope(self) -> str:
        """What it is kept under, beside its run."""
        above = self.parent_turn_id or ""
        return f"{above}#{self.ordinal}" if self.ordinal else above

    def turn_id(self, index: int, speaker: str) -> str:
        """The id of a turn."""
        if self.made_in is not None:
            return self.made_in.child_turn(index, speaker, self.key)
        if not self.scope and self.caller is None:
            return turn_id(self.run_id, index, speaker)
        above = "\0".join([self.run_id, self.scope, *filter(None, (self.caller,))]).encode()
        key = blake2b(above, digest_size=16).digest()
        return scoped_turn_id(self.run_id, key, index, speaker)  # R6

    def call(self, agent: Agent, turn: "CalledTurn") -> Call:
        """The call of a participant for its turn."""
        carnet = Carnet(
            run=self.run_id,
            turn=turn.turn_id,
            depth=self.depth + 1,  # tangle:depth:increment
            last_depth=self.last_depth,
            bound_by="tangle",
            parent_turn=self.parent_turn_id,
            speaker=turn.speaker,
            deadline=turn.deadline,
            trace=self.trace,
        )
        key = turn_key(payer=_ACCOUNT, actor=_DRIVER, agent=turn.speaker, carnet=carnet, digest=b"")
        return Call(
            turn.speaker,
            turn.ask,
            carnet,
            _CALLER,
            _PAYER,
            credential=self.credential if turn.forwards else None,
            target=Target(
                name=turn.speaker,
                speaker=turn.speaker,
                agent=agent,
                credit=f"agent:{turn.speaker}",
                auth_source=FORWARD_USER if turn.forwards else AGENT_OWNED,
            ),
            record=Turn(
                n=turn.index,
                key=key,
                agent=turn.speaker,
                run=self.run_id,
                turn=turn.turn_id,
                parent_turn=self.parent_turn_id,
                speaker=turn.speaker,
                depth=carnet.depth,
                attempt=turn.attempt,
                payer=_ACCOUNT,
                created=turn.at,
            ),
        )


def turn_of(scope: str) -> str:
    """The turn that a dialogue is kept under; a turn id ends with a name, which has no '#'."""
    turn, mark, ordinal = scope.rpartition("#")
    return turn if mark and ordinal.isdigit() else scope


def place_of(call: Call) -> DialoguePlace:
    """The place of a conversation that is run within a turn of a driver."""
    carnet = call.carnet
    return DialoguePlace(
        run_id=carnet.run,
        depth=carnet.depth,
        last_depth=carnet.bound(0),
        parent_turn_id=carnet.turn,
        credential=call.credential,
        trace=carnet.trace,
        deadline=carnet.deadline,
    )


class CalledTurn(Struct, frozen=True, kw_only=True):
    """What one attempt at a turn is called with."""

    index: int
    speaker: str
    turn_id: str
    attempt: int
    ask: Ask
    forwards: bool  # the payer's credential
    deadline: float | None
    at: int
