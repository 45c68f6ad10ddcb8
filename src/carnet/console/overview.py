"""The first page: whether everything looks right, and if not, what to do about it.

Law. It tells what whoever looks at it may see: the runs, of the parts of the gateway what
     `GET /readyz` and `GET /-/doctor` tell her, and how much waits for her.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from carnet.console.shell import Shell, page_row
from carnet.core.people.identity import Caller
from carnet.http.exchange import Exchange
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.times import micros_of, when

Page = dict[str, Any]

NEWEST: Final = 200  # runs that the numbers are of
SHOWN: Final = 8  # of them that are listed
_DAY: Final = 24 * 60 * 60 * 1_000_000
_MINUTE: Final = 60_000_000


class OverviewPage:
    """How it goes."""

    def __init__(self, shell: Shell, clock: Clock) -> None:
        self._shell = shell
        self._clock = clock

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/."""
        api = self._shell.api.of(exchange)
        ready = await api.get("/readyz")
        runs: list[Page] = []
        waiting = 0
        if caller.may("run:read"):
            runs = (await api.get("/runs", {"limit": NEWEST}))["runs"]
            waiting = len((await api.get("/approvals", {"limit": NEWEST}))["approvals"])
        findings: list[Page] = []
        if caller.may("metrics"):
            findings = (await api.get("/-/doctor"))["findings"]
        now = self._clock.wall_us()
        page = {
            "title": "Overview",
            "at": when(now),
            "status": ready["status"],
            "problems": problems(ready, findings),
            "findings": findings,
            "numbers": numbers(runs, now),
            "waiting": waiting,
            "circuits": ready.get("circuits", []),
            "runs": runs[:SHOWN],
        }
        await self._shell.show(exchange, caller, "overview.html", page)


_KINDS: Final = {"fail": "bad", "warn": "warn"}


def problems(ready: Page, findings: Sequence[Page] = ()) -> list[Page]:
    """What does not look right, each with what to do; what fails stands first."""
    found = [
        {"what": each["message"], "fix": each["fix"], "kind": _KINDS[each["status"]]}
        for each in findings
        if each["status"] in _KINDS
    ]
    found += [
        {"what": f"The check '{name}' fails.", "fix": "carnet doctor", "kind": "bad"}
        for name, works in ready.get("checks", {}).items()
        if not works
    ]
    found += [
        {
            "what": f"{circuit.get('upstream', 'An upstream')} is left alone: it failed often.",
            "fix": "It is tried again by itself; carnet doctor says what it answers.",
            "kind": "warn",
        }
        for circuit in ready.get("circuits", ())
    ]
    reload = ready.get("reload")
    if reload is not None and not reload.get("applied", True):
        what = "The last configuration was not taken: the one before it is in force."
        found.append({"what": what, "fix": "carnet config check", "kind": "warn"})
    return sorted(found, key=lambda each: each["kind"] != "bad")


def numbers(runs: Sequence[Page], now: int) -> Page:
    """How the newest runs went."""
    took = sorted(_took(run) for run in runs if run["ended"] is not None)
    today = [run for run in runs if now - _micros(run["started"]) < _DAY]
    latest = [run for run in runs if now - _micros(run["started"]) < _MINUTE]
    return {
        "runs": len(runs),
        "hops_a_minute": sum(run["turns"] for run in latest),
        "p95": took[int(len(took) * 0.95)] if took else None,
        "cost_today": str(sum((Decimal(run["cost"]) for run in today), Decimal(0))),
        "currency": runs[0]["currency"] if runs else "",
        "refusals": dict(Counter(run["code"] for run in runs if run["code"]).most_common(8)),
        "states": dict(Counter(run["state"] for run in runs)),
    }


def _took(run: Page) -> int:
    return _micros(run["ended"]) - _micros(run["started"])


def _micros(text: str) -> int:
    return micros_of(text) or 0


ROUTES: Final = tuple(page_row("/console/", OverviewPage.show, "How it goes"))
