"""What proves the sentences about who calls, by their ids; see `proof.at_client`."""

from typing import Final

from tests.requirements.rows import Divergence

_FOLDER = "tests/interop/a2a_client/test_"
_ANSWERS, _TASKS = f"{_FOLDER}answers.py::", f"{_FOLDER}tasks.py::"
_LIARS, _OPERATIONS = f"{_FOLDER}liars.py::", f"{_FOLDER}operations.py::"
_CARNETS, _CARD = f"{_FOLDER}carnets.py::", "tests/wire/dialects/a2a/client/test_interface.py::"
_ANSWERED = "test_input_that_is_required_is_an_interrupt_and_its_answer_goes_to_the_same_task"

PROVED: Final[dict[str, tuple[str, ...]]] = {
    "bind:choice": (
        _ANSWERS + "test_a_message_and_a_task_are_answers",
        _LIARS + "test_a_card_that_cannot_be_followed_is_refused_before_anything_is_sent",
        _CARD + "test_the_order_of_the_card_counts_among_equals",
    ),
    "card:kept": (_OPERATIONS + "test_a_card_is_asked_for_again_by_its_tag",),
    "card:selection": (
        _ANSWERS + "test_what_a_call_carries_is_ours",
        _CARD + "test_the_present_version_comes_before_the_former",
        "tests/wire/dialects/a2a/client/test_request.py::test_a_tenant_is_told_in_every_request",
    ),
    "cap:validate": (
        _TASKS + "test_a_task_that_takes_its_time_is_followed_to_its_end",
        _LIARS + "test_a_card_that_cannot_be_followed_is_refused_before_anything_is_sent",
    ),
    "context:opaque": (_TASKS + _ANSWERED,),
    "turns:continue": (
        _TASKS + _ANSWERED,
        _TASKS + "test_two_questions_of_one_task_are_answered_one_after_the_other",
    ),
    "ver-client-001": (_ANSWERS + "test_what_a_call_carries_is_ours",),
    "ver-client-002": (_ANSWERS + "test_what_a_call_carries_is_ours",),
    "auth:credentials": (_ANSWERS + "test_a_credential_goes_where_the_card_asks_for_it",),
    "auth-intask-chain": (
        _TASKS + "test_authorisation_that_is_required_is_a_sign_in",
        _CARNETS + "test_what_an_agent_two_hops_away_asks_for_is_answered_at_the_first",
    ),
    "auth-intask-follow": (_TASKS + "test_authorisation_that_is_required_is_a_sign_in",),
    "stream:away": (
        _LIARS + "test_a_stream_that_breaks_is_subscribed_to_and_nothing_is_told_twice",
        _LIARS + "test_who_cannot_be_subscribed_to_is_asked_for_the_task",
    ),
    "history:not-relied-on": (
        _ANSWERS + "test_a_message_and_a_task_are_answers",
        _LIARS + "test_who_cannot_be_subscribed_to_is_asked_for_the_task",
    ),
    "ver:tooling": (
        f"{_FOLDER}command_line.py::test_an_agent_is_called_by_the_url_of_its_card",
        _CARD + "test_the_present_version_comes_before_the_former",
    ),
    "push:receiver": (
        (
            "tests/runtime/webhooks/test_payload.py::"
            "test_our_verifier_refuses_what_was_signed_by_others_or_for_elsewhere"
        ),
        "tests/runtime/webhooks/test_payload.py::test_our_verifier_refuses_a_body_that_was_changed",
    ),
    "push:own-token": (_OPERATIONS + "test_push_configurations_are_made_shown_listed_and_deleted",),
    "card:verified-first": (
        (
            "tests/runtime/peers/a2a/test_verification.py::"
            "test_a_key_that_the_host_shows_as_a_carnet_is_its_own"
        ),
        "tests/cli/see/cards/test_a2a.py::test_a_card_that_was_changed_since_is_told",
        ("tests/runtime/peers/a2a/test_cards.py::test_nobody_is_called_by_a_card_that_was_changed"),
        (
            "tests/runtime/peers/a2a/test_cards.py::"
            "test_where_a_key_is_pinned_nothing_but_its_signature_will_do"
        ),
        _CARNETS + "test_a_peer_that_is_listed_with_a2a_is_called_in_it",
    ),
    "auth-server-001": (
        "tests/runtime/peers/test_cards.py::test_a_certificate_that_does_not_hold_is_unreachable",
    ),
}

DIVERGENCES: Final[dict[str, tuple[Divergence, tuple[str, ...]]]] = {
    "card:extended-replaces": (
        Divergence(
            "R14",
            "What a call needs stands in the public card, which is kept; the other one is read "
            "when somebody asks for it.",
        ),
        (_OPERATIONS + "test_the_extended_card_is_read",),
    ),
}
