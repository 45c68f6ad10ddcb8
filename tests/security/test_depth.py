"""The recursion bound: no spelling lowers it, and beyond it nothing runs, leaves or is billed."""

import pytest

from tests.security.support.scene import (
    DEPTH,
    PARENT,
    RUN,
    Scene,
    bills,
    canary,
    forwarding,
    fresh,
    ids,
    leaks,
    nothing_done,
    runs_of,
    send_raw,
)
from tests.support.http import chat_body


@pytest.mark.parametrize(
    "value",
    [
        *("-0", "+0", "--1", "1,2", "1,", ",1", "0 1", "1.0", "1e0", "0b1", "0o7", "1;q=1"),
        *("0x10", "00x", "null", "true", "NaN", "''", '"1"', "[1]", "1#", "1%00", "%31", "½"),
        *("1\t", "\xa01", "\xb2", "\xb9", "\x851"),
        *(digit.encode().decode("latin-1") for digit in ("４", "٣", "१", "𝟙", "①", "１")),
    ],
)
@pytest.mark.parametrize("agent", ["paid", "answer"])
def test_a_depth_that_is_not_ascii_digits_is_refused_and_not_read_as_zero(
    scene: Scene, value: str, agent: str
) -> None:
    """A38."""
    lines = f"{DEPTH}: ".encode() + value.encode("latin-1")
    with nothing_done(scene):
        answer = send_raw(scene.acme, scene.alice, lines, chat_body("hi", agent))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"malformed_caller_context"' in answer
    assert b'"retry-after"' not in answer


def test_a_depth_is_refused_beside_another_of_any_spelling(scene: Scene) -> None:
    """A38: the smaller one is not taken, whichever comes first and however it is named."""
    with nothing_done(scene):
        for names in ((DEPTH, DEPTH), (DEPTH, DEPTH.title()), (DEPTH, DEPTH.replace("-", "_"))):
            for values in (("0", "9"), ("9", "0"), ("1", "1")):
                headers = list(zip(names, values, strict=True))
                reply = scene.acme.chat("hi", "paid", token=scene.alice, headers=headers)
                assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_no_depth_beside_a_parent_turn_is_zero(scene: Scene) -> None:
    """A38."""
    run = fresh("parented")
    headers = [*ids(run, "abc.t0.echo"), (PARENT, f"{run}.t0.outer")]
    assert scene.acme.chat("hi", token=scene.alice, headers=headers).status == 200
    (turn,) = scene.acme.get(f"/runs/{run}", token=scene.alice).json["turns"]
    assert turn["depth"] == 0


@pytest.mark.parametrize("depth", ["4", "04", "9999", "1" + "0" * 20])
@pytest.mark.parametrize("agent", ["echo", "paid", "relay", "answer", "@paid@globex.example"])
def test_beyond_the_limit_nothing_is_forwarded_whoever_would_pay(
    scene: Scene, agent: str, depth: str
) -> None:
    """A39: with the credential of a listed caller, which is kept nowhere."""
    secret = canary()
    headers = [(DEPTH, depth), forwarding(secret)]
    with nothing_done(scene):
        reply = scene.acme.chat("hi", agent, token=scene.bridge, headers=headers)
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    observed, limit = min(int(depth), 2**31 - 1), 4
    error = reply.json["error"]
    assert (error["observed"], error["limit"]) == (observed, limit)
    assert "retry-after" not in reply.headers
    assert leaks(scene, secret, reply) == []


@pytest.mark.parametrize("address", ["answer", "@paid@globex.example"])
def test_the_last_hop_that_calls_on_is_refused_and_its_trace_says_so(
    scene: Scene, address: str
) -> None:
    """A39: the refusal stands in the run, and the credential does not."""
    run, secret = fresh("last"), canary()
    received = len(scene.hostile.received)
    headers = [(DEPTH, "3"), (RUN, run), forwarding(secret)]
    reply = scene.acme.chat(f"{address} hi", "relay", token=scene.bridge, headers=headers)
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert len(scene.hostile.received) == received
    assert runs_of(scene.globex, "paid", run) == 0
    assert bills(scene.acme, run) == []
    page = scene.acme.get(f"/runs/{run}", token=scene.bridge)
    (outbound,) = page.json["turns"][0]["legs"]
    assert (outbound["status"], outbound["code"], outbound["depth"]) == (
        "refused",
        "bridge_depth_exceeded",
        4,
    )
    assert leaks(scene, secret, reply, page) == []
