"""One gateway for the tests of this folder, with a loop in its process and a scripted model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from carnet.cli.chat.history import YOU
from carnet.testing.stage import COMMAND_SECONDS
from tests.cli.chat.terminal import Terminal, terminal
from tests.gateway.conversations.scene import AGENTS, CONFIG, Person
from tests.support.commands import commands
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, environment, shared_with_others

MORE = '''

async def shop(visit: carnet.Visit) -> str:
    """Sell something."""
    answer = await visit.interrupt(payment="0.02", message="Two cents, please")
    return f"payment {answer.outcome}"


async def clerk(visit: carnet.Visit) -> str:
    """Ask for one of two."""
    answer = await visit.interrupt(input="Which colour?", options=["red", "light blue"])
    return f"painted {answer.value}"


async def stubborn(visit: carnet.Visit):
    """Say something, and not be stopped."""
    yield "holding "
    while not GATE.exists():
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue


async def careful(visit: carnet.Visit):
    """Ask for leave, and then say something in two pieces."""
    await visit.interrupt(approval="May I?")
    yield "first "
    await opened()
    yield "second"


def look_up(name: str) -> str:
    "Looks a name up."
    return f"{name} is known"


async def sly(visit: carnet.Visit) -> str:
    """Try to steer the terminal."""
    return "before\\x1b[2Jafter\\x07\\x9b31m\\u202eend"
'''
MORE_CONFIG = """
[agents.shop]
kind = "python"
target = "agents:shop"

[agents.clerk]
kind = "python"
target = "agents:clerk"

[agents.sly]
kind = "python"
target = "agents:sly"

[agents.careful]
kind = "python"
target = "agents:careful"

[agents.stubborn]
kind = "python"
target = "agents:stubborn"

[tools.look_up]
target = "agents:look_up"
label = "Looking up {name}"
"""


class Chatter(Person):
    """Somebody who sits before a terminal."""

    @property
    def environment(self) -> dict[str, str]:
        """Her token and her gateway, and nothing of a configuration."""
        own = {"CARNET_TOKEN": self.token, "CARNET_URL": self.home.url, "NO_COLOR": "1"}
        return environment(own)

    @contextmanager
    def opens(self, *words: str, **env: str) -> Iterator[Terminal]:
        """`carnet chat` in a terminal, far from any configuration."""
        given = {**self.environment, **env}
        with terminal("chat", *words, at=self.home.folder.parent, env=given) as seat:
            seat.shows("/help lists the commands.")
            yield seat

    @contextmanager
    def chats(self, *words: str, **env: str) -> Iterator[Terminal]:
        """The same, where she is not asked anything before she may type."""
        with self.opens(*words, **env) as seat:
            seat.shows(YOU)
            yield seat

    def pipes(
        self, text: str, *words: str, at: Path | None = None, **env: str
    ) -> CompletedProcess[str]:
        """The same with a text for its input."""
        return commands().run(
            ("chat", *words),
            at=at or self.home.folder.parent,
            env={**self.environment, **env},
            seconds=COMMAND_SECONDS,
            given=text,
        )


@pytest.fixture(scope="session")
def front(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Organisation, Model]]:
    folder = tmp_path_factory.mktemp("chats") / "home"
    folder.mkdir()
    with Model().serving() as model, shared_with_others():
        home = Organisation(folder, "acme.example")
        config = CONFIG.replace("tools = [", 'tools = ["look_up", ') + MORE_CONFIG
        home.configure(config.replace("{url}", model.url), agents=AGENTS + MORE)
        home.start()
        yield home, model
        home.stop()


@pytest.fixture
def alice(front: tuple[Organisation, Model]) -> Iterator[Chatter]:
    home, model = front
    person = Chatter(home, model, "alice")
    person.replies(streamed("Hello."))
    person.closes_gate()
    yield person
    person.opens_gate()
