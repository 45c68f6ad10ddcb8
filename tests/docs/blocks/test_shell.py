"""Every command of a page is typed, in the order of the page, beside a gateway that serves.

README, quickstart, "I want to ..." and the tutorials have tests of their own, which also look at
what is printed.
"""

import contextlib
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from carnet.cli.main import run
from carnet.testing.stage import Organisation
from tests.docs import curl
from tests.docs.test_quickstart import ROOT

DOCS: Final = ROOT / "docs"
BLOCK: Final = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ELSEWHERE: Final = {"quickstart.md", "i-want-to.md"}
FOLDERS: Final = {"decisions", "tutorials"}

# Lines that are not typed here, each with the reason.
NOT_TYPED: Final = {
    r"carnet (-c \S+ )?(serve|engine|demo|model local|conform)\b|&& carnet .* serve": (
        "runs until it is stopped, or for long: tests/cli, tests/engine and tests/interop run them"
    ),
    r"(sudo |docker |pipx |journalctl |createuser |createdb |make |BENCH_|python3 -m venv)": (
        "changes the machine, or takes minutes: tests/packages reads and installs what they name"
    ),
    r"\S*pip install|POSTGRES_PASSWORD|kill -HUP|python3 - <<": "the same",
    r"carnet (migrate|restore)\b": "wants that nobody serves: tests/stores and tests/cli/operate",
    r"https?://(?!127\.0\.0\.1)|@\w+@globex\.example|agent://(globex|envoy)|compare|statement": (
        "an organisation elsewhere: tests/interop calls two and more"
    ),
    r"agent://client-|--show narrower|agent://SENDER": "a key of somebody: tests/cli/trust",
    r"carnet (call .*--dialect|tokens delegate)|--swap": "the same",
    r"\b(ID|RUN|RULE|FILE|HOST|HEX)\b|msg_0197|3fa85f64|9f3c\.\.\.|conv_abc|k-3f0c": (
        "names something that a reader has: the tests of that command make it"
    ),
    r"carnet conversation |carnet sessions end 7|carnet ledger settle|--with\b|--token phone": (
        "the same"
    ),
    r"voucher\.txt|acme\.example --url http://127\.0\.0\.1": (
        "another organisation, or its voucher: tests/interop/payers has both"
    ),
    r"-c examples/offline": "wants a model: tests/engine/schema/test_tools_offline.py",
    r"127\.0\.0\.1:9000": "wants a receiver: tests/runtime/webhooks delivers to one",
    r"rotate --(overlap|lead)": "another form of the line above it, which has made the next key",
    r"memory (show|history|undo|edit|export|delete)|inbox allow": "the same",
    r"carnet chat( *#| --continue *#| --url)": "talks to a person at a terminal: tests/cli/chat",
}

AGENTS: Final = """
clerk = carnet.agent("clerk")


@clerk.skill("book")
async def book(day: str, seats: int = 1) -> dict[str, str]:
    return {"day": day}


@clerk.skill("report", modes=["sync", "async"])
async def report(month: int) -> dict[str, int]:
    return {"month": month}
"""
CONFIG: Final = """
[agents.assistant]
kind = "python"
target = "agents:echo"

[agents.researcher]
kind = "python"
target = "agents:echo"

[agents.clerk]
kind = "python"
target = "agents:clerk"
"""


def lines_of(page: Path) -> list[str]:
    """What a page tells to type, a line each."""
    blocks = [textwrap.dedent(text) for _, text in BLOCK.findall(page.read_text())]
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def why_not(line: str) -> str | None:
    return next((why for pattern, why in NOT_TYPED.items() if re.search(pattern, line)), None)


def typed_lines(page: Path) -> list[str]:
    inside = re.compile(r"python3 - <<'END'.*?^END$", re.MULTILINE | re.DOTALL)
    text = inside.sub("", "\n".join(lines_of(page)))
    return [line for line in text.splitlines() if line.strip() and why_not(line) is None]


PAGES: Final = sorted(
    page
    for page in DOCS.rglob("*.md")
    if page.name not in ELSEWHERE and page.parent.name not in FOLDERS and typed_lines(page)
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Organisation]:
    """A gateway that serves, and a terminal in its folder."""
    made = Organisation(tmp_path, "carnet.localhost")
    agents = (tmp_path / "agents.py").read_text() + AGENTS
    made.configure(CONFIG, agents=agents)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["carnet"])
    monkeypatch.setenv("TOKEN", made.token)
    made.start()
    yield made
    made.close()


def prepare(home: Organisation, lines: list[str]) -> None:
    """What a reader of the page has already: somebody called, and Alice is known."""
    assert home.ask("echo", "hello") == "hello"
    home.new_token("ci")
    peer = ("peers", "add", "globex.example", "--url", "https://gw.globex.example")
    assert run(peer) == 0
    if any("people add alice" in line for line in lines):
        return
    assert run(["people", "add", "alice", "--role", "operator"]) == 0
    if any("@alice.token" in line for line in lines):
        token = home.new_token("hers", "--person", "alice", "--scope", "memory:read")
        (home.folder / "alice.token").write_text(token)
    elif any("sign-in alice" in line for line in lines):
        home.new_token("hers", "--person", "alice")


def do(line: str, home: Organisation) -> int:
    """Type one line: a command of ours, or curl, perhaps with an input and an output."""
    text = line.replace("8700", str(home.port)).replace("/backups/", f"{home.folder}/")
    text = re.sub(r"\$\(cat ([\w./]+)\)", lambda found: Path(found[1]).read_text().strip(), text)
    text = text.replace("$TOKEN", home.token)
    given, piped, text = text.rpartition(" | ") if text.startswith("echo ") else ("", "", text)
    text = text.split(" > ", maxsplit=1)[0]
    words = shlex.split(text, comments=True)
    if words[0] == "curl":
        curl.main(words[1:])
        return 0
    assert words[0] == "carnet", line
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        if piped:
            patch.setattr(sys, "stdin", io.StringIO(shlex.split(given)[1]))
        return run(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_does_what_it_is_there_for(page: Path, home: Organisation) -> None:
    lines = typed_lines(page)
    prepare(home, lines)
    codes = {line: do(line, home) for line in lines}
    assert {line: code for line, code in codes.items() if code != 0} == {}


def test_each_reason_not_to_type_a_line_is_needed() -> None:
    every = [line for page in DOCS.rglob("*.md") for line in lines_of(page)]
    for pattern in NOT_TYPED:
        assert any(re.search(pattern, line) for line in every), pattern
    assert sum(len(typed_lines(page)) for page in PAGES) >= 60
