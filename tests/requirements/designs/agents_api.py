"""The caller context of agents-api: what seed 001 asks for."""

from tests.requirements.rows import Divergence, Row

_WIRE = "tests/wire/stamps/test_caller_context.py::"
_DEPTH = "tests/gateway/endpoint/test_depth.py::"
_ASKED = "tests/gateway/endpoint/test_caller_context.py::"

_CONTEXTS = "tests/security/contexts/test_contexts.py::"
_HOSTS = "tests/security/contexts/test_hosts.py::"
_BUDGET = "tests/security/contexts/test_budget.py::"
_PRINCIPALS = "tests/security/contexts/test_principals.py::"
_POLICY = "tests/security/contexts/test_policy.py::"
_APART = "tests/security/contexts/test_policy_apart.py::"
_REVOKED = "tests/replicas/trust/test_revocation.py::"
_OUTWARD = "tests/interop/agents_api/test_budget.py::"
_CERTIFICATES = "tests/security/contexts/test_certificates.py::"

_SEEN = _CONTEXTS + "test_an_agent_is_told_who_calls_from_where_how_deep_and_under_which_request"
_TOP = _CONTEXTS + "test_without_headers_a_call_is_at_the_top_of_a_chain_of_its_own"
_THROUGH = _CONTEXTS + "test_the_context_stays_with_the_principal_of_what_is_called_for_it"
_UNUSED = _CONTEXTS + "test_malformed_headers_beside_a_live_token_run_nothing_and_do_not_use_it"
_ROOT = Divergence(
    "R34",
    "A root that anybody can write would join anybody's run. One that is only claimed is kept, "
    "shown and compared with other stamps; it is the run of the call where the host that names "
    "it is verified.",
)

ROWS = (
    Row(
        "agents-api:context:recover",
        "The called host can tell that an agent called, which one, how deep, and under which "
        "originating request.",
        "001 problem; W02",
        (
            _WIRE + "test_a_valid_chain_is_recorded_whole",
            _SEEN,
            _CONTEXTS + "test_people_are_shown_agent_host_and_that_it_is_a_claim",
        ),
    ),
    Row(
        "agents-api:context:fields",
        "The value has six fields: agent, user, host, depth, root and metadata; it is read only.",
        "001 proposed shape; W23",
        (
            _WIRE + "test_a_context_is_read_from_the_fields_it_was_written_to",
            _WIRE + "test_a_context_nobody_can_mean_is_refused_by_its_first_fault",
            _SEEN,
        ),
    ),
    Row(
        "agents-api:context:top",
        "No agent, user 0, host self and depth 0 are the top of a chain.",
        "001 proposed shape; W01",
        (
            _WIRE + "test_without_headers_a_call_is_at_the_top_of_a_chain",
            _WIRE + "test_nobody_may_be_named_at_the_top",
            _ASKED + "test_without_a_depth_a_call_is_at_the_top_of_its_chain",
            _ASKED + "test_nobody_may_be_named_at_the_top",
            _TOP,
        ),
    ),
    Row(
        "agents-api:context:host",
        "The host is self or the absolute URL of a remote host.",
        "001 proposed shape; W07, W20",
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
            _HOSTS + "test_a_verified_host_joins_a_run_by_its_root_and_grows_it",
            _CONTEXTS + "test_a_claimed_root_is_kept_and_joins_no_run",
        ),
        _ROOT,
    ),
    Row(
        "agents-api:context:metadata",
        "Metadata belongs to the host.",
        "001 proposed shape",
        (
            _WIRE + "test_metadata_never_travels",
            _SEEN,
            _HOSTS + "test_a_host_that_shows_its_key_is_verified_and_shown_so",
        ),
    ),
    Row(
        "agents-api:context:cross-site",
        "A context is cross-site when its host is not self.",
        "001 proposed shape",
        (
            _WIRE + "test_a_valid_chain_is_recorded_whole",
            _WIRE + "test_without_headers_a_call_is_at_the_top_of_a_chain",
            _SEEN,
            _TOP,
        ),
    ),
    Row(
        "agents-api:resolution:beside-token",
        "The context is read where the token is resolved, and both belong to the principal.",
        "001 proposed shape",
        (
            _PRINCIPALS + "test_a_token_of_nobody_acts_as_a_service_and_owns_what_it_says",
            _UNUSED,
        ),
    ),
    Row(
        "agents-api:headers:names",
        "Five headers with fixed names carry it.",
        "001 header naming; W22",
        (
            _WIRE + "test_the_headers_are_text_in_their_documented_case",
            _ASKED + "test_the_five_headers_place_a_call_in_its_chain",
        ),
    ),
    Row(
        "agents-api:headers:fail-closed",
        "Malformed headers are refused.",
        "001 acceptance criteria; W04, W05, W17",
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
        "reference system, trap 1; W16",
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
        (
            _CONTEXTS + "test_a_claimed_root_is_kept_and_joins_no_run",
            _HOSTS + "test_a_host_that_shows_its_key_is_verified_and_shown_so",
            _HOSTS + "test_a_key_that_is_wrong_another_hosts_or_of_nobody_is_refused_alike",
            _HOSTS + "test_a_certificate_that_a_trusted_proxy_tells_verifies_its_host",
            _HOSTS + "test_no_right_follows_from_what_is_verified",
        ),
    ),
    Row(
        "agents-api:depth:limit",
        "The depth bounds loops: a call deeper than the limit is refused.",
        "001 loop and depth limits; W10",
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
        "001 composition with IterationBudget; W37",
        (
            "tests/core/money/test_budget.py::test_chain_depth_is_a_dimension_like_any_other",
            _BUDGET + "test_a_call_at_the_ceiling_of_an_agent_is_refused_and_told_all_of_it",
            _BUDGET + "test_a_token_has_a_budget_of_its_own_for_all_that_is_called_with_it",
        ),
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
        (
            _PRINCIPALS + "test_a_token_of_nobody_acts_as_a_service_and_owns_what_it_says",
            _CONTEXTS + "test_a_token_is_used_when_its_headers_parse",
        ),
    ),
    Row(
        "agents-api:acceptance:principal",
        "The context stays with the principal through the run, for policies to look at.",
        "001 acceptance criteria",
        (
            _THROUGH,
            _POLICY + "test_it_is_told_who_acts_who_claims_to_call_and_what_is_to_be_done",
            _POLICY + "test_it_may_deny_by_what_the_caller_claims",
        ),
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
        (
            "tests/docs/first/test_callers_page.py::test_the_page_says_whose_business_trust_is_and_its_commands_work",
            _HOSTS + "test_a_host_without_its_key_is_claimed_whatever_is_listed",
        ),
    ),
    Row(
        "agents-api:facts:parsing",
        "Names are read in any case; a root alone or user 0 is the top; a user alone, signs, "
        "points and other scripts in numbers, an absent or blank agent, host or root below the "
        "top, and a host that is no plain absolute URL are refused.",
        "reference system; W08, W11, W13, W14, W19",
        (
            _CONTEXTS + "test_the_names_of_the_headers_are_read_whatever_their_case",
            _CONTEXTS + "test_only_a_root_is_the_top_of_a_chain_with_that_root",
            _CONTEXTS + "test_a_user_alone_is_refused_unless_it_is_nobody",
            _UNUSED,
        ),
    ),
    Row(
        "agents-api:facts:first-of-a-list",
        "Of a header that is given several times the first one counts.",
        "reference system, header source",
        (_ASKED + "test_a_header_that_is_given_twice_is_refused",),
        Divergence(
            "R3",
            "Two parsers would choose differently which one counts; a header that tells the chain "
            "and is given twice is malformed.",
        ),
    ),
    Row(
        "agents-api:token:touched-last",
        "A token counts as used only when the headers beside it were read; malformed ones leave it "
        "untouched, also beside other valid stamps.",
        "reference system, token authenticator; W25, W26, U13",
        (_UNUSED, _CONTEXTS + "test_a_token_is_used_when_its_headers_parse"),
        Divergence(
            "R3",
            "There every failure is the same nothing, 401. What is malformed here is told as such "
            "(400); who is not known is told nothing.",
        ),
    ),
    Row(
        "agents-api:token:no-oracle",
        "Tokens that are unknown, ended or expired are refused alike.",
        "reference system, token authenticator; W28",
        (_CONTEXTS + "test_a_token_that_has_ended_is_unknown_whatever_stands_beside_it",),
    ),
    Row(
        "agents-api:token:record",
        "A token has a prefix, an owner, an expiry, allowed capabilities, a client and a "
        "workspace; its export omits the hash.",
        "reference system, token record",
        (_PRINCIPALS + "test_what_a_token_was_made_with_is_shown_and_its_text_is_not",),
    ),
    Row(
        "agents-api:token:revoke-all",
        "Tokens are ended singly, or all of an agent; here also of a person and of a client.",
        "reference system, token store",
        (
            _PRINCIPALS + "test_all_tokens_of_an_agent_a_client_or_a_person_are_ended_at_once",
            _REVOKED + "test_tokens_end_on_every_gateway_and_what_runs_by_them_too",
        ),
    ),
    Row(
        "agents-api:principal:fields",
        "A principal is immutable and has the acting user, the effective agent, the source of its "
        "authentication, the request context, token, workspace, client, ceiling, caller context.",
        "reference system, execution principal",
        (
            _PRINCIPALS + "test_a_token_of_nobody_acts_as_a_service_and_owns_what_it_says",
            _PRINCIPALS + "test_a_persons_token_acts_for_her_and_she_owns_it",
            _THROUGH,
        ),
        Divergence(
            "R25",
            "Sources are user, agent_token, service, peer and system: there are no application "
            "passwords and no audiences here, and whoever signs is a peer.",
        ),
    ),
    Row(
        "agents-api:principal:validated",
        "A principal with a user below 0, no agent, an unknown source, token 0 or metadata that is "
        "no JSON is refused by the field; a host may register sources.",
        "reference system, execution principal; W34",
        divergence=Divergence(
            "R25",
            "Nobody outside makes a principal: it is made of what the guards have proved, its "
            "sources are a closed list, and what a caller says of itself is judged before.",
        ),
    ),
    Row(
        "agents-api:access:roles",
        "A grant for an agent has a role, viewer, operator or admin, and holds for what asks for "
        "that role or a lower one.",
        "reference system, agent access; W32",
        (_PRINCIPALS + "test_a_ceiling_gives_nothing_that_was_not_granted",),
        Divergence(
            "R28",
            "Who may call an agent holds call:NAME, or does not. Roles of people are sets of such "
            "permissions, and each holds the one before it.",
        ),
    ),
    Row(
        "agents-api:principal:safe",
        "What a log may hold of a principal has neither token, nor owner's key, nor ceiling.",
        "reference system, execution principal",
        (
            _PRINCIPALS + "test_a_token_of_nobody_acts_as_a_service_and_owns_what_it_says",
            _POLICY + "test_why_it_denied_is_in_the_log_without_a_token_or_an_owners_key",
        ),
    ),
    Row(
        "agents-api:principal:owner",
        "A conversation is its user's, unless an agent's token speaks: then it is the token's.",
        "reference system, conversation owner; W35",
        (
            _PRINCIPALS + "test_a_persons_token_acts_for_her_and_she_owns_it",
            _PRINCIPALS
            + "test_a_token_that_stands_for_an_agent_owns_by_the_token_also_of_a_person",
        ),
    ),
    Row(
        "agents-api:ceiling:deny-wins",
        "A ceiling bounds what may be used, deny wins, and it grants nothing.",
        "reference system, capability ceiling; W29",
        (
            _PRINCIPALS + "test_a_ceiling_bounds_what_a_token_may_do_and_deny_wins",
            _PRINCIPALS + "test_a_ceiling_gives_nothing_that_was_not_granted",
            _PRINCIPALS + "test_the_ceiling_holds_for_what_is_called_for_the_token",
            _PRINCIPALS + "test_the_ceiling_holds_for_pages_too",
        ),
    ),
    Row(
        "agents-api:ceiling:safe-default",
        "An autonomous principal without an explicit ceiling is denied what changes things.",
        "reference system, capability ceiling; W31",
        (
            _PRINCIPALS + "test_an_autonomous_token_may_not_pay_unless_somebody_wrote_that_down",
            _PRINCIPALS + "test_what_a_token_was_made_with_is_shown_and_its_text_is_not",
        ),
        Divergence(
            "R28",
            "There the list is 27 capabilities of WordPress, for every token. Here it is pay, "
            "approve, admin:*, tool:*, memory:write and triggers, for tokens that stand for an "
            "agent (--agent) and for no person; a plain token has the permissions that "
            "were written out when it was made.",
        ),
    ),
    Row(
        "agents-api:depth:reference-host",
        "Its host refuses at the depth of its budget with 429, and tells depth, ceiling and root.",
        "reference system, data-machine; W38",
        (
            _BUDGET + "test_a_call_at_the_ceiling_of_an_agent_is_refused_and_told_all_of_it",
            _BUDGET + "test_a_call_below_it_is_answered",
        ),
        Divergence(
            "R1",
            "There the budget is 3 by default and says to come back in a minute. A chain that is "
            "too deep is so for good, so no Retry-After is sent; no budget holds unless it is set.",
        ),
    ),
    Row(
        "agents-api:depth:outward",
        "A chain that leaves in this dialect may be as deep as the dialect says, 16 by default; "
        "a budget of its agent or token holds there, also one above Tangle's limit, and raises "
        "none.",
        "rulings R2 and R4",
        (
            _OUTWARD + "test_without_a_budget_its_chains_are_as_deep_as_the_dialect_says",
            _OUTWARD + "test_a_budget_of_the_token_above_tangles_default_holds_there",
            _OUTWARD + "test_a_budget_of_the_agent_above_it_holds_there",
            _OUTWARD + "test_one_above_the_default_of_the_dialect_raises_nothing",
            _OUTWARD + "test_the_lower_of_two_budgets_holds",
            _OUTWARD + "test_a_chain_that_came_in_this_dialect_is_held_to_it_too",
        ),
    ),
    Row(
        "agents-api:depth:bound-shown",
        "A depth is shown, and refused, by the limit that bound it and its stamp.",
        "ruling R36",
        (
            _CONTEXTS + "test_the_depth_is_shown_against_the_limit_that_bound_it",
            _CONTEXTS + "test_a_depth_over_the_limit_is_refused_by_the_limit_and_its_stamp",
        ),
    ),
    Row(
        "agents-api:trust:registry",
        "Hosts are listed with a pre-shared key, kept as a hash, rotated with an overlap, and "
        "ended; or with the certificate that a trusted proxy tells.",
        "rulings R33 and R34",
        (
            _HOSTS + "test_a_host_of_the_file_is_believed_by_the_key_there",
            _HOSTS + "test_a_rotated_key_holds_beside_the_one_before_until_that_ends",
            _HOSTS + "test_a_host_that_was_ended_is_claimed_again_and_its_key_opens_nothing",
            _HOSTS + "test_a_key_is_shown_once_and_is_in_no_log_list_page_or_file",
            _HOSTS + "test_calls_of_a_verified_host_count_in_one_rate_whichever_token_it_shows",
            _REVOKED + "test_the_key_of_a_host_is_rotated_and_ended_on_every_gateway",
        ),
    ),
    Row(
        "agents-api:trust:certificate",
        "A host, or a peer, may be known by its client certificate: mutual TLS ends at a proxy, "
        "whose address alone is believed about it. What anybody else writes in that header is "
        "nothing.",
        "001 trust model; ruling R33",
        (
            _CERTIFICATES + "test_a_host_is_verified_by_the_certificate_that_it_shows",
            _CERTIFICATES + "test_the_certificate_of_another_verifies_no_host",
            _CERTIFICATES + "test_what_a_caller_writes_in_its_own_header_does_not_pass_the_proxy",
            _CERTIFICATES + "test_a_peer_is_known_by_its_certificate_alone",
            _CERTIFICATES + "test_a_certificate_that_is_no_peers_is_nobody",
            _CERTIFICATES + "test_a_header_from_an_address_that_is_no_proxys_verifies_nobody",
        ),
    ),
    Row(
        "agents-api:policy:adapter",
        "A policy adapter may consult principal and context before a call and before a tool; it "
        "can only deny, and fails closed.",
        "001 acceptance criteria",
        (
            _POLICY + "test_what_it_denies_is_refused_and_runs_nothing",
            _POLICY + "test_one_that_fails_has_denied_and_its_words_are_the_operators",
            _POLICY + "test_one_that_is_late_has_denied_and_holds_up_nobody",
            _POLICY + "test_it_grants_nothing_that_the_guards_refuse",
            _POLICY + "test_it_is_asked_before_each_tool_and_what_it_denies_is_not_run",
            _APART + "test_it_is_asked_before_each_tool_with_all_that_the_gateway_knows",
            _APART + "test_it_is_asked_for_who_asks_the_loop_directly",
        ),
    ),
)
