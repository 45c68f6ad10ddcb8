"""Mentionable: by what a caller is known, what others vouch for, and who may call and pays."""

from tests.requirements.rows import Divergence, Row

_WIRE = "tests/wire/identity/test_credential.py::"
_CREDENTIALS = "tests/interop/identity/test_credentials.py::"
_EVIDENCE = "tests/interop/identity/test_evidence.py::"
_OUT = "tests/interop/identity/test_calls_out.py::"
_OAUTH = "tests/interop/identity/test_oauth.py::"
_PLATFORM = "tests/interop/identity/test_platform_credentials.py::"
_FEDERATION = "tests/interop/identity/test_federation.py::"
_ABROAD = "tests/interop/identity/test_federation_out.py::"
_SERVERS = "tests/runtime/peers/a2a/test_federation.py::"
_SENDER = "tests/guards/caller/test_sender.py::"
_PRESENTED = "tests/guards/caller/test_platform_credential.py::"

_ASIDE = _EVIDENCE + "test_evidence_that_is_not_right_is_set_aside_and_shown_and_the_call_goes_on"

ROWS = (
    Row(
        "mentionable:trust:one-path",
        "A calling agent passes the same checks as a calling person: wire credential, evidence, "
        "policy, then the agent.",
        "003 symmetric addressing",
        (
            _CREDENTIALS + "test_a_person_and_an_agent_pass_the_same_guards_in_the_same_order",
            _EVIDENCE + "test_people_and_agents_here_pass_the_same_list",
        ),
    ),
    Row(
        "mentionable:credential:jwt",
        "A caller over A2A is known by a JWT that a published key of its sender has signed.",
        "003 symmetric addressing, M44",
        (
            _CREDENTIALS + "test_an_agent_of_a_peer_is_known_by_a_credential_of_its_key",
            _CREDENTIALS + "test_all_names_of_the_recipient_are_its_own",
            _CREDENTIALS + "test_how_it_was_known_is_shown_to_the_operator",
        ),
    ),
    Row(
        "mentionable:credential:strict",
        "A credential that is forged, for somebody else, out of its time or not in its form is "
        "refused; nothing runs, nothing is fetched, nothing of it is told.",
        "003 symmetric addressing, M44, A28",
        (
            _CREDENTIALS + "test_a_credential_that_is_not_right_in_every_part_is_refused",
            _CREDENTIALS + "test_one_label_and_addresses_are_fetched_from_by_nobody",
            _WIRE + "test_nobody_vouches_for_a_name_of_somebody_elses",
            _WIRE + "test_whatever_the_text_it_is_a_proof_or_refused",
        ),
    ),
    Row(
        "mentionable:credential:once",
        "A credential is good once, and is not used up by a forgery or a refused call.",
        "M46, R10",
        (
            _CREDENTIALS + "test_a_credential_is_good_once_and_not_burnt_by_a_forgery",
            _CREDENTIALS + "test_a_call_that_is_refused_for_its_agent_burns_nothing",
            _CREDENTIALS + "test_what_a_task_asks_for_is_answered_with_another_credential",
        ),
    ),
    Row(
        "mentionable:credential:unfetched",
        "Whether a sender could be trusted is decided before its key is fetched.",
        "R14",
        (
            _CREDENTIALS + "test_a_credential_of_a_key_that_nobody_knows_is_refused_unfetched",
            _SENDER + "test_nothing_is_fetched_for_a_credential_where_no_agent_is_for_everybody",
        ),
    ),
    Row(
        "mentionable:credential:tasks",
        "A task operation of another principal of the same sender is refused.",
        "M50",
        (
            _CREDENTIALS
            + "test_tasks_are_those_of_who_speaks_and_a_question_uses_its_credential_up",
            _CREDENTIALS + "test_the_same_message_of_another_who_speaks_is_another_call",
        ),
        Divergence("R14", "It is told that there is no such task, as of any other's: not 403."),
    ),
    Row(
        "mentionable:credential:oauth",
        "Or by an access token of a configured issuer, verified by its keys or by asking it.",
        "003 symmetric addressing",
        (
            _OAUTH + "test_the_subject_of_an_access_token_is_who_calls",
            _OAUTH + "test_an_access_token_that_is_not_right_is_refused",
            _OAUTH + "test_scopes_permit_what_they_were_mapped_to_and_no_more",
            _OAUTH + "test_an_issuer_is_asked_about_a_token_that_names_nobody",
            _OAUTH + "test_our_own_tokens_are_asked_about_nowhere",
        ),
    ),
    Row(
        "mentionable:credential:sent",
        "Calls of ours bring a credential for the callee, or an access token that was obtained "
        "for it.",
        "003 symmetric addressing",
        (
            _OUT + "test_an_agent_of_ours_is_known_by_its_address_and_whom_it_acts_for",
            _OUT + "test_an_agent_that_stands_before_another_calls_as_itself",
            _OUT + "test_nothing_of_a_credential_is_written_anywhere",
            _OAUTH + "test_a_token_is_obtained_for_the_agent_that_is_called_and_used_until_its_end",
            _OAUTH + "test_a_token_that_is_refused_is_obtained_anew",
        ),
    ),
    Row(
        "mentionable:evidence:rebound",
        "Evidence is forwarded only with the new recipient as its audience.",
        "003 composition rules, common mistakes",
        (
            _OUT + "test_each_sibling_is_given_evidence_of_its_own",
            _OUT + "test_one_within_another_stands_before_the_person",
            _ASIDE,
        ),
    ),
    Row(
        "mentionable:evidence:on-behalf-of",
        "Whose authority it is travels along, the immediate caller first.",
        "003 payment in chained calls",
        (
            _EVIDENCE + "test_the_worked_example_of_the_seed_is_read_and_shown",
            _OUT + "test_an_agent_of_ours_is_known_by_its_address_and_whom_it_acts_for",
            _OUT + "test_a_person_is_named_by_mail_where_that_was_verified",
            _OUT + "test_one_within_another_stands_before_the_person",
        ),
    ),
    Row(
        "mentionable:evidence:verified",
        "Evidence counts if a trusted issuer has signed it, for us and a few minutes ago; any "
        "other is set aside, noted and shown.",
        "003 symmetric addressing, M25, M26, M38, M41, M43",
        (
            _ASIDE,
            _EVIDENCE + "test_a_carrier_that_is_too_much_or_none_is_set_aside",
            _EVIDENCE + "test_skew_of_a_minute_is_allowed",
            _EVIDENCE + "test_the_key_of_a_trusted_issuer_is_fetched_once_and_a_weak_one_is_none",
            _EVIDENCE + "test_evidence_comes_with_a_token_of_ours_as_well",
        ),
    ),
    Row(
        "mentionable:evidence:once",
        "It is used by one message, which may be repeated.",
        "M46",
        (
            _EVIDENCE + "test_evidence_is_used_by_one_message_which_may_be_repeated",
            _EVIDENCE + "test_evidence_is_neither_recorded_nor_part_of_what_is_compared",
        ),
    ),
    Row(
        "mentionable:evidence:open-words",
        "Methods and assurances that nobody knows are kept as they are.",
        "003 IdentityEvidence",
        (_EVIDENCE + "test_methods_and_assurances_that_nobody_knows_are_kept_as_they_are",),
    ),
    Row(
        "mentionable:evidence:carrier",
        "It is carried in metadata.mentionable.identity_evidence and in no other place; two "
        "spellings do not contradict.",
        "003 symmetric addressing, R23",
        (
            _EVIDENCE + "test_two_spellings_that_differ_are_refused",
            _EVIDENCE + "test_evidence_in_another_place_is_none",
        ),
    ),
    Row(
        "mentionable:evidence:spoofed",
        "A header or a member that merely says who calls is believed by nobody.",
        "A36, R18",
        (
            _EVIDENCE + "test_a_header_that_says_who_calls_says_it_to_nobody",
            _EVIDENCE + "test_a_profile_authorises_nobody",
        ),
    ),
    Row(
        "mentionable:access:rules",
        "Subject, whom it acts for and action are held to the list of the agent; who is refused is "
        "told the nearest rule and whom to ask.",
        "003 payment in chained calls, R40, M28",
        (
            _EVIDENCE + "test_who_is_on_no_list_is_told_the_rule_and_whom_to_ask",
            _EVIDENCE + "test_evidence_of_whom_it_acts_for_opens_the_agent",
            _EVIDENCE + "test_a_member_of_the_workspace_is_admitted_by_the_beginning_of_its_name",
        ),
    ),
    Row(
        "mentionable:access:profile",
        "A profile is context and never authorises.",
        "M29",
        (_EVIDENCE + "test_a_profile_authorises_nobody",),
    ),
    Row(
        "mentionable:evidence:pays",
        "Who calls pays, unless it shows that whom it calls for has agreed; both sides record it.",
        "003 payment in chained calls, R41",
        (
            _EVIDENCE + "test_who_calls_pays_unless_it_shows_that_another_has_agreed",
            _EVIDENCE + "test_nobody_makes_another_organisation_pay",
            _OUT + "test_both_sides_record_who_pays_and_how_it_was_known",
        ),
    ),
    Row(
        "mentionable:identity:credentials",
        "A PlatformIdentityCredential is bound to its recipient and to one message, and verified: "
        "its issuer is trusted before anything is fetched, its key is the issuer's own.",
        "Mentionable identity 0.2, M37, M38, M41, M43",
        (
            _PLATFORM + "test_a_credential_says_who_uses_the_platform",
            _PLATFORM + "test_it_opens_an_agent_whose_list_names_the_member",
            _PLATFORM + "test_what_is_not_right_is_set_aside_and_shown_and_the_call_goes_on",
            _PLATFORM + "test_a_carrier_that_is_too_much_or_none_is_set_aside",
            _PLATFORM + "test_skew_of_a_minute_is_allowed",
            _PLATFORM + "test_a_document_that_is_not_right_lets_nothing_be_believed",
        ),
    ),
    Row(
        "mentionable:identity:credentials-refresh",
        "A key that is not known, or a signature that does not hold, has the document of the "
        "issuer fetched anew exactly once; a key of somebody else's has not.",
        "Mentionable identity 0.2, M41",
        (
            _PLATFORM + "test_a_key_that_is_not_there_has_the_document_fetched_anew_once",
            _PRESENTED
            + "test_a_document_that_cannot_be_had_or_lacks_the_key_is_asked_for_once_more",
        ),
    ),
    Row(
        "mentionable:identity:credentials-once",
        "It is used once, by its issuer, recipient and message; where that cannot be recorded it "
        "is set aside, and nothing is raised. Its time is looked at again after that.",
        "Mentionable identity 0.2, M40",
        (
            _PLATFORM + "test_a_credential_is_good_once_and_not_burnt_by_a_forgery",
            _PRESENTED + "test_a_store_that_is_down_leaves_it_unused_and_raises_nothing",
            _PRESENTED + "test_its_time_is_looked_at_again_when_it_was_used",
        ),
    ),
    Row(
        "mentionable:identity:credentials-kept",
        "The carriers are removed before a message is stored or passed on.",
        "Mentionable identity 0.2",
        (_PLATFORM + "test_it_is_neither_recorded_nor_told_again",),
    ),
    Row(
        "mentionable:identity:credentials-made",
        "A callee that takes such credentials is sent one for itself and for the message, which "
        "the document of this gateway verifies.",
        "Mentionable identity 0.2, 003 composition rules",
        (_PLATFORM + "test_our_own_are_for_one_recipient_and_one_message",),
    ),
    Row(
        "mentionable:identity:federation",
        "An assertion of a subject is exchanged for an access token of the resource.",
        "Mentionable OAuth federation 0.1",
        (
            _FEDERATION + "test_the_card_and_the_metadata_say_where_tokens_are_given",
            _FEDERATION + "test_an_assertion_of_a_user_is_exchanged_for_a_token_of_the_agent",
            _FEDERATION + "test_without_a_rule_nothing_is_offered_and_a_token_is_good_no_more",
        ),
    ),
    Row(
        "mentionable:identity:federation-request",
        "Another resource is invalid_target, one that stands twice invalid_request, an unknown or "
        "tab-joined scope invalid_scope, message scopes with a continuation and two issuers "
        "invalid_request; an actor_token is refused.",
        "Mentionable OAuth federation 0.1, M47",
        (
            _FEDERATION + "test_a_request_that_is_not_right_is_refused_in_its_word",
            _FEDERATION + "test_a_member_that_stands_twice_is_refused",
            _FEDERATION + "test_who_goes_on_with_a_task_does_nothing_else",
        ),
    ),
    Row(
        "mentionable:identity:federation-assertion",
        "An assertion is of its type, of a listed issuer and user before anything is fetched, for "
        "this endpoint, within its time and signed; each fault has its word.",
        "Mentionable OAuth federation 0.1, M44",
        (
            _FEDERATION + "test_an_assertion_that_is_not_right_is_refused_in_its_word",
            _FEDERATION + "test_a_client_that_is_not_right_is_refused_as_one",
        ),
    ),
    Row(
        "mentionable:identity:federation-once",
        "An assertion is good once, by its issuer and number, and is not used up by a refusal.",
        "Mentionable OAuth federation 0.1, M46",
        (_FEDERATION + "test_each_assertion_is_good_once_and_not_burnt_by_a_refusal",),
    ),
    Row(
        "mentionable:identity:federation-tasks",
        "Tasks are those of the user; who goes on with one by a continuation does nothing else.",
        "Mentionable OAuth federation 0.1, M50",
        (
            _FEDERATION + "test_tasks_are_those_of_the_user_and_scopes_permit_what_they_say",
            _FEDERATION + "test_who_goes_on_with_a_task_does_nothing_else",
        ),
        Divergence("R14", "It is told that there is no such task, as of any other's: not 403."),
    ),
    Row(
        "mentionable:identity:federation-sent",
        "Our own calls exchange an assertion for whom they are made, at a server that the agent's "
        "card names and that leads nowhere else; a task that outlives its token is gone on with.",
        "Mentionable OAuth federation 0.1",
        (
            _FEDERATION + "test_each_person_of_ours_has_a_token_of_her_own",
            _FEDERATION + "test_who_is_on_no_list_there_calls_nobody",
            _ABROAD + "test_a_token_is_exchanged_for_whom_we_call_and_used_until_its_end",
            _ABROAD + "test_a_task_that_outlives_its_token_is_gone_on_with_by_another",
            _ABROAD + "test_a_card_leads_us_to_no_other_host",
            _SERVERS + "test_a_server_that_the_card_names_elsewhere_is_not_asked",
            _SERVERS + "test_a_server_that_gives_tokens_elsewhere_is_shown_no_assertion",
            _ABROAD + "test_a_server_that_refuses_is_told_as_that",
        ),
    ),
    Row(
        "mentionable:identity:context",
        "An agent is told the principal and the actor; one that knows the first version of the "
        "context only is told nothing where there is an actor.",
        "Mentionable OAuth federation 0.1, M49",
        (_FEDERATION + "test_an_assertion_of_a_user_is_exchanged_for_a_token_of_the_agent",),
        Divergence(
            "R39",
            "Versions of the context are of the frames between a bridge and its agents, which are "
            "no wire of ours: `visit.sender` always tells the user and the connector's domain.",
        ),
    ),
)
