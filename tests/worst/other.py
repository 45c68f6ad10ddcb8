"""The other caller: one call a second, and now and then something else that it may do.

A call begins at its second whatever became of the one before: who waits does not make the next one
late, nor is any left out.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from carnet.testing.wait import until_so
from tests.worst.attacks import ACCEPTED, CHAT, OK
from tests.worst.line import Answer, Line, chat, request

PATIENCE_SECONDS = 60.0  # nothing takes as long unless it hangs
EVERY = 3  # calls to one of everything else
LARGE = 128 * 1024  # a body that the gateway counts
GOING_ON = frozenset({"pending", "running"})


class Noticed(Struct):
    """What it noticed."""

    took: list[float] = field(default_factory=list)  # seconds of each call that was answered
    also: list[float] = field(default_factory=list)  # of whatever else it did
    faults: list[str] = field(default_factory=list)


class Other:
    """One caller, and what it notices."""

    def __init__(self, port: int, token: str, callback: str) -> None:
        self._port = port
        self._token = token
        self._callback = callback
        self.callbacks = 0  # that have to arrive
        self.noticed = Noticed()
        self._beside = (self._stream, self._body, self._list, self._task)

    async def go_on(self, seconds: float) -> Noticed:
        """A call a second, for so long; then all of them are waited for."""
        loop = asyncio.get_running_loop()
        self.noticed = Noticed()
        began = loop.time()
        asking = []
        for second in range(int(seconds)):
            await asyncio.sleep(began + second - loop.time())
            asking.append(loop.create_task(self._timed(self._call, self.noticed.took)))
            if second % EVERY == EVERY - 1:
                asking += [
                    loop.create_task(self._timed(also, self.noticed.also)) for also in self._beside
                ]
        await asyncio.gather(*asking)
        return self.noticed

    async def _timed(self, act: Callable[[], Awaitable[None]], took: list[float]) -> None:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await act()
        except (OSError, EOFError, AssertionError) as error:  # TimeoutError is an OSError
            after = time.perf_counter() - began
            self.noticed.faults.append(f"{act.__name__} after {after:.1f} s: {error!r}")
        else:
            took.append(time.perf_counter() - began)

    async def _ask(self, method: str, path: str, body: bytes = b"", *, status: int = OK) -> Answer:
        async with Line(self._port) as line:
            answer = await line.ask(request(method, path, self._token, body))
        assert answer.status == status, (path, answer.code)
        return answer

    async def _call(self) -> None:
        answer = await self._ask("POST", CHAT, chat("hello", "echo"))
        assert answer.json["choices"][0]["message"]["content"] == "hello"

    async def _stream(self) -> None:
        answer = await self._ask("POST", CHAT, chat("20", "words", stream=True))
        assert answer.body.endswith(b"data: [DONE]\n\n"), answer.body[-200:]

    async def _body(self) -> None:
        await self._ask("POST", CHAT, chat("x" * LARGE, "brief"))

    async def _list(self) -> None:
        answer = await self._ask("GET", "/runs?limit=20")
        assert answer.json["runs"]

    async def _task(self) -> None:
        body = chat("hello", "brief", callback=self._callback)
        accepted = await self._ask("POST", "/tasks", body, status=ACCEPTED)
        self.callbacks += 1
        path = f"/tasks/{accepted.json['taskId']}"
        page = await until_so(
            lambda: self._page(path), lambda page: page["status"] not in GOING_ON, pause=0.2
        )
        assert page["status"] == "done", page

    async def _page(self, path: str) -> Any:
        return (await self._ask("GET", path)).json
