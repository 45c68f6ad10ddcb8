"""How many tokens went in and out of a model; None where nobody counted them.

Law. A count is never less than nothing, nor more than a record can hold, whatever an agent says.
"""

from collections.abc import Sequence
from typing import Final

from carnet.core.call import Call
from carnet.core.messages.events import Usage
from carnet.ports.calls.turns import Use
from carnet.wire.grammar.json import MAX_INTEGER

Tokens = tuple[int | None, int | None]  # in and out
NO_TOKENS: Final[Tokens] = (None, None)


def add_up(usages: Sequence[Usage]) -> Tokens:
    """What was used in all."""
    used_in: int | None = None
    used_out: int | None = None
    for usage in usages:
        if usage.tokens_in is not None:
            used_in = (used_in or 0) + usage.tokens_in
            used_in = used_in if 0 <= used_in <= MAX_INTEGER else _bounded(used_in)
        if usage.tokens_out is not None:
            used_out = (used_out or 0) + usage.tokens_out
            used_out = used_out if 0 <= used_out <= MAX_INTEGER else _bounded(used_out)
    return used_in, used_out


def and_before(tokens: Tokens, before: Tokens) -> Tokens:
    """What a turn used, with what it had used until it waited."""
    return _added(tokens[0], before[0]), _added(tokens[1], before[1])


def own_before(call: Call) -> int:
    """What a turn of an agent here was debited for its own tokens until it waited."""
    price, before = call.target.price, call.record
    if call.target.is_remote or not price.counts_tokens:
        return 0
    return price.of(before.tokens_in or 0, before.tokens_out or 0) - price.per_call


def _added(used: int | None, before: int | None) -> int | None:
    return used if before is None else _bounded(before + (used or 0))


def _bounded(tokens: int) -> int:
    return 0 if tokens < 0 else min(tokens, MAX_INTEGER)


def uses_of(call: Call, tokens: Tokens, *, is_over: bool) -> tuple[Use, ...]:
    """What the end of a call adds to quotas."""
    uses: list[Use] = []
    used = (tokens[0] or 0) + (tokens[1] or 0)
    if call.quota is not None and used > 0:
        uses.append(Use(call.quota, used))
    if call.task_quota is not None and is_over:
        uses.append(Use(call.task_quota, -1))
    return tuple(uses)
