"""A gateway in which whatever somebody else may write is hostile.

Law 1. The text closes every element that a page could have put it in, and opens elements with a
       mark: one of them in a page is a fault, whether its script was stopped by the policy or not.
Law 2. A field whose grammar leaves no room for the text is tried with what the grammar has room
       for, or left as its grammar has it.
"""

import json
from functools import partial
from typing import Any
from urllib.parse import urlencode

from carnet.console.api import segment
from carnet.testing.wait import until
from tests.console.pages import an_admin
from tests.engine.process import tool_call
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import Reply, chat_body, request
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation

MARK = "data-evil"
EVIL = (
    "\"'--></textarea></title></pre></style></script></select></svg>"
    f"<img {MARK} src=/evil onerror=taken=1>"
    f"<svg {MARK} onload=taken=2></svg><script {MARK}>taken=3</script>"
    f'<a {MARK} href="javascript:taken=4">here</a>'
    f'<b {MARK} hx-get=/evil hx-trigger=load hx-on:click="taken=5" onclick=taken=6>{{{{7*7}}}}</b>'
    "\u2028\r\ndata: evil\r\n\r\nevent: evil\r\n"
)
SHORT = f"\"'></p></pre><img {MARK} src=/evil onerror=taken=7>"  # for fields with little room
WORD = f"\"'><img/{MARK}/src=/evil/onerror=taken=8>"  # for fields without spaces
ADDRESS = "javascript:taken=9//"
FORMULA = '=HYPERLINK("http://evil.example")'
FORM = ("content-type", "application/x-www-form-urlencoded")

AGENTS = f"""
import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import carnet

EVIL = {EVIL!r}
SHORT = {SHORT!r}
GO = Path(__file__).parent / "go"
SCHEMA = {{
    "type": "object",
    "title": EVIL,
    "required": [EVIL],
    "properties": {{
        EVIL: {{"type": "string", "title": EVIL, "description": EVIL, "default": EVIL}},
        "size": {{"enum": [EVIL, SHORT], "description": EVIL, "default": EVIL}},
        "count": {{"type": "integer", "title": SHORT, "default": EVIL}},
        "list": {{"type": "array", "default": [EVIL]}},
    }},
}}


async def says(visit: carnet.Visit):
    yield EVIL
    yield carnet.ToolCall("c1", EVIL, '{{"a": "b"}}', is_own=True, label=EVIL, preview=EVIL)
    yield carnet.ToolResult("c1", "ok", {{EVIL: EVIL}})
    yield carnet.Data({{EVIL: EVIL}})
    yield visit.text


async def slowly(visit: carnet.Visit):
    yield EVIL
    while not GO.exists():
        await asyncio.sleep(0.05)
    yield visit.text


async def fails(visit: carnet.Visit):
    yield EVIL
    raise RuntimeError(EVIL)


async def leads(visit: carnet.Visit):
    async for event in visit.peer("@critic@globex.example")(EVIL):
        yield event


async def approves(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(approval=EVIL, arguments={{EVIL: EVIL, "to": SHORT}})
    return f"{{answer.outcome}} {{EVIL}}"


async def pays(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(payment="0.5", message=EVIL)
    return f"{{answer.outcome}} {{EVIL}}"


async def inputs(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(input=EVIL, schema=SCHEMA)
    return f"{{answer.outcome}} {{EVIL}}"


async def chooses(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(input=EVIL, options=[EVIL, SHORT])
    return f"{{answer.outcome}} {{EVIL}}"


async def chair(visit: carnet.Visit) -> str:
    return f"{{EVIL}} Let us hear @critic@globex.example about it."


def read_page(name: str) -> str:
    "Reads a page."
    return EVIL


says.__doc__ = leads.__doc__ = EVIL
clerk = carnet.agent("clerk")


@dataclass
class Booking:
    day: str = EVIL
    seats: int = 2


async def book(booking: Booking) -> dict[str, str]:
    return {{EVIL: booking.day}}


book.__doc__ = EVIL
clerk.skill("book")(book)
"""
PYTHON = ("says", "slowly", "fails", "leads", "approves", "pays", "inputs", "chooses", "chair")
CONFIG = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\ntrust = "public"\n'
    for name in (*PYTHON, "clerk")
).replace('"agents:says"', '"agents:says"\nprice = "0.01"')
ENGINE = """
[agents.assistant]
kind = "engine"

[models.small]
url = "{url}/v1"

[engine]
model = "small"
tools = ["agents:read_page"]

[owner]
agent = "assistant"
"""
CRITIC = """
[agents.critic]
kind = "python"
target = "agents:critic"
price = "0.002"
"""
OF_CRITIC = f"""
import carnet


async def critic(visit: carnet.Visit):
    yield {EVIL!r}
    raise RuntimeError({EVIL!r})


critic.__doc__ = {EVIL!r}
"""


class Hostile:
    """Two organisations, and somebody at the first of them whom everybody writes to."""

    def __init__(self, acme: Organisation, globex: Organisation, model: Model) -> None:
        self.acme, self.globex, self.model = acme, globex, model
        self.admin = an_admin(acme)
        self.browser = self.admin.browser()
        self.runs: list[str] = []
        self.turns: dict[str, str] = {}  # the first of each run
        self.names: dict[str, str] = {}

    def fill(self) -> None:
        """Have the text written wherever it can be."""
        self._talk()
        self._call()
        self._ask()
        self._keep()
        self._name()
        self._trigger()
        agents = {"agent": "clerk", "run": self.runs[0], "number": "1"}
        self.names = agents | {"person": self.admin.name, **self.names}

    def send(self, path: str, /, **fields: str) -> Reply:
        reply = self.browser.send("POST", path, urlencode(fields).encode(), [FORM])
        assert reply.status < 400, (path, reply.body)
        return reply

    def say(self, agent: str, content: str = EVIL) -> str:
        """The conversation in which it was said."""
        reply = self.browser.post("/message", {"content": content, "agent": agent})
        assert reply.status == 200, reply.body
        return reply.headers["x-conversation-id"]

    def _talk(self) -> None:
        replies = [tool_call("read_page", json.dumps({"name": EVIL})), streamed(EVIL, "well")]
        self.model.reply = lambda _: replies.pop(0)
        self.names["conversation"] = self.say("assistant")
        title = {"title": SHORT}
        at = f"/conversations/{self.names['conversation']}"
        assert self.browser.send("PATCH", at, json.dumps(title).encode()).status == 200
        for agent in ("says", "fails", "chair", "leads"):
            self.say(agent)

    def _call(self) -> None:
        """Runs by ids and speakers that somebody has chosen."""
        fields = {"x-tangle-speaker": SHORT, "x-correlation-id": "evil", "user-agent": SHORT}
        for run in (WORD, SHORT, ADDRESS, FORMULA, "..", "evil.json"):
            own = [("authorization", f"Bearer {self.admin.token}"), *fields.items()]
            own += [("content-type", "application/json"), ("x-tangle-runid", run)]
            own += [("x-tangle-turnid", f"{run}.t0")]
            body = chat_body(EVIL, "says")
            reply = request("POST", f"{self.acme.url}/v1/chat/completions", own, body)
            assert reply.status == 200, (run, reply.body)
            self.runs.append(run)
        found = self.browser.send("GET", "/runs").json["runs"]
        assert {run["run"] for run in found} >= set(self.runs)
        self.runs += [run["run"] for run in found if run["run"] not in self.runs]
        for run in self.runs:
            page = self.browser.send("GET", f"/runs/{segment(run)}").json
            self.turns[run] = page["turns"][0]["turn"]

    def _ask(self) -> None:
        for agent in ("approves", "pays", "inputs", "chooses"):
            self.say(agent)
        asks = self.browser.send("GET", "/approvals").json["approvals"]
        assert len(asks) == 4
        self.names["ask"] = asks[0]["id"]
        answered = next(each for each in asks if each["kind"] == "approval")
        self.send(f"/console/inbox/{answered['id']}/decide", outcome="accepted", remember="yes")
        self.say("approves")  # answered by the rule

    def _keep(self) -> None:
        for path in ("notes.md", "data-evil.html", "onerror-taken.svg"):
            self.send("/console/memory/write", agent="assistant", path=path, content=EVIL)

    def _name(self) -> None:
        self.acme.carnet("people", "add", "mallory", "--display", SHORT)
        for name in ("onerror.taken", "data-evil"):
            self.acme.new_token(name, "--person", "mallory")
        link = Somebody(self.acme)
        browser = Browser(self.acme)
        agent = [("authorization", f"Bearer {link.token}"), ("user-agent", SHORT)]
        assert browser.send("POST", "/session", fields=agent).status == 201

    def _trigger(self) -> None:
        at = "/console/triggers"
        self.send(f"{at}/schedules/add", name="daily", agent="says", cron="0 9 * * *", message=EVIL)
        self.send(
            f"{at}/hooks/add", name="bell", agent="says", template=EVIL.replace("{{7*7}}", "")
        )
        self.send(f"{at}/hooks/bell/fire", event=json.dumps({EVIL: EVIL}))
        self.send(f"{at}/schedules/daily/fire")
        self.send(f"{at}/hooks/add", name="gong", agent="says")  # the event as it came
        self.send(f"{at}/hooks/gong/fire", event=json.dumps({EVIL: EVIL}))
        for path in ("/schedules/daily", "/hooks/bell", "/hooks/gong"):
            until(partial(self._became, path))
        self.names |= {"kind": "hooks", "trigger": "bell"}

    def _became(self, path: str) -> bool:
        recent: list[dict[str, Any]] = self.browser.send("GET", path).json["recent"]
        return any(each["conversation"] for each in recent)
