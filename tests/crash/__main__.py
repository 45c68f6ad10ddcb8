"""The long form of the crash tests: `make crash`, or `python -m tests.crash --help`.

Random kills under load and every crash point again and again, of calls and of tasks with callbacks,
every crash point of three organisations between a question and its end, and every one of a
conversation with nesting, on both stores. The summary is the last thing printed; the exit code is 1
if anything was lost, ran again or was billed twice.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.crash.loops import conversations
from tests.crash.loops.calls import TaskScene, task_scene
from tests.crash.loops.conversations import (
    ConversationCase,
    ConversationScene,
    conversation_scene,
)
from tests.crash.loops.figures import Figures, left_over
from tests.crash.loops.loop import kill_loop
from tests.crash.loops.questions import QuestionScene, question_scene
from tests.crash.loops.task_loop import task_loop
from tests.crash.points import question_matrix, task_matrix
from tests.crash.points.matrix import CASES, Case
from tests.crash.points.question_matrix import QuestionCase
from tests.crash.points.task_matrix import TaskCase
from tests.faults.scene import Pair, two_gateways
from tests.selection import STORES
from tests.stores.support import servers


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def place(server: servers.Server, store: str) -> Iterator[tuple[Path, str]]:
    """A folder, and a database of its own."""
    database = server.create() if store == "postgres" else ""
    with tempfile.TemporaryDirectory(prefix="carnet-crash-") as folder:
        yield Path(folder), database
    if database:
        server.drop(database)


def note(figures: Figures, faults: Iterable[str], point: str) -> None:
    """Add what is wrong after one kill."""
    try:
        figures.faults += faults
    except Exception as error:  # noqa: BLE001  the other points are still worth a look
        figures.faults.append(f"{point}: {error!r}")


def every_point(pair: Pair, store: str, times: int) -> Figures:
    """Die at every crash point, so many times each."""
    figures = Figures(f"{store}: every point")
    began = time.monotonic()
    for point in CASES:
        for n in range(times):
            case = Case(pair, point, n)
            note(figures, _found(case), point)
            figures.kills += case.kills
            figures.note(case.history)
            figures.cut_off += case.cut_off
        say(f"  {store}: {point} {times} times, {len(figures.faults)} faults so far")
    figures.faults += left_over(pair)
    figures.seconds = time.monotonic() - began
    return figures


def every_point_of_tasks(scene: TaskScene, store: str, times: int) -> Figures:
    """The same with tasks."""
    figures = Figures(f"{store}: tasks, every point")
    began = time.monotonic()
    for point in task_matrix.CASES:
        for n in range(times):
            case, before = TaskCase(scene, point, n), len(figures.faults)
            note(figures, _found(case), point)
            figures.kills += case.kills
            figures.ok += len(figures.faults) == before
        say(f"  {store}: task, {point} {times} times, {len(figures.faults)} faults so far")
    figures.faults += scene.left_over()
    figures.seconds = time.monotonic() - began
    return figures


def every_point_of_questions(scene: QuestionScene, store: str, times: int) -> Figures:
    """Kill each of the three at every point: the first time it is passed, the second, and so on."""
    figures = Figures(f"{store}: questions, every point")
    began = time.monotonic()
    for at in question_matrix.PLACES:
        n = 0
        for n in range(times):
            case, before = QuestionCase(scene, at, n), len(figures.faults)
            note(figures, _found(case), str(at))
            figures.kills += case.kills
            figures.ok += len(figures.faults) == before
            if not case.is_passed:  # nor will it be a time later
                break
        say(f"  {store}: question, {at} {n + 1} times, {len(figures.faults)} faults so far")
    figures.faults += scene.left_over()
    figures.seconds = time.monotonic() - began
    return figures


def every_point_of_conversations(scene: ConversationScene, store: str, whole: str) -> Figures:
    """Kill it at every point: the first time it is passed, the second, and so on."""
    figures = Figures(f"{store}: conversations, every point")
    began = time.monotonic()
    for point in conversations.POINTS:
        n = 0
        for n in range(1, conversations.MOST_TIMES):
            case, before = ConversationCase(scene, point, n, whole), len(figures.faults)
            note(figures, _found(case), f"{point}:{n}")
            figures.kills += case.kills
            figures.ok += len(figures.faults) == before
            if not case.is_passed:  # nor will it be a time later
                break
        say(f"  {store}: conversation, {point} {n - 1} times, {len(figures.faults)} faults so far")
    if not scene.is_sound():
        figures.faults.append("the store or the ledger is not sound")
    figures.seconds = time.monotonic() - began
    return figures


def _found(case: Case | TaskCase | QuestionCase | ConversationCase) -> Iterator[str]:
    yield from case.faults()


def crash_calls(server: servers.Server, store: str, options: argparse.Namespace) -> list[Figures]:
    """Calls, at random and at every point."""
    with place(server, store) as at, two_gateways(*at) as pair:
        say(f"  {store}: {options.kills} random kills under load")
        name = f"{store}: random kills"
        at_random = kill_loop(pair, name, kills=options.kills, seed=options.seed)
        say(at_random.line())
    with place(server, store) as at, two_gateways(*at) as pair:
        return [at_random, every_point(pair, store, options.times)]


def crash_tasks(server: servers.Server, store: str, options: argparse.Namespace) -> list[Figures]:
    """Tasks, at random and at every point."""
    with place(server, store) as at, task_scene(*at) as scene:
        say(f"  {store}: {options.kills} random kills while tasks run")
        name = f"{store}: tasks, random"
        at_random = task_loop(scene, name, kills=options.kills, seed=options.seed)
        say(at_random.line())
    with place(server, store) as at, task_scene(*at) as scene:
        return [at_random, every_point_of_tasks(scene, store, options.times)]


def crash_questions(
    server: servers.Server, store: str, options: argparse.Namespace
) -> list[Figures]:
    """Questions that are asked three organisations away, at every point of each."""
    with (
        tempfile.TemporaryDirectory(prefix="carnet-crash-") as folder,
        question_scene(Path(folder), server, store) as scene,
    ):
        return [every_point_of_questions(scene, store, options.times)]


def crash_conversations(
    server: servers.Server, store: str, options: argparse.Namespace
) -> list[Figures]:
    """A conversation with nesting, at every point and every time that it is passed."""
    del options
    with place(server, store) as at, conversation_scene(*at) as scene:
        return [every_point_of_conversations(scene, store, conversations.transcript())]


PARTS = {
    "calls": crash_calls,
    "tasks": crash_tasks,
    "questions": crash_questions,
    "conversations": crash_conversations,
}


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="random kills on each store")
    parser.add_argument("--times", type=int, default=10, help="kills at each point on each store")
    parser.add_argument("--seed", type=int, default=1, help="of the random times")
    parser.add_argument("--store", choices=STORES, action="append", help="only on this store")
    parser.add_argument("--only", choices=PARTS, help="not all of them")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Do it all; 1 if there was a fault."""
    options = read_options(arguments)
    results: list[Figures] = []
    with servers.running() as server:
        for store in options.store or STORES:
            for name, crash in PARTS.items():
                if options.only in {None, name}:
                    results += crash(server, store, options)
    faults = [f"{figures.name}: {fault}" for figures in results for fault in figures.faults]
    say("\n".join(["", *faults, *[figures.line() for figures in results]]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
