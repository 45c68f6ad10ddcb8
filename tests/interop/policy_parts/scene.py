"""An agent that answers by policy parts, as a test says, and a gateway that calls it over A2A."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx

from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.model import Answer, Asked, Model
from tests.support.organisation import Organisation

POLICY = "https://mentionable.dev/ns/policy/v0.1"
ALIAS = "https://mentionable.dev/spec/policy/v0.1"
TOOLS = "https://mentionable.dev/ns/a2a-tool-events/v0.1"
STATE = "st_8f2c-S"
Binding = Literal["rpc", "http"]

# The same agent by four cards: by its binding, with the extension and without, by its old name.
CARDS = ("paid-search", "paid-rest", "silent", "former", "translator")
CONFIG = (
    "".join(
        f'[agents.{name}]\nkind = "a2a"\nurl = "{{url}}/{name}"\ntimeout = 20\nretries = 2\n'
        for name in CARDS
    )
    + """
[agents.orchestrator]
kind = "orchestrator"
agents = ["paid-search", "translator"]

[agents.asks]
kind = "python"
target = "policies:asks"

[agents.sells]
kind = "python"
target = "policies:sells"

[agents.fans]
kind = "python"
target = "policies:fans"

[agents.uses]
kind = "python"
target = "policies:uses"
"""
)
AGENTS = """
import carnet


async def asks(visit: carnet.Visit) -> str:
    kind, _, url = visit.text.partition(" ")
    given = {"sign_in": url} if kind == "sign_in" else {kind: "May I?", "url": url or None}
    answer = await visit.interrupt(**given)
    return f"{answer.outcome} {answer.value}"


async def sells(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(payment="0.5", message="Half a credit.", expires=3600)
    return "the report" if answer.accepted else "no report"


async def fans(visit: carnet.Visit) -> str:
    answers = await visit.fan_out(["paid-search", "translator"], visit.text)
    return " and ".join(answer.text for answer in answers)


async def uses(visit):
    async for event in visit.peer("paid-search")(visit.text):
        yield event
"""

Replying = Callable[[Asked], dict[str, Any]]


class Sent(NamedTuple):
    """What was sent to an agent."""

    message: dict[str, Any]
    agent: str = ""

    @property
    def resolution(self) -> dict[str, Any] | None:
        found = (self.message.get("metadata") or {}).get("mentionable") or {}
        resolution: dict[str, Any] | None = found.get("policy_resolution")
        return resolution

    @property
    def text(self) -> str:
        return "".join(part.get("text", "") for part in self.message["parts"])


class Scene(NamedTuple):
    """A gateway, and the agent elsewhere."""

    gateway: Organisation
    peer: Model

    @property
    def sent(self) -> list[Sent]:
        """The messages that the agent was sent, in order."""
        return [found for each in self.peer.asked if (found := sent_by(each)) is not None]

    def replies(self, reply: Callable[[Sent], dict[str, Any]]) -> None:
        """Let the agent answer a message so; a task stays as it was answered.

        One that has an `error` is refused, over HTTP with its `status`.
        """
        self.peer.asked.clear()
        tasks: list[dict[str, Any]] = []  # the last one

        def answer(asked: Asked) -> Answer:
            if "agent-card" in asked.path:
                return Answer(body=card(asked.path.split("/")[1], self.peer.url))
            is_rpc, sent = "jsonrpc" in asked.body, sent_by(asked)
            if sent is not None:
                result = reply(sent)
                tasks[:] = [result["task"]] if "task" in result else tasks
            else:
                result = tasks[-1]
            if "error" in result:
                return refusal(result, is_rpc=is_rpc)
            body = {"jsonrpc": "2.0", "id": "1", "result": result} if is_rpc else result
            return Answer(body=json.dumps(body).encode())

        self.peer.reply = answer

    def inbox(self) -> list[dict[str, Any]]:
        page: list[dict[str, Any]] = self.gateway.get("/approvals").json["approvals"]
        return page

    def again(self, waits: Reply, agent: str, text: str, *headers: tuple[str, str]) -> Reply:
        same = [(name, waits.headers[name]) for name in ("x-tangle-runid", "x-tangle-turnid")]
        return self.gateway.chat(text, agent, headers=[*same, *headers])


def sent_by(asked: Asked) -> Sent | None:
    """The message of a request, if it has one."""
    given = asked.body.get("params", asked.body)
    return Sent(given["message"], asked.path.split("/")[1]) if "message" in given else None


def refusal(result: dict[str, Any], *, is_rpc: bool) -> Answer:
    """An error in the form of its binding; what is no object of A2A goes as it is."""
    error, status = result["error"], result.get("status", 409)
    if is_rpc:
        frame = {"jsonrpc": "2.0", "id": "1", "error": error}
        return Answer(body=json.dumps(frame).encode())
    body = error if "kind" in error else {"error": {**error, "code": status}}
    return Answer(status, json.dumps(body).encode())


def fresh() -> str:
    """A state that nobody has issued before."""
    return f"st_8f2c-{os.getpid()}-{next(_numbers)}"


def card(name: str, url: str) -> bytes:
    binding = "HTTP+JSON" if name == "paid-rest" else "JSONRPC"
    interface = {"url": f"{url}/{name}", "protocolBinding": binding, "protocolVersion": "1.0"}
    uri = {"silent": "urn:another:v1", "former": ALIAS}.get(name, POLICY)
    extensions = [{"uri": uri}, {"uri": TOOLS}]
    page = {
        "name": name,
        "version": "1",
        "capabilities": {"streaming": False, "extensions": extensions},
        "supportedInterfaces": [interface],
        "skills": [],
    }
    return json.dumps(page).encode()


def spoken(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An answer that is a message."""
    return {"message": {"messageId": "m-1", "role": "ROLE_AGENT", "parts": [*parts], **more}}


def task(state: str, *parts: dict[str, Any], name: str = "t-1", **more: Any) -> dict[str, Any]:
    """An answer that is a task, with words beside its status."""
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if parts:
        status["message"] = {"messageId": f"m-{name}", "role": "ROLE_AGENT", "parts": [*parts]}
    return {"task": {"id": name, "contextId": "c-1", "status": status, **more}}


def policy(kind: str, **more: Any) -> dict[str, Any]:
    """A data part that is a policy part."""
    return {"data": {"kind": kind, "message": f"Please: {kind}.", **more}}


@contextmanager
def played(folder: Path, database: str = "", more: str = "") -> Iterator[Scene]:
    gateway = organisation(folder / "acme", "acme.example", database)
    with Model().serving() as peer:
        (gateway.folder / "policies.py").write_text(AGENTS)
        gateway.configure((CONFIG + more).replace("{url}", peer.url))
        scene = Scene(gateway, peer)
        scene.replies(lambda _: spoken({"text": "well"}))
        gateway.start()
        yield scene
        gateway.stop()


_numbers = itertools.count()


def send(
    gateway: Organisation,
    agent: str,
    text: str = "hello",
    *,
    binding: Binding = "rpc",
    uris: str = POLICY,
    token: str | None = None,
    params: dict[str, Any] | None = None,
    stream: bool = False,
    **more: Any,
) -> httpx.Response:
    """Send a message over A2A, as somebody who speaks Mentionable does."""
    message = {
        "messageId": f"m-{os.getpid()}-{next(_numbers)}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        **more,
    }
    fields = {"authorization": f"Bearer {token or gateway.token}", "a2a-version": "1.0"}
    fields |= {"a2a-extensions": uris} if uris else {}
    given = {"message": message, **(params or {})}
    url = f"{gateway.url}/agents/{agent}/a2a"
    if binding == "http":
        way = "stream" if stream else "send"
        return httpx.post(f"{url}/message:{way}", json=given, headers=fields, timeout=60)
    method = "SendStreamingMessage" if stream else "SendMessage"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    return httpx.post(url, json=body, headers=fields, timeout=60)


def task_of(answer: httpx.Response) -> dict[str, Any]:
    body = answer.json()
    found: dict[str, Any] = body.get("result", body)["task"]
    return found


def parts_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The policy parts that a task is told with."""
    parts = task_of(answer)["status"]["message"]["parts"]
    return [part["data"] for part in parts if "data" in part]


def text_of(answer: httpx.Response) -> str:
    artifacts = task_of(answer).get("artifacts", ())
    return "".join(part.get("text", "") for each in artifacts for part in each["parts"])


def code_of(answer: httpx.Response) -> tuple[int, str]:
    """The status of HTTP, and our own code."""
    error = answer.json()["error"]
    details = error.get("data") or error["details"]
    return answer.status_code, details[0]["metadata"]["code"]


def resolves(state: str, **more: Any) -> dict[str, Any]:
    return {"mentionable": {"policy_resolution": {"in_reply_to_state": state, **more}}}
