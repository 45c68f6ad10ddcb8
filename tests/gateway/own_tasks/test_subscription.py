"""Who reads a task and leaves holds nothing of it."""

import pytest

from carnet.testing.stage import Organisation
from carnet.testing.wait import until
from tests.gateway.own_tasks.conftest import Caller

LATER = {"returnImmediately": True}


@pytest.mark.parametrize("agent", ["slow", "asks"])
def test_readers_that_have_left_do_not_count_as_open(gateway: Organisation, agent: str) -> None:
    """A reader that comes back as often as it loses its connection is let in each time."""
    caller = Caller(gateway, f"reader-{agent}")
    task = caller.send(agent, "begin", wishes=LATER)
    asked = {"id": task["id"]}
    for _ in range(6):
        until(lambda: caller.leave(agent, "SubscribeToTask", asked) == 200)
    caller.ask(agent, "CancelTask", asked)


def test_a_repeat_that_leaves_does_not_count_as_open(gateway: Organisation) -> None:
    """What goes on for its first reader goes on once, however many repeats are left."""
    caller = Caller(gateway, "repeats")
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    assert caller.leave("slow", "SendStreamingMessage", {"message": message}) == 200
    for _ in range(4):
        until(lambda: caller.leave("slow", "SendStreamingMessage", {"message": message}) == 200)
