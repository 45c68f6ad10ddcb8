"""How many functions a request calls: counted exactly, and held to a bound.

Half of what a hop costs is the interpreter, and nearly all of that is calls. Their number has no
noise, so a change that adds some is seen here before a benchmark could tell. One that has to raise
a bound says by how much, and why, in its message.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Python and C calls of one request that is alone. Lower them when a change has removed some.
BOUNDS = {
    "token hop": 522,
    "budget hop": 537,
    "token echo": 462,
    "a2a echo": 545,
    "signed echo": 601,
    "signed hop": 788,
}
MOST_ROUNDS = 5  # on a machine that is busy with others, no request of a round may be undisturbed
pytestmark = pytest.mark.timeout(600)  # of all rounds


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The least that a request of each kind was ever seen to call: others only add to it."""
    folder = tmp_path_factory.mktemp("calls")
    least: dict[str, int] = {}
    for number in range(MOST_ROUNDS):
        for name, found in count_once(folder / f"{number}.json").items():
            least[name] = min(found["all"], least.get(name, found["all"]))
        if all(least[name] <= bound for name, bound in BOUNDS.items()):
            break
    return least


def count_once(out: Path) -> dict[str, dict[str, int]]:
    command = [sys.executable, "-m", "bench.calls", str(out)]
    done = subprocess.run(  # noqa: S603  our own command
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("name", BOUNDS)
def test_a_request_calls_no_more_functions_than_it_may(counted: dict[str, int], name: str) -> None:
    assert counted[name] <= BOUNDS[name], "make bench ARGS='calls --by file' shows where"
