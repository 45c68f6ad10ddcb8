"""Conversations at a real gateway, on each store: agents made of agents, asked as any other."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.stores import number, rows, served_on
from tests.selection import STORES
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

AGENTS = '''
import time
from pathlib import Path

import carnet

SPOKEN = Path(__file__).with_name("spoken.txt")


def note(line: str) -> str:
    with SPOKEN.open("a") as spoken:
        spoken.write(line + "\\n")
    return line


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def writer(visit: carnet.Visit) -> str:
    note(f"{visit.carnet.run} writer {len(visit.messages)}")
    return f"draft {len(visit.messages)}"


async def critic(visit: carnet.Visit) -> str:
    note(f"{visit.carnet.run} critic {len(visit.messages)}")
    return f"no to: {visit.messages[-1].text}"


async def fails(visit: carnet.Visit) -> str:
    raise RuntimeError("always")


async def asks(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(approval=f"May I, {len(visit.messages)}?")
    return f"{answer.outcome}"


async def local(visit: carnet.Visit) -> str:
    once = await visit.step("local", note, f"{visit.carnet.run} local {len(visit.messages)}")
    said = await visit.peer("critic").ask("from within")
    return f"{once.split()[1]} heard {said}"


async def questions(visit: carnet.Visit) -> str:
    return (await visit.interrupt(input="Which?", options=["S", "M"])).value


async def chair(visit: carnet.Visit) -> str:
    """Has two conversations, one after the other."""
    first = await visit.conversation(["writer", "critic"], seed=visit.text, max_turns=2)
    second = await visit.conversation([local, "critic"], seed=first.text, max_turns=2)
    return f"{first.halted.kind} {len(first.transcript)}: {second.text}"


async def sitter(visit: carnet.Visit) -> str:
    result = await visit.conversation(["writer", "asks"], seed="x", max_turns=3)
    return result.transcript[1].text


inner = carnet.Conversation("inner", [local, "critic"], max_turns=2)
mixed = carnet.Conversation("mixed", ["writer", inner], max_turns=2)
asking = carnet.Conversation(
    "asking",
    [carnet.Participant(target=questions, name=name) for name in ("one", "two")],
    max_turns=2,
)


def is_enough(state: carnet.DialogueState) -> str | None:
    return "three" if len(state.transcript) == 3 else None


def is_broken(state: carnet.DialogueState) -> bool:
    raise ValueError("of who defines it")


def is_stuck(state: carnet.DialogueState) -> bool:
    """Blocks until somebody lets it go."""
    while not SPOKEN.with_name("let-go").exists():
        time.sleep(0.005)
    return False


async def flaky(visit: carnet.Visit) -> str:
    """Has asked and had others speak when it fails for the first time."""
    await visit.peer("writer").ask("from within")
    await visit.conversation(["writer", "critic"], seed="x", max_turns=2)
    line = note(f"{visit.carnet.run} flaky")
    if SPOKEN.read_text().count(line) == 1:
        raise ConnectionResetError
    return "at last"


async def never(visit: carnet.Visit) -> str:
    await visit.step("never", note, f"{visit.carnet.run} never")
    await visit.peer("writer").ask("before it fails")
    raise RuntimeError("always")


async def stands_in(visit: carnet.Visit) -> str:
    await visit.step("stands in", note, f"{visit.carnet.run} stands in")
    await visit.peer("writer").ask("in its place")
    return "instead"


again = carnet.CallPolicy(retries=1, backoff=0)
retried = carnet.Conversation(
    "retried", [flaky, "critic"], policy=again, max_turns=2, max_spend="0.03"
)
spoken_for = carnet.Conversation(
    "spoken_for", [carnet.Participant(target=never, on_failure=stands_in), "critic"], max_turns=1
)
stuck = carnet.Conversation(
    "stuck", ["writer", "critic"], halt_on=is_stuck, max_turns=9, deadline=0.3
)


broken = carnet.Conversation("broken", ["writer", "critic"], halt_on=is_broken, max_turns=9)
judged = carnet.Conversation("judged", ["writer", "critic"], halt_on=is_enough, max_turns=9)
'''
NAMES = ("writer", "critic", "fails", "asks", "chair", "sitter")
CONFIG = (
    "".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES
    ).replace('"agents:writer"\n', '"agents:writer"\nprice = "0.01"\n')
    + "".join(
        f'[agents.{name}]\nkind = "conversation"\ntarget = "agents:{name}"\n'
        for name in ("mixed", "asking", "judged", "broken", "retried", "spoken_for", "stuck")
    )
    + """
[agents.panel]
kind = "conversation"
participants = ["writer", { agent = "critic", name = "Dr. No" }]
max_turns = 4

[agents.board]
kind = "conversation"
participants = ["panel", "critic"]
max_turns = 2

[agents.thrifty]
kind = "conversation"
participants = ["writer", "critic"]
max_turns = 8
max_spend = "0.02"

[agents.lenient]
kind = "conversation"
participants = [
    "writer",
    { agent = "fails", on_failure = "skip" },
    { agent = "fails", name = "f2", on_failure = "critic" },
]
max_turns = 3

[agents.strict]
kind = "conversation"
participants = ["writer", "fails"]
max_turns = 3

[agents.waits]
kind = "conversation"
participants = ["writer", "asks"]
max_turns = 4

[agents.selfish]
kind = "conversation"
participants = ["writer", "loops"]
max_turns = 2

[agents.loops]
kind = "conversation"
participants = ["selfish", "critic"]
max_turns = 2
"""
)
PANEL = "[writer] draft 1\n[Dr. No] no to: [writer] draft 1\n"
PANEL += "[writer] draft 3\n[Dr. No] no to: [writer] draft 3\n"

numbers = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=AGENTS) as gateway:
        yield gateway


@pytest.fixture
def run() -> str:
    return f"run-{next(numbers)}"


def ask(acme: Organisation, run: str, agent: str, text: str = "x", **more: Any) -> Reply:
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    return acme.chat(text, agent, headers=ids, **more)


def spoken(acme: Organisation, run: str) -> list[str]:
    file = acme.folder / "spoken.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.removeprefix(f"{run} ") for line in lines if line.startswith(f"{run} ")]


def turns(acme: Organisation, run: str) -> list[tuple[str, int]]:
    sql = "SELECT t.agent, t.depth FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    return rows(acme, f"{sql} ORDER BY t.n", run)


def answer(acme: Organisation, run: str) -> None:
    """Answer the one thing that a run asks for."""
    page = acme.get("/approvals?status=open").json
    [asked] = [entry for entry in page["approvals"] if entry["run"] == run]
    body = {"outcome": "accepted"}
    if asked["kind"] == "input":
        body["value"] = asked["options"][0]
    fields = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    reply = request(
        "POST", f"{acme.url}/approvals/{asked['id']}", fields, json.dumps(body).encode()
    )
    assert reply.status == 200, reply.body


def waits(acme: Organisation, run: str, agent: str) -> None:
    """Ask until it waits for something."""
    until(
        lambda: (ask(acme, run, agent), acme.get("/approvals?status=open").json["approvals"]),
        lambda found: found[0].status != 200 and run in [entry["run"] for entry in found[1]],
    )


def ended(acme: Organisation, run: str, agent: str) -> Reply:
    """The answer of a turn, once it waits no more."""
    return until(lambda: ask(acme, run, agent), lambda reply: reply.status == 200)


def test_each_turn_is_a_call_of_the_turn_and_a_repeat_speaks_none_again(
    acme: Organisation, run: str
) -> None:
    reply = ask(acme, run, "panel")
    assert reply.status == 200, reply.body
    assert reply.text == PANEL
    assert turns(acme, run) == [
        ("panel", 0),
        ("writer", 1),
        ("critic", 1),
        ("writer", 1),
        ("critic", 1),
    ]
    assert reply.json["usage"]["cost"] == "0.02"
    assert ask(acme, run, "panel").body == reply.body
    assert spoken(acme, run) == ["writer 1", "critic 2", "writer 3", "critic 4"]


def test_at_the_last_hop_nobody_is_called_and_its_own_faults_are_its_failure(
    acme: Organisation, run: str
) -> None:
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1"), ("x-tangle-forwarded-depth", "3")]
    deep = acme.chat("x", "panel", headers=ids)
    assert (deep.status, deep.code) == (429, "bridge_depth_exceeded")
    assert turns(acme, run) == [("panel", 3)]
    broken = ask(acme, f"{run}-broken", "broken")
    assert (broken.status, broken.code) == (500, "agent_failed")


def test_it_is_streamed_turn_by_turn(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "panel", stream=True)
    chunks = [
        json.loads(line.removeprefix("data: "))
        for line in reply.body.decode().splitlines()
        if line.startswith("data: {")
    ]
    texts = [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk["choices"]]
    assert "".join(text for text in texts if text) == PANEL


def test_a_conversation_takes_part_in_another_one_hop_deeper(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "board")
    assert reply.status == 200, reply.body
    assert reply.text.startswith("[panel] [writer] draft 1\n")
    assert sorted(depth for _, depth in turns(acme, run)) == [0, 1, 1, 2, 2, 2, 2]


def test_it_ends_when_so_much_is_spent(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "thrifty")
    assert reply.json["usage"]["cost"] == "0.02"
    assert spoken(acme, run) == ["writer 1", "critic 2", "writer 3"]


def test_who_fails_is_left_out_or_spoken_for_or_ends_it(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "lenient")
    assert reply.text == "[writer] draft 1\n[f2] no to: [writer] draft 1\n"
    refused = ask(acme, f"{run}-strict", "strict")
    assert (refused.status, refused.code) == (500, "agent_failed")


def test_one_that_leads_back_to_itself_is_refused_as_a_loop(acme: Organisation, run: str) -> None:
    refused = ask(acme, run, "selfish")
    assert refused.code == "loop_detected"


def test_what_a_participant_asks_for_the_turn_asks_for_and_then_goes_on(
    acme: Organisation, run: str
) -> None:
    for _ in range(2):  # the second turn asks, and the fourth
        waits(acme, run, "waits")
        answer(acme, run)
    reply = ended(acme, run, "waits")
    assert reply.text == "[writer] draft 1\n[asks] accepted\n[writer] draft 3\n[asks] accepted\n"
    assert spoken(acme, run) == ["writer 1", "writer 3"]


def test_functions_and_conversations_of_python_take_part(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "mixed")
    assert reply.status == 200, reply.body
    words = "local heard no to: from within"
    assert f"[inner] [local] {words}\n[critic] no to: [local] {words}" in reply.text
    assert sorted(turns(acme, run)) == [("critic", 2), ("critic", 3), ("mixed", 0), ("writer", 1)]


def test_functions_ask_for_themselves_one_after_the_other(acme: Organisation, run: str) -> None:
    for _ in range(2):
        waits(acme, run, "asking")
        answer(acme, run)
    assert ended(acme, run, "asking").text == "[one] S\n[two] S\n"


def test_a_predicate_ends_it(acme: Organisation, run: str) -> None:
    assert ask(acme, run, "judged").text.count("\n") == 3


def test_a_visit_has_others_converse(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "chair")
    assert reply.status == 200, reply.body
    assert reply.text.startswith("max_turns 2: no to: [local] local heard")
    assert ask(acme, run, "chair").body == reply.body
    assert len(spoken(acme, run)) == 5
    waits(acme, f"{run}-sits", "sitter")
    answer(acme, f"{run}-sits")
    assert ended(acme, f"{run}-sits", "sitter").text == "accepted"


def test_what_a_record_answers_when_it_is_tried_again_is_paid_and_counted_once(
    acme: Organisation, run: str
) -> None:
    reply = ask(acme, run, "retried")
    assert reply.status == 200, reply.body
    assert reply.text == "[flaky] at last\n[critic] no to: [flaky] at last\n"
    assert reply.json["usage"]["cost"] == "0.02"  # the writer, asked and in a conversation
    assert spoken(acme, run).count("flaky") == 2
    assert len([line for line in spoken(acme, run) if line.startswith("writer")]) == 2


def test_who_speaks_for_another_does_and_asks_things_of_its_own(
    acme: Organisation, run: str
) -> None:
    reply = ask(acme, run, "spoken_for")
    assert reply.text == "[never] instead\n", reply.body
    assert reply.json["usage"]["cost"] == "0.02"
    assert spoken(acme, run) == ["never", "writer 1", "stands in", "writer 1"]


def test_a_predicate_that_blocks_holds_up_neither_the_deadline_nor_others(
    acme: Organisation, run: str
) -> None:
    try:
        assert ask(acme, run, "stuck").text == "[writer] draft 1\n"
        assert ask(acme, f"{run}-other", "judged").status == 200
    finally:
        (acme.folder / "let-go").touch()


def test_it_runs_as_a_task(acme: Organisation, run: str) -> None:
    fields = [
        ("authorization", f"Bearer {acme.token}"),
        ("content-type", "application/json"),
        ("x-tangle-runid", run),
        ("x-tangle-turnid", "t1"),
    ]
    body = {"model": "panel", "messages": [{"role": "user", "content": "x"}]}
    begun = request("POST", f"{acme.url}/tasks", fields, json.dumps(body).encode())
    assert begun.status == 202, begun.body
    path = f"/tasks/{begun.json['taskId']}"
    done = until(lambda: acme.get(path), lambda reply: reply.json["status"] == "done")
    assert done.json["result"] == {"text": PANEL}


def test_nothing_is_left_of_a_journal_but_the_beginning(acme: Organisation, run: str) -> None:
    ask(acme, run, "panel")
    sql = "SELECT COUNT(*) FROM step s JOIN turn t ON t.n = s.turn JOIN run r ON r.n = t.run"
    assert number(acme, f"{sql} WHERE r.id = ?", run) <= 1
