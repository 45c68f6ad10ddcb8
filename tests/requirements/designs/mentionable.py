"""Mentionable composition: what seed 003 says.

The chain, the relay and the cues ride on A2A. How an agent is found by its address, and who is met
there, is in `mentions.addresses`.
"""

from tests.requirements.rows import Divergence, Row

_WIRE = "tests/wire/stamps/test_mentionable.py::"
_CARNET = "tests/core/chain/test_carnet.py::"
_ADDRESS = "tests/core/people/test_address.py::"

_MENTIONS = "tests/interop/mentions/"
_CHAIN = _MENTIONS + "test_chain.py::"
_RELAY = _MENTIONS + "test_relay.py::"
_HOPS = _MENTIONS + "test_hops.py::"
_SCENE = _MENTIONS + "test_composition.py::"
_CUES = _MENTIONS + "test_cues.py::"
_MODEL = _MENTIONS + "test_model.py::"
_LOOPS = "tests/runtime/agents/test_engine.py::"
_CALLS = "tests/interop/engine/test_calls.py::"
_FAN_OUT = "tests/interop/composition/test_fan_out.py::"
_BRANCHES = "tests/runtime/visit/fan_out/test_fan_out.py::"
_FRONT = "tests/gateway/conversations/test_messages_named.py::"
_ORCHESTRATOR = "tests/interop/composition/test_orchestrator.py::"
_SURFACED = (
    _ORCHESTRATOR + "test_what_one_asks_for_is_asked_and_answered_while_the_others_go_on",
    _ORCHESTRATOR + "test_the_question_of_a_fan_out_within_others_is_asked_at_once_as_well",
)
_WITHOUT = (
    _ORCHESTRATOR + "test_while_one_waits_the_answers_of_the_others_are_shown_and_can_do_without",
    _ORCHESTRATOR + "test_the_others_go_on_without_also_while_they_run",
)
_SEEN = _FAN_OUT + "test_an_agent_sees_who_sends_whom_it_is_and_where_it_stands"
_INTERRUPTS = "tests/interop/interrupts/test_openai.py::"
_SIBLINGS = (
    "tests/interop/interrupts/test_siblings.py::"
    "test_a_payment_that_one_of_two_siblings_leads_to_is_approved_in_the_inbox_of_the_origin"
)

_CALLED = "tests/interop/policy_parts/test_called.py::"
_SERVED = "tests/interop/policy_parts/test_served.py::"
_CALLBACK = "tests/interop/policy_parts/test_callback.py::"
_USED = "tests/interop/policy_parts/test_used_state.py::"
_CHAT = "tests/interop/policy_parts/test_chat.py::"
_TOOLS = "tests/interop/policy_parts/test_tool_events.py::"
_EXAMPLE = _SERVED + "test_a_payment_that_a_sibling_asks_for_is_surfaced_paid_and_forwarded"

ROWS = (
    Row(
        "mentionable:address:symmetric",
        "Sender and recipient have the same form, @name@domain.",
        "003 symmetric addressing",
        (
            _ADDRESS + "test_an_address_is_read_as_it_was_written",
            _ADDRESS + "test_the_three_spellings_of_a_handle_name_one_address",
            _SEEN,
        ),
    ),
    Row(
        "mentionable:chain:shape",
        "A chain has a hop from 1 up, a cap, and says whether the hop is the last.",
        "003 AgentChain",
        (
            _WIRE + "test_an_impossible_chain_cannot_be_made",
            _WIRE + "test_what_is_there_and_not_whole_is_refused",
            _CHAIN + "test_what_is_no_chain_is_refused_and_nothing_runs",
        ),
    ),
    Row(
        "mentionable:chain:is-final",
        "A hop is final when it equals the cap.",
        "003 AgentChain",
        (
            _WIRE + "test_is_final_is_computed_and_not_believed",
            _CHAIN + "test_a_chain_that_contradicts_itself_is_recomputed_and_logged",
        ),
        Divergence("R15", "What a peer says about it is recomputed; the numbers decide."),
    ),
    Row(
        "mentionable:chain:is-final-logged",
        "A peer that says something else about it is noted in the log.",
        "R15, U09",
        (_CHAIN + "test_a_chain_that_contradicts_itself_is_recomputed_and_logged",),
    ),
    Row(
        "mentionable:chain:clamp",
        "The cap is the operator's.",
        "003 AgentChain",
        (
            _WIRE + "test_a_peer_can_lower_our_limit_and_never_raise_it",
            _CHAIN + "test_a_chained_call_leaves_one_hop_further_under_the_same_cap",
        ),
        Divergence("R15", "The cap of a peer counts where it is lower than ours."),
    ),
    Row(
        "mentionable:chain:default",
        "The cap is 4 where nobody said another.",
        "003 recipient_capabilities, R2",
        (
            _WIRE + "test_the_next_chain_is_one_hop_further_under_the_same_cap",
            _CHAIN + "test_a_chained_call_leaves_one_hop_further_under_the_same_cap",
        ),
    ),
    Row(
        "mentionable:chain:carrier",
        "It travels as metadata.mentionable.agent_chain, set among the recipient's capabilities.",
        "003 AgentChain, R23",
        (
            _WIRE + "test_a_chain_is_read_in_every_spelling",
            _WIRE + "test_what_a_client_that_relays_mentions_sends_is_read",
            _WIRE + "test_two_spellings_may_agree_and_must_not_contradict",
            _CHAIN + "test_a_chain_is_read_in_every_spelling_of_message_and_request",
            _RELAY + "test_what_the_connector_of_the_seed_sends_is_what_the_agent_sees",
        ),
    ),
    Row(
        "mentionable:chain:written",
        "A chained call to another agent carries its chain.",
        "003 AgentChain",
        (
            _CHAIN + "test_a_chained_call_leaves_one_hop_further_under_the_same_cap",
            _HOPS + "test_a_chain_goes_through_four_hops_and_ends_with_the_final_cue",
        ),
    ),
    Row(
        "mentionable:chain:absent",
        "Whether a call is chained is told by the chain's presence, not by the transport.",
        "003 common mistakes, M19",
        (
            _WIRE + "test_absent_is_a_direct_call",
            _CHAIN + "test_without_a_chain_a_call_over_a2a_is_no_chained_one",
        ),
    ),
    Row(
        "mentionable:chain:cue",
        "A model is told which hop of how many it is, and how many are left.",
        "003 AgentChain, M20",
        (
            _WIRE + "test_the_cue_tells_a_model_where_it_stands",
            _LOOPS + "test_who_is_called_by_agents_is_told_its_hop",
            _CUES + "test_every_kind_of_agent_tells_its_model_the_cue_to_the_byte",
            _CHAIN + "test_an_agent_is_told_its_hop",
        ),
    ),
    Row(
        "mentionable:chain:cue-rendered",
        "The cue is part of the prompt of a chained turn.",
        "003 multi-hop cap enforcement",
        (
            _LOOPS + "test_who_is_called_by_agents_is_told_its_hop",
            _CALLS + "test_at_the_last_hop_a_loop_calls_nobody_whatever_its_model_says",
            _CUES + "test_every_kind_of_agent_tells_its_model_the_cue_to_the_byte",
            _CUES + "test_cues_are_switched_off_for_an_agent",
            _CUES + "test_a_call_that_is_not_chained_has_no_cue",
            _MODEL + "test_a_true_model_reads_the_cue",
        ),
    ),
    Row(
        "mentionable:chain:conclude",
        "At the final hop an agent concludes and invites nobody.",
        "003 AgentChain",
        (
            _WIRE + "test_the_cue_tells_a_model_where_it_stands",
            _CARNET + "test_a_carnet_without_a_hop_left_cannot_be_extended",
            _CHAIN + "test_the_final_hop_is_answered_and_calls_nobody",
            _HOPS + "test_a_chain_goes_through_four_hops_and_ends_with_the_final_cue",
        ),
    ),
    Row(
        "mentionable:chain:refuse",
        "The runtime itself refuses calls out of the final hop; the model's obedience is not "
        "relied on.",
        "003 multi-hop cap enforcement, common mistakes",
        (
            _WIRE + "test_from_the_final_hop_nothing_is_written",
            _CARNET + "test_the_refusal_names_the_depth_the_callee_would_have_had",
            _CALLS + "test_at_the_last_hop_a_loop_calls_nobody_whatever_its_model_says",
            _FAN_OUT + "test_at_the_last_hop_and_back_to_its_own_chain_nobody_is_called",
            _CHAIN + "test_the_final_hop_is_answered_and_calls_nobody",
            _MODEL + "test_what_it_wishes_is_called_below_the_cap_and_refused_at_the_final_hop",
        ),
    ),
    Row(
        "mentionable:chain:next",
        "The next chain has one hop more under the same cap.",
        "003 multi-hop cap enforcement, M16",
        (
            _WIRE + "test_the_next_chain_is_one_hop_further_under_the_same_cap",
            _WIRE + "test_the_chain_is_read_as_it_was_written",
            _CHAIN + "test_a_chained_call_leaves_one_hop_further_under_the_same_cap",
        ),
    ),
    Row(
        "mentionable:chain:every-hop",
        "Every hop counts, and none goes past the cap.",
        "003 composition rules",
        (
            _CARNET + "test_every_chain_ends",
            _FAN_OUT + "test_an_agent_that_calls_itself_ten_times_over_stops",
        ),
    ),
    Row(
        "mentionable:relay:override",
        "A dispatcher that can relay mentions says so in place of the default.",
        "003 recipient_capabilities, M22",
        (
            _RELAY + "test_the_front_says_that_it_relays_also_to_an_agent_behind_a2a",
            _RELAY + "test_what_the_connector_of_the_seed_sends_is_what_the_agent_sees",
        ),
    ),
    Row(
        "mentionable:relay:none",
        "Without that an agent calls its siblings itself.",
        "003 recipient_capabilities",
        (
            _FAN_OUT + "test_the_answers_of_two_organisations_become_one_reply",
            _RELAY + "test_a_call_that_an_agent_makes_itself_is_relayed_by_nobody",
            _CHAIN + "test_without_a_chain_a_call_over_a2a_is_no_chained_one",
        ),
    ),
    Row(
        "mentionable:relay:siblings",
        "A mention in what one of several has answered is relayed as that one's, one hop further "
        "than it was spoken.",
        "R37, R38",
        (
            _FRONT + "test_a_mention_in_what_one_of_several_answers_is_relayed_as_its_own",
            _SCENE + "test_two_who_are_mentioned_answer_bring_others_in_and_are_paid",
        ),
    ),
    Row(
        "mentionable:relay:asks",
        "What somebody asks for who was brought in by a mention reaches the person; with her "
        "answer it goes on, and nobody is asked again who has answered.",
        "003 composition rules, R37",
        (
            _FRONT + "test_what_somebody_asks_for_who_was_mentioned_is_asked_and_answered",
            _SCENE + "test_two_who_are_mentioned_answer_bring_others_in_and_are_paid",
            _SCENE + "test_a_kill_while_the_last_hop_waits_for_money_asks_nobody_again",
        ),
    ),
    Row(
        "mentionable:composition",
        "Two agents of two organisations who are mentioned in a chat answer with evidence for each "
        "alone, bring others in hop by hop, are paid by the person, and end at the cap.",
        "003 as a whole",
        (_SCENE + "test_two_who_are_mentioned_answer_bring_others_in_and_are_paid",),
    ),
    Row(
        "mentionable:fan-out:parallel",
        "Siblings are called at the same time, and are cancelled together.",
        "003 fan-out pattern",
        (
            _FAN_OUT + "test_who_leaves_a_fan_out_across_two_organisations_ends_every_branch",
            _FAN_OUT + "test_cancelling_a_run_tells_hop_by_hop_what_has_come_of_it",
            _BRANCHES + "test_who_leaves_a_fan_out_or_is_cancelled_ends_every_branch",
        ),
    ),
    Row(
        "mentionable:fan-out:chain",
        "Each of these calls carries the chain.",
        "003 fan-out pattern",
        (
            _FAN_OUT + "test_the_answers_of_two_organisations_become_one_reply",
            _CHAIN + "test_the_handles_of_the_seed_fan_out_over_a2a_with_the_chain",
        ),
    ),
    Row(
        "mentionable:fan-out:one-reply",
        "Their answers become one reply.",
        "003 fan-out pattern",
        (
            _FAN_OUT + "test_the_answers_of_two_organisations_become_one_reply",
            _BRANCHES + "test_answers_stand_in_the_order_of_the_list_whichever_came_first",
            _ORCHESTRATOR
            + "test_answers_are_listed_in_order_or_given_to_the_agent_that_joins_them",
        ),
    ),
    Row(
        "mentionable:orchestrator:handles",
        "An orchestrator asks those whom the user names first, or whom its operator listed.",
        "003 fan-out pattern, R38",
        (
            _ORCHESTRATOR
            + "test_answers_are_listed_in_order_or_given_to_the_agent_that_joins_them",
            _FRONT + "test_several_handles_go_to_the_orchestrator",
        ),
    ),
    Row(
        "mentionable:orchestrator:enough",
        "As many answers as are enough, or a failure where that ends all, end the other calls.",
        "R38",
        (_ORCHESTRATOR + "test_enough_answers_or_a_failure_end_the_others",),
    ),
    Row(
        "mentionable:orchestrator:beside",
        "What one sibling asks for is shown while the others go on, and answered then.",
        "003 composition rules, R38",
        _SURFACED,
    ),
    Row(
        "mentionable:orchestrator:without",
        "The answers of the others are shown beside the question, and to go on without whoever "
        "asks is one of its answers.",
        "R38",
        (
            *_WITHOUT,
            _FRONT + "test_what_one_of_several_asks_for_stands_beside_the_answers_of_the_others",
        ),
    ),
    Row(
        "mentionable:orchestrator:cancelled",
        "Who leaves, or cancels the run, takes the questions along.",
        "003 composition rules",
        (_ORCHESTRATOR + "test_who_leaves_takes_the_question_along",),
    ),
    Row(
        "mentionable:orchestrator:killed",
        "A kill while one of them asks loses neither the question nor the answer, and calls nobody "
        "again who has answered.",
        "R38, F01",
        (_ORCHESTRATOR + "test_a_kill_while_one_asks_loses_neither_question_nor_answer",),
    ),
    Row(
        "mentionable:visit:seen",
        "An agent sees the sender as it was proved, its own address, the parts of the message, "
        "its place in the chain, and what the caller claims of itself.",
        "003 symmetric addressing, R39",
        (_SEEN,),
    ),
    Row(
        "mentionable:policy:surface",
        "What a sibling needs first reaches the user; it is neither swallowed nor retried.",
        "003 fan-out pattern, composition rules, common mistakes",
        (
            _INTERRUPTS
            + "test_a_payment_asked_for_three_hops_down_reaches_the_origin_and_is_answered_there",
            _INTERRUPTS + "test_two_that_ask_at_once_are_shown_together_and_answered_one_by_one",
            _SIBLINGS,
            _FAN_OUT
            + "test_what_one_branch_asks_for_is_asked_while_the_answers_of_the_others_are_kept",
            *_SURFACED,
        ),
    ),
    Row(
        "mentionable:policy:any-hop",
        "Whichever hop of a chain asks, it is told with the address of who asks.",
        "003 combining with PolicyPart",
        (
            _INTERRUPTS + "test_our_own_agent_is_named_by_its_address",
            _INTERRUPTS + "test_a_direct_call_to_a_peer_waits_and_goes_on_as_well",
            _SIBLINGS,
        ),
    ),
    Row(
        "mentionable:policy:verify",
        "Who has asked looks the state up when the call is sent again with the answer, and takes "
        "it once.",
        "003 combining with PolicyPart",
        (
            _INTERRUPTS + "test_a_resolution_is_good_once_and_for_nothing_else",
            _INTERRUPTS + "test_another_caller_with_the_right_state_is_told_nothing",
            _INTERRUPTS + "test_an_answer_that_comes_too_late_is_refused",
        ),
    ),
    Row(
        "mentionable:policy:resume",
        "The answer goes back to the one who asked, with the original call.",
        "003 combining with PolicyPart",
        (
            _INTERRUPTS
            + "test_a_payment_asked_for_three_hops_down_reaches_the_origin_and_is_answered_there",
            _INTERRUPTS + "test_a_value_and_its_schema_travel_there_and_back",
            _INTERRUPTS + "test_who_says_no_is_heard_by_the_agent_and_pays_the_price_alone",
            _SIBLINGS,
            _ORCHESTRATOR + "test_a_payment_that_one_asks_for_is_paid_once",
        ),
    ),
    Row(
        "mentionable:policy:worked-example",
        "User, orchestrator, @paid-search: a payment with a state is surfaced, paid, forwarded as "
        "policy_resolution, and answered.",
        "003 combining with PolicyPart, M31",
        (_EXAMPLE,),
    ),
    Row(
        "mentionable:policy:advertised",
        "An agent that sends policy parts has it on its card; its old name is read only.",
        "3.1, 3.6",
        (
            _SERVED + "test_the_extension_is_on_our_cards_and_its_old_name_is_not",
            _SERVED + "test_who_did_not_ask_for_parts_is_given_none",
            _SERVED + "test_who_speaks_mentionable_is_given_them_as_well",
        ),
    ),
    Row(
        "mentionable:policy:kinds",
        "All known kinds are read, and written to who activated the extension.",
        "3.6, M35",
        (
            _CALLED + "test_every_kind_is_a_question_that_the_call_is_made_again_for",
            _SERVED + "test_what_an_agent_asks_for_is_a_part_of_its_kind",
            _SERVED + "test_a_payment_says_its_amount_beside_by_our_own_extension",
        ),
    ),
    Row(
        "mentionable:policy:errors",
        "A part beside an error, before there is a task, is read as one and written as one.",
        "3.6, M35",
        (
            _CALLED + "test_a_part_beside_an_error_is_asked_and_not_tried_again",
            _CALLED + "test_a_body_that_is_a_part_is_one",
            _CALLED + "test_an_error_with_no_part_beside_it_is_an_error",
            _SERVED + "test_a_refusal_before_there_is_a_task_is_told_as_a_part_to_who_wants_it",
        ),
    ),
    Row(
        "mentionable:policy:statuses",
        "Kinds map to 401, 402, 403, 429, 451 and 503.",
        "3.6, M35",
        (
            _CALLED + "test_every_kind_is_a_question_that_the_call_is_made_again_for",
            _CALLED + "test_what_nobody_can_resolve_ends_the_turn_with_its_words",
        ),
    ),
    Row(
        "mentionable:policy:unknown-kind",
        "A kind that is not known is preserved, and success is never inferred from it.",
        "3.6",
        (
            _SERVED + "test_an_unknown_kind_is_preserved_up_and_down",
            _CALLED + "test_wherever_a_part_stands_it_is_no_success",
        ),
    ),
    Row(
        "mentionable:policy:url",
        "A link is https and bound to the host of its agent; any other is shown to nobody.",
        "3.6, M34",
        (
            _CALLED + "test_a_link_that_leads_elsewhere_is_shown_to_nobody",
            _CALLED + "test_a_link_to_the_agent_itself_is_shown_with_its_label",
            _SERVED + "test_a_link_of_ours_that_leads_elsewhere_is_not_in_the_part",
        ),
    ),
    Row(
        "mentionable:policy:words",
        "Title, translations, label and data are kept through hops and in the inbox.",
        "3.6",
        (_CALLED + "test_wherever_a_part_stands_it_is_no_success", _EXAMPLE),
    ),
    Row(
        "mentionable:policy:state",
        "A resolution by its state proceeds once; a second one and an unknown state are refused, "
        "and another caller is told nothing.",
        "3.6, M32",
        (
            _SERVED + "test_a_state_is_good_once",
            _SERVED + "test_an_unknown_state_is_refused_and_nothing_runs",
            _SERVED + "test_another_caller_with_the_right_state_is_told_nothing",
            _SERVED + "test_a_broken_resolution_is_refused",
            _SERVED + "test_two_resolutions_that_differ_are_refused",
            _SERVED + "test_the_state_of_a_resolution_stands_in_no_record",
        ),
    ),
    Row(
        "mentionable:policy:redispatch",
        "The original call is dispatched again with the resolution forwarded.",
        "3.6",
        (
            _CALLED + "test_every_kind_is_a_question_that_the_call_is_made_again_for",
            _CALLED + "test_a_part_of_a_task_that_waits_is_resolved_at_that_task",
            _CALLED + "test_who_declines_sends_no_resolution_down",
        ),
    ),
    Row(
        "mentionable:policy:callback",
        "What was done at the page of an agent comes back by the person's word or by a callback "
        "that the agent signs, bound to the state and its issuer.",
        "R43",
        (
            _CALLBACK + "test_what_was_done_at_the_page_of_the_agent_goes_on_by_itself",
            _CALLBACK + "test_neither_another_key_nor_another_state_nor_no_signature_answers",
            _CALLBACK + "test_what_the_agent_cannot_know_of_its_page_it_cannot_answer",
            _CALLBACK + "test_what_would_be_debited_here_its_seller_cannot_agree_to",
            _CALLBACK + "test_a_person_says_done_and_a_kill_loses_nothing",
        ),
    ),
    Row(
        "mentionable:policy:shown",
        "A link is shown with its label and the time left; `done` answers it; a closed terminal "
        "loses nothing.",
        "R43",
        (
            _CHAT + "test_the_page_its_label_and_the_time_left_are_shown_and_done_is_an_answer",
            _CHAT + "test_a_closed_terminal_loses_nothing",
            _CHAT + "test_where_there_is_no_page_done_is_no_answer",
        ),
    ),
    Row(
        "mentionable:policy:over",
        "Kinds that nobody can resolve end the turn with their words.",
        "R43",
        (
            _CALLED + "test_what_nobody_can_resolve_ends_the_turn_with_its_words",
            _SERVED + "test_a_refusal_is_told_as_a_part_with_the_words_of_who_refuses",
        ),
    ),
    Row(
        "mentionable:policy:killed",
        "A kill between an agreement and the call made again loses and doubles nothing.",
        "F46",
        (
            _CALLBACK
            + "test_a_kill_between_the_agreement_and_the_call_made_again_loses_and_doubles_nothing",
            _CALLBACK + "test_a_kill_after_the_call_was_made_again_runs_nothing_twice",
        ),
    ),
    Row(
        "mentionable:policy:killed-single-use",
        "An issuer whose state was used before a kill refuses it: nothing is paid twice, and the "
        "person is told, and asked again at the most.",
        "3.6, F46",
        (
            _USED + "test_what_was_taken_before_a_kill_is_asked_again_and_says_so",
            _USED + "test_who_agrees_again_knowingly_pays_again",
            _USED + "test_an_issuer_that_says_why_ends_the_turn_with_its_words",
        ),
    ),
    Row(
        "mentionable:policy:rest",
        "PolicyPart is told over REST and e-mail as well.",
        "3.6",
        divergence=Divergence(
            "R23",
            "A2A is the wire of Mentionable here: neither its REST transport nor e-mail is served.",
        ),
    ),
    Row(
        "mentionable:tools:events",
        "Tool events are data parts with a stable id, read and written.",
        "3.6, M52, M53",
        (
            _TOOLS + "test_the_tools_of_an_agent_are_shown_to_who_wants_them",
            _TOOLS + "test_a_call_and_a_result_with_different_ids_are_two_calls",
            _TOOLS + "test_a_call_without_result_or_error_is_in_flight",
            _TOOLS + "test_a_stream_tells_each_as_it_comes",
        ),
    ),
)
