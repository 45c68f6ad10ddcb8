"""The contract between a gateway and an agent loop: what seed 002 asks for.

A loop answers agents in the process of a gateway, or over HTTP. What depends on conversations and
sessions is due.
"""

from tests.requirements.rows import Row

_APPROVALS = "tests/gateway/test_approvals.py::"
_INTERRUPTS = "tests/interop/interrupts/test_openai.py::"
_IDS = "tests/gateway/endpoint/test_request_ids.py::"
_TELEMETRY = "tests/test_telemetry.py::"
_ENGINE = "tests/engine/test_endpoint.py::"
_FAILURES = "tests/engine/test_endpoint_failures.py::"
_AGENTS = "tests/interop/engine/test_agents.py::"
_MODELS = "tests/interop/engine/test_models.py::"
_SWAPPED = "tests/interop/engine/test_swapped.py::"
_STREAMS = "tests/replicas/test_streams.py::"
_BEARERS = "tests/security/callers/test_turn_bearers.py::"
_CONFORM = "tests/interop/engine/test_conform.py::"
_BESIDE = "tests/interop/engine/test_beside.py::"
_AUTHED = "tests/auth/test_middleware.py::"
_LOOP = "tests/engine/test_loop.py::"
_TOOLBOX = "tests/engine/test_toolbox.py::"
_USED = "tests/interop/engine/test_tools.py::"
_COMMANDS = "tests/runtime/tools/test_command.py::"
_SERVERS = "tests/runtime/tools/test_mcp_client.py::"
_ACTOR = "tests/wire/dialects/engine_chat/test_actor.py::"
_READ = "tests/wire/dialects/engine_chat/test_request.py::"
_WRITTEN = "tests/wire/dialects/engine_chat/test_writer.py::"
_STREAMED = "tests/wire/dialects/engine_chat/test_stream.py::"
_RECEIVED = "tests/gateway/triggers/test_receiver.py::"
_BEGUN = "tests/gateway/triggers/test_starter.py::"
_KILLED = "tests/gateway/triggers/test_starter_killed.py::"
_TWO = "tests/gateway/triggers/test_starter_replicas.py::"
_TICKS = "tests/runtime/triggers/test_scheduler.py::"
_REFUSED = "tests/wire/dialects/engine_chat/test_refusals.py::"
_SIGNED_IN = "tests/gateway/people/test_sessions.py::"
_CHAT = "tests/cli/chat/test_chat.py::"
_HELD = "tests/gateway/conversations/test_hold.py::"
_SILENT = "tests/gateway/conversations/test_hold_silence.py::"
_APPROVAL_KILLED = "tests/crash/test_approvals.py::"
_TALK = "tests/gateway/conversations/test_messages.py::"

_CONTRACT = (
    Row(
        "engine:contract:endpoint",
        "One endpoint takes a conversation, POST /engine/chat, and answers it with one stream.",
        "002 the contract; decision D137",
        (_ENGINE + "test_one_post_is_answered_by_one_stream",),
    ),
    Row(
        "engine:contract:internal",
        "It belongs to one deployment: from outside it cannot be reached.",
        "002 how we define this contract; attack A37",
        (_ENGINE + "test_the_public_port_does_not_know_the_path",),
    ),
    Row(
        "engine:contract:path",
        "A request goes from a client to the gateway, through Auth to the loop, and from there to "
        "a model and to tools.",
        "002 the contract",
        (
            _AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",
            _SWAPPED + "test_it_is_asked_with_a_bearer_of_the_turn_and_no_credential_of_the_caller",
        ),
    ),
    Row(
        "engine:contract:decoupled",
        "Either side can be replaced without the other: the shape of the data is all that both "
        "know.",
        "002 how we define this contract",
        (
            _SWAPPED
            + "test_another_loop_answers_in_the_place_of_ours_by_one_line_of_configuration",
            _ENGINE + "test_one_post_is_answered_by_one_stream",
        ),
    ),
)

_REQUEST = (
    Row(
        "engine:request:example",
        "The request of the text, with four messages and four members of metadata, is taken as it "
        "stands there.",
        "002 request",
        (
            _ENGINE + "test_the_request_of_the_design_is_answered_as_it_stands",
            _READ + "test_the_request_of_the_design_is_taken_as_it_stands",
        ),
    ),
    Row(
        "engine:request:messages",
        "There are messages; a request without any, or with some of another form, is refused.",
        "002 request, pre-stream errors",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_messages_have_their_form_or_are_refused_by_their_place",
            _READ + "test_whatever_is_sent_is_a_request_or_refused",
        ),
    ),
    Row(
        "engine:request:format",
        "A message is a role and its content, as the field writes them everywhere.",
        "002 request",
        (
            _ENGINE + "test_the_request_of_the_design_is_answered_as_it_stands",
            _READ + "test_messages_have_their_form_or_are_refused_by_their_place",
            _READ + "test_content_passes_unchanged",
            _READ + "test_what_is_written_is_read_as_the_same",
        ),
    ),
    Row(
        "engine:request:system",
        "The gateway puts the system message first, which its configuration holds.",
        "002 request, first source",
        (_AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",),
    ),
    Row(
        "engine:request:history",
        "Then comes what was said before, which the gateway keeps.",
        "002 request, second source; decision D152",
        (_TALK + "test_a_round_with_a_tool_is_shown_and_told_again_to_the_model",),
    ),
    Row(
        "engine:request:current",
        "The last message is the one that the client has sent.",
        "002 request, third source",
        (_AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",),
    ),
    Row(
        "engine:request:no-tools",
        "Tools are no part of a request.",
        "002 what is not in the request",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_what_a_loop_is_configured_with_and_credentials_are_no_part_of_a_request",
        ),
    ),
    Row(
        "engine:request:no-provider",
        "Nor are the model, its key and its address.",
        "002 what is not in the request",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_what_a_loop_is_configured_with_and_credentials_are_no_part_of_a_request",
            _READ + "test_what_is_said_is_never_searched",
        ),
    ),
)

_METADATA = (
    Row(
        "engine:metadata:pass-through",
        "Metadata is context: the loop may use it or leave it.",
        "002 request",
        (
            _ENGINE + "test_metadata_is_context_and_changes_nothing",
            _READ + "test_other_metadata_passes_through",
        ),
    ),
    Row(
        "engine:metadata:correlation",
        "A request has the name by which it is traced; the gateway gives it.",
        "002 request, table of fields",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _ENGINE + "test_the_cause_of_a_failure_is_in_the_log_under_the_name_of_its_request",
            _READ + "test_without_the_name_of_a_request_there_is_none",
            _READ + "test_a_gateway_names_the_request_whatever_is_passed_through",
        ),
    ),
    Row(
        "engine:metadata:conversation",
        "The name of the conversation may be there; the loop does not need it.",
        "002 request, table of fields",
        (
            _ENGINE + "test_metadata_is_context_and_changes_nothing",
            _READ + "test_metadata_that_is_known_has_its_form",
        ),
    ),
    Row(
        "engine:metadata:trigger",
        "What has begun it may be there: a message, a webhook or a schedule, and a message where "
        "nothing is said.",
        "002 request, table of fields",
        (
            _ENGINE + "test_metadata_is_context_and_changes_nothing",
            _READ + "test_what_was_begun_by_nothing_else_was_begun_by_a_message",
        ),
    ),
    Row(
        "engine:metadata:client-context",
        "What the client says of where it is may be there.",
        "002 request, table of fields",
        (
            _ENGINE + "test_metadata_is_context_and_changes_nothing",
            _READ + "test_metadata_that_is_known_has_its_form",
            _READ + "test_what_is_said_is_never_searched",
        ),
    ),
)

_CONFIGURATION = (
    Row(
        "engine:configuration:startup",
        "Tools and model are the loop's own configuration: they are read when it starts, and are "
        "the same for every request.",
        "002 what is not in the request",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _AGENTS + "test_callers_bring_no_tools_and_no_instructions",
            _MODELS + "test_every_agent_has_its_own_model_system_message_and_bounds",
        ),
    ),
    Row(
        "engine:configuration:sources",
        "Tools come from MCP servers, from commands and from functions.",
        "002 what is not in the request",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _USED + "test_a_program_and_servers_in_a_process_and_over_http_are_used",
            _SERVERS + "test_a_loop_uses_its_tools",
            _COMMANDS + "test_it_is_run_without_a_shell_and_gives_what_it_writes",
        ),
    ),
    Row(
        "engine:configuration:always-send",
        "Which tools a model is always told of is said there too.",
        "002 what is not in the request; decision D109",
        (
            _USED + "test_tools_that_are_not_always_sent_are_found",
            _TOOLBOX + "test_tools_that_are_not_always_sent_are_found_and_then_offered",
        ),
    ),
    Row(
        "engine:iterations:optional",
        "A deployment may bound how often a model is asked in one answer.",
        "002 what is not in the request; changelog of 2026-03-17",
        (
            _ENGINE + "test_a_bound_of_iterations_ends_with_its_reason",
            _LOOP + "test_a_bound_of_iterations_is_an_end_with_a_reason",
        ),
    ),
    Row(
        "engine:iterations:no-default",
        "Without that there is no bound: the loop goes on until the model has ended.",
        "002 what is not in the request; changelog of 2026-03-17",
        (
            _AGENTS + "test_without_a_bound_it_goes_on_until_the_model_ends",
            _LOOP + "test_without_a_bound_it_goes_on_until_the_model_ends",
        ),
    ),
)

_TRIGGER = (
    Row(
        "engine:trigger:message",
        "A client's message comes through the gateway's API.",
        "002 trigger types",
        (
            _AGENTS + "test_the_openai_client_streams_from_it",
            _TALK + "test_a_message_begins_a_conversation_and_is_answered_by_a_stream",
        ),
    ),
    Row(
        "engine:trigger:webhook",
        "So does what another service sends.",
        "002 trigger types",
        (
            _RECEIVED + "test_an_event_that_is_sent_a_hundred_times_begins_one_conversation",
            _BEGUN + "test_a_message_a_hook_and_a_schedule_are_one_request_to_the_loop",
        ),
    ),
    Row(
        "engine:trigger:schedule",
        "What is due at a time comes to the gateway by itself.",
        "002 trigger types",
        (
            _KILLED + "test_a_tick_begins_once_after_a_kill_at",
            _TWO
            + "test_fifty_ticks_are_fifty_over_a_change_of_clocks_when_who_holds_some_is_killed",
            _TICKS
            + "test_fifty_ticks_are_fifty_at_two_replicas_when_clocks_change_and_a_leader_dies",
        ),
    ),
    Row(
        "engine:trigger:gateway",
        "All of them go through the gateway, and each begins a conversation that its owner can "
        "read, a schedule too.",
        "002 trigger types",
        (
            _BEGUN + "test_a_message_a_hook_and_a_schedule_are_one_request_to_the_loop",
            _BEGUN + "test_what_fails_is_kept_and_can_be_tried_again",
            _BEGUN + "test_what_waits_for_its_owner_is_answered_by_her_and_ends",
        ),
    ),
)

_STREAM = (
    Row(
        "engine:stream:always",
        "The answer is a stream of server-sent events, always; whoever wants the whole collects "
        "it.",
        "002 response",
        (_ENGINE + "test_one_post_is_answered_by_one_stream",),
    ),
    Row(
        "engine:stream:example",
        "The stream of the text, with a tool between two texts, is written and read to the byte.",
        "002 response",
        (
            _ENGINE + "test_the_stream_of_the_design_is_written_to_the_byte",
            _WRITTEN + "test_the_stream_of_the_design_is_written_to_the_byte",
            _STREAMED + "test_the_stream_of_the_design_is_read_as_what_it_says",
        ),
    ),
    Row(
        "engine:stream:text",
        "What the model says is text-delta, with its content.",
        "002 events",
        (
            _ENGINE + "test_the_stream_of_the_design_is_written_to_the_byte",
            _WRITTEN + "test_no_text_adds_a_frame",
            _WRITTEN + "test_a_long_text_is_spread_over_frames_that_every_reader_takes",
        ),
    ),
    Row(
        "engine:stream:tool-call",
        "A tool that the model wants is tool-call, with id, name and arguments.",
        "002 events",
        (
            _ENGINE + "test_the_stream_of_the_design_is_written_to_the_byte",
            _STREAMED + "test_what_is_written_is_read_as_the_same",
            _WRITTEN + "test_arguments_that_are_no_object_are_shown_as_none",
        ),
    ),
    Row(
        "engine:stream:tool-result",
        "What it gave is tool-result, with that id and the output, or else the error.",
        "002 events",
        (
            _ENGINE + "test_the_stream_of_the_design_is_written_to_the_byte",
            _ENGINE + "test_what_a_tool_raises_is_for_the_log_and_the_model_goes_on",
            _WRITTEN
            + "test_a_tool_that_failed_or_was_denied_has_an_error_in_the_place_of_its_output",
            _WRITTEN + "test_a_loop_that_mixes_up_its_calls_is_stopped",
        ),
    ),
    Row(
        "engine:stream:done",
        "The end is done, with the reason and what was used in tokens, in and out.",
        "002 events",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _WRITTEN + "test_done_tells_what_was_used_also_where_nobody_counted",
            _STREAMED + "test_whatever_the_bytes_there_is_one_end_and_nothing_after_it",
        ),
    ),
    Row(
        "engine:stream:error",
        "What cannot be recovered from is error, with code and message.",
        "002 events",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _WRITTEN + "test_an_error_is_its_code_and_one_fixed_sentence",
            _STREAMED + "test_an_error_counts_by_its_code_and_its_words_are_the_operators",
        ),
    ),
    Row(
        "engine:stream:status",
        "Tool calls are in the stream, so that clients can say what is being done.",
        "002 response",
        (
            _TALK + "test_a_round_with_a_tool_is_shown_and_told_again_to_the_model",
            _CHAT + "test_a_chat_goes_through_text_tool_approval_stop_and_resume",
        ),
    ),
    Row(
        "engine:stream:trace",
        "All that happened between the request and its end is in the stream.",
        "002 response",
        (
            _AGENTS + "test_what_happened_is_in_the_record_of_its_run",
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _LOOP + "test_a_model_is_asked_again_with_what_its_tools_gave",
        ),
    ),
    Row(
        "engine:stream:several",
        "A model may be asked several times in one stream, with the results of tools between.",
        "002 response",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _LOOP + "test_a_model_is_asked_again_with_what_its_tools_gave",
        ),
    ),
)

_ERRORS = (
    Row(
        "engine:error:before",
        "What fails before the stream has a status and no stream.",
        "002 pre-stream errors",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _ENGINE + "test_other_paths_methods_and_media_have_their_status",
            _REFUSED + "test_before_the_stream_every_error_is_a_status_a_code_and_a_message",
        ),
    ),
    Row(
        "engine:error:400",
        "A request that is not in its form is 400.",
        "002 pre-stream errors",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _REFUSED + "test_the_statuses_of_the_design_have_their_codes",
        ),
    ),
    Row(
        "engine:error:401",
        "One that Auth refuses is 401.",
        "002 pre-stream errors, auth middleware",
        (
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _REFUSED + "test_the_statuses_of_the_design_have_their_codes",
        ),
    ),
    Row(
        "engine:error:503",
        "A loop that is not there is 503.",
        "002 pre-stream errors",
        (
            _ENGINE + "test_a_stop_lets_answers_end_or_ends_them_with_a_reason",
            _REFUSED + "test_the_statuses_of_the_design_have_their_codes",
        ),
    ),
    Row(
        "engine:error:body",
        "Its body is a code and a message, and nothing else; so is an error in the stream.",
        "002 pre-stream errors, conventions",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _REFUSED + "test_before_the_stream_every_error_is_a_status_a_code_and_a_message",
            _WRITTEN + "test_an_error_is_its_code_and_one_fixed_sentence",
        ),
    ),
    Row(
        "engine:error:within",
        "What fails in the stream is told in it.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _WRITTEN + "test_an_error_is_its_code_and_one_fixed_sentence",
        ),
    ),
    Row(
        "engine:error:provider",
        "provider_error: the model cannot be reached, or does not answer in time.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _LOOP + "test_a_failure_keeps_its_cause",
            _LOOP + "test_one_that_gives_nothing_twice_has_failed",
        ),
    ),
    Row(
        "engine:error:tool",
        "tool_error: a tool failed and the model cannot go on.",
        "002 mid-stream errors",
        (
            _SWAPPED
            + "test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own",
            _TOOLBOX + "test_what_cannot_be_used_at_all_ends_the_answer_when_the_others_have_ended",
            _USED + "test_a_tool_that_cannot_be_used_at_all_ends_the_answer",
        ),
    ),
    Row(
        "engine:error:context",
        "context_overflow: the messages are more than the model can read.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _LOOP + "test_a_failure_keeps_its_cause",
            _MODELS + "test_what_no_longer_fits_is_left_out_and_the_end_says_so",
        ),
    ),
    Row(
        "engine:error:cause",
        "Each failure has the code of its cause; none has a code for everything.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _REFUSED + "test_every_failure_of_somebody_we_called_has_a_code",
            _REFUSED + "test_the_cause_decides_and_never_the_words",
        ),
    ),
    Row(
        "engine:error:recoverable",
        "A tool that says that it failed is told to the model, which decides what to do.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_what_a_tool_raises_is_for_the_log_and_the_model_goes_on",
            _TOOLBOX + "test_a_tool_that_fails_tells_the_model_in_its_own_words",
            _TOOLBOX + "test_an_agent_that_refuses_is_told_in_our_words",
        ),
    ),
    Row(
        "engine:error:infrastructure",
        "tool_error is for tools that cannot be used at all, and ends the stream.",
        "002 mid-stream errors",
        (
            _TOOLBOX + "test_what_cannot_be_used_at_all_ends_the_answer_when_the_others_have_ended",
            _USED + "test_a_tool_that_cannot_be_used_at_all_ends_the_answer",
            _COMMANDS + "test_a_program_that_is_gone_cannot_be_used",
            _SERVERS + "test_a_server_that_cannot_be_reached_cannot_be_used",
        ),
    ),
    Row(
        "engine:error:safe",
        "The message of an error can be shown to anybody: no text of an exception, no stack, no "
        "path.",
        "002 mid-stream errors",
        (
            _FAILURES + "test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence",
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _WRITTEN + "test_an_error_is_its_code_and_one_fixed_sentence",
        ),
    ),
    Row(
        "engine:error:fixed",
        "There is one fixed message for each code.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _REFUSED + "test_there_are_three_codes_with_one_sentence_each",
        ),
    ),
    Row(
        "engine:error:log",
        "The cause is in the structured log, and nowhere else.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_the_cause_of_a_failure_is_in_the_log_under_the_name_of_its_request",
            _TOOLBOX + "test_whatever_else_it_raises_is_for_the_log_alone",
        ),
    ),
    Row(
        "engine:error:closes",
        "After an error nothing comes.",
        "002 mid-stream errors",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _WRITTEN + "test_nothing_is_written_after_the_end",
            _STREAMED + "test_what_comes_after_the_end_is_not_read",
        ),
    ),
    Row(
        "engine:error:gateway",
        "How its client is told of a failure is for the gateway to say.",
        "002 mid-stream errors",
        (_AGENTS + "test_a_failure_is_told_by_its_code_and_nothing_of_the_providers",),
    ),
)

_IDENTITY = (
    Row(
        "engine:auth:independent",
        "Auth stands between gateway and loop and is part of neither.",
        "002 auth middleware",
        (
            _AUTHED + "test_who_is_known_comes_through_as_who_it_is",
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
        ),
    ),
    Row(
        "engine:auth:credentials",
        "It takes a token, a session or an API key.",
        "002 auth middleware",
        (
            _ENGINE + "test_an_api_key_is_a_credential",
            _ENGINE + "test_one_post_is_answered_by_one_stream",
            _ENGINE + "test_a_session_is_a_credential_but_not_from_the_page_of_another_site",
            _SIGNED_IN + "test_a_token_signs_in_and_a_browser_is_given_a_cookie",
            _SIGNED_IN + "test_a_link_shows_a_page_and_signs_in_once",
        ),
    ),
    Row(
        "engine:auth:headers",
        "It says who acts in X-Actor-ID, and what that one may do in X-Actor-Permissions.",
        "002 auth middleware",
        (
            _SWAPPED + "test_a_person_acts_under_her_own_name",
            _ENGINE + "test_a_person_asks_under_her_own_name",
            _AUTHED + "test_who_is_known_comes_through_as_who_it_is",
            _ENGINE + "test_who_acts_may_use_what_the_token_allows",
            _ACTOR + "test_both_headers_say_who_acts_and_deny_wins",
            _ACTOR + "test_what_is_written_is_read_as_the_same",
        ),
    ),
    Row(
        "engine:auth:loop",
        "The loop is given requests whose sender is known, and never proves anybody itself.",
        "002 auth middleware",
        (
            _AUTHED + "test_nobody_else_does_at_any_path",
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
        ),
    ),
    Row(
        "engine:auth:tools",
        "It may read who acts where the use of a tool depends on that.",
        "002 auth middleware",
        (
            _ENGINE + "test_who_acts_may_use_what_the_token_allows",
            _AGENTS + "test_a_tool_is_for_who_may_use_it",
            _TOOLBOX + "test_what_the_actor_may_not_use_is_neither_offered_nor_run",
        ),
    ),
)

_CONVENTIONS = (
    Row(
        "engine:convention:log",
        "Logs are JSON lines on standard output, with the time, the name of the request, the "
        "component, the level and the message.",
        "002 conventions",
        (
            _TELEMETRY + "test_every_line_begins_with_the_same_fields",
            _IDS + "test_what_became_no_call_is_in_the_log_by_its_name",
        ),
    ),
)

_EXCLUDED = (
    Row(
        "engine:excluded:routing",
        "A request names no loop and no capability: there is one loop behind the endpoint, and "
        "nothing to discover or to register.",
        "002 exclusions: routing, node registration",
        (_ENGINE + "test_a_request_that_is_not_in_its_form_is_400",),
    ),
    Row(
        "engine:excluded:intent",
        "It names no intent and no mode: the loop decides with its model what to do.",
        "002 exclusions: intent-based routing, operating modes",
        (_ENGINE + "test_a_request_that_is_not_in_its_form_is_400",),
    ),
    Row(
        "engine:excluded:workflow",
        "It describes no workflow: what is done in which order, the loop does with its tools.",
        "002 exclusions: workflow orchestration",
        (_ENGINE + "test_a_request_that_is_not_in_its_form_is_400",),
    ),
    Row(
        "engine:excluded:version",
        "There is no version in it: both sides are changed together.",
        "002 exclusions: protocol versioning",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_nothing_else_stands_at_the_top",
        ),
    ),
    Row(
        "engine:excluded:envelope",
        "There is no envelope around it: the body is the request.",
        "002 exclusions: envelope format",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_nothing_else_stands_at_the_top",
        ),
    ),
)

_NOTES = (
    Row(
        "engine:process:same",
        "Gateway and loop may run in one process: what is called there takes and gives the same.",
        "002 same-process option",
        (_AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",),
    ),
    Row(
        "engine:process:apart",
        "They can be taken apart later without a change of the contract.",
        "002 same-process option",
        (
            _AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",
            _SWAPPED
            + "test_another_loop_answers_in_the_place_of_ours_by_one_line_of_configuration",
            _BESIDE + "test_a_gateway_serves_the_loop_of_its_agents_at_a_socket_of_its_own",
        ),
    ),
    Row(
        "engine:model:mapped",
        "What a model's interface streams becomes these events one by one.",
        "002 SSE event mapping",
        (
            _ENGINE + "test_one_post_is_answered_by_one_stream",
            _LOOP + "test_what_a_model_says_is_passed_on_as_it_comes_and_ends_with_it",
            _MODELS + "test_a_loop_uses_tools_and_answers_over_anthropics_messages",
        ),
    ),
    Row(
        "engine:approval:next",
        "What must be approved ends its stream with the question; the answer comes by a request of "
        "its own, and the work goes on in a new stream.",
        "002 open question 1; R16",
        (
            _INTERRUPTS
            + "test_a_stream_that_waits_before_it_began_is_an_error_and_after_it_one_frame",
            _INTERRUPTS
            + "test_a_person_answers_at_the_origin_and_the_caller_reads_what_comes_of_it",
            _APPROVALS + "test_a_stream_that_asks_is_told_again_from_its_beginning",
            _APPROVALS + "test_an_answer_survives_a_kill_and_is_gone_on_with",
        ),
    ),
    Row(
        "engine:approval:tool",
        "A tool call that needs an approval is in the stream before its end, and is run or denied "
        "once, when somebody has answered.",
        "002 response, open question 1; R16",
        (
            _AGENTS + "test_an_approved_call_is_run_once_with_what_was_approved",
            _AGENTS + "test_a_denied_call_is_not_run_and_the_model_goes_on",
            _AGENTS + "test_a_kill_while_it_waits_loses_and_repeats_nothing",
            _LOOP + "test_a_tool_that_needs_an_approval_ends_the_answer_with_its_call",
            _LOOP + "test_what_was_approved_is_run_once_when_the_turn_runs_again",
            _LOOP + "test_what_was_denied_is_not_run_and_the_model_is_told",
            _STREAMED + "test_a_call_without_a_result_is_what_an_approval_is_asked_for",
            _WRITTEN + "test_a_call_that_waits_for_an_approval_is_the_last_thing_before_the_end",
            _APPROVALS + "test_what_is_declined_costs_nothing_and_is_told_to_the_agent",
            _APPROVALS + "test_the_same_answer_again_changes_nothing_and_another_is_refused",
        ),
    ),
    Row(
        "engine:approval:held",
        "By a setting the stream of a person's client stays open at a question, for a time: who "
        "reads it sees the question, who answered it and how, and the rest of the answer.",
        "002 open question 1; R16, R17",
        (
            _HELD + "test_what_is_approved_is_done_once_and_told_in_the_same_stream",
            _HELD + "test_a_stream_that_was_held_for_its_time_ends_and_its_answer_is_kept",
            _HELD + "test_a_stream_is_not_held_beyond_its_token_or_its_conversation",
            _SILENT + "test_a_held_stream_is_not_silent_and_looks_once_a_second",
            _SILENT + "test_a_stream_that_has_shown_much_is_not_held",
            _HELD + "test_a_question_outlives_the_gateway_and_is_answered_after",
        ),
    ),
    Row(
        "engine:approval:once",
        "Approved, denied, answered twice or otherwise, late, after a restart or a crash, by "
        "another person, with edited arguments or by a rule: the tool ran once at the most, and "
        "not at all unless somebody approved it; whoever reads it later sees the same.",
        "002 open question 1; R16, R45",
        (
            _HELD + "test_what_is_approved_is_done_once_and_told_in_the_same_stream",
            _HELD + "test_what_is_denied_is_not_done_and_the_agent_is_told",
            _HELD + "test_a_tool_is_run_with_the_arguments_that_were_edited",
            _HELD + "test_somebody_else_who_may_approve_answers_and_nobody_else_does",
            _HELD + "test_what_a_rule_answers_is_not_asked_and_the_stream_says_so",
            _HELD + "test_what_is_not_answered_in_time_is_not_done",
            _HELD + "test_a_question_outlives_the_gateway_and_is_answered_after",
            _APPROVAL_KILLED + "test_what_was_approved_is_done_once_after_a_kill_at",
            _APPROVAL_KILLED + "test_what_a_rule_has_answered_is_done_once_after_a_kill_at",
        ),
    ),
)

_SUCCESS = (
    Row(
        "engine:success:streamed",
        "The gateway sends a request to the loop and receives its answer as a stream.",
        "002 success criteria, first",
        (_AGENTS + "test_the_openai_client_streams_from_it",),
    ),
    Row(
        "engine:success:swap-loop",
        "Another loop in its place changes nothing at the gateway.",
        "002 success criteria, second",
        (
            _CONFORM + "test_a_loop_of_its_own_stands_in_for_ours_and_passes_the_kit",
            _SWAPPED
            + "test_another_loop_answers_in_the_place_of_ours_by_one_line_of_configuration",
        ),
    ),
    Row(
        "engine:success:swap-gateway",
        "Another gateway in its place changes nothing at the loop, which takes any caller that "
        "sends the right shape.",
        "002 success criteria, third",
        (
            _CONFORM + "test_a_front_of_its_own_stands_in_for_the_gateway",
            _ENGINE + "test_one_post_is_answered_by_one_stream",
            _ENGINE + "test_the_request_of_the_design_is_answered_as_it_stands",
        ),
    ),
    Row(
        "engine:success:auth",
        "Requests are authenticated without either side knowing how.",
        "002 success criteria, fourth",
        (
            _AUTHED + "test_who_is_known_comes_through_as_who_it_is",
            _ENGINE + "test_an_api_key_is_a_credential",
        ),
    ),
    Row(
        "engine:success:visible",
        "Tool calls are seen in the stream, with enough to show them and to ask for an approval.",
        "002 success criteria, fifth",
        (
            _ENGINE + "test_a_tool_is_called_seen_and_used_and_all_tokens_are_counted",
            _AGENTS + "test_an_approved_call_is_run_once_with_what_was_approved",
            _LOOP + "test_a_tool_that_needs_an_approval_ends_the_answer_with_its_call",
        ),
    ),
    Row(
        "engine:success:triggers",
        "Whatever has begun it, a request has the same shape, and the loop cannot tell.",
        "002 success criteria, sixth; trigger types",
        (_BEGUN + "test_a_message_a_hook_and_a_schedule_are_one_request_to_the_loop",),
    ),
    Row(
        "engine:success:failures",
        "Which of the two ways a failure is told by is never in doubt.",
        "002 success criteria, seventh",
        (
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
        ),
    ),
    Row(
        "engine:success:both",
        "The contract holds as an endpoint and as a function that is called, in one shape.",
        "002 success criteria, eighth",
        (
            _AGENTS + "test_an_agent_is_answered_by_the_loop_and_billed_for_all_its_tokens",
            _AGENTS + "test_an_approved_call_is_run_once_with_what_was_approved",
        ),
    ),
)

_SECURITY = (
    Row(
        "engine:security:no-bypass",
        "Every request passes Auth before it reaches the loop; there is no other way.",
        "002 security requirements, first",
        (
            _ENGINE + "test_without_a_credential_nothing_is_answered_at_any_path",
            _USED + "test_without_a_credential_no_loop_is_asked",
            _USED + "test_an_agent_elsewhere_cannot_have_a_tool_used_that_the_caller_may_not",
            _ENGINE + "test_a_person_who_has_ended_is_nobody",
            _AUTHED + "test_a_person_who_has_ended_is_nobody_whatever_proves_her",
            _AGENTS + "test_nobody_reaches_the_loop_without_being_known",
            _BESIDE + "test_a_gateway_serves_the_loop_of_its_agents_at_a_socket_of_its_own",
        ),
    ),
    Row(
        "engine:security:no-credentials",
        "No credential stands in a body: not a token, not a key, not the id of a session.",
        "002 security requirements, second",
        (
            _ENGINE + "test_a_request_that_is_not_in_its_form_is_400",
            _READ + "test_what_a_loop_is_configured_with_and_credentials_are_no_part_of_a_request",
            _READ + "test_what_is_said_is_never_searched",
        ),
    ),
    Row(
        "engine:security:read-only",
        "The loop reads who acts and neither changes, makes up nor removes it.",
        "002 security requirements, third",
        (
            _AUTHED + "test_who_is_known_comes_through_as_who_it_is",
            _LOOP + "test_a_model_is_asked_again_with_what_its_tools_gave",
            _USED + "test_an_agent_elsewhere_cannot_have_a_tool_used_that_the_caller_may_not",
            _BEARERS + "test_nothing_beside_it_widens_what_its_turn_may",
        ),
    ),
    Row(
        "engine:security:replicas",
        "A call out of a turn is made at the process that asked; another one of the gateway says "
        "that the turn is not its own.",
        "002 security requirements; issue 15, nesting",
        (_STREAMS + "test_a_call_out_of_a_turn_is_made_at_the_gateway_that_asked_and_at_no_other",),
    ),
    Row(
        "engine:security:correlation",
        "The name of a request goes with it from the gateway through Auth and the loop to tools "
        "and logs.",
        "002 security requirements, fourth; R49",
        (
            _IDS + "test_every_answer_has_a_name_of_its_own",
            _IDS + "test_a_name_that_the_caller_gave_comes_back_and_finds_the_run",
            _SWAPPED + "test_it_is_asked_with_a_bearer_of_the_turn_and_no_credential_of_the_caller",
            _LOOP + "test_a_model_is_asked_again_with_what_its_tools_gave",
            _COMMANDS + "test_it_has_little_of_our_environment",
            _TOOLBOX + "test_whatever_else_it_raises_is_for_the_log_alone",
        ),
    ),
    Row(
        "engine:security:no-leaks",
        "No error in a stream tells a path, a stack or a credential.",
        "002 security requirements, fifth",
        (
            _FAILURES + "test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence",
            _ENGINE + "test_a_failure_of_the_model_is_one_code_and_one_sentence",
            _MODELS + "test_of_sixty_failures_of_such_a_provider_nobody_sees_more_than_a_code",
        ),
    ),
)

ROWS = (
    *(*_CONTRACT, *_REQUEST, *_METADATA, *_CONFIGURATION, *_TRIGGER, *_STREAM, *_ERRORS),
    *(*_IDENTITY, *_CONVENTIONS, *_EXCLUDED, *_NOTES, *_SUCCESS, *_SECURITY),
)
