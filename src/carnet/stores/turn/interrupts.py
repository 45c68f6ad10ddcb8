"""What turns wait for, as the store keeps it.

Law 1. Of the secret of an interrupt the hash is compared, and what is sealed is told again to who
       repeats the call; nothing else of it is written.
Law 2. An interrupt is open, and then resolved or expired: once, and by whoever changes it first.
       An answer that nobody ran the turn on with was not given: it is open again.
Law 3. What a turn holds while it waits stands in its row: [[quota, money, calls, tokens], ...]. It
       stands there until the turn has ended, or waits for something else.
Law 4. Of one caller no more turns wait, or run on with an answer, than may: each has a place in a
       quota from the transaction that lets it wait to the one that ends it. Without a place it does
       not wait; one that asks again has its own.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hmac import compare_digest
from typing import Any, Final, final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from carnet.core.call import WAITS
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import (
    BudgetRaise,
    Interrupt,
    InterruptRecord,
    check_together,
    hash_state,
)
from carnet.ports.calls.questions import EarlyQuestions
from carnet.ports.calls.turns import Answer, TurnClaim, TurnFinish
from carnet.ports.money.budgets import BudgetUndo
from carnet.stores.database import Database, Row
from carnet.stores.secrets.seal import Seal, Unsealable
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.turn.moves import becomes, moves
from carnet.stores.turn.sealed_calls import call_label, head_of
from carnet.wire.grammar.times import micros_of

Hold = tuple[str, int, int, int]

WAIT_HOURS: Final = 24
MOST_OF_CALLER: Final = 1000  # turns that wait
HOUR: Final = 3_600_000_000  # microseconds
RAISES: Final = 11  # the place of what it raises in what a claim reads of a question

COLUMNS: Final = (
    *("id", "turn", "place", "kind", "origin", "message", "data", "amount", "currency", "url"),
    *("retry_after", "state_hash", "state_sealed", "key_id", "issuer", "account", "status"),
    *("created", "expires", "owner"),
)
_NAMED: Final = ("turn", "id")
UNANSWERED: Final = "resolved = NULL, resolver = NULL, outcome = NULL, value_sealed = NULL"
# One that is asked again is a new question, whatever it was before and was answered.
ASK_AGAIN: Final = (
    f"ON CONFLICT ({', '.join(_NAMED)}) DO UPDATE SET "
    + "".join(f"{name} = excluded.{name}, " for name in COLUMNS if name not in _NAMED)
    + UNANSWERED
)
# Of a turn that runs: the same question, with the same secret, keeps the answer that it has.
_ASK_EARLY: Final = (
    f"{ASK_AGAIN} WHERE interrupt.status <> 'resolved'"
    " OR interrupt.state_hash <> excluded.state_hash"
)
INSERT: Final = (
    f"INSERT INTO interrupt ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    f" {ASK_AGAIN}"
)
INSERT_EARLY: Final = INSERT.replace(ASK_AGAIN, _ASK_EARLY)
RESOLVE: Final = (
    "UPDATE interrupt SET status = 'resolved', resolved = ?, resolver = ?, outcome = ?,"
    " value_sealed = ? WHERE turn = ? AND id = ? AND status || '' = 'open'"
)
EXPIRE: Final = "UPDATE interrupt SET status = 'expired' WHERE turn = ? AND status || '' = 'open'"
# Of a turn that was answered and not run on: it waits again, as if nobody had answered.
REOPEN: Final = (
    f"UPDATE interrupt SET status = 'open', {UNANSWERED}"  # noqa: S608
    " WHERE turn = ? AND state_hash = ? AND status || '' = 'resolved'"
)
WAIT_ON: Final = (
    f"UPDATE turn SET {becomes('waiting')}, reserve = 0, waits_until ="  # noqa: S608
    " (SELECT MAX(i.expires) FROM interrupt i WHERE i.turn = turn.n AND i.state_hash = ?)"
    f" WHERE n = ? AND {moves('running', 'waiting')}"
)
# Of the questions `i`, payments that a rule has agreed to; a person answers under another name.
BY_RULE: Final = "i.kind = 'payment' AND i.outcome = 'accepted' AND i.resolver LIKE 'rule:%'"
REFUNDS: Final = (
    "SELECT i.owner, i.resolver, i.amount FROM interrupt i"  # noqa: S608  # our own words
    f" WHERE i.turn = ? AND (? = '' OR i.id || '' = ?) AND {BY_RULE}"
)
REFUND: Final = "UPDATE rule SET used = used - ? WHERE n = ? AND owner = ?"
UNDISCARD: Final = (
    "DELETE FROM journal WHERE n ="
    " (SELECT MAX(j.n) FROM journal j WHERE j.turn = ? AND j.kind = 'discard')"
)
_SELECTED: Final = (
    *("id", "kind", "origin", "message", "data", "amount", "currency", "url", "retry_after"),
    *("state_sealed", "status", "expires", "outcome", "resolver", "resolved", "value_sealed"),
    *("account", "created", "owner"),
)
_OF_TURN: Final = f"SELECT {', '.join(_SELECTED)} FROM interrupt WHERE turn = ? ORDER BY place, n"  # noqa: S608

# By its turn, which is that of a caller and a payer, and by the hash of its secret.
_BY_STATE: Final = (
    f"SELECT {', '.join(f'i.{name}' for name in _SELECTED)} FROM run_by_name r"  # noqa: S608  our own words
    " CROSS JOIN turn t CROSS JOIN interrupt i WHERE t.run = r.n AND i.turn = t.n"
    " AND r.id = ? AND r.issuer = ? AND r.account = ? AND t.key = ?"
    " AND i.state_hash = ? AND i.status || '' = 'open'"
)

_holds: Final = msgspec.json.Decoder(list[Hold])
_data: Final = msgspec.json.Decoder(dict[str, Any])


class _Raising(Struct):
    """Of what has no column of its own, what a question raises."""

    raises: BudgetRaise | None = None


_raising: Final = msgspec.json.Decoder(_Raising)
_IN_DATA: Final = (
    "expires_at",
    "via",
    "schema",
    "options",
    "without",
    "more",
    "raises",
)  # members of an interrupt


def read_holds(text: str | None) -> list[Hold]:
    """What a turn holds while it waits."""
    return _holds.decode(text) if text else []


def write_holds(holds: Sequence[Sequence[object]]) -> str:
    """The column that holds it."""
    return msgspec.json.encode(holds).decode()


def with_money(holds: str | None, quota: str, more: int) -> str:
    """What a turn holds that was agreed to pay more while it waits on."""
    found = read_holds(holds)
    money = more + sum(hold[1] for hold in found if hold[0] == quota)
    rest = [(h[0], 0 if h[0] == quota else h[1], h[2], h[3]) for h in found]
    return write_holds([(quota, money, 0, 0), *(h for h in rest if any(h[1:]))])


def is_meant(pending: Row, answer: Answer, now: int) -> bool:
    """Whether an answer is for one that a turn waits for."""
    is_named = answer.interrupt is None or answer.interrupt == pending[1]
    is_open = pending[4] > now and pending[8] is None  # nobody answers for who has ended
    return is_named and is_open and compare_digest(pending[2], answer.state_hash)


def raise_of(data: str | None) -> BudgetRaise | None:
    """What is given to a budget by who agrees, by what has no column of its own."""
    return _raising.decode(data).raises if data else None


def places(holds: str | None) -> list[tuple[str, int]]:
    """The places that a turn has among those of its caller that wait: the quota, and how many."""
    return [(hold[0], hold[2]) for hold in read_holds(holds) if hold[0].startswith(WAITS)]


def refunded(rows: Iterable[Row]) -> list[Row]:
    """What rules are given back of payments that were not made: amount, rule, owner; by rule."""
    amounts: Counter[tuple[int, str]] = Counter()
    for owner, resolver, amount in rows:
        number = resolver.partition(":")[2]
        if owner is not None and number.isdecimal():
            amounts[int(number), owner] += amount or 0
    return [(amounts[rule], *rule) for rule in sorted(amounts)]


class WaitingFinish(TurnFinish, frozen=True, kw_only=True):
    """The end of a turn that waits, with everything secret sealed."""

    rows: tuple[Row, ...]  # of COLUMNS
    key_id: str  # of the secrets file
    most: int = MOST_OF_CALLER  # turns of its caller that may wait

    @property
    def place(self) -> str | None:
        """The quota that it takes a place of; None of a child, which waits in its parent's."""
        return next((use.quota for use in self.holding if use.quota.startswith(WAITS)), None)


class UnansweredFinish(TurnFinish, frozen=True, kw_only=True):
    """The end of a turn that was answered and not run on: it waits again."""

    state_hash: bytes  # of the answer
    undo: BudgetUndo | None = None  # what it has changed in budgets


class SealedAnswer(Answer, frozen=True, kw_only=True):
    """An answer whose value is sealed."""


@final
class Interrupts:
    """Seals, reads and opens them with the key of one store."""

    SELECTED: Final = ", ".join(f"i.{name}" for name in _SELECTED)  # what `read` takes

    def __init__(self, database: Database, keys: Keys, *, wait_hours: int = WAIT_HOURS) -> None:
        """`wait_hours` is how long a turn waits at the most."""
        self._database = database
        self.wait_hours = wait_hours
        self.per_caller = MOST_OF_CALLER  # turns that may wait
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)

    def seal(self, finish: TurnFinish) -> WaitingFinish:
        """The end of a turn that waits, as it is stored."""
        if not finish.interrupts:
            raise ValueError("a turn that waits says what for")
        check_together(finish.interrupts)
        most = finish.now + self.wait_hours * HOUR
        most = min(finish.waits_until or most, most)
        # All of them are needed: it waits for the first that is too late.
        most = min(_until(asked, most) for asked in finish.interrupts)
        finish = replace(finish, waits_until=most)
        call_bytes = self._seal.seal_bytes(finish.call_bytes, label=call_label(finish.turn.key))
        given = {name: getattr(finish, name) for name in TurnFinish.__struct_fields__}
        rows = tuple(self._row(finish, place) for place in range(len(finish.interrupts)))
        head = head_of(use.quota for use in finish.holding)
        given["call_bytes"] = head + call_bytes
        return WaitingFinish(**given, rows=rows, key_id=self._key_id, most=self.per_caller)

    def _row(self, finish: TurnFinish, place: int) -> Row:
        asked, account = finish.interrupts[place], finish.payer.account
        is_charged = asked.origin is None or finish.charges_all
        payer = (account.issuer, account.id) if is_charged else (None, None)
        times = (finish.now, _until(asked, finish.waits_until))
        owner = finish.owners[place] if finish.owners else None
        return (*self._columns(asked, finish.turn, place), *payer, "open", *times, owner)

    def _columns(self, asked: Interrupt, turn: Turn, place: int) -> Row:
        """What a row says of the question itself."""
        return (
            *(asked.id, turn.n, place, asked.kind, asked.origin, asked.message, write_data(asked)),
            *(asked.amount, asked.currency, asked.url, asked.retry_after),
            *(hash_state(asked.state), self._seal.seal(asked.state, label=_label(asked.id))),
            self._key_id,
        )

    def early(self, asking: EarlyQuestions) -> tuple[list[Row], Row]:
        """What a turn asks for while it runs, and the call that it is, as they are stored.

        None of it is debited by this turn: it is asked for by those that it has called.
        """
        check_together(asking.interrupts)
        most = asking.now + self.wait_hours * HOUR
        rows = [
            (
                *(*self._columns(asked, asking.turn, place), None, None, "open", asking.now),
                *(_until(asked, most), asking.owners[place]),
            )
            for place, asked in enumerate(asking.interrupts)
        ]
        sealed = self._seal.seal_bytes(asking.call_bytes, label=call_label(asking.turn.key))
        return rows, (asking.turn.n, head_of(()) + sealed, self._key_id)

    def seal_answer(self, answer: Answer) -> SealedAnswer:
        """An answer, as it is stored."""
        value = answer.value
        if value is not None:
            value = self._seal.seal_bytes(value, label=_answer_label(answer.state_hash))
        return SealedAnswer(**{**asdict(answer), "value": value})

    async def of(self, turn: int) -> list[InterruptRecord]:
        """What a turn waits for, or waited for, in the order in which it asked."""
        return [self.read(row) for row in await self._database.fetch(_OF_TURN, (turn,))]

    async def answered_by(self, claim: TurnClaim) -> InterruptRecord | None:
        """What the answer of a claim is for, if the turn of that claim waits for it."""
        if claim.resolution is None:
            return None
        run, account = claim.admitted.carnet.run, claim.admitted.payer.account
        args = (run, account.issuer, account.id, claim.key, claim.resolution.state_hash)
        found = [self.read(row) for row in await self._database.fetch(_BY_STATE, args)]
        return found[0] if found else None

    def read(self, row: Row) -> InterruptRecord:
        """One of them, of the columns SELECTED."""
        name, kind, origin, message, data, amount, currency, url, retry_after, sealed, *rest = row
        status, expires, outcome, resolver, resolved, value, account, created, owner = rest
        state = ""
        try:
            state = self._seal.open(sealed, label=_label(name))
            if value is not None:
                value = self._seal.open_bytes(value, label=_answer_label(hash_state(state)))
        except Unsealable:
            value = None
        more = _data.decode(data) if data else {}
        if "raises" in more:
            more["raises"] = msgspec.convert(more["raises"], BudgetRaise)
        return InterruptRecord(
            interrupt=Interrupt(
                id=name,
                state=state,
                kind=kind,
                message=message,
                url=url,
                amount=amount,
                currency=currency,
                retry_after=retry_after,
                origin=origin,
                **(more | {name: tuple(more.get(name, ())) for name in ("options", "via")}),
            ),
            status=status,
            expires=expires,
            outcome=outcome,
            resolver=resolver,
            resolved=resolved,
            value=value,
            is_charged=account is not None,
            asked=created,
            owner=owner,
        )


def write_data(asked: Interrupt) -> str | None:
    """What has no column of its own."""
    more = {name: value for name in _IN_DATA if (value := getattr(asked, name))}
    return msgspec.json.encode(more).decode() if more else None


def _until(asked: Interrupt, waits_until: int) -> int:
    """When it is too late to answer: as the asker says, and never after its turn."""
    if asked.expires_at is None:
        return waits_until
    until = micros_of(asked.expires_at)
    return waits_until if until is None else min(waits_until, until)


def unanswered(end: TurnFinish, answer: Answer, undo: BudgetUndo | None) -> UnansweredFinish:
    """What takes an answer back, in the place of an end; and what it has changed in budgets."""
    given = {name: getattr(end, name) for name in TurnFinish.__struct_fields__}
    more = {"state": "waiting", "code": None, "retryable": False, "state_hash": answer.state_hash}
    return UnansweredFinish(**(given | more), undo=undo)


def _label(interrupt: str) -> str:
    return f"interrupt {interrupt}"


def _answer_label(state_hash: bytes) -> str:
    return f"answer {state_hash.hex()}"
