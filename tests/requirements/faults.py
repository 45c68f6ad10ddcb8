"""The faults of security.md: what goes wrong, and the tests that show how it is survived."""

from tests.requirements import models
from tests.requirements.rows import Row

_QUESTIONS = "tests/crash/points/test_question_points.py::"
_KILLED = "tests/interop/interrupts/test_killed.py::"
_POINTS = "tests/crash/points/test_points.py::"
_TASK_POINTS = "tests/crash/points/test_task_points.py::"
_TASK_LOOP = "tests/crash/loops/test_task_loop.py::"
_STREAMS = "tests/crash/test_streams.py::"
_CLIENTS = "tests/faults/test_clients.py::"
_CLOCK = "tests/faults/test_clock.py::"
_DATABASE = "tests/faults/test_database.py::"
_DRAINING = "tests/faults/test_draining.py::"
_EXHAUSTION = "tests/faults/test_exhaustion.py::"
_LOOP = "tests/crash/loops/test_loop.py::"
_RECEIVERS = "tests/faults/test_receivers.py::"
_RELOAD = "tests/assembly/test_reload.py::"
_RELOAD_LOAD = "tests/assembly/test_reload_load.py::"
_SCHEDULE = "tests/runtime/webhooks/test_schedule.py::"
_SERVE = "tests/cli/start/test_start_serve.py::"
_STOP = "tests/faults/process/test_stop.py::"
_STORAGE = "tests/faults/test_storage.py::"
_UPSTREAM = "tests/faults/test_upstream.py::"
_KILL = "tests/crash/test_kill.py::"
_POSTGRES = "tests/stores/postgres/test_driver.py::"
_LOST = "tests/replicas/test_lost.py::"
_COPIES = "tests/replicas/test_copies.py::"
_REPLICAS = "tests/stores/postgres/test_driver_replicas.py::"
_WRITER = "tests/stores/sqlite/test_writer.py::"
_LIMITS = "tests/stores/turn/test_claim_rules_limits.py::"
_DEADLINES = "tests/edge/test_deadlines.py::"
_LEAVING = "tests/security/signed/test_departure.py::"
_ORPHANS = "tests/faults/process/test_orphans.py::"
_RAISED = "tests/faults/process/test_raised.py::"
_RESTART = "tests/security/signed/test_restart.py::"
_SIGNED_KEYS = "tests/security/signed/test_keys.py::"
_SIGNED_TIME = "tests/security/signed/test_time.py::"
_STORED_KEYS = "tests/stores/trust/test_own_keys.py::"
_WAITING = "tests/gateway/test_approvals_waiting.py::"
_AGREED = "tests/stores/turn/test_answers.py::"
_MONEY = "tests/interop/test_money.py::"
_AGENTS = "tests/interop/engine/test_agents.py::"
_COMPARISON = "tests/ledgers/test_comparison.py::"

_AT_A_POINT = _POINTS + "test_a_whole_answer_survives_a_kill_at"

_CRASHES = (
    Row(
        "faults:f01",
        "A kill before the request is journalled is a lost connection; a retry executes once.",
        "security.md F01",
        (_AT_A_POINT, _POINTS + "test_every_crash_point_is_killed_at"),
    ),
    Row(
        "faults:f02",
        "Nonce and claim are one transaction: after a kill there are both, or neither.",
        "security.md F02",
        (
            _RESTART + "test_a_kill_takes_nonce_and_claim_together_or_neither",
            _KILL + "test_f02_a_nonce_and_its_claim_are_both_there_after_a_kill_or_neither",
        ),
    ),
    Row(
        "faults:f03",
        "A kill after the claim and before the upstream is called releases the turn; the upstream "
        "is called once in all.",
        "security.md F03; section 8",
        (_AT_A_POINT, _KILL + "test_killed_at_a_point_of_a_call"),
    ),
    Row(
        "faults:f04",
        "A kill after the upstream has answered leaves the turn unknown; the next attempt has the "
        "same turn id, the upstream runs nothing again, and nobody is billed twice.",
        "security.md F04",
        (_AT_A_POINT, _LOOP + "test_f10_kills_under_load_lose_change_and_bill_nothing_twice"),
    ),
    Row(
        "faults:f05",
        "A kill after the end of a turn is committed costs the reply alone: a retry is answered "
        "from the record, always with the same bytes.",
        "security.md F05",
        (_AT_A_POINT,),
    ),
    Row(
        "faults:f06",
        "A stream that a kill cuts off is never told as done; a retry is a new attempt from its "
        "first event behind a discard marker, and nobody who follows the run misses an event or "
        "reads one twice.",
        "security.md F06",
        (
            _STREAMS
            + "test_f06_a_stream_cut_off_by_a_kill_is_never_done_and_a_retry_is_a_new_attempt",
            _STREAMS + "test_f06_a_reader_that_reconnects_misses_nothing_and_reads_nothing_twice",
            _POINTS + "test_a_stream_survives_a_kill_at",
        ),
    ),
    Row(
        "faults:f08",
        "A recovery that is killed, five times in a row, is finished by the next one.",
        "security.md F08",
        (
            _POINTS + "test_recovery_survives_kills_in_a_row_at",
            _KILL + "test_killed_while_recovering_again_and_again",
        ),
    ),
    Row(
        "faults:f09",
        "A migration that is killed leaves the old layout, and the next one finishes it; a key "
        "that is being replaced, or a store that is being restored, is the old one or the new one.",
        "security.md F09",
        (
            _POINTS + "test_a_sqlite_store_that_is_being_restored_is_the_old_or_the_new_one"
            "_after_a_kill_at",
            _POINTS + "test_a_postgres_store_that_is_being_restored_is_the_old_or_the_new_one"
            "_after_a_kill_at",
            _KILL + "test_f09_a_key_is_the_old_one_or_the_new_one_after_a_kill",
            _POINTS + "test_a_migration_that_is_killed_is_finished_by_the_next",
            _KILL + "test_killed_while_migrating_sqlite",
        ),
    ),
    Row(
        "faults:f10",
        "Kills at random times under load lose, change and bill nothing twice, and leave a sound "
        "database; `make crash` does it 300 times on each store.",
        "security.md F10",
        (
            _LOOP + "test_f10_kills_under_load_lose_change_and_bill_nothing_twice",
            _KILL + "test_killed_at_any_moment_again_and_again",
        ),
    ),
)

_STORES = (
    Row(
        "faults:f11",
        "A full disk is 503 `storage_unavailable`; what is there can be read, and it passes "
        "without a restart.",
        "security.md F11",
        (
            _STORAGE + "test_f11_a_full_disk_is_503_and_passes_without_a_restart",
            _STORAGE + "test_f11_a_replay_does_not_make_a_full_store_ready",
            _STORAGE + "test_f11_a_turn_that_finds_the_disk_full_at_its_end_is_not_told_as_done",
            _WRITER + "test_a_full_disk_under_sqlite_refuses_and_recovers_by_itself",
        ),
    ),
    Row(
        "faults:f12",
        "A write that fails is 503 `outcome_unknown` and never acknowledged; the process ends, and "
        "a restart recovers.",
        "security.md F12",
        (_STORAGE + "test_f12_a_write_that_fails_is_never_acknowledged_and_a_restart_recovers",),
    ),
    Row(
        "faults:f13",
        "Damage is found by a checksum, reported, and not served; what was whole is kept.",
        "security.md F13",
        (
            _STORAGE + "test_f13_a_flipped_bit_is_reported_and_not_served",
            _STORAGE + "test_f13_damage_is_an_error_in_the_log_with_its_run_and_incident",
            _STORAGE + "test_f13_a_torn_tail_of_the_log_costs_nothing_that_was_whole",
            _KILL + "test_a_damaged_tail_of_the_sqlite_log_costs_the_tail_alone",
            _SERVE + "test_a_store_with_broken_pages_is_told_with_what_to_do",
        ),
    ),
    Row(
        "faults:f14",
        "A database that is down is 503 at once and not ready; nothing is run, and it heals "
        "without a restart.",
        "security.md F14",
        (
            _DATABASE
            + "test_f14_a_database_that_is_down_is_503_at_once_and_passes_without_a_restart",
            _DATABASE + "test_f14_a_turn_whose_database_goes_away_is_not_told_as_done",
            _DATABASE + "test_f14_while_the_database_is_down_the_log_says_so_once_and_then_counts",
            _POSTGRES + "test_a_postgres_that_is_down_refuses_all_who_wait_and_heals_by_itself",
            _POSTGRES
            + "test_a_postgres_that_says_nothing_is_given_up_by_a_timer_of_less_than_a_second",
        ),
    ),
    Row(
        "faults:f15",
        "A lock that somebody holds is waited for a bounded time, and is 503 then; the event loop "
        "goes on meanwhile.",
        "security.md F15",
        (
            _STORAGE + "test_f15_a_lock_held_by_another_is_503_in_bounded_time_and_passes",
            _STORAGE + "test_f15_a_lock_held_for_a_moment_is_waited_for",
            _STORAGE + "test_f15_nobody_waits_longer_for_having_come_behind_others",
            _POSTGRES + "test_a_lock_that_is_held_in_postgres_is_overload_at_the_deadline",
        ),
    ),
)

_PEERS = (
    Row(
        "faults:f16",
        "An upstream that refuses or resets is 503 `provider_unavailable` before the stream; the "
        "circuit opens after repeated failures.",
        "security.md F16",
        (
            _UPSTREAM + "test_f16_a_refused_connection_is_503_until_the_peer_is_back",
            _UPSTREAM + "test_f16_a_reset_before_the_answer_is_503",
            _UPSTREAM + "test_f16_the_circuit_opens_after_repeated_failures_and_nothing_is_sent",
        ),
    ),
    Row(
        "faults:f17",
        "An upstream that hangs is 504 `provider_timeout` at the deadline, an error frame amid a "
        "stream, and its socket is closed.",
        "security.md F17",
        (
            _UPSTREAM + "test_f17_a_peer_that_hangs_is_504_at_the_deadline_and_let_go_of",
            _UPSTREAM + "test_f17_a_peer_that_hangs_mid_stream_ends_in_an_error_frame",
        ),
    ),
    Row(
        "faults:f18",
        "An answer that breaks off is `provider_error`, recorded as failed and not billed.",
        "security.md F18",
        (_UPSTREAM + "test_f18_an_answer_that_breaks_off_is_an_error_and_not_billed",),
    ),
    Row(
        "faults:f19",
        "Garbage, wrong framing and bad UTF-8 from an upstream are `provider_error`, once.",
        "security.md F19, A66",
        (
            _UPSTREAM + "test_f19_garbage_is_a_provider_error_and_not_billed",
            _UPSTREAM + "test_f19_garbage_mid_stream_is_one_error_frame",
        ),
    ),
    Row(
        "faults:f20",
        "A byte at a time is the same answer, and too slow a line ends at the deadline.",
        "security.md F20",
        (
            _UPSTREAM + "test_f20_one_byte_at_a_time_is_the_same_answer",
            _UPSTREAM + "test_f20_a_line_too_slow_ends_at_the_deadline",
        ),
    ),
    Row(
        "faults:f21",
        "A client that leaves cancels its turn, also upstream; that is recorded, and nothing "
        "leaks.",
        "security.md F21",
        (
            _CLIENTS + "test_f21_a_client_that_leaves_mid_stream_cancels_the_turn_at_both",
            _CLIENTS + "test_f21_a_client_that_leaves_before_its_answer_cancels_the_turn_at_both",
            _CLIENTS + "test_f21_many_clients_that_leave_leave_nothing_behind",
        ),
    ),
    Row(
        "faults:f22",
        "A client that stalls holds up nobody else, and is cut off in the end.",
        "security.md F22, A61",
        (
            _CLIENTS + "test_f22_a_client_that_stalls_does_not_hold_up_the_others",
            _DEADLINES + "test_a_reader_that_never_reads_is_cut_off_and_its_agent_stopped",
        ),
    ),
)

_WORLD = (
    Row(
        "faults:f23",
        "A step of the wall clock changes no deadline and no wait, makes no turn run again, and is "
        "told in the log.",
        "security.md F23",
        (
            _CLOCK + "test_f23_a_step_of_the_wall_clock_is_logged_and_changes_no_call",
            _CLOCK + "test_f23_an_agent_that_hangs_ends_in_time_whatever_the_wall_clock_says",
            _CLOCK + "test_f23_a_step_neither_takes_a_deadline_away_nor_adds_to_it",
            _CLOCK + "test_f23_a_step_changes_neither_the_waits_between_attempts_nor_their_number",
            _CLOCK + "test_f23_a_clock_that_is_slowly_corrected_is_no_step",
            "tests/runtime/wrappers/test_breaker.py::test_a_jump_of_the_wall_clock_changes_nothing",
            _LIMITS + "test_a_clock_that_was_set_back_blocks_for_one_window_at_most",
        ),
    ),
    Row(
        "faults:f24",
        "A peer's clock may be ahead by a minute; one that is further off is refused and told the "
        "time.",
        "security.md F24",
        (
            _SIGNED_TIME + "test_a_clock_that_differs_a_little_is_no_obstacle",
            _SIGNED_TIME + "test_a_clock_that_differs_more_is_told_the_time",
            "tests/security/signed/test_instants.py::test_the_window_ends_where_it_should",
        ),
    ),
    Row(
        "faults:f25",
        "The same request at the same time, to one gateway or to several, is executed once.",
        "security.md F25",
        (
            _CLIENTS + "test_f25_the_same_turn_many_times_at_once_runs_once",
            _COPIES + "test_copies_of_a_turn_sent_to_all_gateways_at_once_run_once",
            _REPLICAS + "test_two_postgres_replicas_that_claim_the_same_keys_claim_each_once",
        ),
    ),
    Row(
        "faults:f26",
        "A gateway that is cut off from the store refuses with 503, accepts nothing on its own, "
        "and heals.",
        "security.md F26",
        (_LOST + "test_a_gateway_without_its_database_refuses_and_heals",),
    ),
    Row(
        "faults:f27",
        "A gateway that slept beyond its lease is fenced: its late write is refused, and the new "
        "owner's stands.",
        "security.md F27",
        (
            _LOST + "test_turns_are_taken_over_and_their_late_writer_is_refused",
            _REPLICAS + "test_a_postgres_replica_that_slept_beyond_its_lease_is_fenced",
        ),
    ),
    Row(
        "faults:f30",
        "A SIGTERM amid many streams: not ready at once, new work is 503 with Retry-After, every "
        "stream finishes or gets `shutting_down` by the deadline, exit 0, none is lost; `make "
        "drain` does it with 1,000.",
        "security.md F30",
        (
            _DRAINING + "test_f30_a_stop_amid_many_streams_finishes_or_fails_each_and_loses_none",
            "tests/gateway/test_runs.py::test_a_gateway_drains_before_it_stops",
        ),
    ),
    Row(
        "faults:f31",
        "Out of files, memory or threads, a gateway sheds load, serves who is connected, lives on "
        "and recovers. Memory is limited by the address space, not by a control group.",
        "security.md F31",
        (
            _EXHAUSTION + "test_f31_a_gateway_out_of_files_goes_on_and_takes_new_connections_when_"
            "there_are_some",
            _EXHAUSTION + "test_f31_a_pool_of_threads_that_is_used_up_holds_up_nobody_else",
            _EXHAUSTION + "test_f31_more_bodies_at_once_than_there_is_memory_for_are_refused_and_"
            "not_fatal",
        ),
    ),
)

_KEYS = (
    Row(
        "faults:f33",
        "A host of cards that is down, or a secrets file that cannot be read any more: what is "
        "known holds until its end, then it fails closed; nothing is ever sent unsigned.",
        "security.md F33",
        (
            _LEAVING + "test_no_request_leaves_unsigned_while_the_key_is_replaced",
            _SIGNED_KEYS + "test_a_host_that_is_down_costs_a_known_sender_nothing",
            "tests/security/signed/test_cards.py::test_a_card_holds_until_its_end_and_no_longer",
            _STORED_KEYS
            + "test_f33_with_another_secrets_file_nothing_is_signed_and_rotating_mends_it",
            _STORED_KEYS
            + "test_f33_a_gateway_signs_on_when_the_secrets_file_cannot_be_read_any_more",
        ),
    ),
)

_TASKS = (
    Row(
        "faults:f07",
        "A kill around a webhook delivers it at least once, with the same id.",
        "security.md F07",
        (
            _TASK_POINTS + "test_f07_a_callback_arrives_under_one_id_after_a_kill_at",
            _TASK_POINTS + "test_the_failure_of_a_task_is_told_after_a_kill_at",
        ),
    ),
    Row(
        "faults:f28",
        "A task goes on after a restart or a kill, ends once, takes no step again that was kept, "
        "and its callback is delivered under one id.",
        "security.md F28",
        (
            _TASK_POINTS + "test_f28_a_task_goes_on_after_a_restart_and_its_callback_arrives",
            _TASK_POINTS + "test_a_task_survives_a_kill_at",
            _TASK_POINTS + "test_a_step_that_is_kept_is_not_taken_again_after_a_kill_at",
            _TASK_POINTS + "test_a_task_survives_kills_in_a_row_of_its_recovery_at",
            _TASK_POINTS + "test_a_task_survives_a_kill_of_a_gateway_that_stops_at",
            _TASK_LOOP + "test_f28_kills_while_tasks_run_lose_none_and_each_callback_arrives",
        ),
    ),
    Row(
        "faults:f29",
        "A webhook receiver that is down, slow, failing or silent is tried again by a schedule "
        "with jitter, as late as it asks for; 410 ends its address for who named it, no redirect "
        "is followed, and no receiver holds up another.",
        "security.md F29; D7",
        (
            _RECEIVERS + "test_f29_each_receiver_gets_what_it_can_take_and_none_holds_up_another",
            _RECEIVERS + "test_f29_an_address_that_said_410_gets_nothing_more_until_it_is_let_off",
            _RECEIVERS + "test_f29_an_address_that_said_410_to_one_sender_is_tried_for_another",
            _RECEIVERS + "test_f29_an_answer_that_is_compressed_is_an_answer",
            _SCHEDULE + "test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead",
            _SCHEDULE + "test_the_jitter_is_a_tenth_either_way",
            _SCHEDULE + "test_who_says_how_long_to_wait_is_waited_for",
            _SCHEDULE + "test_a_redirect_is_a_failure_that_says_so",
            "tests/stores/test_outbox.py::test_a_receiver_that_is_down_holds_up_nobody_else",
        ),
    ),
)

_PROCESS = (
    Row(
        "faults:f37",
        "What an agent, a skill or its background task raises fails that call alone, "
        "KeyboardInterrupt and SystemExit too; the gateway goes on.",
        "F37",
        (
            _RAISED + "test_f37_an_agent_that_interrupts_or_exits_fails_its_own_call_alone",
            _RAISED + "test_f37_a_stream_that_is_cut_by_an_exit_ends_with_an_error",
            _RAISED + "test_f37_a_skill_in_a_thread_that_exits_fails_its_own_call_alone",
            _RAISED + "test_f37_what_is_raised_beside_a_call_is_logged_and_ends_nothing",
        ),
    ),
    Row(
        "faults:f38",
        "A gateway that is told to stop ends after drain and grace, without the tasks and threads "
        "that do not end, and also when an agent holds the event loop.",
        "F38",
        (
            _STOP + "test_f38_who_does_not_want_to_stop_is_left_behind_after_the_grace",
            _STOP + "test_f38_who_holds_the_process_itself_is_ended_and_named",
            _STOP + "test_f38_a_gateway_that_nobody_holds_does_not_wait_for_the_grace",
        ),
    ),
    Row(
        "faults:f39",
        "A process that an agent forked keeps neither port, lock nor callers of a gateway that was "
        "killed, takes no signal for it, and does not come back into its event loop.",
        "F39",
        (
            _ORPHANS + "test_f39_a_restart_after_a_kill_works_though_an_orphan_lives",
            _ORPHANS + "test_f39_a_socket_that_was_handed_down_is_not_handed_on",
            _ORPHANS + "test_f39_a_child_that_comes_back_to_the_loop_ends_there",
            _ORPHANS + "test_f39_a_child_ends_by_a_signal_and_the_gateway_does_not",
        ),
    ),
)

_LEDGERS = (
    Row(
        "faults:f45",
        "A kill after the peer has finished leaves its posting without ours: the call is shown as "
        "unmatched, and is matched when it is made again.",
        "the issue that found it",
        (_MONEY + "test_a_call_that_was_lost_with_us_is_unmatched_until_it_is_made_again",),
    ),
    Row(
        "faults:f46",
        "A kill of any of three organisations, at any crash point between what an agent asks for "
        "and the end of the call: it is answered once and paid once, all ledgers agree, nothing "
        "stays reserved, and the same answer again changes nothing.",
        "F46; the long form is make crash",
        (
            _QUESTIONS + "test_a_question_is_answered_and_paid_once_after_a_kill_at",
            _QUESTIONS + "test_these_are_all_the_points_between_a_question_and_its_end",
            _KILLED + "test_a_gateway_that_dies_with_the_answer_in_its_hands_ends_the_turn_once",
        ),
    ),
    Row(
        "faults:f47",
        "A kill after a payment was agreed to leaves it to be reserved and paid once by whoever "
        "runs the call again.",
        "the issue that found it",
        (
            _WAITING + "test_what_was_agreed_to_is_paid_once_after_a_kill_or_the_turn_does_not_run",
            _AGREED + "test_what_was_agreed_to_is_reserved_anew_when_the_turn_runs_again",
            _AGREED + "test_an_answer_that_is_given_back_gives_back_what_was_agreed_to",
        ),
    ),
    Row(
        "faults:ledgers",
        "The ledgers of two gateways agree to the micro-unit after random calls with kills, "
        "limits, repeats and a callee that charges too much; whatever differs is listed.",
        "R57; the long form is make ledgers",
        (_COMPARISON + "test_two_ledgers_agree_or_say_where_they_do_not",),
    ),
)

_LOOPS = (
    Row(
        "faults:loop",
        "A kill at any step of an agent loop with three tools runs no tool twice whose end was "
        "recorded, asks no model again for what it has said, and the same request goes on.",
        "the issue that asked for it",
        (
            "tests/crash/points/test_loop_points.py::test_a_loop_goes_on_after_a_kill_at",
            _AGENTS + "test_a_kill_while_it_waits_loses_and_repeats_nothing",
        ),
    ),
)

_RELOADS = (
    Row(
        "faults:reload",
        "A configuration is read again under load: no call fails and none meets half of two; what "
        "cannot be used changes nothing and is told.",
        "the issue that asked for it",
        (
            _RELOAD_LOAD + "test_a_reload_under_load_fails_no_call_and_no_call_meets_half_of_each",
            _RELOAD + "test_a_module_that_cannot_be_used_changes_nothing_and_is_told",
            _RELOAD + "test_sighup_reloads_and_what_was_admitted_runs_on_with_the_former_agents",
            _RELOAD + "test_callers_are_answered_while_a_module_is_imported",
        ),
    ),
)

_INVARIANTS = (
    Row(
        "faults:i10",
        "Every delivery ends as delivered or dead, and a dead one is shown and can be sent again.",
        "security.md I10",
        (
            _SCHEDULE + "test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead",
            _SCHEDULE
            + "test_a_delivery_that_was_put_off_again_and_again_dies_an_hour_after_the_schedule",
            _SCHEDULE + "test_a_delivery_that_cannot_be_sent_at_all_is_not_tried_for_ever",
            _RECEIVERS
            + "test_f29_a_dead_delivery_is_shown_and_sent_again_when_its_receiver_is_back",
            "tests/cli/see/test_outbox.py::test_all_that_died_is_sent_again",
        ),
    ),
)

ROWS = (
    *(*_CRASHES, *_STORES, *_PEERS, *_WORLD, *_KEYS, *_TASKS, *_PROCESS, *_LEDGERS, *_INVARIANTS),
    *_RELOADS,
    *_LOOPS,
    *models.FAULTS,
)
