"""What agents ask for is asked in the chat, and answered there."""

import json

from carnet.cli.chat.decision import question_lines
from carnet.cli.chat.history import YOU
from tests.cli.chat.conftest import Chatter
from tests.cli.chat.terminal import Terminal
from tests.engine.process import tool_call, with_usage

ASKED = "[a]pprove, [d]eny, [e]dit, [r]emember, [l]ater? "


def is_asked(alice: Chatter, seat: Terminal, to: str = "bob") -> None:
    alice.replies(tool_call("send_mail", json.dumps({"to": to})), with_usage("Well."))
    seat.types("Mail")
    seat.shows(f"  to: {to}\n")
    seat.shows(ASKED)


def test_a_tool_is_denied_or_given_other_arguments(alice: Chatter) -> None:
    with alice.chats("assistant") as seat:
        is_asked(alice, seat)
        seat.types("what?")
        seat.shows("nothing was answered.")
        seat.shows(ASKED)
        seat.types("d")
        seat.shows("  Denied.\n")
        seat.shows("Well.\n")
        seat.shows(YOU)
        is_asked(alice, seat, "carol")
        seat.types("e")
        seat.shows('with: {"to": "carol"}')
        seat.presses('\x15{"to": "dave"}\n')  # Ctrl-U
        seat.shows("  Approved.\n")
        seat.shows("Well.\n")
    answered = alice.get("/approvals?status=all").json["approvals"]
    assert [(each["outcome"], each["value"]) for each in answered] == [
        ("accepted", {"to": "dave"}),
        ("rejected", None),
    ]


def test_what_is_left_for_later_is_asked_again_also_after_coming_back(alice: Chatter) -> None:
    with alice.chats("assistant") as seat:
        is_asked(alice, seat)
        seat.types("")  # nothing is approved by an empty line
        seat.shows("It waits. /answer asks you again")
        seat.shows(YOU)
        seat.types("/answer")
        seat.shows(ASKED)
        seat.types("l")
        seat.shows(YOU)
    with alice.opens("--continue") as seat:
        seat.shows(ASKED)
        seat.types("a")
        seat.shows("  ✓ send_mail: sent\nWell.\n")
        seat.shows(YOU)
        seat.types("/answer")
        seat.shows("Nothing waits for you here.")


def test_payments_are_agreed_to_and_remembered_up_to_an_amount(alice: Chatter) -> None:
    with alice.chats("shop") as seat:
        seat.types("one, please")
        seat.shows("asks (payment): Two cents, please\n  amount: 0.02 credits\n")
        seat.shows("? ")
        seat.types("r")
        seat.shows("up to how much in all (credits)? ")
        seat.types("0.05")
        seat.shows("payment accepted")
        seat.shows(YOU)
        seat.types("another one")  # within what is remembered: nobody is asked
        assert "asks" not in seat.shows("payment accepted")
    (rule,) = alice.get("/rules").json["rules"]
    assert (rule["kind"], rule["ceiling"], rule["used"]) == ("payment", "0.05", "0.02")


def test_one_of_several_is_chosen_by_number_or_in_words(alice: Chatter) -> None:
    with alice.chats("clerk") as seat:
        for typed, painted in (("2", "light blue"), ("red", "red")):
            seat.types("paint")
            seat.shows("  1  red\n  2  light blue\n")
            seat.shows("[l]ater? ")
            seat.types("green")
            seat.shows("It asks for one of them")
            seat.shows("[l]ater? ")
            seat.types(typed)
            seat.shows(f"painted {painted}\n")
            seat.shows(YOU)


def test_all_of_what_is_approved_is_shown() -> None:
    arguments = {"to": "bob", "text": "x" * 5_000 + "\x1b[2J\nthe end"}
    asked = {"kind": "approval", "message": "m" * 300 + "?", "arguments": arguments}
    first, to, text = question_lines(asked)
    assert first.endswith("mm?")
    assert to == "  to: bob"
    assert text.startswith("  text: xxx")
    assert text.endswith("the end")
    assert not {"\x1b", "\n"} & set(text)
