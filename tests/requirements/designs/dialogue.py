"""What a driver that lets agents speak in turn does: the reference system's behaviour, and ours."""

from tests.requirements.rows import Divergence, Row

_RUN = "tests/assembly/dialogue/test_driver.py::"
_CALLS = "tests/assembly/dialogue/test_driver_calls.py::"
_JOURNAL = "tests/assembly/dialogue/test_driver_journal.py::"
_NESTED = "tests/assembly/dialogue/test_driver_nested.py::"
_WIRE = "tests/assembly/dialogue/test_driver_wire.py::"
_POLICY = "tests/runtime/dialogue/test_policy.py::"
_STATEFUL = "tests/runtime/dialogue/test_run.py::"
_KILLED = "tests/crash/points/test_dialogue_points.py::"
_PAGE = "tests/assembly/dialogue/test_driver_page.py::"
_FILE = "tests/stores/dialogues/test_journal.py::"
_HOSTED = "tests/assembly/agents/test_dialogues.py::"
_HOST_KILLED = "tests/crash/points/test_conversation_points.py::"
_REPLICAS = "tests/replicas/tasks/test_tasks.py::"
_COMMAND = "tests/cli/call/test_conversation.py::"
_FUNCTIONS = "tests/assembly/dialogue/test_driver_functions.py::"
_STOP = "tests/runtime/dialogue/test_stop.py::"
_PAGES = "tests/runtime/dialogue/hosted/test_pages.py::"
_HALT = "tests/core/dialogue/test_halt.py::"
_GATEWAY = "tests/gateway/endpoint/test_driver.py::"

_FRONT = "tests/assembly/dialogue/test_middleware.py::"
_APPS = "tests/examples/test_applications.py::"
_AGAIN = "tests/cli/see/test_replay.py::"
_RECORD = "tests/runtime/replay/test_record.py::"
_AT_ONCE = "tests/assembly/replay/test_replay.py::"
_LOOPS = "tests/interop/engine/test_agents.py::"
_TURN = "tests/runtime/chain/test_turn_chain.py::"
_FANS = "tests/interop/composition/test_fan_out.py::"
_LET_OUT = "tests/guards/admission/test_children.py::"
_LOOP = "tests/assembly/agents/test_loop.py::"

_DEFINED = _RUN + "test_what_cannot_be_a_conversation_is_refused_when_it_is_defined"
_GOES_ON = _JOURNAL + "test_a_run_that_failed_goes_on_where_it_was_left"

_DEFINITION = (
    Row(
        "dialogue:definition:participants",
        "A conversation has two or more participants, each with a name of its own that is not "
        "blank; one alone is an error.",
        "reference system, section 2.1, fact 14",
        (_DEFINED,),
    ),
    Row(
        "dialogue:definition:turns",
        "The most turns are a whole number from 1; 0 is an error.",
        "reference system, section 2.1, fact 16",
        (_DEFINED,),
    ),
    Row(
        "dialogue:definition:order",
        "The order is alternate, for exactly two, round-robin, or a function that says who speaks.",
        "reference system, section 2.1, facts 17 and 20",
        (
            _DEFINED,
            _RUN + "test_three_take_turns",
            _RUN + "test_a_function_may_choose_who_speaks_by_index_or_by_name",
            _RUN + "test_an_order_that_names_nobody_is_an_error_of_its_author",
        ),
    ),
    Row(
        "dialogue:definition:targets",
        "Agents, functions, addresses, models and conversations take part.",
        "issue 15, conversations",
        (
            _RUN + "test_two_alternate_until_their_turns_are_used_up",
            _RUN + "test_a_plain_function_takes_part_beside_the_event_loop",
            _WIRE + "test_a_participant_elsewhere_is_sent_the_six_headers",
            _WIRE + "test_a_model_is_no_hop_and_its_tokens_have_their_price",
            _NESTED + "test_what_is_spoken_within_is_one_turn_outside",
            _PAGE + "test_its_first_conversation_is_kept_and_can_be_read",
        ),
    ),
)

_RUNNING = (
    Row(
        "dialogue:run:alternate",
        "Two speak in turn until the turns are used up; every turn has one attempt and its cost "
        "is counted.",
        "reference system, fact 19",
        (_RUN + "test_two_alternate_until_their_turns_are_used_up",),
    ),
    Row(
        "dialogue:run:received",
        "Each is given the seed and all that was spoken: its own turns as the assistant's, those "
        "of others behind their names.",
        "reference system, section 2.3",
        (
            _RUN + "test_each_is_given_the_seed_and_all_that_was_spoken",
            "tests/core/dialogue/test_record.py::test_what_each_is_given_names_who_spoke",
        ),
    ),
    Row(
        "dialogue:run:cap",
        "Spending halts a run between turns, with what was spent and the cap; a cap of 0 before "
        "the first one.",
        "reference system, facts 22 and 29",
        (
            _RUN + "test_a_cap_halts_between_turns_and_cannot_be_overshot_where_a_turn_is_quoted",
            _RUN + "test_without_money_nobody_speaks",
        ),
    ),
    Row(
        "dialogue:run:cents",
        "What a turn costs is rounded to cents, and failed attempts are free.",
        "reference system, section 2.5",
        (
            _RUN + "test_the_smallest_cost_is_not_rounded_away",
            _RUN + "test_an_unknown_cost_counts_as_the_most_that_was_quoted",
            _CALLS + "test_who_cannot_be_reached_is_called_again_as_often_as_its_policy_says",
        ),
        Divergence(
            "R7",
            "Many small turns would be free for ever and the cap would never hold. Whole "
            "micro-units are added, failed attempts are paid for, an unknown cost is visible.",
        ),
    ),
    Row(
        "dialogue:run:failure",
        "A participant that raises, fails or says nothing halts the run with its name; what was "
        "spoken is kept.",
        "reference system, facts 23, 25 and 26",
        (
            _RUN + "test_a_participant_that_fails_halts_the_run_and_keeps_what_was_spoken",
            _RUN + "test_an_answer_that_is_none_is_a_failure",
        ),
    ),
    Row(
        "dialogue:run:failure-policy",
        "A participant that failed may be left out instead, or have somebody speak for it.",
        "reference system, section 5, opportunity 8",
        (
            _CALLS + "test_who_fails_may_be_left_out",
            _CALLS + "test_somebody_may_speak_for_who_fails",
            _NESTED + "test_who_speaks_for_another_is_paid_beside_what_that_one_has_cost",
            _NESTED + "test_a_conversation_that_speaks_for_another_is_kept_beside_it",
            _HOSTED + "test_who_speaks_for_another_does_and_asks_things_of_its_own",
        ),
    ),
    Row(
        "dialogue:run:counted-once",
        "What an attempt has cost is counted with it, whoever spoke; what a record answers when "
        "the turn is tried again is not counted again.",
        "reference system, section 5, opportunity 6; issue 15",
        (
            _NESTED + "test_what_a_function_had_others_say_is_counted_as_often_as_it_was_said",
            _HOSTED + "test_what_a_record_answers_when_it_is_tried_again_is_paid_and_counted_once",
            _PAGES + "test_what_was_used_and_called_is_noted_once_by_whoever_reads",
            _STATEFUL + "test_whatever_happens_to_its_drivers_a_run_comes_to_the_same_end",
        ),
    ),
    Row(
        "dialogue:run:functions",
        "A deadline and an abort hold against the functions that decide on a run or are told of "
        "it; in a gateway a plain one runs in a thread.",
        "reference system, section 5, opportunity 7; issue 15",
        (
            _FUNCTIONS + "test_a_deadline_holds_against",
            _FUNCTIONS + "test_an_abort_holds_against",
            _HOSTED + "test_a_predicate_that_blocks_holds_up_neither_the_deadline_nor_others",
        ),
    ),
    Row(
        "dialogue:run:predicate",
        "A predicate, asynchronous or not, is asked after each turn, sees what was spent, and "
        "beats the last turn; its reason is kept.",
        "reference system, sections 2.2 and 2.3",
        (_RUN + "test_a_predicate_halts_it_with_a_reason_or_without",),
    ),
    Row(
        "dialogue:run:events",
        "A stream begins with the start, tells of each turn its start, its text and its end, and "
        "ends with the result.",
        "reference system, section 2.7, fact 28",
        (
            _RUN + "test_the_events_of_a_run_are_told_in_order",
            _RUN + "test_who_runs_it_to_its_end_may_be_told_every_event",
        ),
    ),
    Row(
        "dialogue:run:discard",
        "Text belongs to an attempt, and an attempt that failed is named as discarded.",
        "reference system, section 5, opportunity 10",
        (_CALLS + "test_a_failed_attempt_is_discarded_and_the_next_has_the_same_turn_id",),
    ),
    Row(
        "dialogue:run:abort",
        "An abort, before or within a turn, halts the run as aborted.",
        "reference system, section 2.6",
        (
            _CALLS + "test_an_abort_before_the_start_lets_nobody_speak",
            _CALLS + "test_an_abort_is_no_failure_and_is_not_repeated",
            _CALLS + "test_an_abort_ends_the_pause_between_two_attempts",
            _CALLS + "test_a_cancelled_driver_cancels_who_speaks",
        ),
    ),
    Row(
        "dialogue:run:deadline",
        "A run may have a deadline, which is an end of its own.",
        "reference system, section 5, opportunity 7",
        (
            _CALLS + "test_the_time_of_a_whole_run_is_an_end_of_its_own",
            _STOP + "test_a_timer_that_rings_early_ends_nothing_and_a_late_one_is_not_waited_for",
        ),
    ),
)

_CALL_POLICY = (
    Row(
        "dialogue:policy:retries",
        "After a failure that may pass there are as many further attempts as the policy says, "
        "and no more.",
        "reference system, facts 31 and 32",
        (
            _CALLS + "test_who_cannot_be_reached_is_called_again_as_often_as_its_policy_says",
            _CALLS + "test_a_failed_attempt_is_discarded_and_the_next_has_the_same_turn_id",
        ),
    ),
    Row(
        "dialogue:policy:retryable",
        "What may pass is a lost or refused connection, and no answer in time; a refusal may not.",
        "reference system, fact 34",
        (
            _CALLS + "test_only_what_may_pass_is_repeated",
            _CALLS + "test_what_is_repeated_can_be_chosen",
            _POLICY + "test_what_another_library_makes_of_a_lost_connection_may_pass",
        ),
    ),
    Row(
        "dialogue:policy:backoff",
        "Pauses double and have jitter, or are as the policy says, and never shorter than the "
        "callee asks for.",
        "reference system, section 2.6",
        (_POLICY + "test_pauses_double_have_a_chance_in_them_and_honour_what_the_callee_asks_for",),
    ),
    Row(
        "dialogue:policy:deadline",
        "The deadline of an attempt holds against who ignores it.",
        "reference system, section 2.6 (there it does not)",
        (
            _CALLS + "test_a_deadline_holds_against_who_ignores_it",
            _CALLS + "test_a_deadline_holds_against_a_plain_function_too",
            _POLICY + "test_a_deadline_holds_against_a_call_that_ignores_it",
        ),
    ),
    Row(
        "dialogue:policy:breaker",
        "Failures in a row open a breaker: calls are refused until its time is over, and an open "
        "one ends the attempts at once.",
        "reference system, facts 35 and 37",
        (
            _POLICY + "test_a_breaker_opens_is_half_open_after_its_time_and_closes",
            _CALLS + "test_a_breaker_outlives_the_run_and_ends_the_attempts_at_once",
        ),
    ),
    Row(
        "dialogue:policy:breaker-lives",
        "A breaker lives across runs.",
        "reference system, section 5, opportunity 8 (there it dies with the run)",
        (
            _CALLS + "test_a_breaker_outlives_the_run_and_ends_the_attempts_at_once",
            _CALLS + "test_breakers_are_kept_by_whom_they_are_for_not_by_the_policy",
        ),
    ),
    Row(
        "dialogue:policy:cancel",
        "A cancellation is never repeated, and no breaker counts it.",
        "reference system, section 5, opportunity 7 (there it is both)",
        (
            _CALLS + "test_an_abort_is_no_failure_and_is_not_repeated",
            _POLICY + "test_a_cancelled_call_is_cancelled_and_counts_as_nothing",
        ),
    ),
    Row(
        "dialogue:policy:own-calls",
        "A policy can be used for calls of one's own.",
        "000 reference, call-policy",
        (_POLICY + "test_a_call_of_ones_own_is_repeated_and_gives_what_it_gives",),
    ),
)

_PROPAGATION = (
    Row(
        "dialogue:propagation:headers",
        "A participant is sent depth one more than the driver's, the credential as it came, the "
        "run, its turn and its name.",
        "reference system, fact 38",
        (
            _WIRE + "test_a_participant_elsewhere_is_sent_the_six_headers",
            _WIRE + "test_what_opens_its_run_is_told_no_parent",
            _GATEWAY + "test_a_conversation_over_a_gateway_is_recorded_there_turn_by_turn",
        ),
    ),
    Row(
        "dialogue:propagation:run",
        "A run id that is given is everybody's.",
        "reference system, fact 40",
        (_NESTED + "test_run_payer_and_depth_are_inherited_and_ids_are_scoped",),
    ),
    Row(
        "dialogue:propagation:auth",
        "Who pays is decided for each participant, also by a function that is asked before every "
        "attempt; the credential is left out where the participant pays itself, the rest is not.",
        "reference system, facts 41 and 43",
        (
            _WIRE + "test_who_pays_is_decided_for_each_participant",
            _RUN + "test_who_decides_who_pays_sees_that_nothing_is_spent_at_the_start",
        ),
    ),
    Row(
        "dialogue:propagation:depth",
        "A driver at depth 5 calls at depth 6: the runtime refuses nothing.",
        "reference system, section 1.1",
        (
            _NESTED + "test_a_driver_that_is_too_deep_itself_writes_and_calls_nothing",
            _GATEWAY + "test_a_conversation_that_is_too_deep_reaches_nobody",
        ),
        Divergence(
            "R2",
            "A call that the next gateway would refuse is not made, and nobody else bounds calls "
            "within a process: no participant is called at the limit or beyond.",
        ),
    ),
    Row(
        "dialogue:propagation:several",
        "Several conversations for one request have turn ids and journals of their own.",
        "R6",
        (_WIRE + "test_two_conversations_for_one_request_do_not_collide",),
    ),
    Row(
        "dialogue:propagation:inbound",
        "What arrived with a driver's own request is read strictly, and only deepened by what is "
        "given beside it.",
        "000 runtime consumer contract, R3",
        (
            _WIRE + "test_what_arrived_is_read_strictly",
            _WIRE + "test_what_is_given_beside_the_headers_can_only_say_more",
        ),
    ),
)

_NESTING = (
    Row(
        "dialogue:nested:text",
        "What is spoken within is one turn outside, each line behind its speaker.",
        "reference system, fact 44",
        (_NESTED + "test_what_is_spoken_within_is_one_turn_outside",),
    ),
    Row(
        "dialogue:nested:inherits",
        "Run, credential and depth are inherited, the turn outside is the parent.",
        "reference system, section 2.8",
        (
            _NESTED + "test_run_payer_and_depth_are_inherited_and_ids_are_scoped",
            _NESTED + "test_who_pays_for_itself_strips_the_credential_of_all_within",
            _WIRE + "test_a_nested_conversation_sends_its_run_its_parent_and_one_hop_more",
        ),
    ),
    Row(
        "dialogue:nested:failure",
        "A failure within is one of the participant outside.",
        "reference system, fact 46",
        (_NESTED + "test_a_failure_within_is_a_failure_of_the_participant_and_is_paid_for",),
    ),
    Row(
        "dialogue:nested:ids",
        "Two invocations of a nested agent have the same turn ids within.",
        "reference system, fact 47",
        (
            _NESTED + "test_run_payer_and_depth_are_inherited_and_ids_are_scoped",
            _WIRE + "test_a_nested_conversation_sends_its_run_its_parent_and_one_hop_more",
        ),
        Divergence("R6", "The second would be answered with the first one's text: they differ."),
    ),
    Row(
        "dialogue:nested:depth",
        "A conversation within that is too deep is refused before anybody is called.",
        "R2, A47",
        (_NESTED + "test_no_hop_is_made_that_is_too_deep_and_nobody_is_called",),
    ),
    Row(
        "dialogue:nested:bounds",
        "What is left of money and time outside bounds what is within.",
        "issue 15, nesting",
        (
            _NESTED + "test_what_is_left_of_the_money_bounds_what_is_within",
            _NESTED + "test_the_time_of_the_run_bounds_what_is_within",
            _NESTED + "test_what_a_function_has_others_say_is_bounded_by_what_is_left",
            _NESTED + "test_a_nested_attempt_that_is_late_is_tried_again",
            _NESTED + "test_an_abort_reaches_who_speaks_within",
        ),
    ),
)

_JOURNALS = (
    Row(
        "dialogue:journal:resume",
        "With the same run id and journal a run goes on after the turns that were kept; it says "
        "so first.",
        "reference system, fact 49",
        (_GOES_ON,),
    ),
    Row(
        "dialogue:journal:exactly-once",
        "Whatever kills a driver: a turn that was acknowledged is never spoken again, one that "
        "was not is, under the same id; the transcript and the spending are the same.",
        "reference system, section 2.9",
        (
            _KILLED + "test_a_driver_survives_a_kill_at_every",
            _KILLED + "test_a_driver_survives_kills_in_a_row",
            _STATEFUL + "test_whatever_happens_to_its_drivers_a_run_comes_to_the_same_end",
        ),
    ),
    Row(
        "dialogue:journal:durable",
        "Every event is durable before it is shown.",
        "issue 15, journal",
        (_JOURNAL + "test_every_event_is_durable_before_it_is_shown",),
    ),
    Row(
        "dialogue:journal:overwrite",
        "A run that is kept is not begun anew: another definition or seed is refused, unless it "
        "is allowed.",
        "reference system, fact 50 and section 5, opportunity 9",
        (_JOURNAL + "test_another_definition_or_seed_is_refused_unless_it_is_allowed",),
    ),
    Row(
        "dialogue:journal:order",
        "Turns are read in the order of their index, and an end is read as it was written.",
        "reference system, fact 52",
        (
            _FILE + "test_events_are_read_in_the_order_they_were_written",
            "tests/core/dialogue/test_events.py::test_an_event_is_read_as_it_was_written",
        ),
    ),
    Row(
        "dialogue:journal:unknown",
        "Of a run that is unknown there is nothing.",
        "reference system, fact 53",
        (
            _JOURNAL + "test_an_abort_and_a_cancellation_are_recorded_and_the_run_goes_on",
            _FILE + "test_events_are_read_in_the_order_they_were_written",
        ),
    ),
    Row(
        "dialogue:journal:torn",
        "A journal whose writer died is read up to its last whole event, and written on.",
        "reference system, fact 55 (there lines of JSON, here transactions)",
        (_KILLED + "test_a_driver_survives_a_kill_at_every",),
    ),
    Row(
        "dialogue:journal:halts",
        "A run that was aborted, was late or failed goes on, and so does one at a limit that was "
        "raised; one that a predicate halted, or whose limit stands, is told again without a call.",
        "reference system, section 5, opportunity 9 (there every halt is final)",
        (
            _GOES_ON,
            _JOURNAL + "test_limits_that_were_raised_are_gone_beyond",
            _JOURNAL + "test_an_abort_and_a_cancellation_are_recorded_and_the_run_goes_on",
            _JOURNAL + "test_a_run_that_is_complete_is_told_again_and_nobody_is_called",
            _JOURNAL + "test_the_predicate_is_asked_before_anybody_speaks_on",
            _HALT + "test_it_goes_on_after_what_was_no_last_word",
        ),
    ),
    Row(
        "dialogue:journal:predicate",
        "A run that goes on asks its predicate before anybody speaks.",
        "reference system, section 5, opportunity 9 (there it speaks once more)",
        (_JOURNAL + "test_the_predicate_is_asked_before_anybody_speaks_on",),
    ),
    Row(
        "dialogue:journal:one-writer",
        "A run has one writer at a time; one that died holds nobody up.",
        "reference system, section 5, opportunity 9",
        (
            _JOURNAL + "test_a_run_has_one_writer_at_a_time_and_others_run_beside_it",
            _FILE + "test_a_writer_that_was_overtaken_cannot_write",
            _FILE + "test_a_writer_in_another_process_holds_it_until_it_dies",
            _KILLED + "test_a_driver_survives_a_kill_at_every",
        ),
    ),
    Row(
        "dialogue:journal:nested",
        "What is spoken within is kept under its parent, and goes on with it.",
        "reference system, section 5, opportunity 9 (there it is not kept)",
        (
            _NESTED + "test_it_is_kept_under_its_parent_and_goes_on_with_it",
            _KILLED + "test_a_driver_survives_a_kill_at_every",
        ),
    ),
    Row(
        "dialogue:journal:credential",
        "A run that goes on still forwards the credential of who pays, which is in no journal.",
        "issue 15, journal, R5",
        (_JOURNAL + "test_a_run_that_was_paid_by_somebody_is_not_gone_on_with_without_him",),
    ),
    Row(
        "dialogue:journal:owner",
        "A run is that of the caller who began it: another one who names it is shown nothing of "
        "it, and has one of its own.",
        "security.md A41, A42",
        (
            _JOURNAL + "test_a_run_is_that_of_its_caller_whoever_else_names_it",
            _JOURNAL + "test_who_has_the_file_is_told_whose_runs_are_in_it",
        ),
    ),
)

_IN_FRONT = (
    Row(
        "dialogue:middleware:stamps",
        "In front of somebody else's application every stamp of a request is read strictly and "
        "bounded, and its travel document is in the scope; what is no HTTP request passes.",
        "issue 15, middleware",
        (
            _FRONT + "test_the_travel_document_of_a_request_is_in_its_scope",
            _FRONT + "test_a_request_without_stamps_begins_a_run",
            _FRONT + "test_what_no_gateway_would_read_is_refused",
            _FRONT + "test_what_is_no_http_request_passes_as_it_came",
        ),
    ),
    Row(
        "dialogue:middleware:depth",
        "A chain that is too deep is refused with 429 before the application sees it, and a call "
        "that would be too deep before anything is sent.",
        "issue 15, middleware",
        (
            _FRONT + "test_a_chain_that_is_too_deep_is_429_and_the_application_does_not_see_it",
            _FRONT + "test_the_environment_has_the_last_word_about_depth",
            _FRONT + "test_where_no_hop_is_left_nothing_is_sent",
            _APPS + "test_an_application_is_not_asked_by_a_chain_that_is_too_deep",
        ),
    ),
    Row(
        "dialogue:middleware:chain",
        "Calls that are made while a request is answered go on with its chain: run, one hop more, "
        "parent turn, time, and the payer's credential to listed agents alone.",
        "issue 15, middleware; R5",
        (
            _FRONT + "test_calls_made_inside_go_on_with_the_chain",
            _FRONT + "test_a_forwarded_credential_leaves_to_those_alone_who_are_listed",
            _FRONT + "test_a_call_names_no_other_run_and_has_no_more_time_than_its_request",
            _APPS + "test_what_an_application_calls_is_the_next_turn_of_the_run",
        ),
    ),
    Row(
        "dialogue:middleware:callers",
        "Two callers who choose the same run and turn are two, at whom the application calls and "
        "in its journals.",
        "R6; A41, A42",
        (_FRONT + "test_two_callers_with_the_same_ids_are_two_and_one_caller_is_one",),
    ),
    Row(
        "dialogue:middleware:conversation",
        "A conversation that is run while a request is answered goes on with its chain, its payer "
        "and its time; what it is told beside can only say more.",
        "issue 15, middleware",
        (
            _FRONT + "test_a_conversation_inside_goes_on_with_the_chain",
            _FRONT + "test_a_conversation_inside_is_bounded_by_its_request",
        ),
    ),
    Row(
        "dialogue:turn:chain",
        "What the code of an agent calls by itself is a call out of its turn: the same run, one "
        "hop more, an id of its own, noted with its end; in threads and as a tool of a loop too.",
        "issue 15, nesting and visit",
        (
            _TURN + "test_what_an_agent_connects_to_is_a_call_out_of_its_turn",
            _TURN + "test_a_driver_in_a_turn_goes_on_with_its_chain",
            _TURN + "test_no_two_calls_out_of_a_turn_share_an_id_and_a_rerun_makes_the_same",
            _TURN + "test_functions_that_are_tools_of_a_loop_go_on_with_its_turn",
            _WIRE + "test_what_a_function_connects_to_goes_on_with_the_run",
            _FANS + "test_what_an_agent_connects_to_by_itself_is_a_hop_of_its_run",
        ),
    ),
    Row(
        "dialogue:turn:last-hop",
        "The last hop dials nobody, by whatever door: through the gateway, past it, by a driver, "
        "in a thread, as a tool. Nor does a call come back into its chain, or outlive its agent.",
        "issue 15, nesting; A47",
        (
            _TURN + "test_the_last_hop_dials_nobody_whatever_its_code_says",
            _TURN + "test_a_skill_goes_on_with_its_turn_too",
            _TURN + "test_who_has_ended_calls_nobody_and_no_turn_names_another_run",
            _FANS + "test_no_door_of_the_last_hop_leads_out",
            _LET_OUT + "test_a_call_past_the_gateway_does_not_come_back_into_its_chain",
            _LOOP + "test_a_function_of_an_engine_by_itself_dials_nobody_at_the_last_hop",
        ),
    ),
    Row(
        "dialogue:turn:payer",
        "What an agent's code or a function of a driver calls is sent the payer's credential where "
        "it is listed for it, and otherwise nothing is sent.",
        "issue 15, nesting; R5",
        (
            _WIRE + "test_the_credential_leaves_to_an_address_that_is_listed_and_no_other",
            _TURN + "test_a_payers_credential_leaves_to_nobody_whom_the_operator_has_not_listed",
            _TURN + "test_nor_does_a_driver_in_a_turn_send_it",
            _LET_OUT + "test_a_callee_is_listed_by_its_name_at_the_place_that_is_written_down",
        ),
    ),
)

_REPLAYED = (
    Row(
        "dialogue:replay:offline",
        "A recorded run runs again from its journal with no call out, byte-equal; what differs is "
        "told by its turn and event.",
        "issue 15, replay",
        (
            _AGAIN + "test_a_recorded_run_says_the_same_with_everybody_gone",
            _AGAIN + "test_a_loop_runs_again_on_what_its_model_and_its_tools_said",
            _AGAIN + "test_what_was_streamed_asked_for_or_failed_comes_again",
            _AGAIN + "test_a_refusal_by_depth_comes_again",
            _AGAIN + "test_what_depends_on_chance_is_told_by_turn_and_event",
            _AGAIN + "test_what_would_leave_is_refused_and_told",
            _AGAIN + "test_code_that_has_changed_is_told_where_it_differs",
            _AGAIN + "test_nothing_is_written_by_a_replay",
            _AGAIN + "test_runs_on_postgresql_are_read_while_their_gateway_goes_on",
            _LOOPS + "test_an_approved_call_is_replayed_from_its_record_and_not_run_again",
            _AT_ONCE + "test_what_an_agent_has_begun_does_not_leave_after_its_turn_either",
        ),
    ),
    Row(
        "dialogue:replay:at-once",
        "Calls that were under way at once are answered as they were, whoever was cancelled; each "
        "caller's calls from its own record.",
        "issue 15, replay and fan-out",
        (
            _AT_ONCE + "test_calls_that_were_made_at_once_are_answered_as_they_were",
            _RECORD + "test_two_callers_that_share_a_run_are_each_answered_from_their_own_record",
        ),
    ),
    Row(
        "dialogue:replay:swap",
        "One participant can be asked anew, after a yes to what it may cost; what differs is told.",
        "issue 15, replay",
        (
            _AGAIN + "test_one_participant_can_be_asked_anew_and_the_rest_says_what_it_said",
            _AGAIN + "test_who_took_no_part_cannot_be_swapped",
            _AT_ONCE + "test_who_is_asked_anew_in_a_conversation_is_asked_each_time",
            _AT_ONCE + "test_what_is_for_somebody_who_is_asked_anew_is_refused_without",
        ),
    ),
    Row(
        "dialogue:replay:export",
        "A run is written out whole, without secrets, as lines of JSON and as OTLP JSON.",
        "issue 15, replay",
        (
            _AGAIN + "test_a_run_is_written_out_whole_and_without_secrets",
            _AGAIN + "test_a_run_is_written_as_spans_of_one_trace",
        ),
    ),
)

_GATEWAYS = (
    Row(
        "dialogue:gateway:agent",
        "A conversation is an Agent: named in TOML or Python, asked as any other, nested in "
        "others; each turn of it is a call out of its own turn.",
        "issue 15, conversations",
        (
            _HOSTED + "test_each_turn_is_a_call_of_the_turn_and_a_repeat_speaks_none_again",
            _HOSTED + "test_a_conversation_takes_part_in_another_one_hop_deeper",
            _HOSTED + "test_functions_and_conversations_of_python_take_part",
            _HOSTED + "test_it_runs_as_a_task",
        ),
    ),
    Row(
        "dialogue:gateway:limits",
        "It ends by turns, spend and predicate; who fails halts it, is left out or spoken for.",
        "issue 15, conversations",
        (
            _HOSTED + "test_it_ends_when_so_much_is_spent",
            _HOSTED + "test_a_predicate_ends_it",
            _HOSTED + "test_who_fails_is_left_out_or_spoken_for_or_ends_it",
        ),
    ),
    Row(
        "dialogue:gateway:loops",
        "A conversation that leads back to itself is refused.",
        "issue 15, nesting",
        (_HOSTED + "test_one_that_leads_back_to_itself_is_refused_as_a_loop",),
    ),
    Row(
        "dialogue:gateway:questions",
        "What a participant asks for, the conversation waits for; answered, it goes on there.",
        "issue 15, conversations",
        (
            _HOSTED + "test_what_a_participant_asks_for_the_turn_asks_for_and_then_goes_on",
            _HOSTED + "test_functions_ask_for_themselves_one_after_the_other",
        ),
    ),
    Row(
        "dialogue:gateway:crash",
        "After a kill at any crash point the transcript is the same, who was recorded has spoken "
        "once, and it is billed once; a task is driven on by the gateway that starts, or another.",
        "issue 15, must show 2",
        (
            _HOST_KILLED + "test_a_conversation_survives_a_kill_at",
            _HOST_KILLED + "test_these_are_all_the_points_that_a_conversation_passes",
            _HOST_KILLED
            + "test_a_conversation_that_is_a_task_is_driven_on_by_the_gateway_that_starts",
            _REPLICAS + "test_the_conversation_of_a_gateway_that_died_is_driven_on_by_another",
            _HOST_KILLED + "test_who_was_left_out_and_what_a_function_said_is_kept_over_kills",
        ),
    ),
    Row(
        "dialogue:gateway:visit",
        "An agent has others converse within its turn, journaled under it.",
        "issue 15, nesting and visit",
        (
            _HOSTED + "test_a_visit_has_others_converse",
            _NESTED + "test_a_function_has_others_converse_kept_under_its_turn",
        ),
    ),
    Row(
        "dialogue:command",
        "A conversation in a file is run from the command line, shown as it goes, aborted by "
        "Ctrl-C and gone on with.",
        "issue 15, conversations",
        (
            _COMMAND + "test_turns_are_printed_as_they_are_spoken",
            _COMMAND + "test_ctrl_c_aborts_and_says_how_to_go_on",
            _COMMAND + "test_a_run_goes_on_by_the_name_that_people_give_it",
            _COMMAND + "test_nothing_begins_without_what_it_begins_with",
            _COMMAND + "test_what_the_file_of_a_person_does_wrong_is_told_without_a_traceback",
        ),
    ),
)

ROWS = (
    *_IN_FRONT,
    *_REPLAYED,
    *_DEFINITION,
    *_GATEWAYS,
    *_RUNNING,
    *_CALL_POLICY,
    *_PROPAGATION,
    *_NESTING,
    *_JOURNALS,
)
