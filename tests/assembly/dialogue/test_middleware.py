"""In front of somebody else's application: what is refused, and what its calls carry."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import carnet
from carnet.assembly.dialogue.middleware import AsgiReceive, AsgiScope, AsgiSend
from carnet.errors import ChainMismatch, PeerNotListed, ProviderTimeout, UsageInvalid
from tests.runtime.peer import Peer, answering
from tests.runtime.peer import reply as spoken
from tests.runtime.peers.globex import Globex, answer, form_of
from tests.runtime.scene import completion

BEARER = "Bearer sk-tan-user-123"
FORWARDED = {carnet.FORWARDED_AUTHORIZATION: BEARER}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Answer = Callable[[carnet.Carnet], Awaitable[Any]]


class Application:
    """Answers with what its function gives for the travel document, or the code it met."""

    def __init__(self, answering: Answer) -> None:
        self._answering = answering
        self.scopes: list[AsgiScope] = []

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        del receive
        self.scopes.append(scope)
        try:
            body = await self._answering(scope["carnet"])
        except carnet.CarnetError as error:
            body = {"met": error.code}
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def placed(document: carnet.Carnet) -> dict[str, Any]:
    return {"run": document.run, "turn": document.turn, "depth": document.depth}


async def ask(app: Any, headers: dict[str, str] | list[tuple[str, str]]) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app.example") as client:
        return await client.post("/review", headers=headers)


def at(depth: int, **more: str) -> dict[str, str]:
    return {carnet.RUN_ID: "run_1", carnet.TURN_ID: "run_1.t0.app"} | {
        carnet.FORWARDED_DEPTH: str(depth),
        **more,
    }


async def test_the_travel_document_of_a_request_is_in_its_scope() -> None:
    app = Application(placed)
    reply = await ask(carnet.Middleware(app), at(2) | {"traceparent": TRACE})
    assert reply.json() == {"run": "run_1", "turn": "run_1.t0.app", "depth": 2}
    document = app.scopes[0]["carnet"]
    assert (document.last_depth, document.run_is_ours) == (3, False)
    assert document.trace.trace_id == "0af7651916cd43dd8448eb211c80319c"


async def test_a_request_without_stamps_begins_a_run() -> None:
    app = carnet.Middleware(Application(placed))
    first, second = (await ask(app, {})).json(), (await ask(app, {})).json()
    assert first["run"].startswith("conv_")
    assert first["depth"] == 0
    assert first["run"] != second["run"]


@pytest.mark.parametrize("depth", [4, 5, 2**31])
async def test_a_chain_that_is_too_deep_is_429_and_the_application_does_not_see_it(
    depth: int,
) -> None:
    app = Application(placed)
    reply = await ask(carnet.Middleware(app), at(depth))
    assert reply.status_code == 429
    assert reply.json()["error"]["code"] == "bridge_depth_exceeded"
    assert reply.headers["x-should-retry"] == "false"
    assert "retry-after" not in reply.headers
    assert app.scopes == []


async def test_the_environment_has_the_last_word_about_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLI_BRIDGE_MAX_DEPTH", "2")
    app = carnet.Middleware(Application(placed), max_depth=9)
    assert [(await ask(app, at(depth))).status_code for depth in (1, 2)] == [200, 429]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ([(carnet.FORWARDED_DEPTH, "-1")], 400, "malformed_caller_context"),
        ([(carnet.FORWARDED_DEPTH, "1x")], 400, "malformed_caller_context"),
        ([(carnet.FORWARDED_DEPTH, "1")] * 2, 400, "malformed_caller_context"),
        ([("x_tangle_forwarded_depth", "1")], 400, "malformed_caller_context"),
        ([(carnet.RUN_ID, "r" * 129)], 400, "malformed_caller_context"),
        ([("x-agents-api-chain-depth", "1")], 400, "malformed_caller_context"),
        (
            [(carnet.RUN_ID, "a"), ("x-agents-api-chain-root", "b")],
            400,
            "chain_mismatch",
        ),
        ([(carnet.FORWARDED_AUTHORIZATION, BEARER)], 403, "forwarding_not_allowed"),
        ([("x-long", "x" * 70_000)], 431, "headers_too_large"),
        ([(f"x-{n}", "1") for n in range(300)], 431, "headers_too_large"),
    ],
)
async def test_what_no_gateway_would_read_is_refused(
    headers: list[tuple[str, str]], status: int, code: str
) -> None:
    app = Application(placed)
    reply = await ask(carnet.Middleware(app), headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert app.scopes == []


async def test_what_is_no_http_request_passes_as_it_came() -> None:
    seen: list[AsgiScope] = []

    async def app(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        del receive, send
        seen.append(scope)

    async def nothing(*_: Any) -> Any:
        return None

    scopes: list[AsgiScope] = [
        {"type": "lifespan"},
        {"type": "websocket", "headers": [(b"x-tangle-forwarded-depth", b"99")]},
    ]
    for scope in scopes:
        await carnet.Middleware(app)(scope, nothing, nothing)
    assert [one is other for one, other in zip(seen, scopes, strict=True)] == [True, True]


async def test_calls_made_inside_go_on_with_the_chain(tmp_path: Path) -> None:
    async with Globex(answer(text="well"), is_carnet=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        me = "agent://app.example"  # an organisation has a travel document, a client has none
        async with carnet.connect(url, key=tmp_path / "k", sender=me) as outside:

            async def review(_: carnet.Carnet) -> str:
                await outside.chat("one")
                async with asyncio.TaskGroup() as group:  # a task takes its context along
                    group.create_task(outside.chat("two"))
                return "reviewed"

            app = carnet.Middleware(Application(review), timeout=60)
            headers = at(1) | {"traceparent": TRACE}
            assert (await ask(app, headers)).json() == "reviewed"
            assert (await ask(app, headers)).json() == "reviewed"  # the same turn, once more
            await outside.chat("three")
    assert [form_of(request) for request in peer.posts] == [*["carnet"] * 4, "samvad"]
    sent = [request.headers for request in peer.posts[:4]]
    assert {each[carnet.FORWARDED_DEPTH] for each in sent} == {"2"}
    assert {each[carnet.RUN_ID] for each in sent} == {"run_1"}
    assert {each[carnet.PARENT_TURN_ID] for each in sent} == {"run_1.t0.app"}
    turns = [each[carnet.TURN_ID] for each in sent]
    assert turns[:2] == turns[2:]
    assert turns[0] != turns[1]
    assert [body["spanId"] for body in peer.bodies[:4]] == turns
    assert all(each["traceparent"].split("-")[1] == TRACE.split("-")[1] for each in sent)
    document = json.loads(_unpadded(sent[0]["carnet"]))
    assert (document["run"], document["d"], document["dl"] > 0) == ("run_1", 2, True)
    assert carnet.RUN_ID not in peer.posts[4].headers


def _unpadded(document: str) -> bytes:
    payload = document.split(".")[1]
    return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))


async def test_where_no_hop_is_left_nothing_is_sent(tmp_path: Path) -> None:
    async with Globex(answer(text="well")) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "k") as critic:

            async def review(_: carnet.Carnet) -> Any:
                return await critic.call("chat", text="Well?")

            reply = await ask(carnet.Middleware(Application(review)), at(3))
    assert reply.json() == {"met": carnet.DepthExceeded.code}
    assert peer.posts == []


@pytest.mark.parametrize(
    ("auth", "forwarded", "met"),
    [
        ("forward-user", BEARER, None),
        ("agent-owned", None, None),
        (None, None, PeerNotListed.code),  # R5: it is not left out so that somebody else pays
    ],
)
async def test_a_forwarded_credential_leaves_to_those_alone_who_are_listed(
    tmp_path: Path, auth: str | None, forwarded: str | None, met: str | None
) -> None:
    async with Globex(answer(text="well"), is_carnet=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "k", auth=auth) as critic:

            async def review(_: carnet.Carnet) -> Any:
                return await critic.call("chat", text="Well?")

            application = Application(review)
            app = carnet.Middleware(application, may_forward=bool)
            reply = await ask(app, at(1) | FORWARDED)
    assert reply.json() == ({"met": met} if met else {"text": "well"})
    assert [post.headers.get(carnet.FORWARDED_AUTHORIZATION) for post in peer.posts] == (
        [] if met else [forwarded]
    )
    # A client has no travel document: its stamps stand under its signature.
    assert all(form_of(post) == "carnet" and "carnet" not in post.headers for post in peer.posts)
    assert BEARER not in repr(application.scopes[0]["carnet"])


async def test_a_call_names_no_other_run_and_has_no_more_time_than_its_request(
    tmp_path: Path,
) -> None:
    async with Globex(answer(text="well")) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "k") as critic:

            async def elsewhere(_: carnet.Carnet) -> Any:
                return await critic.within(trace_id="run_2").call("chat", text="Well?")

            async def late(_: carnet.Carnet) -> Any:
                return await critic.call("chat", text="Well?")

            other = await ask(carnet.Middleware(Application(elsewhere)), at(1))
            over = await ask(carnet.Middleware(Application(late), timeout=0), at(1))
    assert other.json() == {"met": ChainMismatch.code}
    assert over.json() == {"met": ProviderTimeout.code}
    assert peer.posts == []


def test_a_word_for_who_pays_that_means_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageInvalid, match="does not say who pays"):
        carnet.connect("agent://globex.example", key=tmp_path / "k", auth="somebody")


async def conversed(url: str, **more: Any) -> dict[str, Any]:
    people = [carnet.Participant(target=url, name="critic"), carnet.Participant(target=repeats)]
    result = await carnet.run_conversation(people, seed="Well?", max_turns=1, **more)
    return {"run": result.run_id, "met": result.halted.code, "text": result.text}


async def repeats(visit: carnet.Visit) -> str:
    return visit.text


async def test_a_conversation_inside_goes_on_with_the_chain() -> None:
    """Run, depth, parent turn, payer and trace; the second one is another one."""
    async with Peer(answering(spoken(completion("well")))) as peer:

        async def review(_: carnet.Carnet) -> Any:
            return [await conversed(peer.url), await conversed(peer.url)]

        app = carnet.Middleware(Application(review), may_forward=bool)
        headers = at(1) | FORWARDED | {"traceparent": TRACE}
        first = await ask(app, headers)
        again = await ask(app, headers)
        sent = [request.headers for request in peer.requests]
    assert first.json() == again.json() == [{"run": "run_1", "met": None, "text": "well"}] * 2
    assert {each[carnet.FORWARDED_DEPTH] for each in sent} == {"2"}
    assert {each[carnet.RUN_ID] for each in sent} == {"run_1"}
    assert {each[carnet.PARENT_TURN_ID] for each in sent} == {"run_1.t0.app"}
    assert {each[carnet.FORWARDED_AUTHORIZATION] for each in sent} == {BEARER}
    assert {each["traceparent"].split("-")[1] for each in sent} == {TRACE.split("-")[1]}
    turns = [each[carnet.TURN_ID] for each in sent]
    assert turns[:2] == turns[2:]
    assert turns[0] != turns[1]


async def test_a_conversation_inside_is_bounded_by_its_request() -> None:
    """At the last hop and out of time nobody is called; what it is told can only say more."""
    async with Peer(answering(spoken(completion("well")))) as peer:

        def reviewing(**more: Any) -> Application:
            async def review(_: carnet.Carnet) -> Any:
                return await conversed(peer.url, **more)

            return Application(review)

        last = await ask(carnet.Middleware(reviewing(max_depth=9)), at(3))
        over = await ask(carnet.Middleware(reviewing(), timeout=0), at(1))
        other = await ask(carnet.Middleware(reviewing(run_id="run_2")), at(1))
        assert [each.json()["met"] for each in (last, over, other)] == [
            *(carnet.DepthExceeded.code, ProviderTimeout.code),
            ChainMismatch.code,
        ]
        assert peer.requests == []
        same = carnet.inbound(at(1))
        given = await ask(carnet.Middleware(reviewing(**same)), at(1))
        own = await ask(carnet.Middleware(reviewing(run_id="nightly")), {})
        begun = await ask(carnet.Middleware(reviewing()), {})
        sent = [request.headers for request in peer.requests]
    assert [given.json()["run"], own.json()["run"]] == ["run_1", "nightly"]
    assert begun.json()["run"].startswith("conv_")
    assert [each[carnet.FORWARDED_DEPTH] for each in sent] == ["2", "1", "1"]


async def test_two_callers_with_the_same_ids_are_two_and_one_caller_is_one(tmp_path: Path) -> None:
    """R6: what they call has other ids, and what one has had said is in no journal of the other."""
    async with (
        Globex(answer(text="well"), is_carnet=True) as peer,
        Peer(answering(spoken(completion("well")))) as critic,
        carnet.connect(f"http://127.0.0.1:{peer.port}", key=tmp_path / "k") as outside,
    ):

        async def review(_: carnet.Carnet) -> Any:
            await outside.chat("one")
            return await conversed(critic.url, journal=f"sqlite:{tmp_path / 'journal.db'}")

        app = carnet.Middleware(Application(review))
        for header in ("authorization", "x-api-key", "cookie"):
            for who in ("alice", "bob", "alice"):
                assert (await ask(app, at(1) | {header: who})).json()["text"] == "well"
    called = [post.headers[carnet.TURN_ID] for post in peer.posts]
    spoken_turns = [request.headers[carnet.TURN_ID] for request in critic.requests]
    assert len(called) == 9  # each time
    assert len(set(called)) == 6
    assert (
        len(spoken_turns) == len(set(spoken_turns)) == 6
    )  # alice's second request is answered by her journal
