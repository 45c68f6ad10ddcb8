"""What one caller's work and one caller's readers may take from everybody."""

from tests.requirements.rows import Row

_BODIES = "tests/security/test_bodies.py::"
_LOOP = "tests/security/test_loop.py::"
_READERS = "tests/security/test_readers.py::"
_PIECES = "tests/runtime/turns/test_pieces.py::"
_JOURNAL = "tests/stores/calls/test_journal.py::"
_ROOM = "tests/guards/test_readers.py::"

LOOP = (
    Row(
        "security:a73:loop",
        "What the event loop does for one request is done in small pieces, linear in its bytes: "
        "nothing keeps everybody waiting for a quarter of a second.",
        "attack A73",
        (
            _LOOP + "test_a_long_whole_answer_of_small_words_holds_the_loop_for_nobody",
            _LOOP + "test_nor_does_one_that_a_peer_gives",
            _LOOP + "test_nor_does_a_stream_of_tiny_deltas",
            _LOOP + "test_nor_does_a_body_of_many_parts",
            _LOOP + "test_eight_megabytes_take_as_much_of_the_loop_as_eight_times_one",
            _LOOP + "test_a_body_of_tiny_chunks_is_refused_early",
            _PIECES + "test_pieces_hold_all_that_was_said_in_its_order_and_are_small",
        ),
    ),
    Row(
        "security:a73:watchdog",
        "Who holds the loop is named in the log, with the call, and counted.",
        "attack A73",
        (
            _LOOP + "test_who_holds_the_loop_is_named",
            "tests/runtime/test_watchdog.py::test_work_that_holds_the_loop_is_counted_and_named",
        ),
    ),
)

READERS = (
    Row(
        "security:a74:readers",
        "What readers of the journal hold is bounded in bytes for each of them, for each caller "
        "and for all, and who waits for room misses nothing.",
        "attack A74",
        (
            _READERS + "test_readers_of_events_that_never_read_hold_a_bounded_part_of_the_memory",
            _READERS + "test_so_do_readers_of_tasks",
            _READERS + "test_who_reads_on_later_is_given_all_of_it",
            _LOOP + "test_what_was_said_at_length_is_read_again_in_pieces",
            _JOURNAL + "test_events_are_read_a_piece_at_a_time_and_none_is_missed",
            _ROOM + "test_a_quarter_is_left_to_those_who_hold_nothing",
        ),
    ),
)

STRANGERS = (
    Row(
        "security:a75:bodies",
        "The body of somebody who cannot be admitted by its head is neither kept nor parsed, its "
        "sender sees the refusal, and a large signed body is parsed once its signature holds.",
        "attack A75",
        (
            _BODIES + "test_a_strangers_body_is_neither_kept_nor_parsed_and_it_sees_the_refusal",
            _BODIES + "test_a_stranger_that_asks_first_is_refused_at_once",
            _BODIES + "test_a_short_body_of_a_stranger_is_not_judged_to_it",
            _BODIES + "test_a_large_signed_body_is_parsed_once_its_signature_holds",
        ),
    ),
)

_TREE = "tests/interop/budgets/test_tree.py::"
_SET = "tests/interop/budgets/test_standing.py::"
_BOOK = "tests/stores/ledger/test_budgets_book.py::"
_MACHINE = "tests/stores/ledger/test_budgets_machine.py::"
_KILLED = "tests/interop/budgets/test_killed.py::"
_OWN = "tests/interop/budgets/test_own.py::"
_TOKENS = "tests/interop/budgets/test_tokens.py::"
_LOOP = "tests/interop/budgets/asking/test_loop.py::"
_ABROAD = "tests/interop/budgets/asking/test_abroad.py::"

BUDGETS = (
    Row(
        "security:budget:run",
        "A run spends no more than its budget, however wide and deep it calls, over organisations, "
        "and calls in flight count.",
        "R57, 000 credits",
        (
            _TREE + "test_a_tree_makes_no_more_calls_than_its_budget_has",
            _TREE + "test_a_tree_costs_no_more_than_its_budget_has",
            _TREE + "test_a_share_bounds_one_call_and_what_is_left_of_it_comes_back",
        ),
    ),
    Row(
        "security:budget:crash",
        "Children never have more than their parent; nothing is lost and nothing created, also "
        "where a process dies while a budget is written.",
        "R57",
        (
            _BOOK
            + "test_children_never_have_more_than_their_parent_and_nothing_is_lost_or_created",
            _BOOK + "test_a_share_that_is_closed_gives_back_what_is_released_later",
            _MACHINE
            + "test_in_any_order_children_never_have_more_than_their_parent_and_nothing_stays_held",
            _KILLED + "test_a_kill_while_a_budget_is_written_leaves_it_whole",
        ),
    ),
    Row(
        "security:budget:refused",
        "What has nothing left is refused before anything leaves, with what is used up and the "
        "command that raises it; nothing is run or billed.",
        "001 budget_exceeded",
        (
            _TREE + "test_an_agent_is_told_which_part_is_used_up_and_nothing_is_sent",
            _SET + "test_a_token_makes_no_more_calls_than_its_budget_until_that_is_raised",
            _SET + "test_a_call_from_the_command_line_brings_its_budget",
            _SET + "test_a_run_that_goes_on_can_be_given_more",
        ),
    ),
    Row(
        "security:budget:narrows",
        "What a caller sends can only narrow what others allow it, and what is no budget is "
        "refused.",
        "R53",
        (
            _SET + "test_what_a_caller_says_only_narrows_what_was_set",
            _SET + "test_what_is_no_budget_is_refused",
        ),
    ),
    Row(
        "security:budget:own",
        "What an agent pays from its own account is bounded in all and on one day, and the "
        "operator is told once when most of it is used.",
        "R32",
        (_OWN + "test_an_agent_pays_no_more_than_its_limit_and_the_operator_is_told_once",),
    ),
    Row(
        "security:budget:tokens",
        "A loop asks its model no more when the tokens of its call, of its part, or of who pays "
        "are used up, however many loops go on at once in a gateway.",
        "001 budget_exceeded; R57",
        (
            _TOKENS + "test_a_model_is_not_asked_again_when_the_tokens_of_its_call_are_used_up",
            _TOKENS + "test_loops_at_once_stop_within_one_answer_each_of_what_an_operator_has_set",
            _TOKENS + "test_a_loop_takes_no_more_tokens_than_the_part_that_an_agent_gave_it",
        ),
    ),
    Row(
        "security:budget:asked",
        "Who pays is asked for more of what is used up, wherever the loop runs, and of nothing "
        "else, whatever a callee says; more of a budget is no approval, and nothing runs twice for "
        "it.",
        "R43, R45",
        (
            _TOKENS
            + "test_who_pays_is_asked_for_more_tokens_and_the_loop_goes_on_where_it_stopped",
            _LOOP + "test_a_call_that_was_held_up_is_used_once_however_often_more_is_given",
            _LOOP + "test_more_of_a_budget_is_no_approval_of_the_tool_that_it_is_for",
            _ABROAD + "test_nobody_is_asked_for_what_a_callee_abroad_did_not_lack",
        ),
    ),
)

ROWS = (*LOOP, *READERS, *STRANGERS, *BUDGETS)
