"""kill -9 of a gateway at every point between a person's answer and what comes of it.

Each point is tried on one of the stores, in `make crash` on both. The tool counts itself what it
did.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from typing import Any

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
SOME = {"edited": ("step.done:2",), "denied": ("answer.done",)}
# Where nobody is asked, what the model wants is the first step of the same execution.
BY_RULE = {
    **dict.fromkeys(("step.kept", "step.kept:3", "message.before_settle"), 1),
    **dict.fromkeys(("step.kept:2",), 0),
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What was edited and what was denied at some of the points, in `make crash` at all."""
    if "how" not in metafunc.fixturenames:
        return
    is_all = metafunc.config.getoption("stores") == "both"
    cases = [("approved", point) for point in RUNS]
    cases += [(how, point) for how, some in SOME.items() for point in (RUNS if is_all else some)]
    metafunc.parametrize(("how", "point"), cases)


class Mailing:
    """Somebody who is asked whether a mail may be sent, and what she says to that."""

    def __init__(self, home: Organisation, model: Model, how: str) -> None:
        self.dora, self.to = Person(home, model, "dora"), f"dora{next(numbers)}"
        self.dora.replies(tool_call("send_mail", f'{{"to":"{self.to}"}}'), with_usage("So be it."))
        self.asked = HeldStream(self.dora, f"Mail {self.to}")
        edited = {"outcome": "accepted", "value": {"to": f"{self.to}-eve"}}
        decision = "denied" if how == "denied" else "approved"
        self.says: dict[str, Any] = edited if how == "edited" else {"decision": decision}

    def answer(self) -> Reply:
        return self.asked.answer(**self.says)

    def sent(self) -> tuple[int, int]:
        """How often a mail was sent as it was asked for, and as it was changed."""
        ran = self.dora.ran
        return ran(f"mail {self.to}"), ran(f"mail {self.to}-eve")


def is_whole(sent: StreamReply) -> bool:
    return sent.reply.status == 200 and sent.end.get("finish_reason") == "stop"


def killed(home: Organisation, work: Callable[[], object], point: str) -> None:
    """Have something done by a gateway that dies at a point of it, and start it again."""
    home.kill()
    home.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        work()
    until(lambda: home.process is not None and home.process.poll() is not None)
    home.ended()
    end_leases(home)
    home.start()


def test_what_was_approved_is_done_once_after_a_kill_at(
    homes: ByStore[tuple[Organisation, Model]], store: str, how: str, point: str
) -> None:
    home, model = homes[store]
    mailing = Mailing(home, model, how)
    asked = mailing.asked

    def work() -> None:
        asked.again_held()
        mailing.answer()
        asked.rest()

    killed(home, work, point)
    until(mailing.answer, lambda reply: reply.status == 200)
    sent = until(asked.again, is_whole)
    assert sent.events[1:4] == ["approval-request", "approval-result", "tool-result"]
    runs = RUNS[point]
    expected = {"approved": (runs, 0), "edited": (0, runs), "denied": (0, 0)}
    assert mailing.sent() == expected[how]
    other = "approved" if how == "denied" else "denied"
    late = asked.answer(decision=other)
    assert (late.status, late.code) == (409, "answered_otherwise")
    assert mailing.sent() == expected[how]


@pytest.mark.parametrize("point", BY_RULE)
def test_what_a_rule_has_answered_is_done_once_after_a_kill_at(
    homes: ByStore[tuple[Organisation, Model]], store: str, point: str
) -> None:
    home, model = homes[store]
    mailing = Mailing(home, model, "approved")
    assert mailing.asked.answer(decision="approved", remember={}).status == 200
    assert mailing.asked.rest()[-1].event == "done"
    dora, to = mailing.dora, mailing.to
    dora.replies(tool_call("send_mail", f'{{"to":"{to}"}}'), with_usage("So be it."))

    def work() -> StreamReply:
        return dora.say("Once more", agent="assistant", client_message_id=f"again-{to}")

    killed(home, work, point)
    sent = until(work, is_whole)
    assert sent.events[:3] == ["tool-call", "approval-result", "tool-result"]
    assert mailing.sent() == (1 + BY_RULE[point], 0)
