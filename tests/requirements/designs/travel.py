"""The travel document between two Carnets: every sentence of its specification."""

from tests.requirements.rows import Row

_DOCUMENT = "tests/wire/travel/test_document.py::"
_PROFILE = "tests/wire/travel/test_profile.py::"
_RECEIPT = "tests/wire/travel/test_receipt.py::"
_WELL_KNOWN = "tests/wire/travel/test_well_known.py::"
_GUARD = "tests/guards/proof/test_travel.py::"
_TOKENS = "tests/runtime/turns/test_tokens.py::"
_BUDGET = "tests/guards/proof/test_travel_budget.py::"
_SIGNED_CALLS = "tests/travel/test_signed_calls.py::"
_BOX = "tests/travel/test_middlebox.py::"
_PEER = "tests/travel/test_documents.py::"
_TREE = "tests/travel/test_proof.py::"
_CRASH = "tests/crash/test_receipts.py::"
_GIVEN = "tests/runtime/receipts/test_issue.py::"
_SIGNING = "tests/runtime/peers/test_signing.py::"
_HONOURED = (
    "tests/security/signed/test_profile.py::test_a_document_that_may_not_be_honoured_is_refused"
)

_CHANGED = _BOX + "test_whoever_changes_a_signed_call_on_the_way_gets_it_refused"
_EXCEEDS = _PEER + "test_a_document_that_contradicts_or_exceeds_is_refused"

ROWS = (
    Row(
        "travel:header:form",
        "The document is one request header: a compact JWS with EdDSA of at most 4 KiB.",
        "travel.md",
        (
            _DOCUMENT + "test_what_is_written_is_read_again_and_its_signature_holds",
            _DOCUMENT + "test_what_is_not_a_document_is_refused_as_such",
            _DOCUMENT + "test_a_document_longer_than_four_kibibytes_is_neither_read_nor_written",
            _HONOURED,
            "tests/security/signed/test_profile.py::test_a_document_of_another_kind_is_none",
        ),
    ),
    Row(
        "travel:header:covered",
        "The signature of the request covers it, and every other header that tells the chain.",
        "travel.md, R8",
        (
            _PROFILE + "test_everything_that_decides_about_a_call_is_covered",
            _PROFILE + "test_half_a_proof_is_refused",
            _CHANGED,
        ),
    ),
    Row(
        "travel:claims:addressed",
        "iss and aud are the sending and the receiving domain, one string each.",
        "travel.md claims",
        (_DOCUMENT + "test_a_claim_that_is_not_in_its_form_makes_the_document_invalid", _EXCEEDS),
    ),
    Row(
        "travel:claims:time",
        "It ends at most five minutes after it was issued.",
        "travel.md claims",
        (
            _DOCUMENT + "test_a_claim_that_is_not_in_its_form_makes_the_document_invalid",
            _GUARD + "test_a_document_holds_in_its_time",
            _HONOURED,
            _EXCEEDS,
        ),
    ),
    Row(
        "travel:claims:position",
        "run, turn, parent, d and l are the ids and the depths of this call.",
        "travel.md claims",
        (
            _SIGNING + "test_a_signed_call_is_read_by_whoever_receives_it",
            _PEER + "test_a_peer_that_signs_by_itself_is_answered_with_a_receipt",
            _EXCEEDS,
        ),
    ),
    Row(
        "travel:claims:path",
        "path holds at most 32 addresses, oldest first, and the sender appends itself.",
        "travel.md claims",
        (
            _SIGNED_CALLS + "test_the_path_names_the_agents_that_were_passed",
            _SIGNING + "test_a_path_that_no_document_can_carry_ends_the_call_before_it_leaves",
        ),
    ),
    Row(
        "travel:claims:budget",
        "bud is what is left for this call and below; what is absent is unbounded.",
        "travel.md claims",
        (
            _BUDGET + "test_two_calls_together_spend_no_more_than_is_left",
            _BUDGET + "test_an_agent_elsewhere_may_cost_what_is_left_and_no_more",
            _BUDGET + "test_no_more_calls_are_made_than_are_left",
            _BUDGET + "test_a_call_is_made_while_tokens_are_left_and_then_none_is",
            _TOKENS + "test_what_is_used_above_and_below_is_subtracted_once",
            _TOKENS + "test_with_no_tokens_left_nothing_more_is_called",
            _PEER + "test_a_budget_is_for_the_call_and_all_below_it",
            _DOCUMENT
            + "test_what_is_absent_is_unbounded_and_a_claim_of_a_later_version_is_passed_over",
        ),
    ),
    Row(
        "travel:claims:deadline",
        "dl is the absolute deadline in milliseconds, and it goes on with the calls below.",
        "travel.md claims",
        (
            _SIGNING + "test_a_deadline_is_told_by_the_clock_that_both_sides_have",
            _PEER + "test_a_deadline_is_kept_by_whoever_receives_it",
            _PEER + "test_a_deadline_goes_on_with_the_calls_below",
        ),
    ),
    Row(
        "travel:claims:payer",
        "pay is the account as the sender knows it, never a credential.",
        "travel.md claims, model.md 2",
        (
            _PEER + "test_the_payer_is_an_account_that_the_peer_answers_for",
            _PEER + "test_nobody_answers_for_a_stranger",
        ),
    ),
    Row(
        "travel:claims:digest",
        "dig is the content digest of the body.",
        "travel.md claims",
        (_DOCUMENT + "test_the_document_beside_a_body_was_made_for_that_body", _EXCEEDS),
    ),
    Row(
        "travel:rules:other-stamps",
        "The other stamps are still written; where they disagree: 400 chain_mismatch.",
        "travel.md rules",
        (_GUARD + "test_a_stamp_that_tells_another_chain_is_refused", _EXCEEDS),
    ),
    Row(
        "travel:rules:known-key",
        "Its values are taken only from a peer whose key is known.",
        "travel.md rules",
        (_GUARD + "test_a_document_that_is_not_the_senders_or_too_late_is_refused", _EXCEEDS),
    ),
    Row(
        "travel:rules:narrows",
        "It only narrows: our own limits and the agreement clamp l, bud and dl.",
        "travel.md rules",
        (
            _DOCUMENT + "test_the_last_depth_is_the_smaller_of_theirs_and_ours",
            _EXCEEDS,
            _CHANGED,
        ),
    ),
    Row(
        "travel:rules:loop",
        "An agent already on the path is 409 loop_detected unless reentry; depth is checked first.",
        "travel.md rules, A31",
        (
            _GUARD + "test_an_agent_that_the_chain_has_passed_is_not_called_again",
            _SIGNED_CALLS + "test_a_call_that_comes_back_to_an_agent_is_a_loop",
            _SIGNED_CALLS + "test_an_agent_that_allows_it_is_called_again_until_the_depth_ends_it",
            _EXCEEDS,
        ),
    ),
    Row(
        "travel:receipt:form",
        "The answer carries a JWS with run, turn, cost, currency, calls, max_d and its digest.",
        "travel.md receipts",
        (
            _PEER + "test_a_peer_that_signs_by_itself_is_answered_with_a_receipt",
            _SIGNED_CALLS + "test_the_receipt_counts_the_calls_below_and_how_deep_they_went",
            _RECEIPT + "test_a_whole_answer_and_its_stream_have_the_same_digest",
        ),
    ),
    Row(
        "travel:receipt:stream",
        "In a stream it is the comment carnet-receipt before the terminal frame.",
        "travel.md receipts",
        (_SIGNED_CALLS + "test_a_stream_brings_its_receipt_before_its_last_frame",),
    ),
    Row(
        "travel:receipt:once",
        "It is made once at finish and stored with the turn.",
        "travel.md receipts",
        (
            _GIVEN + "test_readers_that_come_together_get_one_receipt",
            _PEER + "test_a_repeat_gets_the_same_receipt_also_if_it_was_lost",
            _CRASH + "test_a_receipt_that_a_crash_has_lost_is_made_when_the_call_is_repeated",
        ),
    ),
    Row(
        "travel:receipt:kept",
        "The caller keeps it in the journal, and an answer without one is none.",
        "travel.md receipts, A27",
        (
            _SIGNED_CALLS + "test_a_call_without_a_token_is_signed_and_its_answer_receipted",
            _BOX + "test_an_answer_without_its_receipt_is_no_answer",
            _BOX + "test_a_stream_without_its_receipt_does_not_end_well",
            _BOX + "test_a_cost_that_nobody_signed_is_not_owed",
        ),
    ),
    Row(
        "travel:receipt:tree",
        "Linked through their parents, receipts become a proof of the whole call tree.",
        "travel.md receipts",
        (
            _TREE + "test_a_receipt_names_the_receipts_of_what_was_called_below",
            _TREE + "test_what_was_called_in_process_is_named_too",
            _TREE + "test_a_receipt_that_is_left_out_is_missed",
            _TREE + "test_a_receipt_that_was_changed_does_not_hold",
            _TREE + "test_who_tells_nothing_leaves_its_calls_unproved",
            _TREE + "test_one_whose_key_is_not_known_here_is_vouched_for",
            _TREE + "test_nobody_else_is_told_of_a_run",
            _TREE + "test_the_command_draws_the_tree_and_fails_where_a_receipt_is_missing",
        ),
    ),
    Row(
        "travel:well-known:page",
        "carnet.json shows domain, version, keys, profiles and dialects, signed over JCS.",
        "travel.md well-known",
        (
            _WELL_KNOWN + "test_what_is_signed_is_the_canonical_form_of_the_rest",
            _WELL_KNOWN + "test_a_page_that_was_changed_is_not_believed",
            _PEER + "test_the_page_of_keys_is_for_everybody",
        ),
    ),
)
