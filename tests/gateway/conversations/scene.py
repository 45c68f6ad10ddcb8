"""A person and her conversations at a real gateway."""

import itertools
import json
from collections.abc import Generator, Iterator
from typing import Any

from msgspec import Struct

from tests.support.http import HeaderList, Reply, request, stream
from tests.support.model import Answer, Model
from tests.support.organisation import Organisation

AGENTS = '''
import asyncio
from pathlib import Path

import carnet

GATE = Path(__file__).with_name("gate.txt")
RAN = Path(__file__).with_name("ran.txt")


def note(word: str) -> str:
    with RAN.open("a") as ran:
        ran.write(word + "\\n")
    return word


async def opened() -> None:
    while not GATE.exists():
        await asyncio.sleep(0.02)


async def echo(visit: carnet.Visit):
    """Say it again, in two pieces."""
    note(visit.text)
    yield "You said: "
    yield visit.text


async def recall(visit: carnet.Visit) -> str:
    """Tell what was said before."""
    return " | ".join(f"{each.role}: {each.text}" for each in visit.messages)


async def slow(visit: carnet.Visit):
    """Say something, and go on when somebody opens the gate."""
    note(f"slow {visit.text}")
    yield "half "
    await opened()
    yield "whole"


async def broken(visit: carnet.Visit):
    """Fail after some words."""
    yield "so far "
    raise RuntimeError("secret words of an error")


async def flaky(visit: carnet.Visit) -> str:
    """Fail until the gate is open."""
    note(f"flaky {visit.text}")
    if not GATE.exists():
        raise RuntimeError("not yet")
    return "at last"


async def asks(visit: carnet.Visit) -> str:
    """Ask for leave."""
    answer = await visit.interrupt(approval=f"May I {visit.text}?")
    if visit.text == "wait":
        note("asks wait")
        await opened()
    return f"{answer.outcome} {visit.text}"


async def critic(visit: carnet.Visit) -> str:
    """Judge it."""
    return f"weak: {visit.text}"


async def through(visit: carnet.Visit) -> str:
    """Have another agent do it."""
    return await visit.peer("keeper").ask(visit.text)


async def chair(visit: carnet.Visit) -> str:
    """Say who should be asked."""
    return f"Let us hear @critic about {visit.text}."


def read_page(name: str) -> str:
    "Reads a page."
    return f"The page {name} says 100."


def send_mail(to: str) -> str:
    "Sends a mail."
    note(f"mail {to}")
    return "sent"


async def brief(visit: carnet.Visit) -> str:
    """Ask for leave, for a moment."""
    await visit.interrupt(approval="May I?", expires=0.3)
    return note(f"brief {visit.text}")
'''
NAMES = ("recall", "slow", "broken", "flaky", "asks", "brief", "critic", "through", "chair")
CONFIG = (
    "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES)
    + """
[agents.paid]
kind = "python"
target = "agents:echo"
price = "0.25"

[agents.assistant]
kind = "engine"
system = "Be brief."

[agents.panel]
kind = "orchestrator"

[agents.keeper]
kind = "engine"
tools = ["memory", "search_conversations", "agents:send_mail"]

[agents.narrow]
kind = "engine"
model = "narrow"

[models.small]
url = "{url}/v1"
retries = 0

[models.narrow]
url = "{url}/v1"
window = 1000

[engine]
model = "small"
tools = ["agents:read_page", "agents:send_mail"]
ask_before = ["send_mail"]

[owner]
agent = "echo"
orchestrator = "panel"
model_context = ["path"]
tool_context = ["path"]
"""
)
OF_PEOPLE = ("call:*", "pay", "run:read", "run:cancel")
SCOPES = [word for scope in (*OF_PEOPLE, "tool:*") for word in ("--scope", scope)]
numbers = itertools.count()


class Frame(Struct, frozen=True):
    """One event of a stream."""

    event: str
    data: dict[str, Any]


def frames_of(body: bytes) -> list[Frame]:
    found: list[Frame] = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if "event" in fields:
            found.append(Frame(fields["event"], json.loads(fields["data"])))
    return found


class StreamReply(Struct, frozen=True):
    """The answer to a message."""

    reply: Reply
    frames: list[Frame]

    @property
    def text(self) -> str:
        return "".join(each.data["delta"] for each in self.frames if each.event == "text-delta")

    @property
    def events(self) -> list[str]:
        return [each.event for each in self.frames]

    @property
    def end(self) -> dict[str, Any]:
        assert self.events[-1] in {"done", "error"}, self.reply.body
        return self.frames[-1].data

    @property
    def conversation(self) -> str:
        return self.reply.headers["x-conversation-id"]

    @property
    def message(self) -> str:
        return self.reply.headers["x-message-id"]


class Person:
    """Somebody with a token, and what she does."""

    model: Model

    def __init__(self, home: Organisation, model: Model | None = None, name: str = "user") -> None:
        self.home = home
        if model is not None:
            self.model = model
        self.name = f"{name}-{next(numbers)}"
        self.token = home.new_token(self.name, *SCOPES)

    def another(self) -> "Person":
        return Person(self.home, self.model)

    def as_owner(self, *scopes: str) -> None:
        """Show a token of a person from now on, and not one of a service."""
        tools = [word for each in scopes if "tool:" in each for word in ("--permission", each)]
        self.home.carnet("people", "add", self.name, *tools)
        words = [word for scope in (*OF_PEOPLE, *scopes) for word in ("--scope", scope)]
        self.token = self.home.new_token(f"{self.name}-own", "--person", self.name, *words)

    def replies(self, *answers: Answer) -> None:
        left = list(answers)
        self.model.asked.clear()
        self.model.reply = lambda _: left.pop(0) if len(left) > 1 else left[0]

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]

    def _named(self, conversation: str | None) -> HeaderList:
        return [] if conversation is None else [("x-conversation-id", conversation)]

    def say(
        self, content: str = "hello", conversation: str | None = None, **more: Any
    ) -> StreamReply:
        reply = self.post("/message", {"content": content, **more}, self._named(conversation))
        return StreamReply(reply, frames_of(reply.body) if reply.status == 200 else [])

    def saying(
        self, content: str, conversation: str | None = None, **more: Any
    ) -> Generator[bytes, None, None]:
        body = json.dumps({"content": content, **more}).encode()
        fields = [*self.fields, *self._named(conversation)]
        yield from stream("POST", f"{self.home.url}/message", fields, body)

    def following(self, path: str) -> Generator[bytes, None, None]:
        """An answer that was asked for before, as it comes."""
        yield from stream("GET", f"{self.home.url}{path}", self.fields)

    def post(self, path: str, body: object = None, more: HeaderList = ()) -> Reply:
        data = b"" if body is None else json.dumps(body).encode()
        return request("POST", f"{self.home.url}{path}", [*self.fields, *more], data)

    def ask(self, path: str, body: object = None) -> StreamReply:
        """Something that is answered by a stream."""
        reply = self.post(path, body)
        return StreamReply(reply, frames_of(reply.body) if reply.status == 200 else [])

    def send(self, method: str, path: str, body: object = None) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        return request(method, f"{self.home.url}{path}", self.fields, data)

    def get(self, path: str) -> Reply:
        return self.home.get(path, token=self.token)

    def opens_gate(self) -> None:
        (self.home.folder / "gate.txt").write_text("")

    def closes_gate(self) -> None:
        (self.home.folder / "gate.txt").unlink(missing_ok=True)

    def ran(self, word: str) -> int:
        trace = self.home.folder / "ran.txt"
        return trace.read_text().splitlines().count(word) if trace.exists() else 0


class HeldStream:
    """A stream that is open at a question."""

    def __init__(self, person: Person, content: str, agent: str = "assistant") -> None:
        self.person = person
        self.asked = {
            "content": content,
            "agent": agent,
            "client_message_id": content.replace(" ", "-"),
        }
        self.again_held()
        self.question = frames_of(self._read)[-1].data["request_id"]

    def again_held(self) -> None:
        """Send it, once more if it was sent, and read up to the question."""
        self._lines = self.person.saying(**self.asked)
        self._read = read_until(self._lines, b"request_id")

    def answer(self, **answer: Any) -> Reply:
        return self.person.post(f"/approvals/{self.question}", answer)

    def rest(self) -> list[Frame]:
        """All of it, once it has ended."""
        self._read += b"".join(self._lines)
        return frames_of(self._read)

    def again(self) -> StreamReply:
        return self.person.say(**self.asked)


def read_until(lines: Iterator[bytes], word: bytes) -> bytes:
    """The lines of a stream up to one that holds a word."""
    read = b""
    for line in lines:
        read += line
        if word in line:
            return read
    raise AssertionError(read)
