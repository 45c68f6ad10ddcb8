"""Three organisations: a fan-out across two of them is left, and a run is cancelled hop by hop."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from carnet.runtime.client.key import load_key
from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.edge.wire import Wire, ask
from tests.faults.stores import rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions
from tests.support.signing.signed import (
    MESSAGE,
    Line,
    Sender,
    Signed,
    digest,
    message,
    result,
    sign,
)

RUN = "x-tangle-runid"
ESTABLISHED = "01"
FANS = """

async def fans(visit: carnet.Visit) -> str:
    note(visit)
    asked = [carnet.Branch(*each.split(" ", 1)) for each in visit.text.split(" | ")]
    answers = await visit.fan_out(asked, on_failure="collect")
    return " and ".join(answer.text or answer.error.code for answer in answers)


def dials(url):
    import asyncio

    async def dialled():
        async with carnet.connect(url, key="var/client.key") as client:
            return (await client.call("chat", text="hi"))["text"]

    return asyncio.run(dialled())


async def tries(door, visit, url):
    import asyncio

    away = carnet.Participant(target=url, name="away")
    two = [away, carnet.Participant(target=url, name="other")]
    doors = {
        "peer": lambda: visit.peer("@open@globex.example").ask("hi"),
        "fan_out": lambda: visit.fan_out(["@open@globex.example", "open"], "hi"),
        "conversation": lambda: visit.conversation(["echo", "@open@globex.example"], max_turns=1),
        "connect": lambda: asyncio.to_thread(dials, url),
        "run_conversation": lambda: carnet.run_conversation(two, max_turns=1),
    }
    try:
        found = await doors[door]()
    except carnet.CarnetError as error:
        return f"{door}:{error.code}"
    return f"{door}:{found if isinstance(found, str) else 'done'}"


async def doors(visit: carnet.Visit) -> str:
    note(visit)
    url, *names = visit.text.split()
    return " ".join([await tries(door, visit, url) for door in names])


def plain_doors(visit: carnet.Visit) -> str:
    note(visit)
    try:
        return dials(visit.text)
    except carnet.CarnetError as error:
        return error.code


async def spawns(visit: carnet.Visit) -> str:
    note(visit)
    answers = await visit.fan_out(["spawns"] * 10, "again", on_failure="collect")
    codes = {answer.error.code if answer.error else answer.text for answer in answers}
    return " ".join(sorted({code for each in codes for code in each.split()}))


async def tells(visit: carnet.Visit) -> str:
    sender, chain, context = visit.sender, visit.chain, visit.context
    facts = [sender.address, sender.name, sender.how, sender.domain, sender.is_agent]
    facts += [visit.recipient, [str(part) for part in visit.parts]]
    facts += [[chain.hop, chain.cap, chain.hops_left, chain.is_final]]
    return json.dumps([*facts, context and [context.agent, context.host, context.verified]])
"""
CONFIG = """
[agents.fans]
kind = "python"
target = "agents:fans"

[agents.spawns]
kind = "python"
target = "agents:spawns"
reentry = true

[agents.doors]
kind = "python"
target = "agents:doors"

[agents.plain_doors]
kind = "python"
target = "agents:plain_doors"

[agents.open]
kind = "python"
target = "agents:echo"
trust = "public"

[agents.lingers]
kind = "python"
target = "agents:slow"

[agents.tells]
kind = "python"
target = "agents:tells"
"""


class Scene(NamedTuple):
    """Acme calls both others, and Globex calls Initech."""

    acme: Organisation
    globex: Organisation
    initech: Organisation


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("fan-out")
    names = ("acme", "globex", "initech")
    scene = Scene(*[organisation(folder / n, f"{n}.example", database()) for n in names])
    for gateway in scene:
        gateway.configure(CONFIG, agents=f"import json\n{AGENTS}{FANS}")
    acme, globex, initech = scene
    by_key(acme, globex)
    by_token(acme, initech, "--scope", "call:*", "--scope", "pay")  # and not run:cancel
    by_token(globex, initech)
    key = load_key(acme.folder / "var" / "client.key")  # of the clients that its agents open
    globex.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
    for gateway in scene:
        gateway.start()
    yield scene
    assert [gateway.stop() for gateway in scene] == [0, 0, 0]


def by_key(caller: Organisation, callee: Organisation) -> None:
    caller.carnet("peers", "add", callee.domain, "--url", callee.url)
    callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", "10")


def by_token(caller: Organisation, callee: Organisation, *scopes: str) -> None:
    token = callee.new_token(f"of-{caller.domain}", "--peer", caller.domain, *scopes)
    callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", "10")
    secret = caller.folder / "var" / f"{callee.domain}.token"
    secret.write_text(token)
    secret.chmod(0o600)
    caller.carnet("peers", "add", callee.domain, "--url", callee.url, "--token-file", str(secret))


def sockets(caller: Organisation, *callees: Organisation) -> int:
    """How many connections a gateway has to others."""
    assert caller.process is not None
    process = Path("/proc") / str(caller.process.pid)
    own: set[str] = set()
    for descriptor in (process / "fd").iterdir():
        try:
            own.add(str(descriptor.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    ports = {f"{callee.port:04X}" for callee in callees}
    lines = [line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:]]
    return sum(
        fields[2].endswith(tuple(f":{port}" for port in ports))
        and fields[3] == ESTABLISHED
        and f"socket:[{fields[9]}]" in own
        for fields in lines
    )


def turns(at: Organisation, run: str) -> list[tuple[str, str | None]]:
    sql = "SELECT t.state, t.code FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ? ORDER BY t.n"
    return rows(at, sql, run)


def begun(scene: Scene, agent: str) -> list[int]:
    return [len(executions(gateway.folder, agent)) for gateway in scene]


def test_who_leaves_a_fan_out_across_two_organisations_ends_every_branch(scene: Scene) -> None:
    """Ten branches: no connection stays, and nothing goes on anywhere."""
    acme, globex, initech = scene
    before = begun(scene, "lingers")
    text = " | ".join(["@lingers@globex.example 6000", "@lingers@initech.example 6000"] * 5)
    with Wire(acme.port) as wire:
        wire.send(ask(acme.token, text, "fans", stream=True))
        until(lambda: begun(scene, "lingers") == [before[0], before[1] + 5, before[2] + 5])
        assert sockets(acme, globex, initech) >= 10
    until(lambda: sockets(acme, globex, initech) == 0)
    run = acme.json("runs")["runs"][0]["run"]
    cancelled = ("failed", "cancelled")
    until(lambda: [turns(each, run) for each in scene] == [[cancelled] * n for n in (11, 5, 5)])


def hop_words(hop: dict[str, Any]) -> list[Any]:
    below = [hop_words(each) for each in hop["below"]]
    return [hop["at"], hop["agent"], hop["outcome"], *below]


def test_cancelling_a_run_tells_hop_by_hop_what_has_come_of_it(scene: Scene) -> None:
    """Also of what goes on after its caller has left, three hops down, and of what nobody tells."""
    acme = scene.acme
    run, before = "by-hand", begun(scene, "lingers")
    text = " | ".join(
        [
            "echo hi",
            "@stubborn@globex.example 6000",
            "@relay@globex.example @lingers@initech.example 6000",
            "@lingers@initech.example 6000",
        ]
    )
    asking = threading.Thread(target=lambda: acme.chat(text, "fans", headers=[(RUN, run)]))
    asking.start()
    until(lambda: begun(scene, "lingers")[2] == before[2] + 2)
    until(lambda: executions(scene.globex.folder, "stubborn"))
    until(lambda: ("done", None) in turns(acme, run))

    page = acme.json("run", "cancel", run)
    asking.join(PATIENCE_SECONDS)
    (top,) = page["hops"]
    assert hop_words(top) == [
        None,
        "fans",
        "cancelled",
        [None, "echo", "done"],
        [
            *(None, "@stubborn@globex.example", "cancelled"),
            ["globex.example", "stubborn", "cancelled"],
        ],
        [
            *(None, "@relay@globex.example", "cancelled"),
            [
                *("globex.example", "relay", "cancelled"),
                [
                    *("globex.example", "@lingers@initech.example", "cancelled"),
                    ["initech.example", "lingers", "cancelled"],
                ],
            ],
        ],
        [
            *(None, "@lingers@initech.example", "cancelled"),
            ["initech.example", "@lingers@initech.example", "unknown"],
        ],
    ]
    assert top["below"][3]["below"][0]["code"] == "peer_refused"
    assert page["cancelled"] == 4
    stopped = [("failed", "cancelled")]
    until(lambda: [turns(each, run) for each in scene[1:]] == [stopped * 3, stopped * 2])
    drawn = acme.carnet("run", "cancel", run).stdout.splitlines()
    assert drawn[0] == f"Nothing of {run} is running here."
    assert any("globex.example: stubborn  cancelled" in line for line in drawn)
    assert any("outcome unknown  peer_refused" in line for line in drawn)


def test_a_run_is_cancelled_at_a_peer_by_those_alone_who_called_it_there(scene: Scene) -> None:
    """Whoever else signs, or signs nothing, learns nothing of it."""
    url = f"{scene.globex.url}/runs/by-hand/cancel"
    unsigned = request("POST", url, [("content-type", "application/json")], b"{}")
    assert (unsigned.status, unsigned.code) == (401, "token_missing")
    mallory = scene.globex.new_token("mallory")
    fields = [("authorization", f"Bearer {mallory}"), ("content-type", "application/json")]
    other = request("POST", url, fields, b"{}")
    assert (other.status, other.code) == (404, "run_not_found")
    stranger = Sender("agent://client-mallory")
    scene.globex.carnet("peers", "add", stranger.identity, "--key", stranger.public)
    signed = Signed(
        method="POST",
        target="/runs/by-hand/cancel",
        headers=(*fields[1:], ("content-digest", digest(b"{}"))),
        body=b"{}",
    )
    with Line(scene.globex.port) as line:
        for sent in (sign(stranger, signed), sign(stranger, signed).but(body=b"{ }")):
            reply = line.send(sent)
            assert reply.status in {401, 404}, reply.body
            assert (reply.status == 404) == (sent.body == b"{}"), reply.body
    for body in (b'{"turns": [1]}', b'{"within": "long"}', b"[]"):
        own = [("authorization", f"Bearer {scene.globex.token}"), *fields[1:]]
        assert request("POST", url, own, body).status == 400


def test_at_the_last_hop_and_back_to_its_own_chain_nobody_is_called(scene: Scene) -> None:
    """Whatever the agent's code says: it is refused here, and nothing leaves."""
    acme, *others = scene
    text = "echo hi | @echo@globex.example hi | @echo@initech.example hi"
    before, lines = begun(scene, "echo"), sockets(acme, *others)
    depth = [("x-tangle-forwarded-depth", "3")]
    last = acme.chat(text, "fans", headers=depth)
    assert (last.status, last.text) == (200, " and ".join(["bridge_depth_exceeded"] * 3))
    back = acme.chat("fans hi | @fans@acme.example hi | agent://fans.acme.example hi", "fans")
    assert (back.status, back.text) == (200, " and ".join(["loop_detected"] * 3))
    assert begun(scene, "echo") == before
    assert sockets(acme, *others) <= lines


DOORS = ("peer", "fan_out", "conversation", "connect", "run_conversation")


def test_no_door_of_the_last_hop_leads_out(scene: Scene) -> None:
    """Whatever its code says: through the gateway, past it, in a thread, by a driver."""
    acme, globex, _ = scene
    url, depth = f"{globex.url}/agents/open", [("x-tangle-forwarded-depth", "3")]
    before, lines = begun(scene, "echo"), sockets(acme, globex)
    last = acme.chat(" ".join([url, *DOORS]), "doors", headers=depth)
    refused = [f"{door}:bridge_depth_exceeded" for door in DOORS]
    assert (last.status, last.text) == (200, " ".join(refused))
    plain = acme.chat(url, "plain_doors", headers=depth)
    assert (plain.status, plain.text) == (200, "bridge_depth_exceeded")
    assert begun(scene, "echo") == before
    assert sockets(acme, globex) <= lines


def test_what_an_agent_connects_to_by_itself_is_a_hop_of_its_run(scene: Scene) -> None:
    """It is in the record of its turn, and of the other organisation under the same run."""
    acme, globex, _ = scene
    headers = [(RUN, "by-itself"), ("x-tangle-forwarded-depth", "2")]
    url = f"{globex.url}/agents/open"
    for agent, text in (("doors", f"{url} connect"), ("plain_doors", url)):
        reply = acme.chat(text, agent, headers=headers)
        assert (reply.status, reply.text.removeprefix("connect:")) == (200, "hi")
    there = rows(
        globex,
        "SELECT t.turn, t.parent FROM turn t JOIN run r ON r.n = t.run"
        " WHERE r.id = ? AND t.depth = 3",
        "by-itself",
    )
    here = rows(
        acme,
        "SELECT o.child_turn, t.turn FROM outbound o JOIN turn t ON t.n = o.turn"
        " JOIN run r ON r.n = t.run WHERE r.id = ? AND o.state = 'done'",
        "by-itself",
    )
    assert sorted(there) == sorted(here)
    assert len(set(there)) == 2


def test_the_answers_of_two_organisations_become_one_reply(scene: Scene) -> None:
    text = "@echo@globex.example one | echo two | @echo@initech.example three"
    reply = scene.acme.chat(text, "fans", headers=[(RUN, "joined")])
    assert (reply.status, reply.text) == (200, "one and two and three")
    (top,) = scene.acme.get("/runs/joined").json["turns"]
    places = [(each["ordinal"], each["depth"]) for each in top["children"]]
    assert places == [(0, 1), (1, 1), (2, 1)]
    for gateway in (scene.globex, scene.initech):
        (turn,) = gateway.json("run", "show", "joined")["turns"]
        assert (turn["depth"], turn["state"]) == (1, "done")


def test_what_one_branch_asks_for_is_asked_while_the_answers_of_the_others_are_kept(
    scene: Scene,
) -> None:
    """When it is answered the turn runs again: the same children, and nobody is called twice."""
    acme, before = scene.acme, begun(scene, "echo")
    alice = acme.new_token("alice", "--limit", "100")
    text = "cautious hi | @echo@globex.example hello"
    waits = acme.chat(text, "fans", token=alice)
    same = [(name, waits.headers[name]) for name in (RUN, "x-tangle-turnid")]
    (question,) = acme.get("/approvals", token=alice).json["approvals"]
    assert (question["kind"], question["chain"]) == ("approval", "fans > cautious")
    (top,) = acme.get(f"/runs/{same[0][1]}", token=alice).json["turns"]
    assert [each["state"] for each in top["children"]] == ["waiting", "done"]
    acme.json("inbox", "approve", question["id"], "--as", alice)
    done = until(
        lambda: acme.chat(text, "fans", token=alice, headers=same),
        lambda reply: reply.status == 200,
    )
    assert done.text == "accepted and hello"
    assert begun(scene, "echo") == [before[0], before[1] + 1, before[2]]


def test_an_agent_that_calls_itself_ten_times_over_stops(scene: Scene) -> None:
    """At the last hop, and at the calls that one run may make; no two turns have one id."""
    reply = scene.acme.chat("go", "spawns", headers=[(RUN, "spawning")])
    assert reply.status == 200
    assert reply.text == "bridge_depth_exceeded run_calls_exceeded"
    sql = "SELECT t.turn, t.depth, t.state FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    found = rows(scene.acme, sql, "spawning")
    assert len(found) == len({turn for turn, _, _ in found}) == 256
    assert {depth for _, depth, _ in found} == {0, 1, 2, 3}
    assert {state for _, _, state in found} == {"done"}
    assert len(executions(scene.acme.folder, "spawns")) == 256


def test_an_agent_sees_who_sends_whom_it_is_and_where_it_stands(scene: Scene) -> None:
    """R39: of a person, of one in the same process, of another organisation; by SAMVAD as well."""
    acme, globex, _ = scene
    owner = ["@owner@acme.example", "token:starter", "token", None, False]
    to, top = "@tells@acme.example", [0, 3, 3, False]
    nobody = ["", "self", False]  # who claims nothing is at the top of its chain
    direct = acme.chat("hi", "tells")
    assert json.loads(direct.text) == [*owner, to, ["hi"], top, nobody]
    host = [
        ("X-Agents-Api-Caller-Agent", "source"),
        ("X-Agents-Api-Caller-Host", "https://s.example"),
    ]
    chain = [("X-Agents-Api-Chain-Root", "r39"), ("X-Agents-Api-Chain-Depth", "2")]
    *_, place, context = json.loads(acme.chat("hi", "tells", headers=[*host, *chain]).text)
    assert (place[0], context) == (2, ["source", "https://s.example", False])  # it is claimed

    relay, below = "@relay@acme.example", [1, 3, 2, False]
    inside = json.loads(acme.chat("tells hi", "relay").text)
    assert inside == [relay, "agent:relay", "in_process", None, True, to, ["hi"], below, nobody]
    deep = [("x-tangle-forwarded-depth", "2")]
    assert json.loads(acme.chat("tells hi", "relay", headers=deep).text)[7] == [3, 3, 0, True]
    away = json.loads(acme.chat("@tells@globex.example hi", "relay").text)
    by = ["peer:acme.example", "signature", "acme.example", True]
    assert away == [relay, *by, "@tells@globex.example", ["hi"], below, nobody]

    sender = Sender("agent://client-told")
    globex.carnet("peers", "add", sender.identity, "--key", sender.public)
    with Line(globex.port) as line:
        asked = message(
            sender,
            "agent://tells.globex.example",
            target=f"/agents/tells{MESSAGE}",
            payload={"text": "hi"},
            auth={"scheme": "bearer", "token": globex.token},
        )
        reply = line.send(asked)
    own = json.loads(result(reply)["text"])
    signed = [sender.identity, f"sender:{sender.identity}", "signature"]
    assert own[:3] == signed
    assert own[4:7] == [True, "@tells@globex.example", ["hi"]]
    assert own[7][0] == 0
