"""What happened, for reading: the port `carnet.ports.world.records.Records`.

Who sees what. The id of a run is chosen by callers and known along its chain, so it opens nothing
by itself (A41). A reader sees the turns it made, and what agents here did in process below them;
where it is the only caller from outside, that is the whole run. `reader` None is the operator.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.messages.events import PIECE_BYTES
from carnet.core.messages.interrupt import InterruptRecord
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.context import read_context
from carnet.core.people.identity import Account
from carnet.ports.trust.people import People
from carnet.ports.world.records import (
    ANY_RUN,
    CallOut,
    JournalEntry,
    LedgerEntry,
    RunFilter,
    RunSummary,
)
from carnet.stores.calls.journal import first_rows, pieces
from carnet.stores.calls.turns import SearchRows
from carnet.stores.database import Database, Row, Value, marks
from carnet.stores.turn.interrupts import Interrupts
from carnet.stores.turn.outbound_calls import SELECT, calls_in, read_outbound, shown
from carnet.stores.turn.row import (
    ACCEPTED,
    EVENTS,
    OF_NAMED,
    SELECT_NAMED,
    asked_in,
    grounds_in,
    read_turn,
)

SLICE: Final = 200  # runs that one query looks at
MOST_SLICES: Final = 20  # of one page; then it ends before it is full
AT_A_TIME: Final = 500  # turns whose questions one query looks for
RUNS_AT_A_TIME: Final = 20  # whose turns one query reads

_RUN = "SELECT n, id, issuer, account, cost, started FROM run"
_NEWEST = "SELECT n FROM run{} ORDER BY n DESC LIMIT ?"
_SEEN = "SELECT DISTINCT s.run FROM turn_seen s WHERE s.{} = ?{} ORDER BY s.run DESC LIMIT ?"
_BY: Final = ("correlation", "code", "actor", "agent")  # what search rows are in order by
# Compared so, a column cannot be looked up: the index of it names the turns of everybody.
_LIKE = "SELECT DISTINCT s.run FROM turn_seen s WHERE s.run IN ({}) AND "
_OF_RUNS = "SELECT n, issuer, account, started FROM run WHERE n IN ({})"
_ASKING = "SELECT DISTINCT turn FROM interrupt WHERE turn IN ({}) ORDER BY turn"
_TAKES_PART = f"SELECT 1 {OF_NAMED} = ? AND t.actor = ? LIMIT 1"
_CALLS_OUT = (
    "SELECT o.callee, o.state, o.code, o.cost, t.created,"
    " CASE WHEN o.callee = t.agent THEN t.ended - t.created END"
    " FROM outbound o JOIN turn t ON t.n = o.turn WHERE o.state <> 'lost'"
    " ORDER BY o.turn DESC, o.fence DESC, o.ordinal DESC LIMIT ?"
)
POSTINGS: Final = "SELECT n, at, run, turn, issuer, account, credit, amount FROM ledger"
# By the number of the run, of one that was pruned too, and by the name of what is older than that.
# Joins and not a list to look in: PostgreSQL takes no such list for a condition of an index.
_COLUMNS: Final = "SELECT l.n, l.at, l.run, l.turn, l.issuer, l.account, l.credit, l.amount FROM "
_BY_NUMBER: Final = (
    " r CROSS JOIN ledger l WHERE l.run_n = r.n AND l.run = r.id AND r.id = ? UNION ALL "
)
POSTINGS_OF_RUN: Final = (
    f"SELECT * FROM ({_COLUMNS} run_by_name {_BY_NUMBER} {_COLUMNS} pruned_run {_BY_NUMBER}"  # noqa: S608  our own words
    " SELECT n, at, run, turn, issuer, account, credit, amount FROM ledger"
    " WHERE run_n IS NULL AND run = ?) AS of_run"
)


def visible(turns: Sequence[Turn], reader: str | None) -> list[Turn]:
    """The turns that a reader may see, of all turns (oldest first) that name one run id."""
    outside = {turn.actor for turn in turns if not turn.actor.startswith(IN_PROCESS)}
    if reader is None or outside == {reader}:
        return list(turns)
    # Two callers may use the same turn id. What is below such an id is nobody's to see.
    uses = Counter(turn.turn for turn in turns)
    parents: set[str | None] = set()
    seen: list[Turn] = []
    for turn in turns:
        if turn.actor == reader or (
            turn.actor.startswith(IN_PROCESS) and turn.parent_turn in parents
        ):
            seen.append(turn)
            if uses[turn.turn] == 1:
                parents.add(turn.turn)
    return seen


def summary(run: Row, turns: Sequence[Turn], *, reader: str | None = None) -> RunSummary:
    """One line about a run: `run` in the order of _NEWEST, `turns` oldest first and not empty."""
    _, name, issuer, account, cost, started = run
    states = {turn.state for turn in turns}
    going_on = [state for state in ("running", "queued", "waiting") if state in states]
    if reader is not None:  # what the payer spent elsewhere in its run is not the reader's to know
        own = {turn.turn for turn in turns}
        cost = sum(turn.cost or 0 for turn in turns if turn.parent_turn not in own)
    ends = [turn.ended for turn in turns if turn.ended is not None]
    return RunSummary(
        run=name,
        started=started,
        ended=None if going_on else max(ends, default=None),
        agent=turns[0].agent,
        payer=Account(issuer, account),
        turns=len(turns),
        depth=max(turn.depth for turn in turns),
        cost=cost,
        state=going_on[0] if going_on else turns[0].state,
        code=next((turn.code for turn in reversed(turns) if turn.code), None),
        caller=None if turns[0].context is None else str(read_context(turns[0].context)),
    )


class StoredRecords:
    """Readers over a database."""

    def __init__(
        self,
        database: Database,
        search_rows: SearchRows,
        interrupts: Interrupts,
        people: People,
    ) -> None:
        self._database = database
        self._people = people
        self._interrupts = interrupts
        self._search_rows = search_rows

    async def runs(
        self,
        *,
        reader: str | None,
        limit: int,
        before: int | None,
        matching: RunFilter = ANY_RUN,
    ) -> tuple[list[RunSummary], int | None]:
        """The newest runs, and where the next ones begin; `before` is where those asked for do.

        Of the rows that were read some may not be shown: the next ones begin after the last row.
        """
        numbers, following = await self._found(reader, limit, before, matching)
        if not numbers:
            return [], following
        named = matching.named()
        runs = await self._database.fetch(
            f"{_RUN} WHERE n IN ({marks(len(numbers))}) ORDER BY n DESC", numbers
        )
        seen: dict[tuple[str, Account], list[Turn]] = {}
        for turns in (await self._turns_of([run[1] for run in runs])).values():
            for turn in visible(turns, reader):
                seen.setdefault((turn.run, turn.payer), []).append(turn)
        keyed = [(run, (run[1], Account(run[2], run[3]))) for run in runs]
        lines = [
            summary(run, seen[key], reader=reader)
            for run, key in keyed
            if key in seen and (not named or any(map(matching.fits, seen[key])))
        ]
        return lines, following

    async def _found(
        self, reader: str | None, limit: int, before: int | None, matching: RunFilter
    ) -> tuple[list[int], int | None]:
        """The numbers of runs by the search rows, and where to go on; in slices (A87).

        Each slice is a query that looks at few rows, those of the reader where there is one.
        """
        named = matching.named()
        if reader is not None or named:
            await self._search_rows.fresh()
        size, found = SLICE if named or matching.is_of_runs else limit, list[int]()
        for _ in range(MOST_SLICES):
            some = await self._slice(reader, named, before, size)
            young, fitting = await self._fitting(some, matching)
            like = await self._like(fitting, named)
            found += [n for n in some if n in like]
            if len(found) >= limit:
                return found[:limit], found[limit - 1]
            if len(some) < size or not young:
                return found, None
            before = some[-1]
        return found, before

    async def _slice(
        self, reader: str | None, named: dict[str, str], before: int | None, size: int
    ) -> list[int]:
        """The next runs of a reader, or by the filter that is in order."""
        args: list[Value] = [] if before is None else [before]
        by = "actor" if reader is not None else next((name for name in _BY if name in named), None)
        if by is None:
            query = _NEWEST.format("" if before is None else " WHERE n < ?")
        else:
            query = _SEEN.format(by, "" if before is None else " AND s.run < ?")
            args.insert(0, reader if reader is not None else named[by])
        return [n for (n,) in await self._database.fetch(query, (*args, size))]

    async def _fitting(
        self, runs: Sequence[int], matching: RunFilter
    ) -> tuple[bool, Sequence[int]]:
        """Those of these runs that are themselves as it was asked for.

        And whether any began late enough: if none did of a whole slice, no earlier one has, however
        far the clocks of gateways on one store are apart.
        """
        if not matching.is_of_runs or not runs:
            return True, runs
        since, payer = matching.since, matching.payer
        rows = await self._database.fetch(_OF_RUNS.format(marks(len(runs))), runs)
        young = [row for row in rows if since is None or row[3] >= since]
        fitting = [
            n
            for n, issuer, account, _ in young
            if payer is None or str(Account(issuer, account)) == payer
        ]
        return bool(young), fitting

    async def _like(self, runs: Sequence[int], named: dict[str, str]) -> Collection[int]:
        """Those of these runs with a turn that is as it was asked for."""
        if not named or not runs:
            return runs
        query = _LIKE.format(marks(len(runs))) + " AND ".join(
            f"s.{name} || '' = ?" for name in named
        )
        return {n for (n,) in await self._database.fetch(query, (*runs, *named.values()))}

    async def _turns_of(self, runs: Sequence[str]) -> dict[str, list[Turn]]:
        """All turns that name these runs, whoever pays for them, oldest first."""
        names = list(dict.fromkeys(runs))
        found: dict[str, list[Turn]] = {}
        for i in range(0, len(names), RUNS_AT_A_TIME):
            some = names[i : i + RUNS_AT_A_TIME]
            sql = f"{SELECT_NAMED} IN ({marks(len(some))}) ORDER BY t.n"
            for turn in map(read_turn, await self._database.fetch(sql, some)):
                found.setdefault(turn.run, []).append(turn)
        return found

    async def run(self, run: str, *, reader: str | None) -> list[Turn]:
        """The turns of a run, oldest first; empty if there is none to see.

        Of a run that a reader has no part in nothing is read: it takes as long as one that never
        was.
        """
        # security:a67:timing
        if reader is not None and not await self._database.fetch(_TAKES_PART, (run, reader)):
            return []
        return visible((await self._turns_of([run])).get(run, []), reader)

    async def outbound(self, run: str, *, reader: str | None) -> dict[int, Sequence[OutboundCall]]:
        """The calls that the turns of a run made to other organisations, by the turn's number.

        Those of the former layout stand among the events of their turn.
        """
        turns = [turn.n for turn in await self.run(run, reader=reader)]
        if not turns:
            return {}
        listed = marks(len(turns))
        found: dict[int, list[OutboundCall]] = {}
        which = (
            f"{SELECT} WHERE turn IN ({listed}) AND state <> 'lost' ORDER BY turn, fence, ordinal"
        )
        for turn, *row in await self._database.fetch(which, turns):
            found.setdefault(turn, []).append(read_outbound(tuple(row)))
        return {**found, **await self._former([turn for turn in turns if turn not in found])}

    async def _former(self, turns: Sequence[Value]) -> dict[int, list[OutboundCall]]:
        found: dict[int, list[OutboundCall]] = {}
        which = f"j.turn IN ({marks(len(turns))}) AND j.kind = '{EVENTS}'"
        if turns:
            async for rows in pieces(self._database, which, turns):
                for _, turn, _, _, _, data, _ in rows:
                    before = found.get(turn, [])
                    if calls := calls_in((data,), len(before)):
                        found[turn] = [*before, *calls]
        return found

    async def calls_out(self, limit: int) -> list[CallOut]:
        """The newest calls to other organisations, of everybody; the newest first."""
        return [
            CallOut(to=to, state=state, code=code, cost=cost, began=began, took=took)
            for to, state, code, cost, began, took in await self._database.fetch(
                _CALLS_OUT, (limit,)
            )
        ]

    async def questions(self, turns: Sequence[Turn]) -> dict[int, Sequence[InterruptRecord]]:
        """What these turns wait for or were answered, by the turn's number; without its secret."""
        found: dict[int, Sequence[InterruptRecord]] = {}
        for at in range(0, len(turns), AT_A_TIME):
            some = [turn.n for turn in turns[at : at + AT_A_TIME]]
            for (n,) in await self._database.fetch(_ASKING.format(marks(len(some))), some):
                found[n] = [self._shown(each) for each in await self._interrupts.of(n)]
        return found

    def _shown(self, record: InterruptRecord) -> InterruptRecord:
        """The same without the secret that answers it, and with the name of who is asked."""
        person = None if record.owner is None else self._people.owner(record.owner)
        owner = record.owner if person is None else person.name
        return replace(record, interrupt=replace(record.interrupt, state=""), owner=owner)

    async def grounds(self, run: str, *, reader: str | None) -> dict[int, bytes]:
        """Why the turns of a run were admitted; turns of the former form are left out."""
        turns = [turn.n for turn in await self.run(run, reader=reader)]
        if not turns:
            return {}
        which = f"j.turn IN ({marks(len(turns))}) AND j.kind = '{ACCEPTED}'"
        found: dict[int, bytes] = {}
        async for rows in pieces(self._database, which, turns):
            found |= {turn: grounds_in(data) for _, turn, _, _, _, data, _ in rows}
        return {turn: grounds for turn, grounds in found.items() if grounds}

    async def entries(
        self,
        run: str,
        *,
        reader: str | None,
        after: int,
        limit: int,
        most_bytes: int = PIECE_BYTES,
    ) -> list[JournalEntry]:
        """The journal of a run after a row, as much of it as fits."""
        turns = {turn.n: turn.turn for turn in await self.run(run, reader=reader)}
        if not turns:
            return []
        which = f"j.turn IN ({marks(len(turns))}) AND j.n > ? AND {self._database.settled}"
        found = await first_rows(
            self._database, which, (*turns, after), limit=limit, most_bytes=most_bytes
        )
        if found.is_unread:
            rows = [(*row, b"", found.size) for row in found.rows]
        else:
            rows = [(*row[:-1], None) for row in await shown(self._database, found.rows)]
        return [
            JournalEntry(
                n=n,
                turn=turns[turn],
                kind=kind,
                first=first,
                last=last,
                data=asked_in(data) if kind == ACCEPTED else data,
                size=size,
                turn_n=turn,
            )
            for n, turn, kind, first, last, data, size in rows
        ]

    async def ledger(
        self, *, run: str | None, account: str | None, limit: int
    ) -> list[LedgerEntry]:
        """Postings, newest first. `account` is either side: `alice@token:alice` or `agent:echo`."""
        conditions: list[str] = []
        args: list[Value] = []
        if run is not None:
            args += [run] * 3
        if account is not None:
            conditions.append("(credit = ? OR account || '@' || issuer = ?)")
            args += [account, account]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = await self._database.fetch(
            f"{POSTINGS if run is None else POSTINGS_OF_RUN}{where} ORDER BY n DESC LIMIT ?",
            (*args, limit),
        )
        return [
            LedgerEntry(
                n=n,
                at=at,
                run=run_id,
                turn=turn,
                debit=Account(issuer, name),
                credit=credit,
                amount=amount,
            )
            for n, at, run_id, turn, issuer, name, credit, amount in rows
        ]
