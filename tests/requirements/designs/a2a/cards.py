"""A2A 1.0, sections 3.1.11, 4.4, 8, 13.3 and 14.3: cards, their signatures and who may see more."""

from tests.requirements.designs.a2a.proof import at_client, at_server
from tests.requirements.rows import Row

_CARD = "tests/gateway/cards/test_a2a.py::"
_KEYS = "tests/gateway/cards/test_keys.py::"
_SDK = "tests/interop/a2a_card/test_sdk.py::"
_WRITER = "tests/wire/dialects/a2a/card/test_writer.py::"
_PRESENCE = "tests/wire/dialects/a2a/card/test_presence.py::"
_SIGNATURE = "tests/wire/dialects/a2a/card/test_signature.py::"
_READER = "tests/wire/dialects/a2a/card/test_reader.py::"
_VERIFIED = "tests/runtime/peers/a2a/test_verification.py::"
_INSPECT = "tests/cli/see/cards/test_a2a.py::"
_READ = _SDK + "test_the_sdk_reads_and_verifies_our_card"
_OWN = _CARD + "test_a_card_is_signed_with_a_key_that_the_gateway_shows"
_TEXT = "A2A 1.0, "

_SERVED = (
    Row(
        "a2a:card-disc-001",
        "Every agent has a card, at the well-known address.",
        _TEXT + "8.1, 8.2, 14.3",
        (
            _CARD + "test_the_default_agent_is_at_the_root_and_others_by_their_path",
            _READ,
        ),
    ),
    Row(
        "a2a:card-proto-001",
        "It declares the protocols that are spoken, in the order of preference.",
        _TEXT + "8.3, 8.3.1",
        (_WRITER + "test_both_bindings_are_named_for_both_versions_the_newest_first", _READ),
    ),
    Row(
        "a2a:card-proto-002",
        "Each interface names its binding and its URL; one URL may serve several.",
        _TEXT + "8.3.1",
        (
            _WRITER + "test_both_bindings_are_named_for_both_versions_the_newest_first",
            _CARD + "test_the_default_agent_is_at_the_root_and_others_by_their_path",
        ),
    ),
    Row(
        "a2a:card-struct-001",
        "All required fields are there and hold something.",
        _TEXT + "4.4.1, 5.7",
        (
            _WRITER + "test_nothing_in_a_card_is_empty_and_it_is_read_as_it_was_meant",
            _INSPECT + "test_both_cards_of_an_agent_are_judged_or_the_one_that_is_named",
        ),
    ),
    Row(
        "a2a:card-cache-001",
        "A card says for how long it may be kept.",
        _TEXT + "8.6.1",
        (_CARD + "test_a_card_may_be_kept_and_is_not_sent_twice",),
    ),
    Row(
        "a2a:card-cache-002",
        "It has an ETag made of what it says.",
        _TEXT + "8.6.1",
        (_CARD + "test_a_card_may_be_kept_and_is_not_sent_twice",),
    ),
    Row(
        "a2a:card-cache-003",
        "It may say when it was changed last.",
        _TEXT + "8.6.1",
        (_CARD + "test_a_card_may_be_kept_and_is_not_sent_twice",),
    ),
    Row(
        "a2a:card:nothing-secret",
        "A card holds no credential and nothing of the inside.",
        _TEXT + "13.3, 14.3",
        (
            _WRITER + "test_the_permission_that_a_token_must_hold_is_its_scope",
            _CARD + "test_an_extended_card_names_the_agents_that_its_reader_may_call",
        ),
    ),
    at_client(
        "card:kept",
        "A client keeps a card as long as its server says, then asks with the tag that it has, "
        "and for a time of its own where nothing is said.",
        "8.6.2",
    ),
    at_client(
        "card:selection",
        "A client takes the first interface that it speaks, with its URL, and repeats its tenant "
        "in every request.",
        "8.3.2, AgentInterface",
    ),
)

_SIGNED = (
    Row(
        "a2a:card-sign-001",
        "What is signed is the canonical form of the card.",
        _TEXT + "8.4.1",
        (_PRESENCE + "test_the_worked_example_has_the_form_that_the_text_shows", _READ),
    ),
    Row(
        "a2a:card:presence",
        "Required fields and optional ones that were set are covered whatever their value; others "
        "only where they are not the default.",
        _TEXT + "8.4.1, 5.7",
        (
            _PRESENCE + "test_a_member_is_covered_by_the_rules_of_presence",
            _SDK + "test_the_sdk_refuses_our_card_when_a_word_of_it_is_changed",
        ),
    ),
    Row(
        "a2a:card-sign-002",
        "The signatures do not cover themselves.",
        _TEXT + "8.4.1",
        (
            _PRESENCE
            + "test_a_card_of_ours_is_one_text_in_the_form_of_the_protocol_and_of_its_sdks",
            _READ,
        ),
    ),
    Row(
        "a2a:card-sign-003",
        "The protected header names the algorithm and the key, says JOSE, and may say where the "
        "key lies.",
        _TEXT + "8.4.2",
        (
            _SIGNATURE + "test_where_a_key_is_said_to_lie_is_told_and_more_signatures_than_that_"
            "are_not_read",
            _OWN,
        ),
    ),
    Row(
        "a2a:card-sign-004",
        "A key that has ended, or was revoked, verifies nothing.",
        _TEXT + "8.4.3",
        (
            _VERIFIED + "test_a_key_that_has_ended_verifies_nothing",
            _KEYS + "test_a_key_that_was_revoked_is_shown_no_more",
        ),
    ),
    Row(
        "a2a:card:verify",
        "A card is verified by the key that its signature names, over the form that was signed; "
        "one that holds is enough, and there may be several.",
        _TEXT + "8.4.3, 14.3",
        (
            _SIGNATURE + "test_whatever_is_changed_breaks_the_signature",
            _SIGNATURE + "test_what_signatures_are_worth_is_told_in_one_word",
            _INSPECT + "test_a_card_that_the_sdk_signed_is_verified",
            _INSPECT + "test_a_card_that_was_changed_since_is_told",
        ),
    ),
    Row(
        "a2a:card:keys",
        "Keys come over a secure channel, or from those that are trusted already.",
        _TEXT + "8.4.3",
        (
            _VERIFIED + "test_a_key_that_lies_elsewhere_is_never_fetched",
            _VERIFIED + "test_a_pinned_key_wins_and_nobody_is_asked",
        ),
    ),
    at_client(
        "card:verified-first",
        "A client verifies a signature of a card before it trusts the card.",
        "8.4.3",
    ),
)

_EXTENDED = (
    Row(
        "a2a:card-ext-001",
        "The extended card is for callers who have shown a credential of a declared scheme.",
        _TEXT + "3.1.11, 13.3",
        (_CARD + "test_who_has_shown_a_token_is_given_the_extended_card_and_nobody_else",),
    ),
    at_server(
        "card-ext-002",
        "Where one is declared and there is none, that is told as such.",
        "3.1.11, 13.3",
    ),
    Row(
        "a2a:card:extended",
        "It may tell each caller something else: ours names the agents that the caller may call, "
        "and no others.",
        _TEXT + "3.1.11, 13.3, 14.3",
        (_CARD + "test_an_extended_card_names_the_agents_that_its_reader_may_call",),
    ),
    Row(
        "a2a:card:extended-caching",
        "Caches are told that it is for one caller.",
        _TEXT + "13.3",
        (_CARD + "test_who_has_shown_a_token_is_given_the_extended_card_and_nobody_else",),
    ),
    at_client(
        "card:extended-replaces",
        "A client uses it in place of the public card for as long as it is known.",
        "3.1.11, 13.3",
    ),
)

ROWS = (*_SERVED, *_SIGNED, *_EXTENDED)
