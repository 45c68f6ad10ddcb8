"""kill -9 of a gateway at every crash point of a conversation of six turns with nesting.

`make crash` does each at every time that it is passed, on both stores.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from carnet.testing.wait import until
from tests.crash.loops.conversations import (
    LEAVES,
    ONCE,
    POINTS,
    PRICE,
    WRITTEN,
    ConversationCase,
    ConversationScene,
    conversation_scene,
    transcript,
)
from tests.crash.loops.kills import NOWHERE
from tests.crash.points.choice import ByStore
from tests.stores.support import servers

MIDST = 5  # of those that are passed again and again


@pytest.fixture(scope="module")
def scenes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[ConversationScene]]:
    @contextmanager
    def made(store: str) -> Iterator[ConversationScene]:
        database = server.create() if store == "postgres" else ""
        with conversation_scene(tmp_path_factory.mktemp("talks"), database) as scene:
            yield scene
            assert scene.is_sound()
        if database:
            server.drop(database)

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def scene(store: str, scenes: ByStore[ConversationScene]) -> ConversationScene:
    return scenes[store]


@pytest.mark.parametrize("point", POINTS)
def test_a_conversation_survives_a_kill_at(point: str, scene: ConversationScene) -> None:
    case = ConversationCase(scene, point, 1 if point in ONCE else MIDST, transcript())
    assert case.faults() == []
    assert case.is_passed


def test_a_conversation_that_is_a_task_is_driven_on_by_the_gateway_that_starts(
    scene: ConversationScene,
) -> None:
    scene.arm("dialogue.kept:9")
    task = scene.send("taken_on")
    assert scene.acme.died()
    scene.restart()
    path = f"/tasks/{task}"
    done = until(lambda: scene.acme.get(path), lambda reply: reply.json["status"] == "done")
    assert done.json["result"] == {"text": transcript()}
    assert len(scene.spoken("taken_on")) == LEAVES
    assert scene.spoken("taken_on").total() <= LEAVES + 1
    assert scene.billed("taken_on") == WRITTEN * PRICE


def test_who_was_left_out_and_what_a_function_said_is_kept_over_kills(
    scene: ConversationScene,
) -> None:
    for time in (8, 6):  # the first function has spoken; then the other one is left out again
        scene.arm(f"dialogue.kept:{time}")
        assert scene.try_ask("kept", "talk") is None
        assert scene.acme.died()
        scene.restart()
    reply = until(lambda: scene.ask("kept", "talk"), lambda reply: reply.status == 200)
    assert reply.text.count("inner after") == 2
    assert reply.text.count("writer after") == 2
    assert set(scene.spoken("kept").values()) == {1}
    assert reply.json["usage"]["cost"] == "0.02"  # with what those cost who were not asked again


def test_a_definition_that_was_changed_meanwhile_is_refused(scene: ConversationScene) -> None:
    scene.arm("dialogue.kept:3")
    assert scene.try_ask("changed", "talk") is None
    assert scene.acme.died()
    agents = scene.acme.folder / "agents.py"
    before = agents.read_text()
    agents.write_text(before.replace('on_failure="skip"', 'on_failure="halt"'))
    scene.restart()
    reply = until(lambda: scene.ask("changed", "talk"), lambda reply: reply.code != "in_progress")
    agents.write_text(before)
    assert reply.code == "definition_changed", reply.body
    scene.restart()


def test_these_are_all_the_points_that_a_conversation_passes(scene: ConversationScene) -> None:
    scene.arm(NOWHERE)
    assert scene.ask("noted").text == transcript()
    at_times = {"purge.mid", "event.before_t2", "event.after_t2"}
    assert scene.passed() - at_times == set(POINTS)
