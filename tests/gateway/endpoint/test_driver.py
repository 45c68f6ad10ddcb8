"""A driver without a gateway of its own, which has only the public names of the package."""

import pytest

import carnet
from tests.support.organisation import Organisation
from tests.support.served import executions


def headers_at(depth: int, run: str, speaker: str = "Echo Chamber") -> list[tuple[str, str]]:
    """What a driver sends that was itself called at `depth`."""
    built = carnet.build_forward_headers(
        run_id=run,
        turn_id=carnet.turn_id(run, 0, speaker),
        speaker=speaker,
        inbound_depth=depth,
        parent_turn_id=f"{run}.outer",
    )
    return list(built.items())


def test_what_a_driver_builds_is_recorded_as_it_meant_it(acme: Organisation) -> None:
    headers = headers_at(1, "conv_driver")
    assert acme.chat("hi", headers=headers).status == 200
    [turn] = acme.get("/runs/conv_driver").json["turns"]
    assert (turn["turn"], turn["depth"]) == ("conv_driver.t0.echo-chamber", 2)
    assert carnet.read_depth(dict(headers)) == 2


def test_the_turn_id_of_a_driver_makes_a_retry_the_same_call(acme: Organisation) -> None:
    before = len(executions(acme.folder, "echo"))
    first, again = (acme.chat("hi", headers=headers_at(0, "conv_retry")) for _ in range(2))
    assert (first.status, again.body) == (200, first.body)
    assert len(executions(acme.folder, "echo")) == before + 1


@pytest.mark.parametrize("beyond", [False, True])
def test_a_driver_is_answered_below_the_public_limit_and_refused_at_it(
    acme: Organisation, *, beyond: bool
) -> None:
    depth = carnet.DEFAULT_MAX_DEPTH - 1 if beyond else carnet.DEFAULT_MAX_DEPTH - 2
    reply = acme.chat("hi", headers=headers_at(depth, f"conv_limit_{depth}"))
    assert reply.status == (429 if beyond else 200)


async def test_a_conversation_over_a_gateway_is_recorded_there_turn_by_turn(
    acme: Organisation,
) -> None:
    async def critic(visit: carnet.Visit) -> str:
        return f"{visit.text} No."

    echo = carnet.Participant(target=f"{acme.url}/agents/echo", token=acme.token)
    headers = dict(headers_at(0, "conv_driven", "front"))
    given = carnet.inbound(headers)
    before = len(executions(acme.folder, "echo"))
    result = await carnet.run_conversation([echo, critic], seed="So?", max_turns=3, **given)
    assert [turn.text for turn in result.transcript] == [
        "So?",
        "[echo] So? No.",
        "[critic] [echo] So? No.",
    ]
    assert result.transcript[0].cost is not None
    turns = acme.get("/runs/conv_driven").json["turns"]
    mine = {turn["turn"]: turn for turn in turns}
    assert list(mine) == [turn.turn_id for turn in result.transcript if turn.speaker == "echo"]
    parents = {(turn["depth"], turn["parent_turn"]) for turn in turns}
    assert parents == {(2, "conv_driven.t0.front")}
    again = await carnet.run_conversation([echo, critic], seed="So?", max_turns=3, **given)
    assert [turn.text for turn in again.transcript] == [turn.text for turn in result.transcript]
    assert len(executions(acme.folder, "echo")) == before + 2  # a turn id is the same call


async def test_a_conversation_that_is_too_deep_reaches_nobody(acme: Organisation) -> None:
    before = len(executions(acme.folder, "echo"))
    echo = carnet.Participant(target=f"{acme.url}/agents/echo", token=acme.token)
    other = carnet.Participant(target=echo.target, name="other", token=acme.token)
    with pytest.raises(carnet.DepthExceeded):
        await carnet.run_conversation(
            [echo, other], seed="So?", max_turns=2, inbound_depth=carnet.DEFAULT_MAX_DEPTH - 1
        )
    assert len(executions(acme.folder, "echo")) == before
