"""SAMVAD 1.2: delegation, tasks, callbacks and budgets, what else is told of them, and R13."""

from tests.requirements.rows import Divergence, Row

_ENVELOPE = "tests/wire/dialects/samvad/test_envelope.py::"
_RECORDED = "tests/interop/recorded/test_recorded.py::"
_VALID = "tests/wire/dialects/samvad/test_schemas.py::"
_REFUSALS = "tests/wire/dialects/samvad/test_refusals.py::"
_CARD = "tests/wire/dialects/samvad/test_card.py::"
_USAGE = "tests/runtime/turns/test_recording_usage.py::"
_QUOTA = "tests/guards/limits/test_quota.py::"
_ADMISSION = "tests/guards/admission/test_gate_signed.py::"
_RATES = "tests/security/signed/test_rates.py::"
_BUDGETS = "tests/replicas/test_budgets.py::"

_CLAIM = "tests/wire/dialects/samvad/test_claim.py::"
_GUARD = "tests/guards/caller/test_delegation.py::"
_GATE = "tests/security/callers/test_delegation.py::"
_RULES = "tests/core/people/test_delegation.py::"
_TOKENS = "tests/wire/crypto/test_delegation.py::"
_ONWARD = "tests/interop/samvad/test_delegation.py::"
_CLIENT = "tests/runtime/client/test_tasks.py::"
_SERVED = "tests/gateway/test_tasks.py::"
_SDK_CLIENT = "tests/interop/samvad/test_tasks_sdk_client.py::"
_BETWEEN = "tests/interop/samvad/test_tasks_carnets.py::"
_SDK_SERVER = "tests/interop/samvad/test_tasks_server.py::"
_WAITING = "tests/stores/calls/test_tasks.py::"
_FORGETTING = "tests/stores/upkeep/test_retention.py::"
_KILLED = "tests/crash/points/test_task_points.py::"
_RESTARTS = "tests/gateway/test_tasks_restarts.py::"
_REPLICAS = "tests/replicas/tasks/test_tasks.py::"
_WORKER = "tests/runtime/tasks/test_worker.py::"
_GRANTED = "tests/cli/trust/test_delegate.py::"
_STEPS = "tests/stores/calls/test_steps.py::"
_NAMED = "tests/security/test_callbacks.py::"
_RECEIVERS = "tests/faults/test_receivers.py::"
_CALLBACK_TESTS = "tests/runtime/webhooks/test_callbacks.py::"
_PROVED = "tests/runtime/webhooks/test_payload.py::"
_OUTBOX = "tests/runtime/webhooks/test_dispatcher.py::"
_SCHEDULE_TESTS = "tests/runtime/webhooks/test_schedule.py::"

_ISSUED = "test_a_token_is_that_of_the_sdk_byte_for_byte"
_JUDGED = "test_a_token_is_judged_as_the_sdk_judges_it"
_CHAINED = "test_a_token_is_handed_on_as_the_sdk_does_it"
_INWARD = "test_a_callback_leads_to_no_host_that_the_sdk_calls_private"

_DELEGATING = (
    Row(
        "samvad:delegation:null",
        "delegationToken is null when nothing is delegated.",
        "004 request envelope, delegationToken",
        (
            _ENVELOPE + "test_null_is_absent_where_a_field_may_be_absent",
            "tests/gateway/dialects/test_samvad_sentences.py::test_null_is_absent_where_a_field_may_be_absent",
        ),
    ),
    Row(
        "samvad:delegation:jwt",
        "delegationToken is an EdDSA JWT.",
        "004 request envelope, delegationToken",
        (
            _RECORDED + _ISSUED,
            _RECORDED + _JUDGED,
            _GATE + "test_tokens_of_the_real_sdk_are_taken",
            _GATE + "test_the_list_of_attacks_is_refused",
        ),
    ),
    Row(
        "samvad:delegation:issuer",
        "A token is verified with the key of its issuer, which must be known.",
        "reference system, section 8",
        (
            _GUARD + "test_a_token_that_holds_is_kept_with_the_call",
            _GUARD + "test_an_issuer_that_nobody_knows_is_not_looked_for",
            _GATE + "test_an_issuer_that_nobody_knows_is_not_fetched",
            _GATE + "test_a_key_that_is_ended_ends_what_it_signed",
        ),
    ),
    Row(
        "samvad:delegation:subject",
        "A token is good for its subject alone: sub is the sender.",
        "reference system, section 8; A29",
        (
            _GUARD + "test_a_token_is_good_for_whom_it_was_given_to",
            _GATE + "test_a_token_for_another_agent_or_of_somebody_else_is_refused",
        ),
    ),
    Row(
        "samvad:delegation:end",
        "A token has an end; one that is expired, or was issued in the future, is AUTH_FAILED.",
        "reference system, section 8",
        (
            _RECORDED + _JUDGED,
            _RULES + "test_a_link_whose_time_is_wrong_is_refused_and_named",
            _RULES + "test_a_minute_is_forgiven_between_two_clocks_but_not_at_the_end",
            _GUARD + "test_an_expired_token_is_refused_also_when_it_held_before",
            _GATE + "test_an_expired_link_is_named",
        ),
    ),
    Row(
        "samvad:delegation:endless",
        "A token without an end is taken.",
        "reference system, section 8 (one SDK does so)",
        (
            _TOKENS + "test_the_list_of_attacks_is_refused",
            _GATE + "test_the_list_of_attacks_is_refused",
        ),
        Divergence("R13", "A delegation narrows in time as well: exp is required."),
    ),
    Row(
        "samvad:delegation:depth",
        "maxDepth counts the calls that may follow; none left is DELEGATION_EXCEEDED.",
        "reference system, sections 8 and 20",
        (
            _RECORDED + _JUDGED,
            _GUARD + "test_a_token_without_a_hop_left_is_refused",
            _GUARD + "test_the_last_depth_is_lowered_and_never_raised",
            _GATE + "test_one_hop_is_one_call",
        ),
    ),
    Row(
        "samvad:delegation:scope-form",
        "A scope is a list of skills.",
        "reference system, section 8; R13",
        (
            _RECORDED + _JUDGED,
            _TOKENS + "test_a_scope_is_a_list_or_words",
            _GATE + "test_tokens_of_the_real_sdk_are_taken",
        ),
        Divergence("R13", "The text writes it as words, the SDKs as a list: both are read."),
    ),
    Row(
        "samvad:delegation:scope",
        "A token allows the skills of its scope; another one is DELEGATION_EXCEEDED, 400.",
        "reference system, sections 5, 8 and 20",
        (
            _GUARD + "test_the_scope_is_of_skills_and_talking_is_one",
            _GATE + "test_a_skill_outside_of_the_scope_is_refused",
        ),
    ),
    Row(
        "samvad:delegation:audience",
        "A token is for whoever it is shown to.",
        "reference system, section 8 (one SDK refuses aud, the other ignores it)",
        (
            _GUARD + "test_a_token_is_good_at_whom_it_was_made_for",
            _GATE + "test_a_token_for_another_agent_or_of_somebody_else_is_refused",
        ),
        Divergence("R13", "A token that names its audience is good for that one alone."),
    ),
    Row(
        "samvad:delegation:chain",
        "A token can be handed on, narrower and one hop shorter.",
        "reference system, section 8",
        (
            _RECORDED + _CHAINED,
            _RULES + "test_a_link_that_grants_more_is_refused_by_the_name_of_the_claim",
            _RULES + "test_a_chain_has_no_more_hops_than_its_first_link_gave",
            _ONWARD + "test_the_real_server_of_the_sdk_takes_what_goes_on",
            _GRANTED + "test_what_is_derived_is_the_same_and_less",
            _GRANTED + "test_what_would_be_wider_is_not_made",
        ),
    ),
    Row(
        "samvad:delegation:proof",
        "A token that was handed on carries no proof of the one before it.",
        "reference system, section 8",
        (
            _TOKENS + "test_a_parent_goes_along_and_is_read_with_its_child",
            _GUARD + "test_every_link_of_a_chain_is_verified",
            _ONWARD + "test_a_carnet_is_shown_the_whole_chain_and_verifies_it",
            _ONWARD + "test_a_token_of_an_sdk_goes_on_by_our_word",
        ),
        Divergence(
            "R13",
            "Its receiver could only believe the last issuer. Ours carries its parent, and every "
            "link is verified and must be narrower than the one before it.",
        ),
    ),
    Row(
        "samvad:delegation:outlives",
        "A token that is handed on holds for fifteen minutes, whatever is left of its parent.",
        "reference system, section 8",
        (
            _RECORDED + "test_a_token_that_is_handed_on_ends_with_its_parent",
            _ONWARD + "test_a_long_token_goes_on_for_fifteen_minutes",
        ),
        Divergence("R13", "A delegation only narrows: it ends with its parent at the latest."),
    ),
    Row(
        "samvad:delegation:narrows",
        "A token only narrows: without one the sender may do what its trust allows.",
        "reference system, section 8; R13",
        (
            _GUARD + "test_without_a_token_nothing_is_judged",
            _GUARD + "test_the_budget_and_the_time_are_the_smaller_ones",
            _GUARD + "test_a_call_carries_its_delegation_and_so_do_its_children",
            _ONWARD + "test_a_skill_outside_of_the_scope_is_not_asked_for_elsewhere",
        ),
    ),
    Row(
        "samvad:delegation:sdk",
        "Tokens that the SDK makes are accepted.",
        "R13",
        (
            _TOKENS + "test_tokens_of_the_real_sdk_are_read",
            _TOKENS + "test_the_real_sdk_verifies_what_we_write_for_it",
            _GATE + "test_tokens_of_the_real_sdk_are_taken",
        ),
    ),
    Row(
        "samvad:delegation:attached",
        "A client can attach a token.",
        "reference system, sections 8 and 18 (no SDK can)",
        (
            _CLIENT + "test_a_delegation_of_the_client_goes_along_with_calls_too",
            _CLIENT + "test_a_callback_and_a_delegation_go_along_and_a_carnet_gives_its_secret",
            _GATE + "test_a_token_that_the_operator_made_is_taken_where_it_says",
        ),
    ),
)

_TASKS = (
    Row(
        "samvad:task:envelope",
        "A task is asked for with the envelope of every other mode.",
        "004 introduction",
        (
            _ENVELOPE + "test_the_same_envelope_serves_every_mode",
            _SERVED + "test_a_task_has_the_mode_of_its_endpoint_and_its_callback_is_for_it_alone",
        ),
    ),
    Row(
        "samvad:task:accepted",
        "POST /agent/task answers 202 with a task id at once.",
        "reference system, sections 1, 9 and 20",
        (
            _SERVED + "test_a_task_is_accepted_at_once_and_its_result_is_polled",
            _SERVED + "test_the_default_agent_takes_tasks_at_the_root",
            _SERVED + "test_the_same_trace_and_span_are_the_same_task_and_run_once",
        ),
    ),
    Row(
        "samvad:task:refused",
        "What is wrong with a request, its payload included, is told at once and not by a failed "
        "task.",
        "reference system, section 9 (neither SDK does so)",
        (
            _SERVED + "test_a_payload_that_does_not_fit_is_refused_at_once_and_is_no_task",
            _SDK_CLIENT + "test_a_payload_that_does_not_fit_is_refused_at_once",
            _SERVED + "test_a_task_of_a_token_is_judged_before_it_is_accepted",
        ),
    ),
    Row(
        "samvad:task:status",
        "GET /agent/task/{id} tells pending, running, done or failed.",
        "reference system, sections 1, 9 and 20",
        (
            _SERVED + "test_a_task_is_accepted_at_once_and_its_result_is_polled",
            _SERVED + "test_a_task_that_fails_says_so_in_one_of_the_nine_codes_and_nothing_of_why",
        ),
    ),
    Row(
        "samvad:task:unknown",
        "An id that nobody has is 404 with the error as plain text in JSON.",
        "reference system, section 1",
        (
            _SERVED + "test_unknown_and_foreign_ids_are_answered_with_the_same_bytes",
            _SDK_CLIENT + "test_a_task_is_not_found_under_another_agent_nor_by_a_guess",
        ),
    ),
    Row(
        "samvad:task:schema",
        "A record is valid against the schema of the protocol, which those of the SDKs are not.",
        "task schema; reference system, section 9",
        (
            _VALID + "test_the_records_of_our_tasks_are_valid_against_the_schema",
            _SERVED + "test_a_task_is_accepted_at_once_and_its_result_is_polled",
            _SERVED + "test_a_task_that_fails_says_so_in_one_of_the_nine_codes_and_nothing_of_why",
        ),
    ),
    Row(
        "samvad:task:progress",
        "progress is from 0 to 1, and told by the handler.",
        "task schema; reference system, sections 9 and 18",
        (
            _BETWEEN + "test_a_task_of_a_carnet_tells_its_progress_and_is_cancelled",
            _WAITING + "test_progress_is_told_by_the_owner_alone",
            _VALID + "test_the_records_of_our_tasks_are_valid_against_the_schema",
            _WORKER + "test_progress_is_told_and_the_last_word_is_always_written",
        ),
    ),
    Row(
        "samvad:task:poll",
        "Whoever knows the id of a task may poll it; signed polling can be asked for.",
        "reference system, sections 1 and 9; A67",
        (
            _SERVED + "test_a_task_is_accepted_at_once_and_its_result_is_polled",
            _SERVED + "test_where_polling_is_signed_others_are_told_nothing",
            _BETWEEN + "test_a_task_of_a_person_is_polled_with_a_signature_where_that_is_asked_for",
        ),
    ),
    Row(
        "samvad:task:retention",
        "A finished task can be read for at least an hour, and a running one is never forgotten.",
        "reference system, sections 9 and 20",
        (
            _WAITING + "test_an_ended_task_is_forgotten_in_its_time_and_its_turn_is_not",
            _FORGETTING + "test_an_ended_task_is_forgotten_by_the_upkeep_after_a_day",
            _RESTARTS + "test_a_task_is_forgotten_when_its_time_has_passed",
        ),
    ),
    Row(
        "samvad:task:durable",
        "A task outlives the process that accepted it, and what it has done is not done again.",
        "reference system, section 18; F28",
        (
            _WAITING + "test_tasks_of_a_worker_that_is_gone_wait_again",
            _WAITING + "test_a_released_task_waits_again_and_goes_on_to_hold_what_it_held",
            _STEPS + "test_the_steps_of_a_task_are_there_when_it_runs_again",
            _KILLED + "test_f28_a_task_goes_on_after_a_restart_and_its_callback_arrives",
            _KILLED + "test_a_step_that_is_kept_is_not_taken_again_after_a_kill_at",
            _RESTARTS + "test_a_task_outlives_kill_9_and_its_steps_are_done_once",
            _RESTARTS + "test_a_gateway_that_stops_lets_its_tasks_go_and_the_next_one_runs_them",
            _REPLICAS + "test_the_tasks_of_a_gateway_that_died_are_run_by_another",
        ),
    ),
    Row(
        "samvad:task:cancel",
        "Tasks can be listed and cancelled by their owner.",
        "reference system, section 18",
        (
            _SERVED + "test_a_running_task_is_cancelled_by_its_sender",
            _SERVED + "test_only_who_signs_now_may_cancel",
            _SERVED + "test_an_operator_lists_shows_and_cancels_tasks",
            _SERVED + "test_a_token_without_the_right_sees_no_tasks_and_one_with_it_its_own",
            _WORKER + "test_a_running_task_is_stopped_and_its_thread_is_told",
            _REPLICAS + "test_a_task_is_cancelled_at_any_gateway",
        ),
    ),
    Row(
        "samvad:task:bounded",
        "Tasks that run at once, and those that wait, are bounded.",
        "reference system, section 18",
        (
            _SERVED + "test_a_sender_has_so_many_unfinished_tasks_at_an_agent",
            _WAITING + "test_the_oldest_are_leased_first_and_of_each_agent_as_many_as_it_may",
            _WORKER + "test_no_more_run_at_once_than_may_in_all_and_of_one_agent",
        ),
    ),
    Row(
        "samvad:task:sdk",
        "The SDK's client polls a task of ours to its end, and we one of its server's.",
        "reference system, section 9",
        (
            _SDK_CLIENT + "test_the_default_agent_does_a_task_at_the_root",
            _SDK_CLIENT + "test_a_named_agent_does_a_task_under_its_prefix",
            _SDK_SERVER + "test_a_task_at_the_real_server_gives_its_result",
            _SDK_SERVER + "test_a_task_that_fails_at_the_real_server_is_an_error_with_its_code",
        ),
    ),
)

_CALLBACKS = (
    Row(
        "samvad:envelope:callback",
        "callbackUrl is for the mode async alone.",
        "004 request envelope, callbackUrl",
        (
            _ENVELOPE + "test_a_callback_is_for_the_mode_async_alone",
            _CLAIM + "test_a_task_may_name_a_callback_and_nothing_else_may",
            _NAMED + "test_a_callback_is_for_tasks_alone",
        ),
    ),
    Row(
        "samvad:envelope:callback-delivery",
        "The result of a task is delivered to callbackUrl.",
        "004 request envelope, callbackUrl",
        (_RECEIVERS + "test_the_end_of_a_task_is_told_to_its_callback_whichever_it_is",),
    ),
    Row(
        "samvad:webhook:body",
        "A callback is a response envelope, of the failed tasks too.",
        "reference system, sections 9 and 21 (the SDKs tell successes alone)",
        (
            _CALLBACK_TESTS + "test_a_delivery_says_what_a_caller_who_waited_would_have_got",
            _CALLBACK_TESTS + "test_a_failure_is_told_as_well_and_keeps_the_agents_words_to_itself",
            _CALLBACK_TESTS + "test_a_delivery_fits_our_schema_of_the_protocol",
            _RECEIVERS + "test_the_end_of_a_task_is_told_to_its_callback_whichever_it_is",
        ),
    ),
    Row(
        "samvad:webhook:signed",
        "A callback is signed, so that its receiver can trust it.",
        "reference system, section 9 (neither SDK signs)",
        (
            _PROVED + "test_the_sdk_verifies_the_signature_and_the_digest",
            _PROVED + "test_the_package_of_the_standard_verifies_it",
            _PROVED + "test_the_package_of_the_standard_refuses_what_is_not_ours",
            _RECEIVERS
            + "test_f29_what_arrives_verifies_with_the_secret_and_the_key_that_the_commands_show",
        ),
    ),
    Row(
        "samvad:webhook:guarded",
        "A callback leads over https to a public host; anything else is SCHEMA_INVALID.",
        "reference system, sections 9 and 20; A63",
        (
            _RECORDED + _INWARD,
            _NAMED + "test_a63_the_whole_list_is_refused_before_anything_is_claimed",
            _CALLBACK_TESTS + "test_a_name_that_leads_inward_is_refused",
            _OUTBOX + "test_a63_a_name_that_is_public_when_it_is_named_and_inward_when_dialled",
        ),
        Divergence(
            "R14",
            "The SDKs look at the text alone and miss some spellings of loopback. Every address "
            "that is learned passes the egress guard, when it is given and when it is called.",
        ),
    ),
    Row(
        "samvad:webhook:again",
        "A callback that fails is tried again by a schedule, each time with the same id.",
        "reference system, section 9 (the SDKs try once); D7, F29",
        (
            _SCHEDULE_TESTS + "test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead",
            _SCHEDULE_TESTS + "test_every_attempt_has_the_same_id_and_a_time_of_its_own",
            _RECEIVERS + "test_f29_each_receiver_gets_what_it_can_take_and_none_holds_up_another",
        ),
    ),
    Row(
        "samvad:webhook:redirects",
        "No redirect is followed.",
        "reference system, section 9 (one SDK follows them)",
        (
            _SCHEDULE_TESTS + "test_a_redirect_is_a_failure_that_says_so",
            _OUTBOX + "test_a63_a_redirect_inward_is_not_followed",
        ),
    ),
)

_BUDGETING = (
    Row(
        "samvad:budget:calls",
        "requestsPerMinute and requestsPerSender are counted together for all processes.",
        "reference system, sections 1, 6 and 20",
        (
            _RECORDED + "test_calls_and_tokens_are_counted_as_the_sdk_counts_them",
            _BUDGETS + "test_the_calls_of_a_minute_are_counted_over_all_gateways",
            _ADMISSION + "test_a_rate_is_each_senders_own_and_burns_no_nonce",
        ),
    ),
    Row(
        "samvad:budget:tokens",
        "A sender that has used its tokens of the day is refused until midnight in UTC.",
        "reference system, sections 6 and 20",
        (
            _RECORDED + "test_calls_and_tokens_are_counted_as_the_sdk_counts_them",
            _QUOTA + "test_a_sender_that_has_used_its_tokens_is_refused_until_midnight",
            _QUOTA + "test_tokens_are_each_senders_own_and_each_agents",
            _BUDGETS + "test_tokens_are_counted_over_all_gateways_until_the_day_ends",
            _BUDGETS + "test_what_runs_at_once_at_all_gateways_is_counted_whole",
        ),
    ),
    Row(
        "samvad:budget:reported",
        "What a call has used is what its handler reports.",
        "reference system, section 6 (in neither SDK it can)",
        (
            _USAGE + "test_what_is_reported_is_added_up_recorded_and_priced",
            _USAGE + "test_what_was_used_before_it_failed_is_used_and_costs_nothing",
            _USAGE + "test_what_is_called_in_process_uses_the_quota_of_its_caller",
            _QUOTA + "test_calls_made_in_process_use_the_quota_of_the_call_they_are_made_for",
            _BUDGETS + "test_tokens_are_counted_over_all_gateways_until_the_day_ends",
        ),
    ),
    Row(
        "samvad:budget:card",
        "tokensPerSenderPerDay stands in the card, where there is such a budget.",
        "reference system, section 1; card schema",
        (
            _BUDGETS + "test_the_card_says_what_a_sender_may_use",
            _BUDGETS + "test_what_an_agent_sets_comes_before_what_is_set_for_all",
            _CARD + "test_the_limits_are_told_and_an_absent_one_is_not",
            _VALID + "test_our_card_is_valid_against_the_schema",
        ),
    ),
    Row(
        "samvad:budget:retry-after",
        "Both refusals with 429 say when to come back.",
        "reference system, section 5; R12",
        (
            _REFUSALS + "test_every_429_says_when_to_come_back",
            _RATES + "test_a_sender_spends_its_own_quota_and_nobody_elses",
            _BUDGETS + "test_tokens_are_counted_over_all_gateways_until_the_day_ends",
        ),
    ),
)

_DISCOVERY = (
    Row(
        "samvad:registry",
        "A registry can be asked for agents and told of one's own.",
        "reference system, section 13",
        (),
        Divergence(
            "R14",
            "An agent is found by its domain, and its card is fetched from there: nobody else is "
            "asked who it is. A directory of agents is another service; what it would read of "
            "ours is the card that we publish.",
        ),
    ),
)

ROWS = (*_DELEGATING, *_TASKS, *_CALLBACKS, *_BUDGETING, *_DISCOVERY)
