"""Three organisations, a question that is asked in the last one, and what is left once it ended.

Acme's `front` asks two siblings at once: one answers, the other leads to an agent of Initech that
asks for a payment. What is looked at after a kill: the call is answered, the payment was made once
and stands in all ledgers, nothing is held, and no answer can be given again.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from carnet.testing.wait import until
from tests.crash.loops.figures import AGAIN, TWICE
from tests.crash.loops.kills import TRIGGER
from tests.faults.stores import end_leases, is_sound, number
from tests.interop.interrupts.scene import (
    SIBLINGS,
    SIBLINGS_COST,
    Scene,
    answer,
    held,
    posted,
    resolution,
    state_of,
    three,
    world,
)
from tests.stores.support import servers
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import executions

WHO: Final = ("acme", "globex", "initech")
TEXT: Final = "hello and sold hi"
COST: Final = "0.0204"
WELL, REFUSED, ASKED_TO_PAY = 200, 409, 402
# With more retries a gateway that is away for a moment would be left alone for half a minute.
CONFIG: Final = "\n[limits]\nretries = 1\nsender_calls_per_minute = 1000000\n"

LEFT_OVER: Final = (
    ("reserved", "SELECT COALESCE(SUM(reserved), 0) FROM purse"),
    ("unfinished", "SELECT COUNT(*) FROM turn WHERE state NOT IN ('done', 'failed', 'unknown')"),
    ("open", "SELECT COUNT(*) FROM interrupt WHERE status = 'open'"),
    ("sealed", "SELECT COUNT(*) FROM kept_call"),
)
SPENT: Final = "SELECT spent FROM purse WHERE name = 'token:alice'"
PAID: Final = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE account = 'alice'"


class QuestionScene:
    """The three of them, and Alice, who calls and is asked."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.alice = scene.acme.new_token("alice", "--limit", "1000")

    def gateway(self, who: str) -> Organisation:
        return self.scene[WHO.index(who)]

    def restart(self, who: str) -> None:
        """Start one that has died, after what it held has run out."""
        gateway = self.gateway(who)
        end_leases(gateway)
        gateway.start()

    # ------------------------------------------------------------------ asking

    def ask(self, run: str, *brought: tuple[str, str]) -> Reply | None:
        """Make the call, or make it again; None if Acme died meanwhile."""
        ids = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.front")]
        with suppress(OSError, HTTPException):
            return self.scene.ask(SIBLINGS, "front", headers=[*ids, *brought], token=self.alice)
        return None

    def until_asked(self, run: str) -> Reply:
        """What the call is answered while it waits."""
        return self._until(lambda: self.ask(run), ASKED_TO_PAY)

    def until_ended(self, run: str) -> Reply:
        """What the call is answered in the end."""
        return self._until(lambda: self.ask(run), WELL)

    def question(self, run: str) -> dict[str, Any]:
        """What Alice is asked, as her inbox has it."""
        page = self.scene.acme.get("/approvals?status=all", token=self.alice).json
        (found,) = [entry for entry in page["approvals"] if entry["run"] == run]
        return dict(found)

    def answer(self, name: str, outcome: str = "accepted") -> Reply | None:
        """Answer it there; None if Acme died meanwhile."""
        with suppress(OSError, HTTPException):
            return answer(self.scene.acme, name, outcome, token=self.alice)
        return None

    def until_answered(self, name: str) -> Reply:
        """The same until it is known to be kept: the same answer again is well."""
        return self._until(lambda: self.answer(name), WELL)

    @staticmethod
    def _until(look: Callable[[], Reply | None], status: int) -> Reply:
        found = until(look, lambda reply: reply is not None and reply.status == status)
        assert found is not None
        return found

    def sibling_runs(self) -> int:
        """How often the sibling has run that answers at once."""
        return len(executions(self.scene.globex.folder, "paid"))

    # ----------------------------------------------------------------- looking

    def end_faults(self, run: str, waits: Reply, name: str) -> Iterator[str]:
        """What is wrong with a call that was agreed to."""
        done = self.until_ended(run)
        if (done.text, done.json["usage"]["cost"]) != (TEXT, COST):
            yield f"it ended with {done.body!r}"
        yield from self._money_faults(run)
        yield from self._repeat_faults(run, waits, name, done)

    def _money_faults(self, run: str) -> Iterator[str]:
        found = posted(self.scene, run)
        expected = [(cost, cost) for cost in SIBLINGS_COST]
        if found != expected:
            more = any(
                one > due for pair, due in zip(found, SIBLINGS_COST, strict=True) for one in pair
            )
            yield f"the ledgers have {found}, and not {expected}" + f": {TWICE} too much" * more
        for gateway in self.scene:
            if kept := held(gateway):
                yield f"{gateway.domain}: {kept} stays reserved"

    def _repeat_faults(self, run: str, waits: Reply, name: str, done: Reply) -> Iterator[str]:
        """The same answer again is well; another one, and one by the wire, are refused."""
        left, page = world(self.scene, run), self.question(run)
        same, other = self.answer(name), self.answer(name, "rejected")
        if same is None or (same.status, same.json) != (WELL, page):
            yield f"the same answer again: {same}"
        if other is None or (other.status, other.code) != (REFUSED, "answered_otherwise"):
            yield f"another answer: {other}"
        wire = self.ask(run, resolution(state_of(waits)))
        if wire is None or (wire.status, wire.code) != (REFUSED, "policy_state_invalid"):
            yield f"an answer that is sent again: {wire}"
        repeated = self.ask(run)
        if repeated is None or repeated.body != done.body:
            yield f"the call again: {repeated}"
        if world(self.scene, run) != left:
            yield f"{AGAIN}: {left} became {world(self.scene, run)}"

    def left_over(self) -> Iterator[str]:
        """What is wrong when all has ended: something is held, unfinished, or does not agree."""
        for gateway in self.scene:
            for what, sql in LEFT_OVER:
                if left := number(gateway, sql):
                    yield f"{gateway.domain}: {left} stay {what}"
            if not is_sound(gateway):
                yield f"{gateway.domain}: its database is damaged"
            if not gateway.json("ledger", "verify")["ok"]:
                yield f"{gateway.domain}: its ledger is damaged"
            if found := gateway.json("ledger", "differences")["differences"]:
                yield f"{gateway.domain}: its ledger differs: {found}"
        if (spent := number(self.scene.acme, SPENT)) != (paid := number(self.scene.acme, PAID)):
            yield f"Alice has spent {spent} of her limit, and paid {paid}"


@contextmanager
def question_scene(folder: Path, server: servers.Server, store: str) -> Iterator[QuestionScene]:
    """The three of them, serving, each on a store of its own."""
    with ExitStack() as databases:

        def database() -> str:
            if store == "sqlite":
                return ""
            made = server.create()
            databases.callback(server.drop, made)
            return made

        scene = three(folder, database, credit="1000", config=CONFIG, agents=TRIGGER)
        for gateway in scene:
            databases.callback(gateway.kill)
            gateway.start()
        yield QuestionScene(scene)
