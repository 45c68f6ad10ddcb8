"""One caller for each dialect: what it can say, and what it hears, in words that all share."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import Struct

import carnet
from carnet.runtime.system import SystemIds
from carnet.testing.wait import until
from tests.interop.matrix.scene import Pair
from tests.support.a2a.wire import VERSION, Line, message
from tests.support.agents_api import client as agents_api
from tests.support.http import HeaderList, Reply, request

FILE: Final = base64.b64encode(b"hello").decode()


class Answered(Struct, kw_only=True):
    """What a caller was told."""

    text: str = ""
    pieces: int = 0  # that the text came in
    data: list[Any] = []
    files: list[str] = []
    tools: list[str] = []  # names of tools that the agent says to have used
    asked: tuple[str, str] | None = None  # kind and words of what it waits for
    code: str | None = None  # our own name of a failure
    run: str | None = None
    cost: str | None = None
    answer: Callable[[], "Answered"] | None = None  # says yes to what is asked
    raw: bytes = b""


class Caller(Protocol):
    """Somebody who calls in one dialect, at some depth of a chain."""

    depth: int

    def say(self, pair: Pair, agent: str, text: str, with_part: str | None = None) -> Answered:
        """A whole answer; `with_part` adds a part, `data` or `file`."""

    def stream(self, pair: Pair, agent: str, text: str) -> Answered:
        """An answer as it comes."""

    def recall(self, pair: Pair, agent: str) -> Answered | None:
        """An answer to the second message of a conversation, of which the first is told as well."""

    def task(self, pair: Pair, agent: str, text: str) -> Answered | None:
        """The end of a task that was handed over; None where there are none."""


# ---------------------------------------------------------------------- chat completions


class Chat:
    """Chat completions, with or without the headers of Tangle."""

    depth = 0

    def __init__(self, *, is_chained: bool) -> None:
        self._is_chained = is_chained
        self._turns = 0

    def say(self, pair: Pair, agent: str, text: str, with_part: str | None = None) -> Answered:
        content: Any = text
        if with_part is not None:
            part = {"type": "file", "file": {"file_data": f"data:text/plain;base64,{FILE}"}}
            content = [{"type": "text", "text": text}, *([part] if with_part == "file" else [])]
        return self._answered(pair, {"model": agent, "messages": [_user(content)]})

    def stream(self, pair: Pair, agent: str, text: str) -> Answered:
        body = {"model": agent, "messages": [_user(text)], "stream": True}
        return self._answered(pair, body)

    def recall(self, pair: Pair, agent: str) -> Answered | None:
        messages = [_user("first"), {"role": "assistant", "content": "between"}, _user("second")]
        return self._answered(pair, {"model": agent, "messages": messages})

    def task(self, pair: Pair, agent: str, text: str) -> Answered | None:
        body = {"model": agent, "messages": [_user(text)]}
        begun = self._send(pair, body, (), path="/tasks")
        assert begun.status == 202, begun
        path = f"/tasks/{begun.json['taskId']}"
        page = until(
            lambda: pair.front.get(path).json, lambda page: page["status"] in {"done", "failed"}
        )
        answered = Answered(
            text=(page.get("result") or {}).get("text", ""), raw=json.dumps(page).encode()
        )
        answered.code = page["code"]
        return answered

    def _send(
        self, pair: Pair, body: dict[str, Any], more: Any, *, path: str = "/v1/chat/completions"
    ) -> Reply:
        fields = [
            ("authorization", f"Bearer {pair.front.token}"),
            ("content-type", "application/json"),
            *more,
        ]
        return request("POST", pair.front.url + path, fields, json.dumps(body).encode())

    def _answered(self, pair: Pair, body: dict[str, Any]) -> Answered:
        self._turns += 1
        name = f"matrix-{self._turns}"
        ids: list[tuple[str, str]] = []
        if self._is_chained:
            ids = [("x-tangle-runid", name), ("x-tangle-turnid", f"{name}.t0.asks")]
        return self._read(pair, body, ids, self._send(pair, body, ids))

    def _read(self, pair: Pair, body: dict[str, Any], ids: Any, reply: Reply) -> Answered:
        answered = Answered(raw=reply.body, run=reply.headers.get("x-tangle-runid"))
        if reply.headers["content-type"].startswith("text/event-stream"):
            return _chunks(answered, reply)
        found = reply.json
        if reply.status != 200:
            answered.code = found["code"]
            asked = found["error"].get("interrupt")
            if asked is not None:
                answered.asked = (asked["kind"], asked["message"])
                answered.answer = lambda: self._read(
                    pair, body, ids, self._again(pair, body, reply)
                )
            return answered
        reply_message = found["choices"][0]["message"]
        answered.text, answered.cost = reply_message["content"] or "", found["usage"].get("cost")
        answered.tools = [
            each["function"]["name"] for each in reply_message.get("tool_calls") or []
        ]
        answered.tools += [each["name"] for each in found.get("carnet", {}).get("tools", [])]
        return answered

    def _again(self, pair: Pair, body: dict[str, Any], reply: Reply) -> Reply:
        state = reply.json["error"]["interrupt"]["state"]
        names = ("x-tangle-runid", "x-tangle-turnid")
        more = [(name, reply.headers[name]) for name in names]
        return self._send(pair, body, [*more, ("carnet-resolution", f"{state};outcome=accepted")])


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _chunks(answered: Answered, reply: Reply) -> Answered:
    for line in reply.body.splitlines():
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        if "error" in chunk:
            answered.code = chunk["error"]["code"]
        for choice in chunk.get("choices", ()):
            piece = choice["delta"].get("content")
            answered.text += piece or ""
            answered.pieces += bool(piece)
            calls = choice["delta"].get("tool_calls") or []
            answered.tools += [each["function"]["name"] for each in calls]
    return answered


# ---------------------------------------------------------------------- SAMVAD


class Signs:
    """Signed envelopes, by our own client of that dialect."""

    depth = 0

    def say(self, pair: Pair, agent: str, text: str, with_part: str | None = None) -> Answered:
        del with_part
        return asyncio.run(self._say(pair, agent, text))

    def stream(self, pair: Pair, agent: str, text: str) -> Answered:
        return asyncio.run(self._stream(pair, agent, text))

    def recall(self, pair: Pair, agent: str) -> Answered | None:
        del pair, agent
        return None

    def task(self, pair: Pair, agent: str, text: str) -> Answered | None:
        return asyncio.run(self._task(pair, agent, text))

    def _client(self, pair: Pair, agent: str) -> carnet.Client:
        return carnet.connect(
            f"{pair.front.url}/agents/{agent}",
            key=pair.key,
            token=pair.front.token,
            identity=f"agent://{agent}.acme.example",
        )

    async def _say(self, pair: Pair, agent: str, text: str) -> Answered:
        run = SystemIds().uuid()
        async with self._client(pair, agent) as client:
            try:
                result = await client.within(trace_id=run).call("chat", text=text)
            except carnet.CarnetError as error:
                answered = _failure(error)
                if error.interrupts:
                    done = _result(await client.answer(error.interrupts[0]), run)
                    answered.answer = lambda: done
                return answered
            return _result(result, run)

    async def _stream(self, pair: Pair, agent: str, text: str) -> Answered:
        answered = Answered()
        async with self._client(pair, agent) as client:
            try:
                async for event in client.stream("chat", text=text):
                    if isinstance(event, carnet.Text):
                        answered.text += event.text
                        answered.pieces += 1
            except carnet.CarnetError as error:
                answered = _failure(error)
        return answered

    async def _task(self, pair: Pair, agent: str, text: str) -> Answered:
        async with self._client(pair, agent) as client:
            try:
                result = await (await client.task("chat", text=text)).result()
                return _result(result, None)
            except carnet.CarnetError as error:
                return _failure(error)


def _result(result: dict[str, Any], run: str | None) -> Answered:
    return Answered(text=str(result.get("text", "")), raw=json.dumps(result).encode(), run=run)


def _failure(error: carnet.CarnetError) -> Answered:
    answered = Answered(
        code=str(error.facts.get("peer_reason") or error.code), raw=str(error).encode()
    )
    if error.interrupts:
        answered.asked = (error.interrupts[0].kind, error.interrupts[0].message)
    return answered


# ---------------------------------------------------------------------- A2A

TOOL_EVENTS: Final = "https://mentionable.dev/ns/a2a-tool-events/v0.1"
INTERRUPT: Final = "urn:carnet:a2a:interrupt:v1"


class Tasks:
    """A2A, in one of its bindings."""

    depth = 0

    fields: HeaderList = (VERSION,)

    def __init__(self, binding: str) -> None:
        self._binding = binding

    def say(self, pair: Pair, agent: str, text: str, with_part: str | None = None) -> Answered:
        asked = message(text)
        if with_part == "data":
            asked["message"]["parts"].append({"data": {"city": "Oslo"}})
        if with_part == "file":
            part = {"raw": FILE, "filename": "hello.txt", "mediaType": "text/plain"}
            asked["message"]["parts"].append(part)
        return self._send(pair, agent, asked)

    def stream(self, pair: Pair, agent: str, text: str) -> Answered:
        line = self._line(pair, agent)
        answered = Answered()
        for event in line.stream(self._binding, "SendStreamingMessage", **message(text)):
            update = event.get("artifactUpdate")
            if update is not None:
                _artifact(answered, update["artifact"])
                answered.pieces += 1
            status = event.get("statusUpdate", {}).get("status")
            if status is not None:
                _status(answered, status)
        return answered

    def recall(self, pair: Pair, agent: str) -> Answered | None:
        line = self._line(pair, agent)
        first = line.task(self._binding, "first")
        return self._send(pair, agent, message("second", contextId=first["contextId"]))

    def task(self, pair: Pair, agent: str, text: str) -> Answered | None:
        line = self._line(pair, agent)
        configuration = {"returnImmediately": True}
        begun = line.result(
            self._binding, "SendMessage", configuration=configuration, **message(text)
        )["task"]
        ended = until(
            lambda: line.result(self._binding, "GetTask", id=begun["id"]),
            lambda task: task["status"]["state"] not in _GOING,
        )
        return _task(ended)

    def _line(self, pair: Pair, agent: str) -> Line:
        return Line(pair.front.url, pair.front.token, agent)

    def _send(self, pair: Pair, agent: str, asked: dict[str, Any]) -> Answered:
        line = self._line(pair, agent)
        reply = line.ask(self._binding, "SendMessage", fields=self.fields, **asked)
        found = reply.json.get("result", reply.json)
        if "error" in found:
            details = found["error"].get("data") or found["error"].get("details") or []
            words = json.dumps(details)
            return Answered(code=words, raw=reply.body)
        answered = _task(found["task"])
        answered.raw = reply.body
        if answered.asked is not None:
            task = found["task"]["id"]
            answered.answer = lambda: self._send(pair, agent, message("yes", taskId=task))
        return answered


_GOING: Final = frozenset({"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"})


def _task(task: dict[str, Any]) -> Answered:
    answered = Answered(raw=json.dumps(task).encode())
    for artifact in task.get("artifacts", ()):
        _artifact(answered, artifact)
    _status(answered, task["status"])
    used = (task.get("metadata") or {}).get("urn:carnet:a2a:usage:v1") or {}
    answered.cost = used.get("cost")
    chain = (task.get("metadata") or {}).get("urn:carnet:a2a:chain:v1") or {}
    answered.run = chain.get("run")
    return answered


def _artifact(answered: Answered, artifact: dict[str, Any]) -> None:
    for part in artifact["parts"]:
        answered.text += part.get("text", "")
        answered.data += [part["data"]] if "data" in part else []
        answered.files += [part["filename"]] if "filename" in part else []


def _status(answered: Answered, status: dict[str, Any]) -> None:
    message = status.get("message") or {}
    events = [part.get("data", {}) for part in message.get("parts", ())]
    answered.tools += [each["toolName"] for each in events if each.get("type") == "tool-call"]
    metadata = message.get("metadata") or {}
    asked = metadata.get(INTERRUPT)
    if asked is not None and status["state"] == "TASK_STATE_INPUT_REQUIRED":
        first = (asked.get("interrupts") or [asked])[0]
        answered.asked = (first["kind"], first["message"])
    if status["state"] in {"TASK_STATE_FAILED", "TASK_STATE_REJECTED"}:
        answered.code = status["state"]


class Mentions(Tasks):
    """A2A with the chain of Mentionable, one hop below a person's front, and its tool events."""

    depth = 1
    fields = (VERSION, ("a2a-extensions", TOOL_EVENTS))

    def _send(self, pair: Pair, agent: str, asked: dict[str, Any]) -> Answered:
        chain = {"agent_chain": {"hop": 1, "max_hops": 4, "is_final": False}}
        asked["message"].setdefault("metadata", {"mentionable": chain})
        return super()._send(pair, agent, asked)


# ---------------------------------------------------------------------- agents-api


class Actions:
    """agents-api by JSON-RPC, by a client that is not ours."""

    depth = 0

    def say(self, pair: Pair, agent: str, text: str, with_part: str | None = None) -> Answered:
        part: list[dict[str, Any]] = []
        if with_part == "file":
            given = {"name": "hello.txt", "mimeType": "text/plain", "bytes": FILE}
            part = [{"type": "file", "file": given}]
        return self._sent(pair, agent, agents_api.message(text, *part))

    def stream(self, pair: Pair, agent: str, text: str) -> Answered:
        answered = Answered()
        asked = agents_api.message(text)
        for frame in self._client(pair).stream(agent, asked, tokenStreaming=True):
            delta = frame.get("params", {}).get("delta", {})
            if delta.get("deltaType") == "content":
                answered.text += delta["content"]
                answered.pieces += 1
        return answered

    def recall(self, pair: Pair, agent: str) -> Answered | None:
        earlier = [
            agents_api.data({"role": "user", "text": "first"}),
            agents_api.data({"role": "agent", "text": "between"}),
        ]
        return self._sent(pair, agent, agents_api.message(*earlier, "second"))

    def task(self, pair: Pair, agent: str, text: str) -> Answered | None:
        del pair, agent, text
        return None

    def _client(self, pair: Pair) -> agents_api.Client:
        return agents_api.Client(pair.front.url, pair.front.token)

    def _sent(self, pair: Pair, agent: str, asked: dict[str, Any]) -> Answered:
        reply = self._client(pair).ask(agent, "message/send", asked)
        answered = Answered(raw=reply.body, run=reply.headers.get("x-tangle-runid"))
        if "error" in reply.json:
            answered.code = str(reply.json["error"])
            return answered
        return self._read(pair, agent, reply.json["result"], answered)

    def _read(self, pair: Pair, agent: str, task: dict[str, Any], answered: Answered) -> Answered:
        waiting = agents_api.actions(task)
        if waiting:
            kind, words, name = (waiting[0][each] for each in ("kind", "summary", "action_id"))
            answered.asked = (kind, words)
            answered.answer = lambda: self._decided(pair, agent, name)
            return answered
        for part in task["status"]["message"]["parts"]:
            answered.text += part.get("text", "")
            answered.data += [part["data"]] if "data" in part else []
            answered.files += [part["file"]["name"]] if "file" in part else []
        return answered

    def _decided(self, pair: Pair, agent: str, action: str) -> Answered:
        found = self._client(pair).decide(agent, action)
        return self._read(pair, agent, found["result"], Answered())


CALLERS: Final[dict[str, Caller]] = {
    "openai": Chat(is_chained=False),
    "tangle": Chat(is_chained=True),
    "samvad": Signs(),
    "a2a": Tasks("JSONRPC"),
    "a2a_http": Tasks("HTTP+JSON"),
    "mentionable": Mentions("JSONRPC"),
    "agents_api": Actions(),
}
