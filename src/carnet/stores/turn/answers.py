"""Answering what a turn waits for: the rules, without a database. They are part of `claim_rules`.

Law 1. An answer is used once, by a turn that waits for it and whose time is not over, and never for
       a person who has ended. What was agreed to be paid is reserved with it, and anew with every
       attempt after that.
Law 2. What a turn below has to reserve for the same answer is looked at as well, where the same
       account pays: an answer that would fail there is refused here, and the question stays open.
Law 3. A turn that runs on as a task waits as far behind the first as its payer has turns waiting at
       that agent, and keeps its place among those of its caller that wait until it has ended (A88).
Law 4. What a turn asks for while it runs is answered without running it on: the answer stands with
       the question, and the turn takes it.
Law 5. What was agreed to be paid is held of the budgets that the turn spends of, and a budget that
       asked for more is raised, in the same transaction; or the answer is refused.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from carnet.core.chain.turn import TurnState
from carnet.ports.calls.turns import Answer, Claimed, Denied, Known, TurnClaim, Verdict
from carnet.ports.money.budgets import BudgetUndo
from carnet.stores.database import Row
from carnet.stores.turn.interrupts import is_meant, read_holds, with_money
from carnet.stores.turn.moves import begins
from carnet.stores.turn.row import DISCARD, place, read_turn, resumed_row, resumed_turn, sealed_row
from carnet.stores.turn.sealed_calls import WaitingRows, task_row

MOST_COUNTED: Final = 10_000  # turns of one payer that wait at one agent; the next are last too
QUEUED: Final = begins("queued")
_RESUMED: Final[TurnState] = "running"
_ASKING: Final[frozenset[TurnState]] = frozenset({"running", "queued"})
_RESOLVED: Final = b'{"attempt":%d,"resolved":true}'
_QUOTA, _HOLDS, _AGENT = place("purse"), place("holds"), place("agent")

# What a claim that brings an answer must know of each that its turn has asked for, `i`. The fields:
# turn, id, hash of the state, status, expiry, what this turn debits of it, outcome, when it was
# asked, when its owner has ended, the amount, what a turn below holds that debits it, if that may
# shrink: a call to somebody else can be told to cost less; and what its own turn asks beside.
_PENDING: Final = """
SELECT i.turn, i.id, i.state_hash, i.status, i.expires,
    CASE WHEN i.account IS NULL OR i.kind NOT IN ('payment', 'approval') THEN 0
        ELSE COALESCE(i.amount, 0) END,
    i.outcome, i.created,
    (SELECT p.ended FROM person p WHERE p.n = {owner}),
    COALESCE(i.amount, 0),
    CASE WHEN i.account IS NULL AND i.kind = 'payment' AND i.status || '' = 'open' THEN (
        SELECT CASE WHEN x.origin IS NULL OR c.holds IS NULL THEN '' ELSE c.holds END
        FROM turn t JOIN turn c ON c.run = {run}
            JOIN interrupt x ON x.turn = {below}
        WHERE t.n = {turn} AND c.purse = t.purse AND c.state || '' = 'waiting'
            AND x.id || '' = i.id AND x.account IS NOT NULL AND x.status || '' = 'open'
        LIMIT 1) END,
    CASE WHEN i.kind = 'approval' AND i.origin IS NULL AND i.account IS NOT NULL
        AND i.status || '' = 'open' THEN i.data END
FROM """
_OWNER: Final = (
    "CASE WHEN i.owner LIKE 'person:%' THEN CAST(substr(i.owner, 8) AS BIGINT) ELSE NULL END"
)


def pending(key: str, source: str) -> str:
    """The statement that reads them; `key` is how a key is compared, `source` where `i` is."""
    keys = {"owner": _OWNER, "run": "t.run", "below": "c.n", "turn": "i.turn"}
    compared = {name: key.format(value) for name, value in keys.items()}
    return _PENDING.format_map(compared) + source


class AnswerRules:
    """The part of one batch that answers."""

    _worker: str
    pending: list[Row]  # of turns that are given an answer, as `pending` has them
    held: dict[str, int]
    fronts: dict[str, int]
    queued: dict[Row, int]
    resolved: list[Row]
    resumed: list[Row]
    holding: list[Row]
    driven: list[Row]
    waiting: WaitingRows
    journal: list[Row]

    def _reserve(self, quota: str, amount: int) -> None:
        """Hold so much more of a quota."""
        raise NotImplementedError

    def _grant(
        self, claim: TurnClaim, answer: Answer, row: Row, asked: Row, agreed: int
    ) -> Denied | BudgetUndo | None:
        """Hold and raise of budgets what an answer agrees to."""
        raise NotImplementedError

    def _resolve(self, claim: TurnClaim, answer: Answer, row: Row) -> Verdict:
        """Use an answer, once. The turn runs on when nothing else is left that it waits for."""
        turn = read_turn(row)
        still = [p for p in self.pending if p[0] == turn.n and p[3] == "open"]
        meant = [p for p in still if is_meant(p, answer, claim.now)]
        is_asking = turn.state in _ASKING
        if not (is_asking or turn.state == "waiting") or len(meant) != 1:
            return Denied("resolution")  # of two that share a secret, neither
        agreed = meant[0][5] if answer.outcome == "accepted" else 0
        held = sum(h[1] for h in read_holds(row[_HOLDS]) if h[0] == row[_QUOTA])
        own = max(held - self._agreed(turn.n, meant[0][7]), 0) if len(still) == 1 else 0
        used = self._use(claim, answer, row, meant[0], (agreed, own))
        if isinstance(used, Denied):
            return used
        short, undo = used
        what = (claim.now, answer.resolver, answer.outcome, answer.value)
        self.resolved.append((*what, turn.n, meant[0][1]))
        if is_asking:  # it takes it when it looks
            return Known(turn)
        if len(still) > 1:
            if agreed and claim.admitted.payer.limit is not None:
                self.holding.append((with_money(row[_HOLDS], row[_QUOTA], agreed), turn.n))
            return Known(turn)
        # It keeps its attempt; what was agreed to before that, it holds already.
        reserve = held - short + (0 if claim.admitted.payer.limit is None else agreed)
        onward = self._run_on(claim, row, reserve, agreed)
        return onward if undo is None else replace(onward, undo=undo)

    def _use(
        self, claim: TurnClaim, answer: Answer, row: Row, asked: Row, money: tuple[int, int]
    ) -> Denied | tuple[int, BudgetUndo | None]:
        """Reserve and raise what an answer agrees to; of `money`, that and what its turn holds.

        What of it comes out of that hold, and how it is undone.
        """
        agreed, own = money
        short = self._agree(claim, agreed, row[_QUOTA], own)
        if not isinstance(short, Denied) and answer.outcome == "accepted":
            short = self._foresee(claim, asked, row[_QUOTA]) or short
        if isinstance(short, Denied):
            return short
        undo = self._grant(claim, answer, row, asked, agreed)
        if not isinstance(undo, Denied):
            return short, undo
        if claim.admitted.payer.limit is not None:
            self._reserve(row[_QUOTA], short - agreed)
        return undo

    def _run_on(self, claim: TurnClaim, row: Row, reserve: int, agreed: int) -> Claimed:
        turn = read_turn(row)
        state, worker = (_RESUMED, self._worker) if claim.task is None else (QUEUED, None)
        resumed = (turn, state, worker, turn.fence + 1, reserve)
        self.resumed.append(resumed_row(*resumed))
        if claim.task is not None:  # its call is kept already, and where its end is told
            self.driven.append(task_row(turn.n, claim.task, claim.now))
            self.waiting.ranks.append((self._rank_on(row), turn.n))
        self.journal.append(sealed_row(turn.n, DISCARD, 0, 0, _RESOLVED % turn.attempt))
        if reserve == claim.admitted.reserve:
            return Claimed(resumed_turn(*resumed))
        return Claimed(resumed_turn(*resumed), reserve, agreed + self._agreed(turn.n))

    def _rank_on(self, row: Row) -> int:
        """Where a turn waits that was answered: behind those of its payer at that agent."""
        payer = queue_of(row)
        before = self.queued.get(payer, 0)
        self.queued[payer] = before + 1
        return self.fronts.get(payer[0], 0) + before

    def _agree(self, claim: TurnClaim, amount: int, quota: str, own: int) -> Denied | int:
        """Reserve what the payer agrees to pay; what of it comes out of the turn's `own` hold.

        That of a call whose callee can be told to cost less shrinks as it does at first (R53).
        """
        limit = claim.admitted.payer.limit
        if not amount or limit is None:
            return 0
        left = max(limit - self.held.get(quota, 0), 0)
        if (short := max(amount - left, 0)) > min(own, claim.shrinks):
            return Denied("spending", amount=left, needed=amount)
        self._reserve(quota, amount - short)
        return short

    def _foresee(self, claim: TurnClaim, asked: Row, quota: str) -> Denied | None:
        """The refusal of a payment that a turn below is certain to have no room for."""
        limit, amount, below = claim.admitted.payer.limit, asked[9], asked[10]
        if below is None or limit is None:
            return None
        left = max(limit - self.held.get(quota, 0), 0)
        own = sum(hold[1] for hold in read_holds(below) if hold[0] == quota)
        return Denied("spending", amount=left, needed=amount) if amount > left + own else None

    def _agreed(self, turn: int, asked_at: int | None = None) -> int:
        """What was agreed to be paid for what a turn has asked for, ever or at a time."""
        accepted = (p for p in self.pending if p[0] == turn and p[6] == "accepted")
        return sum(p[5] for p in accepted if asked_at is None or p[7] == asked_at)


def queue_of(row: Row) -> tuple[str, str]:
    """Where a turn waits to be run on: its agent, and the quota that pays."""
    return row[_AGENT], row[_QUOTA]


def queues(claims: Sequence[TurnClaim], known: dict[bytes, Row]) -> list[tuple[str, str]]:
    """The queues of those turns that are answered by these claims and then run as tasks."""
    answered = [c for c in claims if c.resolution is not None and c.task is not None]
    return sorted({queue_of(known[c.key]) for c in answered if c.key in known})
