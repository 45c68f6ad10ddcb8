"""Programs beside the tests: they do what they are for, and end with who started them."""

import os
from pathlib import Path

from carnet.testing.wait import until
from tests.rounds.neighbours import AT_ONCE, beside


def test_a_round_with_nothing_beside_it_starts_nothing() -> None:
    with beside(None) as started:
        assert started == []


def test_a_neighbour_holds_many_ports_until_the_context_ends() -> None:
    with beside("ports") as (one,):
        folder = Path(f"/proc/{one.pid}/fd")
        until(lambda: sum(_is_socket(file) for file in folder.iterdir()) > AT_ONCE // 2)
    assert one.returncode == 0


def test_neighbours_take_every_processor_until_the_context_ends() -> None:
    with beside("busy") as started:
        assert len(started) == os.cpu_count()
        until(lambda: all(_cpu_seconds(each.pid) > 0.2 for each in started))
    assert [each.returncode for each in started] == [0] * len(started)


def _is_socket(file: Path) -> bool:
    try:
        return str(file.readlink()).startswith("socket:")
    except FileNotFoundError:  # it was closed meanwhile
        return False


def _cpu_seconds(pid: int) -> float:
    """What a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
