"""A dialect that no file of the package knows, spoken: by its row a gateway calls another one."""

from collections.abc import AsyncIterator
from pathlib import Path

import click
import pytest
from msgspec import Struct

from carnet.cli.call.call import call
from carnet.cli.trust.peers import add as peers_add
from carnet.config import load
from carnet.config.outbound import DIALECTS as CONFIGURED
from carnet.errors import ConfigInvalid
from carnet.ports.trust.trust import Peer
from carnet.wire.dialects import DIALECTS, by_peer
from tests.gateway.dialects.plain_words import WORDS
from tests.support.house import House, housed, listening

WITH_WORDS = (*DIALECTS, WORDS)
FAR = "@echo@globex.example"
RUN = "x-tangle-runid"


class Two(Struct, frozen=True):
    """Two gateways; Acme lists Globex as one that speaks plain words."""

    acme: House
    globex: House


def peers(url: str) -> str:
    return f"""
[peers."globex.example"]
url = "{url}"
dialect = "words"
token = {{file = "globex.token"}}
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    found = tmp_path / "globex", tmp_path / "acme"
    for folder in found:
        folder.mkdir()
    return found


@pytest.fixture
async def globex(folders: tuple[Path, Path]) -> AsyncIterator[House]:
    async with housed(folders[0], domain="globex.example", dialects=WITH_WORDS) as globex:
        yield globex


@pytest.fixture
async def houses(folders: tuple[Path, Path], globex: House) -> AsyncIterator[Two]:
    _, here = folders
    (here / "globex.token").write_text(globex.token)
    (here / "globex.token").chmod(0o600)
    async with (
        listening(globex) as url,
        housed(here, peers(url), dialects=WITH_WORDS) as acme,
    ):
        yield Two(acme, globex)


async def dialects_of(house: House, run: str) -> list[str | None]:
    """What the turns of a run were asked in."""
    return [turn.dialect for turn in await house.gateway.store.records.run(run, reader=None)]


async def outbound(house: House, run: str) -> list[tuple[str, str, str | None]]:
    """The dialect, the state and the peer's own word of every call that left in a run."""
    made = await house.gateway.store.records.outbound(run, reader=None)
    return [(each.dialect, each.state, each.peer_code) for calls in made.values() for each in calls]


async def test_a_peer_is_called_in_it_whatever_the_call_came_in(houses: Two) -> None:
    chatted = await houses.acme.chat("hello", FAR, x_tangle_runid="run-chat")
    assert chatted.json()["choices"][0]["message"]["content"] == "hello"
    body = {"to": FAR, "say": "well"}
    worded = await houses.acme.ask("POST", "/words", body, headers={RUN: "run-words"})
    assert worded.body == b"SAID well"
    for run, came_in in (("run-chat", "openai"), ("run-words", "words")):
        assert await dialects_of(houses.acme, run) == [came_in]
        assert await dialects_of(houses.globex, run) == ["words"]  # and it is the same run there
        assert await outbound(houses.acme, run) == [("words", "done", None)]


async def test_a_stream_is_asked_for_and_comes_whole(houses: Two) -> None:
    messages = [{"role": "user", "content": "all at once"}]
    body = {"model": FAR, "messages": messages, "stream": True}
    reply = await houses.acme.ask("POST", "/v1/chat/completions", body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert b"all at once" in reply.body
    assert reply.body.endswith(b"data: [DONE]\n\n")


async def test_what_the_other_side_refuses_is_told_in_the_words_of_the_caller(houses: Two) -> None:
    run = {RUN: "run-refused"}
    body = {"to": "@nobody@globex.example", "say": "x"}
    assert (await houses.acme.ask("POST", "/words", body, headers=run)).body.startswith(
        b"NO peer_refused"
    )
    assert await outbound(houses.acme, "run-refused") == [("words", "refused", "agent_not_found")]
    reply = await houses.acme.chat("x", "@broken@globex.example")
    assert (reply.status, reply.json()["code"]) == (502, "peer_refused")


async def test_a_skill_is_not_asked_for_where_there_is_no_word_for_it(houses: Two) -> None:
    body = {
        "model": FAR,
        "messages": [{"role": "user", "content": "x"}],
        "carnet": {"skill": "add", "payload": {"a": 1}},
    }
    run = {RUN: "run-skill"}
    reply = await houses.acme.ask("POST", "/v1/chat/completions", body, headers=run)
    assert (reply.status, reply.json()["code"]) == (404, "skill_not_found")
    assert await dialects_of(houses.globex, "run-skill") == []


async def test_its_chain_goes_on_at_the_other_side(houses: Two) -> None:
    deep = {"x-tangle-forwarded-depth": "2", RUN: "run-deep"}
    body = {"to": "@onward@globex.example", "say": "onward echo"}
    reply = await houses.acme.ask("POST", "/words", body, headers=deep)
    assert reply.body == b"SAID stopped at 4 of 4"


async def test_a_gateway_without_the_row_neither_reads_its_name_nor_calls_in_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "carnet.toml").write_text(
        '[gateway]\ndomain = "acme.example"\n' + peers("http://127.0.0.1:1")
    )
    with pytest.raises(ConfigInvalid, match="one of tangle, samvad"):
        load(tmp_path / "carnet.toml", {})
    listed = Peer(domain="globex.example", url="http://127.0.0.1:1", dialect="words")
    async with housed(tmp_path) as house:
        await house.gateway.store.peers.put(listed)
        reply = await house.chat("hello", FAR)
    assert (reply.status, reply.json()["code"]) == (404, "peer_unknown")


def test_the_names_that_files_and_commands_take_are_those_of_the_rows() -> None:
    assert tuple(by_peer()) == CONFIGURED
    assert choices(peers_add) == list(by_peer())
    assert choices(call) == [each.name for each in DIALECTS if each.spoken is not None]


def choices(command: click.Command) -> list[str]:
    (option,) = [each for each in command.params if each.name == "dialect"]
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)
