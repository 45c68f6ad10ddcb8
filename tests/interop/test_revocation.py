"""R54 between two organisations: what was let in by what has ended is stopped, wherever it is."""

import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.http import HeaderList, Reply, chat_body, request, stream
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions
from tests.support.signing.signed import now

RUN, TURN = "x-tangle-runid", "x-tangle-turnid"
FORWARDED = "x-tangle-forwarded-authorization"
# One that does not stop when it is told to: it calls on, and does something, afterwards.
DEAF = """

async def deaf(visit: carnet.Visit) -> str:
    note(visit)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        pass
    with RAN.with_name("deaf.txt").open("a") as told:
        for act in (lambda: visit.peer("echo").ask("after"), lambda: visit.step("pay", dict)):
            try:
                await act()
            except carnet.CarnetError as refused:
                told.write(f"{refused.code}\\n")
            else:
                told.write("done\\n")
    return "heard nothing"
"""
DEAF_CONFIG = """
[agents.deaf]
kind = "python"
target = "agents:deaf"

[agents.owing]
kind = "python"
target = "agents:slow"
price = "0.001"

[limits]
tasks_per_agent = 1
"""


class Pair(NamedTuple):
    """Two organisations that call one another."""

    a: Organisation
    b: Organisation


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("revoked")
    a = organisation(folder / "a", "a.example", database())
    b = organisation(folder / "b", "b.example", database())
    a.configure(DEAF_CONFIG, agents=AGENTS + DEAF)
    b.configure(DEAF_CONFIG, agents=AGENTS + DEAF)
    introduce(a, b)
    introduce(b, a)
    a.start()
    b.start()
    yield Pair(a, b)
    assert (a.stop(), b.stop()) == (0, 0)


def fields(token: str, run: str, *more: tuple[str, str]) -> HeaderList:
    named = [("authorization", f"Bearer {token}"), (RUN, run), *more]
    return [*named, ("content-type", "application/json")]


def task(
    at: Organisation, token: str, run: str, text: str, agent: str, *more: tuple[str, str]
) -> str:
    body = chat_body(text, agent)
    reply = request("POST", f"{at.url}/tasks", fields(token, run, *more), body)
    assert reply.status == 202, reply.body
    return str(reply.json["taskId"])


def tasks_of(at: Organisation, tasks: list[str]) -> list[tuple[str, str | None]]:
    sql = "SELECT t.state, t.code FROM task k JOIN turn t ON t.n = k.turn WHERE k.id = ?"
    return [row for task in tasks for row in rows(at, sql, task)]


def turns(at: Organisation, run: str) -> list[tuple[str, str | None]]:
    sql = "SELECT t.state, t.code FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ? ORDER BY t.n"
    return rows(at, sql, run)


def expire(at: Organisation, name: str) -> None:
    """Have a token end in two seconds; its gateway knows it as one that still holds before."""
    sql = "UPDATE token SET expires = ? WHERE name = ?"
    rows(at, sql, int((now() + 2) * 1_000_000), name)


class Asking(threading.Thread):
    """A call that goes on while a test does something else."""

    def __init__(self, at: Organisation, token: str, run: str, text: str, agent: str) -> None:
        super().__init__()
        self._at, self._words = at, (text, agent)
        self._token, self._run_id = token, run
        self.answers: list[Reply] = []
        self.start()

    def run(self) -> None:
        headers = [(RUN, self._run_id)]
        self.answers.append(self._at.chat(*self._words, token=self._token, headers=headers))


def test_revoking_a_token_ends_its_tasks_whether_they_run_or_wait(pair: Pair) -> None:
    """A86: and those of others go on; nothing that it held stays reserved."""
    mallory = pair.a.new_token("mallory", "--limit", "5")
    mine = [task(pair.a, mallory, f"hers-{n}", "6000", "owing") for n in range(3)]
    until(lambda: len(executions(pair.a.folder, "owing")) == 1)
    other = task(pair.a, pair.a.token, "his", "1", "owing")
    pair.a.carnet("tokens", "revoke", "mallory")
    until(lambda: tasks_of(pair.a, [other]) == [("done", None)])
    until(lambda: tasks_of(pair.a, mine) == [("failed", "cancelled")] * 3)
    assert len(executions(pair.a.folder, "owing")) == 2
    assert rows(pair.a, "SELECT name FROM purse WHERE reserved <> 0") == []


def test_revoking_a_token_ends_a_call_and_what_it_calls_at_a_peer(pair: Pair) -> None:
    """A86: through an agent here to an agent there; both ledgers have nothing of it."""
    eve, run = pair.a.new_token("eve"), "abroad"
    asking = Asking(pair.a, eve, run, "@slow@b.example 6000", "relay")
    until(lambda: executions(pair.b.folder, "slow"))
    pair.a.carnet("tokens", "revoke", "eve")
    asking.join()
    (answer,) = asking.answers
    assert answer.code == "cancelled"
    assert turns(pair.a, run) == [("failed", "cancelled")] * 2
    until(lambda: turns(pair.b, run) == [("failed", "cancelled")])


def test_a_token_that_expires_ends_what_it_began(pair: Pair) -> None:
    brief, run = pair.a.new_token("brief"), "expiring"
    asking = Asking(pair.a, brief, run, "6000", "slow")
    until(lambda: turns(pair.a, run) == [("running", None)])
    expire(pair.a, "brief")
    asking.join()
    assert asking.answers[0].code == "cancelled"


def test_removing_a_peer_ends_what_its_gateway_asked_for(pair: Pair) -> None:
    """A86: B forgets A; what A called there ends, and A is told that it did."""
    run = "forgotten"
    before = len(executions(pair.b.folder, "stubborn"))
    asking = Asking(pair.a, pair.a.token, run, "6000", "@stubborn@b.example")
    until(lambda: len(executions(pair.b.folder, "stubborn")) == before + 1)
    try:
        pair.b.carnet("peers", "remove", "a.example")
        until(lambda: turns(pair.b, run) == [("failed", "cancelled")])
        asking.join()
        assert asking.answers[0].status >= 400
    finally:
        introduce(pair.a, pair.b)


def test_an_agent_that_does_not_stop_calls_nobody_and_does_nothing_more(pair: Pair) -> None:
    """A86: what has not left yet does not leave."""
    trudy, run = pair.a.new_token("trudy"), "deaf"
    asking = Asking(pair.a, trudy, run, "x", "deaf")
    until(lambda: executions(pair.a.folder, "deaf"))
    pair.a.carnet("tokens", "revoke", "trudy")
    asking.join()
    assert asking.answers[0].code == "cancelled"
    codes = (pair.a.folder / "deaf.txt").read_text().splitlines()
    assert codes == ["cancelled", "cancelled"]
    assert turns(pair.a, run) == [("failed", "cancelled")]
    assert rows(pair.a, "SELECT 1 FROM step") == []


def test_the_end_of_a_forwarded_token_ends_what_it_pays_for(pair: Pair) -> None:
    """A86: the bridge that brought it is still welcome."""
    payer = pair.a.new_token("payer")
    bridge = pair.a.new_token("bridge", "--may-forward-authorization")
    paying = (FORWARDED, f"Bearer {payer}")
    paid = task(pair.a, bridge, "paid", "6000", "slow", paying)
    until(lambda: tasks_of(pair.a, [paid]) == [("running", None)])
    pair.a.carnet("tokens", "revoke", "payer")
    until(lambda: tasks_of(pair.a, [paid]) == [("failed", "cancelled")])
    assert pair.a.chat("well", token=bridge).text == "well"


class Reading(threading.Thread):
    """A stream that is read while a test does something else."""

    def __init__(self, at: Organisation, token: str, run: str, *, is_call: bool = False) -> None:
        super().__init__()
        turn = (TURN, f"{run}.t0.x")
        path = "/v1/chat/completions" if is_call else f"/runs/{run}/events"
        body = chat_body("6000", "stubborn", stream=True) if is_call else None
        method = "POST" if is_call else "GET"
        self._asked = (method, at.url + path, fields(token, run, turn), body)
        self.lines: list[bytes] = []
        self.start()

    def run(self) -> None:
        for line in stream(*self._asked):
            self.lines.append(line)

    def has_ended_with(self, code: bytes) -> bool:
        return not self.is_alive() and code in b"".join(self.lines)


def test_who_follows_a_run_with_a_token_that_ends_sees_no_more_of_it(pair: Pair) -> None:
    """A86: it is told so, and the run of others goes on."""
    run = "followed"
    calling = Reading(pair.a, pair.a.token, run, is_call=True)
    until(lambda: turns(pair.a, run) == [("running", None)])
    seer = pair.a.new_token("seer", "--scope", "admin:runs", "--scope", "run:read")
    glance = pair.a.new_token("glance", "--scope", "admin:runs", "--scope", "run:read")
    readers = [Reading(pair.a, token, run) for token in (seer, glance)]
    until(lambda: all(reader.lines for reader in readers))
    expire(pair.a, "glance")
    pair.a.carnet("tokens", "revoke", "seer")
    until(lambda: all(reader.has_ended_with(b"token_invalid") for reader in readers))
    assert turns(pair.a, run) == [("running", None)]
    pair.a.carnet("run", "cancel", run)
    calling.join()


def test_who_reads_an_answer_that_another_token_asked_for_is_held_to_its_own(pair: Pair) -> None:
    """A86: both tokens are those of one peer, and the call is the first one's."""
    run = "shared"
    first, second = (pair.a.new_token(name, "--peer", "b.example") for name in ("one", "two"))
    calling = Reading(pair.a, first, run, is_call=True)
    until(lambda: calling.lines)
    attached = Reading(pair.a, second, run, is_call=True)
    until(lambda: attached.lines)
    pair.a.carnet("tokens", "revoke", "two")
    until(lambda: attached.has_ended_with(b"cancelled"))
    assert turns(pair.a, run) == [("running", None)]
    pair.a.carnet("tokens", "revoke", "one")
    until(lambda: calling.has_ended_with(b"cancelled"))
