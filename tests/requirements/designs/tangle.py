"""The Tangle agent-to-agent headers: every sentence of seed 000, in the order of its text."""

from tests.requirements.rows import Divergence, Row

_PAYERS = "tests/interop/payers/test_doors.py::"
_WIRE = "tests/wire/stamps/test_tangle.py::"
_ADMISSION = "tests/guards/admission/test_gate.py::"
_PLACES = "tests/stores/calls/test_turns_places.py::"
_CARNET = "tests/core/chain/test_carnet.py::"
_ERRORS = "tests/test_errors.py::"
_TURN_ID = "tests/core/chain/test_turn_id.py::"
_PAYER = "tests/guards/limits/test_payer.py::"
_TARGET = "tests/guards/target/test_target.py::"
_REFUSALS = "tests/wire/dialects/openai/test_refusals.py::"
_CHAT = "tests/gateway/dialects/test_openai.py::"
_DEPTH = "tests/gateway/endpoint/test_depth.py::"
_FORWARDING = "tests/gateway/endpoint/test_forwarding.py::"
_IDEMPOTENCY = "tests/gateway/endpoint/test_idempotency.py::"
_RUNS = "tests/gateway/test_runs.py::"
_REMOTE = "tests/runtime/agents/test_remote.py::"
_EXAMPLE = "tests/interop/test_tangle_worked_example.py::"
_TWO = "tests/interop/test_two_organisations.py::"
_DIRECT = "tests/interop/test_direct_calls.py::"
_DRIVER = "tests/gateway/endpoint/test_driver.py::"
_CONVERSED = "tests/assembly/dialogue/test_driver_wire.py::"
_POLICY = "tests/runtime/dialogue/test_policy.py::"
_KILLED = "tests/crash/points/test_dialogue_points.py::"

_HOPS = _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says"
_BOUNDED = "test_a_direct_call_is_refused_by_who_is_called_whatever_the_caller_allows"
_LIMIT = _DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs"

_TOO_LARGE = Divergence(
    "R1",
    "The text says 413 here and 429 in its invariant; 413 already means a body that is too large. "
    "One status for one meaning: 429. Our client reads either, by the code.",
)
_SCOPED = Divergence(
    "R6",
    "Two calls of one nested agent would have the same id and the second would be answered with "
    "the first one's text. Ids below the first level carry a hash of their parent.",
)

_STACK = (
    Row(
        "tangle:stack:emit",
        "The runtime sends the headers with every call it makes to another agent.",
        "000 introduction",
        (_REMOTE + "test_a_call_out_carries_all_six_headers",),
    ),
    Row(
        "tangle:stack:enforce",
        "The gateway reads the headers of what arrives and enforces the depth limit.",
        "000 introduction",
        (
            _WIRE + "test_all_six_headers_are_read",
            _DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
        ),
    ),
    Row(
        "tangle:stack:third-party",
        "Anybody's agent behind a gateway can take part: paid for by the right party, traced, and "
        "bounded in depth.",
        "000 introduction",
        (_TWO + "test_a_call_crosses_two_gateways_and_both_ledgers_agree",),
    ),
    Row(
        "tangle:stack:every-section",
        "An implementation must honour every section; endpoints may rely on that.",
        "000 introduction",
        (
            _TWO + "test_a_call_crosses_two_gateways_and_both_ledgers_agree",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
        ),
    ),
)

_NAMES = (
    Row(
        "tangle:headers:lowercase",
        "Header names are in lower case on the wire.",
        "000 headers",
        (
            _WIRE + "test_the_six_names_are_in_lower_case",
            _EXAMPLE + "test_no_hop_sees_anything_but_lower_case_names",
        ),
    ),
    Row(
        "tangle:headers:case-insensitive",
        "Header names are read whatever their case.",
        "000 headers",
        (
            _WIRE + "test_a_depth_is_found_in_any_case_of_its_name",
            _DEPTH + "test_the_header_is_read_whatever_its_case",
        ),
    ),
    Row(
        "tangle:headers:omitted",
        "A header that has nothing to say is left out, not sent empty; an empty one counts as "
        "absent.",
        "reference system, section 1.1",
        (
            _WIRE + "test_what_is_not_there_is_left_out_rather_than_written_empty",
            _WIRE + "test_a_driver_without_credential_or_parent_sends_neither_header",
            _WIRE + "test_without_the_headers_or_with_blank_ones_there_is_no_stamp",
            _REMOTE + "test_headers_are_written_in_lower_case_and_empty_ones_omitted",
            _DEPTH + "test_a_depth_below_the_limit_is_answered",
        ),
    ),
    Row(
        "tangle:headers:bounded",
        "Ids and labels are bounded visible ASCII, given once; nothing splits a header.",
        "R3, A58",
        (
            _WIRE + "test_ids_and_labels_are_bounded_visible_ascii_given_once",
            _WIRE + "test_an_id_that_would_not_arrive_as_it_left_is_refused",
            "tests/gateway/endpoint/test_bad_input.py::test_ids_are_bounded_visible_ascii",
        ),
    ),
)

_AUTHORIZATION = (
    Row(
        "tangle:authorization:original",
        "x-tangle-forwarded-authorization carries the bearer of the user who began, in and out.",
        "000 headers, forwarded-authorization",
        (
            _WIRE + "test_all_six_headers_are_read",
            _WIRE + "test_the_callees_document_is_written_as_it_is",
            _HOPS,
        ),
    ),
    Row(
        "tangle:authorization:x402",
        "The bearer may be a payment token instead of a user key.",
        "000 headers, forwarded-authorization",
        (
            _WIRE + "test_one_bearer_credential_is_kept_byte_for_byte",
            _REMOTE + "test_a_forwarded_credential_leaves_byte_for_byte_to_a_listed_peer",
            _PAYERS + "test_a_payment_token_that_is_forwarded_is_verified_and_pays",
        ),
    ),
    Row(
        "tangle:authorization:verbatim",
        "It is forwarded unchanged through every hop.",
        "000 headers, forwarded-authorization",
        (
            _WIRE + "test_one_bearer_credential_is_kept_byte_for_byte",
            _REMOTE + "test_a_forwarded_credential_leaves_byte_for_byte_to_a_listed_peer",
        ),
    ),
    Row(
        "tangle:authorization:payer",
        "So whoever began the request is billed at the last hop, not the agent in between.",
        "000 headers, forwarded-authorization",
        (_TWO + "test_a_forwardable_token_pays_at_the_callee",),
    ),
    Row(
        "tangle:authorization:malformed",
        "Two credentials, a joined pair, another scheme or a line break are refused.",
        "R5, A34",
        (
            _WIRE + "test_anything_but_one_bearer_credential_is_refused_without_repeating_it",
            _WIRE + "test_two_forwarded_credentials_are_refused_even_if_they_agree",
            _FORWARDING + "test_a_malformed_forwarded_credential_is_refused",
        ),
    ),
)

_DEPTH_ROWS = (
    Row(
        "tangle:depth:counter",
        "x-tangle-forwarded-depth counts the hops, in and out.",
        "000 headers, forwarded-depth",
        (
            _WIRE + "test_the_chain_is_read_as_it_was_written",
            _HOPS,
        ),
    ),
    Row(
        "tangle:depth:origin",
        "The caller who begins leaves the depth out or says 0.",
        "000 headers, forwarded-depth",
        (
            _WIRE + "test_an_absent_or_blank_depth_is_not_said_rather_than_0",
            _DEPTH + "test_a_depth_below_the_limit_is_answered",
        ),
    ),
    Row(
        "tangle:depth:increment",
        "Every gateway and runtime adds one before it forwards.",
        "000 headers, forwarded-depth",
        (
            _CARNET + "test_a_hop_goes_one_deeper_in_the_same_run_under_no_larger_limit",
            _WIRE + "test_a_driver_tells_its_callee_one_more_than_it_was_told",
            _HOPS,
            _DRIVER + "test_what_a_driver_builds_is_recorded_as_it_meant_it",
        ),
    ),
    Row(
        "tangle:depth:refuse",
        "A recipient refuses a depth at or above its limit with 429 and bridge_depth_exceeded.",
        "000 headers, forwarded-depth",
        (
            _CARNET + "test_a_call_deeper_than_its_chain_may_go_is_refused",
            _DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
        ),
    ),
    Row(
        "tangle:depth:refuse-before-dialling",
        "A caller that knows the next hop would be refused does not make it.",
        "R2, A47",
        (
            _CARNET + "test_a_carnet_without_a_hop_left_cannot_be_extended",
            _TARGET + "test_a_call_at_the_last_depth_may_not_leave",
            _DEPTH + "test_the_final_hop_answers_but_does_not_call_on",
        ),
    ),
    Row(
        "tangle:depth:default",
        "The limit is 4 unless it is changed.",
        "000 headers, forwarded-depth",
        (
            _WIRE + "test_a_depth_is_exceeded_when_it_has_reached_the_limit",
            _LIMIT,
            _DRIVER + "test_a_driver_is_answered_below_the_public_limit_and_refused_at_it",
        ),
    ),
    Row(
        "tangle:depth:environment",
        "CLI_BRIDGE_MAX_DEPTH changes the limit.",
        "000 headers, forwarded-depth",
        (_DEPTH + "test_the_environment_has_the_last_word_on_the_limit",),
    ),
    Row(
        "tangle:depth:malformed",
        "A depth that is not one number in ASCII digits is refused and never read as 0.",
        "R3, A38 (the text is silent)",
        (
            _WIRE + "test_any_other_depth_is_refused_and_never_read_as_0",
            _WIRE + "test_a_depth_given_twice_is_refused",
            _DEPTH + "test_a_malformed_depth_is_refused_and_never_read_as_zero",
        ),
    ),
)

_IDS = (
    Row(
        "tangle:run:top-level",
        "x-tangle-runid names the run of the outermost conversation, in and out.",
        "000 headers, runid",
        (
            _WIRE + "test_the_chain_is_read_as_it_was_written",
            _HOPS,
        ),
    ),
    Row(
        "tangle:run:unchanged",
        "The run id passes through nested calls unchanged.",
        "000 headers, runid",
        (
            _CARNET + "test_a_hop_goes_one_deeper_in_the_same_run_under_no_larger_limit",
            _HOPS,
        ),
    ),
    Row(
        "tangle:run:correlate",
        "All hops can be found under one run.",
        "000 headers, runid",
        (
            _TWO + "test_a_call_crosses_two_gateways_and_both_ledgers_agree",
            _TWO + "test_run_show_prints_both_hops_for_people",
        ),
    ),
    Row(
        "tangle:turn:format",
        "x-tangle-turnid is run id, t and index, and slug of the speaker, joined by dots.",
        "000 headers, turnid",
        (
            _TURN_ID + "test_a_turn_id_names_run_index_and_speaker_and_repeats",
            _HOPS,
        ),
    ),
    Row(
        "tangle:turn:slug",
        "A slug is made of a name by one rule, and is never empty.",
        "reference system, section 1.2",
        (
            _TURN_ID + "test_a_name_becomes_a_slug",
            _TURN_ID + "test_a_slug_is_never_empty_and_holds_no_dot",
            _DRIVER + "test_what_a_driver_builds_is_recorded_as_it_meant_it",
        ),
    ),
    Row(
        "tangle:turn:deterministic",
        "The turn id of a call follows from where it stands.",
        "000 headers, turnid",
        (
            _CARNET + "test_where_we_named_the_run_calls_out_of_it_are_its_first_level",
            _HOPS,
        ),
    ),
    Row(
        "tangle:turn:stable",
        "A retry of the same logical turn has the same id.",
        "000 headers, turnid",
        (_REMOTE + "test_a_retry_repeats_the_turn_id",),
    ),
    Row(
        "tangle:turn:cache",
        "A gateway may take a repeated turn id for the same call and answer from its record.",
        "000 headers, turnid",
        (_IDEMPOTENCY + "test_a_repeated_turn_is_answered_byte_for_byte_and_not_billed_again",),
    ),
    Row(
        "tangle:parent:nested",
        "x-tangle-parent-turnid names the enclosing turn of a call made inside another turn.",
        "000 headers, parent-turnid",
        (
            _CARNET + "test_inside_another_turn_ids_are_scoped_and_name_their_parent",
            _WIRE + "test_the_callees_document_is_written_as_it_is",
            _HOPS,
        ),
    ),
    Row(
        "tangle:parent:stitching",
        "The parent joins the turns of a run into one tree.",
        "000 headers, parent-turnid",
        (_RUNS + "test_a_run_is_shown_as_a_tree_with_payer_and_cost",),
    ),
    Row(
        "tangle:parent:omitted",
        "At the top level there is no parent header.",
        "000 headers, parent-turnid",
        (
            _CARNET + "test_where_we_named_the_run_calls_out_of_it_are_its_first_level",
            _WIRE + "test_what_is_not_there_is_left_out_rather_than_written_empty",
            _HOPS,
        ),
    ),
    Row(
        "tangle:speaker:label",
        "x-tangle-speaker is the name of the participant in the conversation.",
        "000 headers, speaker",
        (
            _WIRE + "test_the_callees_document_is_written_as_it_is",
            _WIRE + "test_a_speaker_is_written_as_visible_ascii_that_every_reader_takes",
            _HOPS,
        ),
    ),
    Row(
        "tangle:speaker:cosmetic",
        "The speaker is for traces and dashboards only.",
        "000 headers, speaker",
        (
            _WIRE + "test_a_credential_or_a_label_alone_sets_no_limit_for_another_stamps_chain",
            _CHAT + "test_a_turn_records_run_turn_parent_and_speaker",
        ),
    ),
)

_INVARIANTS = (
    Row(
        "tangle:depth:monotonic",
        "A receiving runtime never lowers, resets or leaves out the depth of the calls it makes.",
        "000 invariant 1",
        (
            _CARNET + "test_a_hop_goes_one_deeper_in_the_same_run_under_no_larger_limit",
            _CARNET + "test_another_stamp_never_lowers_the_depth_and_never_raises_the_limit",
            _WIRE + "test_no_driver_can_lower_or_reset_the_depth",
            _WIRE + "test_a_depth_below_0_cannot_be_forwarded",
            _HOPS,
            "tests/security/signed/test_profile.py::test_a_hop_cannot_take_its_depth_back",
        ),
    ),
    Row(
        "tangle:depth:reset-by-others",
        "An intermediate that resets the depth breaks the bound for all behind it.",
        "000 invariant 1",
        (
            _CARNET + "test_an_explicit_depth_0_beside_a_depth_above_0_is_a_contradiction",
            "tests/security/signed/test_profile.py::test_a_hop_cannot_take_its_depth_back",
            _PLACES + "test_a_turn_that_is_sent_again_stands_where_it_stood",
            _PLACES + "test_a_turn_that_failed_does_not_run_again_from_another_depth",
        ),
    ),
    Row(
        "tangle:authorization:preserve",
        "A receiving runtime forwards the credential unchanged on every call it makes on behalf "
        "of the one who began.",
        "000 invariant 2",
        (
            _REMOTE + "test_a_forwarded_credential_leaves_byte_for_byte_to_a_listed_peer",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
        ),
        Divergence(
            "R5",
            "It leaves to listed peers alone: a user's key is not given to strangers. Where it "
            "may not leave the call is refused before any I/O, never sent without it.",
        ),
    ),
    Row(
        "tangle:authorization:listed-peers",
        "Toward a peer that is not listed the call is refused, with the command that lists it.",
        "R5",
        (
            _TARGET + "test_a_credential_leaves_to_listed_peers_alone",
            _TWO + "test_forwarding_to_a_peer_that_is_not_listed_is_refused_before_io",
        ),
    ),
    Row(
        "tangle:authorization:substitute",
        "Putting one's own credential in its place would bill the wrong party.",
        "000 invariant 2",
        (
            _PAYER + "test_below_the_origin_a_callers_own_token_is_never_forwarded",
            _PAYER + "test_a_forwarded_credential_of_ours_that_cannot_pay_is_never_replaced",
            _FORWARDING + "test_a_revoked_credential_is_refused_and_never_replaced",
        ),
    ),
    Row(
        "tangle:run:immutable",
        "What is called inside a run inherits its id and names no new one.",
        "000 invariant 3",
        (
            _CARNET + "test_a_hop_goes_one_deeper_in_the_same_run_under_no_larger_limit",
            _CHAT + "test_an_agent_calls_another_agent_in_process",
        ),
    ),
    Row(
        "tangle:run:conversation",
        "A nested conversation inherits the run of the turn it is called in.",
        "000 invariant 3",
        (
            _ADMISSION + "test_a_child_inherits_run_payer_and_rights_one_hop_deeper",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
            _CONVERSED + "test_a_nested_conversation_sends_its_run_its_parent_and_one_hop_more",
        ),
    ),
    Row(
        "tangle:turn:own-scope",
        "What is called inside a run has turn ids of its own, within a scope of its own.",
        "000 invariant 3",
        (
            _TURN_ID + "test_below_another_turn_the_id_is_scoped_by_the_key_of_its_parent",
            _TURN_ID + "test_a_recursive_fan_out_names_every_turn_differently",
            _CHAT + "test_two_calls_to_one_agent_in_a_turn_do_not_collide",
        ),
    ),
    Row(
        "tangle:idempotency:key",
        "A gateway may tell repeats by run id and turn id.",
        "000 invariant 4",
        (
            "tests/core/chain/test_turn.py::test_another_payer_caller_agent_run_turn_or_parent_is_another_call",
            _IDEMPOTENCY + "test_another_caller_with_the_same_ids_gets_its_own_turn",
            "tests/interop/test_tenants_abroad.py::test_a_real_carnet_answers_each_tenant_anew",
            _IDEMPOTENCY + "test_nested_turns_of_other_implementations_do_not_collide",
        ),
        Divergence(
            "R6",
            "By these two alone one caller could read another's answer, and nested turns collide. "
            "Payer, caller, agent and parent turn belong to the key.",
        ),
    ),
    Row(
        "tangle:idempotency:unchanged",
        "A gateway that tells repeats answers them unchanged.",
        "000 invariant 4",
        (
            _IDEMPOTENCY + "test_a_repeated_turn_is_answered_byte_for_byte_and_not_billed_again",
            _IDEMPOTENCY + "test_a_repeated_stream_is_the_same_bytes",
        ),
    ),
    Row(
        "tangle:idempotency:cost",
        "Where repeats are not told, each of them costs; here a repeat is not billed again.",
        "000 invariant 4",
        (_IDEMPOTENCY + "test_a_repeated_turn_is_answered_byte_for_byte_and_not_billed_again",),
    ),
    Row(
        "tangle:refusal:status",
        "A refusal by depth is 429 with the code bridge_depth_exceeded in its body.",
        "000 invariant 5",
        (
            _ERRORS + "test_a_refusal_by_depth_names_both_numbers_and_is_final",
            _REFUSALS + "test_a_chain_that_is_too_deep_is_told_as_the_interface_prints_it",
            _LIMIT,
        ),
    ),
    Row(
        "tangle:refusal:message",
        "Its message tells the depth that arrived and the limit.",
        "000 invariant 5",
        (
            _ERRORS + "test_a_refusal_by_depth_names_both_numbers_and_is_final",
            _LIMIT,
        ),
    ),
    Row(
        "tangle:refusal:route-around",
        "The caller can tell it from a rate limit and act on it; it is not sent again.",
        "000 invariant 5",
        (
            _REFUSALS + "test_a_chain_that_is_too_deep_never_says_when_to_try_again",
            _REFUSALS + "test_a_chain_too_deep_for_the_peer_is_ours_too_and_terminal",
            _REMOTE + "test_a_depth_refusal_is_final_and_never_retried",
        ),
    ),
)

_WORKED_EXAMPLE = (
    Row(
        "tangle:example:front-door",
        "The user posts a chat completion for bridge/sandbox/researcher with a bearer, at depth 0.",
        "000 worked example, step 1",
        (
            _CHAT + "test_a_model_path_resolves_to_its_last_segment",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
        ),
    ),
    Row(
        "tangle:authorization:origin",
        "The front makes the user's own bearer the forwarded credential.",
        "000 worked example, step 2",
        (
            _PAYER + "test_a_forwardable_token_is_forwarded_from_the_origin_byte_for_byte",
            _PAYER + "test_a_token_that_is_not_forwardable_stays_here",
            _HOPS,
        ),
    ),
    Row(
        "tangle:example:researcher",
        "The researcher elsewhere is called at depth 1 with the user's credential, the run and "
        "the turn conv_abc.t0.researcher.",
        "000 worked example, step 2",
        (_EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",),
    ),
    Row(
        "tangle:example:inbound-depth",
        "The researcher runs a conversation with the critic and hands on the depth it was called "
        "at.",
        "000 worked example, step 3",
        (
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
            _CONVERSED + "test_the_worked_example_in_a_program_without_a_gateway",
        ),
    ),
    Row(
        "tangle:example:critic",
        "The critic elsewhere is called at depth 2, in the same run, with the user's credential.",
        "000 worked example, step 4",
        (_EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",),
    ),
    Row(
        "tangle:example:nested-turn",
        "The critic's turn is conv_abc.t0.critic.",
        "000 worked example, step 4",
        (
            _TURN_ID + "test_below_another_turn_the_id_is_scoped_by_the_key_of_its_parent",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
        ),
        _SCOPED,
    ),
    Row(
        "tangle:example:parent",
        "The critic's parent turn is the researcher's.",
        "000 worked example, step 4",
        (_EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",),
    ),
    Row(
        "tangle:example:stop",
        "At depth 4 a gateway refuses with 413 and the chain stops.",
        "000 worked example, end",
        (_EXAMPLE + "test_a_chain_is_answered_at_depth_three_and_refused_at_four",),
        _TOO_LARGE,
    ),
    Row(
        "tangle:example:bill",
        "The user is billed for the hops that ran and no more.",
        "000 worked example, end",
        (_EXAMPLE + "test_a_chain_is_answered_at_depth_three_and_refused_at_four",),
    ),
    Row(
        "tangle:example:refusal-point",
        "The trace shows where the chain was refused.",
        "000 worked example, end",
        (
            _DEPTH + "test_a_chain_in_process_stops_at_the_limit_and_shows_where",
            _EXAMPLE + "test_a_chain_is_answered_at_depth_three_and_refused_at_four",
        ),
    ),
)

_ENDPOINT = (
    Row(
        "tangle:endpoint:depth",
        "An endpoint reads the depth, 0 if there is none.",
        "000 endpoint contract",
        (_DEPTH + "test_a_depth_below_the_limit_is_answered",),
    ),
    Row(
        "tangle:endpoint:refuse",
        "It refuses with 413 at or above the limit.",
        "000 endpoint contract",
        (_DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",),
        _TOO_LARGE,
    ),
    Row(
        "tangle:endpoint:honour-authorization",
        "A forwarded credential is the identity that is billed, in place of the direct caller's.",
        "000 endpoint contract",
        (
            _PAYER + "test_a_forwarded_credential_of_ours_pays_from_its_own_account",
            _FORWARDING + "test_a_forwarded_credential_of_ours_is_the_effective_payer",
            _FORWARDING + "test_a_listed_caller_bills_the_account_it_vouches_for",
        ),
    ),
    Row(
        "tangle:endpoint:listed",
        "Only where the direct caller is listed as an inter-agent caller.",
        "000 endpoint contract",
        (
            _PAYER + "test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody",
            _FORWARDING
            + "test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody",
        ),
    ),
    Row(
        "tangle:endpoint:records",
        "Run, turn and parent turn should be in its own records.",
        "000 endpoint contract",
        (_CHAT + "test_a_turn_records_run_turn_parent_and_speaker",),
    ),
    Row(
        "tangle:endpoint:idempotency",
        "It may use run and turn to answer a retry from its record.",
        "000 endpoint contract",
        (
            _IDEMPOTENCY + "test_a_repeated_turn_is_answered_byte_for_byte_and_not_billed_again",
            _IDEMPOTENCY + "test_copies_of_a_running_turn_attach_to_one_execution",
        ),
    ),
)

_CONSUMER = (
    Row(
        "tangle:consumer:inbound-context",
        "A driver hands headers, depth and parent turn of its own request to the conversation.",
        "000 runtime consumer contract",
        (
            _ADMISSION + "test_a_child_inherits_run_payer_and_rights_one_hop_deeper",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
            _CONVERSED + "test_the_worked_example_in_a_program_without_a_gateway",
            _DRIVER + "test_a_conversation_over_a_gateway_is_recorded_there_turn_by_turn",
        ),
    ),
    Row(
        "tangle:consumer:emit",
        "The runtime sends the forward headers with every call without being asked.",
        "000 runtime consumer contract",
        (_REMOTE + "test_a_call_out_carries_all_six_headers",),
    ),
    Row(
        "tangle:consumer:merge",
        "A backend that speaks HTTP adds them to its own request.",
        "000 runtime consumer contract",
        (
            _REMOTE + "test_every_outbound_agent_call_carries_depth_run_turn_parent_and_speaker",
            _REMOTE + "test_a_call_to_a_model_provider_carries_no_chain_header",
            _HOPS,
        ),
        Divergence(
            "R5",
            "Gateways and agents elsewhere get them. A model behind an OpenAI-compatible endpoint "
            "is no hop: neither its chain nor anybody's credential is the provider's business.",
        ),
    ),
)

_REFERENCE = (
    Row(
        "tangle:reference:headers",
        "A builder of the headers, a reader of the depth and the default limit are offered to "
        "drivers as public names.",
        "000 reference",
        (
            _WIRE + "test_a_driver_tells_its_callee_one_more_than_it_was_told",
            _WIRE + "test_a_depth_that_is_not_one_number_is_refused",
            _DRIVER + "test_what_a_driver_builds_is_recorded_as_it_meant_it",
            _DRIVER + "test_a_driver_is_answered_below_the_public_limit_and_refused_at_it",
        ),
    ),
    Row(
        "tangle:reference:names",
        "So are the names of the six headers.",
        "000 reference",
        (_CONVERSED + "test_a_participant_elsewhere_is_sent_the_six_headers",),
    ),
    Row(
        "tangle:reference:call-policy",
        "Deadline, retry and circuit breaker are offered to drivers.",
        "000 reference",
        (
            _CONVERSED + "test_a_retry_repeats_the_turn_id_and_a_refusal_by_depth_is_final",
            _POLICY + "test_a_call_of_ones_own_is_repeated_and_gives_what_it_gives",
            _POLICY + "test_a_deadline_holds_against_a_call_that_ignores_it",
            _POLICY + "test_a_breaker_opens_is_half_open_after_its_time_and_closes",
        ),
    ),
    Row(
        "tangle:reference:journal",
        "A transcript survives a driver's crash with every acknowledged turn.",
        "000 reference",
        (
            _KILLED + "test_a_driver_survives_a_kill_at_every",
            _KILLED + "test_a_driver_survives_kills_in_a_row",
        ),
    ),
    Row(
        "tangle:reference:turn-id",
        "The turn id is a function of run, index and speaker, and drivers have it.",
        "000 reference",
        (
            _TURN_ID + "test_a_turn_id_names_run_index_and_speaker_and_repeats",
            _DRIVER + "test_what_a_driver_builds_is_recorded_as_it_meant_it",
            _DRIVER + "test_the_turn_id_of_a_driver_makes_a_retry_the_same_call",
        ),
    ),
    Row(
        "tangle:reference:gateway",
        "Enforcement of what arrives is offered as a gateway.",
        "000 reference",
        (_LIMIT, _DIRECT + _BOUNDED),
    ),
)

_STATUS = (
    Row(
        "tangle:status:runtime",
        "All six headers on every call out, the credential unchanged.",
        "000 implementation status",
        (_REMOTE + "test_a_call_out_carries_all_six_headers",),
    ),
    Row(
        "tangle:status:router",
        "The dispatcher reads the depth, refuses with 429, and sends depth and credential on.",
        "000 implementation status",
        (
            _DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
            _TARGET + "test_a_call_that_leaves_gets_the_carnet_of_the_next_hop",
            _EXAMPLE + "test_every_header_of_every_hop_is_as_the_example_says",
        ),
    ),
    Row(
        "tangle:status:bridge",
        "A bridge hands the forwarded credential to the backend that it calls.",
        "000 implementation status",
        (_REMOTE + "test_a_forwarded_credential_leaves_byte_for_byte_to_a_listed_peer",),
    ),
    Row(
        "tangle:status:gateway",
        "A gateway reads the forwarded headers, refuses by depth and bills the forwarded identity "
        "(there it was still to be built).",
        "000 implementation status",
        (
            _WIRE + "test_all_six_headers_are_read",
            _DEPTH + "test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",
            _FORWARDING + "test_a_forwarded_credential_of_ours_is_the_effective_payer",
        ),
    ),
    Row(
        "tangle:status:direct-calls",
        "A direct call between two gateways is bounded as well (there it was not).",
        "000 implementation status",
        (
            _DIRECT + _BOUNDED,
            _DIRECT + "test_a_direct_call_below_the_limit_is_answered",
            _EXAMPLE + "test_a_chain_is_answered_at_depth_three_and_refused_at_four",
        ),
    ),
    Row(
        "tangle:status:in-process",
        "So are calls between agents of one gateway.",
        "000 implementation status",
        (_DEPTH + "test_a_chain_in_process_stops_at_the_limit_and_shows_where",),
    ),
)

_VERSION = (
    Row(
        "tangle:version:implicit",
        "The protocol is version 0 and there is no version header.",
        "000 versioning",
        (
            _WIRE + "test_no_version_header_is_written",
            _HOPS,
        ),
    ),
    Row(
        "tangle:version:unsupported",
        "A breaking change becomes version 1 and says so in x-tangle-protocol-version.",
        "000 versioning, R24",
        (
            _WIRE + "test_a_version_other_than_0_is_refused",
            _WIRE + "test_version_0_may_be_said_and_says_nothing_more",
            _DEPTH + "test_another_protocol_version_is_refused",
        ),
    ),
    Row(
        "tangle:version:additive",
        "Added headers need no new version.",
        "000 versioning",
        (
            _WIRE + "test_headers_that_a_later_version_adds_are_ignored",
            _DEPTH + "test_another_protocol_version_is_refused",
        ),
    ),
)

ROWS = (
    *_STACK,
    *_NAMES,
    *_AUTHORIZATION,
    *_DEPTH_ROWS,
    *_IDS,
    *_INVARIANTS,
    *_WORKED_EXAMPLE,
    *_ENDPOINT,
    *_CONSUMER,
    *_REFERENCE,
    *_STATUS,
    *_VERSION,
)
