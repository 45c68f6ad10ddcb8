"""What came of many kills, in figures; and what is wrong with the world they left."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from carnet.testing.history import History
from tests.faults.scene import PRICE, Pair
from tests.faults.stores import is_sound, number, rows
from tests.support.organisation import Organisation
from tests.support.served import executions

LOST = "was acknowledged and is lost"
AGAIN = "ran again"
TWICE = "was billed"


@dataclass
class Figures:
    """The sums of one run of kills. Nothing is well unless `faults` is empty."""

    name: str
    kills: int = 0
    ok: int = 0
    refused: int = 0
    unknown: int = 0
    cut_off: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)  # what only some runs count

    def note(self, history: History) -> None:
        """Add what clients were told."""
        self.ok += history.count("ok")
        self.refused += history.count("refused")
        self.unknown += history.count("unknown")

    def _found(self, sign: str) -> int:
        return sum(sign in fault for fault in self.faults)

    def line(self) -> str:
        """One line of the summary."""
        numbers = {
            "kills": self.kills,
            "ok": self.ok,
            "refused": self.refused,
            "unknown": self.unknown,
            "cut off": self.cut_off,
            "lost": self._found(LOST),
            "run again": self._found(AGAIN),
            "billed twice": self._found(TWICE),
            **self.more,
            "faults": len(self.faults),
            "seconds": round(self.seconds),
        }
        figures = "  ".join(f"{name} {value}" for name, value in numbers.items())
        return f"{self.name:<28} {figures}"


def runs_of(gateway: Organisation, prefix: str) -> list[str]:
    """The runs of a load whose turn is done."""
    done = rows(
        gateway,
        "SELECT r.id FROM turn t JOIN run r ON r.n = t.run WHERE t.state = 'done'"
        " AND SUBSTR(r.id, 1, ?) = ? ORDER BY r.id",
        len(prefix),
        prefix,
    )
    return [run for (run,) in done]


def ran(pair: Pair, prefix: str) -> Counter[str]:
    """How often B has executed each turn of a load."""
    return Counter(turn for turn in executions(pair.b.folder, "spoken") if prefix in turn)


def money_faults(pair: Pair, done: list[str], prefix: str) -> Iterator[str]:
    """Every done turn is billed once, at both; nothing else is; nothing stays held."""
    for gateway in (pair.a, pair.b):
        entries: dict[str, list[int]] = {run: [] for run in done}
        for run, amount in rows(
            gateway,
            "SELECT run, amount FROM ledger WHERE SUBSTR(run, 1, ?) = ?",
            len(prefix),
            prefix,
        ):
            entries.setdefault(run, []).append(int(amount))
        for run, amounts in entries.items():
            if len(amounts) > 1:
                yield f"{run}: {TWICE} {len(amounts)} times at {gateway.domain}"
            elif amounts != [PRICE]:
                yield f"{run}: has the ledger entries {amounts} at {gateway.domain}"
        held = number(gateway, "SELECT COALESCE(SUM(reserved), 0) FROM purse")
        if held:
            yield f"{gateway.domain}: {held} micro-units stay reserved"


def execution_faults(pair: Pair, prefix: str, before: Counter[str]) -> Iterator[str]:
    """B ran a turn again only where its own record says that an attempt was cut off.

    `before` is what had run when the load was answered: asking again has run nothing.
    """
    now = ran(pair, prefix)
    attempts = dict(rows(pair.b, "SELECT turn, MAX(attempt) FROM turn GROUP BY turn"))
    for turn, times in now.items():
        if times > before[turn]:
            yield f"{turn}: {AGAIN} after it was acknowledged"
        if times > attempts.get(turn, 0):
            yield f"{turn}: {AGAIN}: {times} times in {attempts.get(turn, 0)} attempts"


def cut_off(gateway: Organisation) -> int:
    """How many turns were running when it was killed."""
    return number(gateway, "SELECT COUNT(*) FROM turn WHERE attempt > 1")


def left_over(pair: Pair) -> Iterator[str]:
    """Nothing is running, the files are whole, and so is the chain of the ledger."""
    for gateway in (pair.a, pair.b):
        running = number(gateway, "SELECT COUNT(*) FROM turn WHERE state = 'running'")
        if running:
            yield f"{gateway.domain}: {running} turns stay running"
        if not is_sound(gateway):
            yield f"{gateway.domain}: its database is damaged"
        verified = gateway.try_carnet("ledger", "verify")
        if verified.returncode:
            yield f"{gateway.domain}: its ledger is damaged: {verified.stdout}{verified.stderr}"
