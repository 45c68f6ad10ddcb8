"""What an agent raises ends its own call, whatever it is; the gateway goes on (F37)."""

from collections.abc import Iterator

import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

RAISING = '''
OWN = type("Own", (BaseException,), {})
KINDS = {"interrupt": KeyboardInterrupt, "exit": SystemExit, "own": OWN}


async def raises(visit: carnet.Visit) -> str:
    """Raise what the text names."""
    raise KINDS[visit.text]("canary")


async def midway(visit: carnet.Visit) -> AsyncIterator[str]:
    """Say something, then raise."""
    yield "so far "
    raise KINDS[visit.text]("canary")


@carnet.skill("plain")
def plain(kind: str) -> dict[str, str]:
    """A skill that runs in a thread."""
    raise KINDS[kind]("canary")


async def beside(visit: carnet.Visit) -> str:
    """Raise in a task of its own, in a callback and in a timer, and answer when they have run."""
    left = 3

    def fall() -> None:
        nonlocal left
        left -= 1
        raise KINDS[visit.text]("canary")

    async def fall_later() -> None:
        await asyncio.sleep(0)
        fall()

    falling = asyncio.create_task(fall_later())
    asyncio.get_running_loop().call_soon(fall)
    asyncio.get_running_loop().call_later(0.01, fall)
    while left:
        await asyncio.sleep(0.01)
    return f"it went on, {type(falling.exception()).__name__}"


async def crowd(visit: carnet.Visit) -> str:
    """Raise in one of a group."""
    async def fall() -> None:
        raise KINDS[visit.text]("canary")

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(fall())
    return "never"
'''
NAMES = ("raises", "midway", "plain", "beside", "crowd")
CONFIG = "".join(f'[agents.{n}]\nkind = "python"\ntarget = "agents:{n}"\n' for n in NAMES)
KINDS = ("interrupt", "exit", "own")


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("raised") / "acme", "acme.example")
    gateway.configure(CONFIG, agents=AGENTS + RAISING)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.mark.parametrize("agent", ["raises", "crowd"])
@pytest.mark.parametrize("kind", KINDS)
def test_f37_an_agent_that_interrupts_or_exits_fails_its_own_call_alone(
    acme: Organisation, agent: str, kind: str
) -> None:
    reply = acme.chat(kind, agent)
    assert (reply.status, reply.code) == (500, "agent_failed")
    assert b"canary" not in reply.body
    assert acme.chat("still here").status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_f37_a_stream_that_is_cut_by_an_exit_ends_with_an_error(
    acme: Organisation, kind: str
) -> None:
    reply = acme.chat(kind, "midway", stream=True)
    assert b"so far " in reply.body
    assert b'"agent_failed"' in reply.body
    assert b"[DONE]" not in reply.body
    assert acme.chat("still here").status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_f37_a_skill_in_a_thread_that_exits_fails_its_own_call_alone(
    acme: Organisation, kind: str
) -> None:
    reply = acme.chat("x", "plain", carnet={"skill": "plain", "payload": {"kind": kind}})
    assert (reply.status, reply.code) == (500, "agent_failed")
    assert acme.chat("still here").status == 200


@pytest.mark.parametrize("kind", ["interrupt", "exit"])
def test_f37_what_is_raised_beside_a_call_is_logged_and_ends_nothing(
    acme: Organisation, kind: str
) -> None:
    reply = acme.chat(kind, "beside")
    assert reply.status == 200
    assert b"it went on" in reply.body
    assert acme.chat("still here").status == 200
    until(lambda: any("raised beside" in line for line in acme.log_lines()))
