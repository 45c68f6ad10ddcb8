"""What is asked of a model, or of a peer, again: how often, after what, and when not (R56)."""

from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.scene import billed, turns
from tests.support.federation import introduce, organisation
from tests.support.http import Reply
from tests.support.model import (
    CLOSED,
    Answer,
    Asked,
    Model,
    answered,
    broken_off,
    refused,
    streamed,
)
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.travel.middlebox import Middlebox, Passing, middlebox, untouched

RETRIES = (0, 2, 3)
AGENT = """
[agents.{name}-{retries}]
kind = "{kind}"
url = "{url}/{name}/v1"
retries = {retries}
timeout = 30
"""
USUAL = """
[agents.usual]
kind = "openai"
url = "{url}/usual/v1"
"""


class Scene:
    """A calls B, and both call models that fail."""

    def __init__(self, a: Organisation, b: Organisation, model: Model, box: Middlebox) -> None:
        self.a = a
        self.b = b
        self.model = model
        self.box = box

    def ask(self, agent: str, text: str, *answers: Answer, stream: bool = False) -> Reply:
        """Ask an agent of A; its model answers the requests with this text one after the other.

        Before, it answers well: its circuit is closed, and a connection to it is kept.
        """
        given = iter(answers)

        def reply(asked: Asked) -> Answer:
            return next(given, answers[-1]) if asked.last_message == text else answered()

        self.model.reply = reply
        assert self.a.chat("hello", agent).status == 200
        token = self.a.new_token(text.replace(" ", "-"))  # each has a circuit of its own
        return self.a.chat(text, agent, token=token, stream=stream)

    def asked(self, text: str) -> int:
        return len(self.model.of(text))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("models")
    a, b = organisation(folder / "a", "a.example"), organisation(folder / "b", "b.example")
    with Model().serving() as model, middlebox(b.port) as box:
        introduce(a, b, url=box.url, credit="1000")
        for retries in RETRIES:
            for name, kind in (("model", "openai"), ("peer", "tangle")):
                parts = {"name": name, "kind": kind, "url": model.url, "retries": retries}
                a.configure(AGENT.format(**parts))
        a.configure(USUAL.format(url=model.url))
        b.start()
        a.start()
        yield Scene(a, b, model, box)
        assert (a.stop(), b.stop()) == (0, 0)


@pytest.mark.parametrize("kind", ["model", "peer"])
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_f90_a_passing_fault_is_asked_again_as_often_as_retries_says(
    scene: Scene, status: int, kind: str
) -> None:
    text = f"passing {status} {kind}"
    reply = scene.ask(f"{kind}-2", text, refused(status), refused(status), answered("well"))
    assert (reply.status, reply.text) == (200, "well")
    assert scene.asked(text) == 3


@pytest.mark.parametrize("kind", ["model", "peer"])
@pytest.mark.parametrize("retries", RETRIES)
@pytest.mark.parametrize("how", ["500", "closed"])
def test_f90_retries_counts_every_further_request_whatever_the_reason(
    scene: Scene, how: str, retries: int, kind: str
) -> None:
    """Also one on a connection that was kept and is closed unanswered."""
    text = f"always {how} {retries} {kind}"
    reply = scene.ask(f"{kind}-{retries}", text, refused(500) if how == "500" else CLOSED)
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    assert scene.asked(text) == 1 + retries


def test_f90_a_model_that_says_nothing_of_retries_is_asked_twice_more(scene: Scene) -> None:
    assert scene.ask("usual", "usual", refused(503)).status == 503
    assert scene.asked("usual") == 3


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 409, 413, 422, 501])
def test_f90_a_refusal_is_never_asked_again(scene: Scene, status: int) -> None:
    text = f"refused {status}"
    assert scene.ask("model-3", text, refused(status)).status >= 400
    assert scene.asked(text) == 1


def test_f90_a_chain_that_is_too_deep_is_never_asked_again(scene: Scene) -> None:
    reply = scene.ask("peer-3", "deep", refused(429, "bridge_depth_exceeded"))
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    error = reply.json["error"]
    assert error["message"] == "This call arrived at depth 1; limit: not told."
    assert (error["observed"], "limit" in error) == (1, False)
    assert scene.asked("deep") == 1


def test_f90_nothing_is_asked_again_once_a_word_was_shown(scene: Scene) -> None:
    whole = streamed("one ", "two ")
    half = Answer(body=whole.body[:120], media_type=whole.media_type)
    reply = scene.ask("model-3", "half", half, stream=True)
    assert b"one " in reply.body
    assert b"[DONE]" not in reply.body
    assert scene.asked("half") == 1


def test_f90_who_asks_for_more_time_than_the_call_has_is_not_waited_for(scene: Scene) -> None:
    reply = scene.ask("model-3", "busy", refused(429, retry_after="3600"))
    assert reply.headers["retry-after"] == "3600"
    assert scene.asked("busy") == 1


def test_f90_who_says_when_is_asked_again_then(scene: Scene) -> None:
    answers = [refused(503, retry_after="1"), answered("well")]
    assert scene.ask("model-2", "soon", *answers).text == "well"
    assert scene.asked("soon") == 2


def test_f90_a_peer_whose_answer_was_lost_is_asked_again_under_the_same_turn(
    scene: Scene,
) -> None:
    """Over two gateways: it runs once, answers from its record, and both have billed it once."""
    lost = iter([502, 503])

    def lose(answer: Passing) -> None:
        if status := next(lost, 0):
            answer.status, answer.body, answer.headers = status, b"oops", {}

    scene.box.asked.clear()
    scene.box.answer = lose
    headers = [("x-tangle-runid", "again"), ("x-tangle-turnid", "again.t0.paid")]
    assert scene.a.chat("hi", "@paid@b.example", headers=headers).text == "hi"
    asked = [each.headers["x-tangle-turnid"] for each in scene.box.asked]
    assert len(asked) == 3
    assert len(set(asked)) == 1
    assert turns(scene.b, "again") == turns(scene.a, "again") == [("done", None)]
    assert billed(scene.a, "again") == billed(scene.b, "again") == 200


def test_f90_what_a_carnet_reports_of_its_agent_is_final(scene: Scene) -> None:
    """The hop next to a fault repeats, those above do not; who failed may have to be paid."""
    scene.box.answer = untouched
    assert scene.a.chat("hi", "@broken@b.example").code == "provider_error"
    assert len(executions(scene.b.folder, "broken")) == 1


def test_a_cost_that_nobody_knows_is_no_part_of_what_a_run_has_cost(scene: Scene) -> None:
    usage = scene.ask("peer-0", "untold", answered("well")).json["usage"]
    assert (usage["cost"], usage["run_cost"]) == (None, None)
    answer = answered("well", cost="0.5", currency="credits")
    usage = scene.ask("peer-0", "told", answer).json["usage"]
    assert (usage["cost"], usage["run_cost"]) == ("0.5", "0.5")


SECRET = "the provider's own words, at /srv/house"
IN_STREAMS: dict[str, tuple[dict[str, Any], str]] = {
    "context": ({"code": "context_length_exceeded"}, "context_length_exceeded"),
    "a number": ({"code": 400, "type": "BadRequestError"}, "model_refused"),
    "quota": ({"type": "insufficient_quota", "code": "insufficient_quota"}, "model_quota_exceeded"),
    "rate": ({"type": "rate_limit_error"}, "model_rate_limited"),
    "key": ({"type": "invalid_request_error", "code": "invalid_api_key"}, "model_key_refused"),
    "model": ({"type": "invalid_request_error", "code": "model_not_found"}, "model_not_found"),
    "fault": ({"type": "server_error", "code": None}, "provider_unavailable"),
    "nothing": ({"type": None}, "provider_error"),
}


@pytest.mark.parametrize("words", [(), ("so far ",)])
@pytest.mark.parametrize("what", IN_STREAMS)
def test_a_models_error_inside_a_stream_keeps_its_meaning(
    scene: Scene, what: str, words: tuple[str, ...]
) -> None:
    """R51, A65: as if it had come in place of an answer, before the first word and after it."""
    error, code = IN_STREAMS[what]
    run = f"broken-{what}-{len(words)}".replace(" ", "-")
    failed = broken_off({"message": SECRET, **error}, *words)
    scene.model.reply = lambda asked: failed if asked.last_message == run else answered()
    assert scene.a.chat("hello", "model-0").status == 200
    token, named = scene.a.new_token(run), [("x-tangle-runid", run)]
    reply = scene.a.chat(run, "model-0", token=token, headers=named, stream=True)
    assert (reply.status == 200) is bool(words)
    assert f'"code":"{code}"'.encode() in reply.body
    pages = [reply, *(scene.a.get(f"/runs/{run}{tail}", token=token) for tail in ("", "/events"))]
    assert [each for each in pages if b"/srv/house" in each.body] == []
    assert SECRET in scene.a.carnet("run", "show", run).stdout
    until(lambda: any(SECRET in line and code in line for line in scene.a.log_lines()))


def test_a_fault_that_is_the_first_frame_of_a_stream_is_asked_again(scene: Scene) -> None:
    """R56: nothing was shown yet."""
    busy = {"type": "overloaded_error", "message": "later"}
    reply = scene.ask("model-2", "first frame", broken_off(busy), streamed("well"), stream=True)
    assert b"well" in reply.body
    assert scene.asked("first frame") == 2
