"""A hostile upstream: what it says back of a request reaches nobody, and what it bills is bounded.

It was sent the payer's credential because it is listed for it. It may keep it; it may not have us
tell it to others.
"""

import json

import pytest

from carnet.testing.wait import until
from tests.security.support.hostile import AFTER, ENDLESSLY, FORWARDED, LEAKING, TALKING
from tests.security.support.scene import (
    RUN,
    UPSTREAM_TOKEN,
    Scene,
    bills,
    canary,
    forwarding,
    fresh,
    ids,
    leaks,
    logged,
    pages_of,
    query,
    seen,
)


@pytest.mark.parametrize("name", LEAKING)
def test_a_credential_that_an_upstream_says_back_is_told_to_nobody(scene: Scene, name: str) -> None:
    """A33, A65: in errors, frames and headers, whole and midway; in pages, log and database."""
    secret, run = canary(), fresh(name)
    replies = []
    for stream in (False, True):
        headers = [forwarding(secret), *ids(run, f"{stream}")]
        replies.append(
            scene.acme.chat("hi", name, token=scene.bridge, headers=headers, stream=stream)
        )
        assert scene.hostile.received[-1].headers[FORWARDED] == f"Bearer {secret}"
    replies += pages_of(scene.acme, run, scene.bridge)
    assert UPSTREAM_TOKEN.encode() not in b"".join(map(seen, replies))
    assert sum(amount for _, _, amount in bills(scene.acme, run)) == 0
    assert leaks(scene, secret, *replies) == []
    assert logged(scene) == []


def test_a_credential_is_not_in_the_records_of_a_run_that_broke_midway(scene: Scene) -> None:
    """A33: what the operator sees of it."""
    secret, run = canary(), fresh("midway")
    headers = [forwarding(secret), *ids(run)]
    reply = scene.acme.chat(
        "hi", "sse-error-midway", token=scene.bridge, headers=headers, stream=True
    )
    assert b"so far" in reply.body
    assert b"provider_error" in reply.body
    assert b"[DONE]" not in reply.body
    shown = [
        scene.acme.carnet("run", "show", run).stdout,
        scene.acme.carnet("--format", "json", "run", "show", run).stdout,
        scene.acme.carnet("tail", run).stdout,
        scene.acme.carnet("ledger", "--run", run).stdout,
    ]
    assert "sse-error-midway" in shown[0]
    assert all(secret not in text and UPSTREAM_TOKEN not in text for text in shown)
    assert leaks(scene, secret, reply) == []


# ---------------------------------------------------------------------- what it says


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", TALKING)
def test_what_an_upstream_says_of_its_own_fault_is_told_to_nobody(
    scene: Scene,
    name: str,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A65: neither its stack, nor a path, nor a key; a fixed sentence of ours takes its place."""
    run = fresh(name)
    reply = scene.acme.chat("hi", name, token=scene.alice, headers=ids(run), stream=stream)
    assert b'"provider_' in reply.body
    assert b"[DONE]" not in reply.body
    replies = [reply, *pages_of(scene.acme, run, scene.alice)]
    for word in ("canary-house", "canary-column", "Traceback", "KeyError"):
        assert word.encode() not in b"".join(map(seen, replies))
    assert leaks(scene, "sk-canary-of-the-upstream-0001", *replies) == []
    assert bills(scene.acme, run) == []


@pytest.mark.parametrize("name", ENDLESSLY)
def test_a_stream_has_one_end_whatever_an_upstream_sends(scene: Scene, name: str) -> None:
    """A66: and nothing comes after it."""
    run = fresh(name)
    reply = scene.acme.chat("hi", name, token=scene.alice, headers=ids(run), stream=True)
    assert AFTER.encode() not in reply.body
    frames = [line for line in reply.body.splitlines() if line.startswith(b"data: ")]
    if reply.status != 200:  # what came at once with its fault was never an answer
        assert (reply.status, reply.code, frames) == (502, "provider_error", [])
        frames = [reply.body]
    ends = [line == b"data: [DONE]" or b'"error"' in line for line in frames]
    assert ends == [False] * (len(frames) - 1) + [True]
    is_sound = name in {"after-done", "two-done"} and frames[-1] == b"data: [DONE]"
    assert is_sound or b'"provider_error"' in frames[-1]
    (state,) = query(scene.acme, "SELECT state FROM turn WHERE turn = ?", f"{run}.t0.echo")
    assert state == ("done" if is_sound else "failed",)
    assert sum(amount for _, _, amount in bills(scene.acme, run)) == 0


@pytest.mark.parametrize("name", ENDLESSLY)
def test_a_whole_answer_has_one_end_as_well(scene: Scene, name: str) -> None:
    """A66."""
    run = fresh(name)
    reply = scene.acme.chat("hi", name, token=scene.alice, headers=ids(run))
    assert AFTER.encode() not in reply.body
    if reply.status == 200:
        assert reply.text == "so far "
    else:
        assert (reply.status, reply.code) == (502, "provider_error")
        assert bills(scene.acme, run) == []


# ---------------------------------------------------------------------- what it bills

CURRENCY = '"currency": "credits"'


@pytest.mark.parametrize(
    ("usage", "amount"),
    [
        (f'{{"cost": "0.25", {CURRENCY}}}', 250_000),
        (f'{{"cost": "0.500001", {CURRENCY}}}', 500_000),
        (f'{{"cost": "999999999", {CURRENCY}}}', 500_000),
        (f'{{"cost": "-1", {CURRENCY}}}', 0),
        (f'{{"cost": "+1", {CURRENCY}}}', 0),
        (f'{{"cost": "999999999999999999999", {CURRENCY}}}', 0),
        (f'{{"cost": "NaN", {CURRENCY}}}', 0),
        (f'{{"cost": "Infinity", {CURRENCY}}}', 0),
        (f'{{"cost": "1e3", {CURRENCY}}}', 0),
        (f'{{"cost": "0.0000001", {CURRENCY}}}', 0),
        (f'{{"cost": " 0.1", {CURRENCY}}}', 0),
        (f'{{"cost": "\\u0661", {CURRENCY}}}', 0),
        (f'{{"cost": 0.25, {CURRENCY}}}', 0),
        (f'{{"cost": -5, {CURRENCY}}}', 0),
        (f'{{"cost": 1e99, {CURRENCY}}}', 0),
        (f'{{"cost": true, {CURRENCY}}}', 0),
        (f'{{"cost": ["0.25"], {CURRENCY}}}', 0),
        ('{"cost": "0.25", "currency": "EUR"}', 0),
        ('{"cost": "0.25", "currency": "Credits"}', 0),
        ('{"cost": "0.25", "currency": null}', 0),
        ('{"cost": "0.25"}', 0),
        ("{}", 0),
        ("null", 0),
        ('{"prompt_tokens": 1000000000, "completion_tokens": 1000000000}', 0),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_an_upstream_charges_is_read_strictly_and_cut_at_its_limit(
    scene: Scene,
    usage: str,
    amount: int,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A33: one entry a call, never negative, never above `max_cost`, never converted."""
    run = fresh("bill")
    reply = scene.acme.chat(usage, "bill", token=scene.alice, headers=[(RUN, run)], stream=stream)
    assert reply.status == 200
    assert b"served" in reply.body
    assert bills(scene.acme, run) == [("alice@acme.example", "peer:bill", amount)]


def test_a_bill_beyond_its_limit_is_logged_with_both_numbers(scene: Scene) -> None:
    """A33: the operator learns which peer asks for how much too much."""
    run = fresh("over")
    usage = f'{{"cost": "999999999", {CURRENCY}}}'
    assert scene.acme.chat(usage, "bill", token=scene.alice, headers=[(RUN, run)]).status == 200
    until(lambda: bool(over_charges(scene, run)))
    assert over_charges(scene, run) == [(999_999_999_000_000, 500_000)]


def over_charges(scene: Scene, run: str) -> list[tuple[int, int]]:
    """What was charged and its limit, by the warnings of a run."""
    lines = [json.loads(line) for line in scene.acme.log_lines() if run in line]
    return [(line["charged"], line["limit"]) for line in lines if line["level"] == "warning"]


@pytest.mark.parametrize(
    "usage",
    [
        f'{{"cost": NaN, {CURRENCY}}}',
        f'{{"cost": Infinity, {CURRENCY}}}',
        f'{{"cost": "0.25", {CURRENCY}, "prompt_tokens": -1}}',
        f'{{"cost": "0.25", {CURRENCY}, "completion_tokens": 9007199254740993}}',
        f'{{"cost": "0.25", {CURRENCY}, "completion_tokens": 1.5}}',
        '"free"',
        "[]",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bill_that_is_none_makes_the_answer_none(
    scene: Scene,
    usage: str,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A33: nobody is billed for it."""
    run = fresh("no-bill")
    reply = scene.acme.chat(usage, "bill", token=scene.alice, headers=[(RUN, run)], stream=stream)
    assert b'"provider_error"' in reply.body
    assert b"[DONE]" not in reply.body
    assert bills(scene.acme, run) == []
    healed = scene.acme.chat("{}", "bill", token=scene.alice)
    assert healed.status == 200  # so that her circuit stays closed


def test_an_upstream_that_fails_after_its_bill_gets_no_more_than_its_limit(scene: Scene) -> None:
    """A33, R7: a failed attempt counts, within the limit."""
    run = fresh("failed-bill")
    usage = f'{{"cost": "99", {CURRENCY}}}'
    headers = [(RUN, run)]
    reply = scene.acme.chat(
        usage, "bill-then-break", token=scene.alice, headers=headers, stream=True
    )
    assert b"[DONE]" not in reply.body
    assert bills(scene.acme, run) == [("alice@acme.example", "peer:bill-then-break", 500_000)]


def test_a_spending_limit_holds_whatever_a_model_says_it_counted(scene: Scene) -> None:
    """A33, R7: a cap cannot be overshot."""
    limited = scene.acme.new_token("limited", "--limit", "0.01")
    run = fresh("counted")
    usage = '{"completion_tokens": 9007199254740991}'
    reply = scene.acme.chat(usage, "model", token=limited, headers=[(RUN, run)])
    assert reply.status in {200, 502}
    assert sum(amount for _, _, amount in bills(scene.acme, run)) <= 10_000


def test_a_bill_that_no_ledger_can_hold_leaves_no_turn_behind(scene: Scene) -> None:
    """A33, A44: the turn ends, so that a repeat does not wait for ever."""
    run = fresh("overflow")
    usage = '{"completion_tokens": 9007199254740991}'
    scene.acme.chat(usage, "dearest-model", token=scene.alice, headers=ids(run))
    (state,) = query(scene.acme, "SELECT state FROM turn WHERE turn = ?", f"{run}.t0.echo")
    assert state != ("running",)


# ---------------------------------------------------------------------- what never ends


@pytest.mark.parametrize("stream", [True, False])
def test_an_upstream_that_never_ends_is_cut_off_by_size(
    scene: Scene,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A33, A66: at 64 MiB; nobody is billed, and its socket is closed."""
    run = fresh("endless")
    scene.hostile.sent = 0
    reply = scene.globex.chat("hi", "endless", headers=[(RUN, run)], stream=stream)
    assert b'"provider_error"' in reply.body[-600:]
    assert b"[DONE]" not in reply.body[-600:]
    assert len(reply.body) < 80 * 1024 * 1024
    assert bills(scene.globex, run) == []
    until(lambda: 0 < scene.hostile.sent < 80 * 1024 * 1024)


def test_an_upstream_that_never_ends_is_cut_off_by_time(scene: Scene) -> None:
    """A33, A66: at the agent's timeout, however little it says."""
    run = fresh("drip")
    reply = scene.globex.chat("hi", "drip", headers=[(RUN, run)], stream=True)
    assert b'"provider_timeout"' in reply.body
    assert b"[DONE]" not in reply.body
    assert bills(scene.globex, run) == []
