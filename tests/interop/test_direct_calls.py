"""A call from one gateway to another with no router between: who is called bounds it."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation
from tests.support.recorder import Recorder, recording
from tests.support.served import executions


class Scene(NamedTuple):
    """A caller that would go nine deep, whom it calls, and what passes between the two."""

    caller: Organisation
    callee: Organisation
    between: Recorder


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("direct")
    caller = organisation(folder / "caller", "caller.example", database())
    callee = organisation(folder / "callee", "callee.example", database())
    with recording(callee.port) as between:
        introduce(caller, callee, url=between.url)
        caller.start(env={"CLI_BRIDGE_MAX_DEPTH": "9"})
        callee.start()
        yield Scene(caller, callee, between)
        assert (caller.stop(), callee.stop()) == (0, 0)


def test_a_direct_call_is_refused_by_who_is_called_whatever_the_caller_allows(
    scene: Scene,
) -> None:
    before, sent = executions(scene.callee.folder, "echo"), len(scene.between.seen)
    headers = [("x-tangle-forwarded-depth", "3")]
    reply = scene.caller.chat("hi", "@echo@callee.example", headers=headers)
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert (reply.json["error"]["observed"], reply.json["error"]["limit"]) == (4, 4)
    assert [stamp["x-tangle-forwarded-depth"] for stamp in scene.between.stamps()[sent:]] == ["4"]
    assert executions(scene.callee.folder, "echo") == before


def test_a_direct_call_below_the_limit_is_answered(scene: Scene) -> None:
    headers = [("x-tangle-forwarded-depth", "2")]
    assert scene.caller.chat("hi", "@echo@callee.example", headers=headers).text == "hi"
