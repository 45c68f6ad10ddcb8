"""The journal of a driver, as a file."""

import asyncio
from pathlib import Path

import pytest

from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationResult,
    DialogueEvent,
    TurnEnded,
    TurnText,
)
from carnet.core.dialogue.halt import Halt
from carnet.core.dialogue.transcript import SpokenTurn
from carnet.errors import ConfigInvalid, InProgress, StorageUnavailable
from carnet.stores.dialogues.journal import JournalPages
from carnet.stores.open import open_journal
from tests.support.commands import speaking


def turn(index: int) -> TurnEnded:
    spoken = SpokenTurn(index=index, speaker="a", turn_id=f"r.t{index}.a", text="x", cost=1)
    return TurnEnded(run_id="r", turn=spoken, at=index)


def end() -> ConversationEnded:
    result = ConversationResult(
        run_id="r",
        transcript=(),
        halted=Halt(kind="max_spend", spent=250, cap=200),
        spent=250,
        unknown_costs=0,
        started=1,
        ended=2,
    )
    return ConversationEnded(run_id="r", result=result, at=2)


async def test_events_are_read_in_the_order_they_were_written(tmp_path: Path) -> None:
    journal = await open_journal("sqlite:j.db", base=tmp_path)
    text = TurnText(run_id="r", index=0, speaker="a", turn_id="r.t0.a", attempt=1, text="x")
    written: list[DialogueEvent] = [text, *[turn(index) for index in range(12)], end()]
    async with journal.hold("r", "", "") as pages:
        await pages.append(written[:3])
        for event in written[3:]:
            await pages.append([event])
        assert await pages.read() == written[1:]  # text is that of a turn, once it has ended
    async with journal.hold("r", "", "r.t0.a") as pages:
        assert await pages.read() == []
        await pages.append([turn(0)])
    await journal.aclose()
    journal = await open_journal("sqlite:j.db", base=tmp_path)
    assert await journal.events("r") == written
    assert await journal.events("r", "r.t0.a") == [turn(0)]
    assert await journal.events("other") == []
    assert await journal.nested("r") == ["r.t0.a"]
    (summary,) = await journal.runs()
    assert (summary.turns, summary.spent, summary.halted) == (
        12,
        12,
        "max_spend (0.00025 of 0.0002)",
    )
    await journal.aclose()
    assert (tmp_path / "j.db").stat().st_mode & 0o077 == 0


async def test_a_writer_that_was_overtaken_cannot_write(tmp_path: Path) -> None:
    journal = await open_journal("sqlite:j.db", base=tmp_path)
    late = JournalPages(journal, ("r", "", ""), 0)
    async with journal.hold("r", "", "") as pages:
        with pytest.raises(InProgress):
            async with journal.hold("r", "", ""):
                raise AssertionError
        await pages.append([turn(0)])
    with pytest.raises(StorageUnavailable, match="UNIQUE"):
        await late.append([turn(0)])
    await journal.aclose()


async def test_many_write_at_once_and_who_was_overtaken_fails_alone(tmp_path: Path) -> None:
    journal = await open_journal("sqlite:j.db", base=tmp_path)
    runs = [f"r{number}" for number in range(600)]
    pages = [JournalPages(journal, (run, "", ""), 0) for run in runs]
    late = JournalPages(journal, (runs[0], "", ""), 0)
    outcomes = await asyncio.gather(
        *(each.append([turn(0), turn(1)]) for each in (*pages, late)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [StorageUnavailable]
    assert isinstance(outcomes[-1], StorageUnavailable)
    for run in runs[:3]:
        assert await journal.events(run) == [turn(0), turn(1)]
    assert len(await journal.runs()) == len(runs)
    await journal.aclose()


async def test_a_writer_in_another_process_holds_it_until_it_dies(tmp_path: Path) -> None:
    journal = await open_journal("sqlite:j.db", base=tmp_path)
    module = "tests.stores.dialogues.holder"
    with speaking(module, str(tmp_path), env={}) as (process, output):
        assert output.readline() == "held\n"
        with pytest.raises(InProgress):
            async with journal.hold("r", "", ""):
                raise AssertionError
        process.kill()
        process.wait(60)
    async with journal.hold("r", "", "") as pages:
        assert await pages.read() == []
    await journal.aclose()


async def test_a_store_of_a_gateway_and_a_later_layout_are_no_journals(tmp_path: Path) -> None:
    journal = await open_journal("sqlite:later.db", base=tmp_path)
    await journal.fetch("PRAGMA user_version = 9", ())
    await journal.aclose()
    journal = await open_journal("sqlite:half.db", base=tmp_path)
    await journal.fetch("PRAGMA user_version = 0", ())  # its driver died while it was made
    await journal.aclose()
    await (await open_journal("sqlite:half.db", base=tmp_path)).aclose()
    journal = await open_journal("sqlite:store.db", base=tmp_path)
    await journal.fetch("CREATE TABLE migration (n INTEGER)", ())
    await journal.aclose()
    for name in ("later.db", "store.db"):
        with pytest.raises(ConfigInvalid, match="name a file of its own"):
            await open_journal(f"sqlite:{name}", base=tmp_path)
