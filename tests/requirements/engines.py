"""Agent loops: what somebody may try of them, from outside, from within, and in their place."""

from tests.requirements.rows import Row

_ENGINE = "tests/engine/test_endpoint.py::"
_FAILURES = "tests/engine/test_endpoint_failures.py::"
_AGENTS = "tests/interop/engine/test_agents.py::"
_SWAPPED = "tests/interop/engine/test_swapped.py::"
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
            _ENGINE + "test_a_session_cookie_is_a_credential_but_not_from_the_page_of_another_site",
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
