"""Tasks at the real server of the a2a-sdk: followed, cancelled, answered where they wait."""

import json
from collections.abc import Generator, Iterator
from threading import Thread
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.interop.a2a_client.scene import Scene, beside_gateway
from tests.interop.a2a_client.sdk_server import SERVED
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import answer, resolution, state_of
from tests.support.http import Reply, chat_body, stream

EVERY = pytest.mark.parametrize("agent", sorted(SERVED))


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(tmp_path_factory.mktemp("sdk"), database()) as scene:
        yield scene


def asked_of(waits: Reply) -> dict[str, Any]:
    asked: dict[str, Any] = waits.json["error"]["interrupt"]
    return asked


def begun(scene: Scene, text: str) -> str:
    """The id of the task that a message has begun, once it has."""
    until(lambda: scene.asked(text=text))
    return str(scene.asked(text=text)[0]["task"])


# ---------------------------------------------------------------------- followed


@EVERY
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_task_that_takes_its_time_is_followed_to_its_end(
    scene: Scene, agent: str, *, stream: bool
) -> None:
    word, replies = f"{agent}-{stream}", list[Reply]()
    caller = Thread(
        target=lambda: replies.append(scene.gateway.chat(f"wait {word}", agent, stream=stream))
    )
    caller.start()
    begun(scene, f"wait {word}")
    scene.let_go(word)
    caller.join()
    (reply,) = replies
    assert reply.status == 200
    shown = reply.body.decode()
    assert shown.index("begun ") < shown.index("done")
    assert shown.count("begun ") == 1
    assert len(scene.asked(text=f"wait {word}")) == 1


# ---------------------------------------------------------------------- cancelled


@EVERY
def test_cancelling_our_run_really_cancels_the_task_there(scene: Scene, agent: str) -> None:
    text, run = f"wait cancel-{agent}", f"run-cancel-{agent}"
    lines = reading(scene, text, agent, ("x-tangle-runid", run))
    scene.gateway.carnet("run", "cancel", run)
    task = begun(scene, text)
    until(lambda: {"task": task} in scene.noted("cancelled"))
    assert any(b"cancelled" in line for line in lines)


@EVERY
def test_who_goes_away_has_the_task_cancelled(scene: Scene, agent: str) -> None:
    text = f"wait gone-{agent}"
    reading(scene, text, agent).close()
    task = begun(scene, text)
    until(lambda: {"task": task} in scene.noted("cancelled"))


@EVERY
def test_a_call_that_waits_and_is_cancelled_has_its_task_cancelled(
    scene: Scene, agent: str
) -> None:
    text, run = f"ask nobody-{agent}", f"run-waiting-{agent}"
    waits = scene.gateway.chat(text, agent, headers=[("x-tangle-runid", run)])
    scene.gateway.carnet("run", "cancel", run)
    assert {"task": asked_of(waits)["a2a"]["task"]} in scene.noted("cancelled")
    late = scene.again(waits, agent, text, resolution(state_of(waits)))
    assert late.status != 200


def reading(
    scene: Scene, text: str, agent: str, *headers: tuple[str, str]
) -> Generator[bytes, None, None]:
    """The stream of an answer, whose first words have come."""
    fields = [("authorization", f"Bearer {scene.gateway.token}"), *headers]
    fields.append(("content-type", "application/json"))
    url = f"{scene.gateway.url}/v1/chat/completions"
    lines = stream("POST", url, fields, chat_body(text, agent, stream=True))
    assert isinstance(lines, Generator)
    assert any(b"begun" in line for line in lines)
    return lines


# ---------------------------------------------------------------------- answered


@EVERY
def test_input_that_is_required_is_an_interrupt_and_its_answer_goes_to_the_same_task(
    scene: Scene, agent: str
) -> None:
    text = f"ask {agent}"
    waits = scene.gateway.chat(text, agent)
    assert (waits.status, waits.code) == (403, "input_required")
    asked = asked_of(waits)
    assert (asked["kind"], asked["message"]) == ("input", f"Which {agent}?")
    assert scene.again(waits, agent, text).body == waits.body
    value = "InJlZCI="  # "red"
    done = scene.again(waits, agent, text, resolution(asked["state"], value=value))
    assert (done.status, done.text) == (200, "first red")
    first, second = [each for each in scene.asked() if each["task"] == asked["a2a"]["task"]]
    assert (first["text"], second["text"]) == (text, "red")
    assert first["context"] == second["context"] == asked["a2a"]["context"]
    again = scene.again(waits, agent, text)
    assert again.body == done.body


@EVERY
def test_two_questions_of_one_task_are_answered_one_after_the_other(
    scene: Scene, agent: str
) -> None:
    text = f"twice {agent}"
    waits = scene.gateway.chat(text, agent)
    second = scene.again(waits, agent, text, resolution(state_of(waits), value="ImEi"))
    assert asked_of(second)["message"] == "And why?"
    assert asked_of(second)["a2a"]["task"] == asked_of(waits)["a2a"]["task"]
    done = scene.again(waits, agent, text, resolution(state_of(second), value="ImIi"))
    assert done.text == "first a then b"


@pytest.mark.parametrize("agent", ["rpc", "plain-rest", "old-rpc"])
def test_a_value_that_is_no_text_goes_as_data_and_a_refusal_in_words(
    scene: Scene, agent: str
) -> None:
    waits = scene.gateway.chat(f"ask data {agent}", agent)
    value = "eyJhIjoxfQ=="  # {"a":1}
    stated = resolution(state_of(waits), value=value)
    done = scene.again(waits, agent, f"ask data {agent}", stated)
    assert json.loads(done.text.removeprefix("first ")) == {"a": 1}
    waits = scene.gateway.chat(f"ask no {agent}", agent)
    refused = resolution(state_of(waits), "rejected")
    assert scene.again(waits, agent, f"ask no {agent}", refused).text == "first declined"


@EVERY
def test_authorisation_that_is_required_is_a_sign_in(scene: Scene, agent: str) -> None:
    text = f"login {agent}"
    waits = scene.gateway.chat(text, agent)
    assert (waits.status, waits.code) == (401, "sign_in_required")
    assert asked_of(waits)["message"] == "Sign in at the vault."
    done = scene.again(waits, agent, text, resolution(state_of(waits)))
    assert (done.status, done.text) == (200, "accepted")


@EVERY
def test_a_person_answers_in_her_inbox_and_after_a_restart(scene: Scene, agent: str) -> None:
    """Where the answer goes stands in the record of the turn: any replica can bring it."""
    text = f"ask inbox {agent}"
    waits = scene.gateway.chat(text, agent)
    scene.gateway.kill()
    scene.gateway.start()
    assert answer(scene.gateway, asked_of(waits)["id"]).status == 200
    done = scene.again(waits, agent, text)
    assert (done.status, done.text) == (200, "first accepted")
    assert len(scene.asked(text=text)) == 1
