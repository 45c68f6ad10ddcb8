"""Memory: what agents keep for a person, as seed 002 has the model read it and R46 decides it."""

from tests.requirements.rows import Row

_TOOLS = "tests/interop/engine/test_memory.py::"
_EXAMPLE = "tests/interop/engine/test_memory_example.py::"
_OTHERS = "tests/security/callers/test_memory.py::"
_BEARERS = "tests/security/callers/test_turn_bearers.py::"
_KEPT = "tests/stores/memory/test_files.py::"
_PATHS = "tests/core/memory/test_path.py::"
_USED = "tests/engine/tools/test_memory.py::"
_PAST = "tests/engine/tools/test_past.py::"
_TYPED = "tests/cli/memory/test_memory.py::"
_GONE = "tests/stores/conversations/test_deletion.py::"
_DELETED = "tests/gateway/conversations/test_messages_deleted.py::"
_FRONT = "tests/gateway/conversations/test_messages_memory.py::"
_SEARCHED = "tests/gateway/conversations/test_messages_past.py::"
_KILLED = "tests/crash/points/test_loop_points.py::"

ROWS = (
    Row(
        "engine:memory:example",
        "A model that is told to read /AGENT.md does so with read_file, and what the file says is "
        "the result, as the design prints it.",
        "002 request and response; R46",
        (
            _EXAMPLE + "test_the_example_of_the_design_runs_as_it_is_printed",
            _TOOLS + "test_an_agent_reads_the_file_that_it_was_told_to",
            _KEPT + "test_a_memory_begins_with_a_starter_that_is_kept_nowhere",
        ),
    ),
    Row(
        "engine:memory:person",
        "Whose memory is read and written comes from the turn: that of the person it runs for, at "
        "the agent that runs. A machine has none.",
        "R46",
        (
            _TOOLS + "test_a_machine_and_who_may_not_have_no_memory",
            _EXAMPLE + "test_the_example_of_the_design_runs_as_it_is_printed",
            _BEARERS + "test_it_opens_the_memory_of_its_turn_and_no_other",
        ),
    ),
    Row(
        "engine:memory:approval",
        "A write waits for its person, who sees what would change, may change it, and may deny it.",
        "002 approval gates; R45, R46",
        (
            _TOOLS + "test_a_write_waits_for_its_person_who_sees_what_changes_and_may_change_it",
            _TOOLS + "test_a_write_that_is_denied_is_not_made",
        ),
    ),
    Row(
        "engine:memory:path",
        "A path is what one grammar says: nothing that climbs, looks like another or becomes one "
        "is taken, by tools or by any door.",
        "R46",
        (
            _OTHERS + "test_no_spelling_of_a_path_leads_elsewhere",
            _TOOLS + "test_what_is_no_path_or_no_room_is_told_to_the_model",
            _PATHS + "test_what_is_no_path_is_refused",
            _PATHS + "test_a_path_is_stored_as_it_is_read_and_survives_every_normalisation",
            _KEPT + "test_paths_that_differ_in_capitals_or_are_a_folder_are_refused",
        ),
    ),
    Row(
        "engine:memory:versions",
        "Every write keeps the former version, and says which turn wrote it.",
        "R46",
        (
            _TOOLS + "test_a_write_waits_for_its_person_who_sees_what_changes_and_may_change_it",
            _KEPT + "test_every_write_keeps_the_former",
            _KEPT + "test_a_version_says_which_turn_and_conversation_wrote_it",
            _KEPT + "test_undo_goes_back_step_by_step_and_keeps_all",
        ),
    ),
    Row(
        "engine:memory:bounds",
        "A memory holds so many files and bytes; of former versions the oldest are forgotten.",
        "R46",
        (
            _TOOLS + "test_what_the_bounds_do_not_allow_is_refused",
            _KEPT + "test_a_memory_holds_so_many_files_and_bytes",
            _KEPT + "test_who_writes_at_once_does_not_pass_the_bounds_together",
            _KEPT + "test_the_oldest_versions_are_forgotten",
        ),
    ),
    Row(
        "engine:memory:owner",
        "She reads, edits, undoes, exports and deletes it, over HTTP and on the command line.",
        "R46",
        (
            _TOOLS + "test_a_person_reads_changes_undoes_exports_and_deletes",
            _TYPED + "test_a_person_lists_shows_edits_undoes_exports_and_deletes",
            _KEPT + "test_of_what_is_deleted_nothing_is_left",
        ),
    ),
    Row(
        "engine:memory:others",
        "Nobody else finds it by any door: no other person, no machine, no operator.",
        "R46; everything belongs to somebody",
        (
            _OTHERS + "test_nobody_reads_searches_writes_undoes_exports_or_deletes_anothers",
            _OTHERS + "test_a_machine_a_stranger_and_an_operator_find_nobodys",
            _KEPT + "test_nobody_finds_what_is_anothers",
        ),
    ),
    Row(
        "engine:memory:end",
        "With a person her memory ends, and nothing is left of what it said.",
        "R25, R46",
        (
            _OTHERS + "test_with_a_person_her_memory_ends",
            _KEPT + "test_with_a_person_her_memory_ends_and_is_forgotten_in_time",
        ),
    ),
    Row(
        "engine:memory:once",
        "A write is there once after a crash, or not at all.",
        "R46; durable before acknowledged",
        (
            _KILLED + "test_memory_is_written_once_after_a_kill_at",
            _KEPT + "test_what_stands_there_already_is_no_write",
        ),
    ),
    Row(
        "engine:memory:erase",
        "With a conversation the versions that were written in it are erased, and later ones of "
        "those files are listed.",
        "R27",
        (
            _FRONT + "test_with_a_conversation_goes_what_agents_wrote_in_it",
            _KEPT + "test_what_a_conversation_wrote_is_erased_and_what_came_after_is_listed",
        ),
    ),
    Row(
        "engine:conversation:erase",
        "Of a conversation that is deleted no word is left: in no row, page, file or log, in no "
        "backup and no export that is made later; a repeat of its turns is 410.",
        "R27",
        (
            _DELETED + "test_after_a_delete_no_word_of_it_is_left",
            _DELETED + "test_no_copy_that_is_made_after_a_delete_and_no_log_has_a_word_of_it",
            _DELETED + "test_no_page_has_a_word_of_it_whoever_looks",
            _DELETED + "test_of_what_a_hook_has_begun_and_waits_no_word_is_left_at_once",
            _DELETED + "test_a_repeat_of_a_deleted_turn_is_told_so_and_not_run",
            _GONE + "test_what_is_being_answered_is_not_deleted_and_nothing_of_it_is",
            _GONE + "test_with_a_conversation_ends_what_was_to_begin_it_and_nobody_elses",
            _GONE + "test_a_turn_has_one_tombstone_also_where_the_upkeep_goes_on_with_the_deleting",
        ),
    ),
    Row(
        "engine:memory:conversations",
        "A model searches what was said before, if the owner allows it.",
        "002 decision D152; R46",
        (
            _SEARCHED + "test_an_agent_finds_what_its_own_person_has_said_before",
            _SEARCHED + "test_nobody_else_finds_it_and_only_who_is_asked_by_her_searches",
            _TOOLS + "test_what_was_said_before_is_searched_if_its_person_allows_it",
            _PAST + "test_the_conversations_of_who_acts_are_searched_and_no_others",
        ),
    ),
)
