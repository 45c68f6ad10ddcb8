"""`carnet demo`: see it work, on this machine, without a key and without a network.

Law. `--once` ends with 0 only if the run was seen to its end, with all that it should have: an
     answer of three organisations, paid for as it was agreed to.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from carnet.cli.invocation import Command, Invocation, paint, pass_invocation, wait

if TYPE_CHECKING:
    from carnet.cli.chat.connection import ChatConnection
    from carnet.cli.demo.processes import Demo, House
    from carnet.cli.reach.pages import Pages

LOOK_SECONDS: Final = 0.1
ONCE_SECONDS: Final = 180.0  # for the whole run, with a model on a machine that does other things
QUESTIONS: Final = 2  # that the run has for a person
_ENDED: Final = frozenset({"done", "failed", "unknown"})


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Answer what is asked, and end when the run has.")
@pass_invocation
def demo(invocation: Invocation, /, folder: Path | None, once: bool) -> int:  # noqa: FBT001  click passes it
    """Run three organisations on this machine, and a call between them that waits for you.

    They are real gateways, in three dialects, with a model on this machine where one is installed.
    In DIR they are kept; without it nothing is left when it ends.
    """
    from carnet.cli.demo.processes import Demo

    with (
        _ended_by(signal.SIGTERM, signal.SIGHUP) as ignore,
        Demo(None if folder is None else folder.absolute()) as demo,
    ):
        try:
            with ignore:
                return wait(_Show(invocation, demo).run(once=once))
        except KeyboardInterrupt:
            if once:
                raise
            kept = f" {demo.folder} is kept." if folder is not None else ""
            click.echo(f"\nThe demo has ended.{kept}", err=True)
            return 0


@contextmanager
def _ended_by(*numbers: signal.Signals) -> Iterator[ExitStack]:
    """Have signals end it as Ctrl-C does: with all that it has started.

    When what is given here is left, it is being ended: from then on they are ignored.
    """
    former = {
        number: signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN  # as `nohup` has it
    }
    ending = ExitStack()
    for number in numbers:
        ending.callback(signal.signal, number, signal.SIG_IGN)
    try:
        yield ending
    finally:
        for number, before in former.items():
            signal.signal(number, before)


class _Show:
    """One demo, from its beginning to its end."""

    def __init__(self, invocation: Invocation, demo: "Demo") -> None:
        from carnet.cli.demo.narration import Narration
        from carnet.runtime.system import SystemClock

        self._invocation = invocation
        self._demo = demo
        self._clock = SystemClock()
        self._begun = self._clock.monotonic()
        self._narration = Narration()
        self._pages: list[tuple[House, Pages]] = []
        self._asking: asyncio.Task[None] | None = None
        self._run = ""

    async def run(self, *, once: bool) -> int:
        """Start it, tell what happens, and wait for a person or be one; the exit code."""
        from carnet.cli.chat.connection import ChatConnection
        from carnet.cli.reach.pages import Pages

        self._say("", "Starting acme.example, globex.example and initech.example on this machine.")
        await self._demo.launch()
        acme = self._demo.houses[0]
        self._say("", f"The console of Acme will be at {acme.url}/console/")
        await asyncio.to_thread(self._demo.wait)
        self._tell_started()
        if not once:
            self._say("", "Watch it in the console; this link signs you in, once:")
            self._say("", f"  {await _link(acme)}")
        async with AsyncExitStack() as stack:
            owner = ChatConnection(acme.invocation, acme.url, acme.token)
            await stack.enter_async_context(owner)
            self._asking = asyncio.create_task(_ask(owner))
            stack.callback(self._asking.cancel)
            for house in self._demo.houses:
                pages = await stack.enter_async_context(Pages(house.invocation))
                self._pages.append((house, pages))
            return await self._follow(owner, once=once)

    def _tell_started(self) -> None:
        if self._demo.lacks:
            self._say("", f"There is no model here: {self._invocation.spell(self._demo.lacks)}")
        for house in self._demo.houses:
            self._say(house.domain, f"answers at {house.url}")

    async def _follow(self, owner: "ChatConnection", *, once: bool) -> int:
        """Tell of the run until it has ended; without `once`, of those that follow too."""
        until = self._clock.monotonic() + ONCE_SECONDS
        noted: set[str] = set()  # runs whose questions were told, or whose end was
        while not once or self._clock.monotonic() < until:
            if self._asking is not None and self._asking.done():
                self._asking.result()  # what went wrong, if something did
            page = await self._look()
            if page is not None and page["state"] in _ENDED and f"/{self._run}" not in noted:
                noted.add(f"/{self._run}")
                is_whole = self._ending(
                    await self._pages[0][1].read(f"/runs/{self._run}?full=true")
                )
                if once:
                    return 0 if is_whole else 1
                self._say("", "Ask more in the console. Ctrl-C ends the demo.")
            asked = (await owner.ask("GET", "/approvals?status=open"))["approvals"]
            # While one of those that were asked still answers, it may be too early to say yes.
            is_still = page is not None and page["turns"][0]["state"] == "waiting"
            if is_still and len(asked) == QUESTIONS and self._run not in noted:
                noted.add(self._run)
                await self._questions(owner, asked, once=once)
            await asyncio.sleep(LOOK_SECONDS)
        self._say("", "It takes too long, and is left.")
        return 1

    async def _look(self) -> dict[str, Any] | None:
        """Tell what is new everywhere; the newest run of the first one, if there is one."""
        newest = (await self._pages[0][1].read("/runs?limit=1"))["runs"]
        if newest and not self._run:
            url = f"{self._demo.houses[0].url}/console/runs/{newest[0]['run']}"
            seconds = self._clock.monotonic() - self._begun
            self._say("", f"The first run is live, {seconds:.1f} s after the start: {url}")
        self._run = newest[0]["run"] if newest else ""
        found: dict[str, dict[str, Any]] = {}
        for house, pages in reversed(self._pages) if self._run else ():  # callers after callees
            page = await _page_of(pages, self._run)
            found |= {} if page is None else {house.domain: page}
        for _, domain, line in self._narration.tell(found):
            self._say(domain, line)
        return found.get(self._demo.houses[0].domain)

    async def _questions(
        self, owner: "ChatConnection", asked: list[dict[str, Any]], *, once: bool
    ) -> None:
        from carnet.cli.chat.connection import question_path
        from carnet.cli.demo.narration import question_line

        acme = self._demo.houses[0]
        self._say("", "")
        self._say("", "The run waits for a person, who is asked for two things:")
        for question in asked:
            self._say("", f"  {question_line(question)}")
        if once:
            for question in asked:
                await owner.ask("POST", question_path(question["id"]), {"decision": "approved"})
                self._say(acme.domain, f"its owner approves the {question['kind']}")
            return
        token = acme.folder / "var" / "starter.token"
        self._say("", f"Answer in the console of Acme: {acme.url}/console/inbox")
        self._say("", "or in another terminal:")
        for question in asked:
            command = f"carnet inbox approve {question['id']} --as @{token}"  # she is the payer
            self._say("", f"  {acme.invocation.spell(command)}")
        self._say("", "Ctrl-C ends the demo.")

    def _ending(self, page: dict[str, Any]) -> bool:
        """Tell what came of it; whether it is all that it should be."""
        from carnet.cli.demo.scene import PARTIES
        from carnet.cli.invocation import in_line
        from carnet.cli.see.tree import draw

        (root,) = page["turns"]
        text = str((root.get("answered") or {}).get("text", ""))
        self._say("", "")
        for line in text.splitlines():
            self._say("", f"  {in_line(line)}")
        self._say("", "")
        for line in draw({**page, "turns": [_without_words(root)]}).splitlines():
            self._say("", line)
        has_all = len(text.splitlines()) == len(PARTIES)
        return bool(page["state"] == "done" and has_all and page["cost"] != "0")

    def _say(self, domain: str, text: str) -> None:
        seconds = self._clock.monotonic() - self._begun
        row = {"seconds": round(seconds, 2), "organisation": domain or None, "text": text}
        if not domain:
            self._invocation.line(row, text)
            return
        color = next(h.party.color for h in self._demo.houses if h.domain == domain)
        self._invocation.line(row, f"{seconds:5.1f} s  {paint(f'{domain:<16}', color)}{text}")


async def _ask(owner: "ChatConnection") -> None:
    """Ask as the owner does; what is said until somebody is asked is in the run as well."""
    from carnet.cli.demo.scene import ASKED, FRONT

    async with owner.stream("/message", {"content": ASKED, "agent": FRONT}) as stream:
        async for _ in stream.frames():
            pass


async def _page_of(pages: "Pages", run: str) -> dict[str, Any] | None:
    """A run as one organisation sees it; None before it has come there."""
    from carnet.cli.failures import GatewayError
    from carnet.errors import RunNotFound

    try:
        return await pages.read(f"/runs/{run}")
    except GatewayError as error:
        if error.facts.get("code") != RunNotFound.code:
            raise
        return None


async def _link(house: "House") -> str:
    from carnet.cli.trust.sessions import sign_in_link
    from carnet.core.people.person import OWNER

    page = await sign_in_link(house.invocation.settings, OWNER, None)
    return str(page["link"])


def _without_words(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn, and those below it, without what was asked and answered."""
    left = {name: value for name, value in turn.items() if name not in {"asked", "answered"}}
    return {**left, "children": [_without_words(each) for each in turn["children"]]}
