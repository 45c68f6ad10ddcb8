"""Other people's inbox: to read it, to answer it, to guess, replay and race it, to spend by it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from carnet.testing.wait import until
from tests.faults.stores import number, rows
from tests.interop.interrupts.scene import ASKS, CONFIG, answer, resolution, same_turn, state_of
from tests.security.support.scene import DEPTH, forwarding, fresh, ids, undated
from tests.selection import STORES
from tests.stores.support import servers
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.served import executions

OTHERS = ("mallory", "bridge", "peer")
ASKS_AND_CALLS = """

async def onward_later(visit: carnet.Visit) -> str:
    note(visit)
    await visit.interrupt(approval="May I call another?")
    return await visit.peer("echo").ask("hi")
"""
ONWARD_LATER = '\n[agents.onward_later]\nkind = "python"\ntarget = "agents:onward_later"\n'


class House(NamedTuple):
    """Acme, and the tokens of those who meet there."""

    acme: Organisation
    alice: str  # who is asked
    mallory: str  # another customer
    bridge: str  # may forward other people's credentials
    peer: str  # what another gateway calls with
    clerk: str  # may approve for others
    boss: str  # may do everything

    def ask(self, agent: str = "seller", run: str = "", who: str = "alice") -> Reply:
        """A call of somebody's that waits."""
        waits = self.acme.chat(
            "hi", agent, token=getattr(self, who), headers=ids(run or fresh("asked"))
        )
        assert "interrupt" in waits.json["error"], waits.body
        return waits

    def again(self, waits: Reply, agent: str = "seller", *brought: tuple[str, str]) -> Reply:
        headers = [*same_turn(waits), *brought]
        return self.acme.chat("hi", agent, token=self.alice, headers=headers)

    def ended(self, waits: Reply, agent: str = "seller") -> Reply:
        return until(lambda: self.again(waits, agent), lambda reply: reply.status == 200)

    def asked(self, who: str = "alice", **query: Any) -> list[dict[str, Any]]:
        """What is in the inbox of somebody."""
        words = "&".join(f"{name}={value}" for name, value in query.items())
        page = self.acme.get(f"/approvals?{words}", token=getattr(self, who)).json
        return list(page["approvals"])

    def world(self) -> list[list[tuple[Any, ...]]]:
        """What was executed, asked, answered, held and paid."""
        tables = ("interrupt", "rule", "ledger", "purse", "turn")
        # A quota of which nothing is held any more is forgotten in its own time.
        held = {"purse": " WHERE spent <> 0 OR reserved <> 0 OR unpaid <> 0"}
        looks = [f"SELECT * FROM {table}{held.get(table, '')} ORDER BY 1, 2" for table in tables]  # noqa: S608
        return [rows(self.acme, look) for look in looks]


def name_of(waits: Reply) -> str:
    return str(waits.json["error"]["interrupt"]["id"])


@pytest.fixture(scope="module", params=STORES)
def house(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[House]:
    database = ""
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        database = server.create()
    acme = organisation(tmp_path_factory.mktemp("inbox"), "acme.example", database)
    agents = (acme.folder / "agents.py").read_text() + ASKS + ASKS_AND_CALLS
    acme.configure(CONFIG + ONWARD_LATER, agents=agents)
    acme.carnet("peers", "add", "globex.example", "--url", "http://127.0.0.1:9", "--credit", "10")
    acme.start()
    yield House(
        acme,
        alice=acme.new_token("alice"),
        mallory=acme.new_token("mallory"),
        bridge=acme.new_token("bridge", "--may-forward-authorization"),
        peer=acme.new_token("globex", "--peer", "globex.example"),
        clerk=acme.new_token("clerk", "--scope", "approve", "--scope", "run:read"),
        boss=acme.new_token("boss", "--scope", "*"),
    )
    assert acme.stop() == 0


def attempts(house: House, name: str, who: str) -> list[Reply]:
    """Everything one can try with the name of a question."""
    token = getattr(house, who)
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    path = f"{house.acme.url}/approvals/{name}"
    bodies = (
        {"outcome": "accepted"},
        {"outcome": "rejected"},
        {"outcome": "accepted", "remember": {"ceiling": "9"}},
    )
    return [
        request("GET", path, fields),
        request("HEAD", path, fields),
        *(request("POST", path, fields, json.dumps(body).encode()) for body in bodies),
    ]


# ---------------------------------------------------------------------- reading and answering


@pytest.mark.parametrize("who", OTHERS)
def test_what_somebody_else_is_asked_looks_as_if_nobody_were_asked(house: House, who: str) -> None:
    """A110, A67: to read, to answer, to remember; byte for byte the answer for an unknown name."""
    waits = house.ask()
    before = house.world()
    theirs = undated(attempts(house, name_of(waits), who))
    assert theirs == undated(attempts(house, f"int_{'0' * 24}", who))
    assert {status for status, _, _ in theirs} == {404}
    for query in ({}, {"status": "all"}, {"before": 2**31}, {"limit": 200}):
        assert house.asked(who, **query) == []
    assert house.world() == before
    assert house.again(waits).body == waits.body


def test_a_name_that_is_nearly_that_of_a_question_finds_nothing(house: House) -> None:
    """A110: whoever asks, also who is asked."""
    waits = house.ask()
    name, before = name_of(waits), house.world()
    assert len(name) >= 4 + 24  # 96 bits
    odd = (name.upper(), name[:-1], f"{name}0", f"{name}%00", f"{name}%20", "%25", "int_%25")
    for each in (*odd, "x'%20OR%20'1'='1", f"..%2Fapprovals%2F{name}"):
        for who in ("alice", "mallory"):
            assert {reply.status for reply in attempts(house, each, who)} <= {400, 404}, each
    assert house.world() == before


def test_who_uses_the_ids_of_another_is_asked_a_question_of_its_own(house: House) -> None:
    """A110, A41: neither finds the other's."""
    run = fresh("shared")
    waits, other = house.ask(run=run), house.ask(run=run, who="mallory")
    assert name_of(waits) != name_of(other)
    for who, name in (("alice", name_of(waits)), ("mallory", name_of(other))):
        assert [each["id"] for each in house.asked(who) if each["run"] == run] == [name]
    assert answer(house.acme, name_of(other), "rejected", house.mallory).status == 200
    until(
        lambda: house.acme.chat("hi", "seller", token=house.mallory, headers=same_turn(other)),
        lambda reply: reply.status == 200,
    )
    assert house.again(waits).body == waits.body


def test_no_page_of_a_question_tells_its_secret(house: House) -> None:
    """A110, A45: who may approve for others cannot answer in their place by the wire."""
    waits = house.ask()
    secret = state_of(waits).encode()
    for who in ("alice", "clerk"):
        token = getattr(house, who)
        for path in (f"/approvals/{name_of(waits)}", "/approvals?status=all&limit=200"):
            page = house.acme.get(path, token=token)
            assert page.status == 200
            assert secret not in page.body


# ---------------------------------------------------------------------- again, and at once


def test_an_answer_that_is_sent_again_changes_nothing_whoever_sends_it(house: House) -> None:
    """A110."""
    waits = house.ask()
    first = answer(house.acme, name_of(waits), token=house.alice)
    assert house.ended(waits).text == "sold hi"
    before = house.world()
    again = answer(house.acme, name_of(waits), token=house.alice)
    assert (again.status, again.json) == (200, first.json)
    assert answer(house.acme, name_of(waits), "rejected", house.alice).status == 409
    assert answer(house.acme, name_of(waits), token=house.mallory).status == 404
    by_wire = house.again(waits, "seller", resolution(state_of(waits)))
    assert (by_wire.status, by_wire.code) == (409, "policy_state_invalid")
    assert house.world() == before


def test_of_two_who_answer_at_once_by_inbox_and_by_wire_one_prevails(house: House) -> None:
    """A110: who was later is told so, and the agent goes on once."""
    waits = house.ask("cautious")
    name, before = name_of(waits), len(executions(house.acme.folder, "cautious"))
    tries = [
        lambda: answer(house.acme, name, "accepted", house.alice),
        lambda: answer(house.acme, name, "rejected", house.clerk),
        lambda: house.again(waits, "cautious", resolution(state_of(waits), "accepted")),
        lambda: house.again(waits, "cautious", resolution(state_of(waits), "rejected")),
    ]
    with ThreadPoolExecutor(12) as pool:
        started = [pool.submit(each) for each in tries * 3]
        alices, clerks, yes, no = ([each.result() for each in started[n::4]] for n in range(4))
    (entry,) = [each for each in house.asked(status="all") if each["id"] == name]
    assert house.ended(waits, "cautious").text == entry["outcome"]
    won, lost = (alices, clerks) if entry["outcome"] == "accepted" else (clerks, alices)
    assert {reply.status for reply in won} == {200}
    assert {(reply.status, reply.code) for reply in lost} == {(409, "answered_otherwise")}
    by_wire = [reply for reply in (*yes, *no) if reply.status == 200]
    assert len(by_wire) <= 1
    refused = [reply for reply in (*yes, *no) if reply.status != 200]
    assert {(reply.status, reply.code) for reply in refused} == {(409, "policy_state_invalid")}
    assert len(executions(house.acme.folder, "cautious")) == before + 1


# ---------------------------------------------------------------------- other people's money


@pytest.mark.parametrize("outcome", ["accepted", "rejected"])
@pytest.mark.parametrize("who", ["clerk", "boss"])
def test_nobody_who_may_approve_agrees_to_the_payment_of_another(
    house: House, who: str, outcome: str
) -> None:
    """A110, R45: not for once, and not for the future."""
    waits = house.ask()
    token = getattr(house, who)
    before = house.world()
    assert answer(house.acme, name_of(waits), outcome, token).status == 403
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    body = json.dumps({"outcome": "accepted", "remember": {"ceiling": "1"}}).encode()
    path = f"{house.acme.url}/approvals/{name_of(waits)}"
    assert request("POST", path, fields, body).status == 403
    assert house.world() == before
    assert answer(house.acme, name_of(waits), token=house.alice).status == 200
    assert house.ended(waits).text == "sold hi"
    debit = "SELECT COUNT(*) FROM ledger WHERE run = ? AND account = 'alice'"
    assert number(house.acme, debit, waits.headers["x-tangle-runid"]) > 0


def test_who_forwards_the_credential_of_another_agrees_to_none_of_its_payments(
    house: House,
) -> None:
    """A110, R45: the one who pays is asked, and not the one who calls for it."""
    headers = [*ids(fresh("forwarded")), forwarding(house.alice)]
    waits = house.acme.chat("hi", "seller", token=house.bridge, headers=headers)
    assert waits.status == 402
    name, before = name_of(waits), house.world()
    assert {reply.status for reply in attempts(house, name, "bridge")} == {404}
    assert name not in {each["id"] for each in house.asked("bridge")}
    assert house.world() == before
    assert name in {each["id"] for each in house.asked("alice")}
    assert answer(house.acme, name, token=house.alice).status == 200
    done = until(
        lambda: house.acme.chat("hi", "seller", token=house.bridge, headers=headers),
        lambda reply: reply.status == 200,
    )
    assert done.text == "sold hi"


def test_an_agent_at_the_last_hop_that_was_answered_calls_on_as_little_as_before(
    house: House,
) -> None:
    """A47: the call that runs on is as deep as it was."""
    headers = [*ids(fresh("last")), (DEPTH, "3")]
    call = ("hi", "onward_later")
    waits = house.acme.chat(*call, token=house.alice, headers=headers)
    assert (waits.status, waits.code) == (403, "approval_required")
    before = executions(house.acme.folder, "echo")
    assert answer(house.acme, name_of(waits), token=house.alice).status == 200
    refused = until(
        lambda: house.acme.chat(*call, token=house.alice, headers=headers),
        lambda reply: reply.status != 403,
    )
    assert (refused.status, refused.code) == (429, "bridge_depth_exceeded")
    assert executions(house.acme.folder, "echo") == before
