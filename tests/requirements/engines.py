"""Agent loops: what somebody may try of them, from outside, from within, and in their place."""

from tests.requirements.rows import Row

_ENGINE = "tests/engine/test_endpoint.py::"
_FAILURES = "tests/engine/test_endpoint_failures.py::"
_AGENTS = "tests/interop/engine/test_agents.py::"
_SWAPPED = "tests/interop/engine/test_swapped.py::"
_CALLS = "tests/interop/engine/test_calls.py::"
_LOOP = "tests/engine/test_loop.py::"
_STREAMS = "tests/runtime/agents/test_http_engine.py::"
_BEARERS = "tests/security/callers/test_turn_bearers.py::"
_BESIDE = "tests/interop/engine/test_beside.py::"
_AUTH = "tests/auth/test_middleware.py::"
_BEARER = "tests/wire/dialects/engine_chat/test_bearer.py::"

ROWS = (
    Row(
        "security:a36:engine",
        "What a request to a loop claims of its identity is removed before Auth looks at it, in "
        "every spelling; who acts is told by Auth alone.",
        "security.md A36; R18",
        (
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _AUTH + "test_who_is_known_comes_through_as_who_it_is",
            _AUTH + "test_nobody_else_does_at_any_path",
            _ENGINE + "test_a_session_is_a_credential_but_not_from_the_page_of_another_site",
            _AUTH + "test_what_was_approved_is_told_to_the_loop_by_auth_alone",
        ),
    ),
    Row(
        "security:a36:turn",
        "The bearer of a turn holds where a key of its gateway signed it, for its time; one that "
        "was changed, is late, or is another gateway's is nobody's.",
        "security.md A36",
        (
            _AUTH + "test_one_that_is_anothers_late_or_changed_is_nobodys",
            _AUTH + "test_one_of_a_revoked_key_is_nobodys",
            _BEARER + "test_what_is_not_in_its_form_is_nobodys",
            _SWAPPED + "test_it_is_asked_with_a_bearer_of_the_turn_and_no_credential_of_the_caller",
        ),
    ),
    Row(
        "security:a37:engine",
        "The path of the engine is not there on the public port, with whatever token; on its own "
        "listener nobody is answered without a credential, at any path.",
        "security.md A37",
        (
            _ENGINE + "test_the_public_port_does_not_know_the_path",
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _ENGINE + "test_a_token_that_may_not_ask_a_loop_is_refused",
            _BESIDE + "test_a_gateway_serves_the_loop_of_its_agents_at_a_socket_of_its_own",
        ),
    ),
    Row(
        "security:a36:tools",
        "A tool is used for who may use it, whatever the model says; a tool call that its caller "
        "wrote is not run, and one that must be approved is run as it was approved.",
        "security.md A36",
        (
            _AGENTS + "test_a_tool_is_for_who_may_use_it",
            _AGENTS + "test_a_call_that_its_caller_wrote_is_not_run",
            _AGENTS + "test_an_approved_call_is_run_once_with_what_was_approved",
            _ENGINE + "test_a_call_that_its_sender_wrote_is_not_run",
            _CALLS + "test_a_call_that_stands_in_a_message_is_run_by_no_door_between_organisations",
            _CALLS + "test_nor_is_it_as_a_task",
        ),
    ),
    Row(
        "security:a114:calls",
        "The bearer of a turn is taken for calls out of that turn while its stream is open, with "
        "what the turn has and no more; late, forged, changed or another gateway's it opens "
        "nothing, and nothing else is opened by it at any time.",
        "attack A114",
        (
            _BEARERS + "test_it_calls_others_while_its_turn_is_open_and_never_afterwards",
            _BEARERS + "test_it_opens_nothing_else",
            _BEARERS + "test_it_opens_the_schedules_and_hooks_of_its_person_and_no_other",
            _BEARERS + "test_nothing_beside_it_widens_what_its_turn_may",
            _BEARERS + "test_one_that_is_forged_changed_or_anothers_calls_nobody",
            _STREAMS + "test_its_bearer_is_good_for_calls_while_its_stream_is_open",
        ),
    ),
    Row(
        "security:a114:approvals",
        "What somebody approves is one call of one turn: not the next of the same name, not one "
        "that stands in a message, and not the same again for who has seen the bearer.",
        "attack A114; R45",
        (
            _BEARERS + "test_what_was_approved_in_one_is_done_once",
            _LOOP + "test_an_approval_is_for_one_call_whatever_the_model_calls_the_next",
            _LOOP + "test_an_approval_is_never_for_a_call_that_its_caller_wrote",
            _STREAMS + "test_an_approval_cannot_be_asked_for_under_the_name_of_one_that_was_given",
            _AUTH + "test_one_is_for_one_request",
        ),
    ),
    Row(
        "security:a35:loops",
        "A loop calls other agents, here and elsewhere, out of its turn and within its caller's "
        "rights; what they ask for is answered by who made the first call, and nobody is called "
        "twice for one answer, also after a kill.",
        "security.md A35; R45",
        (
            _CALLS + "test_the_person_here_answers_what_a_tool_of_an_agent_elsewhere_asks_for",
            _CALLS + "test_agents_here_and_elsewhere_are_tools_and_what_they_cost_is_told",
            _CALLS + "test_a_kill_in_the_middle_of_an_answer_calls_nobody_again",
            _CALLS + "test_a_loop_calls_nobody_whom_its_caller_may_not_call",
            _CALLS + "test_who_cancels_an_answer_cancels_whom_its_loop_has_called",
            _CALLS + "test_at_the_last_hop_a_loop_calls_nobody_whatever_its_model_says",
        ),
    ),
    Row(
        "security:a65:engine",
        "What a loop, a model or a tool says of its failure is for the log: callers read one fixed "
        "sentence for each code.",
        "security.md A65",
        (
            _FAILURES + "test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence",
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _ENGINE + "test_what_a_tool_raises_is_for_the_log_and_the_model_goes_on",
            _SWAPPED
            + "test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own",
            _SWAPPED + "test_a_loop_that_refuses_us_is_told_as_a_failure",
        ),
    ),
)
