"""What clients were told, held against what is there afterwards: a checker like Jepsen's.

Every attempt of an operation ends in one of three ways: `ok` with an answer, `refused`, or
`unknown`, when the connection broke or the far side could not say. An operation may have many
attempts; they share its name.

Law 1. What was ok is present once and as it was told; two answers to one operation are equal.
Law 2. What was only refused left no trace.
Law 3. What stayed unknown is present once or not at all, and a retry is expected to settle it.
Law 4. Nothing is present that nobody asked for.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended for the client."""

    operation: str
    outcome: Outcome
    answer: str = ""


class History:
    """The attempts of many clients; they may note them from their own threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[str, list[Attempt]] = defaultdict(list)
        self._counts: Counter[Outcome] = Counter()

    def ok(self, operation: str, answer: str) -> None:
        """It was acknowledged with this answer."""
        self._note(Attempt(operation, "ok", answer))

    def refused(self, operation: str) -> None:
        """It was turned away."""
        self._note(Attempt(operation, "refused"))

    def unknown(self, operation: str) -> None:
        """Nobody can say what became of it."""
        self._note(Attempt(operation, "unknown"))

    def _note(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts[attempt.operation].append(attempt)
            self._counts[attempt.outcome] += 1

    def count(self, outcome: Outcome) -> int:
        """How many attempts ended so; it may be asked while others note theirs."""
        return self._counts[outcome]

    def unsettled(self) -> list[str]:
        """The operations whose last attempt left their client in the dark."""
        return sorted(
            name for name, attempts in self._attempts.items() if attempts[-1].outcome == "unknown"
        )

    def faults(self, present: Mapping[str, Sequence[str]]) -> list[str]:
        """What is wrong with the world as it is found: every effect, by operation. Empty: nothing.

        The effects of an operation are given as the answers that they stand for.
        """
        nowhere = sorted(name for name in present if present[name] and name not in self._attempts)
        wrong = [f"{name}: is present and was never asked for" for name in nowhere]
        for name, attempts in sorted(self._attempts.items()):
            wrong += [f"{name}: {fault}" for fault in _judge(attempts, present.get(name, ()))]
        return wrong


def _judge(attempts: Sequence[Attempt], found: Sequence[str]) -> list[str]:
    outcomes = {attempt.outcome for attempt in attempts}
    answers = {attempt.answer for attempt in attempts if attempt.outcome == "ok"}
    wrong = []
    if len(answers) > 1:
        wrong.append(f"was answered in {len(answers)} ways")
    if answers and not found:
        wrong.append("was acknowledged and is lost")
    if answers and any(answer not in answers for answer in found):
        wrong.append("was acknowledged and has changed")
    if len(found) > 1:
        wrong.append(f"is present {len(found)} times")
    if outcomes == {"refused"} and found:
        wrong.append("was refused and left a trace")
    return wrong
