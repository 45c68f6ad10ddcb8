"""What agents ask for before they go on: who may answer it, and that nobody between swallows it."""

from tests.requirements.rows import Row

_OPENAI = "tests/interop/interrupts/test_openai.py::"
_SAMVAD = "tests/interop/interrupts/test_samvad.py::"
_KILLED = "tests/interop/interrupts/test_killed.py::"
_BOX = "tests/interop/interrupts/test_middlebox.py::"
_ISSUE = "tests/runtime/receipts/test_issue.py::"
_POLICIES = "tests/runtime/peers/test_policies.py::"
_POLICY = "tests/wire/dialects/test_policy.py::"
_WAITING = "tests/gateway/test_approvals_waiting.py::"
_PLACES = "tests/stores/turn/test_answers_places.py::"
_VALUES = "tests/interop/interrupts/test_values.py::"
_ANSWERS = "tests/runtime/skills/test_answers.py::"
_PROFILE = "tests/security/signed/test_profile.py::"
_SIBLINGS = "tests/interop/interrupts/test_siblings.py::"
_INBOX = "tests/security/callers/test_inbox.py::"
_DEPTH = "tests/security/test_depth.py::"
_LAST_HOP = "tests/gateway/endpoint/test_depth.py::"
_PEOPLE = "tests/gateway/test_approvals_people.py::"
_STORED = "tests/stores/turn/test_answers.py::"
_APPROVALS = "tests/gateway/test_approvals.py::"
_RULES = "tests/gateway/test_approvals_rules.py::"

ROWS = (
    Row(
        "security:a27:question",
        "What a listed Carnet asks for before it answers is proved as its answers are: who is on "
        "the way can neither ask in its place nor change what it asks for.",
        "security.md A27",
        (
            _BOX + "test_a_question_that_was_changed_on_the_way_is_none",
            _BOX + "test_a_question_in_the_place_of_an_answer_is_none",
            _ISSUE + "test_what_a_call_waits_for_is_proved_as_an_answer_is",
        ),
    ),
    Row(
        "security:a45:state",
        "An answer whose state is forged, used, late, of another turn or another caller's is "
        "refused with 409; no call, no charge, and nothing is told.",
        "security.md A45; model.md section 2",
        (
            _OPENAI + "test_a_resolution_is_good_once_and_for_nothing_else",
            _OPENAI + "test_another_caller_with_the_right_state_is_told_nothing",
            _OPENAI + "test_a_task_waits_as_running_and_shows_its_owner_what_for",
            _SAMVAD + "test_a_payment_asked_for_two_envelopes_down_is_answered_at_the_origin",
        ),
    ),
    Row(
        "security:a45:form",
        "An answer that is not in its form is refused, and so is one that a signature leaves out.",
        "security.md A45; R9",
        (
            _OPENAI + "test_what_is_not_the_form_of_a_resolution_is_refused",
            _POLICY + "test_a_resolution_in_another_form_is_refused",
            _POLICY + "test_two_resolutions_are_none",
            _PROFILE + "test_a_header_that_was_added_on_the_way_is_refused",
        ),
    ),
    Row(
        "security:a45:names",
        "What somebody elsewhere asks for has a name of ours and an address that is not ours.",
        "security.md A45",
        (
            _POLICIES + "test_nobody_elsewhere_chooses_the_name_of_a_question_of_another_turn",
            _POLICIES + "test_nobody_elsewhere_speaks_for_an_agent_of_ours",
        ),
    ),
    Row(
        "security:a96:places",
        "Of one caller no more calls wait for an answer than may, exactly; the next one fails and "
        "holds nothing, and nobody takes the places of another.",
        "attack A96",
        (
            _WAITING + "test_a_call_beyond_the_bound_fails_plainly_and_holds_nothing",
            _WAITING + "test_another_caller_waits_as_if_nobody_else_did",
            _WAITING + "test_the_end_of_a_call_that_was_answered_makes_room_for_the_same_request",
            _PLACES + "test_a_turn_that_was_answered_keeps_its_place_until_it_has_ended",
            _WAITING + "test_the_bound_holds_for_tasks_too",
            _PLACES + "test_as_many_turns_of_one_caller_wait_as_may_and_no_more",
        ),
    ),
    Row(
        "security:a96:below",
        "What waits below a call that has ended is ended with it, and gives back what it held.",
        "attack A96",
        (
            _WAITING + "test_what_an_agent_leaves_waiting_that_goes_on_without_it_is_ended",
            _PLACES + "test_what_waits_below_a_turn_ends_with_it",
            _WAITING
            + "test_a_run_that_is_cancelled_while_it_waits_ends_and_gives_back_what_it_held",
            _VALUES + "test_what_waits_elsewhere_for_a_call_that_was_cancelled_ends_with_it",
        ),
    ),
    Row(
        "security:a97:value",
        "An answer that was not asked for is refused with 400 however it came, and the question "
        "stays open.",
        "attack A97",
        (
            _VALUES + "test_a_value_that_was_not_asked_for_is_refused_and_the_question_stays_open",
            _VALUES + "test_a_child_is_given_what_its_parent_was_answered",
            _SAMVAD + "test_a_value_that_only_the_asker_can_compare_is_asked_for_again",
            _VALUES + "test_a_value_that_no_header_can_carry_is_refused_when_it_is_given",
            _ANSWERS + "test_an_answer_is_one_of_the_options",
            _ANSWERS + "test_an_answer_has_the_shape_of_the_schema_with_its_references",
        ),
    ),
    Row(
        "security:a97:work",
        "Whatever schema an agent elsewhere sends, an answer is compared with it in bounded time.",
        "attack A97",
        (
            _VALUES + "test_a_schema_without_end_keeps_nobody_waiting",
            _ANSWERS + "test_a_schema_that_nobody_can_hold_to_costs_no_time",
            _ANSWERS + "test_a_value_that_is_long_for_its_schema_is_refused_unread",
        ),
    ),
    Row(
        "security:a98:again",
        "The turn of an agent that asks without end, here or elsewhere, fails in the end.",
        "attack A98",
        (
            _VALUES + "test_an_agent_that_never_stops_asking_is_ended",
            _VALUES
            + "test_a_gateway_elsewhere_that_asks_the_same_again_and_again_is_not_asked_for_ever",
        ),
    ),
    Row(
        "security:a97:shown",
        "What an agent elsewhere offers to choose from is shown as it is, or not at all.",
        "attack A97; R43",
        (_VALUES + "test_options_that_nobody_could_read_or_write_are_not_offered",),
    ),
    Row(
        "security:a46:surface",
        "What an agent three organisations away asks for reaches the origin with its address; who "
        "is between neither swallows nor repeats it, whichever of them dies meanwhile.",
        "security.md A46; 003 composition rules",
        (
            _OPENAI
            + "test_a_payment_asked_for_three_hops_down_reaches_the_origin_and_is_answered_there",
            _SIBLINGS + "test_a_payment_that_one_of_two_siblings_leads_to_is_approved_in_the_inbox"
            "_of_the_origin",
            _OPENAI + "test_a_stream_that_waits_before_it_began_is_an_error_and_after_it_one_frame",
            _SAMVAD + "test_a_stream_of_envelopes_tells_it_in_its_last_frame",
            _SAMVAD + "test_a_task_that_waits_is_answered_at_the_origin",
            _POLICIES + "test_it_is_neither_repeated_nor_held_against_the_callee",
            _POLICIES + "test_a_kind_that_nobody_knows_is_kept_and_waited_for",
            _KILLED + "test_a_gateway_that_dies_with_the_answer_in_its_hands_ends_the_turn_once",
        ),
    ),
    Row(
        "security:a47:final",
        "An agent at the last hop that calls on all the same is refused before anything is sent, "
        "also when it was answered what it had asked for.",
        "security.md A47",
        (
            _DEPTH + "test_the_last_hop_that_calls_on_is_refused_and_its_trace_says_so",
            _LAST_HOP + "test_the_final_hop_answers_but_does_not_call_on",
            _INBOX + "test_an_agent_at_the_last_hop_that_was_answered_calls_on_as_little_as_before",
        ),
    ),
    Row(
        "security:a110:read",
        "What somebody else is asked can be neither read nor answered nor guessed: the answer is "
        "the one for a name that nobody has. No page tells the secret of a question.",
        "A110, A67",
        (
            _INBOX + "test_what_somebody_else_is_asked_looks_as_if_nobody_were_asked",
            _INBOX + "test_a_name_that_is_nearly_that_of_a_question_finds_nothing",
            _INBOX + "test_who_uses_the_ids_of_another_is_asked_a_question_of_its_own",
            _INBOX + "test_no_page_of_a_question_tells_its_secret",
            _APPROVALS + "test_what_somebody_else_is_asked_is_not_there",
        ),
    ),
    Row(
        "security:a110:once",
        "A question is answered once, however often, by whomever and on whichever way it is tried: "
        "the same answer again changes nothing, another one is refused.",
        "A110; model.md section 2",
        (
            _INBOX + "test_an_answer_that_is_sent_again_changes_nothing_whoever_sends_it",
            _INBOX + "test_of_two_who_answer_at_once_by_inbox_and_by_wire_one_prevails",
            _APPROVALS + "test_two_who_answer_at_once_do_not_both_prevail",
            _SIBLINGS + "test_a_payment_that_one_of_two_siblings_leads_to_is_approved_in_the_inbox"
            "_of_the_origin",
        ),
    ),
    Row(
        "security:a110:money",
        "Who may approve for others, or forwards their credential, spends none of their money.",
        "A110, R45",
        (
            _INBOX + "test_nobody_who_may_approve_agrees_to_the_payment_of_another",
            _INBOX + "test_who_forwards_the_credential_of_another_agrees_to_none_of_its_payments",
            _PEOPLE + "test_who_forwards_does_not_agree_in_the_place_of_who_pays",
            _PEOPLE + "test_a_token_that_may_not_pay_agrees_to_no_payment",
            _PEOPLE + "test_a_token_that_only_reads_answers_nothing",
            _PEOPLE + "test_whom_a_payer_named_agrees_as_far_as_the_ceiling_goes",
            _PEOPLE + "test_whom_a_payer_named_agrees_to_nobody_elses_payments",
        ),
    ),
    Row(
        "security:a46:room",
        "A payment without room is refused where it is answered, with what is needed, and its "
        "question stays open; what only another organisation can know is asked for again.",
        "A46, R53",
        (
            _APPROVALS + "test_who_has_less_left_than_is_asked_for_cannot_agree",
            _OPENAI + "test_an_answer_that_cannot_be_paid_is_refused_and_not_used",
            _OPENAI + "test_a_payment_beyond_the_credit_at_a_peer_is_asked_for_again_and_paid_once"
            "_there_is_room",
            _STORED + "test_a_payment_that_a_turn_below_has_no_room_for_is_refused_where_it_is"
            "_answered",
        ),
    ),
    Row(
        "security:a110:ended",
        "From the moment a person has ended nobody answers what she was asked.",
        "A110, R28",
        (_STORED + "test_nobody_answers_for_a_person_who_has_ended",),
    ),
    Row(
        "security:a110:rules",
        "What was answered for the future is answered so for every question of a call, of a stream "
        "and of a task, as often as a turn may ask, and as far as its ceiling goes; each rule is "
        "listed with its question and is taken back by whoever gave it.",
        "R45; 002 approvals",
        (
            _RULES + "test_rules_answer_one_question_of_a_call_after_another",
            _RULES + "test_rules_answer_what_a_stream_asks_for_and_nothing_is_said_twice",
            _RULES + "test_rules_answer_what_a_task_asks_for",
            _RULES + "test_rules_answer_no_more_than_one_turn_may_ask",
            _APPROVALS + "test_a_rule_pays_as_far_as_its_ceiling_goes",
            _APPROVALS + "test_what_is_remembered_is_not_asked_again_until_it_is_taken_back",
        ),
    ),
    Row(
        "security:a110:meant",
        "Leave that was given is no money that was agreed to, also if their asker gives both the "
        "same secret; what is remembered is that question, once.",
        "A110, R45",
        (
            _STORED + "test_of_two_questions_with_one_secret_the_one_that_was_meant_is_answered",
            _PEOPLE + "test_what_is_remembered_is_that_question_and_once",
        ),
    ),
)
