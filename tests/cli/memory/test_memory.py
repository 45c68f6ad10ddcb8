"""`carnet memory` as people type it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.organisation import Organisation, shared_with_others

EDITOR = """
import sys
from pathlib import Path

file = Path(sys.argv[1])
file.write_text(file.read_text() + "edited\\n")
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with shared_with_others():
        made = Organisation(tmp_path_factory.mktemp("memory"), "acme.example")
        made.start()
        yield made
        assert made.stop() == 0


class Person:
    """Somebody with a token in a file."""

    def __init__(self, acme: Organisation, name: str) -> None:
        self.acme, self.name = acme, name
        acme.carnet("people", "add", name)
        Path(acme.folder / f"{name}.token").write_text(
            acme.new_token(f"of-{name}", "--person", name)
        )

    def types(self, *words: str, env: dict[str, str] | None = None) -> CompletedProcess[str]:
        return self.acme.try_carnet("memory", *words, "--as", f"@{self.name}.token", env=env)

    def says(self, *words: str) -> str:
        done = self.types(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_a_person_lists_shows_edits_undoes_exports_and_deletes(acme: Organisation) -> None:
    alice = Person(acme, "alice")
    assert "No agent keeps anything for you" in alice.says("list")
    assert "AGENT.md" in alice.says("list", "echo")
    assert "as it begins" in alice.says("list", "echo")
    (acme.folder / "plan.txt").write_text("one\n")
    assert alice.says("edit", "echo", "/notes/plan.md", "--file", "plan.txt") == (
        "notes/plan.md is version 1, 4 bytes.\n"
    )
    editor = acme.folder / "editor.py"
    editor.write_text(EDITOR)
    named = {"EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    done = alice.types("edit", "echo", "notes/plan.md", env=named)
    assert done.stdout == "notes/plan.md is version 2, 11 bytes.\n", done.stderr
    assert alice.says("show", "echo", "notes/plan.md") == "one\nedited\n"
    assert alice.says("show", "echo", "notes/plan.md", "--version", "1") == "one\n"
    assert alice.says("list", "echo", "--search", "EDITED") == "notes/plan.md:2: edited\n"
    assert alice.says("undo", "echo", "notes/plan.md") == "notes/plan.md is version 3, 4 bytes.\n"
    history = alice.says("history", "echo", "notes/plan.md").splitlines()
    assert [line.split()[0] for line in history[1:]] == ["3", "2", "1"]
    assert alice.says("export", "echo", "--to", "taken") == "2 files in taken.\n"
    assert (acme.folder / "taken" / "notes" / "plan.md").read_text() == "one\n"
    again = alice.types("export", "echo", "--to", "taken")
    assert again.returncode == 2
    files = json.loads(alice.says("export", "echo"))["files"]
    assert [file["path"] for file in files] == ["AGENT.md", "notes/plan.md"]
    assert alice.types("delete", "echo", "notes/plan.md").returncode == 130  # nobody said yes
    assert alice.says("delete", "echo", "notes/plan.md", "--version", "3", "--yes") == (
        "Deleted: 1 version.\n"
    )
    assert alice.says("show", "echo", "notes/plan.md") == "one\nedited\n"
    assert alice.says("delete", "echo", "--yes") == "Deleted: 3 versions.\n"
    assert alice.types("show", "echo", "notes/plan.md").returncode == 1


def test_what_is_wrong_is_said_with_what_to_do(acme: Organisation) -> None:
    bob = Person(acme, "bob")
    machine = acme.try_carnet("memory", "list", "--as", acme.new_token("robot"))
    assert machine.returncode == 1
    assert "carnet tokens create NAME --person PERSON" in machine.stderr
    for words, code in (
        (("show", "echo", "../x"), 2),
        (("show", "nobody", "AGENT.md"), 1),
        (("list", "--search", "x"), 2),
        (("delete", "echo", "--version", "1", "--yes"), 2),
        (("edit", "echo", "a.md", "--file", "missing.txt"), 2),
        (("undo", "echo", "AGENT.md"), 1),
    ):
        assert bob.types(*words).returncode == code, words
