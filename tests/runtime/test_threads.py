"""Plain functions beside the event loop."""

import asyncio
import subprocess
import sys
import threading

import pytest

from carnet.runtime.threads import Threads
from carnet.testing.wait import until_so


async def test_whoever_waits_can_leave_while_the_function_goes_on() -> None:
    let_go, ended = threading.Event(), threading.Event()

    def slow() -> None:
        let_go.wait(60)
        ended.set()

    threads = Threads(most=1)
    waiting = asyncio.create_task(threads.run(slow))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    next_one = asyncio.create_task(threads.run(str, 1))  # waits: the first one still has the room
    let_go.set()
    assert await next_one == "1"
    assert ended.is_set()


async def test_what_it_raises_is_raised_where_it_is_waited_for() -> None:
    def broken() -> None:
        raise LookupError("x")

    threads = Threads(most=1)
    with pytest.raises(LookupError):
        await threads.run(broken)
    assert await threads.run(int, "7") == 7  # and the room is free again


async def test_no_more_run_at_once_than_there_is_room_for() -> None:
    running: set[int] = set()
    most: list[int] = []
    lock, go = threading.Lock(), threading.Event()

    def work(number: int) -> None:
        with lock:
            running.add(number)
            most.append(len(running))
        go.wait(60)
        with lock:
            running.discard(number)

    threads = Threads(most=2)
    tasks = [asyncio.create_task(threads.run(work, number)) for number in range(6)]
    await until_so(lambda: len(running) == 2)
    go.set()
    await asyncio.gather(*tasks)
    assert max(most) == 2
    assert len(most) == 6


LEAVING = """
import asyncio, threading
from carnet.runtime.threads import Threads

async def main():
    begun = threading.Event()
    def stuck():
        begun.set()
        threading.Event().wait()
    task = asyncio.create_task(Threads().run(stuck))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    task.cancel()

asyncio.run(main())
print("left")
"""


def test_a_function_that_never_ends_does_not_keep_the_process() -> None:
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LEAVING], capture_output=True, timeout=60, check=True
    )
    assert ran.stdout == b"left\n"
    assert ran.stderr == b""


def test_a_function_that_ends_after_its_loop_has_gone_is_read_by_nobody() -> None:
    let_go = threading.Event()
    exceptions: list[object] = []

    async def main() -> threading.Thread:
        task = asyncio.create_task(Threads().run(let_go.wait, 60))
        await asyncio.sleep(0)
        task.cancel()
        [thread] = [one for one in threading.enumerate() if one.name == "carnet-skill"]
        return thread

    hook, threading.excepthook = threading.excepthook, exceptions.append
    try:
        thread = asyncio.run(main())
        let_go.set()
        thread.join(60)
    finally:
        threading.excepthook = hook
    assert exceptions == []
