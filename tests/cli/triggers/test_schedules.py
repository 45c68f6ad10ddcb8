"""`carnet schedules` and `carnet hooks` as their owner types them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.support.organisation import Organisation

AGENTS = '''
async def echo(visit):
    """Say it again."""
    return visit.text
'''


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    organisation = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    organisation.configure("", agents=AGENTS)
    organisation.start()
    yield organisation
    assert organisation.stop() == 0


def types(acme: Organisation, *words: str) -> str:
    done = acme.try_carnet(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_schedule_from_its_making_to_its_end(acme: Organisation) -> None:
    asked = ("--agent", "echo", "--cron", "30 7 * * mon-fri", "--message", "Write the digest.")
    made = types(acme, "schedules", "add", "digest", *asked, "--zone", "Europe/Berlin")
    assert "digest is due next at" in made
    listed = types(acme, "schedules", "list")
    assert "30 7 * * mon-fri" in listed
    assert "Europe/Berlin" in listed
    assert "begins now" in types(acme, "schedules", "fire", "digest")
    shown = until(lambda: _fired(types(acme, "schedules", "show", "digest")))
    assert shown.count("T07:30:00") == 5
    assert "rests" in types(acme, "schedules", "pause", "digest")
    assert "paused" in types(acme, "schedules", "list")
    assert "goes on" in types(acme, "schedules", "resume", "digest")
    page = json.loads(types(acme, "schedules", "show", "digest", "--format", "json"))
    assert page["state"] == "active"
    assert "deleted" in types(acme, "schedules", "delete", "digest")
    assert types(acme, "schedules", "list").startswith("None. Make one:")


def _fired(text: str) -> str:
    return text if "fired" in text else ""


def test_a_hook_from_its_making_to_its_end(acme: Organisation) -> None:
    Path(acme.folder / "given.secret").write_text("a secret-of-the-sender".replace(" ", "-"))
    made = types(
        acme,
        *("hooks", "add", "shop", "--agent", "echo", "--scheme", "stripe"),
        *("--template", "Sold: {{ body.what }}", "--secret-file", "given.secret"),
    )
    assert f"{acme.url}/hooks/owner.shop" in made
    assert "a-secret-of-the-sender" in made
    assert "a-secret-of-the-sender" not in types(acme, "hooks", "show", "shop")
    assert "stripe" in types(acme, "hooks", "list")
    assert "begins now" in types(acme, "hooks", "fire", "shop", "--body", '{"what": "tea"}')
    until(lambda: _fired(types(acme, "hooks", "show", "shop")))
    assert "takes nothing" in types(acme, "hooks", "pause", "shop")
    assert "goes on" in types(acme, "hooks", "resume", "shop")
    assert "a-secret-of-the-sender" not in types(acme, "hooks", "rotate", "shop", "--hours", "1")
    assert "deleted" in types(acme, "hooks", "delete", "shop")
    assert types(acme, "hooks", "list").startswith("None. Make one:")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("hooks", "show", "none"), "carnet hooks list"),
        (("schedules", "delete", "none"), "You have none of that name"),
        (("hooks", "fire", "x", "--body", "[1]"), "no JSON object"),
        (("hooks", "add", "x", "--agent", "echo", "--secret-file", "gone"), "cannot be read"),
        (("hooks", "add", "x", "--agent", "nobody"), "No agent of that name"),
        (
            ("schedules", "add", "x", "--agent", "echo", "--cron", "0 0 30 2 *", "--message", "m"),
            "a date that never comes",
        ),
    ],
)
def test_a_mistake_says_what_to_do(
    acme: Organisation, words: tuple[str, ...], expected: str
) -> None:
    done = acme.try_carnet(*words)
    assert done.returncode != 0
    assert expected in done.stderr


def test_who_is_no_person_is_told_to_become_one(acme: Organisation) -> None:
    machine = acme.new_token("a-machine", "--scope", "triggers")
    done = acme.try_carnet("schedules", "list", env={"CARNET_TOKEN": machine})
    assert done.returncode != 0
    assert "--person" in done.stderr
