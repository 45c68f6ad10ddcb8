"""The attacks of security.md on the parser, the transport and what can be used up."""

from tests.requirements.rows import Row

_BEHIND = "tests/edge/behind/test_proxies_differential.py::"
_RAW = "tests/edge/heads/test_raw_requests.py::"
_LAWFUL = "tests/edge/heads/test_lawful_requests.py::"
_ORDER = "tests/edge/test_order.py::"
_DEADLINES = "tests/edge/test_deadlines.py::"
_SIZES = "tests/edge/test_sizes.py::"
_HEAD = "tests/edge/heads/test_head.py::"
_CLOCK = "tests/edge/test_clock.py::"
_ABANDONED = "tests/edge/test_abandoned.py::"
_GUESSING = "tests/edge/heads/test_guessing.py::"
_OVERLOAD = "tests/edge/test_overload.py::"
_PROXIES = "tests/edge/test_proxies.py::"
_READINESS = "tests/edge/test_readiness.py::"
_BODIES = "tests/security/test_bodies.py::"
_LOG = "tests/security/test_log.py::"
_STRANGERS = "tests/security/callers/test_strangers.py::"
_TASKS = "tests/gateway/test_tasks.py::"
_TENANTS = "tests/security/callers/test_tenants.py::"
_UPSTREAM = "tests/security/test_upstream.py::"
_WALLET = "tests/security/callers/test_wallet.py::"
_BAD_INPUT = "tests/gateway/endpoint/test_bad_input.py::"
_CHAT = "tests/gateway/dialects/test_openai.py::"
_JSON = "tests/wire/grammar/test_json.py::"
_HEADERS = "tests/wire/grammar/test_headers.py::"
_SSE = "tests/wire/grammar/test_sse.py::"
_STREAM = "tests/wire/dialects/openai/test_stream.py::"
_TRACE = "tests/interop/traces/test_one_trace.py::"
_EXPORTER = "tests/runtime/traces/test_exporter.py::"
_ENDS = "tests/runtime/traces/test_ends.py::"
_TELEMETRY = "tests/test_telemetry.py::"
_LEAVING = "tests/runtime/egress/test_client_requests.py::"
_ADMISSION = "tests/guards/admission/test_gate.py::"
_TRUST = "tests/stores/trust/test_tokens.py::"

_A36 = (
    Row(
        "security:a36:proxies",
        "What a proxy tells of its caller is read from the address of a trusted one alone, "
        "strictly, and from the right; from everybody else it means nothing.",
        "security.md A36, A68",
        (
            _PROXIES + "test_the_right_most_address_that_is_not_trusted_called",
            _PROXIES + "test_what_cannot_be_read_in_one_way_is_refused",
            _PROXIES + "test_an_address_is_trusted_by_the_list_alone",
            _PROXIES + "test_the_log_names_the_caller_behind_a_trusted_proxy",
            _PROXIES
            + "test_a_field_that_cannot_be_read_is_refused_from_a_proxy_and_ignored_from_others",
        ),
    ),
)

_A48 = (
    Row(
        "security:a48:framing",
        "A request that two servers could read differently is refused, its connection closed, and "
        "nothing behind it reaches the application.",
        "security.md A48",
        (
            _RAW + "test_what_can_be_read_in_two_ways_is_refused_and_closed",
            _RAW + "test_what_is_too_large_is_refused_by_its_own_status",
            _RAW + "test_what_is_well_framed_is_refused_by_the_application_once",
            _RAW + "test_a_bad_stamp_is_named_by_the_chat_endpoint",
            _RAW + "test_no_request_can_be_hidden_behind_another",
            _RAW + "test_nothing_is_read_behind_a_request_that_asks_for_another_protocol",
            _LAWFUL + "test_nothing_is_read_behind_a_body_beside_an_upgrade",
            _LAWFUL + "test_an_upgrade_excuses_no_framing",
            _LAWFUL + "test_a_body_beside_an_upgrade_is_read_as_strictly_as_any",
            _LAWFUL + "test_a_whole_address_that_may_be_another_one_is_refused",
            _ORDER + "test_a_bad_request_behind_good_ones_only_ends_the_connection",
            _HEAD + "test_any_other_head_is_refused",
        ),
    ),
    Row(
        "security:a49:differential",
        "Behind a proxy the application sees as many requests as the proxy forwarded.",
        "security.md A49",
        (
            _BEHIND + "test_the_application_sees_what_the_proxy_forwarded_and_nothing_else",
            _BEHIND + "test_what_a_proxy_reads_as_one_request_is_no_more_than_one_here",
            _BEHIND + "test_the_proxies_and_our_reader_took_some_and_refused_most",
        ),
    ),
)

_A50 = (
    Row(
        "security:a50:deadlines",
        "Who sends a head or a body too slowly, or nothing, is closed at an absolute deadline; "
        "others do not notice. `make slowloris` measures two thousand of them.",
        "security.md A50",
        (
            _DEADLINES + "test_a_silent_connection_is_closed_without_a_word",
            _DEADLINES + "test_a_head_that_drips_is_refused",
            _DEADLINES + "test_line_breaks_without_end_are_refused_after_a_request_too",
            _DEADLINES + "test_a_body_that_drips_is_refused_and_nothing_runs",
            _DEADLINES + "test_a_body_has_to_come_at_a_rate_after_a_while",
            _DEADLINES + "test_two_hundred_slow_connections_do_not_hold_up_a_healthy_one",
            _CLOCK + "test_each_state_has_its_deadline",
        ),
    ),
)

_A51 = (
    Row(
        "security:a51:sizes",
        "Too large a head, too many fields, too long a target and too large a body are refused by "
        "their own status, and none of it is kept in memory.",
        "security.md A51",
        (
            _RAW + "test_what_is_too_large_is_refused_by_its_own_status",
            _SIZES + "test_what_has_no_end_is_refused_and_not_kept",
            _SIZES + "test_a_request_that_was_answered_without_its_body_cannot_go_on_without_end",
            _CLOCK + "test_a_refused_client_may_finish_its_sentence_and_is_then_cut_off",
        ),
    ),
    Row(
        "security:a51:together",
        "Connections, requests and bodies are bounded together as well; beyond that work is "
        "refused with 503 and a time to come again, and health is still answered.",
        "security.md A51, D9, F31",
        (
            _OVERLOAD + "test_beyond_so_many_requests_only_health_is_answered",
            _OVERLOAD + "test_beyond_so_many_connections_only_health_is_answered",
            _OVERLOAD + "test_beyond_the_spare_connections_one_is_closed_at_once",
            _OVERLOAD + "test_a_spare_connection_that_says_nothing_is_not_kept_for_long",
            _OVERLOAD + "test_large_bodies_are_bounded_together_and_let_go_of_in_the_end",
            _OVERLOAD
            + "test_one_caller_may_fill_its_share_of_the_large_bodies_and_others_have_room",
            _OVERLOAD + "test_one_tenant_with_its_share_of_large_bodies_leaves_room_for_another",
            _OVERLOAD + "test_a_gateway_that_is_full_refuses_work_and_says_that_it_lives",
            _OVERLOAD + "test_connections_that_do_nothing_do_not_keep_a_probe_out",
            _OVERLOAD + "test_bodies_that_never_end_are_refused_before_they_fill_the_memory",
            _OVERLOAD + "test_a_gateway_out_of_files_goes_on_listening",
        ),
    ),
)

_A52 = (
    Row(
        "security:a52:encoding",
        "A body with a content-encoding is refused without unpacking it.",
        "security.md A52",
        (
            _BODIES + "test_a_packed_body_is_refused_and_not_unpacked",
            _BAD_INPUT + "test_media_types_and_encodings_are_checked",
        ),
    ),
)

_A53 = (
    Row(
        "security:a53:json",
        "JSON that two parsers could read differently, or that is deeper than 32 levels, is "
        "refused as `invalid_json`, whatever it is made of.",
        "security.md A53",
        (
            _BAD_INPUT + "test_a_body_that_is_not_strict_json_is_refused",
            _JSON + "test_a_body_that_two_parsers_could_read_differently_is_refused",
            _JSON + "test_thirty_three_levels_are_refused",
            _JSON + "test_any_bytes_are_a_value_or_invalid_json",
            _BODIES + "test_a_body_of_many_parts_is_refused_before_it_is_built",
        ),
    ),
)

_A54 = (
    Row(
        "security:a54:cost",
        "A body of a million parts, of colliding keys or of one endless string is refused or read "
        "in little time of the processor; too many parts are `invalid_json` here.",
        "security.md A54",
        (
            _BODIES + "test_a_body_of_many_parts_is_refused_before_it_is_built",
            _BODIES + "test_refusing_it_takes_a_moment_of_the_processor",
            _BODIES + "test_keys_that_were_chosen_to_collide_do_not",
            _BODIES + "test_a_string_as_long_as_a_body_is_told_as_too_large",
            _JSON + "test_a_million_elements_are_refused_before_they_are_built",
            _JSON + "test_a_million_keys_are_refused_before_they_are_built",
        ),
    ),
)

_A55 = (
    Row(
        "security:a55:media",
        "A body that does not say that it is JSON in UTF-8 is refused.",
        "security.md A55",
        (
            _BODIES + "test_what_does_not_say_that_it_is_json_is_refused",
            _BAD_INPUT + "test_media_types_and_encodings_are_checked",
        ),
    ),
)

_A58 = (
    Row(
        "security:a58:outbound",
        "No value that could end its line, or that a receiver would read differently, comes in as "
        "an id or leaves in a header.",
        "security.md A58",
        (
            _BAD_INPUT + "test_ids_are_bounded_visible_ascii",
            _HEADERS + "test_a_protocol_value_that_is_not_visible_ascii_is_refused",
            _HEADERS + "test_a_value_that_would_not_arrive_as_it_left_is_not_written",
            _HEADERS + "test_a_name_that_is_no_lower_case_token_is_not_written",
            "tests/runtime/egress/test_client.py::test_a_header_that_would_end_its_line_does_not_leave",
        ),
    ),
)

_A59 = (
    Row(
        "security:a59:sse",
        "Text that looks like an event stays inside the one line of its own event.",
        "security.md A59",
        (
            _CHAT + "test_text_that_looks_like_sse_stays_inside_one_frame",
            _SSE + "test_text_inside_json_cannot_add_an_event",
            _SSE + "test_data_of_more_than_one_line_is_not_written",
            _SSE + "test_no_name_id_or_comment_can_break_its_line",
            _STREAM + "test_no_text_can_add_a_line_to_a_stream",
            _JSON + "test_whatever_is_written_is_one_line_to_every_reader",
        ),
    ),
)

_A60 = (
    Row(
        "security:a60:log",
        "One JSON object a line, whatever somebody writes into a value: control characters are "
        "escaped, values cut, credentials blanked out.",
        "security.md A60",
        (
            _LOG + "test_no_value_can_write_a_line_of_its_own",
            _LOG + "test_a_credential_in_the_wrong_place_is_not_logged",
            _TELEMETRY + "test_control_characters_stay_inside_their_line",
            _TELEMETRY + "test_long_values_are_cut",
            _TELEMETRY + "test_what_looks_like_a_credential_is_blanked_out",
        ),
    ),
    Row(
        "security:a60:terminal",
        "What another side says of itself adds no line to what a command shows.",
        "A60",
        ("tests/cli/test_output.py::test_a_card_adds_no_line_to_what_is_shown",),
    ),
)

_SPANS = (
    Row(
        "security:a60:spans",
        "A span that leaves for a collector tells neither what was asked nor what was answered, "
        "and no credential.",
        "security.md A60",
        (_TRACE + "test_neither_what_is_asked_nor_a_secret_leaves",),
    ),
    Row(
        "security:a60:collector",
        "Spans that wait for a collector are bounded: more are dropped, and counted.",
        "security.md A60, D9",
        (
            _EXPORTER + "test_what_waits_is_bounded_and_the_rest_is_counted",
            _TRACE + "test_metrics_count_cost_and_calls_by_agent_and_by_peer",
        ),
    ),
    Row(
        "security:a60:labels",
        "The labels of metrics have a bounded number of values, whoever calls or is called.",
        "security.md A60, D9",
        (_ENDS + "test_there_are_so_many_peers_and_one_for_all_others",),
    ),
)

_A61 = (
    Row(
        "security:a61:stall",
        "A reader that takes nothing is cut off, its agent stopped, and little waits for it.",
        "security.md A61",
        (
            _ABANDONED + "test_many_readers_that_never_read_are_cut_off_and_kept_small",
            _DEADLINES + "test_a_reader_that_never_reads_is_cut_off_and_its_agent_stopped",
            _DEADLINES + "test_a_slow_reader_that_reads_is_left_alone",
            "tests/faults/test_clients.py::test_f22_a_client_that_stalls_does_not_hold_up_the_others",
        ),
    ),
)

_A62 = (
    Row(
        "security:a62:abort",
        "Streams that are opened and left leave no call, no socket and no agent behind.",
        "security.md A62",
        (
            _ABANDONED + "test_streams_that_are_opened_and_left_leave_nothing_behind",
            "tests/faults/test_clients.py::test_f21_many_clients_that_leave_leave_nothing_behind",
            _LEAVING + "test_many_abandoned_requests_leave_no_socket_behind",
        ),
    ),
)

_A65 = (
    Row(
        "security:a65:leak",
        "What an upstream says of its own fault reaches nobody but the log, redacted.",
        "security.md A65",
        (
            _UPSTREAM + "test_what_an_upstream_says_of_its_own_fault_is_told_to_nobody",
            _UPSTREAM + "test_a_credential_that_an_upstream_says_back_is_told_to_nobody",
            _CHAT + "test_the_text_of_an_exception_reaches_nobody",
        ),
    ),
)

_A66 = (
    Row(
        "security:a66:events",
        "Whatever an upstream streams, the caller sees one end and nothing after it.",
        "security.md A66, I7",
        (
            _UPSTREAM + "test_a_stream_has_one_end_whatever_an_upstream_sends",
            _UPSTREAM + "test_a_whole_answer_has_one_end_as_well",
            _UPSTREAM + "test_an_upstream_that_never_ends_is_cut_off_by_size",
            _STREAM + "test_a_stream_that_is_not_what_it_should_be_ends_in_one_failure",
            _STREAM + "test_one_terminal_event_comes_out_however_a_hostile_stream_is_cut",
        ),
    ),
)

_TIMING = "tests/security/timing/test_same_work.py::"
_OWNERS = "tests/guards/caller/test_owner.py::"
_A67 = (
    Row(
        "security:a67:enumeration",
        "A run of another is answered like one that is not there, and only to those who may ask.",
        "security.md A67",
        (
            _TENANTS + "test_a_run_of_another_looks_like_one_that_is_not_there",
            _TENANTS + "test_a_running_turn_of_another_is_not_there_either",
            _STRANGERS + "test_a_page_behind_a_token_is_closed_to_strangers",
        ),
    ),
    Row(
        "security:a67:tasks",
        "A task of another agent, one that is forgotten and one that never was are told in the "
        "same bytes; who may not read or cancel a task learns nothing of it.",
        "security.md A67",
        (
            _TASKS + "test_unknown_and_foreign_ids_are_answered_with_the_same_bytes",
            _TASKS + "test_where_polling_is_signed_others_are_told_nothing",
            _TASKS + "test_only_who_signs_now_may_cancel",
            _TASKS + "test_a_token_without_the_right_sees_no_tasks_and_one_with_it_its_own",
        ),
    ),
    Row(
        "security:a67:timing",
        "Nor does the time of the answer tell the two apart: of what is another's nothing is read, "
        "and a signature is judged in any case. `make timing` measures it.",
        "security.md A67",
        (
            _TIMING + "test_who_asks_for_what_is_anothers_costs_what_nobodys_costs",
            _OWNERS + "test_a_signature_is_judged_whether_there_is_a_sender_or_not",
        ),
    ),
)

_A68 = (
    Row(
        "security:a68:guessing",
        "Too many wrong tokens of one address are 429 on every page, before their bodies are "
        "read; a valid token passes from there all the same.",
        "security.md A68",
        (
            _GUESSING + "test_too_many_wrong_tokens_of_one_address_are_429",
            _GUESSING + "test_a_valid_token_passes_from_an_address_that_guesses",
            _GUESSING + "test_what_needs_no_token_is_answered_wherever_it_is_asked_from",
            _GUESSING + "test_a_wrong_token_counts_on_every_page",
            _GUESSING + "test_the_body_of_a_guesser_is_not_waited_for",
            "tests/guards/caller/test_failures.py::test_the_table_is_bounded_and_forgets_the_oldest",
        ),
    ),
    Row(
        "security:a68:compare",
        "A token is never compared as text: it is looked up by its keyed digest, of one length, "
        "whatever bytes it is made of.",
        "security.md A68, D10",
        (
            _TRUST + "test_a_token_is_found_by_its_text_and_by_nothing_else",
            _TRUST + "test_the_database_holds_no_token_and_no_peers_token",
            _GUESSING + "test_an_odd_token_is_as_wrong_as_any_other",
        ),
    ),
)

_A69 = (
    Row(
        "security:a69:wallet",
        "A tree of calls, however wide and deep, makes no more calls than a run may make and costs "
        "no more than its payer's limit, in process and over the network.",
        "security.md A69",
        (
            _WALLET + "test_a_tree_that_is_wide_and_deep_is_cut_at_the_calls_of_its_run",
            _WALLET + "test_an_agent_that_calls_itself_over_the_network_is_cut_as_well",
            _WALLET + "test_a_spending_limit_bounds_the_whole_tree",
            "tests/guards/limits/test_runaway.py::test_a_caller_may_make_only_so_many_calls_in_a_run",
            _ADMISSION + "test_the_time_of_an_agent_bounds_the_call_and_what_it_calls",
        ),
    ),
)

_A70 = (
    Row(
        "security:a70:closed",
        "Without a token, or without its permission, nothing is shown but one word of health and "
        "what an error means.",
        "security.md A70",
        (
            _STRANGERS + "test_a_page_behind_a_token_is_closed_to_strangers",
            _STRANGERS + "test_what_is_not_served_is_not_there_whoever_asks",
            _STRANGERS + "test_metrics_need_their_own_permission",
            _STRANGERS + "test_health_and_readiness_say_one_word",
            _STRANGERS + "test_who_is_a_peer_is_not_told_to_whoever_asks_for_its_agents",
            _STRANGERS + "test_a_wrong_token_and_an_odd_page_tell_strangers_nothing_of_the_house",
            _READINESS + "test_an_open_circuit_is_a_word_to_strangers_and_a_name_to_operators",
            _READINESS + "test_a_wrong_token_is_told_nothing_at_all",
        ),
    ),
    Row(
        "security:a70:banner",
        "No answer names its server or a version, those of the edge included.",
        "security.md A70",
        (
            _STRANGERS + "test_no_answer_names_its_server_or_a_version",
            _STRANGERS + "test_nor_does_a_refusal_of_the_edge",
            _RAW + "test_a_refusal_has_the_one_shape_and_no_banner",
        ),
    ),
)

ROWS = (
    *(*_A36, *_A48, *_A50, *_A51, *_A52, *_A53, *_A54, *_A55, *_A58, *_A59, *_A60, *_A61, *_A62),
    *(*_SPANS, *_A65, *_A66, *_A67, *_A68, *_A69, *_A70),
)
