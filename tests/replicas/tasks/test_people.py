"""The end of one of two people, in the middle of her runs, at gateways that share a store (R54).

What lets her in lets nobody in any more, and nothing runs or waits for her, at any gateway; the
other one notices nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from carnet.stores.store import LOOK_SECONDS
from carnet.testing.wait import until, until_so
from tests.replicas.scene import Answer, Callers, House, Replica, a_house, callers, ids
from tests.stores.support import servers
from tests.support.http import HeaderList, chat_body, request, stream
from tests.support.signing.signed import Line, Sender, message

ENDS_SECONDS = 5.0
ME = "agent://acme.example"
OF_HER = (
    "SELECT COUNT(*) FROM turn t JOIN person p ON p.n = t.person WHERE p.name = ? AND t.state IN"
    " ('running', 'queued', 'waiting')"
)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    """Two gateways, at which one task of an agent runs at a time."""
    limits = "[limits]\ntasks_per_agent = 1\n"
    with a_house(tmp_path_factory.mktemp("people"), server, limits) as house:
        more = {
            "CARNET__LIMITS__SENDER_CALLS_PER_MINUTE": "1000000",  # asked until it holds
            "CARNET__GATEWAY__PUBLIC_URL": "http://127.0.0.1:8700",  # of both: one cookie
        }
        house.open(2, more)
        yield house


@pytest.fixture
async def clients(office: House) -> AsyncIterator[Callers]:
    async with callers(office.token) as clients:
        yield clients


class Somebody:
    """A person, her tokens, a session and a delegation, and what runs for her."""

    def __init__(self, house: House, name: str) -> None:
        operator = house.operator
        self.house, self.name = house, name
        operator.carnet("people", "add", name)
        self.tokens = [
            operator.new_token(f"{name}-{what}", "--person", name) for what in ("laptop", "phone")
        ]
        self.sender = Sender(f"agent://client-{name}")
        operator.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)
        words = ("--scope", "*", "--for", ME, "--person", name)
        granted = operator.json("tokens", "delegate", self.sender.identity, *words)
        self.delegation, self.delegated = granted["token"], granted["jti"]
        token = ("authorization", f"Bearer {self.tokens[0]}")
        signed_in = request("POST", f"{house.replicas[0].url}/session", [token])
        assert signed_in.status == 201, signed_in.body
        self.cookie = signed_in.headers["set-cookie"].partition(";")[0]

    def runs(self, what: str) -> str:
        return f"{self.name}-{what}"

    def task(self, replica: Replica, number: int) -> str:
        """Have a task queued; the first of all that are asked for is run."""
        fields = [
            ("authorization", f"Bearer {self.tokens[1]}"),
            ("content-type", "application/json"),
            *ids(self.runs(f"task-{number}"), "stepwise"),
        ]
        reply = request("POST", f"{replica.url}/tasks", fields, chat_body("go", "stepwise"))
        assert reply.status == 202, reply.body
        return str(reply.json["taskId"])

    def is_let_in(self, replica: Replica) -> set[int]:
        """How each of her tokens, her session, and who acts for her, is answered."""
        with Line(replica.port) as line:
            signed = line.send(message(self.sender, ME, delegationToken=self.delegation)).status
        asked = [
            request("GET", f"{replica.url}/runs", [("authorization", f"Bearer {token}")]).status
            for token in self.tokens
        ]
        page = request("GET", f"{replica.url}/runs", [("cookie", self.cookie)]).status
        return {signed, page, *asked}

    def questions(self, replica: Replica) -> list[dict[str, Any]]:
        """What she is asked."""
        page = request("GET", f"{replica.url}/approvals", self._fields()).json
        found: list[dict[str, Any]] = page["approvals"]
        return found

    def agrees(self, replica: Replica, question: str) -> int:
        fields = [*self._fields(), ("content-type", "application/json")]
        answer = b'{"outcome": "accepted"}'
        return request("POST", f"{replica.url}/approvals/{question}", fields, answer).status

    def _fields(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.tokens[1]}")]

    def session(self) -> Any:
        ((ended,),) = self.house.rows(
            "SELECT s.ended FROM session s JOIN person p ON p.n = s.person WHERE p.name = ?",
            self.name,
        )
        return ended


async def nothing_of_the_other_has_ended(
    office: House, bob: Somebody, asking: list[asyncio.Task[Answer]]
) -> None:
    """What he asked for goes on, comes to its end, and he is let in."""
    assert (office.rows(OF_HER, "bob"), bob.session()) == ([(6,)], None)
    (question,) = bob.questions(office.replicas[1])
    assert (question["owner"], bob.agrees(office.replicas[1], question["id"])) == ("bob", 200)
    tasks = [bob.runs(f"task-{n}") for n in range(3)]
    for run in (*(bob.runs(f"call-{n}") for n in range(2)), *tasks):
        office.allow(run, "0", "end")
    assert [answer.status for answer in await asyncio.gather(*asking)] == [200, 200]
    await until_so(lambda: office.rows(OF_HER, "bob") == [(0,)])
    assert [office.turns(run) for run in tasks] == [[("done", None, 1)]] * 3
    ((state, code, _),) = office.turns(bob.runs("asks"))
    assert (state, code) == ("done", None)
    assert all(bob.is_let_in(replica) == {200} for replica in office.replicas)


async def begin(
    office: House, clients: Callers, people: Sequence[Somebody]
) -> dict[Somebody, list[asyncio.Task[Answer]]]:
    """Two calls of each, a turn that waits for an answer, and tasks of which some are queued."""
    first, second = office.replicas
    for each in people:
        until(lambda each=each: [each.is_let_in(one) for one in (first, second)] == [{200}] * 2)  # type: ignore[misc]
    asking = {
        each: [
            asyncio.create_task(
                clients.ask(replica, each.runs(f"call-{n}"), "stepwise", token=each.tokens[0])
            )
            for n, replica in enumerate(office.replicas)
        ]
        for each in people
    }
    calls = [each.runs(f"call-{n}") for each in people for n in range(2)]
    await until_so(lambda: all(office.ran(run) == 1 for run in calls))
    for each in people:
        for n in range(3):
            each.task(first, n)
        waits = await clients.ask(first, each.runs("asks"), "asking", token=each.tokens[0])
        assert waits.status == 402
    await until_so(lambda: sum(office.ran(e.runs(f"task-{n}")) for e in people for n in range(3)))
    return asking


async def test_the_end_of_one_person_leaves_nothing_that_admits_and_nothing_that_runs(
    office: House, clients: Callers
) -> None:
    alice, bob = Somebody(office, "alice"), Somebody(office, "bob")
    asking = await begin(office, clients, (alice, bob))
    assert office.rows(OF_HER, "alice") == [(6,)]
    (question,) = alice.questions(office.replicas[1])

    ended_page = await asyncio.to_thread(office.operator.json, "people", "end", "alice")
    kinds = [thing["kind"] for thing in ended_page["things"]]
    assert kinds == ["token", "token", "session", "delegation", *["turn"] * 6]

    await until_so(lambda: all(alice.is_let_in(one) == {401} for one in office.replicas))
    await until_so(lambda: office.rows(OF_HER, "alice") == [(0,)])
    answers = await asyncio.gather(*asking[alice])
    assert [b"cancelled" in answer.body for answer in answers] == [True, True]
    hers = [alice.runs(f"call-{n}") for n in range(2)]
    await until_so(lambda: all(office.ran(run, "left") == 1 for run in hers))
    began = sum(office.ran(alice.runs(f"task-{n}")) for n in range(3))
    ended = [office.turns(alice.runs(what)) for what in ("task-0", "task-1", "task-2", "asks")]
    assert {(state, code) for ((state, code, _),) in ended} == {("failed", "cancelled")}
    assert office.rows("SELECT status FROM interrupt WHERE id = ?", question["id"]) != [("open",)]
    hold = "SELECT reserved FROM purse WHERE name LIKE ? AND reserved <> 0"
    assert office.rows(hold, "token:alice-%") == []
    assert alice.session() is not None
    assert office.rows("SELECT ended IS NULL FROM delegation WHERE jti = ?", alice.delegated) == [
        (False,)
    ]

    await nothing_of_the_other_has_ended(office, bob, asking[bob])
    assert sum(office.ran(alice.runs(f"task-{n}")) for n in range(3)) == began


def is_refused(page: str, fields: HeaderList) -> bool:
    return request("GET", page, fields).status == 401


@pytest.mark.parametrize("how", ["signs out", "token"])
async def test_a_session_ends_at_every_gateway_and_its_stream_with_it(
    office: House, clients: Callers, how: str
) -> None:
    """R54: signed in at one gateway and read at the other, of which nobody tells it anything."""
    name, (first, second) = f"dora-{how[:1]}", office.replicas
    dora = Somebody(office, name)
    until(lambda: dora.is_let_in(second) == {200})
    run = dora.runs("call")
    asking = asyncio.create_task(clients.ask(first, run, "stepwise", token=dora.tokens[0]))
    await until_so(lambda: office.ran(run) == 1)
    cookie = [("cookie", dora.cookie)]
    events = stream("GET", f"{second.url}/runs/{run}/events", cookie)
    assert await asyncio.to_thread(next, events)
    if how == "token":
        await asyncio.to_thread(office.operator.carnet, "tokens", "revoke", f"{name}-laptop")
    else:
        csrf = request("GET", f"{first.url}/session", cookie).json["csrf"]
        out = request("DELETE", f"{first.url}/session", [*cookie, ("x-csrf-token", csrf)])
        assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (200, True)
    await asyncio.to_thread(lambda: [*events])  # until it is cut off
    for at in (first.url, second.url):
        await asyncio.to_thread(until, partial(is_refused, f"{at}/runs", cookie))
    assert LOOK_SECONDS < ENDS_SECONDS  # it is seen at the next look
    if how == "token":  # what it had begun ends with the token, and goes on without the session
        assert b"cancelled" in (await asking).body
    else:
        assert not asking.done()
        office.allow(run, "0", "end")
        assert (await asking).status == 200
