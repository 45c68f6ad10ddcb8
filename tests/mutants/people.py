"""The behaviour behind rows about people, each taken away by one change of the source."""

from tests.mutants.mutant import Mutant

PEOPLE = (
    Mutant(
        "security:a95:narrowed",
        "core/people/permissions.py",
        "{name for name in one if allows(other, name)}",
        "set(one)",
        tests=("test_two_sets_leave_what_both_allow_and_nothing_else",),
    ),
    Mutant(
        "security:a95:narrowed",
        "stores/trust/tokens.py",
        "scopes = both(scopes, rights_of(roles.split(), permissions.split()))",
        "scopes = scopes or rights_of(roles.split(), permissions.split())",
        tests=("test_a_token_of_a_person_may_do_what_both_allow",),
    ),
    Mutant(
        "security:a95:names",
        "core/people/permissions.py",
        "found |= {one for one in NAMES if allows(frozenset({name}), one)} if is_wide else {name}",
        "found |= {name}",
        tests=("test_what_stands_for_all_is_written_out_when_it_is_granted",),
    ),
    Mutant(
        "security:a57:people",
        "core/people/person.py",
        "if name in _RESERVED or name == OPERATOR_NAME:",
        "if name == OPERATOR_NAME:",
        tests=("test_what_is_no_slug_or_names_a_machine_is_no_name",),
    ),
    Mutant(
        "security:a86:people",
        "stores/upkeep/revocation.py",
        "or (caller.person is not None and caller.person not in self._people)",
        "or False",
        tests=("test_a_call_has_ended_with_its_person",),
    ),
    Mutant(
        "security:a86:people",
        "stores/trust/people.py",
        '"UPDATE session SET ended = ? WHERE ended IS NULL AND person = ?"',
        '"UPDATE session SET ended = ? WHERE ended IS NULL AND person < ?"',
        tests=("test_with_a_person_ends_all_that_is_hers_and_it_is_told",),
    ),
    Mutant(
        "security:a86:delegations",
        "guards/caller/delegation.py",
        "if ended is not None:  # R59: and with it all that was derived from it",
        "if False:",
        tests=("test_a_link_that_was_ended_ends_the_chain",),
    ),
    Mutant(
        "security:a86:elsewhere",
        "runtime/peers/ended.py",
        "if not ed25519.holds(key, shown.signed, shown.signature):",
        "if False:",
        tests=("test_a_list_of_another_or_that_is_old_or_not_whole_tells_nothing",),
    ),
    Mutant(
        "security:a41:payer",
        "stores/ledger/payments.py",
        "found += [row for row in rows if row[1] >= each.since]",
        "found += rows",
        tests=("test_what_was_paid_before_an_account_was_held_is_not_told",),
    ),
    Mutant(
        "security:a09:hooks",
        "wire/hooks/scheme.py",
        "_need([hmac.compare_digest(one, each) for one in digests for each in signed.given])",
        "_need([True])",
        tests=("test_what_is_forged_stale_or_oversized_is_refused_and_nothing_is_kept",),
    ),
    Mutant(
        "security:a09:hooks",
        "stores/triggers/hooks.py",
        " WHERE hook_seen.expires <= ?",
        " WHERE hook_seen.expires >= 0 OR hook_seen.expires <= ?",
        tests=("test_an_event_is_taken_once_however_many_copies_come_at_once",),
    ),
    Mutant(
        "security:a94:triggers",
        "stores/triggers/schedules.py",
        '_FIND: Final = f"SELECT {_COLUMNS} FROM schedule WHERE person = ? AND name = ?"',
        '_FIND: Final = f"SELECT {_COLUMNS} FROM schedule WHERE (person = ? OR TRUE) AND name = ?"',
        tests=("test_a_schedule_is_its_owners_and_nobody_elses",),
    ),
)

MEMORY = (
    Mutant(
        "engine:memory:path",
        "core/memory/path.py",
        "    if not all(_SEGMENT.fullmatch(segment) for segment in segments):",
        "    if not all(segments):",
        tests=("test_what_is_no_path_is_refused",),
    ),
    Mutant(
        "engine:memory:person",
        "runtime/tools/memory.py",
        "key = MemoryKey(person, self._agent)",
        "key = MemoryKey(1, self._agent)",
        tests=("test_it_opens_the_memory_of_its_turn_and_no_other",),
    ),
    Mutant(
        "engine:memory:others",
        "gateway/people/memory.py",
        "    return caller.person\n",
        "    return 1\n",
        tests=("test_nobody_reads_searches_writes_undoes_exports_or_deletes_anothers",),
    ),
    Mutant(
        "engine:memory:approval",
        "engine/tools/memory.py",
        "            writes=True,\n",
        "            writes=False,\n",
        tests=("test_a_write_that_is_denied_is_not_made",),
    ),
    Mutant(
        "engine:memory:bounds",
        "stores/memory/statements.py",
        'f" AND {_OTHERS} <= ?"',
        'f" AND {_OTHERS} * 0 <= ?"',
        tests=("test_a_memory_holds_so_many_files_and_bytes",),
    ),
    Mutant(
        "engine:memory:versions",
        "stores/memory/statements.py",
        " ORDER BY k.version DESC LIMIT ?)",
        " ORDER BY k.version DESC LIMIT 1 + 0 * ?)",
        tests=("test_every_write_keeps_the_former",),
    ),
    Mutant(
        "engine:memory:end",
        "stores/trust/people.py",
        '    ("memory", _END_MEMORY, _MEMORY),\n',
        "",
        tests=("test_with_a_person_her_memory_ends_and_is_forgotten_in_time",),
    ),
    Mutant(
        "engine:memory:once",
        "stores/memory/statements.py",
        " AND v.data = ?))",
        " AND v.data <> ?))",
        tests=("test_what_stands_there_already_is_no_write",),
    ),
)
