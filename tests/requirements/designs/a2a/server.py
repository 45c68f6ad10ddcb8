"""What proves the sentences about what is answered, by their ids; see `proof.at_server`."""

from typing import Final

from tests.requirements.rows import Divergence

_HERE = "tests/interop/a2a/test_"
_SDK, _BINDINGS, _SAME = (
    f"{_HERE}sdk_client.py::",
    f"{_HERE}bindings.py::",
    f"{_HERE}equivalence.py::",
)
_MESSAGES, _LISTS, _STREAMS = f"{_HERE}messages.py::", f"{_HERE}lists.py::", f"{_HERE}streams.py::"
_PUSH, _FAILURES = f"{_HERE}push.py::", f"{_HERE}failures.py::"
_OWNERS = "tests/security/a2a/test_owners.py::"
_REPLICAS = "tests/replicas/tasks/test_a2a.py::"
_EXTENSIONS = "tests/interop/a2a_extensions/test_"

_ANSWERED = _SDK + "test_a_message_is_answered_by_a_completed_task"
_LATER = _SDK + "test_who_does_not_wait_is_given_the_task_at_once"
_NEXT = _SDK + "test_what_a_task_asks_is_answered_by_the_next_message"
_HISTORY = _SDK + "test_the_history_of_a_task_tells_what_was_asked_and_answered"
_PARTS = _SDK + "test_parts_of_every_kind_reach_the_agent_and_come_back"
_STREAM = _SDK + "test_a_stream_begins_with_its_task_and_ends_with_its_state"
_BACK = _SDK + "test_a_reader_that_leaves_stops_nothing_and_comes_back"
_REST = _SDK + "test_a_reader_of_a_task_that_waits_is_told_the_rest"
_NOTIFIED = _SDK + "test_who_wants_to_be_told_is_told_of_a_question_and_of_the_end"
_NAMED = _SDK + "test_where_a_task_is_told_of_is_named_shown_and_taken_back"
_INWARD = _SDK + "test_an_address_that_may_not_be_dialled_is_refused"
_ERROR = _BINDINGS + "test_an_error_of_the_protocol_has_its_code_its_status_and_its_reason"
_FRAME = _BINDINGS + "test_an_answer_of_json_rpc_names_its_request"
_NO_FRAME = _BINDINGS + "test_what_is_no_request_of_json_rpc_is_refused"
_EVENTS = _BINDINGS + "test_a_stream_is_of_server_sent_events_each_of_them_whole"
_FIELDS = _BINDINGS + "test_fields_of_the_protocol_are_read_in_any_case_and_with_several_values"
_PATHS = _BINDINGS + "test_each_operation_has_its_path_and_its_method"
_TYPES = _BINDINGS + "test_the_type_of_an_answer_over_http_is_what_its_caller_takes"
_QUERY = _BINDINGS + "test_a_parameter_of_a_query_has_its_spelling"
_NO_VERSION = _BINDINGS + "test_a_version_that_is_not_spoken_is_refused"
_FORMER = _BINDINGS + "test_who_names_no_version_and_speaks_the_former_one_is_answered_in_it"
_SAME_ANSWER = _SAME + "test_the_same_message_has_the_same_answer_in_both"
_SAME_STREAM = _SAME + "test_the_same_message_has_the_same_stream_in_both"
_SAME_QUESTION = _SAME + "test_every_question_has_the_same_answer_in_both"
_SAME_ERROR = _SAME + "test_the_same_error_is_told_in_both"
_STRANGER = _SAME + "test_no_operation_is_for_those_without_a_credential"
_MAY_NOT = _SAME + "test_who_may_not_is_told_which_permission_is_missing"
_ABLE = _SAME + "test_every_agent_declares_what_it_can_and_can_what_it_declares"
_WRITTEN = _MESSAGES + "test_a_task_is_written_as_the_definition_has_it"
_BROKEN = _MESSAGES + "test_what_lacks_something_is_refused_by_the_name_of_it_and_nothing_is_done"
_CONTEXT = _MESSAGES + "test_a_message_without_a_context_is_given_one_and_one_with_it_keeps_it"
_OF_TASK = _MESSAGES + "test_a_message_to_a_task_is_of_its_context_or_refused"
_SIGN_IN = _MESSAGES + "test_a_sign_in_is_asked_for_by_the_state_and_a_message_and_answered_by_one"
_WORD = _MESSAGES + "test_an_agent_may_answer_with_a_message"
_OF_A_TASK = _MESSAGES + "test_a_stream_is_always_that_of_a_task"
_NO_WAIT = _MESSAGES + "test_who_does_not_wait_has_the_task_before_its_end_and_streams_do_not_care"
_CANCELLED = _MESSAGES + "test_a_task_is_cancelled_once_and_stays_so"
_PAGES = _LISTS + "test_pages_follow_one_another_and_say_when_they_end"
_ARTIFACTS = _LISTS + "test_artifacts_are_told_where_they_are_asked_for"
_LENGTH = _LISTS + "test_no_more_of_a_history_is_told_than_is_wanted"
_READERS = _STREAMS + "test_every_reader_is_told_the_same_and_one_that_leaves_disturbs_nobody"
_AS_IT_IS = _STREAMS + "test_a_subscription_begins_with_the_task_as_it_is"
_EVERY = _PUSH + "test_every_address_is_told_one_event_of_a_stream_but_not_one_that_was_deleted"
_SECRET = _PUSH + "test_an_address_is_kept_while_its_task_is_and_its_secret_is_not_told"
_UNSAFE = _PUSH + "test_an_address_that_is_not_encrypted_or_leads_inward_is_refused"
_WAIT = _FAILURES + "test_failed_attempts_are_bounded_and_the_refusal_says_when_to_come_again"
_OTHERS = _OWNERS + "test_a_task_of_another_or_of_another_agent_is_told_like_an_unknown_one"
_ADDRESS = _OWNERS + "test_an_address_of_anothers_task_is_told_like_an_unknown_one"
_EMPTY = _OWNERS + "test_a_context_of_another_is_empty_like_an_unknown_one"
_NAMESAKE = _OWNERS + "test_who_names_the_context_of_another_has_one_of_its_own"
_AWAY = _REPLICAS + "test_who_was_away_is_told_every_event_once_and_in_order_at_another_gateway"
_ACTIVE = _EXTENSIONS + "rows.py::test_what_is_active_is_told_and_what_is_not_known_is_not"
_WEBHOOKS = "tests/runtime/webhooks/test_"

PROVED: Final[dict[str, tuple[str, ...]]] = {
    # bindings
    "bind-equiv-001": (_SAME_ANSWER, _SAME_STREAM, _SAME_QUESTION, _PATHS),
    "bind-equiv-002": (_SAME_ANSWER, _SAME_STREAM, _SAME_QUESTION),
    "bind-equiv-003": (_SAME_ERROR,),
    "bind-equiv-004": (_STRANGER, _MAY_NOT),
    "bind:errors": (_ERROR, _NO_VERSION),
    "jsonrpc-fmt-001": (_FRAME, _NO_FRAME),
    "jsonrpc-fmt-002": (_FRAME,),
    "jsonrpc-svc-001": (_NO_FRAME, _SAME_QUESTION),
    "jsonrpc-svc-002": (_FIELDS,),
    "jsonrpc-err-001": (_NO_FRAME, _ERROR),
    "jsonrpc-err-002": (_ERROR, _NO_VERSION),
    "jsonrpc-err-003": (_ERROR, _NO_VERSION),
    "jsonrpc-sse-001": (_EVENTS,),
    "jsonrpc-sse-002": (_ERROR, _NO_VERSION),
    "http-json-url-001": (_PATHS, _SAME_QUESTION),
    "http-json-url-002": (_PATHS,),
    "http-json-svc-001": (_TYPES,),
    "http-json-svc-002": (_FIELDS,),
    "http-json-qp-001": (_QUERY, _SAME_QUESTION),
    "http-json-qp-types": (_QUERY,),
    "http-json-err-001": (_ERROR, _SAME_ERROR),
    "http-json-err-002": (_ERROR, _NO_VERSION),
    "http-json-status-001": (_ERROR, _NO_VERSION),
    "http-json-sse-001": (_EVENTS,),
    # data
    "dm-task-001": (_WRITTEN,),
    "dm-task-002": (_WRITTEN, _CANCELLED, _NO_WAIT),
    "dm-status-001": (_WRITTEN,),
    "dm-msg-001": (_WRITTEN, _BROKEN),
    "dm-msg-002": (_WRITTEN, _BROKEN),
    "dm-part-001": (_PARTS, _BROKEN),
    "dm-art-001": (_WRITTEN,),
    "dm-equivalent": (_SAME_ANSWER, _SAME_QUESTION),
    "dm-serial-001": (_WRITTEN,),
    "dm-serial-002": (_WRITTEN,),
    "dm-serial-003": (_WRITTEN,),
    "dm-serial-004": (_BROKEN,),
    "dm-serial-005": (_MESSAGES + "test_members_that_nobody_knows_are_passed_over",),
    "dm-optional": (_PAGES, _ARTIFACTS, _LENGTH),
    "ext:version": (
        (
            "tests/wire/dialects/a2a/extensions/test___init__.py::"
            "test_rows_are_known_by_one_name_and_one_uri"
        ),
        _ACTIVE,
    ),
    "ext:unknown": (_ACTIVE,),
    "ext:no-fallback": (_ACTIVE,),
    # operations
    "core-send-001": (_ANSWERED, _LATER, _WORD),
    "send:task-or-message": (_ANSWERED, _WORD),
    "send:goes-on": (_MESSAGES + "test_a_task_goes_on_after_its_answer", _NEXT),
    "core-send-002": (_ERROR, _NEXT),
    "core-execution-mode-001": (_ANSWERED, _NEXT),
    "core-execution-mode-002": (_NO_WAIT, _LATER),
    "send:mode-elsewhere": (_NO_WAIT,),
    "send:idempotent": (_SDK + "test_the_same_message_is_the_same_task",),
    "core-get-001": (_ANSWERED, _HISTORY),
    "core-get-002": (_OTHERS,),
    "get:idempotent": (_MESSAGES + "test_asking_for_a_task_changes_nothing",),
    "core-list-001": (_SDK + "test_another_caller_sees_nothing_of_a_task", _EMPTY),
    "core-list-002": (_PAGES,),
    "core-list-003": (_LISTS + "test_the_task_that_changed_last_comes_first",),
    "core-list-004": (_PAGES,),
    "core-list-005": (_ARTIFACTS,),
    "list:with-artifacts": (_ARTIFACTS,),
    "list:page-size": (_PAGES, _QUERY),
    "list:filters": (
        _LISTS + "test_a_state_and_a_time_choose_and_the_very_moment_counts",
        _SDK + "test_tasks_are_listed_by_context_state_and_page",
    ),
    "core-cancel-001": (
        _CANCELLED,
        _SDK + "test_a_task_that_waits_can_be_cancelled",
        _HERE + "two_hops.py::test_a_task_that_is_cancelled_at_the_first_is_cancelled_at_the_last",
    ),
    "core-cancel-002": (_CANCELLED, _ERROR),
    "core-cancel-003": (_OTHERS,),
    "cancel:idempotent": (_CANCELLED,),
    "core-hist-001": (_LENGTH,),
    "core-hist-002": (_LENGTH, _HISTORY),
    "core-hist-003": (_SDK + "test_history_is_as_long_as_it_is_wanted",),
    "core-hist-004": (_HISTORY,),
    "core-hist-005": (_HISTORY, _LENGTH),
    "core-hist-006": (_HISTORY, _LENGTH),
    "history:unset": (_HISTORY,),
    "messages:not-results": (_ANSWERED, _WRITTEN),
    "core-err-001": (_BROKEN, _ERROR),
    "core-err-002": (_BROKEN,),
    "err:authentication": (_STRANGER,),
    "err:authorization": (_MAY_NOT,),
    "auth-scope-003": (_OTHERS, _ADDRESS, _EMPTY),
    "err:validation": (_BROKEN, _QUERY),
    "err:system": (_WAIT,),
    "err:payload": (_ERROR, _BROKEN),
    "core-cap-001": (_ABLE, _NAMED),
    "core-cap-002": (_ABLE, _STREAM),
    "core-cap-003": (_ABLE, _SAME_QUESTION),
    "core-cap-004": (_ABLE,),
    "card-ext-002": (_ABLE,),
    "core-multi-001": (_CONTEXT,),
    "core-multi-001a": (_CONTEXT,),
    "core-multi-002": (_CONTEXT, _NAMESAKE),
    "core-multi-002a": (_BROKEN,),
    "context:one-session": (_CONTEXT,),
    "context:expiry": (
        "tests/gateway/test_tasks_restarts.py::test_a_task_is_forgotten_when_its_time_has_passed",
    ),
    "core-multi-003": (_CONTEXT, _OF_TASK),
    "core-multi-004": (_OF_TASK,),
    "core-multi-005": (_OF_TASK,),
    "core-multi-006": (_OF_TASK,),
    "turns:references": (_MESSAGES + "test_tasks_that_a_message_refers_to_reach_the_agent",),
    "turns:more-messages": (_NEXT, _SDK + "test_an_approval_takes_a_clear_word"),
    "ver-server-001": (_FORMER,),
    "ver-server-002": (_NO_VERSION,),
    "ver-server-003": (_FORMER,),
    "parameters:names": (_FIELDS,),
    # updates
    "core-stream-001": (_STREAM, _EVENTS),
    "core-stream-002": (_OF_A_TASK,),
    "core-stream-003": (_STREAM,),
    "stream:at-once": (_READERS, _BACK),
    "stream-sub-001": (_AS_IT_IS, _BACK),
    "stream-sub-002": (_READERS, _REST),
    "stream-sub-003": (_ERROR, _BACK),
    "stream-sub-004": (_OTHERS,),
    "stream-order-001": (_READERS, _AWAY),
    "stream-order-002": (
        _READERS,
        _AWAY,
        _STREAMS + "test_what_was_shown_before_a_question_is_not_shown_again",
    ),
    "stream-order-003": (_READERS,),
    "stream-order-004": (_READERS, _BACK),
    "stream:several": (
        _READERS,
        _BACK,
        _STREAMS + "test_who_waits_for_an_answer_with_many_readers_reads_everything_else",
    ),
    "stream:snapshot": (_STREAM,),
    "push-create-001": (_NAMED, _EVERY),
    "push-create-002": (_EVERY, _SECRET),
    "push-get-001": (_NAMED, _SECRET),
    "push-get-002": (_NAMED, _OTHERS, _ADDRESS),
    "push-list-001": (_NAMED, _PUSH + "test_addresses_are_listed_page_by_page"),
    "push-del-001": (_NAMED, _EVERY),
    "push-del-002": (_EVERY,),
    "push-deliver-001": (_NOTIFIED,),
    "push-deliver-002": (_NOTIFIED, _EVERY),
    "push-deliver-003": (_EVERY,),
    "push:retries": (
        _WEBHOOKS + "schedule.py::"
        "test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead",
        (
            "tests/faults/test_receivers.py::"
            "test_f29_each_receiver_gets_what_it_can_take_and_none_holds_up_another"
        ),
    ),
    "push:timeout": (
        _WEBHOOKS + "dispatcher.py::test_a64_a_receiver_that_never_answers_is_given_up_in_time",
    ),
    "push:ssrf": (
        _INWARD,
        _UNSAFE,
        _WEBHOOKS + "dispatcher.py::"
        "test_a63_a_name_that_is_public_when_it_is_named_and_inward_when_dialled",
    ),
    "push:https": (_UNSAFE,),
    "push:secrets": (_SECRET, _NAMED),
    # security
    "auth-server-002": (_STRANGER,),
    "auth:policy": (_MAY_NOT,),
    "auth-scope-001": (_STRANGER, _MAY_NOT),
    "auth-scope-002": (_EMPTY, _NAMESAKE),
    "auth-scope-tasks": (_OTHERS, _ADDRESS),
    "auth-scope-first": (_OTHERS, _MAY_NOT),
    "auth-scope-documented": (_MAY_NOT,),
    "auth-intask-001": (_SIGN_IN,),
    "auth-intask-002": (_SIGN_IN,),
    "auth-intask-003": (_SIGN_IN,),
    "auth-intask-004": (_SIGN_IN,),
    "auth-intask-006": (_SIGN_IN, _SDK + "test_an_approval_takes_a_clear_word"),
    "auth-intask-means-nothing": (_SIGN_IN,),
    "practice:bounds": (
        _BROKEN,
        "tests/gateway/endpoint/test_bad_input.py::test_an_oversized_body_is_refused",
    ),
    "practice:media": (_TYPES,),
    "practice:secrets": (
        _SECRET,
        "tests/security/test_stolen_database.py::test_the_database_holds_no_token_in_any_spelling",
        "tests/security/test_log.py::test_a_credential_in_the_wrong_place_is_not_logged",
    ),
    "practice:failures": (_WAIT,),
    "practice:audit": (
        "tests/gateway/test_runs.py::test_a_run_is_shown_as_a_tree_with_payer_and_cost",
        "tests/gateway/test_runs.py::test_log_lines_are_json_with_the_fixed_fields",
    ),
    "practice:rates": (
        "tests/security/signed/test_rates.py::test_a_sender_spends_its_own_quota_and_nobody_elses",
        _WAIT,
    ),
    "practice:privacy": (
        "tests/gateway/test_tasks_restarts.py::test_a_task_is_forgotten_when_its_time_has_passed",
    ),
}

_PROXY = "A gateway speaks HTTP/1.1 and leaves TLS to the proxy before it (operations/proxies.md)."

# Where we depart from a sentence, and what shows what we do instead.
DIVERGENCES: Final[dict[str, tuple[Divergence, tuple[str, ...]]]] = {
    "core-send-003": (
        Divergence(
            "R39",
            "An agent sees all parts and rejects a task itself: nobody else knows what it takes.",
        ),
        (_PARTS, _SDK + "test_an_agent_may_reject_a_task_or_fail_at_it"),
    ),
    "auth-intask-005": (
        Divergence(
            "R16",
            "A stream that needs a decision ends with the question; a subscription stays open.",
        ),
        (_REST,),
    ),
    "auth-tls-001": (Divergence("R52", _PROXY), ()),
    "auth-tls-002": (Divergence("R52", _PROXY), ()),
}
