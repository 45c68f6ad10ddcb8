"""What happened, as data: the pages of runs. The console, the CLI and curl read the same ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from carnet.core.chain.grounds import explained, read_grounds
from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.chain.turn_id import ordinal_of
from carnet.core.messages.events import Event, Failed, Waiting, read_events
from carnet.core.messages.interrupt import InterruptRecord, chain_of
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.money.amount import format_amount
from carnet.core.people.context import context_page
from carnet.gateway.exchanges.received import wire_page
from carnet.gateway.exchanges.sent import sent_page
from carnet.gateway.tasks import view_of
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.world.records import (
    ANY_RUN,
    JournalEntry,
    LedgerEntry,
    Records,
    RunFilter,
    RunSummary,
)
from carnet.wire.dialects.openai import tasks
from carnet.wire.dialects.openai.tasks import tokens_of
from carnet.wire.dialects.results import Gathered
from carnet.wire.grammar.times import when

Page = dict[str, Any]

MOST_LEVELS = 32  # deeper than any chain we answer; a tree that claims more is shown flat
MOST_ENTRIES = 10_000
LAST = 1 << 62
MOST_PIECES = 4  # of the journal of a run, that its page shows with what was asked and answered
MOST_ROWS = 500  # of a piece
_NO_ANSWER = (Failed, Waiting)

STATES = ("running", "waiting", "queued", "unknown", "failed", "done")  # the first present wins


async def grounds_page(records: Records, run: str) -> Page | None:
    """Why each turn of a run was admitted, for the operator; None if there is no such run."""
    turns = await records.run(run, reader=None)
    if not turns:
        return None
    found = await records.grounds(run, reader=None)
    asked = await records.questions(turns)
    shown = [
        _grounds_of(turn, found.get(turn.n)) | _questions_of(turn, asked.get(turn.n, ()))
        for turn in turns
    ]
    return {"run": run, "turns": shown}


def _grounds_of(turn: Turn, kept: bytes | None) -> Page:
    grounds = [] if kept is None else explained(read_grounds(kept))
    return {
        "turn": turn.turn,
        "agent": turn.agent,
        "actor": turn.actor,
        "state": turn.state,
        "grounds": [{"guard": ground.guard, "found": ground.found} for ground in grounds],
    }


def _questions_of(turn: Turn, asked: Sequence[InterruptRecord]) -> Page:
    """What a turn waits for, who can answer it and how; and what it was answered, by whom."""
    page: Page = {}
    is_open = [_question(turn, each) for each in asked if each.status == "open"]
    if turn.state == "waiting" or is_open:  # one that runs may ask for those that it has called
        page["waits"] = is_open
    answered = [_answer(turn, each) for each in asked if each.status == "resolved"]
    return page | ({"answers": answered} if answered else {})


def _answer(turn: Turn, record: InterruptRecord) -> Page:
    by = {"outcome": record.outcome, "resolver": record.resolver, "at": when(record.resolved)}
    return _asked_of(turn, record) | by


def _asked_of(turn: Turn, record: InterruptRecord) -> Page:
    asked = record.interrupt
    return {
        "id": asked.id,
        "kind": asked.kind,
        "message": asked.message,
        "since": when(record.asked),
        "chain": chain_of(asked, turn.agent),
        "amount": None if asked.amount is None else format_amount(asked.amount),
        "currency": asked.currency,
        "other_amount": asked.other_amount,
    }


def _question(turn: Turn, record: InterruptRecord) -> Page:
    asked = record.interrupt
    page = _asked_of(turn, record) | {"expires": when(record.expires)}
    if record.owner is not None:
        # What it wants beside a yes, and how that is typed, is told there.
        command = "show" if asked.options or asked.schema else "approve"
        return page | {"answered_by": record.owner, "answer": f"carnet inbox {command} {asked.id}"}
    # What a child asks for is asked for by the turn above it as well, and answered there.
    return page | {"answered_by": turn.actor, "answer": None}


def run_line(summary: RunSummary, currency: str) -> Page:
    """One line of the list of runs."""
    return {
        "run": summary.run,
        "started": when(summary.started),
        "ended": when(summary.ended),
        "agent": summary.agent,
        "caller": summary.caller,
        "payer": str(summary.payer),
        "turns": summary.turns,
        "depth": summary.depth,
        "cost": format_amount(summary.cost),
        "currency": currency,
        "state": summary.state,
        "code": summary.code,
    }


async def runs_page(
    records: Records,
    *,
    reader: str | None,
    limit: int,
    before: int | None,
    currency: str,
    matching: RunFilter = ANY_RUN,
) -> Page:
    """The newest runs, and where the next page begins."""
    found, following = await records.runs(
        reader=reader, limit=limit, before=before, matching=matching
    )
    return {"runs": [run_line(summary, currency) for summary in found], "next": following}


async def run_page(
    records: Records,
    run: str,
    *,
    reader: str | None,
    currency: str,
    limit: int,
    full: bool = False,
) -> Page | None:
    """One run as a tree by parent turn; None if there is none to see.

    `full` tells what was asked and answered, as far as it fits (`is_cut`).
    """
    turns = await records.run(run, reader=reader)
    if not turns:
        return None
    outbound = await records.outbound(run, reader=reader)
    numbered = {turn.n: turn for turn in turns}
    outgoing = {
        n: [
            outbound_page(call, numbered[n].turn)
            | (sent_page(run, numbered[n], call, reader) if full else {})
            for call in calls
        ]
        for n, calls in outbound.items()
    }
    entries = await records.ledger(run=run, account=None, limit=MOST_ENTRIES)
    ended = [turn.ended for turn in turns]
    content, is_cut = await _contents(records, run, reader) if full else ({}, False)
    shown = {turn.n: content[turn.n].page(turn, reader) for turn in turns if turn.n in content}
    for n, kept in (await records.grounds(run, reader=reader) if full else {}).items():
        if n in shown and (reader is None or numbered[n].actor == reader):
            shown[n]["wire"] = wire_page(numbered[n], read_grounds(kept))
    for n, asked in (await records.questions(turns)).items():
        shown[n] = shown.get(n, {}) | _questions_of(numbered[n], asked)
    return {
        "run": run,
        "state": next(state for state in STATES if state in {turn.state for turn in turns}),
        "payer": str(turns[0].payer),
        "cost": format_amount(_cost(turns, entries)),
        "currency": currency,
        "started": when(turns[0].created),
        "ended": None if None in ended else when(max(end for end in ended if end is not None)),
        "depth": _deepest(turns, outgoing),
        "limit": _bound_of(turns, limit),
        "turns": tree(turns, outgoing, with_words=reader is None, contents=shown),
        **({"is_cut": is_cut} if full else {}),
    }


class TurnContent:
    """What was asked of a turn, and what it answered, as the journal has them."""

    def __init__(self) -> None:
        self._asked = b""
        self._events: list[Event] = []
        self._is_cut = False

    def add(self, entry: JournalEntry) -> None:
        """Take the next row."""
        if entry.size is not None:  # larger than what is read at once
            self._is_cut = True
        elif entry.kind == "accepted":
            self._asked = entry.data
        elif entry.kind == "events":
            self._events += read_events(entry.data)
        elif entry.kind == "discard":
            self._events = []

    def page(self, turn: Turn, reader: str | None) -> Page:
        """What a reader may see of it: what agents here asked of others is the operator's."""
        may_see = reader is None or turn.actor == reader
        answer = Gathered()
        answer.add(*(event for event in self._events if not isinstance(event, _NO_ANSWER)))
        return {
            "asked": _read(self._asked) if may_see else None,
            "answered": answer.result() if self._events else None,
            "is_cut": self._is_cut,
        }


def _read(asked: bytes) -> Any:
    try:
        return msgspec.json.decode(asked)
    except msgspec.DecodeError:
        return None


async def _contents(
    records: Records, run: str, reader: str | None
) -> tuple[dict[int, TurnContent], bool]:
    """What was asked and answered, by the turn's number, and whether there is more than fits."""
    found: dict[int, TurnContent] = {}
    after = 0
    for _ in range(MOST_PIECES):
        entries = await records.entries(run, reader=reader, after=after, limit=MOST_ROWS)
        if not entries:
            return found, False
        for entry in entries:
            found.setdefault(entry.turn_n, TurnContent()).add(entry)
            after = entry.n
    return found, True


def outbound_page(call: OutboundCall, turn: str) -> Page:
    """A call to another organisation: one out of a turn, or what the whole turn is."""
    return {
        "turn": call.child_turn,
        "ordinal": None if call.child_turn == turn else ordinal_of(call.child_turn),
        "to": call.to,
        "depth": call.depth,
        "status": call.state,
        "cost": None if call.cost is None else format_amount(call.cost),
        "code": call.code,
        "peer_status": call.peer_status,
        "peer_code": call.peer_code,
        "receipt": call.receipt,
    }


def tree(
    turns: Sequence[Turn],
    outgoing: Mapping[int, list[Page]],
    *,
    with_words: bool,
    contents: Mapping[int, Page],
) -> list[Page]:
    """The turns, each under its parent; those whose parent is elsewhere stand at the top.

    `with_words` shows what models said when they refused: to operators alone (A65). `contents` are
    what was asked and answered, by the turn's number.
    """
    pages = [turn_page(turn, outgoing.get(turn.n, [])) for turn in turns]
    if with_words:
        for page, turn in zip(pages, turns, strict=True):
            page.update({} if turn.facts is None else {"words": turn.facts})
    for page, turn in zip(pages, turns, strict=True):
        page.update(contents.get(turn.n, {}))
    by_turn = {page["turn"]: page for page in reversed(pages)}
    roots: list[Page] = []
    levels: dict[int, int] = {}
    for page in pages:
        above = by_turn.get(page["parent_turn"])
        level = levels.get(id(above), MOST_LEVELS) + 1 if above is not None else 0
        if above is None or level > MOST_LEVELS:  # also one that names itself or a later turn
            roots.append(page)
            level = 0
        else:
            above["children"].append(page)
        levels[id(page)] = level
    for page in pages:
        page["children"].sort(key=_place)
    return roots


def _place(page: Page) -> int:
    """Where a turn stands among those of one parent: as it was asked for, whichever began first.

    Those that somebody else asked for come after them, as they began.
    """
    ordinal: int | None = page["ordinal"]
    return LAST if ordinal is None else ordinal


def turn_page(turn: Turn, outgoing: list[Page]) -> Page:
    """One turn."""
    return {
        "turn": turn.turn,
        "parent_turn": turn.parent_turn,
        "ordinal": ordinal_of(turn.turn) if turn.actor.startswith(IN_PROCESS) else None,
        "agent": turn.agent,
        "speaker": turn.speaker,
        "depth": turn.depth,
        "limit": None if turn.last_depth is None else turn.last_depth + 1,
        "limit_by": turn.bound_by,
        "context": context_page(turn.context),
        "state": turn.state,
        "attempt": turn.attempt,
        "actor": turn.actor,
        "payer": str(turn.payer),
        "cost": None if turn.cost is None else format_amount(turn.cost),
        "tokens": tokens_of(turn),
        "started": when(turn.created),
        "ended": when(turn.ended),
        "code": turn.code,
        "legs": outgoing,
        "children": [],
    }


def _cost(turns: Sequence[Turn], entries: Sequence[LedgerEntry]) -> int:
    """What the turns that are shown cost: what the ledger says, and nothing else."""
    shown = {(turn.turn, turn.payer) for turn in turns}
    return sum(entry.amount for entry in entries if (entry.turn, entry.debit) in shown)


def _bound_of(turns: Sequence[Turn], limit: int) -> int:
    """The limit that held for the deepest of them; `limit` where no stamp has set one (R36)."""
    deepest = max(turns, key=lambda turn: turn.depth)
    return limit if deepest.last_depth is None else deepest.last_depth + 1


def _deepest(turns: Sequence[Turn], outgoing: Mapping[int, list[Page]]) -> int:
    here = max(turn.depth for turn in turns)
    out = [
        int(call["depth"])
        for found in outgoing.values()
        for call in found
        if call["status"] != "refused"
    ]
    return max([here, *out])


def ledger_page(entries: Sequence[LedgerEntry], currency: str) -> Page:
    """Postings, newest first."""
    return {
        "entries": [
            {
                "n": entry.n,
                "at": when(entry.at),
                "run": entry.run,
                "turn": entry.turn,
                "debit": str(entry.debit),
                "credit": entry.credit,
                "amount": format_amount(entry.amount),
                "currency": currency,
            }
            for entry in entries
        ],
    }


def task_line(task: StoredTask) -> Page:
    """One task in a list."""
    return tasks.task_line(view_of(task, ""))


def task_page(task: StoredTask, events: Sequence[Event], currency: str) -> Page:
    """One task, with its result or its error; `events` are those of one that has ended."""
    return tasks.task_page(view_of(task, currency, events))
