"""The same between Carnets that speak SAMVAD, and what others see of it."""

import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import carnet
from carnet.errors import UsageInvalid
from carnet.runtime.client.key import load_key
from carnet.testing.wait import until
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import (
    PAYMENT,
    PRICE,
    SELLER,
    Scene,
    posted,
    resolution,
    same_turn,
    started,
    state_of,
)
from tests.support.http import Reply, request
from tests.support.served import executions
from tests.support.signing.signed import (
    MESSAGE,
    PROFILE,
    STREAM,
    Line,
    Sender,
    encoded,
    envelope,
    frames,
    fresh_nonce,
    message,
    now,
    refusal,
    result,
    sign,
    unsigned,
)


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = started(database, tmp_path_factory, dialect="samvad")
    yield scene
    scene.stop()


def paid_for(scene: Scene, run: str) -> bool:
    return posted(scene, run) == [(PAYMENT + PRICE, PAYMENT + PRICE)] * 2


def test_a_payment_asked_for_two_envelopes_down_is_answered_at_the_origin(scene: Scene) -> None:
    waits = scene.ask()
    assert (waits.status, waits.code) == (402, "payment_required")
    asked = waits.json["error"]["interrupt"]
    assert (asked["origin"], asked["amount"]) == (SELLER, "0.02")
    assert scene.again(waits).body == waits.body
    done = scene.again(waits, resolution(asked["state"]))
    assert (done.status, done.text) == (200, "sold hi")
    assert paid_for(scene, waits.headers["x-tangle-runid"])
    used = scene.again(waits, resolution(asked["state"]))
    assert (used.status, used.code) == (409, "policy_state_invalid")
    assert len(executions(scene.initech.folder, "seller")) == 2  # it asked, and it went on


def test_who_says_no_is_heard_two_envelopes_down(scene: Scene) -> None:
    waits = scene.ask()
    done = scene.again(waits, resolution(state_of(waits), "rejected"))
    assert (done.status, done.text) == (200, "not sold")
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PRICE, PRICE)] * 2


def test_a_stream_of_envelopes_tells_it_in_its_last_frame(scene: Scene) -> None:
    waits = scene.ask(stream=True)
    assert (waits.status, waits.code) == (402, "payment_required")
    done = scene.again(waits, resolution(state_of(waits)), stream=True)
    assert b"sold" in done.body
    assert done.body.endswith(b"data: [DONE]\n\n")
    assert paid_for(scene, waits.headers["x-tangle-runid"])
    text = "@teller@globex.example hi"
    begun = scene.ask(text, stream=True)
    assert (begun.status, b"looking" in begun.body) == (200, True)
    last = begun.body.removesuffix(b"\n\n").split(b"\n\n")[-1]
    asked = json.loads(last.removeprefix(b"data: "))["error"]["interrupt"]
    after = scene.again(begun, resolution(asked["state"]), text=text, stream=True)
    assert after.body.endswith(b"data: [DONE]\n\n")
    assert (after.body.count(b"looking"), after.body.count(b"sold")) == (1, 1)


def test_a_task_that_waits_is_answered_at_the_origin(scene: Scene) -> None:
    wanted = {"skill": "later", "payload": {"text": "hi"}}
    waits = scene.ask("x", "@asks@globex.example", carnet=wanted)
    assert (waits.status, waits.code) == (402, "payment_required")
    assert waits.json["error"]["interrupt"]["origin"] == "@asks@globex.example"
    run = waits.headers["x-tangle-runid"]
    (task,) = [each for each in scene.globex.json("tasks", "list")["tasks"] if each["run"] == run]
    assert (task["status"], task["waits"]) == ("running", True)
    headers = [*same_turn(waits), resolution(state_of(waits))]
    done = scene.ask("x", "@asks@globex.example", headers=headers, carnet=wanted)
    assert (done.status, done.text) == (200, "sold hi")
    assert posted(scene, run)[0] == (PAYMENT + PRICE, PAYMENT + PRICE)


def test_a_value_that_only_the_asker_can_compare_is_asked_for_again(scene: Scene) -> None:
    """The schema is too wide for a header: the origin cannot know that the value does not fit."""
    text = "@wide@globex.example hi"
    waits = scene.ask(text)
    assert (waits.status, waits.code) == (403, "input_required")
    assert "schema" not in waits.json["error"]["interrupt"]
    wrong = resolution(state_of(waits), value=b64encode(b'"no such word"').decode())
    still = scene.again(waits, wrong, text=text)
    assert (still.status, state_of(still)) == (403, state_of(waits))
    right = resolution(state_of(waits), value=b64encode(b'"word number 0007"').decode())
    done = scene.again(waits, right, text=text)
    assert (done.status, done.text) == (200, "word number 0007")


CLERK = "agent://clerk.initech.example"
AT_CLERK = "/agents/clerk"


def known_at(scene: Scene, name: str) -> Sender:
    sender = Sender(f"agent://client-{name}")
    scene.initech.carnet("peers", "add", sender.identity, "--key", sender.public)
    return sender


def asked_in(header: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    return found


def test_a_client_of_the_protocol_sees_two_members_and_a_header(scene: Scene) -> None:
    sender = known_at(scene, "two-members")
    ids: dict[str, Any] = {"traceId": "trace-two", "spanId": "span-two"}
    target = AT_CLERK + MESSAGE
    with Line(scene.initech.port) as line:
        waits = line.send(message(sender, CLERK, target=target, **ids))
        assert refusal(waits) == (403, "AUTH_FAILED")
        assert set(waits.json["error"]) == {"code", "message"}
        assert waits.headers["carnet-code"] == "input_required"
        (asked,) = asked_in(waits.headers["carnet-interrupt"])
        assert (asked["kind"], asked["origin"]) == ("input", "@clerk@initech.example")
        assert line.send(message(sender, CLERK, target=target, **ids)).body == waits.body
        field = resolution(asked["state"], value=b64encode(b'"red"').decode())
        added = line.send(message(sender, CLERK, target=target, **ids).beside(field))
        assert (added.status, added.headers["carnet-code"]) == (401, "header_not_signed")
        again = unsigned(encoded(envelope(sender, CLERK, **ids)), target, field)
        by = f';keyid="{sender.kid}";created={int(now())};nonce="{fresh_nonce()}";tag="carnet"'
        covered = (*PROFILE, field[0])
        done = line.send(sign(sender, again, components=covered, parameters=by, newline=False))
        assert result(done) == {"text": "accepted red"}


def test_its_stream_has_it_in_a_comment_and_its_task_beside_the_record(scene: Scene) -> None:
    sender = known_at(scene, "comment")
    with Line(scene.initech.port) as line:
        text = line.send(message(sender, CLERK, target=AT_CLERK + STREAM)).body
        comment, last = text.removesuffix(b"\n\n").split(b"\n\n")
        (asked,) = asked_in(comment.decode().removeprefix(": carnet-interrupt "))
        assert asked["kind"] == "input"
        (frame,) = frames(last)
        assert (frame["done"], frame["error"]["code"]) == (True, "AUTH_FAILED")
        later = message(sender, CLERK, target=f"{AT_CLERK}/agent/task", mode="async")
        task = line.send(later).json["taskId"]

    def polled() -> Reply:
        return request("GET", f"{scene.initech.url}{AT_CLERK}/agent/task/{task}")

    waits = until(polled, lambda reply: "carnet-interrupt" in reply.headers)
    assert waits.json == {"taskId": task, "status": "running", "progress": 0.0}
    (asked,) = asked_in(waits.headers["carnet-interrupt"])
    assert asked["state"]


async def test_a_program_of_ours_is_told_by_the_code(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = load_key(tmp_path_factory.mktemp("client") / "client.key")
    sender = f"agent://client-{key.kid}"
    scene.initech.carnet("peers", "add", sender, "--key", key.public_text)
    async with carnet.connect(f"{scene.initech.url}{AT_CLERK}", key=key) as agent:
        with pytest.raises(carnet.CarnetError) as refused:
            await agent.chat("hi")
        assert refused.value.code == "input_required"
        with pytest.raises(carnet.CarnetError) as in_stream:
            async for _ in agent.stream("chat", text="hi"):
                pass
        assert in_stream.value.code == "input_required"
        (asked,) = refused.value.interrupts
        assert (type(asked), asked.kind, asked.options) == (carnet.Interrupt, "input", COLOURS)
        with pytest.raises(carnet.CarnetError) as wrong:
            await agent.answer(asked, value="green")
        assert wrong.value.facts["peer_code"] == "SCHEMA_INVALID"
        assert await agent.answer(asked, value="red") == {"text": "accepted red"}
        with pytest.raises(carnet.CarnetError) as used:
            await agent.answer(asked, value="red")
        assert used.value.facts["peer_reason"] == "policy_state_invalid"
        (streamed,) = in_stream.value.interrupts
        assert await agent.answer(streamed, accepted=False) == {"text": "rejected None"}
        with pytest.raises(UsageInvalid):
            await agent.answer(carnet.Interrupt(kind="input", message="?", state="made up"))


async def test_a_task_of_a_program_goes_on_with_its_answer(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = load_key(tmp_path_factory.mktemp("tasks") / "client.key")
    sender = f"agent://client-{key.kid}"
    scene.initech.carnet("peers", "add", sender, "--key", key.public_text)
    async with carnet.connect(f"{scene.initech.url}{AT_CLERK}", key=key) as agent:
        task = await agent.task("chat", text="hi")
        with pytest.raises(carnet.CarnetError) as waits:
            await task.result()
        (asked,) = waits.value.interrupts
        assert (waits.value.code, asked.options) == ("input_required", COLOURS)
        with pytest.raises(UsageInvalid):
            await agent.task_of(task.id).answer(asked, value="blue")
        await task.answer(asked, value="blue")
        assert await task.result() == {"text": "accepted blue"}


COLOURS = ("red", "blue")


async def test_the_program_of_the_page_goes_on_with_its_answer(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = load_key(tmp_path_factory.mktemp("page") / "client.key")
    sender = f"agent://client-{key.kid}"
    scene.initech.carnet("peers", "add", sender, "--key", key.public_text)
    page: dict[str, Any] = {}
    (_, block) = [
        block for block in blocks_of(ROOT / "docs" / "interrupts.md") if block.language == "python"
    ]
    exec(block.text, page)  # noqa: S102  our own page
    async with carnet.connect(f"{scene.initech.url}{AT_CLERK}", key=key) as agent:
        assert await page["order"](agent) == {"text": "accepted red"}


def test_a_command_that_signs_its_call_is_told_and_prints_no_answer(
    scene: Scene, tmp_path: Path
) -> None:
    key = load_key(tmp_path / "client.key")
    sender = f"agent://client-{key.kid}"
    scene.initech.carnet("peers", "add", sender, "--key", key.public_text)
    how = ("--dialect", "samvad", "--key", str(tmp_path / "client.key"))
    done = scene.acme.try_carnet("call", f"{scene.initech.url}{AT_CLERK}", "hi", *how)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "waits for an answer" in done.stderr
