"""Who fails to show a credential again and again is made to wait, and told for how long."""

from pathlib import Path

import pytest

from carnet.testing.stage import Stage
from tests.support.a2a.wire import BINDINGS, Line, message, reason_of

MOST = 500


@pytest.mark.parametrize("binding", BINDINGS)
def test_failed_attempts_are_bounded_and_the_refusal_says_when_to_come_again(
    tmp_path: Path, binding: str
) -> None:
    with Stage(tmp_path) as stage:
        acme = stage.organisation("acme.example")
        acme.start()
        guesser = Line(acme.url, "ck_guess", "echo")
        reply = guesser.ask(binding, "SendMessage", **message())
        for _ in range(MOST):
            if reply.status != 401:
                break
            reply = guesser.ask(binding, "SendMessage", **message())
        assert reply.status == 429
        assert int(reply.headers["retry-after"]) > 0
        assert reason_of(reply.json["error"])[0] == "TOO_MANY_FAILURES"
        assert '"token_invalid"' in acme.log.read_text()
