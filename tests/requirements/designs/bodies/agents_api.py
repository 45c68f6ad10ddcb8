"""The body dialect of agents-api: messages, runs that are run once, and pending actions."""

from tests.requirements.rows import Divergence, Row

_AT = "tests/interop/agents_api/"
_MESSAGES = _AT + "test_messages.py::"
_REFUSED = _AT + "test_refusals.py::"
_STREAMS = _AT + "test_streams.py::"
_RUNS = _AT + "test_runs.py::"
_ACTIONS = _AT + "test_actions.py::"
_CHAT = _AT + "test_chat.py::"
_OUT = _AT + "test_outbound.py::"
_TWO = _AT + "test_two_carnets.py::"

_NAMED = "tests/interop/budgets/test_named.py::"
_LOOP = (
    "The loop of an agent is its runtime's own: it goes on until its model has ended, unless a "
    "budget `turns` of the agent or of the token says how often that is asked."
)

ROWS = (
    Row(
        "agents-api:body:methods",
        "A message is sent by message/send or tasks/send, and streamed by message/stream or "
        "tasks/sendSubscribe.",
        "agents-api 1.9(b)",
        (
            _MESSAGES + "test_a_message_is_answered_with_a_task_that_is_completed",
            _STREAMS + "test_a_stream_is_deltas_and_then_the_task",
        ),
    ),
    Row(
        "agents-api:body:slug",
        "The id of an agent has letters, digits and ._- and is read as its slug.",
        "agents-api 1.9(b)",
        (
            _MESSAGES + "test_an_agent_is_named_by_its_slug",
            _REFUSED + "test_a_name_outside_its_characters_is_no_path_of_the_dialect",
            _REFUSED + "test_a_name_without_a_slug_may_not_be_called",
        ),
    ),
    Row(
        "agents-api:body:text",
        "The text is that of all text parts without a separator, those of the content type context "
        "left out, trimmed.",
        "agents-api 1.9(b)",
        (_MESSAGES + "test_the_text_is_all_text_parts_together_without_those_for_context",),
    ),
    Row(
        "agents-api:body:history",
        "Data with role and text is history: user and agent are kept, agent as assistant; others, "
        "blank and what is no text are dropped.",
        "agents-api 1.9(b), W49",
        (
            _MESSAGES + "test_data_parts_are_the_history_of_those_who_speak",
            _TWO + "test_history_crosses",
        ),
    ),
    Row(
        "agents-api:body:context-merged",
        "Client contexts are merged in order: what comes later wins.",
        "agents-api 1.9(b), W56",
        (_MESSAGES + "test_what_a_client_tells_of_itself_is_merged_and_stripped",),
    ),
    Row(
        "agents-api:body:stripped",
        "Declarations of tools, their callback and their timeout are stripped from client context.",
        "agents-api 1.9(b)",
        (
            _MESSAGES + "test_what_a_client_tells_of_itself_is_merged_and_stripped",
            _CHAT + "test_where_a_chat_came_from_is_ours_to_say",
        ),
    ),
    Row(
        "agents-api:body:tools",
        "A call of a tool and its result are a pair: an orphan, a duplicate and another name are "
        "errors of their own.",
        "agents-api 1.9(b), W50",
        (
            _MESSAGES + "test_a_tool_that_the_caller_has_run_is_told_with_its_result",
            _MESSAGES + "test_calls_and_results_of_tools_that_do_not_fit_are_refused",
        ),
    ),
    Row(
        "agents-api:body:files",
        "File parts and attachments reach the agent.",
        "agents-api 1.9(b)",
        (
            _MESSAGES + "test_files_of_a_message_reach_the_agent",
            _MESSAGES + "test_files_and_data_of_an_answer_stand_beside_its_text",
        ),
    ),
    Row(
        "agents-api:body:task",
        "The result is a task with the id of the run, the session, and a status with a message of "
        "the agent named after the run.",
        "agents-api 1.9(b)",
        (
            _MESSAGES + "test_a_message_is_answered_with_a_task_that_is_completed",
            _MESSAGES + "test_a_run_that_its_caller_does_not_name_has_a_name_of_ours",
        ),
    ),
    Row(
        "agents-api:body:state",
        "What is not complete has the state input-required, and everything else completed.",
        "agents-api 1.9(b), W52",
        (
            _MESSAGES + "test_a_tool_that_the_agent_wants_run_is_asked_for_and_answered",
            _ACTIONS + "test_a_run_that_waits_is_told_with_the_whole_action",
        ),
    ),
    Row(
        "agents-api:body:outcome",
        "A result tells its status, why it stopped and whether it may be tried again; what is not "
        "completed is not complete.",
        "agents-api 1.7",
        (
            _MESSAGES + "test_a_message_is_answered_with_a_task_that_is_completed",
            _MESSAGES + "test_an_agent_that_fails_is_an_error_in_the_frame",
            _ACTIONS + "test_a_run_that_waits_is_told_with_the_whole_action",
        ),
    ),
    Row(
        "agents-api:body:errors",
        "Errors are frames with the status 200: -32600 not 2.0, -32602 bad parameters, -32601 an "
        "unknown method by its name, -32603 a failure.",
        "agents-api 1.9(b)",
        (
            _REFUSED + "test_a_frame_that_is_not_json_rpc_is_refused_before_anything_else",
            _REFUSED + "test_an_unknown_method_is_named_in_the_refusal",
            _MESSAGES + "test_an_agent_that_fails_is_an_error_in_the_frame",
            _REFUSED + "test_an_agent_that_there_is_not_has_nobody_who_answers",
        ),
    ),
    Row(
        "agents-api:body:order",
        "Parameters are validated before the name of the method.",
        "agents-api 1.9(b)",
        (_REFUSED + "test_parameters_are_judged_before_the_name_of_the_method",),
    ),
    Row(
        "agents-api:body:forbidden",
        "Who may not call is told by the status 403 and agents_chat_jsonrpc_forbidden.",
        "agents-api 1.9(b)",
        (_REFUSED + "test_who_may_not_call_is_told_so_by_the_status_in_the_words_of_the_path",),
    ),
    Row(
        "agents-api:body:before",
        "Who is not known and a chain that is too deep are told by the status, with its ceiling.",
        "agents-api 1.11",
        (
            _REFUSED + "test_who_is_not_known_is_told_by_the_status",
            _REFUSED + "test_a_chain_that_is_too_deep_is_refused_with_its_ceiling",
        ),
    ),
    Row(
        "agents-api:stream:delta",
        "A stream has lines of data alone: deltas of the method message/delta with content, the "
        "name of a tool and its arguments, then one last frame.",
        "agents-api 1.9(b), W53",
        (
            _STREAMS + "test_a_stream_is_deltas_and_then_the_task",
            _STREAMS + "test_an_agent_that_fails_ends_its_stream_with_an_error",
            _STREAMS + "test_who_wants_no_words_as_they_come_gets_the_last_frame_alone",
        ),
    ),
    Row(
        "agents-api:stream:headers",
        "A stream is text/event-stream in UTF-8, stored by nobody and buffered by no proxy.",
        "agents-api 1.9(b)",
        (_STREAMS + "test_the_fields_of_a_stream_keep_everybody_from_storing_it",),
    ),
    Row(
        "agents-api:stream:refused",
        "What is refused of a stream is one error frame of it.",
        "agents-api 1.9(b)",
        (_REFUSED + "test_a_refusal_of_a_stream_is_one_frame_of_it",),
    ),
    Row(
        "agents-api:chat:members",
        "A chat has an agent and a message that are not blank, or is 400 "
        "agents_frontend_chat_invalid_input.",
        "agents-api 1.9(a)",
        (
            _CHAT + "test_a_chat_is_answered_with_its_reply_its_session_and_its_run",
            _CHAT + "test_a_chat_without_its_members_is_refused",
        ),
    ),
    Row(
        "agents-api:chat:forbidden",
        "Who may not chat is told by 403 agents_frontend_chat_forbidden.",
        "agents-api 1.9(a)",
        (_REFUSED + "test_who_may_not_call_is_told_so_by_the_status_in_the_words_of_the_path",),
    ),
    Row(
        "agents-api:chat:unavailable",
        "Without the ability that answers, a chat is 500 agents_frontend_chat_ability_unavailable.",
        "agents-api 1.9(a)",
        divergence=Divergence(
            "R35",
            "There is no registry of abilities that could lack it: the dialect is always "
            "served, and an agent that there is not is agents_chat_no_handler.",
        ),
    ),
    Row(
        "agents-api:chat:source",
        "The source of a chat is rest whatever its client says, and its client has a name.",
        "agents-api 1.9(a)",
        (_CHAT + "test_where_a_chat_came_from_is_ours_to_say",),
    ),
    Row(
        "agents-api:abilities",
        "Runs are asked for, cancelled, queued to and listed by abilities of their own.",
        "agents-api 1.9(c)",
        divergence=Divergence(
            "R35",
            "Abilities are WordPress's own registry. Runs are shown and cancelled at /runs, "
            "in whichever dialect they were asked.",
        ),
    ),
    Row(
        "agents-api:webhooks",
        "A webhook is signed with sha256= over its raw body; a bridge keeps an item until it is "
        "acknowledged.",
        "agents-api 1.9(d)",
        divergence=Divergence(
            "R35",
            "What is told of tasks goes out as the house's webhooks, signed as Standard "
            "Webhooks; hooks take sha256= from those who send so.",
        ),
    ),
    Row(
        "agents-api:run:claimed",
        "The id of a run is claimed before it runs; a replay is agents_chat_run_already_started, "
        "whole or streamed, and there is no cached response.",
        "agents-api 1.10",
        (
            _RUNS + "test_a_name_that_was_run_is_refused_and_nothing_runs_again",
            _RUNS + "test_another_message_under_the_same_name_is_refused_as_well",
            _RUNS + "test_a_run_that_failed_is_not_run_again_under_its_name",
            _RUNS + "test_of_many_who_send_one_name_at_a_time_one_is_run",
            _RUNS + "test_a_key_beside_it_does_not_let_a_name_run_twice",
            _RUNS + "test_the_same_boundary_holds_after_a_restart",
        ),
    ),
    Row(
        "agents-api:run:session",
        "The same id in another session is agents_chat_run_owner_forbidden.",
        "agents-api 1.10",
        (_RUNS + "test_the_same_name_in_another_session_is_not_the_callers_to_use",),
    ),
    Row(
        "agents-api:run:owner",
        "The same id of another owner is agents_chat_run_owner_forbidden.",
        "agents-api 1.10",
        divergence=Divergence(
            "R20",
            "A caller would learn which ids others use, and could use up theirs: an id is "
            "the caller's own, and somebody else's is like one that nobody has used.",
        ),
    ),
    Row(
        "agents-api:run:tenants",
        "A run, a session and an action of somebody else are like ones that there are not.",
        "tenants",
        (
            _RUNS + "test_the_name_of_somebody_elses_run_is_like_one_that_nobody_has_used",
            _ACTIONS + "test_an_action_of_somebody_else_is_like_one_that_there_is_not",
        ),
    ),
    Row(
        "agents-api:run:no-handler",
        "An agent that nobody answers for is agents_chat_no_handler.",
        "agents-api 1.10",
        (_REFUSED + "test_an_agent_that_there_is_not_has_nobody_who_answers",),
    ),
    Row(
        "agents-api:action:envelope",
        "A run that waits stops with the status approval_required, not complete, and the whole "
        "pending action in an envelope of the role tool.",
        "agents-api 1.8, W46",
        (
            _ACTIONS + "test_a_run_that_waits_is_told_with_the_whole_action",
            _STREAMS + "test_a_run_that_waits_ends_its_stream_with_what_it_waits_for",
            _CHAT + "test_a_chat_that_waits_has_its_actions_among_its_messages",
        ),
    ),
    Row(
        "agents-api:action:decision",
        "A decision is accepted or rejected: approved is an error that says so.",
        "agents-api 1.8, W44, W47",
        (
            _ACTIONS + "test_a_decision_lets_the_run_go_on",
            _ACTIONS + "test_no_other_word_is_a_decision",
        ),
    ),
    Row(
        "agents-api:action:resolve",
        "agents/resolve-pending-action takes action, decision, resolver and payload, and gives "
        "action, decision and result.",
        "agents-api 1.8",
        (
            _ACTIONS + "test_a_decision_lets_the_run_go_on",
            _ACTIONS + "test_what_is_decided_beside_is_given_to_the_agent",
            _ACTIONS + "test_a_run_may_wait_again_after_a_decision",
            _ACTIONS + "test_a_decision_that_is_sent_again_is_answered_with_what_came_of_it",
            _ACTIONS + "test_actions_have_paths_of_their_own",
        ),
    ),
    Row(
        "agents-api:action:errors",
        "An action or a resolver that is missing has an error of its own.",
        "agents-api 1.8",
        (_ACTIONS + "test_what_a_decision_lacks_is_named",),
    ),
    Row(
        "agents-api:action:stores",
        "Without a store or a resolver of the host, an action is _no_store or _no_resolver.",
        "agents-api 1.8, W47",
        divergence=Divergence(
            "R35",
            "The store of runs is the store of actions: there is always one.",
        ),
    ),
    Row(
        "agents-api:action:get",
        "An action that is asked for and is not there is null.",
        "agents-api 1.8",
        (
            _ACTIONS + "test_an_action_that_there_is_not_is_null",
            _ACTIONS + "test_an_action_is_shown_while_it_waits_and_when_it_was_decided",
        ),
    ),
    Row(
        "agents-api:action:permission",
        "Actions are decided by administrators by default.",
        "agents-api 1.8",
        divergence=Divergence(
            "R35",
            "Who asked decides by this dialect; others decide in the inbox, as they may there.",
        ),
    ),
    Row(
        "agents-api:action:memory",
        "A decision may be remembered for the same tool.",
        "agents-api 1.8",
        divergence=Divergence(
            "R35",
            "A rule for the future is made in the inbox, where the person sees what it covers.",
        ),
    ),
    Row(
        "agents-api:loop:tool-budget",
        "A budget of calls of tools, of all or of one, ends a run after so many, and is named once "
        "with what was counted and its ceiling.",
        "agents-api 1.7, W40, W41",
        (
            _NAMED + "test_of_three_calls_in_one_answer_the_two_are_made_that_a_budget_has",
            _NAMED + "test_a_budget_of_one_tool_leaves_the_others_alone",
            _NAMED + "test_a_token_has_budgets_of_its_own_beside_those_of_the_agent",
            _NAMED + "test_a_budget_that_is_used_to_its_end_and_no_further_ends_nothing",
            _NAMED + "test_what_is_no_budget_is_refused_with_those_that_there_are",
            "tests/core/money/test_budget.py::test_what_is_no_named_budget_is_refused",
        ),
        Divergence(
            "R35",
            "There a run ends with the last call that its budget has. Here it ends where one more "
            "is wanted, so that a model can use what the last one gave.",
        ),
    ),
    Row(
        "agents-api:loop:turns-budget",
        "A budget of turns that somebody has set ends a run as budget_exceeded.",
        "agents-api 1.7",
        (
            _NAMED + "test_a_model_is_not_asked_more_often_than_its_turns",
            _NAMED + "test_who_asks_by_agents_api_is_told_that_it_was_a_budget",
        ),
    ),
    Row(
        "agents-api:loop:wall-clock",
        "A budget of time is looked at before each turn.",
        "agents-api 1.7",
        (_NAMED + "test_a_model_is_not_asked_again_when_its_time_is_over",),
    ),
    Row(
        "agents-api:loop:turns",
        "A run has one turn by default.",
        "agents-api 1.7, W43",
        divergence=Divergence("R35", _LOOP),
    ),
    Row(
        "agents-api:loop:subagents",
        "The names of subagents are slugs, blank ones dropped; what is no list is an error.",
        "agents-api W55",
        divergence=Divergence(
            "R35",
            "Agents are sections of the configuration, whose names are checked.",
        ),
    ),
    Row(
        "agents-api:outbound:call",
        "An agent of this kind is called by a message, whole or streamed, and its answer is read "
        "with its tools, files and errors.",
        "R35",
        (
            _OUT + "test_an_agent_there_is_asked_by_a_message_and_told_who_calls",
            _OUT + "test_a_stream_there_is_read_as_it_comes",
            _OUT + "test_history_and_tools_that_were_run_and_files_go_along",
            _OUT + "test_an_error_there_is_told_without_its_words",
            _TWO + "test_text_crosses_whole_and_streamed",
            _TWO + "test_tools_of_the_agent_cross_in_a_stream",
        ),
    ),
    Row(
        "agents-api:outbound:actions",
        "A pending action there is an interrupt here, and its answer is brought there as a "
        "decision.",
        "R16, R35",
        (
            _OUT + "test_an_action_there_is_a_question_here_and_its_answer_goes_there",
            _TWO + "test_a_question_crosses_and_so_does_its_answer",
            _TWO + "test_two_questions_of_one_run_cross_one_after_the_other",
        ),
    ),
    Row(
        "agents-api:outbound:context",
        "A call out tells the acting agent, its user, our URL, the depth and the root; a caller "
        "overrides none of them, nor the token.",
        "agents-api 1.11",
        (
            _OUT + "test_an_agent_there_is_asked_by_a_message_and_told_who_calls",
            _OUT + "test_the_agent_that_calls_is_named_and_not_what_a_caller_says_of_itself",
        ),
    ),
)
