"""Somebody between two Carnets asks in the place of an agent, or for more than it did (A27)."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import ASKS, CONFIG, resolution, same_turn, state_of
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.travel.middlebox import Change, Middlebox, Passing, middlebox, untouched


class Scene(NamedTuple):
    """Acme calls Globex by its key, through the box."""

    acme: Organisation
    globex: Organisation
    box: Middlebox

    def ask(self, agent: str = "seller", on_the_way: Change = untouched) -> Reply:
        self.box.answer = on_the_way
        try:
            return self.acme.chat("hi", f"@{agent}@globex.example")
        finally:
            self.box.answer = untouched


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("box")
    acme = organisation(place / "acme", "acme.example", database())
    globex = organisation(place / "globex", "globex.example", database())
    globex.configure(CONFIG, agents=(globex.folder / "agents.py").read_text() + ASKS)
    with ExitStack() as held:
        box = held.enter_context(middlebox(globex.port))
        acme.carnet("peers", "add", "globex.example", "--url", box.url)
        globex.carnet("peers", "add", "acme.example", "--url", acme.url, "--credit", "10")
        acme.start()
        globex.start()
        yield Scene(acme, globex, box)
        assert (acme.stop(), globex.stop()) == (0, 0)


def more_money(passing: Passing) -> None:
    passing.body = passing.body.replace(b'"amount":"0.02"', b'"amount":"9"')


def other_state(passing: Passing) -> None:
    body = json.loads(passing.body)
    for asked in body["error"]["interrupts"]:
        asked["state"] = "A" * 43
    passing.body = json.dumps(body).encode()


def no_proof(passing: Passing) -> None:
    passing.headers.pop("carnet-receipt")


def a_question(passing: Passing) -> None:
    asked = {"kind": "payment", "id": "x", "state": "s", "amount": "9", "currency": "credits"}
    passing.status = 402
    passing.body = json.dumps({"error": {"code": "x", "interrupt": asked}}).encode()


@pytest.mark.parametrize("change", [more_money, other_state, no_proof])
def test_a_question_that_was_changed_on_the_way_is_none(scene: Scene, change: Change) -> None:
    refused = scene.ask(on_the_way=change)
    assert (refused.status, refused.code) == (502, "peer_response_invalid")


def test_a_question_in_the_place_of_an_answer_is_none(scene: Scene) -> None:
    refused = scene.ask("paid", a_question)
    assert (refused.status, refused.code) == (502, "peer_response_invalid")


def test_a_question_that_passes_untouched_is_answered(scene: Scene) -> None:
    waits = scene.ask()
    assert waits.status == 402
    headers = [*same_turn(waits), resolution(state_of(waits))]
    done = scene.acme.chat("hi", "@seller@globex.example", headers=headers)
    assert (done.status, done.text) == (200, "sold hi")
