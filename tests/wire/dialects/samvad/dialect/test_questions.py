"""What is asked in the SAMVAD dialect: envelopes, and questions about tasks and agents."""

from typing import Any

import pytest

from carnet.core.call import Claim
from carnet.core.people.identity import Mode
from carnet.errors import SignatureMissing
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.dialect import Question
from carnet.wire.dialects.samvad import DIALECT
from tests.wire.dialects.samvad.scene import PUBLIC, encoded, fields, holds, signed, unsigned
from tests.wire.dialects.scene import arrival

SHOWN = "/agent/task/t%2D1"


def envelope(way: str, mode: Mode, **more: Any) -> Claim:
    path, body = f"/agent/{way}", encoded(fields(mode=mode))
    request = signed(unsigned(body, f"/agents/critic{path}"), path=path)
    found = DIALECT.read(arrival(DIALECT, way, request=request, body=body, **more))
    assert isinstance(found, Claim)
    return found


@pytest.mark.parametrize(
    ("way", "mode"), [("message", "sync"), ("stream", "stream"), ("task", "async")]
)
def test_each_way_takes_the_envelopes_of_one_mode(way: str, mode: Mode) -> None:
    found = envelope(way, mode, agent="critic")
    assert (found.agent, found.ask.stream, found.is_task) == (
        *("critic", mode == "stream", mode == "async"),
    )
    assert holds(found)


def test_where_the_path_names_no_agent_the_host_does() -> None:
    assert envelope("message", "sync", by_host=lambda: "words").agent == "words"
    assert envelope("message", "sync", by_host=lambda: "words", agent="critic").agent == "critic"
    assert envelope("message", "sync").agent == ""


def test_an_envelope_proves_its_sender_once_its_body_has_come() -> None:
    body = encoded(fields())
    request = signed(unsigned(body))
    found = DIALECT.proof(arrival(DIALECT, "message", request=request, body=body))
    assert found is not None
    assert found.sender == "agent://sender.com"
    assert DIALECT.proof(arrival(DIALECT, "message", request=request)) is None
    assert DIALECT.proof(arrival(DIALECT, "cancel", request=request, body=body)) is None


@pytest.mark.parametrize("way", ["intro", "health", "card"])
def test_what_an_agent_says_of_itself_is_for_everybody(way: str) -> None:
    assert DIALECT.read(arrival(DIALECT, way, agent="critic")) == Question(
        about="agent", agent="critic"
    )


@pytest.mark.parametrize(
    ("way", "about", "end"), [("show", "task", ""), ("cancel", "cancel", "/cancel")]
)
def test_who_asks_about_a_task_signs_the_path_as_it_was_written(
    way: str, about: str, end: str
) -> None:
    short = SHOWN + end
    request = signed(unsigned(b"", f"/agents/critic{short}"), path=short)
    came = arrival(DIALECT, way, request=request, agent="critic", names={"task": "t-1"})
    found = DIALECT.read(came)
    assert isinstance(found, Question)
    assert (found.about, found.task, found.agent) == (about, "t-1", "critic")
    asking = found.asking
    assert asking is not None
    assert any(ed25519.holds(PUBLIC, base, asking.signature) for base in asking.bases)


def test_who_asks_about_a_task_must_sign_unless_the_operator_lets_everybody() -> None:
    request, names = unsigned(b"", SHOWN), {"task": "t-1"}
    with pytest.raises(SignatureMissing):
        DIALECT.read(arrival(DIALECT, "show", request=request, names=names))
    open_to_all = arrival(DIALECT, "show", request=request, names=names, must_prove=False)
    assert DIALECT.read(open_to_all) == Question(about="task", task="t-1", agent="")
