"""What is typed in a chat beside what is said."""

import stat

from carnet.cli.chat.commands import COMMANDS
from carnet.cli.chat.history import YOU
from tests.cli.chat.conftest import Chatter
from tests.gateway.conversations.scene import read_until

LATER = "[l]ater? "


def test_conversations_are_listed_opened_renamed_written_and_deleted(alice: Chatter) -> None:
    for text in ("about bees", "about ants"):
        alice.say(text)
    file = alice.home.folder / f"{alice.name}.md"
    with alice.chats() as seat:
        for typed, shown in (
            ("/agents", "assistant"),
            ("/history bees", "about bees"),
            ("/open 1", "You said: about bees\n"),
            ("/rename", "Error: "),
            ("/rename Bees", "It is called: Bees"),
            (f"/export {file}", "Written to"),
            (f"/export {file}", "cannot be written"),
            ("/export", "# Bees\n"),
            ("/regenerate", "You said: about bees\n"),
            ("/stop", "No answer is being given."),
            ("/fly", "There is no such command."),
            ("//not a command", "You said: /not a command\n"),
        ):
            seat.types(typed)
            seat.shows(shown)
            seat.shows(YOU)
        for typed, shown in (("no", "Nothing was deleted."), ("yes", "Deleted.")):
            seat.types("/delete")
            seat.shows("Type yes: ")
            seat.types(typed)
            seat.shows(shown)
            seat.shows(YOU)
        seat.types("two\\\nlines")
        seat.shows("You said: two\nlines\n")
    assert "## You" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    left = [each["title"] for each in alice.get("/conversations").json["conversations"]]
    assert left == ["two", "about ants"]


def test_the_help_lists_every_command(alice: Chatter) -> None:
    with alice.chats() as seat:
        seat.types("/help")
        listed = seat.shows("Ctrl-C stops an answer.")
    assert [name for name in COMMANDS if f"\n{name}" not in listed] == []


def test_an_answer_that_is_given_anew_comes_as_it_is_given_also_after_an_approval(
    alice: Chatter,
) -> None:
    with alice.chats("careful") as seat:
        alice.opens_gate()
        seat.types("go")
        seat.shows(LATER)
        seat.types("a")
        seat.shows("first second\n")
        seat.shows(YOU)
        alice.closes_gate()
        seat.types("/regenerate")
        seat.shows(LATER)
        seat.types("a")
        seat.shows("first ")  # while the rest cannot be known yet
        alice.opens_gate()
        seat.shows("second\n")
        seat.shows(YOU)


def test_an_answer_that_is_given_elsewhere_is_read_along(alice: Chatter) -> None:
    elsewhere = alice.saying("go", agent="slow")
    read_until(elsewhere, b"half")
    (listed,) = alice.get("/conversations").json["conversations"]
    with alice.opens("--resume", listed["id"]) as seat:
        seat.shows("(An answer is being given.)\n")
        seat.shows("half ")
        alice.opens_gate()
        seat.shows("whole\n")
        seat.shows(YOU)
    elsewhere.close()


def test_an_earlier_message_is_said_anew_in_a_branch_of_its_own(alice: Chatter) -> None:
    with alice.chats("recall") as seat:
        for words in ("blue", "red"):
            seat.types(words)
            seat.shows(f"user: {words}\n")
            seat.shows(YOU)
        seat.types("/edit")
        seat.shows("  1  red\n  2  blue\n")
        seat.shows(YOU)
        seat.types("/edit 3 green")
        seat.shows("'3' is none of them.")
        seat.types("/edit 2")
        seat.shows("/edit 2 TEXT")
        seat.types("/edit 2 green")
        seat.shows("\nuser: green\n")  # and nothing before it
        seat.shows(YOU)
        seat.types("more")
        seat.shows("\nuser: green | assistant: user: green | user: more\n")
    (listed,) = alice.get("/conversations").json["conversations"]
    page = alice.get(f"/conversations/{listed['id']}").json
    first = page["messages"][-1]
    assert (first["content"], len(first["siblings"])) == ("green", 2)
