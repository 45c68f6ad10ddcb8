"""A SAMVAD agent on loopback that takes tasks on and tells about them what a test says."""

import json
from typing import Any

from tests.runtime.peer import Line, Request, reply
from tests.runtime.peers.globex import CARNET, Globex, card

TASK = "7b0c6a4e-52a7-4f3a-9a53-31a3d4f1f6a0"


def accepted(task: str = TASK, **headers: str) -> bytes:
    body = json.dumps({"taskId": task, "status": "accepted"}).encode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply(body, status=202, headers={"content-type": "application/json", **fields})


def task_record(status: str, **more: Any) -> bytes:
    headers = {"content-type": "application/json", **more.pop("headers", {})}
    record = {"taskId": TASK, "status": status, "createdAt": 1, **more}
    return reply(json.dumps(record).encode(), headers=headers)


UNKNOWN = reply(b'{"error":"Task not found"}', status=404)


class Taskful(Globex):
    """It tells these one after another when it is asked for the task; the last for ever."""

    def __init__(
        self,
        *looks: bytes,
        begins: bytes | None = None,
        cancels: bytes | None = None,
        is_carnet: bool = False,
        page: bytes | None = None,
    ) -> None:
        super().__init__(page=page, is_carnet=is_carnet)
        self._looks = looks
        self._begins = begins or accepted()
        self._cancels = cancels or task_record("running")

    @property
    def begun(self) -> list[Request]:
        return [one for one in self.requests if one.lines[0].startswith("POST") and one.body]

    @property
    def looks(self) -> list[Request]:
        return [one for one in self.requests if f"/task/{TASK} " in one.lines[0]]

    @property
    def cancels(self) -> list[Request]:
        return [one for one in self.requests if "/cancel " in one.lines[0]]

    async def _play(self, line: Line) -> None:
        while True:
            path = (await line.request()).lines[0].split()[1]
            if path.endswith("/agent.json"):
                await line.say(reply(self._page or card()))
            elif path.endswith("/carnet.json"):
                await line.say(reply(CARNET) if self._is_carnet else reply(status=404))
            elif path.endswith("/agent/task"):
                await line.say(self._begins)
            elif path.endswith("/cancel"):
                await line.say(self._cancels)
            else:
                await line.say(self._looks[min(len(self.looks), len(self._looks)) - 1])
