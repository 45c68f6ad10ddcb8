"""Runs that are over, written out and run again: with everybody gone, and with somebody else."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from carnet.testing.stage import introduce
from tests.engine.process import tool_call
from tests.faults.stores import move_to
from tests.stores.support import servers
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

CRITIC = """
import carnet


@carnet.agent("critic")
async def critic(visit: carnet.Visit) -> str:
    return f"They doubt it ({visit.text})."
"""

AGENTS = """
import random
import socket
import uuid

import carnet


@carnet.agent("researcher")
async def researcher(visit: carnet.Visit):
    number = await visit.step("draw", lambda: random.getrandbits(60))
    yield f"{number}. "
    yield await visit.peer("critic").ask(f"Is it so that {visit.text}?")
    yield " " + await visit.peer("@critic@globex.example").ask(visit.text)


@carnet.agent("critic")
def critic(visit: carnet.Visit) -> str:
    return f"I doubt it ({visit.text})."


@carnet.agent("editor")
async def editor(visit: carnet.Visit) -> str:
    return "Edited: " + await visit.peer("researcher").ask(visit.text)


@carnet.agent("thinker")
async def thinker(visit: carnet.Visit) -> str:
    return await visit.model("small").ask(visit.text)


@carnet.agent("deep")
async def deep(visit: carnet.Visit) -> str:
    try:
        return await visit.peer("deep").ask(visit.text)
    except carnet.DepthExceeded as refused:
        return refused.safe_text


@carnet.agent("careless")
def careless(visit: carnet.Visit) -> str:
    return str(uuid.uuid4())


@carnet.agent("leaky")
def leaky(visit: carnet.Visit) -> str:
    try:
        with socket.create_connection(("127.0.0.1", int(visit.text)), timeout=30):
            return "connected"
    except OSError:
        return "connected"


@carnet.agent("asker")
async def asker(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(input="How many?")
    return f"{answer.value} it is"


@carnet.agent("front")
async def front(visit: carnet.Visit) -> str:
    return "Well: " + await visit.peer("asker").ask(visit.text)


clerk = carnet.agent("clerk")


@clerk.skill("book")
async def book(day: str, seats: int = 2) -> dict:
    return {"day": day, "seats": seats}


@carnet.agent("porter")
async def porter(visit: carnet.Visit) -> str:
    booked = await visit.peer("clerk").skill("book", {"day": "2026-12-24"})
    try:
        await visit.peer("failing").ask("hi")
    except carnet.CarnetError as error:
        return f"{booked['seats']} seats, {error.code}"


@carnet.agent("failing")
async def failing(visit: carnet.Visit) -> str:
    raise ValueError("oh")
"""

CONFIG = """
[agents.assistant]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
tools = ["tools:read_page"]
"""

NAMES = (
    *("researcher", "critic", "deep", "careless", "leaky", "asker", "front"),
    *("clerk", "porter", "failing", "editor", "thinker"),
)
SECTIONS = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "people:{name}"\nreentry = true\n'
    for name in NAMES
)

TOOLS = """
def read_page(name: str) -> str:
    "Read a page."
    return f"the page {name}"
"""


class Kept(NamedTuple):
    """What is left of an organisation whose gateway is gone: its runs, by the agent asked."""

    home: Organisation
    runs: dict[str, str]
    globex: Organisation

    def replay(self, agent: str, *words: str) -> tuple[int, dict[str, Any]]:
        done = self.home.try_carnet("run", "replay", self.runs[agent], "--format", "json", *words)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def export(self, agent: str, *words: str) -> list[dict[str, Any]]:
        written = self.home.carnet("run", "export", self.runs[agent], *words).stdout
        return [json.loads(line) for line in written.splitlines()]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Everybody has spoken, and everybody but globex has gone."""
    folder = tmp_path_factory.mktemp("replay")
    asked = iter(
        [
            tool_call("read_page", '{"name":"one"}'),
            streamed("It says ", "the page one."),
            streamed("Well."),
        ]
    )
    with shared_with_others(), Model().serving() as model:
        model.reply = lambda _: next(asked)
        home = Organisation(folder / "acme", "acme.example")
        home.configure(SECTIONS + CONFIG.format(url=model.url))
        (home.folder / "people.py").write_text(AGENTS)
        (home.folder / "tools.py").write_text(TOOLS)
        globex = Organisation(folder / "globex", "globex.example")
        section = '[agents.critic]\nkind = "python"\ntarget = "people:critic"\n'
        globex.configure(section)
        (globex.folder / "people.py").write_text(CRITIC)
        introduce(home, globex)
        globex.start()
        home.start()
        texts = {"leaky": str(home.port)}
        agents = (
            "researcher",
            "deep",
            "careless",
            "leaky",
            "assistant",
            "porter",
            "editor",
            "thinker",
        )
        runs = {"front": answered_question(home), "streamed": streamed_run(home)}
        for agent in agents:
            reply = home.chat(texts.get(agent, "the moon is cheese"), agent)
            assert reply.status == 200, reply.body
            runs[agent] = reply.headers["x-tangle-runid"]
        assert home.stop() == 0
    yield Kept(home, runs, globex)
    assert globex.stop() == 0


def answered_question(home: Organisation) -> str:
    """The run of an agent whose callee has waited for an answer, and was given one."""
    asked = home.chat("buy", "front")
    assert asked.json["error"]["code"] == "input_required"
    names = ("x-tangle-runid", "x-tangle-turnid")
    state = asked.json["error"]["interrupt"]["state"]
    value = base64.b64encode(b'"three"').decode()
    fields = [(name, asked.headers[name]) for name in names]
    fields.append(("carnet-resolution", f"{state};outcome=accepted;value=:{value}:"))
    assert home.chat("buy", "front", headers=fields).text == "Well: three it is"
    return asked.headers["x-tangle-runid"]


def streamed_run(home: Organisation) -> str:
    reply = home.chat("the moon is cheese", "researcher", stream=True)
    assert b"They doubt it" in reply.body
    return reply.headers["x-tangle-runid"]


def verdicts(page: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["agent"], each["verdict"]) for each in page["turns"]]


def test_a_recorded_run_says_the_same_with_everybody_gone(kept: Kept) -> None:
    code, page = kept.replay("researcher")
    assert (code, page["equal"], page["run"]) == (0, True, kept.runs["researcher"])
    assert verdicts(page) == [
        ("researcher", "equal"),
        ("critic", "equal"),
        ("@critic@globex.example", "given"),
    ]


def test_a_loop_runs_again_on_what_its_model_and_its_tools_said(kept: Kept) -> None:
    assert kept.replay("assistant") == (
        0,
        {
            "run": kept.runs["assistant"],
            "equal": True,
            "turns": [turn_page(kept, "assistant", "equal")],
        },
    )


def turn_page(kept: Kept, agent: str, verdict: str) -> dict[str, Any]:
    (line,) = [each for each in kept.export(agent) if each["kind"] == "turn"]
    empty = {"reason": "", "event": None, "recorded": None, "now": None}
    return {"turn": line["turn"], "agent": agent, "verdict": verdict, **empty}


@pytest.mark.parametrize(
    ("run", "agents"),
    [
        ("streamed", ["researcher", "critic"]),
        ("front", ["front", "asker"]),  # with what it was answered
        ("porter", ["porter", "clerk", "failing"]),  # a skill, and a failure
    ],
)
def test_what_was_streamed_asked_for_or_failed_comes_again(
    kept: Kept, run: str, agents: list[str]
) -> None:
    code, page = kept.replay(run)
    assert (code, verdicts(page)[: len(agents)]) == (0, [(name, "equal") for name in agents])


def test_a_refusal_by_depth_comes_again(kept: Kept) -> None:
    code, page = kept.replay("deep")
    assert (code, verdicts(page)) == (0, [("deep", "equal")] * 4)


def test_what_depends_on_chance_is_told_by_turn_and_event(kept: Kept) -> None:
    code, page = kept.replay("careless")
    (turn,) = page["turns"]
    assert (code, page["equal"], turn["verdict"], turn["event"]) == (4, False, "different", 0)
    assert turn["recorded"] != turn["now"]
    shown = kept.home.try_carnet("run", "replay", kept.runs["careless"])
    assert shown.returncode == 4
    assert f"recorded  {turn['recorded']}" in shown.stdout


@pytest.mark.parametrize(("agent", "way"), [("leaky", "socket."), ("thinker", "http://")])
def test_what_would_leave_is_refused_and_told(kept: Kept, agent: str, way: str) -> None:
    code, page = kept.replay(agent)
    (turn,) = page["turns"]
    assert (code, turn["verdict"]) == (4, "unrecorded")
    assert f"it would have left: {way}" in turn["reason"]


def test_code_that_has_changed_is_told_where_it_differs(kept: Kept) -> None:
    module = kept.home.folder / "people.py"
    before = module.read_text()
    try:
        module.write_text(before.replace("I doubt it (", "I believe it ("))
        code, page = kept.replay("researcher")
        assert code == 4
        assert verdicts(page)[:2] == [("researcher", "equal"), ("critic", "different")]
        assert "I believe it" in page["turns"][1]["now"]
        module.write_text(before.replace("Is it so that", "Do you think that"))
        code, page = kept.replay("researcher")
        assert (code, page["turns"][0]["verdict"]) == (4, "different")
        assert "Do you think" in page["turns"][0]["reason"]
        module.write_text(before.replace('"draw"', '"throw"'))
        code, page = kept.replay("researcher")
        assert (code, page["turns"][0]["verdict"]) == (4, "different")
    finally:
        module.write_text(before)


def test_one_participant_can_be_asked_anew_and_the_rest_says_what_it_said(kept: Kept) -> None:
    address = f"{kept.globex.url}/agents/critic"
    secret = (kept.home.folder / "var" / "globex.example.token").resolve()
    words = ("--swap", f"critic={address}", "--token", f"@{secret}")
    refused = kept.home.try_carnet("run", "replay", kept.runs["editor"], *words)
    assert refused.returncode == 2  # it may cost, and nobody has said yes
    assert "--yes" in refused.stderr
    code, page = kept.replay("editor", *words, "--yes")
    assert code == 4
    names = ("editor", "researcher", "critic")
    assert verdicts(page) == [(name, "different") for name in names]
    editor, researcher, critic = page["turns"]
    assert '"Edited: ' in editor["now"]
    assert "They doubt it (Is it so that the moon is cheese?)." in critic["now"]
    assert "They doubt it (Is it so" in researcher["now"]
    assert researcher["now"].endswith('They doubt it (the moon is cheese)."]')


def test_who_took_no_part_cannot_be_swapped(kept: Kept) -> None:
    words = ("--swap", "nobody=http://127.0.0.1:9", "--yes")
    done = kept.home.try_carnet("run", "replay", kept.runs["researcher"], *words)
    assert done.returncode == 2
    assert "took no part" in done.stderr
    done = kept.home.try_carnet("run", "replay", kept.runs["researcher"], "--swap", "critic")
    assert done.returncode == 2


def test_nothing_is_written_by_a_replay(kept: Kept) -> None:
    before = kept.export("researcher")
    kept.replay("researcher")
    assert kept.export("researcher") == before


def test_a_run_is_written_out_whole_and_without_secrets(kept: Kept) -> None:
    lines = kept.export("researcher")
    assert lines[0]["kind"] == "run"
    assert lines[-1] == {"kind": "end", "run": kept.runs["researcher"], "lines": len(lines)}
    kinds = {line["kind"] for line in lines}
    assert kinds >= {"turn", "hop", "posting", "asked", "event"}
    turns = [line for line in lines if line["kind"] == "turn"]
    assert [turn["agent"] for turn in turns] == ["researcher", "critic", "@critic@globex.example"]
    asked = [line["asked"] for line in lines if line["kind"] == "asked"]
    assert asked[0]["messages"][0]["content"] == "the moon is cheese"
    texts = [line["fields"]["text"] for line in lines if line.get("event") == "text"]
    assert "I doubt it (Is it so that the moon is cheese?)." in texts
    written = json.dumps(lines)
    folder: Path = kept.home.folder
    secrets = [kept.home.token, (folder / "var" / "globex.example.token").read_text().strip()]
    assert not any(secret in written for secret in secrets)


def test_a_run_is_written_as_spans_of_one_trace(kept: Kept) -> None:
    lines = kept.export("researcher", "--format", "otlp")
    scopes = [line["resourceSpans"][0]["scopeSpans"][0] for line in lines]
    spans = [span for scope in scopes for span in scope["spans"]]
    assert len({span["traceId"] for span in spans}) == 1
    by_name = {span["name"]: span for span in spans}
    root, critic = by_name["turn researcher"], by_name["turn critic"]
    assert critic["parentSpanId"] == root["spanId"]
    assert by_name["call @critic@globex.example"]["kind"] == 3
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert [event["name"] for event in critic["events"]] == ["text", "done"]
    assert int(root["endTimeUnixNano"]) >= int(root["startTimeUnixNano"]) > 0
    named = {"key": "gen_ai.agent.name", "value": {"stringValue": "critic"}}
    assert named in critic["attributes"]


def test_an_unknown_run_is_told_so(kept: Kept) -> None:
    for command in ("export", "replay"):
        done = kept.home.try_carnet("run", command, "conv_of_nobody")
        assert done.returncode == 1
        assert "run" in done.stderr.lower()
    done = kept.home.try_carnet("run", "export", "last", env={"CARNET_URL": "http://127.0.0.1:9"})
    assert done.returncode == 2


def test_runs_on_postgresql_are_read_while_their_gateway_goes_on(
    server: servers.Server, tmp_path: Path
) -> None:
    home = Organisation(tmp_path, "acme.example")
    move_to(home, server.create())
    (home.folder / "people.py").write_text(AGENTS)
    home.configure(SECTIONS)
    home.start()
    run = home.chat("hi", "porter").headers["x-tangle-runid"]
    page = json.loads(home.carnet("run", "replay", run, "--format", "json").stdout)
    assert verdicts(page) == [("porter", "equal"), ("clerk", "equal"), ("failing", "equal")]
    *_, last = home.carnet("run", "export", "last").stdout.splitlines()
    assert json.loads(last)["kind"] == "end"
    assert home.stop() == 0
