"""A real engine: `carnet engine` in a process of its own, asked over HTTP."""

import http.client
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from carnet.core.messages.events import Event
from carnet.testing import stage
from carnet.testing.address import HOST
from carnet.wire.dialects.engine_chat import EngineReader
from tests.support.commands import CARNET, commands
from tests.support.http import HeaderList, Reply, request
from tests.support.model import Answer, Asked, Model, streamed
from tests.support.organisation import Launched, Organisation

PATH = "/engine/chat"


class EngineProcess(Launched):
    """The engine of an organisation, at an address of its own."""

    def __init__(self, organisation: Organisation) -> None:
        super().__init__(organisation.folder, name="engine")
        self.token = organisation.new_token("asker", "--scope", "admin:engine", "--scope", "tool:*")

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        with Path(os.devnull).open("rb") as nothing:
            fds = (nothing.fileno(), out.fileno(), err.fileno(), self.address.fd)
            return commands().start(CARNET, ("engine", "--fd"), at=self.folder, env=env, fds=fds)

    def _answers(self) -> bool:
        assert self.process is not None, "it was not started"
        assert self.process.poll() is None, self.errors.read_text()
        line = http.client.HTTPConnection(HOST, self.port, timeout=stage.ANSWER_SECONDS)
        with closing(line):
            try:
                line.request("GET", PATH)
                return bool(line.getresponse().status)
            except OSError:
                return False

    def fields(self, token: str | None = None) -> list[tuple[str, str]]:
        return [
            ("authorization", f"Bearer {token or self.token}"),
            ("content-type", "application/json"),
        ]

    def post(
        self,
        body: object,
        *,
        fields: HeaderList | None = None,
        path: str = PATH,
        method: str = "POST",
    ) -> Reply:
        """Send a body, and read all that comes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return request(method, self.url + path, self.fields() if fields is None else fields, data)

    def ask(self, *messages: dict[str, Any], **metadata: Any) -> list[Event]:
        """The events of an answer."""
        return events_of(self.post(asking(*messages, **metadata)))

    def stream(self, *messages: dict[str, Any]) -> "Stream":
        """An answer that is read as it comes."""
        line = http.client.HTTPConnection(HOST, self.port, timeout=stage.ANSWER_SECONDS)
        line.request("POST", PATH, json.dumps(asking(*messages)), dict(self.fields()))
        return Stream(line)


class UnixEngineProcess(EngineProcess):
    """The same, at the file of a socket."""

    def __init__(self, organisation: Organisation) -> None:
        super().__init__(organisation)
        self.place = tempfile.TemporaryDirectory(prefix="carnet-")  # what a socket has is short
        self.file = Path(self.place.name) / "engine.sock"
        self.url = f"unix:{self.file}"

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        with Path(os.devnull).open("rb") as nothing:
            fds = (nothing.fileno(), out.fileno(), err.fileno())
            return commands().start(CARNET, ("engine",), at=self.folder, env=env, fds=fds)

    def _answers(self) -> bool:
        assert self.process is not None, "it was not started"
        assert self.process.poll() is None, self.errors.read_text()
        with socket.socket(socket.AF_UNIX) as line:
            return line.connect_ex(str(self.file)) == 0

    def close(self) -> None:
        super().close()
        self.place.cleanup()


class Stream:
    """One answer on its way."""

    def __init__(self, line: http.client.HTTPConnection) -> None:
        self._line = line
        self._answer = line.getresponse()
        self._reader = EngineReader()

    def events(self) -> Iterator[Event]:
        """Its events as they come."""
        while True:
            try:
                chunk = self._answer.read1(65_536)
            except (http.client.IncompleteRead, ConnectionError):
                chunk = b""
            yield from self._reader.feed(chunk) if chunk else self._reader.close()
            if not chunk:
                self.leave()
                return

    def leave(self) -> None:
        """Hang up."""
        self._answer.close()
        self._line.close()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def asking(*messages: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A request of the contract."""
    given = {"correlation_id": "req_1", **metadata}
    return {"messages": list(messages) or [user("Hi")], "metadata": given}


def events_of(reply: Reply) -> list[Event]:
    """What the stream of an answer says."""
    assert reply.status == 200, (reply.status, reply.body)
    reader = EngineReader()
    return [*reader.feed(reply.body), *reader.close()]


TOOLS = """
from pathlib import Path

PAGES = {"finances": "Budget goal: 100"}


def read_page(name: str) -> str:
    "Reads a page."
    return PAGES[name]


def read_file(path: str) -> str:
    "Reads a file."
    return "# Finances\\nBudget goal: ..."


async def break_down(name: str) -> str:
    "Breaks."
    raise RuntimeError(f"/srv/secret/{name} sk-secret-12345678")
"""
CONFIG = """
[models.small]
url = "{url}/v1"
api_key = {{env = "MODEL_KEY"}}
retries = 0

[engine]
listen = "http://127.0.0.1:0"
tools = ["tools:read_page", "tools:read_file", "tools:break_down"]
max_iterations = 4
"""
KEY = "sk-upstream-12345678"


class Scene:
    """An engine, and the model that it asks."""

    def __init__(self, engine: EngineProcess, model: Model, home: Organisation) -> None:
        self.engine = engine
        self.model = model
        self.home = home

    def replies(self, *answers: Answer) -> None:
        """Answer one after the other; the last one for ever."""
        left = list(answers)

        def reply(_: Asked) -> Answer:
            return left.pop(0) if len(left) > 1 else left[0]

        self.model.asked.clear()
        self.model.reply = reply


def tool_call(name: str, arguments: str, id: str = "c1") -> Answer:
    """A stream that wants a tool called."""
    call = {
        "index": 0,
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}},
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Answer(body=text.encode(), media_type="text/event-stream")


def with_usage(*words: str) -> Answer:
    usage = {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 25}}
    body = streamed(*words).body.replace(
        b"data: [DONE]", f"data: {json.dumps(usage)}\n\ndata: [DONE]".encode()
    )
    return Answer(body=body, media_type="text/event-stream")
