"""The caller context of agents-api: what seed 001 asks for."""

from tests.requirements.rows import Divergence, Row

_WIRE = "tests/wire/stamps/test_caller_context.py::"
_DEPTH = "tests/gateway/endpoint/test_depth.py::"
_ASKED = "tests/gateway/endpoint/test_caller_context.py::"

_PRINCIPAL = "execution principals"
_KEPT = "keeping the context with the call: today depth and root count, and the rest is let go"
_BUDGETS = "budgets of a run that count the chain; the value is public, no request reads one"
_DOCS = "the dialect's page in the docs"

ROWS = (
    Row(
        "agents-api:context:recover",
        "The called host can tell that an agent called, which one, how deep, and under which "
        "originating request.",
        "001 problem",
        (_WIRE + "test_a_valid_chain_is_recorded_whole",),
        due=_KEPT,
    ),
    Row(
        "agents-api:context:fields",
        "The value has six fields: agent, user, host, depth, root and metadata; it is read only.",
        "001 proposed shape",
        (
            _WIRE + "test_a_context_is_read_from_the_fields_it_was_written_to",
            _WIRE + "test_a_context_nobody_can_mean_is_refused_by_its_first_fault",
        ),
        due=_KEPT,
    ),
    Row(
        "agents-api:context:top",
        "No agent, user 0, host self and depth 0 are the top of a chain.",
        "001 proposed shape",
        (
            _WIRE + "test_without_headers_a_call_is_at_the_top_of_a_chain",
            _WIRE + "test_nobody_may_be_named_at_the_top",
            _ASKED + "test_without_a_depth_a_call_is_at_the_top_of_its_chain",
            _ASKED + "test_nobody_may_be_named_at_the_top",
        ),
    ),
    Row(
        "agents-api:context:host",
        "The host is self or the absolute URL of a remote host.",
        "001 proposed shape",
        (
            _WIRE + "test_a_host_that_is_no_absolute_url_is_refused",
            _WIRE + "test_a_host_may_have_a_port_and_a_path",
            _ASKED + "test_a_host_that_is_no_absolute_url_is_refused",
            _ASKED + "test_a_host_may_have_a_port_and_a_path",
        ),
    ),
    Row(
        "agents-api:context:root",
        "The root names the originating request and stays the same.",
        "001 proposed shape",
        (
            _WIRE + "test_only_a_root_is_the_top_of_a_chain_with_that_root",
            _WIRE + "test_a_chain_is_read_as_it_was_written",
            _ASKED + "test_the_root_is_the_run_of_the_call_and_of_what_it_calls",
        ),
    ),
    Row(
        "agents-api:context:metadata",
        "Metadata belongs to the host.",
        "001 proposed shape",
        (_WIRE + "test_metadata_never_travels",),
        due=_KEPT,
    ),
    Row(
        "agents-api:context:cross-site",
        "A context is cross-site when its host is not self.",
        "001 proposed shape",
        (
            _WIRE + "test_a_valid_chain_is_recorded_whole",
            _WIRE + "test_without_headers_a_call_is_at_the_top_of_a_chain",
        ),
        due=_KEPT,
    ),
    Row(
        "agents-api:resolution:beside-token",
        "The context is read where the token is resolved, and both belong to the principal.",
        "001 proposed shape",
        due=_PRINCIPAL,
    ),
    Row(
        "agents-api:headers:names",
        "Five headers with fixed names carry it.",
        "001 header naming",
        (
            _WIRE + "test_the_headers_are_text_in_their_documented_case",
            _ASKED + "test_the_five_headers_place_a_call_in_its_chain",
        ),
    ),
    Row(
        "agents-api:headers:fail-closed",
        "Malformed headers are refused.",
        "001 acceptance criteria",
        (
            _WIRE + "test_a_depth_that_is_not_ascii_digits_is_refused",
            _WIRE + "test_a_user_that_is_not_a_whole_number_is_refused_and_never_rounded",
            _WIRE + "test_below_the_top_agent_host_and_root_must_be_named",
            _WIRE + "test_values_are_bounded_visible_ascii",
            _WIRE + "test_a_repeated_header_is_refused",
            _ASKED + "test_a_header_that_is_not_in_its_form_is_refused",
            _ASKED + "test_a_header_that_is_given_twice_is_refused",
            _ASKED + "test_below_the_top_agent_host_and_root_must_be_named",
        ),
    ),
    Row(
        "agents-api:headers:top-round-trip",
        "What the top of a chain writes can be read back.",
        "reference system, trap 1",
        (
            _WIRE + "test_the_headers_of_the_top_can_be_fed_back",
            _WIRE + "test_at_depth_0_nothing_is_written",
            _ASKED + "test_what_the_top_writes_is_read_as_the_top",
        ),
    ),
    Row(
        "agents-api:trust:claims",
        "The headers are claims; a host verifies that it trusts the calling host before it "
        "honours the chain.",
        "001 trust model",
        due=_PRINCIPAL,
    ),
    Row(
        "agents-api:depth:limit",
        "The depth bounds loops: a call deeper than the limit is refused.",
        "001 loop and depth limits",
        (
            _WIRE + "test_the_sixteenth_hop_is_taken_and_the_seventeenth_is_not",
            _WIRE + "test_on_our_wire_a_chain_too_deep_is_well_formed_and_left_to_the_chain_guard",
            _DEPTH + "test_agents_api_depth_sixteen_is_answered_and_seventeen_is_not",
        ),
        Divergence(
            "R4",
            "There a depth over the limit fails as if nobody had called (401). It says nothing "
            "about who calls, so here it is 429 like every other chain that is too deep.",
        ),
    ),
    Row(
        "agents-api:depth:default",
        "The limit is 16 unless it is changed.",
        "001 loop and depth limits",
        (
            _WIRE + "test_the_sixteenth_hop_is_taken_and_the_seventeenth_is_not",
            _DEPTH + "test_agents_api_depth_sixteen_is_answered_and_seventeen_is_not",
        ),
    ),
    Row(
        "agents-api:depth:budget",
        "The chain depth can be counted as a dimension of the iteration budget.",
        "001 composition with IterationBudget",
        ("tests/core/money/test_budget.py::test_chain_depth_is_a_dimension_like_any_other",),
        due=_BUDGETS,
    ),
    Row(
        "agents-api:acceptance:value-and-headers",
        "The value and the convention for its headers are public.",
        "001 acceptance criteria",
        (
            _WIRE + "test_a_chain_is_read_as_it_was_written",
            _ASKED + "test_what_the_public_value_writes_is_read_by_a_gateway",
        ),
    ),
    Row(
        "agents-api:acceptance:authenticator",
        "Resolving a token can fill in the context.",
        "001 acceptance criteria",
        due=_PRINCIPAL,
    ),
    Row(
        "agents-api:acceptance:principal",
        "The context stays with the principal through the run, for policies to look at.",
        "001 acceptance criteria",
        due=_PRINCIPAL,
    ),
    Row(
        "agents-api:acceptance:tests",
        "Tests cover: no headers, a valid chain, the limit, malformed headers.",
        "001 acceptance criteria",
        (
            _ASKED + "test_without_a_depth_a_call_is_at_the_top_of_its_chain",
            _ASKED + "test_the_five_headers_place_a_call_in_its_chain",
            _DEPTH + "test_agents_api_depth_sixteen_is_answered_and_seventeen_is_not",
            _ASKED + "test_a_header_that_is_not_in_its_form_is_refused",
        ),
    ),
    Row(
        "agents-api:acceptance:trust-documented",
        "That trust is the host's business is written down, with the pattern we recommend.",
        "001 acceptance criteria",
        due=_DOCS,
    ),
)
