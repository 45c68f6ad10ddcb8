"""One message through a pipe: the answer alone, and whether there was one."""

import json

from tests.cli.chat.conftest import Chatter
from tests.engine.process import tool_call, with_usage


def test_the_answer_alone_is_printed_and_gone_on_with(alice: Chatter) -> None:
    alice.replies(tool_call("look_up", '{"name":"Bob"}'), with_usage("I know him."))
    first = alice.pipes("Who is Bob?\n", "assistant", "--once")
    assert (first.returncode, first.stdout, first.stderr) == (0, "I know him.\n", "")
    again = alice.pipes("And now?", "recall", "--continue")
    assert again.stdout.count("|") == 2  # it was asked with what was said before


def test_what_others_have_said_who_were_mentioned_is_attributed(alice: Chatter) -> None:
    chaired = alice.pipes("plans", "chair")
    assert (
        chaired.stdout == "Let us hear @critic about plans.\n\n@critic: "
        "weak: " + (chaired.stdout.partition("weak: ")[2])
    )


def test_json_is_one_value_and_lines_are_one_a_piece(alice: Chatter) -> None:
    alice.replies(tool_call("look_up", '{"name":"Bob"}'), with_usage("I know him."))
    page = json.loads(alice.pipes("Who?", "assistant", "--format", "json").stdout)
    assert (page["content"], page["finish_reason"], page["error"]) == ("I know him.", "stop", None)
    (tool,) = page["tools"]
    assert (tool["name"], tool["status"]) == ("look_up", "ok")
    lines = [json.loads(line) for line in alice.pipes("x", "--format", "jsonl").stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["text", "text", "end"]
    assert lines[-1]["conversation_id"].startswith("cnv_")


def test_an_answer_that_fails_or_waits_is_no_success(alice: Chatter) -> None:
    failed = alice.pipes("x", "broken")
    assert (failed.returncode != 0, failed.stdout) == (True, "so far \n")
    assert failed.stderr.startswith("Error: ")
    waits = alice.pipes("dance", "asks")
    assert (waits.returncode, waits.stdout) == (1, "")
    assert "May I dance?" in waits.stderr
    assert "carnet inbox approve int_" in waits.stderr
    assert "carnet chat --resume cnv_" in waits.stderr
    page = json.loads(alice.pipes("dance", "asks", "--format", "json").stderr)
    assert (page["code"], page["conversation_id"][:4]) == ("approval_required", "cnv_")


def test_who_has_the_configuration_talks_as_its_owner(alice: Chatter) -> None:
    first = alice.pipes("I run this", CARNET_TOKEN="", CARNET_URL="", at=alice.home.folder)
    assert (first.returncode, first.stdout) == (0, "You said: I run this\n")
    listed = alice.home.carnet("chat", "--history").stdout
    assert listed.count("I run this") == 1
    starter = (alice.home.folder / "var" / "starter.token").read_text().strip()
    assert "I run this" in alice.pipes("", "--history", CARNET_TOKEN=starter).stdout
    assert "I run this" not in alice.pipes("", "--history").stdout
