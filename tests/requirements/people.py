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

_VOUCHERS = "tests/interop/payers/test_vouchers.py::"
_DOORS = "tests/interop/payers/test_doors.py::"
_BACKEND = "tests/interop/payers/test_backend.py::"
_TWO_GATEWAYS = "tests/interop/payers/test_replicas.py::"
_CUT_OFF = "tests/interop/payers/test_killed.py::"
_PAYER = "tests/guards/test_payments.py::"
_NOTES = "tests/guards/caller/test_voucher.py::"
_NOTE = "tests/core/test_voucher.py::"
_AT_THE_GATE = "tests/guards/admission/test_gate_payments.py::"

ROWS = (
    Row(
        "security:r29:voucher",
        "A voucher of a known issuer pays for one call, and what is called for it, in the place of "
        "who shows it; its account is billed.",
        "R29",
        (
            _PAYER + "test_a_payment_pays_in_the_place_of_the_caller_up_to_what_it_covers",
            _VOUCHERS + "test_a_voucher_pays_in_the_place_of_its_holder",
            _VOUCHERS + "test_all_that_is_called_for_a_call_is_paid_by_its_voucher_and_no_more",
            _VOUCHERS + "test_a_task_is_paid_by_the_voucher_that_it_was_handed_over_with",
            _VOUCHERS + "test_a_stranger_with_a_voucher_is_answered_where_it_had_to_pay",
            _VOUCHERS + "test_the_command_line_pays_with_a_voucher",
            _DOORS + "test_a_voucher_pays_once_at_every_door",
        ),
    ),
    Row(
        "security:r29:once",
        "It is used once, at all gateways of a store together, also where several show it at once "
        "or one is killed; the call that has used it may be repeated, and is not billed again.",
        "R29, issue 20 must show 3",
        (
            _AT_THE_GATE + "test_a_payment_is_used_up_by_the_claim_of_the_turn",
            _VOUCHERS + "test_a_voucher_is_used_once_and_its_call_may_be_repeated",
            _VOUCHERS + "test_of_many_that_show_a_voucher_at_once_one_is_answered",
            _TWO_GATEWAYS + "test_a_voucher_shown_at_two_gateways_is_taken_by_one",
            _TWO_GATEWAYS + "test_the_call_that_has_used_it_is_repeated_at_the_other",
            _CUT_OFF + "test_a_call_that_was_cut_off_pays_once_with_its_voucher",
        ),
    ),
    Row(
        "security:r29:holds",
        "One that is forged, expired, revoked, too small, for another gateway, in another "
        "currency, or made out to somebody else is refused with 402 and what helps; nothing is "
        "run, and nobody pays in its place.",
        "R29, issue 20 must show 3",
        (
            _NOTE + "test_it_holds_from_when_it_was_issued_until_it_expires",
            _NOTE + "test_it_is_for_one_gateway_in_its_currency_and_not_for_ever",
            _NOTE + "test_one_that_is_made_out_to_somebody_is_good_for_nobody_else",
            _NOTES + "test_a_signature_of_another_key_is_none",
            _NOTES + "test_with_its_key_or_by_its_issuer_a_voucher_ends",
            _NOTES + "test_what_is_not_for_us_leads_nowhere",
            _PAYER + "test_what_cannot_pay_is_refused_and_nobody_pays_in_its_place",
            _VOUCHERS + "test_what_is_wrong_with_a_voucher_is_told_and_nobody_pays",
            _VOUCHERS + "test_a_voucher_that_was_changed_is_refused",
            _VOUCHERS + "test_what_is_too_small_says_what_is_needed",
            _VOUCHERS + "test_one_that_is_made_out_to_somebody_is_taken_of_nobody_else",
            _VOUCHERS + "test_a_voucher_that_was_revoked_is_refused",
            _VOUCHERS
            + "test_while_it_cannot_be_learned_whether_it_was_revoked_no_voucher_is_taken",
            _VOUCHERS + "test_a_voucher_of_our_own_is_good_at_our_own_gateway_until_it_is_revoked",
        ),
    ),
    Row(
        "security:r29:bounds",
        "An issuer owes no more than the operator lets it owe, nor than its voucher covers: what "
        "is above is owed by who called, and further payments are agreed to by nobody here.",
        "R29, R45, R57",
        (
            _NOTES + "test_a_voucher_of_a_peer_is_worth_its_amount_within_its_credit",
            _PAYER + "test_what_is_above_it_is_owed_by_whoever_authenticated",
            _VOUCHERS + "test_an_issuer_owes_no_more_than_its_credit_whatever_it_has_promised",
            _VOUCHERS + "test_what_costs_more_than_a_voucher_covers_is_owed_by_who_called",
            _VOUCHERS + "test_who_shows_a_voucher_agrees_to_no_further_payment_of_its_issuer",
            _VOUCHERS + "test_who_may_not_spend_spends_no_voucher",
        ),
    ),
    Row(
        "security:r29:issued",
        "What we promise is kept before anybody is given it, and is listed, shown and revoked; "
        "looking at a voucher does not use it up.",
        "R29",
        (
            _CUT_OFF + "test_nobody_is_given_a_voucher_that_is_not_kept",
            _CUT_OFF + "test_a_voucher_whose_revocation_was_cut_off_is_revoked_or_is_not",
            _VOUCHERS + "test_a_voucher_that_was_revoked_is_refused",
            _VOUCHERS
            + "test_inspecting_a_voucher_says_whether_it_would_be_taken_and_does_not_use_it",
        ),
    ),
    Row(
        "security:r29:verifiers",
        "For each prefix a verifier says account and limit, or the call is refused; it is given "
        "payments of x402 as they came, fails closed, and what it says is told to nobody.",
        "R29",
        (
            _PAYER + "test_the_longest_beginning_says_who_verifies_a_payment",
            _DOORS + "test_x402_over_http_goes_to_its_verifier",
            _DOORS + "test_x402_of_another_scheme_goes_to_its_verifier_as_it_came",
            _DOORS + "test_x402_over_a2a_brings_a_voucher_in_our_own_scheme",
            _DOORS + "test_a_verifier_fails_closed_and_tells_nothing",
            _DOORS + "test_an_account_without_an_id_pays_up_to_its_limit_in_all",
        ),
    ),
    Row(
        "security:r29:lanes",
        "A forwarded payment is taken of listed callers alone, two payers are refused, and a "
        "payment beside a signature counts only if it is signed. It stands in no log or record.",
        "R29, R5, R9",
        (
            _PAYER + "test_a_forwarded_payment_is_verified_where_its_caller_is_listed",
            _VOUCHERS + "test_a_forwarded_voucher_is_taken_of_listed_callers_alone",
            _VOUCHERS + "test_two_payers_are_refused",
            _VOUCHERS + "test_a_voucher_stands_in_no_log_no_record_and_no_error",
            _DOORS + "test_a_payment_beside_a_signature_must_be_signed",
            _DOORS + "test_a_payment_that_is_in_no_form_is_refused_by_its_header",
        ),
    ),
    Row(
        "security:r30:backend",
        "An agent that is asked with the payer's credential is sent it as its authorization, and "
        "without one 402 and nothing is sent; that must be allowed for the agent.",
        "R30",
        (
            _AT_THE_GATE
            + "test_an_agent_that_is_asked_with_the_payers_credential_is_never_asked_without",
            _BACKEND + "test_the_credential_that_was_forwarded_is_the_authorization_of_the_backend",
            _BACKEND + "test_at_the_origin_a_forwardable_token_is_and_no_other",
            _BACKEND + "test_a_voucher_is_no_credential_for_a_backend",
            _BACKEND + "test_a_configuration_that_would_send_it_unlisted_is_refused",
        ),
    ),
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
