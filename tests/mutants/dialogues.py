"""The behaviour behind the rows of conversations, each taken away by one small change."""

from tests.mutants.mutant import Mutant

DIALOGUE = (
    Mutant(
        "dialogue:run:received",
        "core/dialogue/transcript.py",
        "if turn.speaker == speaker else",
        "if turn.speaker else",
    ),
    Mutant(
        "dialogue:run:cap",
        "runtime/dialogue/run.py",
        "record.spent >= limits.max_spend:",
        "record.spent > limits.max_spend + 5_000_000:",
    ),
    Mutant(
        "dialogue:run:cents",
        "core/dialogue/record.py",
        "self._discard(event)\n                self._pay(event.cost)",
        "self._discard(event)",
    ),
    Mutant(
        "dialogue:run:counted-once",
        "runtime/dialogue/attempt.py",
        "before = self._before.get(conversation, 0) if is_kept else 0",
        "before = 0",
        ("test_what_a_function_had_others_say_is_counted_as_often_as_it_was_said",),
    ),
    Mutant(
        "dialogue:run:functions",
        "runtime/dialogue/stop.py",
        'raise Stopped(self.look() or "abort")',
        "return None",
        ("test_an_abort_holds_against",),
    ),
    Mutant(
        "dialogue:journal:owner",
        "runtime/dialogue/inbound.py",
        'return _digest(run, f"caller {caller}")',
        'return _digest(run, "caller")',
    ),
    Mutant(
        "dialogue:policy:retryable",
        "runtime/dialogue/policy.py",
        "if isinstance(error, ConnectionError | TimeoutError):",
        "if isinstance(error, Exception):",
    ),
    Mutant(
        "dialogue:policy:cancel",
        "runtime/dialogue/policy.py",
        'verdict: Verdict = "good" if error is None else "neither"',
        'verdict: Verdict = "good" if error is None else "bad"',
    ),
    Mutant(
        "dialogue:propagation:depth",
        "runtime/dialogue/place.py",
        "if self.depth >= self.last_depth:",
        "if self.depth > self.last_depth + 99:",
        ("test_a_driver_that_is_too_deep_itself_writes_and_calls_nothing",),
    ),
    Mutant(
        "dialogue:nested:ids",
        "runtime/dialogue/place.py",
        "if not self.scope and self.caller is None:",
        "if self.run_id:",
    ),
    Mutant(
        "dialogue:journal:predicate",
        "runtime/dialogue/run.py",
        "if book.record.turns:",
        "if not book:",
    ),
    Mutant(
        "dialogue:journal:halts",
        "core/dialogue/halt.py",
        "return turns < limits.max_turns",
        "return False",
    ),
    Mutant(
        "dialogue:journal:one-writer",
        "stores/lock.py",
        'raise InProgress("somebody else writes it") from None',
        "return cls(-1, path)",
        ("test_a_run_has_one_writer_at_a_time_and_others_run_beside_it",),
    ),
)
