"""Whom an orchestrator asks and who joins the answers, as carnet.toml says it."""

from pathlib import Path

import pytest

from carnet.config import load
from tests.config.dialogue.test_participants import WRITER, refusal

PANEL = '[agents.panel]\nkind = "orchestrator"\n'


def test_agents_here_and_elsewhere_are_asked_and_joined_by_one_here(tmp_path: Path) -> None:
    file = tmp_path / "carnet.toml"
    more = 'join = "writer"\nfirst = 1\nbranch_timeout = 2.5\non_failure = "fail"\n'
    file.write_text(f'{WRITER}{PANEL}agents = ["writer", "@a@b.example"]\n{more}')
    panel = load(file, {}).agents["panel"]
    assert panel.agents == ("writer", "@a@b.example")
    assert (panel.join, panel.first, panel.branch_timeout) == ("writer", 1, 2.5)
    listed = {"CARNET__AGENTS__PANEL__AGENTS": "writer, @c@b.example"}
    assert load(file, listed).agents["panel"].agents == ("writer", "@c@b.example")
    file.write_text(WRITER + PANEL)
    panel = load(file, {}).agents["panel"]
    assert (panel.agents, panel.join, panel.on_failure) == (None, "list", "collect")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("agents = []\n", "1 to 64"),
        ('agents = [" "]\n', "names of agents or addresses"),
        ('agents = ["writer", "writer"]\n', "names one of them twice"),
        ('agents = ["writer", "panel"]\n', "'panel' is no other agent here"),
        ('agents = ["wirter"]\n', "writer"),
        ('join = "nobody"\n', "'nobody' is no other agent here"),
        ('agents = ["writer"]\nfirst = 2\n', "above the number of 'agents'"),
    ],
)
def test_what_leads_nowhere_is_refused(tmp_path: Path, text: str, part: str) -> None:
    assert part in refusal(tmp_path, WRITER + PANEL + text)
