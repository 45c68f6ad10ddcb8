"""Extensions and headers of others on A2A: what is read as a claim, and what is written where."""

from tests.requirements.rows import Row

_FOLDER = "tests/interop/a2a_extensions/test_"
_OUT, _CHAIN, _ROWS = f"{_FOLDER}outward.py::", f"{_FOLDER}chain.py::", f"{_FOLDER}rows.py::"
_QUESTIONS, _SIGNED = f"{_FOLDER}questions.py::", f"{_FOLDER}signed.py::"
_ENVOYS = f"{_FOLDER}envoys.py::"

_WRITTEN = _OUT + "test_what_a_card_knows_is_written_and_the_header_names_it"
_ASKED = _OUT + "test_a_question_in_the_words_of_others_is_answered_in_the_same_words"
_FORGED = _OUT + "test_what_an_answer_claims_changes_nothing_but_what_it_may_charge"
_LARGEST = _CHAIN + "test_of_all_depths_the_largest_counts"
_NONE = _CHAIN + "test_a_depth_that_is_none_is_refused"
_DEEP = _CHAIN + "test_a_call_that_is_too_deep_is_refused"


def _row(id: str, sentence: str, *tests: str) -> Row:
    return Row(f"a2a:extension:{id}", sentence, "Extensions of others on A2A", tests)


ROWS = (
    _row(
        "claims",
        "What an extension says is a claim: a forged chain, depth or receipt changes nothing but "
        "what is shown as claimed.",
        _CHAIN + "test_a_forged_chain_shows_its_forger_nothing_of_a_run",
        _CHAIN + "test_a_forged_receipt_and_use_change_nothing",
        _CHAIN + "test_an_actor_chain_is_shown_as_claimed_and_answered_with_ours",
        _FORGED,
    ),
    _row("depth", "A depth in any of them only raises ours.", _LARGEST, _DEEP, _NONE),
    _row(
        "advertised",
        "Nothing is written to an agent whose card does not name the URI.",
        _OUT + "test_a_card_that_knows_nothing_is_told_its_place_in_the_chain_alone",
        _WRITTEN,
    ),
    _row(
        "kagent",
        "Approvals and questions of kagent are read and written, both ways.",
        _QUESTIONS + "test_kagent_is_asked_and_answers_in_its_own_words",
        _QUESTIONS + "test_kagent_answers_a_question_with_a_choice",
        _ASKED,
    ),
    _row(
        "datalayer",
        "Run, parent turn, depth, payer and budget of the orchestration extension are read and "
        "written, and its use is what a call has cost.",
        _WRITTEN,
        _ROWS + "test_a_budget_only_lowers_what_may_be_spent",
        _OUT + "test_a_use_in_the_words_of_others_is_what_the_call_has_cost",
    ),
    _row(
        "budget",
        "The budget of a call is read and written in our chain, and only narrows what holds; of "
        "several the smallest counts.",
        _ROWS + "test_a_budget_in_our_chain_only_lowers_what_may_be_spent",
        _ROWS + "test_a_budget_in_our_chain_that_could_not_be_held_is_refused",
        _OUT + "test_a_card_that_knows_our_chain_is_told_its_budget",
    ),
    _row(
        "actor-chain",
        "The chain of actors is read, echoed on the task and written, with the digest of our "
        "signed document as its proof.",
        _CHAIN + "test_an_actor_chain_is_shown_as_claimed_and_answered_with_ours",
        _SIGNED + "test_an_actor_chain_is_answered_with_the_path_and_the_digest_of_the_document",
        _OUT + "test_a_card_that_knows_our_chain_is_told_the_actors_as_well",
    ),
    _row(
        "x402",
        "Payments of x402 are interrupts, both ways.",
        _QUESTIONS + "test_x402_agrees_to_be_debited_or_does_not",
        _ASKED,
    ),
    _row(
        "envoys",
        "Requests that are signed with a key whose address is their keyid are verified and made.",
        _ENVOYS + "test_who_signs_is_the_caller_and_its_tasks_are_its_own",
        _ENVOYS + "test_a_signature_is_for_one_host_one_body_and_one_time",
        _ENVOYS + "test_a_chain_header_that_is_signed_counts_and_one_that_is_not_is_refused",
        _ENVOYS + "test_a_key_that_is_not_the_hosts_signs_nothing",
        _OUT + "test_a_request_to_who_knows_signed_ones_holds_under_the_key_at_its_keyid",
    ),
    _row(
        "ca2a",
        "The links of a delegation are evidence that is shown; the record of a call and the digest "
        "of the one above it are written.",
        _CHAIN + "test_a_delegation_of_others_is_evidence_that_is_shown",
        _WRITTEN,
    ),
    _row(
        "beeai",
        "Approvals of BeeAI are read and written, both ways.",
        _QUESTIONS + "test_beeai_and_its_heir_decide",
        _ASKED,
    ),
    _row(
        "receipts",
        "A receipt in the form of others is written beside ours.",
        _SIGNED + "test_a_receipt_in_the_form_of_others_comes_beside_ours_where_it_is_active",
        _FORGED,
    ),
    _row(
        "trace",
        "The trace of a message is read and written; the header wins.",
        _CHAIN + "test_a_trace_in_metadata_is_that_of_the_call_unless_a_header_tells_one",
        _WRITTEN,
    ),
    _row(
        "hops",
        "Hop counters of other gateways are stamps: strict digits, the largest of all depths "
        "counts, and X-A2A-Hop is written outward.",
        _LARGEST,
        _NONE,
        _WRITTEN,
    ),
)
