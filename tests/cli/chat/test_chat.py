"""`carnet chat` in a real pseudo-terminal, against a real gateway."""

from carnet.cli.chat.history import YOU
from tests.cli.chat.conftest import Chatter
from tests.cli.chat.terminal import END, INTERRUPT, Terminal
from tests.docs.first.masks import masked
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.engine.process import tool_call, with_usage

PAGE = ROOT / "docs" / "chat.md"
LATER = "[l]ater? "
SCRIPT = {
    "Who is Bob?": (tool_call("look_up", '{"name":"Bob"}'), with_usage("I know him.")),
    "Mail him": (tool_call("send_mail", '{"to":"bob"}'), with_usage("It is sent.")),
}


def is_answered(alice: Chatter, seat: Terminal) -> None:
    alice.replies(with_usage("Good day."))
    seat.types("hello")
    seat.shows("Good day.\n")
    seat.shows(YOU)


def sees_a_tool(alice: Chatter, seat: Terminal) -> None:
    alice.replies(tool_call("look_up", '{"name":"Bob"}'), with_usage("I know him."))
    seat.types("Who is Bob?")
    seat.shows("  · Looking up Bob\n  ✓ look_up: Bob is known\nI know him.\n")
    seat.shows(YOU)


def approves(alice: Chatter, seat: Terminal) -> None:
    alice.replies(tool_call("send_mail", '{"to":"bob"}'), with_usage("It is sent."))
    seat.types("Mail him")
    seat.shows("  to: bob\n")
    seat.shows("[a]pprove, [d]eny, [e]dit, [r]emember, [l]ater? ")
    seat.types("a")
    seat.shows("  Approved.\n  ✓ send_mail: sent\nIt is sent.\n")
    seat.shows(YOU)


def stops(seat: Terminal) -> None:
    seat.types("/new slow")
    seat.shows(YOU)
    seat.types("take your time")
    seat.shows("half ")
    seat.presses(INTERRUPT)
    seat.shows("(stopped)\n")
    seat.shows(YOU)


def test_a_chat_goes_through_text_tool_approval_stop_and_resume(alice: Chatter) -> None:
    with alice.chats("assistant") as seat:
        is_answered(alice, seat)
        sees_a_tool(alice, seat)
        approves(alice, seat)
        stops(seat)
        seat.presses(END)
        seat.shows("carnet chat --resume ")
        resumed = seat.shows("\n").strip()
        assert seat.leaves() == 0
    alice.opens_gate()
    with alice.opens("--resume", resumed[:-2]) as seat:
        seat.shows("you> take your time\nhalf \n")
        seat.shows(YOU)
        seat.types("/retry")
        seat.shows("whole")
        seat.shows(YOU)
        seat.presses(END)
        assert seat.leaves() == 0
    newest = alice.get("/conversations").json["conversations"]
    assert [each["title"] for each in newest] == ["take your time", "hello"]
    assert newest[0]["size"] == 2


def test_a_second_interrupt_leaves_the_answer_and_the_chat(alice: Chatter) -> None:
    with alice.chats("stubborn") as seat:
        seat.types("go on")
        seat.shows("holding")
        seat.presses(INTERRUPT)
        seat.shows("(Ctrl-C again leaves.)")
        seat.presses(INTERRUPT)
        assert seat.leaves() == 130


def test_any_gateway_is_reached_by_its_address_and_a_token(alice: Chatter) -> None:
    token = alice.home.folder / "alice.token"
    token.write_text(alice.token)
    words = ("--url", alice.home.url, "--token", f"@{token}")
    ran = alice.pipes("hello\n", *words, CARNET_URL="http://127.0.0.1:9", CARNET_TOKEN="x")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "You said: hello\n", "")
    listed = alice.pipes("", "--history", "--format", "json", *words)
    assert '"title": "hello"' in listed.stdout
    nobody = alice.pipes("hello\n", "--url", "http://127.0.0.1:9")
    assert (nobody.returncode, nobody.stdout) == (3, "")


def test_what_cannot_be_is_told_with_the_next_step(alice: Chatter) -> None:
    for words, code, sentence in (
        (("--continue",), 2, "There is no conversation to continue."),
        (("--continue", "--resume", "cnv_1"), 2, "--continue and --resume name two"),
        (("--resume", "cnv_unknown"), 1, "conversation"),
        (("nobody",), 1, "agent"),
    ):
        ran = alice.pipes("hello\n", *words)
        assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
        assert sentence in ran.stderr
    assert "nothing to be said" in alice.pipes("\n").stderr


def transcript() -> list[str]:
    """The lines of the page that somebody sees in a terminal."""
    (block,) = [each.text for each in blocks_of(PAGE) if each.text.startswith("$ carnet chat")]
    return block.splitlines()


def test_the_page_shows_what_is_shown(alice: Chatter) -> None:
    command, *lines = transcript()
    with alice.opens(*command.split()[3:]) as seat:
        for line in lines:
            prompt = next((each for each in (YOU, LATER) if each in line), None)
            if prompt is None:
                continue
            before, _, typed = line.partition(prompt)
            seat.shows(before + prompt)
            if typed in SCRIPT:
                alice.replies(*SCRIPT[typed])
            seat.types(typed)
        assert seat.leaves() == 0
    shown = seat.screen.replace(alice.home.url, "http://127.0.0.1:8700")
    assert masked(shown) == masked("\n".join(lines))
