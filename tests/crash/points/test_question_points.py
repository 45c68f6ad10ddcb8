"""kill -9 of one of three organisations between a question and its end, at every crash point (F46).

The call is answered, the payment is made once and stands in all ledgers, and nothing is held.
`make crash` does each point at each of the three that passes it, on both stores.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.crash.loops.kills import disarm, passed
from tests.crash.loops.questions import WHO, QuestionScene, question_scene
from tests.crash.points.choice import ByStore
from tests.crash.points.question_matrix import (
    ANSWERED,
    ASKED,
    CASES,
    RECOVERED,
    Place,
    QuestionCase,
    chosen_place,
)
from tests.stores.support import servers

AT_TIMES = {"purge.mid", *RECOVERED}  # a gateway looks after its store now and then
SAMPLE = [chosen_place(point) for point in CASES]


@pytest.fixture(scope="module")
def scenes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[QuestionScene]]:
    @contextmanager
    def made(store: str) -> Iterator[QuestionScene]:
        folder = tmp_path_factory.mktemp("questions")
        with question_scene(folder, server, store) as scene:
            yield scene
            assert list(scene.left_over()) == []
            scene.scene.stop()

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def scene(store: str, scenes: ByStore[QuestionScene]) -> QuestionScene:
    return scenes[store]


@pytest.mark.parametrize("place", SAMPLE, ids=str)
def test_a_question_is_answered_and_paid_once_after_a_kill_at(
    place: Place, scene: QuestionScene
) -> None:
    assert QuestionCase(scene, place).faults() == []


def noted(scene: QuestionScene, act: Callable[[], object]) -> dict[str, set[str]]:
    """The points that each of the three passes while something is done."""
    for who in WHO:
        disarm(scene.gateway(who))
    act()
    return {who: passed(scene.gateway(who)) - AT_TIMES for who in WHO}


def test_these_are_all_the_points_between_a_question_and_its_end(scene: QuestionScene) -> None:
    scene.until_asked("before")  # the first of them all may fetch what is not fetched again
    asked = noted(scene, lambda: scene.until_asked("noted"))
    assert asked == {who: set(points) for who, points in ASKED.items()}
    name = scene.question("noted")["id"]

    def end() -> None:
        scene.until_answered(name)
        scene.until_ended("noted")

    assert noted(scene, end) == {who: set(points) for who, points in ANSWERED.items()}
    scene.until_answered(scene.question("before")["id"])
    scene.until_ended("before")


def test_each_of_the_three_is_killed_about_as_often_in_the_tests() -> None:
    counted = Counter(place.who for place in SAMPLE)
    assert min(counted[who] for who in WHO) * 6 >= counted.total()
    assert {place.when for place in SAMPLE} == {"asked", "answered", "stopped", "recovered"}
