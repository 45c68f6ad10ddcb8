"""SAMVAD 1.2: every sentence of seed 004, then what else is told of the protocol and its SDKs."""

from tests.requirements.designs import samvad_client
from tests.requirements.rows import Divergence, Row

_ENVELOPE = "tests/wire/dialects/samvad/test_envelope.py::"
_CLAIM = "tests/wire/dialects/samvad/test_claim.py::"
_PROOF = "tests/wire/dialects/samvad/test_claim_proof.py::"
_ANSWER = "tests/wire/dialects/samvad/test_answer.py::"
_STREAM = "tests/wire/dialects/samvad/test_stream.py::"
_REFUSALS = "tests/wire/dialects/samvad/test_refusals.py::"
_REPORTS = "tests/wire/dialects/samvad/test_reports.py::"
_CARD = "tests/wire/dialects/samvad/test_card.py::"
_PACKAGE = "tests/interop/recorded/test_server.py::"
_RECORDED = "tests/interop/recorded/test_recorded.py::"
_VALID = "tests/wire/dialects/samvad/test_schemas.py::"
_SIGNATURES = "tests/wire/crypto/test_signatures_samvad.py::"
_FORMS = "tests/security/signed/test_forms.py::"
_WHITHER = "tests/security/signed/test_destinations.py::"
_TIME = "tests/security/signed/test_time.py::"
_INSTANTS = "tests/security/signed/test_instants.py::"
_KEYS = "tests/security/signed/test_keys.py::"
_CARDS = "tests/security/signed/test_cards.py::"
_SKILLS = "tests/security/signed/test_skills.py::"
_RESTART = "tests/security/signed/test_restart.py::"
_NONCES = "tests/stores/upkeep/test_retention_nonces.py::"
_OWN_KEYS = "tests/stores/trust/test_own_keys.py::"
_SCHEMAS = "tests/runtime/skills/test_schemas.py::"
_CALLS = "tests/runtime/agents/test_python_skills.py::"
_SCAN = "tests/guards/target/test_injection.py::"
_ASKED_FOR = "tests/guards/target/test_target_skill.py::"
_DOCUMENTS = "tests/travel/test_documents.py::"
_GATEWAY = "tests/gateway/dialects/test_samvad.py::"
_ADMISSION = "tests/guards/admission/test_gate_signed.py::"
_SKILL = "tests/guards/target/test_target_skill.py::"
_TRUSTED = "tests/guards/caller/test_trust.py::"
_EXHAUSTED = "tests/guards/limits/test_rate.py::"
_TASKS = "tests/gateway/test_tasks.py::"
_BUDGETS = "tests/replicas/test_budgets.py::"
_SDK_CLIENT = "tests/interop/samvad/test_sdk_client.py::"
_SDK_SERVER = "tests/interop/samvad/test_server.py::"
_ASKED = "tests/gateway/dialects/test_samvad_sentences.py::"
_WARY = "tests/gateway/endpoint/test_one_skill.py::"
_OUTBOUND = "tests/runtime/agents/test_samvad_peer.py::"
_PROFILE = "tests/security/signed/test_profile.py::"
_SIGNED_CALLS = "tests/travel/test_signed_calls.py::"
_RATE = "tests/security/signed/test_rates.py::"
_DELEGATED = "tests/security/callers/test_delegation.py::"

_CALLED = _SDK_SERVER + "test_a_skill_of_the_real_server_is_called"
_ENVELOPED = _OUTBOUND + "test_the_envelope_names_sender_recipient_skill_run_and_turn"

_NINE = "test_the_nine_codes_have_the_statuses_of_the_text"

_FORGEABLE = Divergence(
    "R10",
    "Whoever claims a sender could burn its nonces and its quota. Both are spent only after the "
    "signature holds; before it a nonce that is known is refused from memory.",
)
_LITERAL = Divergence(
    "R8",
    "The Python SDK writes the parameters anew and ignores what it was sent; the received text is "
    "what is verified here, as in the other SDK and in the RFC.",
)
_ADDRESSED = Divergence(
    "R9",
    "Both SDKs leave it unread, so that one signed request is good for every agent that knows its "
    "sender. It must be the agent that is asked.",
)
_LEARNED = Divergence(
    "R14",
    "The SDKs know only keys that were handed to them and refuse strangers. The sender's card is "
    "fetched, within bounds; where there is none, the refusal names the command that admits it.",
)
_STRICT = Divergence(
    "R19",
    "The SDKs take fields that the schema forbids; two readers would disagree about them. They are "
    "refused.",
)

_MODES = (
    Row(
        "samvad:modes:one-envelope",
        "The three modes, sync, async and stream, use the same envelope.",
        "004 introduction",
        (
            _ENVELOPE + "test_the_same_envelope_serves_every_mode",
            _SDK_CLIENT + "test_the_default_agent_streams",
            _TASKS + "test_the_default_agent_takes_tasks_at_the_root",
            _GATEWAY + "test_a_signed_message_is_answered_in_the_envelope_of_the_dialect",
        ),
    ),
    Row(
        "samvad:modes:endpoint",
        "Only the endpoint and the way of answering differ with the mode.",
        "004 introduction",
        (
            _ENVELOPE + "test_the_mode_must_be_that_of_the_endpoint",
            _WHITHER + "test_a_message_is_no_stream",
        ),
    ),
)

_REQUEST = (
    Row(
        "samvad:envelope:body",
        "The JSON body carries the routing and the payload; the signature is in headers, not in "
        "the body.",
        "004 request envelope",
        (
            _CLAIM + "test_a_request_is_read_as_a_claim",
            _ENVELOPE + "test_a_field_that_the_protocol_does_not_have_is_refused",
            _GATEWAY + "test_a_signed_message_is_answered_in_the_envelope_of_the_dialect",
            _TIME + "test_a_field_that_is_not_honoured_is_not_passed_over",
        ),
    ),
    Row(
        "samvad:envelope:example",
        "The example of a request is one.",
        "004 request envelope, example",
        (
            _ENVELOPE + "test_the_worked_example_of_the_text_is_read",
            _ASKED + "test_the_example_of_the_text_is_a_request",
        ),
    ),
    Row(
        "samvad:envelope:required",
        "from, to, skill, mode, nonce, timestamp, traceId and spanId are required.",
        "004 request envelope, table",
        (
            _ENVELOPE + "test_a_required_field_must_be_there_and_be_text",
            _ASKED + "test_a_required_field_must_be_there_and_be_text",
        ),
    ),
    Row(
        "samvad:envelope:from",
        "from is the agent:// identity of the sender.",
        "004 request envelope, from",
        (
            _ENVELOPE + "test_identities_are_taken_in_their_stored_form_alone",
            _ENVELOPE + "test_a_domain_and_one_label_are_identities_by_their_shape",
            _KEYS + "test_the_key_of_one_sender_is_not_that_of_another",
        ),
    ),
    Row(
        "samvad:envelope:to",
        "to is the agent:// identity of the receiver.",
        "004 request envelope, to",
        (
            _WHITHER + "test_a_request_to_somebody_else_is_refused_though_its_signature_holds",
            _WHITHER + "test_identical_bytes_sent_to_a_second_agent_are_refused",
            _WHITHER + "test_an_identity_has_one_spelling",
        ),
        _ADDRESSED,
    ),
    Row(
        "samvad:envelope:skill",
        "skill is the id of the skill that is invoked, at most 64 characters.",
        "004 request envelope, skill; request schema",
        (
            _ENVELOPE + "test_a_skill_is_1_to_64_characters",
            _SDK_CLIENT + "test_declared_skills_are_called_by_their_names",
        ),
    ),
    Row(
        "samvad:envelope:mode",
        "mode is sync, async or stream.",
        "004 request envelope, mode",
        (
            _ENVELOPE + "test_a_mode_is_one_of_three",
            _ASKED + "test_a_mode_is_one_of_three",
        ),
    ),
    Row(
        "samvad:envelope:mode-endpoint",
        "The mode is that of the endpoint.",
        "reference system, section 2 (neither SDK compares them)",
        (
            _ENVELOPE + "test_the_mode_must_be_that_of_the_endpoint",
            _WHITHER + "test_a_message_is_no_stream",
        ),
    ),
    Row(
        "samvad:envelope:mode-skill",
        "The mode is one of those that the skill declares.",
        "request schema, mode",
        (
            _SKILL + "test_a_skill_is_asked_in_a_mode_that_it_has",
            _WARY + "test_a_skill_is_asked_in_a_mode_that_it_has",
        ),
    ),
    Row(
        "samvad:envelope:nonce",
        "nonce is a unique random value of 8 to 64 characters.",
        "004 request envelope, nonce; request schema; A15",
        (
            _ENVELOPE + "test_a_nonce_is_8_to_64_visible_characters",
            _TIME + "test_a_nonce_has_one_form",
        ),
    ),
    Row(
        "samvad:envelope:nonce-once",
        "Receivers reject duplicates of a nonce within five minutes.",
        "004 request envelope, nonce",
        (
            _TIME + "test_the_same_bytes_again_are_refused_and_the_first_result_stays",
            _INSTANTS + "test_a_request_is_accepted_once_and_at_no_later_instant",
            _NONCES + "test_i6_in_any_order_no_nonce_is_accepted_twice_while_it_lives",
            _RESTART + "test_a_request_that_was_answered_is_refused_after_a_kill",
        ),
        Divergence(
            "R11",
            "Five minutes after arrival a request from the future would be fresh again: a nonce is "
            "refused until its own time has left the window as well.",
        ),
    ),
    Row(
        "samvad:envelope:timestamp",
        "timestamp is ISO 8601 in UTC.",
        "004 request envelope, timestamp",
        (
            _ENVELOPE + "test_a_moment_is_read_by_one_form",
            _ENVELOPE + "test_any_other_moment_is_refused",
            _TIME + "test_a_moment_has_one_form",
        ),
        Divergence(
            "R11",
            "Of the many forms of ISO 8601 one is taken, with Z or +00:00: readers disagree about "
            "the others, and one without an offset means another time on every machine.",
        ),
    ),
    Row(
        "samvad:envelope:timestamp-window",
        "Receivers reject messages older than five minutes.",
        "004 request envelope, timestamp; R11",
        (
            _INSTANTS + "test_the_window_ends_where_it_should",
            _TIME + "test_a_clock_that_differs_more_is_told_the_time",
        ),
    ),
    Row(
        "samvad:envelope:trace",
        "traceId is the root correlation id, propagated unchanged.",
        "004 request envelope, traceId",
        (
            _CLAIM + "test_the_trace_is_the_run_and_tells_no_depth",
            _ENVELOPE + "test_ids_are_bounded_visible_characters",
            _ASKED + "test_the_trace_is_the_run_and_the_span_the_turn",
            _ENVELOPED,
        ),
    ),
    Row(
        "samvad:envelope:span",
        "spanId is the unique id of this hop.",
        "004 request envelope, spanId",
        (
            _CLAIM + "test_a_request_is_read_as_a_claim",
            _ENVELOPE + "test_a_trace_is_as_long_as_a_run_and_a_span_as_a_turn",
            _ASKED + "test_the_trace_is_the_run_and_the_span_the_turn",
            _ENVELOPED,
        ),
    ),
    Row(
        "samvad:envelope:parent-span",
        "parentSpanId is that of the caller, null at the root.",
        "004 request envelope, parentSpanId",
        (
            _ENVELOPE + "test_null_is_absent_where_a_field_may_be_absent",
            _CLAIM + "test_a_request_is_read_as_a_claim",
            _ASKED + "test_null_is_absent_where_a_field_may_be_absent",
            _ASKED + "test_the_trace_is_the_run_and_the_span_the_turn",
            _ENVELOPED,
        ),
    ),
    Row(
        "samvad:envelope:auth",
        "auth is required for authenticated skills.",
        "004 request envelope, auth",
        (
            _ENVELOPE + "test_a_credential_is_lifted_into_a_secret",
            _SKILLS + "test_a_skill_for_the_authenticated_wants_a_token_that_is_one",
            _SKILLS + "test_an_agent_that_asks_for_more_trust_is_not_called_by_a_signature_alone",
            _SIGNED_CALLS + "test_the_document_and_the_receipt_ride_on_the_signed_dialect_as_well",
        ),
        Divergence(
            "R8",
            "A Carnet that is listed as a peer and signs the whole request is known by that: it "
            "needs no token beside it. Everybody else does.",
        ),
    ),
    Row(
        "samvad:envelope:payload",
        "payload is optional.",
        "004 request envelope, payload",
        (
            _ENVELOPE + "test_a_payload_that_is_absent_or_null_is_empty",
            _CALLS + "test_no_payload_is_an_empty_one",
            _WARY + "test_no_payload_is_an_empty_one",
        ),
    ),
    Row(
        "samvad:envelope:payload-schema",
        "payload must conform to the inputSchema of the skill.",
        "004 request envelope, payload",
        (
            _ENVELOPE + "test_a_payload_is_an_object",
            _SCHEMAS + "test_a_refusal_names_the_field_and_the_constraint_and_never_the_value",
            _SKILLS + "test_a_payload_that_is_not_of_its_schema_names_the_field_and_not_the_value",
        ),
    ),
    Row(
        "samvad:envelope:unknown-field",
        "The envelope has no other fields.",
        "request schema",
        (
            _ENVELOPE + "test_a_field_that_the_protocol_does_not_have_is_refused",
            _TIME + "test_a_field_that_is_not_honoured_is_not_passed_over",
        ),
        _STRICT,
    ),
    Row(
        "samvad:envelope:strict-json",
        "A body has one reading: no key twice, no NaN, bounded nesting.",
        "reference system, sections 2 and 5; A53",
        (
            _ENVELOPE + "test_what_is_not_strict_json_is_refused",
            _SKILLS + "test_a_payload_nested_without_end_is_refused",
        ),
    ),
    Row(
        "samvad:envelope:spelling",
        "Any spelling of the JSON is taken: the digest is over the raw bytes.",
        "reference system, section 2",
        (
            _ENVELOPE + "test_any_spelling_of_the_json_is_taken",
            _ASKED + "test_any_spelling_of_the_json_is_taken",
        ),
    ),
    Row(
        "samvad:envelope:client",
        "Clients send sorted keys, no spaces, unescaped text and no null fields.",
        "reference system, section 2",
        (
            _ENVELOPE + "test_what_is_written_is_sorted_and_compact_and_says_nothing_twice",
            _PACKAGE + "test_the_sdk_reads_our_envelope_and_would_write_the_same_bytes",
            _PACKAGE + "test_our_json_is_that_of_the_sdk",
            _RECORDED + "test_the_recorded_json_is_ours",
            _ENVELOPED,
            _CALLED,
        ),
    ),
    Row(
        "samvad:envelope:trace-headers",
        "The text names headers for trace and spans, which no SDK sends or reads.",
        "reference system, section 2",
        (
            _CLAIM + "test_the_trace_headers_that_nobody_sends_are_ignored",
            _ASKED + "test_trace_headers_that_nobody_sends_are_ignored",
        ),
        Divergence("R19", "They say what the signed body says; unknown headers are ignored."),
    ),
    Row(
        "samvad:envelope:schema",
        "Our requests are valid against the schema of the protocol.",
        "request schema",
        (
            _VALID + "test_our_requests_are_valid_against_the_schema",
            _CALLED,
        ),
    ),
)

_SIGNING = (
    Row(
        "samvad:signature:headers",
        "Content-Digest, Signature-Input and Signature stand on every POST.",
        "004 signature",
        (
            _CLAIM + "test_a_request_without_a_signature_is_refused",
            _FORMS + "test_without_a_signature_nothing_is_answered",
            _FORMS + "test_without_a_digest_nothing_is_answered",
        ),
    ),
    Row(
        "samvad:signature:covered",
        "Method, path and digest are signed, so that the endpoint and the body are known to be "
        "the sender's.",
        "004 signature, what is signed",
        (
            _PROOF + "test_less_than_the_three_components_is_not_enough",
            _PROOF + "test_another_path_does_not_hold",
            _PROOF + "test_another_method_does_not_hold",
            _FORMS + "test_a_signature_over_less_than_the_request_is_not_enough",
            _WHITHER + "test_another_path_is_another_request",
        ),
    ),
    Row(
        "samvad:signature:digest",
        "The digest is the SHA-256 of the body's bytes in UTF-8.",
        "004 signature, steps 1 and 2",
        (
            _CLAIM + "test_a_changed_body_is_told_as_that_whatever_it_is_now",
            _CLAIM + "test_a_digest_must_be_there_and_be_one",
            _PACKAGE + "test_what_we_sign_the_sdk_verifies_and_would_sign_alike",
            _RECORDED + "test_digests_are_those_of_the_sdk",
            _FORMS + "test_a_body_that_was_changed_does_not_match_its_digest",
        ),
    ),
    Row(
        "samvad:signature:base",
        "The base of RFC 9421 is signed with Ed25519.",
        "004 signature, step 3",
        (
            _SDK_CLIENT + "test_the_default_agent_answers_a_call_at_the_root",
            _CALLED,
            _FORMS + "test_no_bit_of_a_signature_can_be_another",
            _PROOF + "test_the_base_is_the_protocols_with_its_newline",
            _RECORDED + "test_signatures_are_those_of_the_sdk_byte_for_byte",
            _SIGNATURES
            + "test_the_recorded_signatures_hold_with_a_newline_at_the_end_and_not_without",
        ),
    ),
    Row(
        "samvad:signature:sent",
        "All three headers are sent with the request.",
        "004 signature, step 4",
        (
            _PACKAGE + "test_what_we_sign_the_sdk_verifies_and_would_sign_alike",
            _CALLED,
        ),
    ),
    Row(
        "samvad:signature:keyid",
        "keyid names a kid of the sender's card, so that keys can be rotated.",
        "004 signature",
        (
            _PROOF + "test_a_key_is_named_and_its_name_is_bounded",
            _KEYS + "test_a_keyid_is_looked_up_with_its_sender_and_nowhere_else",
            _KEYS + "test_a_key_that_its_owner_publishes_is_learned_and_kept",
        ),
    ),
    Row(
        "samvad:signature:automatic",
        "Whoever writes an agent never makes or checks these headers.",
        "004 signature",
        (_SDK_CLIENT + "test_the_default_agent_answers_a_call_at_the_root",),
    ),
    Row(
        "samvad:signature:newline",
        "Every line of the base ends with a newline, the last one too.",
        "reference system, section 3",
        (
            _PROOF + "test_both_forms_and_both_paths_hold",
            _PACKAGE + "test_the_sdk_refuses_a_signature_without_the_newline",
            _FORMS + "test_the_form_of_the_rfc_is_accepted_as_well",
        ),
        Divergence(
            "R8",
            "The RFC has no newline at the end, and libraries follow it: both texts are accepted, "
            "the protocol's is written.",
        ),
    ),
    Row(
        "samvad:signature:path",
        "The path is signed without a query; the SDK signs the path after the prefix of an agent.",
        "reference system, section 3; client trials",
        (
            _PROOF + "test_both_forms_and_both_paths_hold",
            _PROOF + "test_a_query_is_refused",
            _WHITHER + "test_a_query_is_not_covered_and_so_not_taken",
            _SDK_CLIENT + "test_a_named_agent_answers_a_call_under_its_prefix",
        ),
        Divergence(
            "R9",
            "A query that is not signed is refused where the Python SDK takes it; the path may be "
            "the literal one or the one after the prefix.",
        ),
    ),
    Row(
        "samvad:signature:alone",
        "Authority, query and other headers are not covered.",
        "reference system, section 3",
        (
            _PROOF + "test_a_chain_or_identity_header_beside_the_envelope_is_refused",
            _PROOF + "test_other_headers_may_stand_outside",
            _FORMS + "test_a_header_of_chain_or_identity_beside_the_signature_is_refused",
            _WHITHER + "test_identical_bytes_sent_to_a_second_gateway_are_refused",
        ),
        Divergence(
            "R9",
            "What tells the chain or an identity could be written by anybody on the way: beside "
            "the three components it is refused.",
        ),
    ),
    Row(
        "samvad:signature:form",
        "The label is sig1, there is one signature and its algorithm is named ed25519.",
        "reference system, section 3; A02, A19",
        (
            _PROOF + "test_the_label_and_the_algorithm_are_the_protocols",
            _FORMS + "test_anything_but_one_signature_is_none",
            _FORMS + "test_the_algorithm_is_that_of_the_key_whatever_the_signature_says",
        ),
    ),
    Row(
        "samvad:signature:literal",
        "The parameters of a signature are those that were received.",
        "reference system, section 3",
        (
            _PROOF + "test_a_signature_covers_the_literal_text_that_was_received",
            _PROOF + "test_another_order_holds_if_it_was_signed_so",
            _RECORDED + "test_we_verify_what_the_sdk_verifies_but_for_what_was_altered",
            _FORMS + "test_parameters_that_were_reordered_behind_the_signature_do_not_hold",
        ),
        _LITERAL,
    ),
    Row(
        "samvad:signature:created",
        "created is in whole seconds and its age is not judged.",
        "reference system, section 3; R11",
        (
            _PROOF + "test_the_age_of_created_is_not_judged_but_it_must_be_whole_seconds",
            _FORMS + "test_a_created_that_is_no_integer_is_refused",
        ),
    ),
    Row(
        "samvad:signature:written",
        "Toward the SDKs exactly the form is written that both of them accept.",
        "reference system, section 3",
        (
            _PACKAGE + "test_what_we_sign_the_sdk_verifies_and_would_sign_alike",
            _CALLED,
            _OUTBOUND
            + "test_the_request_goes_where_the_operator_said_and_is_signed_without_the_prefix",
        ),
    ),
    Row(
        "samvad:signature:ours",
        "Between two Carnets everything that decides about a call is covered.",
        "R8",
        (
            _PROOF + "test_our_own_profile_has_its_own_nonce_and_time",
            _PROOF + "test_our_own_profile_covers_all_of_it",
            _PROOF + "test_our_own_profile_covers_every_chain_header_and_the_query",
            _PROFILE + "test_whatever_is_not_covered_is_missed",
            _PROFILE + "test_a_header_that_was_added_on_the_way_is_refused",
        ),
    ),
    Row(
        "samvad:signature:unsigned",
        "A middleware of one SDK takes unsigned bodies without sender, nonce and time.",
        "reference system, section 14",
        (
            _CLAIM + "test_a_request_without_a_signature_is_refused",
            _FORMS + "test_without_a_signature_nothing_is_answered",
        ),
        Divergence("R9", "A request without a signature is nobody's: it is refused."),
    ),
)

_RESPONSE = (
    Row(
        "samvad:response:ok",
        "An answer holds traceId, the responder's spanId, status ok and the result.",
        "004 response envelope",
        (
            _ANSWER + "test_an_answer_has_the_four_fields_of_the_protocol",
            _ANSWER + "test_an_answer_is_shaped_as_the_worked_example_of_the_text",
            _ANSWER + "test_the_span_of_an_answer_is_new_to_the_caller_and_the_same_for_a_repeat",
            _GATEWAY + "test_a_signed_message_is_answered_in_the_envelope_of_the_dialect",
        ),
    ),
    Row(
        "samvad:response:repeat",
        "A hop that is repeated under a new nonce is answered once.",
        "the model of a turn",
        (_GATEWAY + "test_a_span_that_is_repeated_under_a_new_nonce_is_answered_from_the_record",),
    ),
    Row(
        "samvad:response:error",
        "A refusal holds traceId, spanId, status error, and an error of code and message.",
        "004 response envelope, on error",
        (
            _REFUSALS + "test_every_error_is_written_in_the_one_shape",
            _REFUSALS + "test_the_error_example_of_the_text_is_written",
            _REFUSALS + "test_an_error_names_the_trace_that_it_met",
            _GATEWAY + "test_every_refusal_under_these_paths_is_in_the_words_of_the_dialect",
            _GATEWAY + "test_a_refusal_names_the_trace_of_its_request_and_our_own_code",
        ),
    ),
    Row(
        "samvad:response:schema",
        "Answers and refusals are valid against the schema of the protocol.",
        "004 JSON schema",
        (
            _VALID + "test_our_answers_and_all_our_refusals_are_valid_against_the_schema",
            _PACKAGE + "test_the_sdk_reads_our_answers_and_our_refusals",
            _SDK_CLIENT + "test_declared_skills_are_called_by_their_names",
            _SDK_CLIENT + "test_refusals_reach_the_client_with_their_status_and_code",
        ),
    ),
    Row(
        "samvad:response:output-schema",
        "The result conforms to the outputSchema of the skill.",
        "response schema",
        (
            _SCHEMAS + "test_a_result_that_does_not_fit_is_told_to_our_log_alone",
            _WARY + "test_a_result_that_does_not_fit_its_schema_is_told_to_nobody",
        ),
    ),
    Row(
        "samvad:response:object",
        "A result is an object.",
        "response schema",
        (
            _ANSWER + "test_a_result_that_is_no_object_is_wrapped",
            _ANSWER + "test_the_text_of_an_agent_is_joined",
            _GATEWAY + "test_a_named_agent_answers_at_its_prefix_and_at_its_host",
        ),
    ),
    Row(
        "samvad:response:unsigned",
        "Answers are not signed by either SDK, though one page says so.",
        "reference system, section 3",
        (
            _ANSWER + "test_an_answer_has_the_four_fields_of_the_protocol",
            _ASKED + "test_an_answer_is_not_signed",
        ),
    ),
)

_ERRORS = (
    Row(
        "samvad:error:auth-failed",
        "AUTH_FAILED is 401: signature, digest, unknown sender, no token, not an allowed peer.",
        "reference system, section 5",
        (
            _REFUSALS + _NINE,
            _SDK_CLIENT + "test_refusals_reach_the_client_with_their_status_and_code",
        ),
    ),
    Row(
        "samvad:error:replay-detected",
        "REPLAY_DETECTED is 401: a nonce that was seen, and a time outside the window.",
        "reference system, section 5; R11",
        (
            _REFUSALS + _NINE,
            _TIME + "test_the_same_bytes_again_are_refused_and_the_first_result_stays",
        ),
    ),
    Row(
        "samvad:error:skill-not-found",
        "SKILL_NOT_FOUND is 404.",
        "reference system, section 5",
        (_REFUSALS + _NINE, _SKILLS + "test_a_skill_that_is_not_there_is_told_as_such"),
    ),
    Row(
        "samvad:error:schema-invalid",
        "SCHEMA_INVALID is 400 and names the field and the constraint, as in the example.",
        "004 response envelope, on error; R12",
        (
            _REFUSALS + "test_what_a_schema_refuses_names_the_field_and_the_constraint",
            _SCHEMAS + "test_the_example_of_the_protocol_reads_as_it_is_written",
            _SKILLS + "test_a_payload_that_is_not_of_its_schema_names_the_field_and_not_the_value",
        ),
    ),
    Row(
        "samvad:error:injection-detected",
        "INJECTION_DETECTED is 400.",
        "reference system, section 5",
        (
            _REFUSALS + _NINE,
            _SKILLS + "test_what_would_take_over_a_model_is_refused_after_it_was_authenticated",
        ),
    ),
    Row(
        "samvad:error:delegation-exceeded",
        "DELEGATION_EXCEEDED is 400; a chain that is too deep is told with it.",
        "reference system, section 5; A31",
        (
            _REFUSALS + "test_a_chain_too_deep_is_final",
            _STREAM + "test_a_chain_too_deep_is_told_in_the_stream_too",
            _DELEGATED + "test_one_hop_is_one_call",
        ),
    ),
    Row(
        "samvad:error:rate-limited",
        "RATE_LIMITED is 429.",
        "reference system, section 5",
        (
            _REFUSALS + "test_every_429_says_when_to_come_back",
            _RATE + "test_a_sender_spends_its_own_quota_and_nobody_elses",
        ),
        Divergence("R12", "Neither SDK says when to come back; every 429 of ours does."),
    ),
    Row(
        "samvad:error:token-budget-exceeded",
        "TOKEN_BUDGET_EXCEEDED is 429 with Retry-After.",
        "reference system, section 5",
        (
            _REFUSALS + _NINE,
            _REFUSALS + "test_every_429_says_when_to_come_back",
            _BUDGETS + "test_tokens_are_counted_over_all_gateways_until_the_day_ends",
        ),
    ),
    Row(
        "samvad:error:agent-unavailable",
        "AGENT_UNAVAILABLE is 500: the handler failed.",
        "reference system, section 5",
        (
            _REFUSALS + _NINE,
            _RECORDED + "test_the_recorded_statuses_are_ours_or_a_named_divergence",
            _SDK_CLIENT + "test_a_handler_that_fails_is_told_without_its_words",
        ),
        Divergence(
            "R12",
            "The text says 500, one SDK 503. What was not begun (overload, shutting down, no "
            "store) keeps 503 and says when to come back.",
        ),
    ),
    Row(
        "samvad:error:words",
        "No exception text and no input value reaches a caller.",
        "reference system, section 18; R12",
        (
            _REFUSALS + "test_every_error_is_written_in_the_one_shape",
            _CALLS + "test_what_goes_wrong_in_a_skill_is_told_to_our_log_alone",
            _GATEWAY + "test_an_agent_that_fails_is_unavailable_and_says_nothing_of_why",
            _SKILLS + "test_a_payload_that_is_not_of_its_schema_names_the_field_and_not_the_value",
        ),
    ),
    Row(
        "samvad:error:whole",
        "Every error has one of the nine codes.",
        "response schema",
        (
            _REFUSALS + "test_every_error_has_one_row",
            _REFUSALS + "test_every_row_has_one_of_the_nine_codes_and_its_status_or_a_plainer_one",
            _GATEWAY + "test_every_refusal_under_these_paths_is_in_the_words_of_the_dialect",
        ),
    ),
    Row(
        "samvad:error:read",
        "Callers repeat RATE_LIMITED, TOKEN_BUDGET_EXCEEDED after its time, and nothing that is "
        "final.",
        "reference system, section 5",
        (
            _REPORTS + "test_a_refusal_keeps_the_word_of_the_protocol_and_is_final",
            _REPORTS + "test_a_peer_that_is_busy_may_be_asked_again",
            _REPORTS + "test_an_agent_that_failed_is_told_from_a_call_that_failed_further_on",
            _OUTBOUND + "test_a_peer_that_is_busy_says_for_how_long",
            _OUTBOUND + "test_a_policy_answer_is_final",
        ),
    ),
    Row(
        "samvad:error:plain",
        "Outside the envelope servers answer in plain text or other JSON.",
        "reference system, section 5",
        (
            _REPORTS + "test_without_a_word_that_we_know_the_status_decides",
            _OUTBOUND + "test_what_is_no_answer_is_an_error_of_the_provider",
        ),
    ),
    Row(
        "samvad:error:size",
        "A body is at most 1 MiB, else 413.",
        "reference system, sections 5 and 21",
        (_SKILLS + "test_a_payload_that_is_no_object_or_too_large_is_refused",),
    ),
)

_ORDER = (
    Row(
        "samvad:order:replay-first",
        "A replay is told as that before a rate or a signature is judged.",
        "reference system, sections 4 and 20",
        (
            _ADMISSION + "test_a_replay_is_told_before_a_rate_and_a_rate_before_a_signature",
            _NONCES + "test_the_nonce_is_answered_before_everything_else",
            _TIME + "test_a_nonce_is_spent_whatever_else_the_next_request_says",
        ),
        _FORGEABLE,
    ),
    Row(
        "samvad:order:not-burned",
        "A request that is refused by its rate burns no nonce, nor does a forged one.",
        "reference system, sections 4 and 12",
        (
            _NONCES + "test_a_claim_that_is_refused_for_another_reason_burns_no_nonce",
            _TIME + "test_a_stranger_cannot_burn_the_nonce_of_another",
            _TIME + "test_a_request_that_is_refused_for_what_it_says_burns_no_nonce",
        ),
        _FORGEABLE,
    ),
    Row(
        "samvad:order:quota",
        "The quota of a sender is charged to whoever claims its name.",
        "reference system, section 6",
        (_TIME + "test_sixty_forged_requests_lock_nobody_out",),
        _FORGEABLE,
    ),
    Row(
        "samvad:order:scan-after-signature",
        "The scan comes after the signature and before skill and trust.",
        "reference system, sections 4 and 20",
        (_SKILLS + "test_what_would_take_over_a_model_is_refused_after_it_was_authenticated",),
    ),
    Row(
        "samvad:order:skill-before-trust",
        "An unknown skill is told as that before trust is judged, and trust before the payload.",
        "reference system, sections 4 and 20",
        (
            _ADMISSION + "test_a_skill_is_looked_for_before_trust_and_trust_before_shape",
            _ASKED + "test_a_skill_is_looked_for_before_trust_and_trust_before_the_payload",
        ),
    ),
    Row(
        "samvad:order:sender-scope",
        "A nonce is its sender's own: two senders may use the same.",
        "reference system, section 12; R11",
        (
            _TIME + "test_a_nonce_is_its_senders_own",
            _NONCES + "test_a_nonce_is_the_senders_own_and_its_case_counts",
        ),
    ),
)

_RATES = (
    Row(
        "samvad:rate:sender",
        "A sender has a rate of its own, and another is unaffected by it.",
        "reference system, sections 6 and 20",
        (
            _ADMISSION + "test_a_rate_is_each_senders_own_and_burns_no_nonce",
            _EXHAUSTED + "test_another_sender_is_unaffected",
            _RATE + "test_a_sender_spends_its_own_quota_and_nobody_elses",
        ),
    ),
    Row(
        "samvad:rate:told",
        "The rates of an agent and of a sender, a minute, stand in the card.",
        "reference system, section 1",
        (
            _CARD + "test_the_limits_are_told_and_an_absent_one_is_not",
            _GATEWAY + "test_the_card_of_the_default_agent_is_at_the_root_and_at_its_prefix",
        ),
    ),
)

_TRUST = (
    Row(
        "samvad:trust:public",
        "A public skill answers any sender whose signature verifies.",
        "reference system, section 7",
        (
            _KEYS + "test_a_key_that_its_owner_publishes_is_learned_and_kept",
            _KEYS + "test_who_is_unknown_is_told_the_command_that_would_admit_it",
            _SDK_CLIENT + "test_a_client_that_nobody_admitted_is_told_the_command_that_would",
        ),
        _LEARNED,
    ),
    Row(
        "samvad:trust:authenticated",
        "An authenticated skill wants a token, which is really verified and never shown to it.",
        "reference system, section 7",
        (
            _SKILLS + "test_a_skill_for_the_authenticated_wants_a_token_that_is_one",
            _SKILLS + "test_a_token_beside_the_signature_is_written_nowhere",
            _CALLS + "test_a_skill_learns_who_calls_and_never_a_token",
        ),
    ),
    Row(
        "samvad:trust:trusted-peers",
        "A skill for trusted peers answers those on its list.",
        "reference system, section 7",
        (
            _SKILLS + "test_a_skill_for_trusted_peers_answers_those_on_its_list_alone",
            _TRUSTED + "test_a_list_of_a_skill_is_the_whole_list",
        ),
    ),
)

_SCANNING = (
    Row(
        "samvad:scan:phrases",
        "Ten phrases are looked for in every string value, whatever their case; keys are not "
        "looked at.",
        "reference system, section 11",
        (
            _SCAN + "test_a_phrase_that_takes_over_a_model_is_refused",
            _SCAN + "test_every_value_is_looked_at_however_deep_and_no_key_is",
            _SCAN + "test_it_agrees_with_the_scanner_of_the_sdk",
            _WARY + "test_the_phrases_are_looked_for_in_values_however_deep",
        ),
    ),
    Row(
        "samvad:scan:classifier",
        "A classifier may be asked as well; one that fails lets the request pass.",
        "reference system, section 11",
        (
            _SCAN + "test_a_classifier_is_asked_after_the_phrases",
            _SCAN + "test_a_classifier_that_raises_lets_pass_and_is_noted",
            _WARY + "test_what_a_classifier_finds_is_refused",
            _WARY + "test_a_classifier_that_fails_lets_the_request_pass",
        ),
    ),
    Row(
        "samvad:scan:doors",
        "Whoever is scanned in one dialect is in the other: of a chat that a stranger has signed "
        "every text is, beside a payload as well.",
        "reference system, section 11; security.md, threat model",
        (
            _DOCUMENTS + "test_whatever_a_stranger_says_to_take_over_a_model_is_refused",
            _DOCUMENTS + "test_a_stranger_that_says_nothing_odd_is_answered",
            _DOCUMENTS + "test_what_the_people_of_a_peer_say_is_theirs",
            _ASKED_FOR + "test_whatever_a_stranger_says_in_a_chat_is_scanned_also_beside_a_payload",
        ),
    ),
    Row(
        "samvad:scan:cost",
        "The scan is bounded and does not hold up others.",
        "reference system, sections 11 and 21",
        (
            _SCAN + "test_what_lies_beyond_the_cap_is_not_read",
            _SCAN + "test_a_large_payload_is_read_beside_the_event_loop",
            _SCAN + "test_what_follows_many_values_is_read_as_well",
        ),
    ),
    Row(
        "samvad:scan:boundary",
        "Untrusted input can be framed as such for a model.",
        "reference system, section 11",
        (_SCAN + "test_the_frame_is_that_of_the_sdk",),
    ),
)

_STREAMING = (
    Row(
        "samvad:stream:chunks",
        "A stream is events of chunk and done false, and a last one of done true and the result.",
        "reference system, section 10",
        (
            _STREAM + "test_a_stream_is_chunks_and_then_one_last_frame",
            _STREAM + "test_a_skill_streams_what_it_yields_and_ends_with_its_result",
            _SDK_CLIENT + "test_a_named_agent_streams_its_chunks",
        ),
    ),
    Row(
        "samvad:stream:error",
        "What fails after the stream has begun is the last event, with an error.",
        "reference system, section 10",
        (
            _STREAM + "test_a_failure_is_the_last_frame_with_one_of_the_nine_codes",
            _GATEWAY + "test_what_fails_in_a_stream_is_told_in_its_last_frame",
        ),
    ),
    Row(
        "samvad:stream:refused-before",
        "What is refused before the stream begins is plain JSON with its status.",
        "reference system, section 10",
        (
            _FORMS + "test_without_a_signature_nothing_is_answered",
            _GATEWAY + "test_every_refusal_under_these_paths_is_in_the_words_of_the_dialect",
        ),
    ),
    Row(
        "samvad:stream:headers",
        "A stream is text/event-stream that no proxy keeps or holds back.",
        "reference system, section 10",
        (_GATEWAY + "test_a_stream_tells_what_came_as_it_came_and_then_the_whole",),
    ),
    Row(
        "samvad:stream:keep-alive",
        "A comment keeps a silent stream alive.",
        "reference system, section 10",
        (_STREAM + "test_the_comment_that_keeps_a_stream_alive_is_the_protocols",),
    ),
    Row(
        "samvad:stream:lines",
        "Lines end with LF; both LF and CRLF are read.",
        "reference system, section 10",
        (
            _STREAM + "test_lines_end_with_lf_alone",
            _STREAM + "test_the_streams_of_both_sdks_are_read",
            _GATEWAY + "test_a_stream_tells_what_came_as_it_came_and_then_the_whole",
            _SDK_SERVER + "test_a_stream_of_the_real_server_ends_in_its_result",
        ),
    ),
    Row(
        "samvad:stream:no-injection",
        "No text adds an event to a stream.",
        "A59",
        (
            _STREAM + "test_no_text_can_add_a_frame",
            _ASKED + "test_no_text_adds_an_event_to_a_stream",
        ),
    ),
    Row(
        "samvad:stream:sdk",
        "The SDK's client reads the stream.",
        "reference system, section 10",
        (_SDK_CLIENT + "test_the_default_agent_streams",),
    ),
)

_PUBLISHING = (
    Row(
        "samvad:identity:domain",
        "An identity is a domain, without a port.",
        "reference system, section 1",
        (
            _GATEWAY + "test_the_card_of_the_default_agent_is_at_the_root_and_at_its_prefix",
            _GATEWAY + "test_another_agent_has_its_card_at_its_prefix_and_at_its_host",
            _ENVELOPE + "test_identities_are_taken_in_their_stored_form_alone",
        ),
    ),
    Row(
        "samvad:endpoints:served",
        "Card, intro, health, message and stream are at their paths, without a token.",
        "reference system, section 1",
        (
            _GATEWAY + "test_a_signed_message_is_answered_in_the_envelope_of_the_dialect",
            _GATEWAY + "test_the_introduction_is_for_people",
            _GATEWAY + "test_health_tells_the_load",
            _GATEWAY + "test_a_named_agent_answers_at_its_prefix_and_at_its_host",
        ),
    ),
    Row(
        "samvad:endpoints:task",
        "POST /agent/task and GET /agent/task/{id} are at their paths.",
        "reference system, section 1",
        (
            _TASKS + "test_a_task_is_accepted_at_once_and_its_result_is_polled",
            _TASKS + "test_the_default_agent_takes_tasks_at_the_root",
        ),
    ),
    Row(
        "samvad:endpoints:cors",
        "No answer may be read by the pages of other sites.",
        "reference system, section 1",
        (_GATEWAY + "test_no_other_site_may_read_the_answers",),
    ),
    Row(
        "samvad:card:cache",
        "A card is served as JSON that may be kept for its cardTTL.",
        "reference system, section 1",
        (_GATEWAY + "test_the_card_of_the_default_agent_is_at_the_root_and_at_its_prefix",),
    ),
    Row(
        "samvad:card:fields",
        "A card holds fourteen fields; the SDK's client needs every one.",
        "reference system, section 1; client trials",
        (
            _CARD + "test_a_card_has_all_fourteen_fields",
            _PACKAGE + "test_the_sdk_reads_our_card",
            _SDK_CLIENT + "test_the_card_satisfies_the_model_of_the_package",
        ),
    ),
    Row(
        "samvad:card:schema",
        "A card is valid against the schema of the protocol.",
        "card schema",
        (
            _VALID + "test_our_card_is_valid_against_the_schema",
            _SDK_CLIENT + "test_the_card_satisfies_the_model_of_the_package",
        ),
    ),
    Row(
        "samvad:card:endpoints",
        "A card names its six endpoints.",
        "reference system, section 1",
        (
            _CARD + "test_the_endpoints_of_a_card_are_whole_urls_below_its_own",
            _PACKAGE + "test_we_read_the_card_of_the_sdk_and_write_the_same_endpoints",
            _RECORDED + "test_the_recorded_cards_are_ours",
            _ASKED + "test_the_card_names_its_six_endpoints_below_its_own_url",
        ),
    ),
    Row(
        "samvad:card:auth",
        "auth.schemes holds bearer if a skill is for the authenticated.",
        "reference system, section 1",
        (
            _CARD + "test_a_bearer_is_asked_for_where_a_skill_is_for_the_authenticated",
            _GATEWAY + "test_another_agent_has_its_card_at_its_prefix_and_at_its_host",
        ),
    ),
    Row(
        "samvad:card:skills",
        "A skill has id, name, description, schemas, modes and trust, perhaps a list of peers.",
        "card schema",
        (
            _CARD + "test_a_skill_is_written_with_its_schemas_modes_and_trust",
            _CARD + "test_skills_are_read_as_far_as_they_are_known",
            _ASKED + "test_a_skill_stands_in_the_card_with_its_schemas_modes_and_trust",
        ),
    ),
    Row(
        "samvad:card:keys",
        "A key is the padded base64 of the 32 raw bytes; one that is not active must be refused.",
        "reference system, sections 1 and 13; card schema",
        (
            _CARD + "test_the_keys_of_a_card_are_padded_base64_and_say_whether_they_hold",
            _CARD + "test_a_card_with_a_key_that_is_none_is_worthless",
            _KEYS + "test_a_key_that_its_owner_has_ended_is_refused",
        ),
    ),
    Row(
        "samvad:card:limits",
        "A card tells the limits of requests.",
        "reference system, section 1",
        (
            _CARD + "test_the_limits_are_told_and_an_absent_one_is_not",
            _GATEWAY + "test_the_card_of_the_default_agent_is_at_the_root_and_at_its_prefix",
        ),
    ),
    Row(
        "samvad:card:ttl",
        "Receivers fetch a card again after its cardTTL, 300 seconds by default.",
        "reference system, section 13",
        (
            _CARD + "test_the_time_that_a_card_holds_is_bounded",
            _CARDS + "test_a_card_holds_until_its_end_and_no_longer",
        ),
    ),
    Row(
        "samvad:card:rotation",
        "A card lists all keys, and keyid picks one of them.",
        "reference system, section 13",
        (
            _CARDS + "test_a_key_that_leaves_its_card_or_is_ended_there_is_refused_when_the_card_is"
            "_read_again",
            _OWN_KEYS + "test_a_key_that_was_replaced_is_honoured_until_the_overlap_has_passed",
        ),
    ),
    Row(
        "samvad:card:read",
        "A card of the least that the schema asks for is read as well.",
        "card schema",
        (
            _CARD + "test_a_card_of_the_least_that_the_schema_asks_for_is_read",
            _SDK_SERVER + "test_the_card_of_the_real_server_is_read",
        ),
    ),
    Row(
        "samvad:card:learned",
        "A card is found by the domain of the sender.",
        "reference system, section 13",
        (
            _KEYS + "test_a_flood_of_unknown_keyids_asks_for_one_card",
            _CARDS + "test_a_sender_whose_name_leads_inward_is_asked_for_no_card",
        ),
        _LEARNED,
    ),
    Row(
        "samvad:intro",
        "GET /agent/intro tells people about the agent in Markdown.",
        "reference system, section 1",
        (
            _CARD + "test_the_intro_tells_people_the_same",
            _GATEWAY + "test_the_introduction_is_for_people",
        ),
    ),
    Row(
        "samvad:health",
        "GET /agent/health tells status, versions, uptime and load.",
        "reference system, section 1",
        (_CARD + "test_health_tells_the_load", _GATEWAY + "test_health_tells_the_load"),
    ),
)

ROWS = (
    *_MODES,
    *_REQUEST,
    *_SIGNING,
    *_RESPONSE,
    *_ERRORS,
    *_ORDER,
    *_RATES,
    *_TRUST,
    *_SCANNING,
    *_STREAMING,
    *_PUBLISHING,
    *samvad_client.ROWS,
)
