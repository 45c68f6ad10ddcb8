"""kill -9 of a gateway at every point between a person's answer and what comes of it.

Each point is tried on one of the stores, in `make crash` on both. The tool counts itself what it
did.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException

import pytest

from carnet.testing.wait import until
from tests.crash.points.choice import ByStore
from tests.engine.process import tool_call, with_usage
from tests.faults.stores import end_leases, move_to
from tests.gateway.conversations.scene import (
    AGENTS,
    CONFIG,
    HeldStream,
    Person,
    StreamReply,
    numbers,
)
from tests.stores.support import servers
from tests.support.http import Reply
from tests.support.model import Model
from tests.support.organisation import Organisation

# By how often the tool has run then. One that was begun and whose end was not kept is not run
# again: nobody can tell whether it was done. The first step of a use says that it begins.
RUNS = {
    **dict.fromkeys(("answer.begin", "resolve.used", "answer.done", "task.leased"), 1),
    **dict.fromkeys(("step.begin", "step.begin:2", "step.done"), 1),
    **dict.fromkeys(("step.kept",), 0),
    **dict.fromkeys(("step.done:2", "step.kept:2"), 1),
    **dict.fromkeys(("message.before_settle", "message.settled"), 1),
}


@pytest.fixture(scope="module")
def homes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[tuple[Organisation, Model]]]:
    @contextmanager
    def made(store: str) -> Iterator[tuple[Organisation, Model]]:
        gateway = Organisation(tmp_path_factory.mktemp("killed"), "acme.example")
        if store == "postgres":
            move_to(gateway, server.create())
        with Model().serving() as model:
            config = CONFIG.replace("{url}", model.url) + "hold_approvals = 600\n"
            gateway.configure(config, agents=AGENTS)
            gateway.start()
            yield gateway, model
            assert gateway.stop() == 0

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.mark.parametrize("point", RUNS)
def test_what_was_approved_is_done_once_after_a_kill_at(
    homes: ByStore[tuple[Organisation, Model]], store: str, point: str
) -> None:
    home, model = homes[store]
    dora, to = Person(home, model, "dora"), f"dora{next(numbers)}"
    dora.replies(tool_call("send_mail", f'{{"to":"{to}"}}'), with_usage("So be it."))
    asked = HeldStream(dora, f"Mail {to}")
    home.kill()
    home.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        asked.again_held()
        asked.answer(decision="approved")
        asked.rest()
    until(lambda: home.process is not None and home.process.poll() is not None)
    home.ended()
    end_leases(home)
    home.start()

    def approved() -> Reply:
        return asked.answer(decision="approved")

    until(approved, lambda reply: reply.status == 200)

    def ended(sent: StreamReply) -> bool:
        return sent.reply.status == 200 and sent.end.get("finish_reason") == "stop"

    sent = until(asked.again, ended)
    assert sent.events[1:4] == ["approval-request", "approval-result", "tool-result"]
    assert dora.ran(f"mail {to}") == RUNS[point]
