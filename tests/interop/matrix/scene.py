"""Callers in every dialect at one organisation, which calls another in every dialect.

The agents at the second one are ordinary ones. The first has each of them once for every dialect
that it can call in, by the name `AGENT-DIALECT`.
"""

from pathlib import Path
from typing import Final

from carnet.runtime.client.key import ClientKey, load_key
from tests.support.organisation import Organisation

AGENTS: Final = """
import asyncio

import carnet


@carnet.agent("says")
async def says(visit):
    yield visit.text


@carnet.agent("pieces")
async def pieces(visit):
    for word in visit.text.split():
        yield word + " "
        await asyncio.sleep(0.05)  # so that nobody can put two pieces into one


@carnet.agent("parts")
async def parts(visit):
    yield " ".join(sorted(type(part).__name__ for part in visit.parts if not isinstance(part, str)))


@carnet.agent("recalls")
async def recalls(visit):
    yield " | ".join(message.text for message in visit.messages)


@carnet.agent("gives")
async def gives(visit):
    yield "see: "
    if visit.text == "data":
        yield carnet.Data({"rows": [1, 2]})
    else:
        yield carnet.File("aGVsbG8=", "hello.txt", "text/plain")


@carnet.agent("uses")
async def uses(visit):
    yield carnet.ToolCall("call-1", "look_up", '{"word": "carnet"}', 0, True)
    yield carnet.ToolResult("call-1", "ok", {"found": 1})
    yield "looked up"


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(approval="May I?")
    yield "granted" if answer.accepted else "left alone"


@carnet.agent("sells")
async def sells(visit):
    answer = await visit.interrupt(payment="0.02", message="The archive costs two cents.")
    yield "sold" if answer.accepted else "kept"


@carnet.agent("rejects")
async def rejects(visit):
    raise carnet.TaskRejected


@carnet.agent("breaks")
async def breaks(visit):
    raise RuntimeError("a secret detail")
"""

NAMES: Final = (
    *("says", "pieces", "parts", "recalls", "gives", "uses", "asks", "sells", "rejects"),
    "breaks",
)

# How a section calls one agent of the other organisation, in each dialect that can be called in.
CALLED: Final = {
    "tangle": 'kind = "tangle"\nurl = "{url}/v1"\nmodel = "{name}"\ntoken = {token}',
    "openai": 'kind = "openai"\nurl = "{url}/v1"\nmodel = "{name}"\napi_key = {token}',
    "samvad": 'kind = "samvad"\nurl = "{url}/agents/{name}"\n'
    'identity = "agent://{name}.globex.example"',
    "agents_api": 'kind = "agents_api"\nurl = "{url}"\nmodel = "{name}"\ntoken = {token}',
    "a2a": 'kind = "a2a"\nurl = "{url}/agents/{name}"\ntoken = {token}',
}
PRICE: Final = "0.001"


class Pair:
    """The two organisations, and a key by which a caller signs at the first."""

    def __init__(self, folder: Path) -> None:
        self.front = Organisation(_made(folder / "acme"), "acme.example")
        self.behind = Organisation(_made(folder / "globex"), "globex.example")
        self.key: ClientKey = load_key(folder / "client.key")
        token = self.behind.new_token("acme", "--peer", "acme.example")
        (self.front.folder / "var" / "globex.token").write_text(token)
        url, given = self.behind.url, '{file = "var/globex.token"}'
        sections = [
            f"[agents.{named(name, dialect)}]\n"
            + form.format(url=url, name=name, token=given)
            + f'\ntrust = "public"\n{_bound(dialect)}'
            for dialect, form in CALLED.items()
            for name in NAMES
        ]
        self.front.configure("\n".join(sections))
        own = [
            f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\ntrust = "public"\n'
            f'price = "{PRICE}"'
            for name in NAMES
        ]
        starter = (self.behind.folder / "agents.py").read_text()
        self.behind.configure("\n".join(own), agents=starter + AGENTS)
        self.behind.carnet("peers", "add", "acme.example", "--url", self.front.url, "--credit", "9")
        self.front.carnet("peers", "add", f"agent://client-{self.key.kid}", "--key", self.public)
        self.looking = self.behind.new_token(
            "looking", "--scope", "run:read", "--scope", "admin:runs"
        )
        for each in (self.behind, self.front):
            each.start()

    @property
    def public(self) -> str:
        """The key of the caller who signs, as an operator types it."""
        return self.key.public_text

    def close(self) -> None:
        """End both."""
        for each in (self.front, self.behind):
            each.close()


def named(agent: str, dialect: str) -> str:
    """An agent of the second organisation, as the first calls it in a dialect."""
    return f"{agent}-{dialect.replace('_', '-')}"  # which is a part of a host as well


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _bound(dialect: str) -> str:
    return "" if dialect == "openai" else 'max_cost = "1"\n'
