"""What the page about conversations shows works as it stands."""

from pathlib import Path
from typing import Any

import pytest

import carnet
from tests.docs.test_quickstart import ROOT, blocks_of

PAGE = ROOT / "docs" / "conversations.md"


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "shown"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(block.text, names)  # noqa: S102  our own page
    return names


async def test_its_first_conversation_is_kept_and_can_be_read(
    shown: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = await shown["review"]("Is it so?")
    assert (result.turns, result.text) == (6, "I doubt it.")
    assert result.transcript[2].text == "I claim it, after 3 messages."
    async with carnet.Journal("sqlite:review.db") as journal:
        assert [run.run_id for run in await journal.runs()] == [result.run_id]


async def test_its_policy_its_events_its_request_and_its_panel_work(
    shown: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    people = [shown["oracle"], shown["critic"]]
    await shown["talk"](people, "Rain?")
    assert capsys.readouterr().out.splitlines()[0] == "oracle Rain? Perhaps."
    assert await shown["handle"]({"x-tangle-runid": "r1"}, "Rain?", people) == "I doubt it."
    result = await shown["publish"](shown["critic"])
    assert result.transcript[0].text.splitlines()[1] == "[critic] I doubt it."


def test_it_names_every_end_and_every_field() -> None:
    text = PAGE.read_text()
    for kind in carnet.Halt.__annotations__["kind"].__args__:
        assert f"| `{kind}` |" in text
    for field in ("auth", "policy", "on_failure", "most_cost", "token"):
        assert f"| `{field}` |" in text
    for field in carnet.CallPolicy.__struct_fields__:
        assert f"`{field}" in text
