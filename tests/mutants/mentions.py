"""The behaviour behind the rows of Mentionable, each taken away by one small change.

First chains and addresses, then policy parts and tool events.
"""

from tests.mutants.mutant import Mutant

MENTIONABLE = (
    Mutant(
        "mentionable:chain:clamp",
        "wire/stamps/mentionable.py",
        "last_depth=min(max_hops, chain.max_hops),",
        "last_depth=chain.max_hops,",
    ),
    Mutant(
        "mentionable:chain:is-final-logged",
        "gateway/own_tasks/endpoint.py",
        "if mark.doubt is not None:",
        "if mark.doubt == call:",
    ),
    Mutant(
        "mentionable:chain:written",
        "wire/stamps/mentionable.py",
        'toward="a2a",  # the one body that has metadata to hold it',
        'toward="nobody",',
    ),
    Mutant(
        "mentionable:chain:default",
        "guards/admission/children.py",
        "default=self._depths.of(target.chain),",
        "default=self._depths.default,",
        ("test_a_chained_call_leaves_one_hop_further_under_the_same_cap",),
    ),
    Mutant(
        "mentionable:chain:carrier",
        "wire/dialects/a2a/request.py",
        "marks = (*marks, *arrival.stamps.read_metadata(sent.metadata, metadata).marks)",
        "marks = (*marks, *arrival.stamps.read_metadata(sent.metadata).marks)",
        ("test_a_chain_is_read_in_every_spelling_of_message_and_request",),
    ),
    Mutant(
        "mentionable:chain:cue-rendered",
        "runtime/agents/remote.py",
        "if self._cue_depth is None or not call.carnet.depth:",
        "if True:",
        ("test_every_kind_of_agent_tells_its_model_the_cue_to_the_byte",),
    ),
    Mutant(
        "mentionable:relay:override",
        "gateway/conversations/claims.py",
        "if relays:",
        "if not relays:",
        ("test_the_front_says_that_it_relays_also_to_an_agent_behind_a2a",),
    ),
    Mutant(
        "mentionable:relay:front",
        "runtime/agents/relay.py",
        "here = call.carnet if call.onward is None else self._placed(call.onward)",
        "here = call.carnet",
        ("test_a_mention_in_an_answer_over_a2a_is_relayed_at_the_next_hop",),
    ),
    Mutant(
        "mentionable:relay:siblings",
        "runtime/agents/orchestrator.py",
        "is_relayed = self.join is None and visit.capabilities.relays",
        "is_relayed = False",
        ("test_a_mention_in_what_one_of_several_answers_is_relayed_as_its_own",),
    ),
    Mutant(
        "mentionable:relay:asks",
        "runtime/tasks/worker.py",
        "if call.ask.thread is not None and self.relay is not None:",
        "if call.ask.thread == 0 and self.relay is not None:",
        ("test_what_somebody_asks_for_who_was_mentioned_is_asked_and_answered",),
    ),
    Mutant(
        "mentionable:relay:forwarded",
        "guards/admission/children.py",
        "capabilities=stated.unrelayed())",
        "capabilities=stated)",
        ("test_a_call_that_an_agent_makes_itself_is_relayed_by_nobody",),
    ),
    Mutant(
        "mentionable:webfinger:twins",
        "gateway/cards/mentions.py",
        "if len(alike) == 1 and _is_local(name)]",
        "if _is_local(name)]",
        ("test_what_leads_to_nobody_is_not_found",),
    ),
    Mutant(
        "mentionable:webfinger:asked",
        "wire/mentions/webfinger.py",
        "or subject.lower() != acct_of(address):",
        "or not subject:",
        ("test_what_tells_of_another_or_leads_astray_is_refused",),
    ),
    Mutant(
        "mentionable:hub:context",
        "gateway/own_tasks/hub.py",
        "if name is None and _names_context(claim):",
        "if name == claim:",
        ("test_what_follows_in_a_context_stays_with_its_agent",),
    ),
    Mutant(
        "mentionable:stranger:key",
        "runtime/agents/stranger.py",
        "if not known.keys or known.keys & found.keys:",
        "if known:",
        ("test_a_key_that_changed_is_refused_until_a_person_says_yes",),
    ),
    Mutant(
        "mentionable:stranger:price",
        "runtime/agents/stranger.py",
        "if price > meeting.price_limit:",
        "if price < 0:",
    ),
)

POLICIES = (
    Mutant(  # reading
        "mentionable:policy:unknown-kind",
        "runtime/peers/a2a/progress.py",
        "return _waiting(asked) if asked else None",
        "return None",
        ("test_wherever_a_part_stands_it_is_no_success",),
    ),
    Mutant(
        "mentionable:policy:errors",
        "wire/dialects/a2a/client/reports.py",
        "found.policies = tuple(",
        "_ = tuple(",
        ("test_a_part_beside_an_error_is_asked_and_not_tried_again",),
    ),
    Mutant(  # writing
        "mentionable:policy:kinds",
        "wire/dialects/a2a/extensions/__init__.py",
        "    if POLICY_URI not in uris:\n        return words\n",
        "    if POLICY_URI not in ():\n        return words\n",
        ("test_what_an_agent_asks_for_is_a_part_of_its_kind",),
    ),
    Mutant(  # a state is good once
        "mentionable:policy:state",
        "gateway/own_tasks/continuation.py",
        "    if not asked and claim.resumes is not None:\n        raise PolicyStateInvalid\n",
        "",
        ("test_a_state_is_good_once",),
    ),
    Mutant(
        "mentionable:policy:killed-single-use",
        "runtime/peers/a2a/tasks.py",
        "return explained(await self.begin(), NOT_TAKEN)",
        "return await self.begin()",
        ("test_what_was_taken_before_a_kill_is_asked_again_and_says_so",),
    ),
    Mutant(  # a link is bound to the host of its agent
        "mentionable:policy:url",
        "wire/dialects/a2a/extensions/questions/policy_part.py",
        "asked.url is not None and authority_of(asked.url) in hosts",
        "asked.url is not None",
        ("test_a_link_that_leads_elsewhere_is_shown_to_nobody",),
    ),
    Mutant(
        "mentionable:policy:callback",
        "gateway/own_tasks/resolutions.py",
        "is_ours = asked.amount is not None or asked.kind in _ASKED_HERE",
        "is_ours = False",
        (
            "test_what_the_agent_cannot_know_of_its_page_it_cannot_answer",
            "test_what_would_be_debited_here_its_seller_cannot_agree_to",
        ),
    ),
    Mutant(
        "mentionable:policy:shown",
        "cli/chat/decision.py",
        'or (word == DONE and question.get("url"))',
        "",
    ),
    Mutant(
        "mentionable:tools:events",
        "wire/dialects/a2a/extensions/tool_events.py",
        '"type": CALL, "toolCallId": event.id,',
        '"type": CALL, "toolCallId": event.name,',
    ),
)
