"""What outlives a driver: journals, and runs that go on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import carnet
from carnet.errors import ConfigInvalid, DefinitionChanged, InProgress, UsageInvalid
from carnet.testing.wait import until_so
from tests.assembly.dialogue.speakers import Speaker, speakers, texts

BEARER = "Bearer sk-tan-user-123"
FORWARDED = {"X-Tangle-Forwarded-Authorization": BEARER}


@pytest.fixture
def journal(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'j.db'}"


async def events_of(people: Any, **options: Any) -> list[Any]:
    return [event async for event in carnet.stream_conversation(people, **options)]


def written(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


def pair(**lines: Any) -> list[Any]:
    return [Speaker("a", *lines.get("a", ()), cost=2), Speaker("b", *lines.get("b", ()), cost=3)]


async def test_a_run_that_failed_goes_on_where_it_was_left(journal: str) -> None:
    first = pair(b=[ValueError("no")])
    options: dict[str, Any] = {"seed": "Go.", "max_turns": 4, "journal": journal, "run_id": "r1"}
    failed = await carnet.run_conversation(first, **options)
    assert (failed.halted.kind, failed.turns, failed.spent) == ("participant_error", 1, 5)
    second = pair()
    events = await events_of(second, **options)
    assert type(events[0]) is carnet.ConversationResumed
    assert [turn.text for turn in events[0].transcript] == ["a-1"]
    result = events[-1].result
    assert texts(result) == ["a-1", "b-1", "a-1", "b-2"]  # each of the second ones counts anew
    assert (result.spent, result.started) == (3 + 2 + 3 + 2 + 3, failed.started)
    assert [turn.turn_id for turn in result.transcript] == [
        *("r1.t0.a", "r1.t1.b", "r1.t2.a", "r1.t3.b")
    ]
    assert result.transcript[1].attempts == 2
    assert second[0].visits[0].messages[0].text == "Go."


async def test_a_run_that_is_complete_is_told_again_and_nobody_is_called(journal: str) -> None:
    options: dict[str, Any] = {"max_turns": 2, "journal": journal, "run_id": "r1"}
    first = await carnet.run_conversation(pair(), **options)
    people = pair()
    events = await events_of(people, **options)
    assert [type(event) for event in events] == [
        carnet.ConversationResumed,
        carnet.ConversationEnded,
    ]
    assert events[-1].result == first
    assert [each.calls for each in people] == [0, 0]


async def test_limits_that_were_raised_are_gone_beyond(journal: str) -> None:
    options: dict[str, Any] = {"journal": journal, "run_id": "r1"}
    capped = await carnet.run_conversation(pair(), max_turns=3, max_spend=4, **options)
    assert (capped.halted.kind, capped.turns) == ("max_spend", 2)
    capped = await carnet.run_conversation(pair(), max_turns=3, max_spend=4, **options)
    assert capped.turns == 2
    longer = await carnet.run_conversation(pair(), max_turns=3, max_spend=40, **options)
    assert (longer.halted.kind, longer.turns) == ("max_turns", 3)
    longest = await carnet.run_conversation(pair(), max_turns=5, max_spend=40, **options)
    assert (longest.halted.turns, speakers(longest)) == (5, ["a", "b", "a", "b", "a"])


async def test_the_predicate_is_asked_before_anybody_speaks_on(journal: str) -> None:
    """Its driver died between the turn and the predicate."""
    enough: list[int] = []

    def halt_on(state: carnet.DialogueState) -> str:
        enough.append(state.turn_index)
        if len(enough) == 1:
            raise KeyboardInterrupt
        return "enough"

    options: dict[str, Any] = {"max_turns": 4, "journal": journal, "run_id": "r1"}
    with pytest.raises(KeyboardInterrupt):
        await carnet.run_conversation(pair(), halt_on=halt_on, **options)
    people = pair()
    result = await carnet.run_conversation(people, halt_on=halt_on, **options)
    assert (result.halted.kind, result.turns, enough) == ("predicate", 1, [1, 1])
    assert [each.calls for each in people] == [0, 0]
    again = await carnet.run_conversation(pair(), halt_on=halt_on, **{**options, "max_turns": 9})
    assert again == result  # a predicate has the last word


async def test_an_abort_and_a_cancellation_are_recorded_and_the_run_goes_on(journal: str) -> None:
    begun = asyncio.Event()

    async def waits(_: carnet.Visit) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    options: dict[str, Any] = {"max_turns": 2, "journal": journal, "run_id": "r1"}
    run = asyncio.ensure_future(carnet.run_conversation(pair(b=[waits]), **options))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    async with carnet.Journal(journal) as opened:
        events: list[Any] = await opened.events("r1")
        assert (events[-2].code, events[-1].result.halted.kind) == ("cancelled", "abort")
        (summary,) = await opened.runs()
        assert (summary.run_id, summary.turns, summary.halted) == ("r1", 1, "abort")
        assert await opened.events("unknown") == []
    result = await carnet.run_conversation(pair(), **options)
    assert (texts(result), result.halted.kind) == (["a-1", "b-1"], "max_turns")


async def test_who_stops_reading_aborts_the_run(journal: str) -> None:
    stream = carnet.stream_conversation(pair(), max_turns=4, journal=journal, run_id="r1")
    async for event in stream:
        if isinstance(event, carnet.TurnEnded):
            break
    await stream.aclose()
    async with carnet.Journal(journal) as opened:
        assert [each.halted for each in await opened.runs()] == ["abort"]


async def test_another_definition_or_seed_is_refused_unless_it_is_allowed(journal: str) -> None:
    options: dict[str, Any] = {"seed": "Go.", "journal": journal, "run_id": "r1"}
    await carnet.run_conversation(pair(), max_turns=2, **options)
    options["max_turns"] = 4
    others = [Speaker("a"), Speaker("c")]
    with pytest.raises(DefinitionChanged) as refused:
        await carnet.run_conversation(others, **options)
    assert refused.value.safe_text.startswith("The definition of the conversation")
    with pytest.raises(DefinitionChanged):
        await carnet.run_conversation(pair(), policy=carnet.CallPolicy(retries=1), **options)
    with pytest.raises(DefinitionChanged):
        await carnet.run_conversation(pair(), **{**options, "seed": "Stop."})
    assert [each.calls for each in others] == [0, 0]
    result = await carnet.run_conversation(others, allow_changes=True, **options)
    assert speakers(result) == ["a", "b", "a", "c"]


async def test_a_run_has_one_writer_at_a_time_and_others_run_beside_it(journal: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def waits(_: carnet.Visit) -> str:
        begun.set()
        await go_on.wait()
        return "a-1"

    options: dict[str, Any] = {"max_turns": 1, "journal": journal}
    first = asyncio.ensure_future(carnet.run_conversation(pair(a=[waits]), run_id="r1", **options))
    await begun.wait()
    with pytest.raises(InProgress):
        await carnet.run_conversation(pair(), run_id="r1", **options)
    other = await carnet.run_conversation(pair(), run_id="r2", **options)
    assert other.turns == 1
    go_on.set()
    assert (await first).turns == 1
    assert (await carnet.run_conversation(pair(), run_id="r1", **options)).turns == 1


async def test_every_event_is_durable_before_it_is_shown(journal: str) -> None:
    async with carnet.Journal(journal) as beside:
        stream = carnet.stream_conversation(pair(), max_turns=2, journal=journal, run_id="r1")
        async for event in stream:
            kept = await beside.events("r1")
            assert kept[-1] == event


async def test_a_run_that_was_paid_by_somebody_is_not_gone_on_with_without_him(
    journal: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"journal": journal, "run_id": "r1"}
    await carnet.run_conversation(pair(), max_turns=1, propagated_headers=FORWARDED, **options)
    with pytest.raises(UsageInvalid, match="credential"):
        await carnet.run_conversation(pair(), max_turns=2, **options)
    with pytest.raises(UsageInvalid, match="credential"):  # nor is he told what was spoken
        await carnet.run_conversation(pair(), max_turns=1, **options)
    people = pair()
    await carnet.run_conversation(people, max_turns=2, propagated_headers=FORWARDED, **options)
    assert people[1].visits[0].headers["x-tangle-forwarded-authorization"] == BEARER
    assert b"sk-tan-user-123" not in written(tmp_path)


async def test_a_run_is_that_of_its_caller_whoever_else_names_it(journal: str) -> None:
    options: dict[str, Any] = {"seed": "Go.", "max_turns": 2, "journal": journal}
    request = {"x-tangle-runid": "r1", "x-tangle-turnid": "r1.t0.panel"}
    callers: list[dict[str, Any]] = [
        dict(carnet.inbound({**request, "Authorization": "Bearer service"})),
        dict(carnet.inbound({**request, "Authorization": "Bearer service", **FORWARDED})),
        dict(carnet.inbound({**request, **FORWARDED})),
        {**carnet.inbound(request), "caller": "alice"},
        {**carnet.inbound(request), "caller": "bob"},
    ]
    results = []
    for caller in callers:
        people = pair()
        results.append(await carnet.run_conversation(people, **options, **caller))
        assert [each.calls for each in people] == [1, 1], "it was given what another one was"
    for caller, result in zip(callers, results, strict=True):
        people = pair()
        assert await carnet.run_conversation(people, **options, **caller) == result
        assert [each.calls for each in people] == [0, 0]
    with pytest.raises(UsageInvalid):
        await carnet.run_conversation(pair(), **options, **carnet.inbound(request))


async def test_who_has_the_file_is_told_whose_runs_are_in_it(journal: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_turns": 1, "journal": journal, "run_id": "r1"}
    for caller in ("alice", "bob"):
        await carnet.run_conversation(pair(), caller=caller, **options)
    async with carnet.Journal(journal) as opened:
        first, second = await opened.runs()
        assert first.owner != second.owner
        with pytest.raises(UsageInvalid, match="2 callers"):
            await opened.events("r1")
        assert len(await opened.events("r1", owner=first.owner)) > 0
        await opened.forget("r1", owner=first.owner)
        assert [each.owner for each in await opened.runs()] == [second.owner]
        assert len(await opened.events("r1")) > 0
    assert b"alice" not in written(tmp_path)


async def test_what_is_no_journal_is_told_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("something else " * 100)
    for url in (
        f"sqlite:{tmp_path}/none/j.db",
        f"sqlite:{tmp_path}/notes.txt",
        "postgresql://elsewhere",
        "sqlite:",
    ):
        with pytest.raises(ConfigInvalid) as wrong:
            await carnet.run_conversation(pair(), max_turns=1, journal=url)
        assert wrong.value.facts["key"] == "journal"


async def test_a_journal_is_used_while_it_is_open(journal: str) -> None:
    opened = carnet.Journal(journal)
    with pytest.raises(RuntimeError, match="open it first"):
        await opened.runs()
    async with opened:
        await carnet.run_conversation(pair(), max_turns=1, journal=opened, run_id="r1")
        await carnet.run_conversation(pair(), max_turns=1, journal=opened, run_id="r2")
        assert [each.run_id for each in await opened.runs()] == ["r1", "r2"]
        await opened.forget("r1")
        assert (await opened.events("r1"), len(await opened.events("r2")) > 0) == ([], True)


async def test_the_lock_of_a_run_leaves_no_file_behind(journal: str, tmp_path: Path) -> None:
    await carnet.run_conversation(pair(), max_turns=1, journal=journal)
    await until_so(lambda: not (tmp_path / "j.db.locks").exists())
