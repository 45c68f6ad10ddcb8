"""Models behind agents: what callers can make of them, and what is asked of them again."""

from tests.requirements.rows import Row

_MODELS = "tests/security/test_models.py::"
_BREAKER = "tests/runtime/wrappers/test_breaker_callers.py::"
_PROFILE = "tests/wire/travel/test_profile.py::"
_AGAIN = "tests/faults/test_models.py::"
_RETRYING = "tests/runtime/wrappers/test_retrying.py::"
_MEMBERS = "tests/wire/dialects/openai/test_members.py::"

ATTACKS = (
    Row(
        "security:a90:members",
        "A member of a request that the operator does not let pass reaches no model, directly, "
        "as a task or over another gateway, and is named to the caller.",
        "attack A90; R19",
        (
            _MODELS + "test_a_member_that_is_not_let_pass_never_reaches_the_model_and_is_named",
            _MODELS
            + "test_a_member_of_another_organisations_caller_does_not_reach_the_model_either",
            _MODELS + "test_a_task_says_what_does_not_pass_when_it_is_accepted",
            _MODELS + "test_a_repeat_says_the_same",
            _MODELS + "test_a_name_that_no_header_can_carry_is_told_as_other",
            _MODELS + "test_a_tool_that_the_provider_would_run_is_no_function_and_stays_behind",
            _MODELS + "test_an_operator_may_let_every_member_pass",
            _MODELS + "test_an_operator_may_let_pass_what_is_listed_alone",
            _MEMBERS + "test_what_is_kept_and_what_is_removed_are_the_whole_request",
        ),
    ),
    Row(
        "security:a91:system",
        "Callers' system and developer messages do not reach an agent that has one of its own, "
        "unless its operator lets them pass after it; the answer says that they were removed.",
        "attack A91; R58",
        (
            _MODELS + "test_callers_do_not_instruct_an_agent_that_has_a_system_message_of_its_own",
            _MODELS + "test_callers_of_another_organisation_do_not_either",
            _MODELS + "test_callers_system_messages_come_after_ours_where_they_are_let_pass",
            _MODELS + "test_a_bare_model_is_instructed_by_its_callers",
        ),
    ),
    Row(
        "security:a92:circuit",
        "Failures that one caller's requests bring about leave a model alone for this caller, and "
        "for nobody else; a peer is one caller, and what two callers meet counts for all.",
        "attack A92",
        (
            _MODELS + "test_what_one_callers_requests_meet_closes_a_model_to_nobody_else",
            _MODELS + "test_what_a_peers_requests_meet_closes_a_model_to_nobody_else",
            _MODELS + "test_what_two_callers_meet_closes_a_model_to_all",
            _BREAKER + "test_whom_one_organisation_vouches_for_are_one_caller",
            _BREAKER + "test_one_callers_failing_probe_keeps_it_closed_to_nobody",
        ),
    ),
    Row(
        "security:a93:trace",
        "A proxy between two Carnets that writes or takes away a trace breaks no signed call.",
        "attack A93; R9",
        (
            "tests/travel/test_middlebox.py::test_a_tracing_proxy_breaks_no_call",
            _PROFILE + "test_a_trace_that_a_proxy_wrote_on_the_way_breaks_no_signature",
        ),
    ),
    Row(
        "security:a65:models",
        "A model's refusal is told to callers as a code and a sentence of ours that keep its "
        "meaning; its own words are the operator's, without keys.",
        "security.md A65; R51",
        (
            _MODELS + "test_a_models_refusal_keeps_its_meaning_and_its_words_are_the_operators",
            "tests/faults/test_models.py::test_a_models_error_inside_a_stream_keeps_its_meaning",
            _MODELS + "test_a_peers_caller_is_told_what_the_model_of_the_peer_meant",
            _MODELS + "test_a_key_that_a_provider_says_back_is_shown_to_nobody",
        ),
    ),
)

FAULTS = (
    Row(
        "faults:f90",
        "A model or a peer that fails in a way that may pass is asked again as often as `retries` "
        "says, under the same turn, and nothing else is asked again.",
        "fault F90; R56",
        (
            _AGAIN + "test_f90_a_passing_fault_is_asked_again_as_often_as_retries_says",
            _AGAIN + "test_f90_retries_counts_every_further_request_whatever_the_reason",
            _AGAIN + "test_f90_a_model_that_says_nothing_of_retries_is_asked_twice_more",
            _AGAIN + "test_f90_a_refusal_is_never_asked_again",
            _AGAIN + "test_f90_a_chain_that_is_too_deep_is_never_asked_again",
            _AGAIN + "test_f90_nothing_is_asked_again_once_a_word_was_shown",
            _AGAIN + "test_f90_who_asks_for_more_time_than_the_call_has_is_not_waited_for",
            _AGAIN + "test_f90_who_says_when_is_asked_again_then",
            _AGAIN + "test_f90_a_peer_whose_answer_was_lost_is_asked_again_under_the_same_turn",
            _AGAIN + "test_f90_what_a_carnet_reports_of_its_agent_is_final",
            _RETRYING + "test_the_hop_next_to_a_fault_repeats_and_those_above_do_not",
        ),
    ),
)
