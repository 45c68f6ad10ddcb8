"""A gateway with agents that use tools, ask for leave and for money, and keep something."""

from collections.abc import Iterator

import pytest

from carnet.core.people.permissions import PLAIN
from tests.gateway.conversations.scene import AGENTS, CONFIG
from tests.gateway.people.browser import Somebody
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

PAYS = '''
async def shop(visit: carnet.Visit) -> str:
    """Ask for money."""
    answer = await visit.interrupt(payment="0.5", message="Half a credit for the report.")
    return f"{answer.outcome} {visit.text}"


async def ponders(visit: carnet.Visit):
    """Ask for leave, say something, and go on when somebody opens the gate; then ask again."""
    first = await visit.interrupt(approval=f"May I {visit.text}?")
    yield f"{first.outcome}, so far. "
    await opened()
    second = await visit.interrupt(approval="And is it good so?")
    yield f"At last {second.outcome}."


async def leads(visit: carnet.Visit):
    """Have a slow agent do it."""
    async for event in visit.peer("slow")(visit.text):
        yield event
'''
MORE = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n'
    for name in ("shop", "ponders", "leads")
)


@pytest.fixture(scope="session")
def model() -> Iterator[Model]:
    with Model().serving() as found:
        found.reply = lambda _: streamed("Hello.")
        yield found


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("owner"), "acme.example")
    gateway.configure(MORE + CONFIG.replace("{url}", model.url))
    (gateway.folder / "agents.py").write_text(AGENTS + PAYS)
    (gateway.folder / "gate.txt").touch()
    with shared_with_others():
        gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture
def alice(acme: Organisation) -> Somebody:
    """Somebody who may have tools used, and sees nothing of others."""
    somebody = Somebody(acme, "--role", "operator", "--permission", "tool:*")
    scopes = [word for each in sorted(PLAIN | {"tool:*"}) for word in ("--scope", each)]
    somebody.token = acme.new_token(f"{somebody.name}-own", "--person", somebody.name, *scopes)
    return somebody
