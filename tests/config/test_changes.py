"""What a running gateway takes over of a configuration, and what it cannot."""

from pathlib import Path

import pytest

from carnet.config import Settings, load
from carnet.config.changes import ALL, NEEDS_RESTART, RELOADABLE, changed, merged, pending
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.config.sources import readers_of


def settings(folder: Path, text: str) -> Settings:
    path = folder / "carnet.toml"
    path.write_text(text)
    return load(path, {})


@pytest.mark.parametrize("section", [*SECTIONS, *FAMILIES])
def test_every_key_is_in_exactly_one_of_the_two_tables(section: str) -> None:
    keys = set(readers_of((SECTIONS | FAMILIES)[section]))
    taken = RELOADABLE.get(section, frozenset())
    taken = frozenset(keys) if ALL in taken else taken
    needs = NEEDS_RESTART.get(section, frozenset())
    assert taken | needs == keys
    assert not taken & needs


def test_what_is_bound_to_the_process_stays_and_the_rest_is_taken_over(tmp_path: Path) -> None:
    before = settings(tmp_path, "[gateway]\nport = 8701\n[limits]\ncalls = 7\n")
    after = settings(
        tmp_path,
        '[gateway]\nport = 8702\ndomain = "b.example"\n[limits]\ncalls = 8\nstore_queue = 9\n',
    )
    taken = merged(before.listening_at(None, 9999), after)
    assert (taken.gateway.port, taken.gateway.domain) == (9999, "carnet.localhost")
    assert taken.gateway.public_url == "http://127.0.0.1:9999"
    assert (taken.limits.calls, taken.limits.store_queue) == (8, 20_000)
    assert changed(before, after) == ["limits.calls"]
    assert pending(before, after) == ["gateway.port", "gateway.domain", "limits.store_queue"]


def test_agents_and_peers_that_come_and_go_are_told_by_their_names(tmp_path: Path) -> None:
    one = '[agents.a]\ntarget = "agents:a"\n[agents.b]\ntarget = "agents:b"\n'
    other = '[agents.a]\ntarget = "agents:a"\nprice = "1"\n[peers."b.example"]\nurl = "https://b"\n'
    before, after = settings(tmp_path, one), settings(tmp_path, other)
    assert changed(before, after) == [
        "agents.b (removed)",
        "agents.a.price",
        'peers."b.example" (new)',
    ]
    assert changed(after, after) == pending(before, after) == []
