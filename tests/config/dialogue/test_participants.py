"""Who takes part in a conversation, as carnet.toml says it."""

from pathlib import Path

import pytest

from carnet.config import load
from carnet.errors import ConfigInvalid

WRITER = '[agents.writer]\ntarget = "agents:writer"\n'
PANEL = '[agents.panel]\nkind = "conversation"\n'
BOTH = 'participants = ["writer", "@critic@globex.example"]\n'


def refusal(folder: Path, text: str) -> str:
    file = folder / "carnet.toml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid) as refused:
        load(file, {})
    return str(refused.value.safe_text)


def test_names_addresses_and_tables_take_part(tmp_path: Path) -> None:
    file = tmp_path / "carnet.toml"
    more = '{ agent = "writer", name = "second", timeout = 3, retries = 1, max_cost = "0.1" }'
    text = f'participants = ["writer", {more}]\nmax_turns = 3\nmax_spend = "0.5"\n'
    file.write_text(WRITER + PANEL + text)
    panel = load(file, {}).agents["panel"]
    assert panel.participants is not None
    first, second = panel.participants
    assert (first.agent, first.name, first.on_failure) == ("writer", "", "halt")
    assert (second.name, second.timeout, second.retries, second.max_cost) == (
        "second",
        3.0,
        1,
        100_000,
    )
    assert (panel.max_turns, panel.max_spend) == (3, 500_000)
    listed = {"CARNET__AGENTS__PANEL__PARTICIPANTS": '["writer", "@x@b.example"]'}
    read = load(file, listed).agents["panel"].participants
    assert [each.agent for each in read or ()] == ["writer", "@x@b.example"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "needs 'participants' or 'target'"),
        (BOTH, "needs 'max_turns'"),
        (BOTH + 'target = "agents:x"\nmax_turns = 2\n', "not both"),
        ('participants = ["writer", "panel"]\nmax_turns = 2\n', "'panel' is no other agent here"),
        ('participants = ["writer", "writr"]\nmax_turns = 2\n', "writer"),
        ('participants = ["writer"]\nmax_turns = 2\n', "two or more"),
        ('participants = ["writer", 3]\nmax_turns = 2\n', "place 2"),
        ('participants = ["writer", { agent = "writer", retries = 99 }]\nmax_turns = 2\n', "to 10"),
        (
            'max_turns = 2\nparticipants = ["writer", { agent = "@a@b.c", on_failure = "x" }]\n',
            "'x' is no other agent here",
        ),
        (
            'max_turns = 2\nparticipants=["writer", { agent = "writer", auth = "forward-user" }]\n',
            "per-call",
        ),
        (BOTH + "max_turns = 0\n", "from 1"),
    ],
)
def test_what_cannot_take_part_is_refused_with_the_reason(
    tmp_path: Path, text: str, part: str
) -> None:
    assert part in refusal(tmp_path, WRITER + PANEL + text)
