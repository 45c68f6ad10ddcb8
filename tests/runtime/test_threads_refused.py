"""Where the system gives no thread, the call fails and the next one has room."""

import asyncio
import threading

import pytest

from carnet.runtime.threads import Threads


async def test_a_thread_that_cannot_begin_takes_nobodys_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = Threads(most=1)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError(f"can't start new thread {thread.name}")

    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            await threads.run(int)
    async with asyncio.timeout(30):
        assert await threads.run(int) == 0
