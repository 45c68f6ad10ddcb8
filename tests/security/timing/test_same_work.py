"""What is another tenant's and what never was cost a gateway the same calls of the same functions.

The time of an answer is what was done for it. It is counted and not measured: a count has no noise.
`make timing` measures as well.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from bench.calls import Counts, Meter
from tests.security.timing.scene import House, Line, Question, copies, house, questions

WARM_UP = 3
EACH = 10  # of which the least is taken: whatever else runs only adds to some of them
ROUNDS = (
    5  # at the most, until the least of both are the same: on a busy machine all may be added to
)
NAMES = (
    *("a run", "events of a run", "end of a run", "a task", "end of a task"),
    *("a task of A2A", "a question"),
)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("counted"), is_counted=True) as found:
        yield found


@pytest.fixture(scope="module")
def asked(counted: House) -> dict[str, Question]:
    return {question.name: question for question in questions(counted)}


def same_work(of: House, question: Question) -> set[tuple[int, bytes]]:
    """The same is called for either; all answers."""
    foreign, unknown, answers = work(of, question)
    for _ in range(ROUNDS - 1):
        if foreign == unknown:
            break
        foreign, unknown, found = work(of, question)
        answers |= found
    assert foreign - unknown == unknown - foreign == Counter()
    return answers


def work(of: House, question: Question) -> tuple[Counts, Counts, set[tuple[int, bytes]]]:
    """What is called for either, and all answers, without what is drawn for each."""
    assert of.counts is not None
    meter, line = Meter(of.counts), Line(of.port)
    least: dict[str, Counts] = {}
    answers: set[tuple[int, bytes]] = set()
    try:
        for number in range(WARM_UP + EACH):
            for name, requests in (("foreign", question.foreign), ("unknown", question.unknown)):
                answers.add(line.ask(next(requests)))
                called = of_the_answer(meter.taken())
                if number >= WARM_UP and called.total() < least.get(name, called + called).total():
                    least[name] = called
    finally:
        line.close()
        meter.close()
    return least["foreign"], least["unknown"], answers


def of_the_answer(called: Counts) -> Counts:
    """Without the watchdog, which has a thread of its own, and the end of tasks of asyncio.

    A task is let go of when it is freed: perhaps while the next request is answered.
    """
    aside = ("watchdog", "_weakrefset")
    kept = {place: n for place, n in called.items() if not any(each in place[1] for each in aside)}
    return Counter(kept)


@pytest.mark.parametrize("name", NAMES)
def test_who_asks_for_what_is_anothers_costs_what_nobodys_costs(
    counted: House, asked: dict[str, Question], name: str
) -> None:
    """A67: and is answered in the same bytes."""
    ((status, _),) = same_work(counted, asked[name])
    assert status == 404


def test_a_call_under_ids_that_another_has_used_costs_what_any_call_costs(counted: House) -> None:
    """A41: nobody looks at what is recorded of the other's."""
    answers = same_work(counted, copies(counted))
    assert {status for status, _ in answers} == {200}
