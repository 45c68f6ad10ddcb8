"""A client of the owner's API in a terminal: what a person is shown, and may do."""

from tests.requirements.rows import Row

_CHAT = "tests/cli/chat/test_chat.py::"
_ASKED = "tests/cli/chat/test_decision.py::"
_LOST = "tests/cli/chat/test_exchange.py::"
_ONCE = "tests/cli/chat/test_once.py::"
_SHOWN = "tests/cli/chat/test_screen.py::"
_TYPED = "tests/cli/chat/test_commands.py::"

ROWS = (
    Row(
        "engine:chat:terminal",
        "A person talks to her agents from a terminal: she sees text as it comes and tools by "
        "their words, approves, stops, leaves and comes back.",
        "002 trigger types, approvals; R37, R47",
        (
            _CHAT + "test_a_chat_goes_through_text_tool_approval_stop_and_resume",
            _CHAT + "test_any_gateway_is_reached_by_its_address_and_a_token",
            _TYPED + "test_conversations_are_listed_opened_renamed_written_and_deleted",
        ),
    ),
    Row(
        "engine:chat:questions",
        "What an agent asks for is asked in the chat; nothing is approved but by a word for it, "
        "and what is left for later is asked again.",
        "002 approvals; R45",
        (
            _ASKED + "test_a_tool_is_denied_or_given_other_arguments",
            _ASKED + "test_what_is_left_for_later_is_asked_again_also_after_coming_back",
            _ASKED + "test_payments_are_agreed_to_and_remembered_up_to_an_amount",
        ),
    ),
    Row(
        "engine:chat:lost",
        "A connection that is lost loses nothing: the same message is asked for again, and has the "
        "same answer.",
        "R47, R48",
        (
            _LOST + "test_a_lost_connection_loses_nothing",
            _LOST + "test_the_same_message_is_asked_for_again_until_somebody_is_told",
        ),
    ),
    Row(
        "engine:chat:pipe",
        "In a pipe the answer stands alone, and the exit code says whether there was one.",
        "R47",
        (
            _ONCE + "test_the_answer_alone_is_printed_and_gone_on_with",
            _ONCE + "test_an_answer_that_fails_or_waits_is_no_success",
        ),
    ),
    Row(
        "engine:chat:data",
        "What agents and tools write is data: nothing of it steers the terminal.",
        "A60",
        (
            _SHOWN + "test_nothing_that_an_agent_writes_steers_the_terminal",
            _SHOWN + "test_a_row_is_one_short_line",
        ),
    ),
)
