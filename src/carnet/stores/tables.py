"""Every table, and what becomes of it: when it is forgotten, and whether it moves with its store.

forgotten   with the events of its turn (`events`), with the turn itself (`turn`), by a rule of its
            own that `prune` or the upkeep knows (`own`), with the process that wrote it
            (`running`), or never by its age (`kept`): what is ended there is ended by hand
moves       a move (`migrate --to`) and a backup copy it; what belongs to the running of one store
            stays behind
exported    with a run (`run export`), with what an agent keeps for a person (`memory export`), or
            with a conversation (`/export`); everything else leaves with a backup alone

Law. A table of the schema that is not named here is an error of ours; a test compares them.
"""

from typing import Final, Literal, NamedTuple

Forgotten = Literal["events", "turn", "own", "running", "kept"]
Exported = Literal["run", "memory", "conversation"]


class Table(NamedTuple):
    """One table of the store."""

    name: str
    forgotten: Forgotten
    moves: bool = True
    numbered: bool = False  # by `n`, which PostgreSQL counts itself
    exported: Exported | None = None


# In an order in which each row finds the one it refers to.
TABLES: Final = (
    Table("run", "own", numbered=True, exported="run"),
    Table("turn", "turn", numbered=True, exported="run"),
    Table("journal", "events", numbered=True, exported="run"),
    Table("ledger", "kept", numbered=True, exported="run"),
    Table("pruned_run", "kept"),
    Table("lane", "kept"),
    Table("checkpoint", "kept"),
    Table("sealed", "kept"),
    Table("purse", "own"),
    Table("budget", "own"),
    Table("budget_warning", "own"),
    Table("settlement", "kept"),
    Table("rate", "own"),
    Table("token", "own", numbered=True),
    Table("peer", "kept"),
    Table("meta", "kept"),
    Table("nonce", "own", numbered=True),
    Table("own_key", "kept", numbered=True),
    Table("pinned_key", "kept"),
    Table("receipt", "events"),
    Table("task", "events"),
    Table("step", "events"),
    Table("outbox", "own", numbered=True),
    Table("receiver", "own"),
    Table("gone", "kept"),
    Table("turn_seen", "turn"),
    Table("kept_call", "events"),
    Table("callback", "events"),
    Table("outbound", "turn", exported="run"),  # it holds receipts: a proof outlives the words
    Table("interrupt", "events", numbered=True, exported="run"),
    Table("rule", "kept", numbered=True),
    Table("person", "kept", numbered=True),
    Table("address", "kept"),
    Table("session", "own", numbered=True),
    Table("delegation", "own", numbered=True),
    Table("voucher", "kept"),
    Table("statement", "kept"),
    Table("dialogue", "kept"),
    Table("dialogue_turn", "kept"),
    Table("conversation", "own", numbered=True, exported="conversation"),
    Table("message", "own", numbered=True, exported="conversation"),
    Table("message_word", "own"),
    Table("memory", "own", numbered=True, exported="memory"),
    Table("memory_version", "own", exported="memory"),
    Table("schedule", "kept", numbered=True),
    Table("firing", "own", numbered=True),
    Table("hook", "kept", numbered=True),
    Table("hook_seen", "own"),
    Table("caller", "kept"),
    Table("stranger", "kept"),
    Table("worker", "running", moves=False),
    Table("wish", "running", moves=False),
    Table("change", "running", moves=False),
    Table("migration", "kept", moves=False),
)

MOVED: Final = tuple(table.name for table in TABLES if table.moves)
LEFT_BEHIND: Final = tuple(table.name for table in TABLES if not table.moves)
NUMBERED: Final = tuple(table.name for table in TABLES if table.numbered)
WITH_EVENTS: Final = tuple(table.name for table in TABLES if table.forgotten == "events")
WITH_TURN: Final = tuple(
    table.name for table in TABLES if table.forgotten == "turn" and table.name != "turn"
)

# Written by the migration that makes them, in every store: no rows of anybody's.
FORM_OF_CALLS: Final = "form_of_calls"
FORM_OF_EVENTS: Final = "form_of_events"
PRUNED: Final = "pruned"  # when a gateway last pruned by itself; it stays with its store
