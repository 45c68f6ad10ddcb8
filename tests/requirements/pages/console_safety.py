"""What the console is safe against, and what it may cost those who call."""

from tests.requirements.rows import Row

_ATTACKS = "tests/console/test_shell_attacks.py::"
_OTHERS = "tests/console/owner/test_inbox_others.py::"
_STORED = "tests/browser/hostile/test_stored.py::"
_LEDGER = "tests/console/operations/test_ledger.py::"
_LIVE = "tests/console/test_live.py::"
_TWO = "tests/browser/test_two_gateways.py::"
_COOKIE = "tests/guards/caller/test_session.py::"

ROWS = (
    Row(
        "console:data",
        "A twin, an export and the CSV are data to a browser, named and typed by the gateway, and "
        "begin no formula.",
        "console, everywhere",
        (
            _STORED + "test_a_twin_is_data_and_nothing_else",
            _STORED + "test_what_leaves_as_a_file_is_named_and_typed_by_us",
            _LEDGER + "test_what_a_program_would_run_as_a_formula_is_text_in_the_table",
        ),
    ),
    Row(
        "console:frames",
        "A page of the console stands in no frame of another page.",
        "console, clickjacking",
        (
            _ATTACKS + "test_what_is_refused_stands_in_no_frame_either",
            "tests/browser/hostile/test_frames.py::test_no_page_stands_in_a_frame_of_another",
        ),
    ),
    Row(
        "console:guesses",
        "Wrong tokens at the form are counted for their address; a good one comes in.",
        "console, sign-in",
        (_OTHERS + "test_who_guesses_at_the_form_is_told_nothing_more_for_a_while",),
    ),
    Row(
        "console:ports",
        "Who signs in or out at one gateway of a host stays as she was at another of that host.",
        "console, sign-in",
        (
            _TWO + "test_who_signs_in_or_out_at_one_gateway_stays_at_the_other",
            _COOKIE + "test_its_name_has_the_port_which_a_browser_does_not_tell_apart",
        ),
    ),
    Row(
        "console:load",
        "All that is watched is read at a bounded rate, of which every caller has the same part; "
        "`make bench ARGS=consoles` measures what a hop keeps of its requests for a CPU second "
        "while ten consoles are open, with a floor of 0.97.",
        "console, must show 4",
        (
            _LIVE + "test_the_more_there_is_to_read_the_longer_it_rests",
            _LIVE + "test_who_has_opened_much_makes_nobody_else_wait",
            _LIVE + "test_what_one_pays_for_is_shared_with_nobody_who_sees_all",
        ),
    ),
)
