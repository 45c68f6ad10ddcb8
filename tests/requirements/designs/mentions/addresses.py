"""Mentionable addresses: how an agent is found, cards, the hub and strangers (M01-M23)."""

from tests.requirements.rows import Divergence, Row

_ADDRESS = "tests/core/people/test_address.py::"
_SERVED = "tests/interop/mentions/test_addresses.py::"
_RESOLVED = "tests/runtime/peers/strangers/test_resolver.py::"
_STORED = "tests/stores/trust/test_strangers.py::"
_FINGER = "tests/wire/mentions/test_webfinger.py::"
_CARD = "tests/wire/mentions/test_card.py::"
_HUB = "tests/interop/mentions/test_hub.py::"
_MET = "tests/interop/mentions/test_strangers.py::"
_STORE = "tests/stores/trust/test_strangers.py::"
_RELAY = "tests/interop/mentions/test_relay.py::"
_PARTS = "tests/interop/mentions/test_parts.py::"
_TOOLS = "tests/interop/policy_parts/test_tool_events.py::"

ROWS = (
    Row(
        "mentionable:address:grammar",
        "An address is a name of ASCII and a domain of two labels or more; acct: is another form.",
        "003 symmetric addressing, M01-M05",
        (
            _ADDRESS + "test_the_three_spellings_of_a_handle_name_one_address",
            _ADDRESS + "test_what_is_not_a_handle_is_refused",
            _ADDRESS + "test_an_acct_is_one_by_its_scheme_alone",
            _SERVED + "test_what_leads_to_nobody_is_not_found",
        ),
    ),
    Row(
        "mentionable:webfinger:served",
        "WebFinger at the root of the domain tells where the card of an address is, in whatever "
        "case it is asked for; the subject is lower-cased, and links have their order.",
        "M07, M08",
        (
            _SERVED + "test_an_address_leads_to_the_card_in_whatever_case",
            _SERVED + "test_two_resources_or_none_are_nobody",
            _FINGER + "test_the_links_stand_in_their_order_and_as_they_are_asked_for",
        ),
    ),
    Row(
        "mentionable:webfinger:twins",
        "Of two agents that differ in case alone neither is found, nor listed.",
        "M10",
        (
            _SERVED + "test_what_leads_to_nobody_is_not_found",
            _SERVED + "test_the_directory_lists_those_alone_that_are_public",
        ),
    ),
    Row(
        "mentionable:webfinger:https",
        "Where others do not reach us over https, none of these pages is there.",
        "M11",
        (_SERVED + "test_nobody_is_led_to_an_address_without_https",),
        Divergence("R42", "On this machine they are served over http: for tests and trials."),
    ),
    Row(
        "mentionable:webfinger:asked",
        "Asked for over https alone, with one redirect at the most; the subject must be whom we "
        "asked for.",
        "M07, R42",
        (
            _RESOLVED + "test_an_address_is_found_by_webfinger_and_its_card",
            _RESOLVED + "test_webfinger_may_lead_on_once",
            _RESOLVED + "test_it_does_not_lead_on_twice_nor_elsewhere_than_over_https",
            _RESOLVED + "test_what_tells_of_another_or_leads_astray_is_refused",
            _MET + "test_an_address_that_leads_to_nobody_is_told_so",
        ),
    ),
    Row(
        "mentionable:webfinger:former",
        "The former name of the link to the card is read, and never written.",
        "R42",
        (
            _FINGER + "test_the_former_relation_is_read_and_the_present_one_comes_first",
            _RESOLVED + "test_an_address_is_found_by_webfinger_and_its_card",
            _SERVED + "test_an_address_leads_to_the_card_in_whatever_case",
        ),
    ),
    Row(
        "mentionable:card:shape",
        "The card of an address names the address, the version of the protocol, and how it is "
        "called over A2A.",
        "M13, M14",
        (
            _SERVED + "test_the_card_of_an_address_has_the_shape_of_the_specification",
            _SERVED + "test_modes_have_their_kinds",
            _CARD + "test_the_transport_says_how_it_is_called",
        ),
    ),
    Row(
        "mentionable:card:read",
        "A card of others is read for the one that was asked for, and leads over https alone.",
        "M13",
        (
            _CARD + "test_a_card_that_leads_nowhere_or_is_anothers_is_refused",
            _RESOLVED + "test_a_card_that_names_an_endpoint_without_https_is_refused",
            _MET + "test_an_agent_of_a_stranger_is_called_by_its_address",
        ),
    ),
    Row(
        "mentionable:directory",
        "A directory lists the agents of an organisation, each with its address and card.",
        "M10",
        (_SERVED + "test_the_directory_lists_those_alone_that_are_public",),
        Divergence("R42", "Those alone whose trust is public: the names of others are nobody's."),
    ),
    Row(
        "mentionable:hub:handle",
        "At the root the handle that a message begins with chooses the agent; none, or one that "
        "is unknown, is the default agent.",
        "003 fan-out pattern, R23",
        (
            _HUB + "test_a_leading_handle_chooses_the_agent",
            _HUB + "test_none_and_unknown_go_to_the_default_agent",
        ),
    ),
    Row(
        "mentionable:hub:context",
        "What follows in a context stays with the agent that answered in it, for the same caller.",
        "003 fan-out pattern, R23",
        (
            _HUB + "test_what_follows_in_a_context_stays_with_its_agent",
            _HUB + "test_the_context_of_another_caller_leads_nowhere",
            _HUB + "test_a_task_that_the_hub_has_led_to_is_asked_for_and_gone_on_with_there",
        ),
    ),
    Row(
        "mentionable:stranger:called",
        "An address that is no peer's is called where the operator lets strangers be.",
        "R42",
        (
            _MET + "test_an_agent_of_a_stranger_is_called_by_its_address",
            _MET + "test_an_agent_and_a_person_in_a_chat_call_one_as_well",
            _MET + "test_without_the_setting_a_stranger_is_unknown",
        ),
    ),
    Row(
        "mentionable:stranger:price",
        "What one asks for above the limit is agreed to by a person before anything leaves, and is "
        "set aside with that.",
        "R42",
        (
            _MET + "test_a_price_above_the_limit_asks_a_person_first",
            _MET + "test_a_price_that_was_agreed_to_is_set_aside",
        ),
    ),
    Row(
        "mentionable:stranger:callers",
        "What one caller has met, or has looked for, is not counted against another.",
        "R42",
        (
            _MET + "test_who_has_met_as_many_as_may_be_keeps_nobody_else_from_it",
            _STORED + "test_no_more_are_remembered_of_one_caller_than_may_be",
            _RESOLVED + "test_what_one_has_looked_for_keeps_nobody_else_waiting",
        ),
    ),
    Row(
        "mentionable:stranger:key",
        "Its keys are remembered at first use; others are refused until a person says yes.",
        "R42",
        (
            _MET + "test_a_key_that_changed_is_refused_until_a_person_says_yes",
            _STORE + "test_keys_are_remembered_at_first_use_and_whoever_was_faster_has_it",
            _STORE + "test_other_keys_count_once_a_person_has_confirmed_them",
        ),
    ),
    Row(
        "mentionable:stranger:bounds",
        "One caller's looks for addresses cost another nothing.",
        "A99, R42",
        (
            _RESOLVED + "test_one_caller_has_a_few_looks_at_once_and_leaves_room_for_others",
            _STORE + "test_no_more_are_remembered_of_one_caller_than_may_be",
            _MET + "test_an_agent_of_a_stranger_is_called_by_its_address",
        ),
    ),
    Row(
        "mentionable:relay:front",
        "The front of a person relays a mention in an answer at the next hop, once for each pair, "
        "and never at the final hop.",
        "003 recipient_capabilities, R37, M17",
        (
            _RELAY + "test_a_mention_in_an_answer_over_a2a_is_relayed_at_the_next_hop",
            _RELAY + "test_a_mention_of_an_agent_behind_a2a_leaves_with_its_chain",
            _RELAY + "test_from_the_final_hop_nobody_is_relayed_to",
        ),
    ),
    Row(
        "mentionable:relay:forwarded",
        "What the recipient can do is told on across hops, with members that nobody here knows.",
        "003 recipient_capabilities, R19",
        (
            _RELAY + "test_a_call_that_is_passed_on_tells_on_what_was_told",
            _RELAY + "test_a_call_that_an_agent_makes_itself_is_relayed_by_nobody",
            _RELAY + "test_the_relay_is_told_by_its_kind_alone_or_with_more",
            _RELAY + "test_capabilities_that_are_none_are_refused",
            _RELAY + "test_two_that_differ_are_refused",
        ),
    ),
    Row(
        "mentionable:parts:tool-events",
        "Tool calls travel as data with the id of the call: another id is another call, and one "
        "without result and error is in flight.",
        "M52, M53",
        (
            _PARTS + "test_tool_events_of_a_message_pass_as_the_data_that_they_are",
            _TOOLS + "test_a_call_and_a_result_with_different_ids_are_two_calls",
            _TOOLS + "test_a_call_without_result_or_error_is_in_flight",
        ),
    ),
    Row(
        "mentionable:transport:email",
        "An address can be reached by e-mail as well.",
        "003 symmetric addressing",
        divergence=Divergence("R23", "E-mail is no transport here: A2A is."),
    ),
)
