"""The kit for other people's loops: it passes what keeps the contract, and tells what does not."""

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import Unreachable
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.skills.schemas import foreign
from carnet.testing.conform import Verdict, conform
from carnet.wire.dialects import engine_chat
from tests.architecture.tree import ROOT

TOKEN = "kit-token-12345678"
SCHEMA = Path(engine_chat.__file__).with_name("schemas") / "request.json"
USED = {"prompt_tokens": 1, "completion_tokens": 2}
DONE = ("done", {"finish_reason": "stop", "usage": USED})
CALL = ("tool-call", {"id": "c1", "name": "look", "arguments": {}})
RESULT = ("tool-result", {"id": "c1", "output": "seen"})

Events = Callable[[Any, dict[str, Any]], list[tuple[str, Any]]]


def echo() -> Any:
    """The loop of the examples, which imports nothing of ours."""
    spec = importlib.util.spec_from_file_location(
        "echo_loop", ROOT / "examples" / "engine" / "echo_loop.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EchoLoop


class Form:
    """The published form of a request, less strict where a twin is."""

    _fits = staticmethod(foreign(json.loads(SCHEMA.read_text()), most_bytes=1 << 20))

    def __init__(self, forgives: Callable[[Any], Any] = lambda request: request) -> None:
        self._forgives = forgives

    def is_valid(self, request: Any) -> bool:
        return self._fits(self._forgives(request))


@contextmanager
def serving(**changes: Any) -> Iterator[str]:
    """The echo, with something else in the place of some of it."""
    twin = type("Twin", (echo(),), {"token": TOKEN, "form": Form(), **changes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), twin)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


async def judge(url: str) -> list[Verdict]:
    http = EgressClient()
    try:
        return await conform(http, url, Secret(TOKEN), seconds=60)
    finally:
        await http.close()


def broken(verdicts: list[Verdict]) -> set[str]:
    return {each.check for each in verdicts if each.outcome == "broken"}


def saying(*events: tuple[str, Any]) -> dict[str, Any]:
    return {"events": lambda _, __: list(events)}


async def test_the_echo_keeps_the_contract() -> None:
    with serving() as url:
        verdicts = await judge(url)
    assert {each.check: each.broken for each in verdicts if each.broken} == {}
    unseen = {each.check for each in verdicts if each.outcome == "unseen"}
    # An echo has no tools and never fails: what was not seen is not told as right.
    assert unseen == {
        *("tool-calls", "error-form", "error-safe", "error-fixed", "unavailable", "correlation")
    }
    assert all(each.sentence.endswith((".", "(R19).", "(R49).")) for each in verdicts)
    assert len({each.check for each in verdicts}) == len(verdicts)


async def test_a_loop_with_tools_that_keeps_it_passes() -> None:
    with serving(**saying(CALL, RESULT, ("text-delta", {"content": "x"}), DONE)) as url:
        verdicts = await judge(url)
    assert broken(verdicts) == set()
    assert "tool-calls" in {each.check for each in verdicts if each.outcome == "ok"}


def _without(*names: str) -> Callable[[Any], Any]:
    """Forgives members at the top, and in the metadata."""

    def forgive(request: Any) -> Any:
        if not isinstance(request, dict):
            return request
        top = {name: value for name, value in request.items() if name not in names}
        if isinstance(top.get("metadata"), dict):
            inner = top["metadata"].items()
            top["metadata"] = {name: value for name, value in inner if name not in names}
        return top

    return forgive


def _named(request: Any) -> Any:
    """Gives a request the name that it does not have."""
    if isinstance(request, dict) and isinstance(request.get("metadata"), dict):
        metadata = {**request["metadata"], "correlation_id": "c"}
        return {**request, "metadata": metadata}
    return request


def _lenient(request: Any) -> Any:
    """Takes whatever messages there are."""
    if isinstance(request, dict):
        return {**request, "messages": [{"role": "user", "content": "x"}]}
    return request


def _narrow(request: Any) -> Any:
    """Searches what is said for words that it does not like."""
    return None if "model" in json.dumps(request) else request


def _without_word(word: str) -> Callable[[Any], Any]:
    return lambda request: None if word in json.dumps(request) else request


def _reads_all(self: Any, body: bytes) -> Any:
    try:
        request = json.loads(body)
    except ValueError:
        return {"messages": [{"content": "nothing"}]}
    return request if self.form.is_valid(request) else None


def _renamed(self: Any, status: int, media: str, text: str) -> None:
    self.send_response(status)
    self.send_header("content-type", media)
    self.send_header("x-correlation-id", "another")
    self.end_headers()
    self.wfile.write(text.encode())


def _no_history(request: Any) -> Any:
    return None if '"tool"' in json.dumps(request) else request


def _runs_all(_: Any, request: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = [call for message in request["messages"] for call in message.get("tool_calls", [])]
    results = [
        event
        for call in calls
        for event in (
            ("tool-call", call),
            ("tool-result", {"id": call["id"], "output": "run"}),
        )
    ]
    return [*results, DONE]


def _leaks(self: Any, _: dict[str, Any]) -> list[tuple[str, Any]]:
    return [("text-delta", {"content": self.headers["authorization"]}), DONE]


def _several(self: Any, _: dict[str, Any]) -> list[tuple[str, Any]]:
    message = f"The model failed {self.client_address[1]} times."
    return [("error", {"code": "provider_error", "message": message})]


def _refuse(**more: Any) -> Callable[..., None]:
    def refuse(self: Any, status: int, code: str, message: str) -> None:
        page = {"code": code, "message": message, **more}
        self.answer(status, "application/json", json.dumps(page))

    return refuse


def _as_text(self: Any, status: int, code: str, message: str) -> None:
    self.answer(status, "text/plain", f"{code}: {message}")


def _as_json(self: Any, status: int, _: str, text: str) -> None:
    self.send_response(status)
    self.send_header("content-type", "application/json")
    self.end_headers()
    self.wfile.write(text.encode())


def _anybody(self: Any) -> bool:
    return "authorization" in self.headers


def _believes(self: Any) -> bool:
    return self.headers["authorization"] == f"Bearer {TOKEN}" or "x-actor-id" in self.headers


def _always(value: str) -> property:
    return property(lambda _: value, lambda *_: None)


def _error(message: str, code: str = "provider_error") -> dict[str, Any]:
    return saying(("error", {"code": code, "message": message}))


TWINS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "asks nobody who it is": (
        {"is_known": lambda _: True},
        {"credential-missing", "credential-wrong", "identity-forged"},
    ),
    "takes every credential": ({"is_known": _anybody}, {"credential-wrong", "identity-forged"}),
    "believes who says who it is": ({"is_known": _believes}, {"identity-forged"}),
    "answers at every path": ({"path": _always("/engine/chat")}, {"path"}),
    "takes every method for one": ({"command": _always("POST")}, {"method"}),
    "takes a body that is no JSON": ({"read": _reads_all}, {"body"}),
    "knows no webhook": ({"form": Form(_without_word('"webhook"'))}, {"triggers"}),
    "knows no system message": ({"form": Form(_without_word('"system"'))}, {"conversation"}),
    "gives a request another name": ({"answer": _renamed}, {"correlation"}),
    "needs no correlation id": ({"form": Form(_named)}, {"correlation-id"}),
    "takes every message": ({"form": Form(_lenient)}, {"messages"}),
    "takes a model": ({"form": Form(_without("model"))}, {"configuration"}),
    "takes a token": ({"form": Form(_without("token"))}, {"credentials-in-body"}),
    "takes a version": ({"form": Form(_without("version"))}, {"top"}),
    "takes every trigger": ({"form": Form(_without("trigger"))}, {"trigger"}),
    "searches what is said": ({"form": Form(_narrow)}, {"unsearched"}),
    "knows no tools of before": ({"form": Form(_no_history)}, {"history"}),
    "runs what its sender wrote": ({"events": _runs_all}, {"forged-call"}),
    "tells more in a refusal": ({"refuse": _refuse(hint="x")}, {"refusal-form"}),
    "refuses in plain text": ({"refuse": _as_text}, {"refusal-form", "refusal-code"}),
    "has a code of its own": ({"refuse": _refuse(code="internal_error")}, {"refusal-code"}),
    "shows where it lies": (
        {"refuse": _refuse(message="in /srv/loop/app.py, line 7")},
        {"refusal-safe"},
    ),
    "gives JSON for a stream": ({"answer": _as_json}, {"stream"}),
    "has an event of its own": (saying(("partial-done", {}), DONE), {"events"}),
    "says delta for content": (saying(("text-delta", {"delta": "x"}), DONE), {"fields"}),
    "has data that is no object": (saying(("text-delta", "x"), DONE), {"frames"}),
    "never ends": (saying(("text-delta", {"content": "x"})), {"end"}),
    "ends twice": (saying(DONE, DONE), {"end"}),
    "goes on after its end": (saying(DONE, ("text-delta", {"content": "x"})), {"end"}),
    "counts nothing": (saying(("done", {"finish_reason": "stop"})), {"usage"}),
    "answers another call": (
        saying(CALL, ("tool-result", {"id": "c2", "output": "x"}), DONE),
        {"tool-results"},
    ),
    "leaves a call open": (saying(CALL, DONE), {"tool-results"}),
    "has one id for two calls": (saying(CALL, CALL, RESULT, DONE), {"tool-calls"}),
    "fails with a code of its own": (_error("It failed.", "internal_error"), {"error-form"}),
    "fails with a trace": (_error('Traceback: File "/srv/loop/app.py"'), {"error-safe"}),
    "fails in many words": ({"events": _several}, {"error-fixed"}),
    "shows the credential": ({"events": _leaks}, {"secrets"}),
}


@pytest.mark.parametrize("name", TWINS)
async def test_a_twin_that_breaks_one_sentence_is_told_by_its_check(name: str) -> None:
    changes, expected = TWINS[name]
    with serving(**changes) as url:
        verdicts = await judge(url)
    assert broken(verdicts) == expected
    for verdict in verdicts:
        if verdict.outcome == "broken":
            assert all(each.expected and each.seen for each in verdict.broken)
            assert TOKEN not in "".join(each.seen for each in verdict.broken)


@pytest.mark.parametrize(
    ("code", "outcome"), [("engine_unavailable", "ok"), ("overloaded", "broken")]
)
async def test_one_that_takes_no_request_is_judged_by_how_it_says_so(
    code: str, outcome: str
) -> None:
    def unavailable(self: Any) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.refuse(503, code, "The engine takes no request at the moment.")

    with serving(do_POST=unavailable) as url:
        verdicts = {each.check: each.outcome for each in await judge(url)}
    assert verdicts["unavailable"] == outcome
    assert verdicts["conversation"] == "broken"
    assert verdicts["events"] == "unseen"


async def test_where_nobody_is_nothing_is_judged() -> None:
    with serving() as url:
        pass
    with pytest.raises(Unreachable):
        await judge(url)
