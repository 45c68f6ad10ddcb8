"""`carnet conversation`: several agents in a file, who speak in turn from here."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

TALK = """
import os
import signal
from pathlib import Path

import carnet

HERE = Path(__file__).parent


async def a(visit):
    return f"a {len(visit.messages)}"


async def b(visit):
    if (HERE / "interrupt").exists():
        (HERE / "interrupt").unlink()
        os.kill(os.getpid(), signal.SIGINT)
        await visit.peer("https://[::1]:1/agents/nobody").ask("never")
    if (HERE / "fail").exists():
        raise ConnectionError("not today")
    return f"b {len(visit.messages)}"


panel = carnet.Conversation("panel", [a, b], max_turns=4)
"""


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    file = tmp_path / "talk.py"
    file.write_text(TALK)
    return file


def test_turns_are_printed_as_they_are_spoken(cli: Cli, talk: Path) -> None:
    ran = cli("conversation", "talk.py", "Go.")
    assert (ran.code, ran.out) == (0, "[a] a 1\n[b] b 2\n[a] a 3\n[b] b 4\n")
    assert "max_turns (4)" in ran.err
    assert (talk.parent / "talk.journal").exists()
    events = cli("conversation", "talk.py", "Go.", "--max-turns", "1", "--format", "jsonl").out
    assert [line.split('"')[3] for line in events.splitlines()] == [
        *("conversation_start", "turn_start", "turn_text", "turn_end", "conversation_end"),
    ]


def test_ctrl_c_aborts_and_says_how_to_go_on(cli: Cli, talk: Path) -> None:
    (talk.parent / "interrupt").touch()
    ran = cli("conversation", "talk.py:panel", "Go.", "--journal", "sqlite:j.db")
    assert ran.code == 130
    assert ran.out == "[a] a 1\n"
    again = ran.err[ran.err.index("conversation talk.py:panel") :].split()
    assert again[2] == "--resume"
    gone_on = cli(*again)
    assert (gone_on.code, gone_on.out) == (0, "[a] a 1\n[b] b 2\n[a] a 3\n[b] b 4\n")


def test_a_failure_is_its_exit_code_and_can_be_gone_on_with(cli: Cli, talk: Path) -> None:
    (talk.parent / "fail").touch()
    ran = cli("conversation", "talk.py", "Go.", "--format", "json")
    assert ran.code != 0
    assert ran.page["halted"]["participant"] == "b"
    (talk.parent / "fail").unlink()
    assert cli("conversation", "talk.py", "--resume", ran.page["run_id"]).code == 0


def test_a_file_of_toml_names_addresses_and_what_is_wrong_is_told(cli: Cli, talk: Path) -> None:
    file = talk.with_name("talk.toml")
    cases = {
        "max_turns = 2\n": "needs 'participants'",
        'participants = ["@a@b.example", "c"]\nmax_turns = 2\n': "'c' is no address",
        'participants = ["@a@b.example"]\nmax_turns = 2\n': "two or more agents",
        'participants = ["@a@b.example", "@c@b.example"]\nturns = 2\n': "'turns' is no key",
        'participants = ["@a@b.c", { agent = "@c@b.c", x = 1 }]\nmax_turns = 2\n': "'x'",
        'particpants = ["@a@b.c", "@c@b.c"]\nmax_turns = 2\n': "did you mean 'participants'?",
        'participants = ["@a@b.c", { agnt = "@c@b.c" }]\nmax_turns = 2\n': "mean 'agent'?",
        'participants = ["@a@b.c", { agent = "@c@b.c", auth = 1 }]\nmax_turns = 2\n': "'auth'",
        'participants = ["@a@b.c", "http://[::1/agents/c"]\nmax_turns = 2\n': "'http://[::1",
        "[agents.panel]\nmax_turns = 2\n": "carnet call",
        'participants = ["@a@b.example", { retries = 1 }]\nmax_turns = 2\n': "names no 'agent'",
        "max_turns =": "not valid TOML",
    }
    for text, part in cases.items():
        file.write_text(text)
        ran = cli("conversation", "talk.toml", "Go.")
        assert (ran.code, part in ran.err) == (2, True), ran.err
    assert cli("conversation", "nowhere.py").code == 2
    assert "holds one" in cli("conversation", "talk.toml:panel", "Go.").err
    assert "mean 'panel'?" in cli("conversation", "talk.py:pannel").err
    spend = cli("conversation", "talk.py", "Go.", "--max-spend", "much")
    assert (spend.code, "--max-spend 'much'" in spend.err) == (2, True)
    journal = cli("conversation", "talk.py", "Go.", "--journal", "postgresql://x")
    assert (journal.code, "--journal sqlite:FILE" in journal.err) == (2, True)


def test_a_run_goes_on_by_the_name_that_people_give_it(cli: Cli, talk: Path) -> None:
    unbegun = cli("conversation", "talk.py", "--resume", "last")
    assert (unbegun.code, "no journal" in unbegun.err) == (2, True)
    assert not (talk.parent / "talk.journal").exists()
    runs = [
        cli("conversation", "talk.py", text, "--max-turns", "1", "--format", "json").page["run_id"]
        for text in ("One.", "Two.")
    ]
    newest = cli("conversation", "talk.py", "--resume", "last", "--max-turns", "2")
    assert (newest.code, newest.out) == (0, "[a] a 1\n[b] b 2\n")
    assert runs[1] in newest.err
    assert cli("conversation", "talk.py", "--resume", runs[0]).code == 0
    assert runs[0] in cli("conversation", "talk.py", "--resume", runs[0][:-1]).err
    for unknown, expected in {
        "conv_nobody": runs[1],
        "conv_": "2 runs begin",
        "": "no run ''",
    }.items():
        ran = cli("conversation", "talk.py", "--resume", unknown)
        assert (ran.code, expected in ran.err) == (2, True), ran.err
    changed = cli("conversation", "talk.py", "Three.", "--resume", "last")
    assert (changed.code, "--allow-changes" in changed.err) == (1, True)
    assert cli("conversation", "talk.py", "Three.", "--resume", "last", "--allow-changes").code == 0


def test_nothing_begins_without_what_it_begins_with(cli: Cli, talk: Path) -> None:
    for words in ([], [""]):
        ran = cli("conversation", talk.name, *words)
        assert (ran.code, "begins with" in ran.err) == (2, True)
    assert not (talk.parent / "talk.journal").exists()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("order=lambda state: 7", "talk.py: ValueError: order gives"),
        ("halt_on=lambda state: {}['x']", "talk.py: KeyError: 'x' (talk.py, line"),
        ("max_spend='x'", "talk.py cannot be run"),
        ("max_turn=3", "did you mean 'max_turns'?"),
        ("policy=carnet.CallPolicy(), max_spend='1'", "b raised ConnectionError: not today"),
    ],
)
def test_what_the_file_of_a_person_does_wrong_is_told_without_a_traceback(
    cli: Cli, talk: Path, wrong: str, expected: str
) -> None:
    (talk.parent / "fail").touch()
    talk.write_text(TALK.replace("max_turns=4", f"max_turns=4, {wrong}"))
    ran = cli("conversation", "talk.py", "Go.")
    assert (ran.code != 0, expected in ran.err) == (True, True), ran.err
    assert "Traceback" not in ran.err
