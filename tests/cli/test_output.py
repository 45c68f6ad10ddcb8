"""Skills from the command line: what they give, how they are found, what is said of a wrong one."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from carnet.cli.output import Growing
from carnet.testing.wait import until
from tests.cli.conftest import Cli, Ran
from tests.support.http import request
from tests.support.organisation import Organisation

LONG = 30.0

AGENTS = '''
"""Agents of the test."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date

import carnet

clerk = carnet.agent("clerk")


@dataclass
class Booking:
    day: date
    seats: int = 2


@dataclass
class Table:
    number: int


async def echo(visit):
    """Say it again."""
    return visit.text


@clerk.skill("book")
async def book(booking: Booking) -> dict[str, object]:
    """Book a table."""
    return {"number": booking.seats, "day": booking.day}


@clerk.skill("shout")
async def shout(text: str) -> str:
    return text.upper()


@clerk.skill("recite", output=Table)
async def recite(lines: list[str]) -> AsyncIterator[object]:
    for line in lines:
        yield line
    yield Table(len(lines))


FORGED = "Be one.\\nforged  active  \\u2028forged too \\x1b[2J"


@clerk.skill("friends", allowed_peers=["globex.example"], description=FORGED)
async def friends() -> None: ...


@clerk.skill("add", modes=["sync"])
async def add(a: int, b: int = 1) -> int:
    return a + b
'''

CONFIG = """
[agents.clerk]
target = "agents:clerk"
trust = "public"
version = "3.1"
description = "Books tables."
tokens_per_sender_per_day = 5000
"""

Typed = Callable[..., Ran]


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    organisation = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    organisation.configure(CONFIG, agents=AGENTS)
    organisation.start()
    yield organisation
    assert organisation.stop() == 0


@pytest.fixture
def typed(acme: Organisation, cli: Cli) -> Typed:
    """A command of that organisation, typed in this process."""
    return lambda *words: cli("-c", str(acme.folder / "carnet.toml"), *words)


def by_gateway(_: Organisation) -> tuple[str, ...]:
    return ("clerk",)


def by_signature(acme: Organisation) -> tuple[str, ...]:
    return (f"{acme.url}/agents/clerk", "--dialect", "samvad")


WAYS = pytest.mark.parametrize("way", [by_gateway, by_signature])
Way = Callable[[Organisation], tuple[str, ...]]


@WAYS
@pytest.mark.parametrize(
    ("words", "whole", "growing"),
    [
        (("skill=shout", "text=hi"), "HI\n", "HI\n"),
        (
            ("skill=book", "day=2026-12-24"),
            '{"number":2,"day":"2026-12-24"}\n',
            '{"number":2,"day":"2026-12-24"}\n',
        ),
        (("skill=recite", 'lines:=["a","b"]'), '{"number":2}\n', 'ab\n{"number":2}\n'),
    ],
)
def test_a_result_looks_the_same_whichever_way_it_came(
    acme: Organisation, typed: Typed, way: Way, words: tuple[str, ...], whole: str, growing: str
) -> None:
    assert typed("call", *way(acme), *words).out == whole
    assert typed("call", *way(acme), *words, "--stream").out == growing


@WAYS
def test_the_field_that_a_schema_refuses_is_named(
    acme: Organisation, typed: Typed, way: Way
) -> None:
    ran = typed("call", *way(acme), "skill=book", "day=soon")
    assert ran.code != 0
    assert "'day'" in ran.err


@WAYS
def test_what_was_meant_as_json_and_typed_as_text_is_told_how_to_write_it(
    acme: Organisation, typed: Typed, way: Way
) -> None:
    ran = typed("call", *way(acme), "skill=add", "a=11")
    assert "a=11 is text; for a number, true or a list write a:=11" in ran.err
    assert typed("call", *way(acme), "skill=add", "a:=11").out == '{"result":12}\n'
    assert ":=" not in typed("call", *way(acme), "skill=add", "a=eleven").err
    assert ":=" not in typed("call", *way(acme), "skill=book", "day=soon", "seats:=3").err


@WAYS
def test_a_skill_that_cannot_be_a_task_is_told_so(
    acme: Organisation, typed: Typed, way: Way
) -> None:
    ran = typed("call", *way(acme), "skill=add", "a:=1", "--task")
    assert ran.code != 0
    assert "The skill cannot be a task: leave out --task" in ran.err


def test_why_a_delegation_is_not_taken_is_told(
    acme: Organisation, typed: Typed, tmp_path: Path
) -> None:
    """What only the other side can judge: whom it is for, and whether it knows the key."""
    call = ("call", *by_signature(acme), "skill=shout", "text=hi", "--key", "bob.key")
    stranger = typed(*call).err
    admit = stranger[stranger.index("peers add ") :].splitlines()[0].split()
    assert typed(*admit).code == 0
    # A gateway that runs learns of it in a moment.
    until(lambda: typed(*call).out, lambda out: out == "HI\n")
    grant = ("tokens", "delegate", admit[2], "--scope", "shout", "--for")
    good = typed(*grant, "agent://clerk.acme.example").out
    (tmp_path / "token").write_text(good)
    assert typed(*call, "--delegate", "token").out == "HI\n"
    other = typed(*grant, "agent://other.example").out.strip()
    ran = typed(*call, "--delegate", other)
    assert (ran.code, "(link 1: it is for another agent)" in ran.err) == (1, True)
    error = typed(*call, "--delegate", other, "--format", "json").error
    assert error["peer_detail"] == "link 1: it is for another agent"


@WAYS
def test_a_wrong_skill_is_answered_with_what_shows_the_right_ones(
    acme: Organisation, typed: Typed, way: Way
) -> None:
    ran = typed("call", *way(acme), "skill=bok")
    assert ran.code == 1
    assert "agents inspect ADDRESS" in ran.err


def test_the_nearest_skill_is_suggested(typed: Typed) -> None:
    assert "Did you mean 'book'?" in typed("call", "clerk", "skill=bok").err
    assert "Did you mean 'book'?" in typed("call", "clerk", "hello").err


@pytest.mark.parametrize("address", ["clerk", "@clerk@acme.example", "agent://clerk.acme.example"])
def test_an_agent_of_our_own_can_be_looked_at(typed: Typed, address: str) -> None:
    page = typed("agents", "inspect", address, "--format", "json").page
    assert (page["id"], page["description"]) == ("agent://clerk.acme.example", "Books tables.")
    skills = {skill["id"]: skill for skill in page["skills"]}
    assert list(skills) == ["book", "shout", "recite", "friends", "add"]
    assert skills["friends"]["trust"] == "trusted-peers"
    limits = page["rate_limit"]
    assert limits["requests_per_minute"] >= limits["requests_per_sender"] > 0
    assert limits["tokens_per_sender_per_day"] == 5000
    assert "5,000 tokens per sender per day" in typed("agents", "inspect", address).out


def test_a_card_adds_no_line_to_what_is_shown(acme: Organisation, typed: Typed) -> None:
    shown = typed("agents", "inspect", f"{acme.url}/agents/clerk").out
    assert "Be one." in shown
    assert not [line for line in shown.splitlines() if line.startswith("forged")]
    assert "\x1b" not in shown


def test_an_agent_that_is_not_there_is_answered_with_the_nearest(typed: Typed) -> None:
    ran = typed("agents", "inspect", "clrk")
    assert (ran.code, "Did you mean 'clerk'?" in ran.err) == (1, True)


def test_agents_are_listed_with_their_skills(acme: Organisation, typed: Typed) -> None:
    assert "book, shout, recite, friends, add" in typed("agents", "list").out
    listed = typed("agents", "list", "--format", "json").page["agents"]
    assert {agent["name"]: agent["skills"] for agent in listed}["echo"] == ["chat"]
    module = acme.folder / "agents.py"
    whole = module.read_text()
    try:
        module.write_text("import nothing_of_the_kind")
        read, loaded = typed("agents", "list"), typed("agents", "list", "--load")
    finally:
        module.write_text(whole)
    assert (read.code, "Not seen of clerk: the module 'agents' has no" in read.err) == (0, True)
    assert (loaded.code, "No module named 'nothing_of_the_kind'" in loaded.err) == (0, True)


def test_the_version_of_an_agent_is_its_own(acme: Organisation) -> None:
    for prefix, version in (("/agents/clerk", "3.1"), ("/agents/echo", "1.0.0")):
        card = request("GET", f"{acme.url}{prefix}/.well-known/agent.json").json
        assert card["version"] == version
        health = request("GET", f"{acme.url}{prefix}/agent/health").json
        assert health["agentVersion"] == version
    assert b"Books tables." in request("GET", f"{acme.url}/agents/clerk/agent/intro").body


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("GET", "/agents/clerk/agent/message", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    acme: Organisation, method: str, path: str, allowed: str
) -> None:
    reply = request(method, acme.url + path, (), b"" if method == "POST" else None)
    assert (reply.status, reply.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("texts", "result", "printed"),
    [
        (["a", "b"], None, "ab\n"),
        (["a", "b"], {"text": "ab"}, "ab\n"),
        (["{"], None, "{\n"),
        (["{", "}"], {"a": 1}, '{}\n{"a":1}\n'),
        (['{"a": 1}', ""], {"a": 1}, '{"a":1}\n'),
        (['{"a":1}\n'], {"b": 2}, '{"a":1}\n{"b":2}\n'),
        ([], {}, "{}\n"),
    ],
)
def test_a_growing_answer_ends_in_its_result_once(
    capsys: pytest.CaptureFixture[str],
    texts: list[str],
    result: dict[str, object] | None,
    printed: str,
) -> None:
    with Growing(holds=True) as growing:
        for text in texts:
            growing.say(text)
        growing.end(result)
    assert capsys.readouterr().out == printed


def test_what_waits_is_said_also_when_the_answer_breaks_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with suppress(ConnectionError), Growing(holds=True) as growing:
        growing.say("{")
        raise ConnectionError
    assert capsys.readouterr().out == "{"
