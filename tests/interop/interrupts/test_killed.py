"""A gateway dies while an answer is on its way down: it still ends once, and all ledgers agree."""

from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Final

import pytest

from carnet.testing.wait import until
from tests.faults.stores import end_leases
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import (
    PAYMENT,
    PRICE,
    Scene,
    held,
    posted,
    resolution,
    started,
    state_of,
)
from tests.support.http import Reply
from tests.support.served import executions

WAYS: Final = ("acme", "globex", "initech")


@pytest.fixture(scope="module")
def all_three(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = started(database, tmp_path_factory)
    yield scene
    scene.stop()


@pytest.fixture
def scene(all_three: Scene) -> Iterator[Scene]:
    """The same three for all; whoever a test that failed has left dead is begun anew."""
    yield all_three
    for gateway in all_three:
        if gateway.process is None or gateway.process.poll() is not None:
            end_leases(gateway)
            gateway.start()


def answered(scene: Scene, waits: Reply, *brought: tuple[str, str]) -> Reply | None:
    with suppress(OSError, HTTPException):
        return scene.again(waits, *brought)
    return None


@pytest.mark.parametrize("point", ["resolve.used", "t3.begin"])
@pytest.mark.parametrize("name", WAYS)
def test_a_gateway_that_dies_with_the_answer_in_its_hands_ends_the_turn_once(
    scene: Scene, name: str, point: str
) -> None:
    """The client repeats the turn without the answer: it was used, or it is waited for still."""
    before = len(executions(scene.initech.folder, "seller"))
    waits = scene.ask()
    dying = scene[WAYS.index(name)]
    dying.kill()
    end_leases(dying)
    dying.start(env={"CRASH_AT": point})
    first = answered(scene, waits, resolution(state_of(waits)))
    dying.kill()
    end_leases(dying)
    dying.start()
    assert first is None or first.status >= 400

    def end() -> Reply | None:
        found = answered(scene, waits)
        if found is not None and found.status == 402:
            found = answered(scene, waits, resolution(state_of(waits)))
        return found

    done = until(end, lambda found: found is not None and found.status == 200)
    assert done is not None
    assert done.text == "sold hi"
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + PRICE,) * 2] * 2
    assert [held(gateway) for gateway in scene] == [[], [], []]
    assert len(executions(scene.initech.folder, "seller")) <= before + 4
    assert all(gateway.json("ledger", "verify")["ok"] for gateway in scene)
