"""The attacks of one tenant on another: what one does costs nobody else, and ends with it."""

from tests.requirements.rows import Row

_ENDED = "tests/interop/test_revocation.py::"
_READERS = "tests/security/test_readers.py::"
_STREAMS = "tests/replicas/test_streams.py::"
_STORED = "tests/stores/upkeep/test_revocation.py::"
_BEGUN = "tests/edge/test_shares.py::"
_QUEUED = "tests/stores/commit/test_backlog.py::"
_WORST = "tests/worst/test_worst.py::"
_RANKS = "tests/stores/turn/test_answers_places.py::"
_FAIR = "tests/interop/test_fair_tasks.py::"
_LISTED = "tests/security/callers/test_many_runs.py::"
_SEARCHED = "tests/stores/calls/test_turns_search.py::"
_PLANS = "tests/stores/calls/test_tasks_plans.py::"
_AWAY = "tests/stores/calls/test_elsewhere.py::"
_SHARES = "tests/stores/test_shares.py::"
_DOCUMENTS = "tests/travel/test_documents.py::"
_SDK = "tests/interop/test_openai_sdk.py::"
_PYTHON = "tests/runtime/agents/test_python.py::"
_SIGNED = "tests/travel/test_signed_calls.py::"
_EXECUTION = "tests/runtime/turns/test_execution.py::"
_CHOSEN = "tests/stores/calls/test_fairness.py::"

ROWS = (
    Row(
        "security:a86:tasks",
        "The tasks of a token, peer or sender that has ended are cancelled, whether they run, wait "
        "to be run or wait for an answer; what they held is given back.",
        "A86, R54",
        (
            _ENDED + "test_revoking_a_token_ends_its_tasks_whether_they_run_or_wait",
            _ENDED + "test_the_end_of_a_forwarded_token_ends_what_it_pays_for",
            _STORED
            + "test_a_task_that_waits_ends_with_its_own_token_and_not_with_one_of_that_name",
            _STORED + "test_tasks_of_a_peer_and_of_a_sender_end_with_the_peer_and_with_its_keys",
            _STORED + "test_a_turn_that_waits_for_an_answer_ends_as_cancelled",
        ),
    ),
    Row(
        "security:a86:calls",
        "A call that was let in by a token, peer or delegation that has ended is cancelled with "
        "all that is called for it, here and at a peer; what has not left yet does not leave.",
        "A86, R54",
        (
            _ENDED + "test_revoking_a_token_ends_a_call_and_what_it_calls_at_a_peer",
            _ENDED + "test_a_token_that_expires_ends_what_it_began",
            _ENDED + "test_removing_a_peer_ends_what_its_gateway_asked_for",
            _ENDED + "test_an_agent_that_does_not_stop_calls_nobody_and_does_nothing_more",
            _STORED + "test_a_call_has_ended_with_its_delegation",
        ),
    ),
    Row(
        "security:a86:readers",
        "Who follows a run, or reads an answer that another asked for, sees no more of it once its "
        "token has ended, at every gateway on the store.",
        "A86, R54",
        (
            _ENDED + "test_who_follows_a_run_with_a_token_that_ends_sees_no_more_of_it",
            _ENDED + "test_who_reads_an_answer_that_another_token_asked_for_is_held_to_its_own",
            _READERS + "test_who_never_reads_is_hung_up_on_when_its_token_ends",
            _STREAMS + "test_a_token_that_ends_sees_no_more_of_a_run_at_any_gateway",
        ),
    ),
    Row(
        "security:a87:lists",
        "A list of runs goes by the search rows of its reader, in slices, and walks through nobody "
        "else's.",
        "A87",
        (
            _SEARCHED + "test_sqlite_lists_runs_by_keys_and_indexes_alone",
            _SEARCHED + "test_a_list_that_finds_little_ends_before_it_is_full_and_goes_on",
            _LISTED + "test_a_reader_is_listed_its_own_runs_among_those_of_many",
        ),
    ),
    Row(
        "security:a87:tasks",
        "A list of tasks goes by who asked for them, in slices, and walks through nobody else's.",
        "A87",
        (
            _PLANS + "test_a_list_of_tasks_looks_at_those_of_its_reader_alone",
            _PLANS + "test_a_list_of_tasks_that_finds_little_ends_before_it_is_full_and_goes_on",
            _LISTED + "test_a_reader_is_listed_its_own_tasks_among_those_of_many",
        ),
    ),
    Row(
        "security:a87:reads",
        "A read waits for one query of each other caller at the most, however many they ask.",
        "A87",
        (
            _SHARES + "test_a_query_waits_for_one_of_another_caller_and_not_for_all",
            _SHARES + "test_who_comes_and_goes_has_one_place_all_the_same",
            _LISTED + "test_others_are_answered_while_one_asks_for_lists_again_and_again",
        ),
    ),
    Row(
        "security:a88:fair",
        "A task waits behind one task of each other tenant, however many they have sent: at its "
        "agent by rank, and for a place among all that run by who has the fewest.",
        "A88",
        (
            _FAIR + "test_one_task_does_not_wait_behind_all_of_another_tenant",
            _FAIR + "test_one_answered_call_does_not_wait_behind_all_of_another_tenant",
            _RANKS + "test_an_answered_turn_waits_behind_those_of_its_payer_and_of_nobody_else",
            _FAIR + "test_who_has_tasks_at_many_agents_does_not_take_every_place",
            _CHOSEN + "test_nobody_gets_a_second_place_while_another_who_waits_has_fewer",
        ),
    ),
    Row(
        "security:a88:elsewhere",
        "Of one tenant few tasks are awaited from other organisations at a time, whatever their "
        "agents are called: another's task to the same peer or another one starts at once.",
        "A88",
        (
            _FAIR + "test_whose_tasks_are_slow_elsewhere_keeps_nobody_elses_from_starting",
            _AWAY + "test_of_one_tenant_only_so_many_begin_and_another_is_not_behind_them",
            _AWAY + "test_tasks_that_cannot_be_called_at_present_hold_up_none_that_can",
        ),
    ),
    Row(
        "security:a89:reentry",
        "An agent without reentry is called again within its chain neither over the wire nor in "
        "process, wherever the chain has passed it.",
        "A89, A31",
        (_DOCUMENTS + "test_an_agent_is_not_called_again_in_process_either",),
    ),
    Row(
        "security:a99:worst",
        "Whatever one caller does at its limits, none of another's calls, streams, bodies, lists, "
        "tasks and webhooks fails, all calls end, and memory stays below the bound. `make worst` "
        "measures what the other notices.",
        "A99",
        (_WORST + "test_whatever_one_caller_does_at_its_limits_no_call_of_another_fails",),
    ),
    Row(
        "security:a99:shares",
        "However many requests one caller sends at once, and whatever it has queued for the store, "
        "those of another begin and are written between them.",
        "A99",
        (
            _BEGUN + "test_a_request_of_another_begins_between_those_of_one_caller",
            _BEGUN + "test_who_leaves_before_its_turn_is_never_begun",
            _QUEUED + "test_who_writes_alone_has_whole_batches_and_beside_others_its_share",
            _QUEUED + "test_a_claim_that_waits_behind_its_callers_others_is_refused_and_never_made",
        ),
    ),
    Row(
        "security:a99:threads",
        "An agent whose plain functions do not come back takes up threads of its own alone: every "
        "other agent answers.",
        "A99",
        (
            _SDK + "test_an_agent_whose_functions_do_not_come_back_keeps_no_other_waiting",
            _PYTHON + "test_an_agent_that_uses_up_its_threads_keeps_no_other_waiting",
        ),
    ),
    Row(
        "security:a41:returns",
        "A call that comes back over a peer and is refused is noted in the run of ours that it was "
        "made in; who was not called in that turn writes nothing there, and nobody much.",
        "A41",
        (
            _SIGNED + "test_a_loop_that_we_refused_ourselves_is_shown_in_the_run_it_belongs_to",
            _EXECUTION + "test_a_call_of_somebody_else_is_not",
            _EXECUTION + "test_a_turn_notes_some_of_them_and_no_more",
        ),
    ),
)
