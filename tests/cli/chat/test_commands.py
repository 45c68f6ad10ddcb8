"""What is typed in a chat beside what is said."""

import stat

from carnet.cli.chat.commands import COMMANDS
from carnet.cli.chat.history import YOU
from tests.cli.chat.conftest import Chatter


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
