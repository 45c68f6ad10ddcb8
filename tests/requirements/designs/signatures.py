"""The attacks of security.md on signatures, keys, nonces and what a signed caller may do."""

from tests.requirements.rows import Row

_FORMS = "tests/security/signed/test_forms.py::"
_DESTINATIONS = "tests/security/signed/test_destinations.py::"
_TIME = "tests/security/signed/test_time.py::"
_INSTANTS = "tests/security/signed/test_instants.py::"
_RESTART = "tests/security/signed/test_restart.py::"
_RATES = "tests/security/signed/test_rates.py::"
_KEYS = "tests/security/signed/test_keys.py::"
_CALLBACKS = "tests/security/test_callbacks.py::"
_OUTBOX = "tests/runtime/webhooks/test_dispatcher.py::"
_RECEIVERS = "tests/faults/test_receivers.py::"
_CARDS = "tests/security/signed/test_cards.py::"
_SKILLS = "tests/security/signed/test_skills.py::"
_PROFILE = "tests/security/signed/test_profile.py::"
_PAGES_READ = "tests/security/signed/test_pages.py::"
_COPIES = "tests/replicas/test_signed_copies.py::"
_MIDDLEBOX = "tests/travel/test_middlebox.py::"
_SIGNATURES = "tests/wire/crypto/test_signatures.py::"
_DIGESTS = "tests/wire/crypto/test_digests.py::"
_CURVE = "tests/wire/crypto/test_ed25519.py::"
_RING = "tests/runtime/peers/test_keyring.py::"
_PAGES = "tests/runtime/peers/test_cards.py::"
_SCHEMAS = "tests/runtime/skills/test_schemas.py::"
_NONCES = "tests/stores/upkeep/test_retention_nonces.py::"
_PLACES = "tests/stores/calls/test_turns_places.py::"
_ROTATION = "tests/stores/trust/test_own_keys_rotation.py::"
_ROTATING = "tests/travel/test_rotation.py::"
_STORED_KEYS = "tests/stores/trust/test_own_keys.py::"
_ADDRESS = "tests/core/people/test_address.py::"
_COMMANDS = "tests/cli/trust/test_keys.py::"

_WHAT_IS_SIGNED = (
    Row(
        "security:a01:missing",
        "A request of the signed dialect without a signature is refused.",
        "security.md A01",
        (
            _FORMS + "test_without_a_signature_nothing_is_answered",
            _SIGNATURES + "test_a_request_without_a_signature_is_told_so",
        ),
    ),
    Row(
        "security:a02:one",
        "Anything but exactly one signature under one label is no signature.",
        "security.md A02",
        (
            _FORMS + "test_anything_but_one_signature_is_none",
            _PROFILE + "test_a_signature_for_something_else_is_none",
            _SIGNATURES + "test_what_is_not_exactly_one_signature_is_refused",
        ),
    ),
    Row(
        "security:a03:body",
        "A body of which a byte was changed does not match its digest.",
        "security.md A03",
        (
            _FORMS + "test_a_body_that_was_changed_does_not_match_its_digest",
            _FORMS + "test_space_behind_the_body_is_a_change",
            _PROFILE + "test_a_request_that_was_changed_on_the_way_is_another_one",
        ),
    ),
    Row(
        "security:a04:digest",
        "A digest that was made anew for a changed body is not the one that was signed.",
        "security.md A04",
        (_FORMS + "test_a_new_digest_does_not_help_a_changed_body",),
    ),
    Row(
        "security:a05:digest-form",
        "A digest that is missing, not one sha-256, or contradicted by another beside it is "
        "refused, also if it is signed.",
        "security.md A05",
        (
            _FORMS + "test_a_digest_that_is_not_one_sha_256_is_refused_even_if_it_is_signed",
            _FORMS + "test_without_a_digest_nothing_is_answered",
            _FORMS + "test_two_digest_fields_are_refused",
            _DIGESTS + "test_what_is_not_a_digest_is_invalid",
        ),
    ),
    Row(
        "security:a06:coverage",
        "A signature that leaves out what its form must cover is not enough.",
        "security.md A06",
        (
            _FORMS + "test_a_signature_over_less_than_the_request_is_not_enough",
            _PROFILE + "test_whatever_is_not_covered_is_missed",
        ),
    ),
    Row(
        "security:a07:headers",
        "A header of chain or identity that the signature does not cover is refused.",
        "security.md A07; R9",
        (
            _FORMS + "test_a_header_of_chain_or_identity_beside_the_signature_is_refused",
            _FORMS + "test_a_trace_context_beside_the_signature_is_no_claim",
            _PROFILE + "test_a_header_that_was_added_on_the_way_is_refused",
            _MIDDLEBOX + "test_whoever_changes_a_signed_call_on_the_way_gets_it_refused",
        ),
    ),
    Row(
        "security:a08:destination",
        "A signed request is good for one agent of one gateway, one path and one method.",
        "security.md A08",
        (
            _DESTINATIONS + "test_identical_bytes_sent_to_a_second_agent_are_refused",
            _DESTINATIONS + "test_identical_bytes_sent_to_a_second_gateway_are_refused",
            _DESTINATIONS + "test_another_path_is_another_request",
            _DESTINATIONS + "test_a_message_is_no_stream",
            _DESTINATIONS + "test_a_query_is_not_covered_and_so_not_taken",
            _DESTINATIONS + "test_another_method_is_not_served",
            _DESTINATIONS + "test_the_host_of_another_agent_does_not_make_a_request_its_own",
            _DESTINATIONS + "test_a_request_to_somebody_else_is_refused_though_its_signature_holds",
            _PROFILE + "test_a_request_is_for_one_gateway",
            _PROFILE + "test_a_request_that_was_changed_on_the_way_is_another_one",
            _MIDDLEBOX + "test_a_call_that_was_overheard_is_good_for_no_other_host",
        ),
    ),
)

_REPLAY = (
    Row(
        "security:a09:replay",
        "A request that was accepted is refused from then on, and its first result stays.",
        "security.md A09",
        (
            _TIME + "test_the_same_bytes_again_are_refused_and_the_first_result_stays",
            _TIME + "test_a_nonce_is_spent_whatever_else_the_next_request_says",
            _PROFILE + "test_a_request_that_is_all_signed_is_accepted_once",
            _MIDDLEBOX + "test_a_call_that_was_overheard_on_the_way_is_not_accepted_again",
        ),
    ),
    Row(
        "security:a10:copies",
        "Of 64 copies that are sent to four gateways at once exactly one is accepted; `make "
        "replay` does it a thousand times.",
        "security.md A10, I6, G9",
        (
            _COPIES + "test_of_copies_sent_to_all_gateways_at_once_exactly_one_is_accepted",
            _COPIES + "test_different_requests_with_one_nonce_are_accepted_once_over_all_gateways",
            _TIME + "test_copies_at_the_same_moment_are_one_call",
            "tests/stores/postgres/test_driver_replicas.py::test_a_nonce_is_accepted_once_by_all_postgres_replicas",
        ),
    ),
    Row(
        "security:a11:restart",
        "A nonce is durable before anything happens: a gateway that was killed refuses it.",
        "security.md A11",
        (
            _RESTART + "test_a_request_that_was_answered_is_refused_after_a_kill",
            _COPIES + "test_a_nonce_that_one_gateway_has_taken_is_known_to_a_gateway_that_"
            "starts_later",
            _INSTANTS + "test_the_memory_of_a_process_is_not_what_refuses",
            _NONCES + "test_a_nonce_is_refused_after_a_restart",
        ),
    ),
    Row(
        "security:a12:instants",
        "A request is accepted once and at no later instant: it is known, or out of its time.",
        "security.md A12, I6; R11",
        (
            _INSTANTS + "test_a_request_is_accepted_once_and_at_no_later_instant",
            _INSTANTS + "test_a_clock_that_is_set_gives_no_nonce_back",
            _NONCES + "test_i6_in_any_order_no_nonce_is_accepted_twice_while_it_lives",
        ),
    ),
    Row(
        "security:a13:burning",
        "A forgery burns nobody's nonce and spends nobody's quota; sixty lock nobody out.",
        "security.md A13; R10",
        (
            _TIME + "test_a_stranger_cannot_burn_the_nonce_of_another",
            _TIME + "test_a_request_that_is_refused_for_what_it_says_burns_no_nonce",
            _TIME + "test_sixty_forged_requests_lock_nobody_out",
            _RATES + "test_a_sender_spends_its_own_quota_and_nobody_elses",
        ),
    ),
    Row(
        "security:a14:scope",
        "A nonce is its sender's own: the same one of another sender is another.",
        "security.md A14",
        (_TIME + "test_a_nonce_is_its_senders_own",),
    ),
    Row(
        "security:a15:form",
        "A nonce is 8 to 64 visible ASCII characters, and its case counts.",
        "security.md A15",
        (
            _TIME + "test_a_nonce_has_one_form",
            _TIME + "test_without_a_nonce_nothing_is_answered",
            _TIME + "test_nonces_that_differ_by_case_alone_are_two",
            _TIME + "test_the_shortest_and_the_longest_nonce_are_accepted_once",
            _PROFILE + "test_the_nonce_of_a_signature_has_one_form",
        ),
    ),
    Row(
        "security:a16:window",
        "A moment outside the window, or in any other form than one, is refused.",
        "security.md A16; R11",
        (
            _TIME + "test_a_clock_that_differs_more_is_told_the_time",
            _TIME + "test_the_ends_of_time_are_outside_the_window",
            _TIME + "test_a_moment_has_one_form",
            _TIME + "test_without_a_moment_nothing_is_answered",
            _INSTANTS + "test_the_window_ends_where_it_should",
            _FORMS + "test_a_created_that_is_no_integer_is_refused",
            _FORMS + "test_the_age_of_created_is_not_judged_in_the_form_of_the_dialect",
            _PROFILE + "test_the_window_is_narrower_between_carnets",
        ),
    ),
    Row(
        "security:a17:expires",
        "A signature that names its own end is not honoured beyond it.",
        "security.md A17",
        (
            _PROFILE + "test_a_signature_that_names_its_own_end_is_not_honoured_beyond_it",
            "tests/guards/proof/test_signature.py::test_a_signature_holds_until_the_end_that_it_names",
        ),
    ),
)

_WHOSE_KEY = (
    Row(
        "security:a18:keyid",
        "A key is found by its sender and keyid together; nothing is fetched from where a keyid "
        "points, and who is unknown is told the command that would admit it.",
        "security.md A18; R14",
        (
            _KEYS + "test_a_keyid_is_looked_up_with_its_sender_and_nowhere_else",
            _KEYS + "test_the_key_of_one_sender_is_not_that_of_another",
            _KEYS + "test_who_is_unknown_is_told_the_command_that_would_admit_it",
            _PROFILE + "test_a_document_is_its_senders_own",
            _RING + "test_no_host_that_a_keyid_names_is_ever_asked",
        ),
    ),
    Row(
        "security:a19:algorithm",
        "The algorithm is that of the key, whatever a signature or a document says.",
        "security.md A19",
        (
            _FORMS + "test_the_algorithm_is_that_of_the_key_whatever_the_signature_says",
            _PROFILE + "test_a_signature_for_something_else_is_none",
            _PROFILE + "test_a_document_of_another_kind_is_none",
        ),
    ),
    Row(
        "security:a20:hmac",
        "The public key is no shared secret.",
        "security.md A20",
        (
            _FORMS + "test_a_public_key_is_no_shared_secret",
            "tests/wire/crypto/test_jws.py::test_the_public_key_is_no_shared_secret",
        ),
    ),
    Row(
        "security:a21:weak",
        "A key of small or mixed order, or in another spelling, is refused when it is written "
        "down and when it is fetched.",
        "security.md A21",
        (
            _KEYS + "test_a_card_with_a_key_of_small_order_is_not_believed",
            _KEYS + "test_a_key_of_small_order_is_refused_when_it_is_written_down",
            _CURVE + "test_a_key_of_small_order_is_refused_and_its_forgery_does_not_hold",
            _CURVE + "test_a_key_of_mixed_order_is_refused",
            _COMMANDS + "test_a_weak_key_is_refused_and_nothing_is_admitted",
            _COMMANDS + "test_a_weak_key_in_the_file_is_refused",
        ),
    ),
    Row(
        "security:a22:forms",
        "A signature has one form; none that was derived from it holds.",
        "security.md A22",
        (
            _FORMS + "test_a_signature_has_one_form",
            _FORMS + "test_no_bit_of_a_signature_can_be_another",
            _CURVE + "test_a_signature_whose_second_half_is_not_below_the_order_does_not_hold",
        ),
    ),
    Row(
        "security:a23:revoked",
        "A key that was ended is refused, within five seconds by all gateways; the key it was "
        "replaced by, and one in its overlap, are honoured.",
        "security.md A23, G13, D11",
        (
            _KEYS + "test_a_key_that_its_owner_has_ended_is_refused",
            _KEYS + "test_a_pinned_key_is_ended_within_five_seconds",
            _KEYS + "test_a_key_that_its_owner_publishes_is_learned_and_kept",
            _COPIES + "test_a_key_is_admitted_and_revoked_for_all_gateways",
            _CARDS + "test_a_key_that_leaves_its_card_or_is_ended_there_is_refused_when_the_card_"
            "is_read_again",
            _RING + "test_a_key_past_its_end_is_revoked",
            _STORED_KEYS + "test_a_key_that_was_replaced_is_honoured_until_the_overlap_has_passed",
        ),
    ),
    Row(
        "security:d11:rotation",
        "A new key is shown before it signs, by every gateway's clock; no call is refused because "
        "of a rotation, and a revoked key is replaced at once.",
        "security.md D11, G13",
        (
            _ROTATING + "test_no_call_fails_while_both_sides_replace_the_keys_they_sign_with",
            _ROTATION + "test_a_new_key_is_shown_at_once_and_signs_when_others_have_learned_it",
            _ROTATION + "test_gateways_that_start_before_and_after_the_switch_sign_with_the_same_"
            "key",
            _ROTATION + "test_the_next_key_signs_at_once_when_the_one_that_signs_is_revoked",
            _RING + "test_a_peer_that_has_rotated_its_key_is_asked_again_after_some_seconds",
        ),
    ),
    Row(
        "security:a24:flood",
        "Unknown keyids lead to one fetch a minute for each peer, and senders that can have no "
        "card to none.",
        "security.md A24",
        (
            _KEYS + "test_a_flood_of_unknown_keyids_asks_for_one_card",
            _KEYS + "test_a_flood_of_senders_that_cannot_have_a_card_asks_for_none",
            _CARDS + "test_one_card_is_asked_for_once_a_minute_whatever_keyids_are_named",
            _RING + "test_one_keyid_that_was_made_up_has_a_peer_be_asked_a_minute_later_again",
            _RING + "test_more_strangers_than_can_wait_are_told_that_we_are_busy",
        ),
    ),
    Row(
        "security:a25:syntax",
        "Tricks with the syntax of the fields are not read; what is signed is the text received.",
        "security.md A25",
        (
            _FORMS + "test_tricks_with_the_syntax_are_not_read",
            _FORMS + "test_parameters_that_were_reordered_behind_the_signature_do_not_hold",
            _FORMS + "test_parameters_in_another_order_hold_if_they_were_signed_so",
            _SIGNATURES + "test_the_literal_text_is_signed_not_what_it_means",
        ),
    ),
    Row(
        "security:a26:lines",
        "No value forges a line of what is signed.",
        "security.md A26",
        (
            _FORMS + "test_a_line_break_inside_a_header_never_reaches_the_signature",
            _FORMS + "test_a_letter_that_is_not_ascii_is_not_signed_over",
            _SIGNATURES + "test_no_value_forges_a_line",
        ),
    ),
    Row(
        "security:a27:answers",
        "An answer without the proof that it must carry is none: 502, the turn can be run again, "
        "and nothing is billed as done.",
        "security.md A27",
        (
            _MIDDLEBOX + "test_an_answer_without_its_receipt_is_no_answer",
            _MIDDLEBOX + "test_the_receipt_of_another_call_proves_nothing",
            _MIDDLEBOX + "test_a_stream_without_its_receipt_does_not_end_well",
            _MIDDLEBOX + "test_a_cost_that_nobody_signed_is_not_owed",
        ),
    ),
)

_WHAT_IT_MAY = (
    Row(
        "security:a35:deputy",
        "A signed caller is given what it is trusted with itself: by a list, by a token that is "
        "one, and through no agent of ours.",
        "security.md A35",
        (
            _SKILLS + "test_a_skill_for_trusted_peers_answers_those_on_its_list_alone",
            _SKILLS + "test_a_skill_for_the_authenticated_wants_a_token_that_is_one",
            _SKILLS + "test_an_agent_lends_a_signed_caller_none_of_the_gateways_rights",
            _SKILLS + "test_an_agent_that_asks_for_more_trust_is_not_called_by_a_signature_alone",
            _SKILLS + "test_a_stranger_without_credit_is_not_served_what_has_a_price",
            _SKILLS + "test_a_token_beside_the_signature_is_written_nowhere",
        ),
    ),
    Row(
        "security:a40:depth",
        "Below one parent turn everybody is as deep; a hop that takes its depth back, or whose "
        "stamps contradict one another, is refused.",
        "security.md A40",
        (
            _PROFILE + "test_a_hop_cannot_take_its_depth_back",
            _PROFILE + "test_a_stamp_that_contradicts_the_document_is_refused",
            _MIDDLEBOX + "test_whoever_changes_a_signed_call_on_the_way_gets_it_refused",
            _PLACES + "test_a_call_is_as_deep_as_its_siblings",
            _PLACES + "test_a_call_is_one_below_the_record_of_its_parent",
            _PLACES + "test_a_turn_that_is_sent_again_stands_where_it_stood",
            _PLACES + "test_a_turn_that_failed_does_not_run_again_from_another_depth",
        ),
    ),
    Row(
        "security:a56:schema",
        "A payload that is not of its schema names the field and never the value; a schema that "
        "leads elsewhere, or whose patterns are expensive, is refused at the start.",
        "security.md A56",
        (
            _SKILLS + "test_a_payload_that_is_not_of_its_schema_names_the_field_and_not_the_value",
            _SKILLS + "test_a_payload_that_is_no_object_or_too_large_is_refused",
            _SKILLS + "test_a_payload_nested_without_end_is_refused",
            _SCHEMAS + "test_a_schema_that_leads_elsewhere_is_refused_and_nothing_is_fetched",
            _SCHEMAS + "test_a_pattern_that_is_too_long_is_told_at_start",
            _SCHEMAS + "test_no_pattern_makes_a_payload_expensive",
        ),
    ),
    Row(
        "security:a57:identities",
        "An identity has one spelling, as sender and as recipient.",
        "security.md A57",
        (
            _DESTINATIONS + "test_an_identity_has_one_spelling",
            _DESTINATIONS + "test_a_clients_name_in_other_letters_is_another_clients",
            _ADDRESS + "test_what_two_readers_could_read_differently_is_no_identity",
            _COMMANDS + "test_a_name_that_looks_like_a_known_one_is_not_admitted_beside_it",
        ),
    ),
    Row(
        "security:a63:cards",
        "No packet leaves to an inner address that the name of a sender leads to, however often "
        "its answer changes; redirects are not followed.",
        "security.md A63",
        (
            _CARDS + "test_a_sender_whose_name_leads_inward_is_asked_for_no_card",
            _CARDS + "test_a_name_that_leads_elsewhere_the_next_time_is_judged_anew",
            _CARDS + "test_an_inner_name_is_not_even_looked_up",
            _KEYS + "test_a_host_of_cards_that_misbehaves_gets_nothing_and_nobody_in",
            _PAGES + "test_no_redirect_is_followed",
        ),
    ),
    Row(
        "security:a63:callbacks",
        "A callback to an inner address is refused when it is given and when it is called.",
        "security.md A63",
        (
            _CALLBACKS + "test_a63_the_whole_list_is_refused_before_anything_is_claimed",
            _CALLBACKS + "test_a63_nobody_who_is_not_proved_learns_anything_about_an_address",
            _CALLBACKS + "test_a63_a_task_that_comes_with_a_token_is_judged_as_well",
            _OUTBOX + "test_a63_a_name_that_is_public_when_it_is_named_and_inward_when_dialled",
            _OUTBOX + "test_a63_what_got_into_the_outbox_is_judged_again",
            _OUTBOX + "test_a63_a_redirect_inward_is_not_followed",
        ),
    ),
    Row(
        "security:a70:cards",
        "What strangers may read of an agent tells nothing of the house it is in.",
        "security.md A70",
        (
            _PAGES_READ + "test_a_page_of_an_agent_tells_nothing_of_the_house",
            _PAGES_READ + "test_the_pages_of_nobody_are_not_there",
            "tests/cli/test_output.py::test_the_version_of_an_agent_is_its_own",
            _PAGES_READ + "test_the_keys_that_are_published_are_public_ones",
        ),
    ),
    Row(
        "security:a64:hosts",
        "A host of cards is bounded in size and time, not unpacked, not followed, and its "
        "certificate must hold.",
        "security.md A64",
        (
            _KEYS + "test_a_host_of_cards_that_misbehaves_gets_nothing_and_nobody_in",
            _KEYS + "test_a_card_that_drips_is_left_in_time",
            _PAGES + "test_an_endless_page_is_left_after_its_bound",
            _PAGES + "test_an_encoded_page_is_refused_unread",
            _PAGES + "test_a_certificate_that_does_not_hold_is_unreachable",
        ),
    ),
    Row(
        "security:a64:receivers",
        "A receiver of callbacks is bounded in size and time, and not unpacked.",
        "security.md A64",
        (
            _OUTBOX + "test_a64_an_answer_without_end_is_taken_to_64_kib",
            _OUTBOX + "test_a64_a_bomb_of_an_answer_is_its_status_alone_and_is_not_unpacked",
            _OUTBOX + "test_a64_a_receiver_that_never_answers_is_given_up_in_time",
            _RECEIVERS + "test_a64_a_receiver_that_answers_for_ever_or_byte_by_byte_is_cut_off",
        ),
    ),
)

ROWS = (*_WHAT_IS_SIGNED, *_REPLAY, *_WHOSE_KEY, *_WHAT_IT_MAY)
