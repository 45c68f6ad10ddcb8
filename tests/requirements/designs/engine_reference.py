"""What the reference systems of seed 002 were seen to do: B01 to B56, each reproduced or not.

The numbers are those of the list of facts; those that are missing there are missing here. What is
due waits for people who sign in by themselves.
"""

from tests.requirements.rows import Divergence, Row

_ENGINE = "tests/engine/test_endpoint.py::"
_FAILURES = "tests/engine/test_endpoint_failures.py::"
_AGENTS = "tests/interop/engine/test_agents.py::"
_SWAPPED = "tests/interop/engine/test_swapped.py::"
_APPROVALS = "tests/gateway/test_approvals.py::"
_KIT = "tests/testing/conform/test_kit.py::"
_LOOP = "tests/engine/test_loop.py::"
_TOOLBOX = "tests/engine/test_toolbox.py::"
_READ = "tests/wire/dialects/engine_chat/test_request.py::"
_STREAMED = "tests/wire/dialects/engine_chat/test_stream.py::"

_TALK = "tests/gateway/conversations/test_messages.py::"
_HELD = "tests/gateway/conversations/test_hold.py::"
_KILLED = "tests/gateway/conversations/test_messages_killed.py::"
_SHOWN = "tests/gateway/conversations/test_pages.py::"
_CLIENT = "tests/wire/dialects/engine_chat/test_client_stream.py::"
_MODELS = "tests/interop/engine/test_models.py::"
_WINDOW = "tests/engine/test_window.py::"
_SIGNED_IN = "tests/gateway/people/test_sessions.py::"

_ONE_SENTENCE = Divergence(
    "R51",
    "The code is the same. Each of the three codes has one fixed sentence, as the design asks; "
    "which failure it was is in the log and in the record.",
)

_TURNS = (
    Row(
        "engine:reference:b01",
        "Two texts and an end of the engine reach the client as they are; what was said is kept.",
        "reference system, B01",
        (
            _ENGINE + "test_one_post_is_answered_by_one_stream",
            _AGENTS + "test_the_openai_client_streams_from_it",
            _TALK + "test_a_message_begins_a_conversation_and_is_answered_by_a_stream",
            _TALK + "test_content_passes_unchanged_and_its_cost_is_hers",
        ),
    ),
    Row(
        "engine:reference:b02",
        "A message that names no conversation begins exactly one.",
        "reference system, B02",
        (_TALK + "test_the_same_id_has_the_same_answer_and_never_a_second_one",),
    ),
    Row(
        "engine:reference:b04",
        "What a user says is kept before the engine is asked.",
        "reference system, B04",
        (
            _TALK + "test_what_she_says_is_kept_before_anything_runs",
            _KILLED + "test_what_was_said_is_answered_once_after_a_kill_at",
        ),
    ),
    Row(
        "engine:reference:b05",
        "Content with a NUL, with markup and with emoji passes unchanged.",
        "reference system, B05",
        (
            _ENGINE + "test_content_passes_unchanged_to_the_model",
            _READ + "test_content_passes_unchanged",
        ),
    ),
    Row(
        "engine:reference:b07",
        "The end that a client reads names its conversation.",
        "reference system, B07",
        (_TALK + "test_a_message_begins_a_conversation_and_is_answered_by_a_stream",),
    ),
    Row(
        "engine:reference:b08",
        "A conversation that nobody knows is 404, to write into and to read.",
        "reference system, B08",
        (
            _TALK + "test_an_unknown_conversation_or_agent_is_not_found_and_nothing_is_kept",
            _SHOWN + "test_two_owners_see_nothing_of_one_another_by_any_door",
        ),
    ),
    Row(
        "engine:reference:b10",
        "A list of no conversations is a page with none.",
        "reference system, B10",
        (_SHOWN + "test_an_empty_list_is_a_page_with_none",),
    ),
    Row(
        "engine:reference:b11",
        "No credential and a wrong one are 401; a bearer, an API key and a cookie are each one. "
        "The cookie has a name of ours.",
        "reference system, B11",
        (
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _ENGINE + "test_an_api_key_is_a_credential",
            _ENGINE + "test_a_session_is_a_credential_but_not_from_the_page_of_another_site",
        ),
    ),
    Row(
        "engine:reference:b13",
        "From outside the path of the engine is not there, with a valid token either.",
        "reference system, B13",
        (_ENGINE + "test_the_public_port_does_not_know_the_path",),
    ),
    Row(
        "engine:reference:b14",
        "A round with a tool is its call, its result, a text and the end.",
        "reference system, B14",
        (_ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",),
    ),
    Row(
        "engine:reference:b16",
        "A mirror in the place of the engine answers what it was told, and the conversation is "
        "kept as it would be with ours.",
        "reference system, B16",
        (
            _SWAPPED
            + "test_another_loop_answers_in_the_place_of_ours_by_one_line_of_configuration",
            _SWAPPED + "test_a_conversation_with_another_loop_is_kept_as_one_with_ours",
        ),
    ),
    Row(
        "engine:reference:b17",
        "A message without a role or content, with another role, or that is no object, is invalid.",
        "reference system, B17",
        (
            _ENGINE + "test_messages_that_are_not_in_their_form_are_400",
            _READ + "test_messages_have_their_form_or_are_refused_by_their_place",
        ),
    ),
)

_EMPTY = (
    Row(
        "engine:reference:b19",
        "A model that gives nothing twice is one provider_error, and no done.",
        "reference system, B19",
        (
            _ENGINE + "test_blanks_alone_are_no_answer_and_are_asked_for_twice",
            _LOOP + "test_one_that_gives_nothing_twice_has_failed",
        ),
    ),
    Row(
        "engine:reference:b20",
        "Blanks alone are nothing.",
        "reference system, B20",
        (
            _ENGINE + "test_blanks_alone_are_no_answer_and_are_asked_for_twice",
            _LOOP + "test_a_model_that_gives_nothing_is_asked_once_more",
        ),
    ),
    Row(
        "engine:reference:b22",
        "Where some text was seen and nothing comes after it, the model is not asked again.",
        "reference system, B22",
        (
            _ENGINE + "test_one_post_is_answered_by_one_stream",
            _LOOP + "test_what_was_seen_is_not_asked_for_again",
        ),
    ),
    Row(
        "engine:reference:b23",
        "A tool call without a word is an answer: call, result, text, end.",
        "reference system, B23",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _LOOP + "test_tool_calls_without_a_word_are_an_answer",
        ),
    ),
)

_CAUSES = (
    Row(
        "engine:reference:b25",
        "A context that is longer than the model reads is context_overflow: by the code of the "
        "provider, and never because a message holds the word.",
        "reference system, B25",
        (_ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",),
    ),
    Row(
        "engine:reference:b26",
        "A key that is missing or wrong is provider_error, with a text that says so.",
        "reference system, B26",
        (_ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",),
        divergence=_ONE_SENTENCE,
    ),
    Row(
        "engine:reference:b28",
        "A quota that is used up is provider_error, with a text that says so.",
        "reference system, B28",
        (_ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",),
        divergence=_ONE_SENTENCE,
    ),
    Row(
        "engine:reference:b29",
        "A provider that cannot be reached is provider_error, with a text that says so.",
        "reference system, B29",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _FAILURES + "test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence",
        ),
        divergence=_ONE_SENTENCE,
    ),
)

_CLIENTS = (
    Row(
        "engine:reference:b31",
        "Metadata with a project passes, and with another member it is refused.",
        "reference system, B31",
        (_ENGINE + "test_metadata_is_context_and_changes_nothing",),
        divergence=Divergence(
            "R19", "At the top nothing else stands; metadata that is not known passes through."
        ),
    ),
    Row(
        "engine:reference:b32",
        "A stream that is cut in the midst of its JSON is read as what it says.",
        "reference system, B32",
        (
            _SWAPPED + "test_where_a_stream_is_cut_and_how_its_fields_are_spelled_changes_nothing",
            _STREAMED + "test_where_the_chunks_are_cut_makes_no_difference",
        ),
    ),
    Row(
        "engine:reference:b34",
        "Whoever reads a stream takes a text under either name.",
        "reference system, B34; R17",
        (
            _SWAPPED + "test_where_a_stream_is_cut_and_how_its_fields_are_spelled_changes_nothing",
            _STREAMED + "test_both_spellings_of_the_fields_are_read",
        ),
    ),
    Row(
        "engine:reference:b35",
        "A client is warned by headers how much of the context is used.",
        "reference system, B35",
        (
            _TALK + "test_how_much_of_what_the_model_can_read_is_used_stands_in_the_end",
            _CLIENT + "test_an_end_names_the_conversation_and_what_was_used",
        ),
        Divergence(
            "R17",
            "The stream begins before a model is asked, so that a client knows its conversation; "
            "how much of the context is used stands in its end.",
        ),
    ),
    Row(
        "engine:reference:b37",
        "After a conversation was trimmed, every result of a tool stands behind its call.",
        "reference system, B37",
        (
            _WINDOW + "test_a_result_is_always_right_behind_its_call",
            _MODELS + "test_after_something_was_left_out_every_result_stands_behind_its_call",
        ),
    ),
)

_DECISIONS = (
    Row(
        "engine:reference:b38",
        "A decision that is not in its form is 400, one of a question that is not there 404, one "
        "without authority 403; and a second one of the same question 404.",
        "reference system, B38",
        (
            _APPROVALS + "test_what_somebody_else_is_asked_is_not_there",
            _APPROVALS + "test_the_same_answer_again_changes_nothing_and_another_is_refused",
            _HELD + "test_an_answer_in_no_form_is_refused_and_the_question_stays_open",
            _HELD + "test_somebody_else_who_may_approve_answers_and_nobody_else_does",
        ),
        divergence=Divergence(
            "R16",
            "The record of a decision lasts: the same one again is answered as the first was, and "
            "another one is 409. Who may not decide learns of no question: 404.",
        ),
    ),
    Row(
        "engine:reference:b40",
        "What is denied is told to the model, and the run goes on.",
        "reference system, B40",
        (
            _AGENTS + "test_a_denied_call_is_not_run_and_the_model_goes_on",
            _HELD + "test_what_is_denied_is_not_done_and_the_agent_is_told",
        ),
    ),
    Row(
        "engine:reference:b41",
        "The third of three identical calls is not run.",
        "reference system, B41",
        (
            _ENGINE + "test_the_third_of_three_identical_calls_is_not_run",
            _TOOLBOX + "test_the_same_call_again_and_again_is_not_run_for_ever",
        ),
    ),
    Row(
        "engine:reference:b56",
        "What must be confirmed is not done before it is; denied it is never done, and approved "
        "once.",
        "reference system, B56",
        (
            _AGENTS + "test_an_approved_call_is_run_once_with_what_was_approved",
            _AGENTS + "test_a_denied_call_is_not_run_and_the_model_goes_on",
            _HELD + "test_what_is_approved_is_done_once_and_told_in_the_same_stream",
            _HELD + "test_what_is_denied_is_not_done_and_the_agent_is_told",
        ),
    ),
)

_CONTRACT = (
    Row(
        "engine:reference:b43",
        "A request without a correlation_id, with an unknown member of metadata, or with a "
        "provider, model, key or tools anywhere, is 400, and the engine is not run.",
        "reference system, B43",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _KIT + "test_a_twin_that_breaks_one_sentence_is_told_by_its_check",
        ),
        divergence=Divergence(
            "R19",
            "Metadata that is not known passes through, and what is said is not searched; at the "
            "top and directly in the metadata the rest holds.",
        ),
    ),
    Row(
        "engine:reference:b44",
        "A provider at the top is refused before a stream begins.",
        "reference system, B44",
        (_ENGINE + "test_a_request_that_is_not_in_its_form_is_400",),
    ),
    Row(
        "engine:reference:b46",
        "A result of a call that there was not is a failure.",
        "reference system, B46",
        (
            _SWAPPED
            + "test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own",
            _KIT + "test_a_twin_that_breaks_one_sentence_is_told_by_its_check",
        ),
    ),
    Row(
        "engine:reference:b47",
        "An event that the contract does not know is a failure.",
        "reference system, B47",
        (
            _SWAPPED
            + "test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own",
            _KIT + "test_a_twin_that_breaks_one_sentence_is_told_by_its_check",
        ),
    ),
    Row(
        "engine:reference:b49",
        "A conversation is there after a restart.",
        "reference system, B49",
        (_KILLED + "test_what_was_said_is_answered_once_after_a_kill_at",),
    ),
    Row(
        "engine:reference:b50",
        "A message of an error with a stack, a path or a secret is replaced by a fixed text.",
        "reference system, B50",
        (
            _SWAPPED
            + "test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own",
            _FAILURES + "test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence",
        ),
    ),
)

_SESSIONS = (
    Row(
        "engine:reference:b52",
        "Who is not signed in cannot sign out: 401.",
        "reference system, B52",
        (_SIGNED_IN + "test_who_is_not_signed_in_cannot_sign_out",),
    ),
    Row(
        "engine:reference:b53",
        "The sixth attempt to sign up within the window is 429. Here nobody signs up: of signing "
        "in it is the sixth that fails in a minute, and who has a good token or code comes in.",
        "reference system, B53",
        (_SIGNED_IN + "test_the_sixth_attempt_that_fails_is_429_and_who_knows_better_comes_in",),
    ),
    Row(
        "engine:reference:b55",
        "Who has no session and who shows a wrong key is refused, before anything is done.",
        "reference system, B55",
        (_ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",),
    ),
)

ROWS = (*_TURNS, *_EMPTY, *_CAUSES, *_CLIENTS, *_DECISIONS, *_CONTRACT, *_SESSIONS)
