"""A newcomer's first minutes: a clone, and the blocks of the README typed into a terminal.

Each printed output is compared with the page. What may differ is named: ids, times, the port and
the folder. Two names of the page stand for what a reader has: her database, and a partner, whose
place here is taken by a port where nobody listens, since a test calls nobody outside.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from carnet.testing.address import Address
from tests.docs.first.clone import clone_into, environment_of, share_packages
from tests.docs.first.masks import masked
from tests.docs.first.terminal import Terminal
from tests.docs.test_quickstart import ROOT, Block, blocks_of
from tests.stores.support import servers

pytestmark = pytest.mark.timeout(600)  # it installs, and has a model compute

README: Final = ROOT / "README.md"
DATABASE: Final = "postgresql://carnet@db.example/carnet"
NOBODY: Final = "https://gw.globex.example"
FOLDER: Final = "/path/to/carnet"
PORT: Final = "8700"
SERVE, TEST = "make serve", "make test"
FILES: Final = {"python": "agents.py", "toml": "carnet.toml"}  # where the page says to put a block
UP: Final = re.compile(r"\"hello\"}]}'\n")
LINK: Final = re.compile(r"(code=cc_)\S+")
LOG: Final = re.compile(r"^\d\d:\d\d:\d\d\.\d{3}  ", re.MULTILINE)
ESCAPES: Final = re.compile(r"[^\n]*\r\x1b\[K|\x1b\[\d*m")  # lines written over, and bold


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with an environment that `make` has made, and in which nothing is installed yet."""
    tree = clone_into(tmp_path_factory.mktemp("first"))
    with Terminal(tree, environment_of(tree)) as terminal:
        assert terminal.type("make .venv/.made") == ""
    share_packages(tree / ".venv")
    return tree


class Typed(NamedTuple):
    """A block that is typed, and what the page says it prints."""

    commands: list[str]
    printed: str


def commands_of(block: Block) -> list[str]:
    """A line each; one that goes on is one."""
    found = re.findall(r"(?:.*\\\n)*.+\n", block.text)
    return [line.rstrip() for line in found]


class Newcomer:
    """Two terminals in a clone: one in which it is served, and one to type the rest into."""

    def __init__(self, tree: Path, address: Address, names: dict[str, str]) -> None:
        env = environment_of(tree)
        # As `make serve ARGS="--port 8800"` of the page: the port of the page may be taken here.
        serving = {**env, "ARGS": f"--fd {address.fd}"}
        self.serving = Terminal(tree, serving, [address.fd])
        self.other = Terminal(tree, env)
        self._tree = tree
        self._port = str(address.port)
        self._names = {FOLDER: str(tree), **names}  # of the page, and what they are here

    def serve(self) -> str:
        """Type `make serve`, and wait for the last line of what it says."""
        self.serving.begin(SERVE)
        return self.shown(self.serving.until(UP))

    def stop(self) -> str:
        """Press Ctrl-C."""
        return self.shown(self.serving.interrupt())

    def type(self, commands: list[str]) -> str:
        """Type a block of the page; what it printed, with the names of the page."""
        return self.shown("".join(self.other.type(self.here(line)) for line in commands))

    def here(self, text: str) -> str:
        for written, real in self._names.items():
            text = text.replace(written, real)
        return re.sub(rf"\b{PORT}\b", self._port, text)

    def shown(self, text: str) -> str:
        """What a person sees, with the port, the folder and the names of the page."""
        text = re.sub(rf"\b{self._port}\b", PORT, ESCAPES.sub("", text))
        for written, real in self._names.items():
            text = text.replace(real, written)
        return LINK.sub(r"\1eDDv...", text)

    def put(self, block: Block) -> None:
        """Put a block at the end of the file that it is for."""
        with (self._tree / FILES[block.language]).open("a") as file:
            file.write(f"\n\n{block.text}")

    def close(self) -> None:
        self.serving.__exit__()
        self.other.__exit__()


@pytest.fixture
def newcomer(tree: Path, server: servers.Server) -> Iterator[Newcomer]:
    nobody, address = Address(), Address()
    made = Newcomer(tree, address, {NOBODY: nobody.url, DATABASE: server.empty()})
    yield made
    made.close()


def without_log(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not LOG.match(line))


def test_every_block_of_the_readme_prints_what_it_says(newcomer: Newcomer) -> None:
    first, *others = [*blocks_of(README), Block("", "")]
    assert [line.split(" #")[0].strip() for line in first.text.splitlines()] == [SERVE, TEST]
    banner, answer = others[:2]
    shown = newcomer.serve()
    assert masked(shown) == masked(banner.text)
    pasted = shown.partition("Try it:\n")[2]
    assert masked(newcomer.type([pasted])) == masked(answer.text)
    compared = 0
    for block, after in pairwise(others[2:]):
        if block.language in FILES:
            newcomer.put(block)
        elif block.language == "sh":
            if any(line.startswith("carnet migrate") for line in commands_of(block)):
                stopped = newcomer.stop()
                assert "Stopping." in without_log(stopped)
            printed = newcomer.type(commands_of(block))
            expected = after.text if after.language == "text" else ""
            assert masked(printed) == masked(expected), block.text
            compared += 1
    assert compared == len([block for block in others if block.language == "sh"]) == 8
    assert_it_serves_from_the_database(newcomer)


def assert_it_serves_from_the_database(newcomer: Newcomer) -> None:
    """The last sentence: the line is changed, and it is served from there, with what was."""
    page = README.read_text().partition("## Move to PostgreSQL")[2]
    (line,) = re.findall(r'^ *(url = "postgresql:.*")$', page, re.MULTILINE)
    config = newcomer._tree / "carnet.toml"  # noqa: SLF001  its own
    text = config.read_text()
    assert text.count('url = "sqlite:var/carnet.db"') == 1
    config.write_text(text.replace('url = "sqlite:var/carnet.db"', newcomer.here(line)))
    newcomer.serve()
    runs = newcomer.type(["carnet runs"])
    assert "researcher" in runs
    newcomer.stop()


def test_the_checks_that_the_page_names_are_those_of_make(tree: Path) -> None:
    """They are not run here: this is one of them."""
    with Terminal(tree, environment_of(tree)) as terminal:
        printed = terminal.type(f"{TEST} --dry-run")
    assert "ruff check" in printed
    assert "python -m pytest" in printed


def test_the_demo_comes_to_its_end_in_a_clone(tree: Path) -> None:
    with Terminal(tree, {**environment_of(tree), "ARGS": "--once"}) as terminal:
        printed = terminal.type("make demo")
    assert "There is no model here" not in printed
    assert re.search(r"\nThe first run is live, \d+\.\d s after the start: http://\S+\n", printed)
    assert re.search(r"\nrun conv_\S+  done  payer starter@acme\.example  cost 0\.025", printed)
