"""People: who they are, what their tokens may do, and what ends with them."""

from tests.requirements.rows import Row

_ATTACKS = "tests/security/callers/test_people.py::"
_STORED = "tests/stores/trust/test_people.py::"
_HTTP = "tests/gateway/people/test_people.py::"
_TYPED = "tests/cli/trust/test_people.py::"
_PERSON = "tests/core/people/test_person.py::"
_NAMES = "tests/core/people/test_permissions.py::"

_MADE = "tests/gateway/triggers/test_pages.py::"
_BEGUN = "tests/gateway/triggers/test_starter.py::"
_RECEIVED = "tests/gateway/triggers/test_receiver.py::"
_COPIES = "tests/gateway/triggers/test_starter_replicas.py::"
_TOKENS = "tests/stores/trust/test_tokens.py::"
_RESTING = "tests/gateway/triggers/test_own_triggers.py::"
_SCHEDULES = "tests/stores/triggers/test_schedules.py::"
_HOOKS = "tests/stores/triggers/test_hooks.py::"
_SCHEMES = "tests/wire/hooks/test_scheme.py::"

_TWO = "tests/replicas/tasks/test_people.py::"
_GRANTED = "tests/stores/trust/test_delegations.py::"
_ENDED = "tests/runtime/peers/test_ended.py::"
_ABROAD = "tests/travel/test_ended_delegations.py::"
_SIGNED_IN = "tests/gateway/people/test_signed_in.py::"
_SIGNING = "tests/gateway/people/test_sessions.py::"
_COOKIE = "tests/guards/caller/test_session.py::"
_SESSIONS = "tests/stores/trust/test_sessions.py::"
_KILLED = "tests/gateway/people/test_sessions_killed.py::"
_PAID = "tests/gateway/people/test_ledger.py::"
_POSTED = "tests/stores/ledger/test_payments.py::"

ROWS = (
    Row(
        "security:a41:payer",
        "Who pays is told its own postings and a line of each run they are of, whoever called; "
        "nothing of what was asked and answered, and nothing of what others pay.",
        "A41, R26",
        (
            _PAID + "test_a_payer_is_told_her_postings_and_the_lines_of_her_runs",
            _PAID + "test_who_pays_for_the_call_of_another_is_told_of_it_and_not_what_it_said",
            _PAID + "test_a_person_is_told_what_all_her_tokens_paid",
            _PAID + "test_an_account_is_held_since_its_first_token_of_the_same_holder",
            _POSTED + "test_what_two_pay_for_in_one_run_is_told_apart",
            _POSTED + "test_what_was_paid_before_an_account_was_held_is_not_told",
        ),
    ),
    Row(
        "security:a94:others",
        "Whoever has no permission for it reads, adds and ends nobody, and learns no name.",
        "A94, R25",
        (
            _ATTACKS + "test_a_person_reads_and_ends_nobody_without_the_permission",
            _ATTACKS + "test_without_a_token_nobody_is_told_whether_somebody_is_known",
            _ATTACKS + "test_a_name_that_is_no_name_finds_nobody",
            _HTTP + "test_nobody_grants_what_it_has_not",
        ),
    ),
    Row(
        "security:a94:triggers",
        "The hooks and schedules of a person, and what they began, are hers alone: nobody else "
        "reads, begins, changes or deletes them, and a name tells nothing of another's.",
        "A94, R44",
        (
            _BEGUN + "test_two_owners_see_nothing_of_one_anothers",
            _MADE + "test_a_machine_has_none",
            _SCHEDULES + "test_a_schedule_is_its_owners_and_nobody_elses",
            _HOOKS + "test_a_hook_is_its_owners_and_nobody_elses",
        ),
    ),
    Row(
        "security:a94:away",
        "What runs for a person while she is away has the rights, the rates and the money of the "
        "token that made it, is bounded in number, and ends with that token and with her; what "
        "begins nothing for one of these reasons is shown, and she is told.",
        "A94, R44",
        (
            _MADE + "test_nobody_has_something_called_that_it_may_not_call_itself",
            _MADE + "test_what_a_token_may_not_pay_nothing_that_it_made_pays",
            _MADE + "test_one_token_of_hers_lends_its_rights_to_no_other",
            _MADE + "test_one_person_has_as_many_as_may_be",
            _RESTING
            + "test_what_runs_with_a_token_that_has_ended_rests_and_its_owner_is_told_once",
            _RESTING + "test_one_that_rests_goes_on_with_the_token_that_lets_it",
            _RESTING + "test_a_tick_beyond_what_may_be_to_begin_is_shown_told_and_counted",
            _MADE + "test_who_ends_has_none_left_that_begins_anything",
            _RECEIVED + "test_no_more_is_kept_than_may_be_to_begin",
        ),
    ),
    Row(
        "security:a09:hooks",
        "An event that is sent to a hook again begins nothing; one that is forged, stale or "
        "oversized is refused before anything is stored, as if there were no such hook.",
        "A09, R44",
        (
            _RECEIVED + "test_an_event_that_is_sent_a_hundred_times_begins_one_conversation",
            _RECEIVED + "test_what_is_forged_stale_or_oversized_is_refused_and_nothing_is_kept",
            _COPIES
            + "test_an_event_that_comes_a_hundred_times_to_two_gateways_at_once_begins_once",
            _HOOKS + "test_an_event_is_taken_once_however_many_copies_come_at_once",
            _SCHEMES + "test_an_event_is_known_by_what_is_signed_and_by_nothing_else",
        ),
    ),
    Row(
        "security:a94:tokens",
        "A token becomes a person's by the command line alone, and only one that is nobody's.",
        "A94, R25",
        (
            _ATTACKS + "test_no_route_makes_a_service_token_somebodys",
            _STORED + "test_a_service_is_adopted_with_the_account_it_has",
            _STORED + "test_with_a_service_that_is_adopted_its_conversations_become_hers",
            _TYPED + "test_a_token_that_is_there_is_adopted_with_its_account",
        ),
    ),
    Row(
        "security:a41:names",
        "The name of a token that was somebody's is given to nobody else while records may be kept "
        "under it, which whoever holds it reads.",
        "A41, R25",
        (
            _ATTACKS + "test_nobody_reads_the_runs_of_another_by_the_name_of_a_token",
            _TOKENS
            + "test_a_name_that_was_anothers_is_given_to_nobody_else_while_records_may_be_kept",
        ),
    ),
    Row(
        "security:a57:people",
        "No person is called like a peer, an agent, a machine or somebody else.",
        "A57, R25",
        (
            _ATTACKS + "test_nobody_is_called_like_a_peer_an_agent_a_machine_or_somebody_else",
            _PERSON + "test_what_is_no_slug_or_names_a_machine_is_no_name",
            _PERSON + "test_who_acts_is_a_bare_name_or_says_which_machine_it_is",
        ),
    ),
    Row(
        "security:a95:narrowed",
        "A token of a person may do what both allow, and a role never adds to a token.",
        "A95, R25",
        (
            _ATTACKS + "test_the_rights_of_a_person_bound_what_a_token_of_hers_may_do",
            _STORED + "test_a_token_of_a_person_may_do_what_both_allow",
            _NAMES + "test_two_sets_leave_what_both_allow_and_nothing_else",
            _NAMES + "test_each_role_holds_the_one_before_it",
        ),
    ),
    Row(
        "security:a95:names",
        "A name that nothing asks for cannot be granted, and no set grows with the program.",
        "A95, R28",
        (
            _NAMES + "test_a_name_that_nothing_acts_on_cannot_be_granted",
            _NAMES + "test_what_stands_for_all_is_written_out_when_it_is_granted",
            _TYPED + "test_everything_is_granted_as_the_names_there_are",
            _STORED + "test_what_stood_for_all_is_written_out_and_what_meant_nothing_is_taken_back",
        ),
    ),
    Row(
        "security:a86:delegations",
        "With a delegation ends every one below it, whoever derived it, and all that it let in.",
        "A86, R54, R59",
        (
            _GRANTED + "test_with_a_delegation_ends_every_one_below_it_and_no_other",
            _GRANTED + "test_a_delegation_is_a_persons_and_ends_with_her",
            _GRANTED + "test_a_call_and_a_task_end_with_a_link_of_their_delegation",
            "tests/guards/caller/test_delegation.py::test_a_link_that_was_ended_ends_the_chain",
        ),
    ),
    Row(
        "security:a86:elsewhere",
        "What its issuer has ended is refused at other organisations, with all below it: by a "
        "signed list that is at most a minute old where money is named, and without one as the "
        "agent says.",
        "A86, R59",
        (
            _ENDED + "test_what_its_issuer_has_ended_is_refused_with_all_below_it",
            _ENDED + "test_a_list_is_a_minute_old_where_a_delegation_may_pay_and_older_where_not",
            _ENDED + "test_without_a_list_what_may_pay_is_refused_unless_the_agent_says_otherwise",
            _ENDED + "test_a_list_of_another_or_that_is_old_or_not_whole_tells_nothing",
            _ABROAD + "test_what_was_ended_before_it_was_shown_is_refused_elsewhere",
        ),
    ),
    Row(
        "security:a86:people",
        "With a person ends, in one transaction, all that admits her, and it is told; what runs or "
        "waits for her is cancelled.",
        "A86, R25, R54",
        (
            _STORED + "test_with_a_person_ends_all_that_is_hers_and_it_is_told",
            _STORED + "test_what_waits_for_a_person_who_ended_is_cancelled_and_nothing_else",
            _STORED + "test_a_call_has_ended_with_its_person",
            _HTTP + "test_the_token_of_a_person_ends_at_once_where_she_is_ended",
            _HTTP + "test_what_runs_for_a_person_is_cancelled_when_she_ends",
            _TWO + "test_the_end_of_one_person_leaves_nothing_that_admits_and_nothing_that_runs",
        ),
    ),
    Row(
        "security:a115:pages",
        "The cookie of who has signed in is believed from our own pages alone, and what changes "
        "something shows the csrf token of its session; no other page signs anybody in.",
        "A115",
        (
            _SIGNED_IN + "test_a_change_without_the_csrf_token_does_nothing",
            _SIGNED_IN + "test_for_the_page_of_another_site_she_is_nobody",
            _SIGNING + "test_the_page_of_another_site_signs_nobody_in",
            _SESSIONS + "test_who_is_given_a_number_that_was_anothers_has_another_csrf_token",
            _COOKIE + "test_over_tls_the_name_of_the_cookie_is_this_hosts_alone",
            _COOKIE + "test_only_on_loopback_does_it_go_without_tls",
        ),
    ),
    Row(
        "security:a116:sessions",
        "A session may what its token may, is shown as a cookie alone, and ends with its token, "
        "its person and its time, on every gateway; nobody sees or ends another's.",
        "A116, R25, R54",
        (
            _SIGNED_IN + "test_who_has_signed_in_calls_and_sees_her_runs_as_with_her_token",
            _SIGNED_IN + "test_a_session_may_no_more_than_its_token_and_she",
            _SIGNED_IN + "test_neither_a_cookie_nor_a_code_is_a_bearer",
            _SIGNED_IN + "test_what_a_program_shows_goes_before_a_cookie",
            _SIGNING + "test_everybody_sees_and_ends_her_own_sessions",
            _SIGNING + "test_with_its_token_and_its_person_a_session_ends",
            _SIGNING + "test_one_that_nobody_uses_ends_and_one_that_is_used_lasts",
            _SIGNING + "test_a_session_does_not_make_another",
            _SESSIONS + "test_who_uses_it_stays_signed_in_but_not_for_ever",
            _SESSIONS + "test_a_person_has_so_many_and_the_longest_unused_end",
            _TWO + "test_a_session_ends_at_every_gateway_and_its_stream_with_it",
            _KILLED + "test_a_session_is_live_or_ended_after_a_kill_at",
        ),
    ),
    Row(
        "security:a116:codes",
        "A link signs in once, on all gateways together, for some minutes, when its button is "
        "pressed; of a cookie or a code nothing is stored or logged that shows it.",
        "A116",
        (
            _SIGNING + "test_a_link_shows_a_page_and_signs_in_once",
            _SIGNING + "test_a_code_that_was_not_used_in_time_signs_nobody_in",
            _SESSIONS + "test_of_many_who_show_one_code_at_once_one_is_let_in",
            _SESSIONS + "test_a_text_that_is_none_of_ours_is_not_looked_for",
            _SIGNED_IN + "test_no_file_and_no_log_holds_a_cookie_a_code_or_a_csrf_token",
            _KILLED + "test_a_link_is_unused_or_used_up_after_a_kill_at",
        ),
    ),
)
