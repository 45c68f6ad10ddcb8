"""The attacks of security.md that this gateway can be tried with today, and what answers them."""

from tests.requirements import bounds, engines, interrupts, models, people, resources, tenants
from tests.requirements.designs import signatures
from tests.requirements.rows import Row

_PAYER = "tests/security/callers/test_payer.py::"
_IDENTITY = "tests/security/callers/test_identity.py::"
_DEPTH = "tests/security/test_depth.py::"
_TENANTS = "tests/security/callers/test_tenants.py::"
_REPEATS = "tests/security/test_repeats.py::"
_UPSTREAM = "tests/security/test_upstream.py::"
_STOLEN = "tests/security/test_stolen_database.py::"
_DELEGATED = "tests/security/callers/test_delegation.py::"
_TOKEN = "tests/wire/crypto/test_delegation.py::"
_MONEY = "tests/interop/test_money.py::"
_OFFERS = "tests/runtime/peers/test_offers.py::"
_ABROAD = "tests/interop/test_tasks_abroad.py::"
_BILLS = "tests/security/callers/test_bills.py::"
_FINISHED = "tests/stores/turn/test_finish_rules_limits.py::"
_QUOTAS = "tests/stores/turn/test_claim_rules_quotas.py::"
_RULES = "tests/core/people/test_delegation.py::"
_FORWARDING = "tests/gateway/endpoint/test_forwarding.py::"
_GATEWAY_DEPTH = "tests/gateway/endpoint/test_depth.py::"
_IDEMPOTENCY = "tests/gateway/endpoint/test_idempotency.py::"
_EXAMPLE = "tests/interop/test_tangle_worked_example.py::"
_TWO = "tests/interop/test_two_organisations.py::"
_RECORDS = "tests/stores/calls/test_records.py::"
_TRUST = "tests/stores/trust/test_tokens.py::"
_STORED_KEYS = "tests/stores/trust/test_own_keys.py::"

_DELEGATION = (
    Row(
        "security:a28:jwt",
        "A token with another algorithm, members twice, critical or key-bearing headers, odd "
        "times, padding, depth or size is refused, and nothing is fetched for it.",
        "security.md A28; attacks, jwt_cases",
        (
            _TOKEN + "test_the_list_of_attacks_is_refused",
            _TOKEN + "test_what_is_wrong_with_its_time_is_judged_by_a_clock",
            _TOKEN + "test_whatever_the_text_it_is_refused_as_one_of_two",
            _DELEGATED + "test_the_list_of_attacks_is_refused",
            _DELEGATED + "test_an_issuer_that_nobody_knows_is_not_fetched",
        ),
    ),
    Row(
        "security:a29:whose",
        "A token for another agent, or that was given to somebody else, is refused.",
        "security.md A29",
        (_DELEGATED + "test_a_token_for_another_agent_or_of_somebody_else_is_refused",),
    ),
    Row(
        "security:a30:widened",
        "A token with a wider scope, a later end, a larger budget or more hops than the one it "
        "was derived from is refused by the name of the claim and the number of the link.",
        "security.md A30",
        (
            _DELEGATED + "test_a_child_that_is_wider_is_refused_by_the_name_of_the_claim",
            _DELEGATED + "test_a_widened_link_is_named",
            _RULES + "test_a_link_that_grants_more_is_refused_by_the_name_of_the_claim",
        ),
    ),
    Row(
        "security:a30:links",
        "A chain of three in which any link is forged, expired, used up or moved is refused, and "
        "the link is named.",
        "security.md A28, A30",
        (
            _DELEGATED + "test_a_chain_of_three_is_taken",
            _DELEGATED + "test_a_forged_link_is_named",
            _DELEGATED + "test_a_link_that_was_changed_on_the_way_is_named",
            _DELEGATED + "test_an_expired_link_is_named",
            _DELEGATED + "test_a_link_that_is_used_up_is_named",
            _DELEGATED + "test_links_in_another_order_are_refused",
            _DELEGATED + "test_a_link_that_was_left_out_is_missed",
        ),
    ),
    Row(
        "security:a31:hops",
        "A chain longer than the hops that are left, and one that somebody is in twice, are "
        "refused.",
        "security.md A31",
        (
            _DELEGATED + "test_a_chain_that_is_too_long_or_comes_back_is_refused",
            _DELEGATED + "test_one_hop_is_one_call",
        ),
    ),
    Row(
        "security:a32:once",
        "A token that is good for one call is accepted once, over all gateways.",
        "security.md A32",
        (
            _DELEGATED + "test_a_token_for_one_call_is_taken_once",
            _DELEGATED + "test_what_is_refused_for_another_reason_uses_nothing_up",
            _QUOTAS + "test_of_many_calls_with_one_delegation_in_one_batch_one_runs",
            _QUOTAS + "test_a_delegation_is_used_up_for_all_postgres_replicas",
        ),
    ),
)

_A33 = (
    Row(
        "security:a33:unlisted",
        "A forwarded credential from a caller that is not listed is refused, and neither the "
        "caller nor the owner of the credential is billed.",
        "security.md A33",
        (
            _FORWARDING
            + "test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody",
            _PAYER + "test_a_caller_not_listed_forwards_to_no_kind_of_agent",
            _PAYER + "test_a_caller_not_listed_learns_nothing_about_a_credential",
            _PAYER + "test_a_refused_credential_is_written_nowhere",
        ),
    ),
    Row(
        "security:a33:listed",
        "From a listed caller the account that the credential names is billed, once, and nobody "
        "in its place.",
        "security.md A33; R5",
        (
            _FORWARDING + "test_a_listed_caller_bills_the_account_it_vouches_for",
            _FORWARDING + "test_a_forwarded_credential_of_ours_is_the_effective_payer",
            _FORWARDING + "test_a_revoked_credential_is_refused_and_never_replaced",
            _PAYER + "test_a_listed_peer_bills_the_tenant_whose_token_it_forwards",
            _PAYER + "test_a_peer_that_forwards_its_own_token_pays_itself_and_once",
            _PAYER + "test_a_bridge_that_forwards_a_peers_token_bills_the_peer_within_its_credit",
            _PAYER + "test_a_forwarded_token_that_may_not_pay_is_never_replaced",
            _PAYER + "test_a_token_made_a_moment_ago_pays_when_it_is_forwarded",
            _PAYER + "test_a_forwarded_token_pays_for_nothing_its_holder_may_not_call",
        ),
    ),
    Row(
        "security:a33:ended",
        "A peer that was taken off the list, forgotten or whose token was revoked forwards and "
        "calls no more.",
        "security.md A33",
        (
            _PAYER + "test_a_peer_that_is_ended_forwards_and_calls_no_more",
            _PAYER + "test_a_peer_that_is_forgotten_calls_no_more",
        ),
    ),
    Row(
        "security:a33:silence",
        "A forwarded credential is in no answer, page, command, log, record or file, also when "
        "the upstream that was sent it says it back.",
        "security.md A33, A65, D10, I11",
        (
            _FORWARDING + "test_no_credential_is_written_anywhere",
            "tests/runtime/agents/test_remote.py::test_no_error_or_record_holds_a_credential",
            _EXAMPLE + "test_the_credential_of_the_origin_is_written_down_nowhere",
            _UPSTREAM + "test_a_credential_that_an_upstream_says_back_is_told_to_nobody",
            _UPSTREAM + "test_a_credential_is_not_in_the_records_of_a_run_that_broke_midway",
            _IDENTITY + "test_no_error_says_back_what_it_was_told",
            _IDENTITY + "test_a_forwarded_credential_is_ignored_where_nothing_is_paid",
            _STOLEN + "test_a_run_paid_by_forwarding_is_shown_without_the_credential",
        ),
    ),
    Row(
        "security:a33:amounts",
        "What an upstream says a call cost is read strictly and bounded: a payer is billed "
        "neither a negative nor a foreign nor an unlimited amount.",
        "security.md A33, I3; R7",
        (
            _UPSTREAM + "test_what_an_upstream_charges_is_read_strictly_and_cut_at_its_limit",
            _UPSTREAM + "test_a_bill_that_is_none_makes_the_answer_none",
            _UPSTREAM + "test_an_upstream_that_fails_after_its_bill_gets_no_more_than_its_limit",
            _UPSTREAM + "test_a_spending_limit_holds_whatever_a_model_says_it_counted",
            _UPSTREAM + "test_a_bill_that_no_ledger_can_hold_leaves_no_turn_behind",
            _UPSTREAM + "test_an_upstream_that_never_ends_is_cut_off_by_size",
            _UPSTREAM + "test_an_upstream_that_never_ends_is_cut_off_by_time",
        ),
    ),
)

_A80 = (
    Row(
        "security:a80:bills",
        "A caller bounds its own bill by what it asks for, or by what was reserved: it is debited "
        "what was used, as far as its limit goes, and what is above refuses calls that may cost.",
        "R57",
        (
            _BILLS + "test_a_caller_that_promises_little_is_billed_what_was_used",
            _BILLS + "test_a_limit_bounds_what_is_debited_and_not_less",
            _BILLS
            + "test_what_no_limit_covers_is_unpaid_and_refuses_what_may_cost_until_it_is_settled",
            _FINISHED + "test_what_others_have_reserved_is_left_to_them",
            _FINISHED + "test_of_many_that_end_at_once_none_is_debited_twice_for_the_same_money",
            _FINISHED + "test_who_has_not_paid_is_refused_what_may_cost_and_nothing_else",
        ),
    ),
)

_A81 = (
    Row(
        "security:a81:tasks",
        "A task for an agent elsewhere runs, gives back what it held, and is counted for its "
        "sender with all others for that peer.",
        "the issue that found it: it was accepted, never ran, and locked its money",
        (
            _ABROAD + "test_a_task_whose_agent_is_elsewhere_runs_and_gives_back_what_it_held",
            _ABROAD + "test_tasks_for_agents_elsewhere_count_whatever_they_are_called",
        ),
    ),
)

_MONEY_OF_TWO = (
    Row(
        "security:r53:reservation",
        "Toward a Carnet as much is reserved as the payer has left, and the callee is told; "
        "toward others less than a call may cost is refused, with the numbers.",
        "R53",
        (
            _MONEY + "test_who_has_less_left_than_a_call_may_cost_calls_a_free_agent_of_a_carnet",
            _MONEY + "test_a_callee_is_told_what_the_payer_has_left_and_debits_no_more",
            _MONEY + "test_toward_others_less_than_a_call_may_cost_is_402_with_its_numbers",
        ),
    ),
    Row(
        "security:r53:free",
        "A free agent of a peer, by its signed page within its time, is called with nothing left: "
        "nothing is reserved, and what it charges all the same is disputed.",
        "R53",
        (
            _MONEY + "test_who_has_nothing_left_calls_a_free_agent_of_a_carnet",
            _MONEY + "test_who_has_nothing_left_and_calls_what_has_a_price_is_told_the_numbers",
            _MONEY + "test_toward_others_an_agent_is_free_that_cannot_call_anybody",
            _MONEY + "test_a_free_agent_that_charges_is_disputed",
            _MONEY + "test_a_page_is_not_believed_that_its_peer_has_not_signed",
            _OFFERS + "test_a_page_is_fetched_for_who_asks_and_holds_for_its_time",
            _OFFERS + "test_a_payer_has_a_few_pages_fetched_at_once_and_holds_up_nobody",
        ),
    ),
    Row(
        "security:r57:once",
        "A call to a peer is debited once, however often it is made under one turn id, and what "
        "the peer says above its limit is disputed.",
        "R57; security.md A33",
        (
            _MONEY + "test_a_call_that_is_made_again_is_debited_once",
            _MONEY + "test_what_a_peer_says_above_its_limit_is_disputed_and_listed",
            _FINISHED + "test_a_turn_that_runs_again_has_cost_what_all_of_its_attempts_have",
        ),
    ),
)

_A34 = (
    Row(
        "security:a34:malformed",
        "A forwarded credential that is repeated, joined, too long, folded or not one bearer is "
        "refused whoever sends it.",
        "security.md A34",
        (
            _FORWARDING + "test_a_malformed_forwarded_credential_is_refused",
            _FORWARDING + "test_two_forwarded_credentials_are_refused",
            _PAYER + "test_what_is_not_one_bearer_is_refused_also_from_a_listed_caller",
            _PAYER + "test_bytes_that_end_or_fold_a_line_are_refused_by_the_server",
            _PAYER + "test_one_that_is_given_twice_is_refused_even_if_both_are_the_same",
            _PAYER + "test_the_longest_credential_is_an_account_of_its_own",
        ),
    ),
)

_A36 = (
    Row(
        "security:a36:claims",
        "What a client claims of its identity or rights is believed by nobody and passed on to "
        "nobody; spellings that a proxy would read as ours are refused.",
        "security.md A36",
        (
            _FORWARDING + "test_lookalike_spellings_are_refused",
            _FORWARDING + "test_identity_headers_from_outside_are_believed_by_nobody",
            _IDENTITY + "test_an_upstream_sees_our_headers_and_none_of_the_callers",
            _IDENTITY + "test_a_claimed_identity_opens_no_page",
            _IDENTITY + "test_a_name_that_a_proxy_would_read_as_another_is_refused",
            _IDENTITY + "test_an_odd_authorization_is_nobodys",
            _IDENTITY + "test_two_tokens_on_one_request_are_nobodys",
        ),
    ),
    Row(
        "security:a36:rights",
        "A token does what it was made for and nothing else, by no path, page or agent between.",
        "security.md A36, A35",
        (
            _IDENTITY + "test_a_token_that_may_call_one_agent_may_do_nothing_else",
            _IDENTITY + "test_a_token_that_may_call_one_agent_may_call_no_other",
            _IDENTITY + "test_a_token_is_shown_the_agents_it_may_call_and_no_others",
            _IDENTITY + "test_an_agent_lends_nobody_its_rights",
        ),
    ),
)

_A38 = (
    Row(
        "security:a38:malformed",
        "A depth that is not ASCII digits, or is given twice, is refused and never coerced.",
        "security.md A38",
        (
            _GATEWAY_DEPTH + "test_a_malformed_depth_is_refused_and_never_read_as_zero",
            _GATEWAY_DEPTH + "test_a_repeated_depth_is_refused",
            _DEPTH + "test_a_depth_that_is_not_ascii_digits_is_refused_and_not_read_as_zero",
            _DEPTH + "test_a_depth_is_refused_beside_another_of_any_spelling",
        ),
    ),
    Row(
        "security:a38:digits",
        "Digits alone are never malformed: leading zeros are read, large numbers are too deep, "
        "and none beside a parent turn is 0.",
        "security.md A38",
        (
            _GATEWAY_DEPTH + "test_a_depth_below_the_limit_is_answered",
            _GATEWAY_DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
            _DEPTH + "test_no_depth_beside_a_parent_turn_is_zero",
        ),
    ),
)

_A39 = (
    Row(
        "security:a39:limit",
        "At the limit a call is refused with what was observed and what is allowed, nothing is "
        "forwarded or billed, and the trace shows the refusal.",
        "security.md A39",
        (
            _GATEWAY_DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
            _GATEWAY_DEPTH + "test_a_chain_in_process_stops_at_the_limit_and_shows_where",
            _TWO + "test_the_last_hop_is_refused_before_anything_is_sent",
            _DEPTH + "test_beyond_the_limit_nothing_is_forwarded_whoever_would_pay",
            _DEPTH + "test_the_last_hop_that_calls_on_is_refused_and_its_trace_says_so",
        ),
    ),
)

_TIMING = "tests/security/timing/test_same_work.py::"
_A41 = (
    Row(
        "security:a41:reuse",
        "Who uses the run and turn ids of another gets a turn of its own, here and at a peer that "
        "both call.",
        "security.md A41",
        (
            _IDEMPOTENCY + "test_another_caller_with_the_same_ids_gets_its_own_turn",
            _IDEMPOTENCY + "test_the_key_of_one_caller_never_meets_that_of_another",
            _TENANTS + "test_whoever_uses_the_ids_of_another_gets_a_turn_of_its_own",
            _TENANTS + "test_the_ids_of_a_tenant_mean_nothing_from_a_peer_that_forwards_another",
            _TENANTS + "test_an_agent_that_pays_itself_answers_each_tenant_anew",
            _TENANTS + "test_two_who_forward_the_same_payer_do_not_share_what_agents_call",
            _TENANTS + "test_a_reader_of_the_same_ids_that_leaves_takes_nobody_along",
            _TENANTS + "test_two_tenants_are_not_one_to_the_peer_they_call",
        ),
    ),
    Row(
        "security:a41:reading",
        "A run of another cannot be read, followed, listed or cancelled by its id; the answer is "
        "the one for an id that nobody has.",
        "security.md A41, A67",
        (
            _RECORDS + "test_a_shared_run_id_shows_nobody_the_turns_of_another",
            _RECORDS + "test_what_is_below_a_turn_id_that_two_callers_use_is_shown_to_neither",
            _TENANTS + "test_a_run_of_another_looks_like_one_that_is_not_there",
            _TENANTS + "test_a_running_turn_of_another_is_not_there_either",
            _TENANTS + "test_a_run_below_that_of_another_shows_nothing_of_it",
            _TENANTS + "test_whoever_shares_the_id_of_a_run_cancels_only_its_own_turns",
            _TENANTS + "test_who_forwards_a_credential_is_not_told_what_its_owner_spent",
        ),
    ),
    Row(
        "security:a41:odd-ids",
        "An id that looks like SQL, a path or a page is a name and nothing else.",
        "security.md A41",
        (
            _TENANTS + "test_an_odd_id_is_a_run_like_any_other",
            _TENANTS + "test_after_odd_ids_the_database_is_whole",
            _TENANTS + "test_a_page_of_runs_is_bounded_and_ones_own",
            _TENANTS + "test_a_page_that_cannot_be_is_no_fault_of_ours",
        ),
    ),
    Row(
        "security:a41:timing",
        "Whether a turn is another's or nobody's makes no difference in time: the same functions "
        "are called as often. `make timing` measures it.",
        "security.md A41",
        (_TIMING + "test_a_call_under_ids_that_another_has_used_costs_what_any_call_costs",),
    ),
)

_A42 = (
    Row(
        "security:a42:poison",
        "A turn id that somebody claimed first is still free for everybody else, below an agent "
        "and at a peer as well.",
        "security.md A42",
        (
            _IDEMPOTENCY + "test_a_turn_claimed_in_advance_does_not_poison_anybody_elses",
            _TENANTS + "test_a_turn_claimed_in_advance_does_not_poison_what_is_below_it",
            _TENANTS + "test_a_turn_claimed_in_advance_does_not_poison_a_call_to_a_peer",
        ),
    ),
)

_A43 = (
    Row(
        "security:a43:mismatch",
        "The same turn with another body is refused, and the first result stays, running or done.",
        "security.md A43",
        (
            _IDEMPOTENCY + "test_the_same_turn_with_another_request_is_refused_and_the_first_stays",
            _REPEATS + "test_the_same_turn_with_another_body_changes_nothing",
            _REPEATS + "test_the_same_body_in_another_order_is_the_same",
            _REPEATS + "test_a_running_turn_is_not_disturbed_by_another_body",
        ),
    ),
)

_DOCUMENTS = "tests/travel/test_documents.py::"
_A44 = (
    Row(
        "security:a44:attach",
        "Copies of a running turn attach to its one execution; an upstream is called once, and "
        "it is billed once.",
        "security.md A44",
        (
            _IDEMPOTENCY + "test_copies_of_a_running_turn_attach_to_one_execution",
            _IDEMPOTENCY + "test_a_stream_can_be_attached_to_from_its_first_event",
            _REPEATS + "test_three_hundred_copies_of_one_turn_are_one_call_on_both_sides",
            _REPEATS + "test_copies_that_come_when_it_is_over_are_answered_from_the_record",
        ),
    ),
    Row(
        "security:a44:deadline",
        "A copy whose caller has less time than the turn will take is told to come again.",
        "security.md A44",
        (
            _REPEATS + "test_a_copy_that_has_less_time_than_the_turn_is_told_to_come_again",
            _REPEATS + "test_a_stream_of_a_copy_ends_when_its_caller_has_no_more_time",
            _REPEATS + "test_who_begins_a_turn_is_answered_within_the_time_that_it_gives",
            _REPEATS + "test_a_deadline_that_is_none_is_refused_and_nothing_runs",
            _DOCUMENTS + "test_a_copy_is_told_to_come_again_when_its_deadline_comes_first",
        ),
    ),
)

_INIT = "tests/cli/start/test_start.py::"
_FOREIGN = "tests/security/test_foreign_folder.py::"
_A85 = (
    Row(
        "security:a85:looking",
        "Looking at a configuration imports none of its modules unless that is asked for; what "
        "cannot be seen without is said.",
        "A85",
        (
            _FOREIGN + "test_a85_looking_imports_nothing",
            _FOREIGN + "test_a85_who_asks_for_it_has_the_agents_imported",
            "tests/cli/test_source.py::test_what_cannot_be_seen_is_said",
        ),
    ),
    Row(
        "security:a85:owner",
        "A configuration of somebody who is neither we nor root is refused where we are root or "
        "others may write it, unless its owner is trusted by name of the option.",
        "A85",
        (
            _FOREIGN + "test_a85_root_uses_no_configuration_of_somebody_else",
            _FOREIGN + "test_a85_one_part_of_it_is_enough",
            _FOREIGN + "test_a85_a_link_of_somebody_else_is_his",
            _FOREIGN + "test_a85_who_trusts_the_owner_says_so",
            "tests/config/test_owner.py::test_a_foreign_file_that_others_may_write_is_refused",
        ),
    ),
    Row(
        "security:a85:init",
        "What is written for an operator can be written by nobody else, whatever the umask.",
        "A85",
        (_INIT + "test_init_leaves_nothing_that_others_may_write_whatever_the_umask",),
    ),
)

_A71 = (
    Row(
        "security:a71:database",
        "A stolen database holds no token that can be used: ours are kept as keyed hashes, and "
        "those that peers gave us are sealed.",
        "security.md A71",
        (
            _TRUST + "test_the_database_holds_no_token_and_no_peers_token",
            _TRUST + "test_a_peer_sealed_with_another_file_is_not_called_without_its_token",
            "tests/cli/trust/test_tokens.py::test_a_peers_credential_is_sealed_in_the_store",
            _STOLEN + "test_the_database_holds_no_token_in_any_spelling",
            _STOLEN + "test_what_is_stored_of_a_token_cannot_be_found_by_guessing",
            _STOLEN + "test_a_stolen_database_opens_no_door_under_other_keys",
        ),
    ),
    Row(
        "security:a71:files",
        "Keys, tokens and database are readable by their owner alone, and nothing else that is "
        "written or shown holds one.",
        "security.md A71, D10",
        (
            _TRUST + "test_secrets_are_written_for_their_owner_alone_and_read_again",
            _TRUST + "test_secrets_that_others_can_read_are_refused",
            "tests/cli/start/test_start.py::test_init_keeps_secrets_to_their_owner",
            _STOLEN + "test_no_file_holds_a_token_but_those_that_are_there_for_it",
            _STOLEN + "test_what_holds_a_secret_is_its_owners_alone",
            _STOLEN + "test_a_gateway_whose_keys_others_can_read_does_not_start",
            _STOLEN + "test_no_command_shows_a_credential",
        ),
    ),
    Row(
        "security:a71:private-keys",
        "Private keys for signing are sealed as well, each to its own row.",
        "security.md A71",
        (
            _STORED_KEYS + "test_the_database_holds_no_private_key",
            _STORED_KEYS + "test_keys_cannot_be_exchanged_in_the_database",
        ),
    ),
)

ROWS = (
    *_DELEGATION,
    *(
        *_A33,
        *_A34,
        *_A36,
        *_A38,
        *_A39,
        *_A41,
        *_A42,
        *_A43,
        *_A44,
        *_A71,
        *_A80,
        *_A81,
        *_MONEY_OF_TWO,
        *_A85,
    ),
    *resources.ROWS,
    *tenants.ROWS,
    *interrupts.ROWS,
    *people.ROWS,
    *signatures.ROWS,
    *models.ATTACKS,
    *bounds.ROWS,
    *engines.ROWS,
)
