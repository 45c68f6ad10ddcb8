"""The row of a turn: one definition, from which everything that writes or reads it is derived.

A column says what a claim gives it (`begins`), what a claim that runs the turn again gives it
(`again`), what one gives it that brings the answer it waits for (`resumes`) and what the end gives
it (`ends`), each as an expression of Python; where it says nothing, the column is left as it is. A
column whose name, or `field`, is one of `Turn` is read into the record too. Both databases take
their statements, arguments and array types from here.

`Lookup` finds many rows with one statement.

The statements are constant: a driver prepares each once. A lookup has one text for each power of
two; a shorter list is filled up with its last key, which finds the same row again.

Here are also the rows of the journal: their kinds and their checksum.

accepted   what was asked and why it was admitted, written by the claim
events     a batch of events, in the journal's form
discard    the attempt before this row is no longer part of the answer
ended      the turn ended without an event: its worker is gone, or it waits

Law 1. A new column is one `Column` here and one migration; nothing else names the columns in order.
Law 2. A row whose checksum does not fit is reported by its number and never served.
"""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol
from zlib import crc32

from msgspec.structs import replace

from carnet.core.call import Admitted
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.people.context import write_context
from carnet.core.people.identity import Account
from carnet.errors import Internal
from carnet.ports.calls.turns import TurnClaim, TurnFinish
from carnet.stores.database import Row, marks
from carnet.stores.turn.moves import may_become, moves

Type = Literal["BIGINT", "TEXT", "BYTEA"]

INT: Final[Type] = "BIGINT"
TEXT: Final[Type] = "TEXT"
BYTES: Final[Type] = "BYTEA"

_MOST: Final = (1 << 53) - 1  # tokens: what everybody reads alike


class Column(NamedTuple):
    """One column of the table `turn`."""

    name: str
    type: Type
    begins: str = ""  # may name: claim, admitted, carnet, n, run, state, worker
    again: str = ""  # may name: claim, turn, state, worker, fence, attempt
    resumes: str = ""  # may name: turn, state, worker, fence, reserve
    ends: str = ""  # may name: finish, state, ended, cost, run_cost, waits_until, holds, budget
    field: str = ""  # of Turn, where it is called otherwise

    @property
    def of_turn(self) -> str:
        """The field of the record that it is; empty if there is none."""
        field = self.field or self.name
        return field if field in Turn.__struct_fields__ and self.name != "run" else ""


def _added(field: str) -> str:
    """What a turn used at its end and, if it has waited, until then."""
    used, before = f"finish.{field}", f"finish.turn.{field}"
    return f"{used} if {before} is None else min({before} + ({used} or 0), {_MOST})"


COLUMNS: Final = (
    Column("n", INT, begins="n"),
    Column("run", INT, begins="run"),  # the number of its row; the record has its id
    Column("key", BYTES, begins="claim.key"),
    Column("digest", BYTES, begins="claim.digest"),
    Column("state", TEXT, begins="state", again="state", resumes="state", ends="state"),
    Column("worker", TEXT, begins="worker", again="worker", resumes="worker"),
    Column("fence", INT, begins="1", again="fence", resumes="fence"),
    Column("attempt", INT, begins="1", again="attempt"),
    Column("turn", TEXT, begins="carnet.turn"),
    Column("parent", TEXT, begins="parent_of(claim)", field="parent_turn"),
    Column("speaker", TEXT, begins="carnet.speaker"),
    Column("depth", INT, begins="carnet.depth"),
    Column("agent", TEXT, begins="admitted.agent"),
    Column("actor", TEXT, begins="admitted.caller.actor.name"),
    Column("created", INT, begins="claim.now"),
    Column("ended", INT, again="None", ends="ended"),
    Column("tokens_in", INT, again="None", ends=_added("tokens_in")),
    Column("tokens_out", INT, again="None", ends=_added("tokens_out")),
    Column("cost", INT, ends="cost"),  # of all attempts: those that failed count too
    Column("run_cost", INT, again="None", ends="run_cost"),
    Column(
        "reserve",
        INT,
        begins="admitted.reserve",
        again="claim.admitted.reserve",
        ends="0",
        resumes="reserve",
    ),
    Column("purse", TEXT, begins="admitted.payer.quota", again="claim.admitted.payer.quota"),
    Column("code", TEXT, again="None", ends="finish.code"),
    Column("retryable", INT, again="0", ends="int(finish.retryable)"),
    Column("last_depth", INT, begins="carnet.last_depth"),
    Column("bound_by", TEXT, begins="carnet.bound_by"),
    Column("dialect", TEXT, begins="admitted.dialect"),
    Column("parent_n", INT, begins="None if claim.made_in is None else claim.made_in.n"),
    Column("ordinal", INT),
    Column("token", TEXT, begins="admitted.caller.token", again="claim.admitted.caller.token"),
    Column("person", INT, begins="admitted.caller.person", again="claim.admitted.caller.person"),
    Column(
        "delegation",
        TEXT,
        begins="None if admitted.delegation is None else admitted.delegation.ids",
    ),
    Column(
        "context",
        TEXT,
        begins="None if claim.made_in is not None or admitted.caller.context is None"
        " else write_context(admitted.caller.context)",
    ),
    Column("correlation", TEXT, begins="admitted.correlation"),
    Column("conversation", INT),
    Column("cause", TEXT),
    Column("waits_until", INT, again="None", resumes="None", ends="waits_until"),
    Column("holds", TEXT, again="None", ends="holds"),
    Column("facts", TEXT, again="None", ends="finish.facts"),
    Column("wiped", INT),
    Column("rank", INT),
    Column("disputed", INT, ends="finish.disputed or finish.turn.disputed"),
    Column("budget", TEXT, begins="claim.held", again="claim.held", ends="budget"),
)

BEGUN: Final = tuple(column for column in COLUMNS if column.begins)
AGAIN: Final = tuple(column for column in COLUMNS if column.again)
RESUMED: Final = tuple(column for column in COLUMNS if column.resumes)
ENDED: Final = tuple(column for column in COLUMNS if column.ends)

_OF_RUN: Final = ("r.id", "r.issuer", "r.account")


def names(columns: Sequence[Column], form: str = "{}") -> str:
    """The names of columns, each in a form, as a statement lists them."""
    return ", ".join(form.format(column.name) for column in columns)


# The statements of SQLite; PostgreSQL writes many rows at once, with the same columns.
_MAY_RUN: Final = may_become("running")
_MAY_END: Final = may_become("failed")
INSERT_TURN: Final = f"INSERT INTO turn ({names(BEGUN)}) VALUES ({marks(len(BEGUN))})"
RUN_AGAIN: Final = f"UPDATE turn SET {names(AGAIN, '{} = ?')} WHERE n = ? AND {_MAY_RUN}"
RESUME: Final = (
    f"UPDATE turn SET {names(RESUMED, '{} = ?')} WHERE n = ? AND {moves('waiting', 'running')}"
)
END_TURN: Final = f"UPDATE turn SET {names(ENDED, '{} = ?')} WHERE n = ? AND {_MAY_END}"

# What a statement selects to read a turn: its columns, then those of its run.
TURN_COLUMNS: Final = ", ".join([names(COLUMNS, "t.{}"), *_OF_RUN])
TURN_WIDTH: Final = len(COLUMNS) + len(_OF_RUN)
_PLACES: Final = {column.name: place for place, column in enumerate(COLUMNS)}


def place(name: str) -> int:
    """Where a column stands in a row that begins with TURN_COLUMNS."""
    return _PLACES[name]


_FENCE, _ATTEMPT = place("fence"), place("attempt")


def has_waited(row: Row) -> bool:
    """Whether a turn was run on with an answer: that raises the fence alone."""
    return bool(row[_FENCE] != row[_ATTEMPT])


def parent_of(claim: TurnClaim) -> str | None:
    """The turn above the one that is claimed."""
    above = claim.made_in
    return claim.admitted.carnet.parent_turn if above is None else above.turn


def _compiled(arguments: str, expression: str) -> Callable[..., Any]:
    """A function of our own words.

    Compiled, because it is called for every call: a constructor with keywords that were written
    down is eight times as fast as one that is given a dictionary.
    """
    words: dict[str, Any] = {
        "Turn": Turn,
        "Account": Account,
        "replace": replace,
        "parent_of": parent_of,
    }
    words["write_context"] = write_context
    function: Callable[..., Any] = eval(f"lambda {arguments}: {expression}", words)  # noqa: S307  the text is the table above
    return function


def _row(columns: Sequence[Column], phase: str, *more: str) -> str:
    return (
        "(" + "".join(f"{getattr(column, phase)}, " for column in columns) + ", ".join(more) + ")"
    )


def _fields(columns: Sequence[Column], phase: str) -> str:
    given = [(column.of_turn, getattr(column, phase)) for column in columns]
    return ", ".join(f"{field}={value}" for field, value in given if field)


_READ: Final = ", ".join(
    f"{column.of_turn}=row[{place(column.name)}]" for column in COLUMNS if column.of_turn
)
_ID, _ISSUER, _ACCOUNT = range(len(COLUMNS), TURN_WIDTH)

# The record of a row that begins with TURN_COLUMNS.
read_turn: Final[Callable[[Row], Turn]] = _compiled(
    "row", f"Turn({_READ}, run=row[{_ID}], payer=Account(row[{_ISSUER}], row[{_ACCOUNT}]))"
)

# The values of BEGUN, and the record that they are.
begun: Final[
    Callable[[TurnClaim, Admitted, Carnet, int, int, TurnState, str | None], tuple[Row, Turn]]
] = _compiled(
    "claim, admitted, carnet, n, run, state, worker",
    f"({_row(BEGUN, 'begins')},"
    f" Turn({_fields(BEGUN, 'begins')}, run=carnet.run, payer=admitted.payer.account))",
)

# The values of AGAIN and the number of the turn, and the record that comes of it.
again_row: Final[Callable[[TurnClaim, Turn, TurnState, str | None, int, int], Row]] = _compiled(
    "claim, turn, state, worker, fence, attempt", _row(AGAIN, "again", "turn.n")
)
again_turn: Final[Callable[[TurnClaim, Turn, TurnState, str | None, int, int], Turn]] = _compiled(
    "claim, turn, state, worker, fence, attempt", f"replace(turn, {_fields(AGAIN, 'again')})"
)

# The values of RESUMED and the number of the turn, and the record that comes of it.
_RESUMES = "turn, state, worker, fence, reserve"
resumed_row: Final[Callable[[Turn, TurnState, str | None, int, int], Row]] = _compiled(
    _RESUMES, _row(RESUMED, "resumes", "turn.n")
)
resumed_turn: Final[Callable[[Turn, TurnState, str | None, int, int], Turn]] = _compiled(
    _RESUMES, f"replace(turn, {_fields(RESUMED, 'resumes')})"
)

# The values of ENDED and the number of the turn, and the record that comes of it.
ended: Final[
    Callable[
        [TurnFinish, TurnState, int | None, int, int, int | None, str | None, str | None],
        tuple[Row, Turn],
    ]
] = _compiled(
    "finish, state, ended, cost, run_cost, waits_until, holds, budget",
    f"({_row(ENDED, 'ends', 'finish.turn.n')}, replace(finish.turn, {_fields(ENDED, 'ends')}))",
)


SELECT_TURN: Final = "SELECT " + TURN_COLUMNS + " FROM run r JOIN turn t ON t.run = r.n"
# The same where runs are looked for by their names; CROSS has SQLite look for those first.
OF_NAMED: Final = "FROM run_by_name r CROSS JOIN turn t WHERE t.run = r.n AND r.id "
SELECT_NAMED: Final = f"SELECT {TURN_COLUMNS} {OF_NAMED}"
# And by names of our own, which are in the index from the start: no row is looked at in vain.
OF_OURS: Final = "FROM run r JOIN turn t ON t.run = r.n WHERE r.named = 1 AND r.id "
SELECT_OURS: Final = f"SELECT {TURN_COLUMNS} {OF_OURS}"

MOST_KEYS: Final = 256


class Cursor(Protocol):
    """What a statement gave."""

    def fetchall(self) -> list[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: ANN401, RUF100  rows are as wide as their statement
    @property
    def rowcount(self) -> int: ...


class SqlConnection(Protocol):
    """The part of a DB-API connection that the batches use."""

    def execute(self, sql: str, args: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Cursor: ...


class Lookup:
    """A query over many keys: `{keys}` in its text becomes their VALUES, `{turn}` TURN_COLUMNS."""

    def __init__(self, text: str, *, width: int) -> None:
        one = "(" + ", ".join(["?"] * width) + ")"
        sizes = [1 << power for power in range(MOST_KEYS.bit_length())]
        self._texts = {
            size: text.format(keys=", ".join([one] * size), turn=TURN_COLUMNS) for size in sizes
        }
        self._width = width
        self._most = MOST_KEYS * width
        self._plans: dict[int, tuple[str, int]] = {}  # by how many values: text, keys to fill up
        for number in range(1, MOST_KEYS + 1):
            size = 1 << (number - 1).bit_length()
            self._plans[number * width] = (self._texts[size], size - number)

    def __call__(self, connection: SqlConnection, keys: list[Any]) -> list[Any]:
        """The rows of all the keys, whose values stand one after another."""
        if not keys:
            return []
        count = len(keys)
        if count > self._most:
            return self(connection, keys[: self._most]) + self(connection, keys[self._most :])
        text, left = self._plans[count]
        if left:
            keys = keys + keys[-self._width :] * left
        return connection.execute(text, keys).fetchall()


ACCEPTED: Final = "accepted"
EVENTS: Final = "events"
DISCARD: Final = "discard"
ENDED_ROW: Final = "ended"

_SEEDS: Final = {ACCEPTED: 1, EVENTS: 2, DISCARD: 3, ENDED_ROW: 4}
_WORD: Final = 0xFFFFFFFF
# Between what was asked and why it was admitted: it stands in no line of JSON, which that is.
APART: Final = b"\0"


def sealed_row(turn: int, kind: str, first: int, last: int, data: bytes) -> Row:
    """The values of a row to insert, without its number.

    The last is its CRC-32; the small fields are the seed, so that none of them can change alone.
    """
    seed = turn * 0x9E3779B1 + first * 0x85EBCA6B + last * 0xC2B2AE35 + _SEEDS[kind]
    return (turn, kind, first, last, data, crc32(data, seed & _WORD))


def grounds_in(data: bytes) -> bytes:
    """Why a call was admitted; empty in rows of the former form."""
    _, apart, grounds = data.rpartition(APART)
    return grounds if apart else b""


def asked_in(data: bytes) -> bytes:
    """What was asked; the rows of the former form hold nothing else."""
    asked, apart, _ = data.rpartition(APART)
    return asked if apart else data


def verified(rows: Iterable[Row]) -> Iterable[Row]:
    """The same rows (all columns, in the table's order); raises at the first damaged one."""
    for row in rows:
        n, turn, kind, first, last, data, crc = row
        if kind not in _SEEDS or sealed_row(turn, kind, first, last, data)[-1] != crc:
            raise Internal(f"journal row {n} of turn {turn} is damaged: its checksum does not fit")
        yield row
