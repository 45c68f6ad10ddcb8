"""Two organisations with people, and pages that are watched while they are looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from tests.support.model import Model
from tests.support.organisation import Organisation, shared_with_others

AGENTS = '''
import asyncio
from pathlib import Path

import carnet

GO = Path(__file__).parent / "go"


async def lead(visit: carnet.Visit):
    """Ask the boss."""
    async for event in visit.peer("boss")(visit.text):
        yield event


async def boss(visit: carnet.Visit):
    """Wait until the test says go, then ask somebody elsewhere."""
    yield "Asking a second opinion. "
    while not GO.exists():
        await asyncio.sleep(0.05)
    async for event in visit.peer("@critic@globex.example")(visit.text):
        yield event


async def chatty(visit: carnet.Visit):
    """Say as many words as it is told, then wait until the test says go."""
    for number in range(int(visit.text)):
        yield f"word{number} "
        if number % 100 == 0:
            await asyncio.sleep(0)
    while not GO.exists():
        await asyncio.sleep(0.05)
    yield "the-end"


async def chair(visit: carnet.Visit):
    """Say who should be asked, slowly."""
    yield "Let us hear "
    while not GO.exists():
        await asyncio.sleep(0.05)
    yield f"@critic@globex.example about {visit.text}."


async def shop(visit: carnet.Visit) -> str:
    """Ask for money."""
    answer = await visit.interrupt(payment="0.5", message="Half a credit for the report.")
    return f"{answer.outcome}: {visit.text}"


async def asks(visit: carnet.Visit) -> str:
    """Ask for leave."""
    answer = await visit.interrupt(approval=f"May I {visit.text}?")
    return f"{answer.outcome}: {visit.text}"


async def ponders(visit: carnet.Visit):
    """Ask for leave, say something, and go on when the test says go."""
    answer = await visit.interrupt(approval=f"May I {visit.text}?")
    yield "So far so good. "
    while not GO.exists():
        await asyncio.sleep(0.05)
    yield f"At last {answer.outcome}."


def read_page(name: str) -> str:
    "Reads a page."
    return f"The page {name} says 100."
'''
CONFIG = """
[agents.lead]
kind = "python"
target = "agents:lead"
price = "0.01"

[agents.boss]
kind = "python"
target = "agents:boss"

[agents.chatty]
kind = "python"
target = "agents:chatty"

[limits]
streams_per_caller = 400
"""
CHAT = """
[agents.chair]
kind = "python"
target = "agents:chair"

[agents.shop]
kind = "python"
target = "agents:shop"

[agents.asks]
kind = "python"
target = "agents:asks"

[agents.ponders]
kind = "python"
target = "agents:ponders"

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
target = "agents:echo"
price = "0.002"
"""

Scheme = Literal["light", "dark"]


class Scene:
    """The organisations, and somebody at the first of them."""

    def __init__(self, acme: Organisation, globex: Organisation, model: Model) -> None:
        self.acme = acme
        self.globex = globex
        self.model = model
        acme.carnet("people", "add", "alice", "--role", "admin")
        self.token = acme.new_token("alice-laptop", "--person", "alice", "--scope", "*")

    def go(self) -> None:
        """Let the boss go on."""
        (self.acme.folder / "go").touch()

    def stay(self) -> None:
        """Have the boss wait."""
        (self.acme.folder / "go").unlink(missing_ok=True)


@contextmanager
def chain_of_organisations(folder: Path, model: Model) -> Iterator[Scene]:
    (folder / "acme").mkdir()
    (folder / "globex").mkdir()
    acme = Organisation(folder / "acme", "acme.example")
    globex = Organisation(folder / "globex", "globex.example")
    acme.configure(
        CONFIG + CHAT.replace("{url}", model.url),
        agents=AGENTS + (acme.folder / "agents.py").read_text(),
    )
    globex.configure(CRITIC)
    token = globex.new_token("acme", "--peer", "acme.example")
    (acme.folder / "var" / "globex.token").write_text(token)
    globex.configure(f'[peers."acme.example"]\nurl = "{acme.url}"\ncredit = "10"\n')
    acme.configure(
        f'[peers."globex.example"]\nurl = "{globex.url}"\ntoken = {{file = "var/globex.token"}}\n'
    )
    with shared_with_others():
        globex.start()
        acme.start()
    yield Scene(acme, globex, model)
    assert (acme.stop(), globex.stop()) == (0, 0)


def sign_in(page: Page, token: str) -> None:
    """Sign in at the form that is shown, and wait until the page behind it works by its scripts."""
    page.get_by_label("A token of yours").fill(token)
    with page.expect_navigation(wait_until="load"):
        page.get_by_role("button", name="Sign in").click()


class Watched:
    """A page whose errors and requests are noted; leaving it fails where there is one of them."""

    def __init__(self, browser: Browser, scene: Scene, *, width: int, scheme: Scheme) -> None:
        self._context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        self.page = self._context.new_page()
        self.scene = scene
        self.errors: list[str] = []
        self.foreign: list[str] = []
        host = urlsplit(scene.acme.url).netloc
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda line: (
                self.errors.append(line.text)
                if line.type == "error" and "401 (Unauthorized)" not in line.text
                else None
            ),
        )
        self.page.on(
            "request",
            lambda asked: (
                self.foreign.append(asked.url) if urlsplit(asked.url).netloc != host else None
            ),
        )

    def __enter__(self) -> Page:
        return self.page

    def sign_in(self, path: str = "/console/") -> None:
        """Open a page of the console, as alice."""
        self.page.goto(f"{self.scene.acme.url}{path}")
        sign_in(self.page, self.scene.token)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._context.close()
        if kind is None:
            assert (self.errors, self.foreign) == ([], [])
