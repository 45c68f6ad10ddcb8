"""A turn that runs in one gateway is read, followed and cancelled in another while it goes on."""

import asyncio
import json
from typing import Any

from carnet.testing.wait import until_so
from tests.replicas.scene import PRICE, Callers, House, Replica, callers
from tests.replicas.upstream import Upstream
from tests.support.http import chat_body, request


def frames(body: bytes) -> list[dict[str, Any]]:
    """The data of each event that has come whole."""
    whole = body.rpartition(b"\n\n")[0]
    lines = [line for line in whole.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines]


async def ended(house: House, run: str, state: str, code: str | None) -> None:
    async def is_so() -> bool:
        return house.turns(run)[0][:2] == (state, code)

    await until_so(is_so)


async def test_a_stream_of_another_gateway_is_attached_to_while_it_runs(
    house: House, four: list[Replica], people: Callers
) -> None:
    run = "conv_live"
    house.allow(run, "0", "1")
    async with people.reading(four[0], run) as first:
        await first.until(b'"1 "')
        async with people.reading(four[1], run) as second, people.reading(four[1], run) as third:
            await second.until(b'"1 "')  # nothing has ended: the agent waits for its next step
            house.allow(run, "2")
            await second.until(b'"2 "')
            await third.until(b'"2 "')
            assert house.turns(run) == [("running", None, 1)]
            house.allow(run, "3", "end")
            bodies = {await first.rest(), await second.rest(), await third.rest()}
    (body,) = bodies
    assert body.count(b"[DONE]") == 1
    assert body.endswith(b"data: [DONE]\n\n")
    assert (house.ran(run), house.billed(run)) == (1, [PRICE])


async def test_a_call_without_a_stream_waits_for_the_gateway_that_runs_it(
    house: House, four: list[Replica], people: Callers
) -> None:
    run = "conv_whole"
    house.allow(run, "0")
    async with people.reading(four[0], run) as first:
        await first.until(b'"0 "')
        house.allow(run, "1", "end")
        answer = await people.ask(four[2], run, "stepwise", "go")
        await first.rest()
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "0 1 "
    assert house.ran(run) == 1


async def test_a_turn_goes_on_while_somebody_reads_it_in_any_gateway(
    house: House, four: list[Replica], people: Callers
) -> None:
    run = "conv_moved"
    house.allow(run, "0")
    async with people.reading(four[0], run) as first:
        await first.until(b'"0 "')
        async with people.reading(four[1], run) as second:
            await second.until(b'"0 "')
            first.leave()
            # Long enough for the gateway that runs it to look for readers elsewhere.
            await asyncio.sleep(0.6)
            house.allow(run, "1")
            await second.until(b'"1 "')
    await ended(house, run, "failed", "cancelled")  # and not longer
    assert (house.ran(run), house.billed(run)) == (1, [])
    house.allow(run, "end")
    again = await people.ask(four[2], run, "stepwise", "go", stream=True)
    assert again.is_whole
    assert house.turns(run) == [("done", None, 2)]


async def test_a_run_is_followed_in_another_gateway_and_again_from_where_it_was_left(
    house: House, four: list[Replica], people: Callers
) -> None:
    run = "conv_events"
    house.allow(run, "0")
    async with people.reading(four[0], run) as reader:
        await reader.until(b'"0 "')
        async with people.watching(four[1], run) as watcher:
            await watcher.until(b'"0 "')
            house.allow(run, "1")
            await watcher.until(b'"1 "')
            assert house.turns(run) == [("running", None, 1)]
        ids = [line[4:] for line in watcher.body.splitlines() if line.startswith(b"id: ")]
        async with people.watching(four[2], run, ids[-1].decode()) as watcher:
            house.allow(run, "2")
            await watcher.until(b'"2 "')
            house.allow(run, "end")
            await reader.rest()
            body = await watcher.rest()
    assert b'"1 "' not in body
    assert body.count(b"event: end\n") == 1
    assert body.count(b"event: done\n") == 1
    kinds = [frame.get("text") for frame in frames(body) if "text" in frame]
    assert kinds == ["2 "]


async def test_a_token_that_ends_sees_no_more_of_a_run_at_any_gateway(
    house: House, four: list[Replica], people: Callers
) -> None:
    """A86, R54."""
    run = "conv_watched"
    house.allow(run, "0")
    token = house.operator.new_token("watcher", "--scope", "admin:runs", "--scope", "run:read")
    async with people.reading(four[0], run) as reader:
        await reader.until(b'"0 "')
        async with (
            callers(token) as watchers,
            watchers.watching(four[0], run) as near,
            watchers.watching(four[1], run) as far,
        ):
            await near.until(b'"0 "')
            await far.until(b'"0 "')
            house.operator.carnet("tokens", "revoke", "watcher")
            for body in (await near.rest(), await far.rest()):
                assert body.endswith(b'event: error\ndata: {"code":"token_invalid"}\n\n')
        house.allow(run, "1", "end")
        assert b'"1 "' in await reader.rest()


async def test_a_run_is_cancelled_from_a_gateway_that_does_not_run_it(
    house: House, four: list[Replica], people: Callers
) -> None:
    run = "conv_cancelled"
    house.allow(run, "0")
    async with people.reading(four[0], run) as first, people.reading(four[2], run) as third:
        await first.until(b'"0 "')
        await third.until(b'"0 "')
        page = await people.cancel(four[1], run)
        assert (page["cancelled"], [hop["outcome"] for hop in page["hops"]]) == (1, ["cancelled"])
        bodies = {await first.rest(), await third.rest()}
    (body,) = bodies
    assert frames(body)[-1]["error"]["code"] == "cancelled"
    assert b"[DONE]" not in body
    assert house.turns(run) == [("failed", "cancelled", 1)]
    assert house.billed(run) == []
    assert (await people.cancel(four[1], run))["cancelled"] == 0

    async def nothing_is_left() -> bool:
        return house.ran(run, "left") == 1 and not house.rows("SELECT 1 FROM wish")

    await until_so(nothing_is_left)


async def test_a_call_out_of_a_turn_is_made_at_the_gateway_that_asked_and_at_no_other(
    house: House, four: list[Replica], people: Callers, model: Upstream
) -> None:
    """Another one says so, by a code of its own: the bearer is good, and its turn is not here."""

    def calls(bearer: str, text: str) -> str:
        fields = [("authorization", bearer), ("content-type", "application/json")]
        met = []
        for replica in (four[1], four[0]):
            url = f"{replica.url}/v1/chat/completions"
            reply = request("POST", url, fields, chat_body(text, "echo"))
            met.append(f"{reply.status} {reply.json.get('code', 'well')}")
        return ", ".join(met)

    model.loop = calls
    answer = await people.ask(four[0], "conv_loop", "looped", "hi")
    assert answer.status == 200
    content = json.loads(answer.body)["choices"][0]["message"]["content"]
    assert content == "421 turn_elsewhere, 200 well"
    assert house.turns("conv_loop") == [("done", None, 1), ("done", None, 1)]
    assert house.ran("conv_loop") == 1
