"""A person in a chat is sent to the page of an agent, and says that it is done (R43)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from carnet.cli.chat.history import YOU
from tests.cli.chat.terminal import Terminal, terminal
from tests.interop.conftest import Databases
from tests.interop.policy_parts.scene import Scene, Sent, fresh, played, policy, spoken
from tests.support.organisation import environment

URL = "https://127.0.0.1/consent/1"
CHOICES = "'done' when you have been there, [a]pprove, [d]eny, [r]emember, [l]ater? "


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("chat"), database()) as scene:
        yield scene


@contextmanager
def chat(scene: Scene, *words: str) -> Iterator[Terminal]:
    home = scene.gateway
    given = {"CARNET_TOKEN": home.token, "CARNET_URL": home.url, "NO_COLOR": "1"}
    with terminal("chat", *words, at=home.folder.parent, env=environment(given)) as seat:
        seat.shows("/help lists the commands.")
        yield seat


def asks(scene: Scene, **more: Any) -> str:
    """Have the agent ask for leave at a page of its own; the state that it does so by."""
    state = fresh()
    part = policy("consent_required", state=state, title="Your calendar", **more)

    def reply(sent: Sent) -> dict[str, Any]:
        return spoken(part) if sent.resolution is None else spoken({"text": "Thank you."})

    scene.replies(reply)
    return state


def test_the_page_its_label_and_the_time_left_are_shown_and_done_is_an_answer(scene: Scene) -> None:
    state = asks(scene, url=URL, action_label="Open the page")
    with chat(scene, "paid-search") as seat:
        seat.shows(YOU)
        seat.types("cats")
        seat.shows("? Your calendar\n")
        seat.shows("asks (consent): Please: consent_required.\n")
        seat.shows(f"  Open the page: {URL}\n")
        until = seat.shows(CHOICES)
        assert re.search(r"  until: \S+ \S+ \(\d+ h( \d+ min)? left\)\n", until)
        seat.types("finished")  # which is no word for it
        seat.shows("nothing was answered.")
        seat.shows(CHOICES)
        assert not [sent for sent in scene.sent if sent.resolution]
        seat.types("done")
        seat.shows("Thank you.")
        seat.shows(YOU)
    (resolved,) = [sent.resolution for sent in scene.sent if sent.resolution]
    assert resolved == {"in_reply_to_state": state, "outcome": "accepted"}


def test_a_closed_terminal_loses_nothing(scene: Scene) -> None:
    state = asks(scene, url=URL)
    with chat(scene, "paid-search") as seat:
        seat.shows(YOU)
        seat.types("dogs")
        seat.shows(CHOICES)
    with chat(scene, "--continue") as seat:
        seat.shows(f"  at: {URL}\n")
        seat.shows(CHOICES)
        seat.types("done")
        seat.shows("Thank you.")
    (resolved,) = [sent.resolution for sent in scene.sent if sent.resolution]
    assert resolved is not None
    assert resolved["in_reply_to_state"] == state


def test_where_there_is_no_page_done_is_no_answer(scene: Scene) -> None:
    asks(scene, url="https://elsewhere.example/x")
    with chat(scene, "paid-search") as seat:
        seat.shows(YOU)
        seat.types("mice")
        seat.shows("  The link that came with it does not lead to the host of its agent")
        seat.shows("[a]pprove, [d]eny, [r]emember, [l]ater? ")
        seat.types("done")
        seat.shows("nothing was answered.")
        assert "elsewhere.example" not in seat.screen
        assert "when you have been there" not in seat.screen
