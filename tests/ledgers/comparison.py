"""Whether two ledgers agree to the micro-unit, and what explains each difference."""

from collections import Counter
from typing import Any

from msgspec import Struct, field

from carnet.core.money.amount import parse_amount
from tests.faults.stores import rows
from tests.ledgers.scene import World
from tests.support.organisation import Organisation

_OURS = (
    "SELECT run, CAST(SUM(amount) AS BIGINT) FROM ledger WHERE credit LIKE 'peer:%' GROUP BY run"
)
_THEIRS = (
    "SELECT run, CAST(SUM(amount) AS BIGINT) FROM ledger WHERE issuer = 'acme.example'"
    " AND credit NOT LIKE 'unpaid:%' AND credit NOT LIKE 'disputed:%' GROUP BY run"
)
_HELD = "SELECT name, reserved FROM purse WHERE reserved <> 0"


class Compared(Struct):
    """What was found."""

    ours: int = 0
    theirs: int = 0
    same: int = 0  # runs
    explained: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def compare(world: World) -> Compared:
    """Look at every run of both ledgers."""
    ours, theirs = dict(rows(world.acme, _OURS)), dict(rows(world.globex, _THEIRS))
    found = Compared(ours=sum(ours.values()), theirs=sum(theirs.values()))
    listed = _listed(world.acme)
    found.listed = Counter(each["kind"] for each in [*listed, *_listed(world.globex)])
    disputed: Counter[str] = Counter()
    for each in listed:
        if each["kind"] == "disputed":
            disputed[each["run"]] += parse_amount(each["amount"])
    unmatched_runs = {each["run"] for each in listed if each["kind"] == "unmatched"}
    for run in sorted(ours.keys() | theirs.keys()):
        over = theirs.get(run, 0) - ours.get(run, 0)
        if not over:
            found.same += 1
        elif run in unmatched_runs:
            found.explained["unmatched"] += 1
        elif over == disputed[run]:
            found.explained["disputed"] += 1
        else:
            found.faults.append(f"{run}: ours {ours.get(run, 0)}, theirs {theirs.get(run, 0)}")
    for gateway in (world.acme, world.globex):
        found.faults += _unsound(gateway)
    return found


def unmatched(world: World) -> set[str]:
    """The runs of which a call is unmatched."""
    return {each["run"] for each in _listed(world.acme) if each["kind"] == "unmatched"}


def _listed(gateway: Organisation) -> list[dict[str, Any]]:
    page = gateway.json("ledger", "differences", "--limit", "10000")
    return list(page["differences"])


def _unsound(gateway: Organisation) -> list[str]:
    """What is wrong with a ledger by itself, when nothing runs any more."""
    verified = gateway.json("ledger", "verify")
    held = [f"{gateway.domain}: {name} holds {amount}" for name, amount in rows(gateway, _HELD)]
    return held + [f"{gateway.domain}: {fault['what']}" for fault in verified["faults"]]
