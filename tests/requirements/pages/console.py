"""The console: pages for people, over the API, for whoever has signed in."""

from tests.requirements.rows import Row

_SHELL = "tests/console/test_shell.py::"
_SIGN_IN = "tests/console/test_sign_in.py::"
_RUNS = "tests/console/runs/test_pages.py::"
_BARS = "tests/console/runs/test_waterfall.py::"
_LIVE = "tests/console/test_live.py::"
_WIRE = "tests/console/runs/test_wire.py::"
_SENT = "tests/console/runs/test_wire_sent.py::"
_PARTNERS = "tests/gateway/partners/test_directory.py::"
_MONEY = "tests/gateway/money/"
_PLAY = "tests/console/operations/test_playground.py::"
_CHANGES = "tests/gateway/configuration/test_changes.py::"
_CHANGES_KILLED = "tests/gateway/configuration/test_changes_killed.py::"
_EDIT = "tests/config/sections/test_edit.py::"
_AUDIT = "tests/browser/test_audit_pages.py::"
_TRIES = "tests/browser/test_change_pages.py::"
_FORMS = "tests/console/test_forms.py::"
_CHAT = "tests/console/owner/test_chat.py::"
_INBOX = "tests/console/owner/test_inbox.py::"
_MEMORY = "tests/console/owner/test_memory.py::"
_TALK = "tests/browser/test_chat_page.py::"
_AGENTS = "tests/console/operations/test_agents.py::"
_LEDGER = "tests/console/operations/test_ledger.py::"
_KEYS = "tests/console/operations/test_keys.py::"
_TRIGGERS = "tests/console/operations/test_triggers.py::"
_PEOPLE = "tests/console/operations/test_people.py::"
_SETTINGS = "tests/console/operations/test_settings.py::"
_HOUSE = "tests/browser/test_operation_pages.py::"
_BROWSER = "tests/browser/test_run_page.py::"
_MANY = "tests/browser/test_many.py::"
_LINK = "tests/assembly/console/test_link.py::"
_ATTACKS = "tests/console/test_shell_attacks.py::"
_ROLES = "tests/console/test_shell_roles.py::"
_OTHERS = "tests/console/owner/test_inbox_others.py::"
_STORED = "tests/browser/hostile/test_stored.py::"
_DRAWN = "tests/browser/hostile/test_live_chat.py::"

ROWS = (
    Row(
        "console:signed-in",
        "A page is shown to whoever has signed in by a one-time link or by a token of hers, and to "
        "nobody else, who is shown how to sign in.",
        "console, sign-in",
        (
            _SHELL + "test_nobody_is_shown_a_page_and_is_told_how_to_sign_in",
            _SIGN_IN + "test_somebody_signs_in_by_her_token_and_out_again",
            _SIGN_IN + "test_a_link_leads_to_the_console",
            _SIGN_IN + "test_a_wrong_token_signs_nobody_in",
            _SIGN_IN + "test_the_token_of_a_machine_signs_nobody_in",
            _SIGN_IN + "test_a_browser_that_asks_for_the_root_is_led_to_the_console",
        ),
    ),
    Row(
        "console:roles",
        "Every page and every action asks for the permission that its row names; what somebody may "
        "not see is not there.",
        "console, roles",
        (
            _SHELL + "test_a_role_may_what_the_row_says_and_no_more",
            _ROLES + "test_each_role_is_let_in_where_its_permissions_say_so_and_nowhere_else",
            _ROLES + "test_only_what_signs_in_and_draws_is_open_to_everybody",
            _ROLES + "test_every_row_that_is_served_is_in_the_table",
            _OTHERS + "test_nobody_does_anything_to_what_is_anothers",
            _OTHERS + "test_who_only_looks_changes_nothing_that_is_hers_either",
            _SHELL + "test_only_pages_that_somebody_may_see_are_listed",
            _ATTACKS + "test_every_row_is_refused_without_its_permission",
            _RUNS + "test_a_run_of_somebody_else_is_not_there",
            _RUNS + "test_why_is_for_who_sees_all_runs",
        ),
    ),
    Row(
        "console:csrf",
        "A change that does not show the csrf token of its session, or that another site's page "
        "sends, is refused and does nothing.",
        "console, CSRF",
        (
            _SHELL + "test_a_change_without_the_csrf_token_is_refused",
            _ROLES + "test_no_change_of_the_whole_api_is_made_without_the_csrf_token",
            _SHELL + "test_the_page_of_another_site_reads_and_changes_nothing",
            _SIGN_IN + "test_the_page_of_another_site_signs_nobody_in",
        ),
    ),
    Row(
        "console:scripts",
        "No page runs a script but the gateway's own files, and what others wrote is text "
        "wherever it is shown.",
        "console, CSP",
        (
            _SHELL + "test_a_page_is_guarded_against_scripts_frames_and_other_hosts",
            _RUNS + "test_what_somebody_wrote_is_text_in_every_page",
            _ATTACKS + "test_what_is_replayed_is_text",
            _STORED + "test_what_is_stored_is_text_on_every_page",
            _STORED + "test_what_a_page_is_asked_for_is_text_on_it",
            _STORED + "test_what_is_kept_is_text_wherever_it_is_opened",
            _STORED + "test_the_drawers_show_text",
            _STORED + "test_what_is_refused_is_told_as_text",
            _STORED + "test_what_is_stored_adds_no_event_to_a_stream",
            _DRAWN + "test_what_agents_stream_is_drawn_as_text",
            _DRAWN + "test_tools_and_questions_are_drawn_as_text",
        ),
    ),
    Row(
        "console:names",
        "A page is shown under a name of this gateway or a plain address, so that no name of "
        "somebody else can be made to lead to it.",
        "console, DNS rebinding",
        (
            _SHELL + "test_a_name_of_somebody_else_that_leads_here_is_refused",
            _SHELL + "test_a_name_of_ours_is_shown_its_pages",
        ),
    ),
    Row(
        "console:fixation",
        "Signing in makes a new session, whatever cookie a browser brought, and leads to a path of "
        "the console alone.",
        "console, session fixation and open redirect",
        (
            _SIGN_IN + "test_signing_in_gives_a_new_session_whatever_cookie_there_was",
            _SIGN_IN + "test_who_has_signed_in_goes_on_to_a_page_of_the_console_alone",
            _ATTACKS + "test_a_run_that_is_asked_for_by_its_id_leads_nowhere_else",
        ),
    ),
    Row(
        "console:overview",
        "The overview says that everything looks right, or lists what does not, each with its fix, "
        "as the doctor finds it.",
        "console, page 1",
        ("tests/console/test_overview.py::test_the_overview_tells_what_the_doctor_finds",),
    ),
    Row(
        "console:link",
        "Whoever starts a gateway is told where its console is and, on a terminal and where there "
        "is one administrator with one token, given a link that signs her in once.",
        "console, sign-in",
        (
            _LINK + "test_the_only_administrator_signs_in_by_the_link_on_the_terminal",
            _LINK + "test_where_there_is_a_doubt_the_command_is_named",
            _LINK + "test_a_log_is_shown_no_link",
        ),
    ),
    Row(
        "console:twins",
        "Every page has a twin that ends in .json and has the same data.",
        "console, everywhere",
        (
            _SHELL + "test_a_page_has_a_twin_with_its_data",
            _SHELL + "test_a_program_with_a_token_reads_the_twins",
            _RUNS + "test_a_run_whose_id_looks_like_a_twin_has_both",
        ),
    ),
    Row(
        "console:run",
        "A run is shown as a waterfall, a chain of organisations by depth, a transcript, its wire, "
        "its bill and the verdicts of the guards.",
        "console, page 3",
        (
            _RUNS + "test_a_run_is_drawn_with_its_hops_its_money_and_what_was_said",
            _BARS + "test_a_bar_stands_where_its_time_was_and_what_waits_is_hatched",
            _BARS + "test_the_critical_path_is_what_the_end_waited_for",
            _BARS + "test_an_organisation_has_one_number_in_all_pictures_and_ours_is_the_first",
            _BARS + "test_the_chain_has_a_lane_for_each_organisation_and_a_column_for_each_depth",
            _RUNS + "test_the_wire_of_a_turn_shows_the_chain_and_no_credential",
            _BROWSER + "test_somebody_signs_in_and_watches_a_run_of_two_organisations",
            _BROWSER + "test_a_turn_is_replayed_and_its_hop_gets_a_ring",
        ),
    ),
    Row(
        "console:busy",
        "With 200 runs going on and 5,000 events in one of them its page is painted at once, and "
        "changes without being loaded anew.",
        "console, must show 4",
        (
            _MANY + "test_the_pages_of_a_busy_gateway_are_painted_at_once_and_go_on",
            _BROWSER + "test_an_abort_that_is_no_closed_stream_is_told",
        ),
    ),
    Row(
        "console:wire",
        "Of a hop the path, the headers of its chain, who signed and what was signed are shown as "
        "they were, in each dialect, for what came and for what was sent; no credential is, and "
        "what is not kept is named.",
        "console, page 3 (d)",
        (
            _WIRE + "test_a_chat_shows_its_path_and_no_header_that_it_did_not_bring",
            _WIRE + "test_a_chat_shows_the_six_headers_that_it_brought",
            _WIRE + "test_a_message_of_a2a_shows_the_path_of_its_binding",
            _WIRE + "test_a_message_of_agents_api_shows_its_path",
            _WIRE + "test_a_signed_call_shows_who_signed_and_what_was_signed",
            _SENT + "test_what_we_signed_is_what_the_other_side_has_verified",
            _SENT + "test_a_call_with_a_token_shows_the_headers_that_came_and_no_token",
            _SENT + "test_of_a_call_that_never_left_no_header_is_shown",
            _SENT + "test_a_travel_document_is_named_and_not_shown",
            _AUDIT + "test_the_drawer_of_a_hop_shows_what_was_sent_to_others",
            _WIRE + "test_a_call_inside_the_gateway_shows_no_request",
        ),
    ),
    Row(
        "console:replay",
        "A turn is asked again from its page: as the same turn, by whoever made it, and then it is "
        "answered from its record and costs nothing; or as a new turn of whoever asks.",
        "console, page 3 (d)",
        (
            _WIRE + "test_a_turn_that_is_replayed_is_answered_from_its_record",
            _WIRE + "test_a_turn_is_asked_again_as_a_new_one",
            _WIRE + "test_nobody_replays_the_turn_of_somebody_else_as_that_turn",
            _WIRE + "test_who_may_not_call_an_agent_does_not_by_a_replay",
        ),
    ),
    Row(
        "console:runs",
        "The list of runs is filtered by words, and shows those that wait or were refused first.",
        "console, page 2",
        (
            _RUNS + "test_the_list_shows_the_runs_that_fit",
            _RUNS + "test_runs_that_were_refused_stand_before_the_others",
        ),
    ),
    Row(
        "console:live",
        "What is watched is read once for all who see the same, and sent to each as it changes, "
        "until it has ended or her session has.",
        "console, live by SSE",
        (
            _RUNS + "test_a_run_is_followed_live_until_it_has_ended",
            _LIVE + "test_however_many_watch_it_is_read_once_for_all_of_them",
            _LIVE + "test_who_has_left_is_shown_nothing_more",
        ),
    ),
    Row(
        "console:keyboard",
        "The pages are walked by keyboard.",
        "console, everywhere",
        (_BROWSER + "test_the_pages_are_walked_by_keyboard",),
    ),
    Row(
        "console:chat",
        "A conversation is shown with who said what, its tools and its questions, and found by its "
        "words; an answer is drawn as it comes.",
        "console, page 4",
        (
            _CHAT + "test_a_conversation_is_shown_with_who_said_what",
            _CHAT + "test_a_tool_that_was_used_is_a_row_of_its_answer",
            _CHAT + "test_conversations_are_found_by_what_was_said",
            _CHAT + "test_a_conversation_of_somebody_else_is_not_there",
            _CHAT + "test_a_conversation_is_renamed_put_away_and_deleted",
            _CHAT + "test_who_only_reads_says_and_stops_nothing",
            _TALK + "test_somebody_talks_to_agents_and_watches_them_answer",
            _TALK + "test_somebody_pays_in_the_conversation_that_asks_her",
        ),
    ),
    Row(
        "console:stop",
        "The stop button cancels the run of an answer, with all that it has called.",
        "console, page 4",
        (_CHAT + "test_stop_ends_the_answer_and_all_that_it_has_called",),
    ),
    Row(
        "console:playground",
        "A call to an agent of this gateway is tried in each mode, as oneself, as nobody or with "
        "another token of one's own, and with a fault in the request: it comes in by the front "
        "door, and what is refused there is shown.",
        "console, page 4",
        (
            _PLAY + "test_a_call_is_made_in_the_mode_that_was_chosen",
            _PLAY + "test_a_task_is_taken_on_and_looked_at",
            _PLAY + "test_a_fault_is_refused_by_the_front_door",
            _PLAY + "test_a_call_that_takes_longer_than_its_second_is_ended",
            _PLAY + "test_another_token_is_taken_if_it_is_one_of_hers",
            _PLAY + "test_what_is_no_choice_is_refused_and_nobody_elsewhere_is_called",
            _PLAY + "test_who_only_looks_plays_with_nothing",
            _TRIES + "test_somebody_tries_calls_and_sees_how_they_are_refused",
        ),
    ),
    Row(
        "console:inbox",
        "What agents ask is listed with from whom, on which way, for how much and until when, and "
        "answered there: with changed arguments, for the future, or several declined at once.",
        "console, page 5",
        (
            _FORMS + "test_a_form_says_what_is_decided",
            _FORMS + "test_a_form_without_an_outcome_decides_nothing",
            _INBOX + "test_who_asks_on_which_way_for_what_and_until_when_is_listed",
            _INBOX + "test_an_answer_has_the_call_go_on",
            _INBOX + "test_a_payment_is_paid_once_it_is_agreed_to",
            _INBOX + "test_a_tool_runs_with_the_arguments_that_were_changed",
            _INBOX + "test_an_answer_for_the_future_is_a_rule_that_can_be_ended",
            _INBOX + "test_several_are_declined_together_and_each_by_itself",
            _INBOX + "test_what_somebody_else_is_asked_is_not_there",
            _INBOX + "test_who_only_reads_answers_nothing",
            _TALK + "test_somebody_declines_in_the_inbox_by_keyboard",
        ),
    ),
    Row(
        "console:memory",
        "What agents keep for somebody is read, changed over the version that was shown, brought "
        "back and deleted by her alone.",
        "console, chat",
        (
            _MEMORY + "test_a_file_is_written_over_what_was_shown_and_brought_back",
            _MEMORY + "test_nobody_sees_or_changes_the_memory_of_another",
        ),
    ),
    Row(
        "console:agents",
        "The cards of an agent are shown as they are published, and judged; a skill is tried with "
        "a form made from its schema, by a call like any other. Agents of partners are listed with "
        "why these are trusted, how calls to them went and whether they are left alone.",
        "console, page 6",
        (
            _FORMS + "test_a_schema_becomes_fields_of_a_form",
            _FORMS + "test_what_is_filled_in_becomes_what_the_schema_says",
            _FORMS + "test_what_cannot_be_read_is_told_by_its_field",
            _FORMS + "test_a_field_that_stands_once_may_not_stand_twice",
            _AGENTS + "test_the_cards_of_an_agent_are_shown_and_judged",
            _AGENTS + "test_a_card_that_others_refuse_is_told_with_what_to_do",
            _AGENTS + "test_a_skill_is_tried_with_a_form_made_from_its_schema",
            _AGENTS + "test_who_may_not_call_an_agent_neither_sees_nor_tries_it",
            _AGENTS + "test_a_partner_is_shown_with_its_breaker_and_what_it_publishes_is_text",
            _AUDIT + "test_the_agents_of_a_partner_are_listed_with_why_it_is_trusted",
            _PARTNERS + "test_what_is_known_is_sorted_by_whose_it_is",
            _PARTNERS + "test_how_long_calls_take_is_of_those_that_ended_well",
            _PARTNERS + "test_the_breaker_of_a_partner_is_that_of_its_own_addresses",
            _PARTNERS + "test_a_partner_is_told_with_its_agents_and_why_it_is_trusted",
            _PARTNERS + "test_an_operator_is_told_how_calls_went_and_not_whom_we_trust",
            _PARTNERS + "test_who_only_looks_is_told_of_no_partner",
            _HOUSE + "test_the_pages_about_the_gateway_can_be_read_by_everybody",
        ),
    ),
    Row(
        "console:ledger",
        "What somebody has paid is summed by day, account and run as the ledger has it, drawn with "
        "a table beside each picture, and given as CSV without formulas and as JSON. Limits and "
        "budgets are shown as bars with their hard cap; who audits verifies the chain of hashes "
        "and compares with the statement of a partner.",
        "console, page 7",
        (
            _LEDGER + "test_a_day_has_what_was_paid_on_it_and_a_bar_of_its_height",
            _LEDGER + "test_shares_are_of_the_largest_and_the_largest_is_first",
            _LEDGER + "test_a_budget_tells_what_is_left_of_it",
            _LEDGER + "test_what_a_program_would_run_as_a_formula_is_text_in_the_table",
            _LEDGER + "test_the_page_sums_what_the_ledger_has",
            _LEDGER + "test_a_bar_shows_what_is_spent_and_held_of_a_hard_cap",
            _LEDGER + "test_who_audits_verifies_the_chain_and_others_do_not_see_it",
            _AUDIT + "test_somebody_audits_the_ledger_and_compares_it_with_a_partners",
            _MONEY + "test_budgets.py::test_who_is_bounded_sees_how_much_is_left_and_nobody_elses",
            _MONEY
            + "test_budgets.py::test_who_audits_sees_those_of_everybody_and_what_partners_may_owe",
            _MONEY
            + "test_chain.py::test_a_ledger_is_verified_on_request_and_what_was_found_is_told",
            _MONEY
            + "test_chain.py::test_one_walk_at_a_time_and_who_asks_meanwhile_is_told_how_far_it_is",
            _MONEY + "test_chain.py::test_a_walk_that_takes_too_long_is_ended",
            _MONEY
            + "test_comparison.py::test_a_partner_that_agrees_and_one_that_does_not_are_told",
            _MONEY + "test_comparison.py::test_nobody_compares_who_may_not_audit",
        ),
    ),
    Row(
        "console:keys",
        "Our key is rotated with an overlap or revoked, by who may `admin:keys`; no private key "
        "and no token is told.",
        "console, page 8",
        (
            _KEYS + "test_a_key_is_rotated_with_an_overlap_and_revoked",
            _KEYS + "test_a_rotation_that_makes_no_sense_is_refused",
            _KEYS + "test_nobody_but_an_admin_sees_or_changes_keys",
            _KEYS + "test_no_private_key_and_no_token_of_ours_is_told",
            _HOUSE + "test_somebody_rotates_the_key_of_the_gateway",
        ),
    ),
    Row(
        "console:triggers",
        "Hooks and schedules are made, fired, paused and deleted by whose they are; a secret is "
        "shown once.",
        "console, page 9",
        (
            _TRIGGERS + "test_a_schedule_is_made_fired_paused_and_deleted",
            _TRIGGERS + "test_the_secret_of_a_hook_is_shown_once",
            _TRIGGERS + "test_what_is_none_and_whose_it_is_not_is_not_there",
        ),
    ),
    Row(
        "console:people",
        "People are added, let do more or less, and ended by an admin alone.",
        "console, people",
        (
            _PEOPLE + "test_somebody_is_added_let_do_less_and_ended",
            _PEOPLE + "test_nobody_but_an_admin_sees_or_changes_people",
        ),
    ),
    Row(
        "console:settings",
        "Every setting in force is shown with where it came from, and a secret by its reference "
        "alone. One is changed by an admin: checked, shown as a difference, written over the file "
        "that was shown in one step with its comments kept, and taken over or put back.",
        "console, page 10",
        (
            _SETTINGS + "test_every_value_is_shown_with_where_it_came_from",
            _SETTINGS + "test_a_secret_is_told_by_its_reference_alone",
            _SETTINGS + "test_the_file_is_read_again_at_the_press_of_a_button",
            _SETTINGS + "test_nobody_but_an_admin_sees_the_settings_or_has_them_read",
            _CHANGES + "test_a_change_is_shown_then_written_and_taken_over",
            _CHANGES + "test_what_cannot_be_used_is_told_and_changes_nothing",
            _CHANGES + "test_a_file_that_was_changed_meanwhile_is_not_overwritten",
            _CHANGES + "test_a_file_that_is_read_only_is_left_alone",
            _CHANGES + "test_no_secret_is_changed_and_nothing_that_is_unknown",
            _CHANGES + "test_nobody_but_an_admin_changes_a_setting",
            _CHANGES + "test_the_page_shows_a_difference_and_applies_it",
            _CHANGES_KILLED + "test_a_gateway_that_is_killed_leaves_a_whole_file",
            _TRIES + "test_somebody_changes_a_setting_after_having_seen_the_difference",
            _EDIT + "test_a_value_is_changed_where_it_stands",
            _EDIT + "test_what_cannot_be_changed_line_by_line_is_refused",
        ),
    ),
)
