"""The orchestration extension of Datalayer: `https://datalayer.ai/extensions/orchestration/v1`.

    down   datalayer {execution {executionId, rootExecutionId, parentExecutionId, depth,
                                 accountUid},
                      budget {inputTokens, outputTokens, cost, currency}}
    up     datalayer {usage {inputTokens, outputTokens, cost, currency}, error {code, limit}}

Law 1. Whose run an execution belongs to is claimed: it joins no run of ours, and names no payer.
Law 2. A budget is what the caller is willing to spend, so it can only lower what may be spent.
Law 3. A credential in it is taken from nobody, used by nobody, and shown as withheld.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from carnet.core.messages.events import Usage
from carnet.core.money.amount import MICROS, MOST_MICROS, format_amount
from carnet.core.people.proof import Spending
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    OutboundFacts,
    PayloadBroken,
    TaskFacts,
    count,
    foreign_depth,
    foreign_mark,
    members,
    payload,
    shown,
    word,
)

DATALAYER_URI: Final = "https://datalayer.ai/extensions/orchestration/v1"
KEY: Final = "datalayer"

_WITHHELD: Final = "withheld"


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """What an orchestrator says of a call to us."""
    value = payload(found, KEY)
    if value is None:
        return None
    given = members(value)
    execution = members(given.get("execution") or {})
    depth = foreign_depth(execution, "depth", f"{KEY}.execution")
    for name in ("executionId", "rootExecutionId", "parentExecutionId", "accountUid"):
        word(execution, name)
    parts = given | ({"credential": _WITHHELD} if "credential" in given else {})
    return ExtensionClaim(
        mark=foreign_mark(KEY, depth, last_depth),
        budget=_read_budget(given.get("budget")),
        shown=shown(parts),
    )


def _read_budget(value: object) -> Spending | None:
    if value is None:
        return None
    given = members(value)
    tokens = [count(given, name) for name in ("inputTokens", "outputTokens")]
    known = [number for number in tokens if number is not None]
    both = sum(known) if len(known) == len(tokens) else None
    money, currency = _read_cost(given), word(given, "currency", 32)
    if money is None and both is None:
        return None
    return Spending(money=money, currency=currency, tokens=both)


def _read_cost(given: Mapping[str, Any]) -> int | None:
    """A cost, which is a JSON number there, as micro-units. A part of one is left out."""
    value = given.get("cost")
    if value is None:
        return None
    if type(value) not in {int, float}:
        raise PayloadBroken("has a cost that is not a number")
    micros = int(Decimal(repr(value)) * MICROS)
    if not 0 <= micros <= MOST_MICROS:
        raise PayloadBroken("has a cost below zero or beyond any price")
    return micros


def send(sending: OutboundFacts) -> dict[str, Any]:
    """What we say of a call to a worker."""
    carnet = sending.carnet
    execution = {
        "executionId": carnet.turn,
        "rootExecutionId": carnet.run,
        "parentExecutionId": carnet.parent_turn,
        "depth": carnet.depth,
        "accountUid": sending.payer,
    }
    parts: dict[str, Any] = {"execution": _known(execution)}
    budget = carnet.budget
    if budget is not None and budget.money is not None:
        parts["budget"] = _known({"cost": _cost(budget.money), "currency": budget.currency})
    return {KEY: parts}


def task(facts: TaskFacts) -> dict[str, Any]:
    """What a task has used."""
    usage = facts.usage
    if usage is None:
        return {}
    given = {
        "inputTokens": usage.tokens_in,
        "outputTokens": usage.tokens_out,
        "cost": None if usage.cost is None else _cost(usage.cost),
        "currency": usage.currency,
    }
    return {KEY: {"usage": _known(given)}}


def _known(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _cost(micros: int) -> float:
    """A cost as the number that it is there; a double holds every amount that we have."""
    return float(format_amount(micros))


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What a worker says it has used, or why it refuses."""
    value = metadata.get(KEY)
    if value is None:
        return None
    given = members(value)
    usage = given.get("usage")
    parts = {name: given[name] for name in ("usage", "paused", "error") if name in given}
    claimed = {KEY: shown(parts)}
    if usage is None:
        return AnswerClaims(claimed=claimed)
    used = members(usage)
    in_what = word(used, "currency", 32)
    return AnswerClaims(
        usage=Usage(
            tokens_in=count(used, "inputTokens"),
            tokens_out=count(used, "outputTokens"),
            cost=_read_cost(used) if in_what == currency else None,
            currency=in_what if in_what == currency else None,
        ),
        claimed=claimed,
    )


DATALAYER: Final = ExtensionRow(
    secrets=((KEY, "credential"),),
    name="datalayer",
    uris=(DATALAYER_URI,),
    keys=(KEY,),
    is_declared=True,
    description="Executions, budgets and usage in the words of Datalayer's orchestration.",
    reads="execution, depth, account and budget of a call; usage and refusals of who we called",
    writes="run, turn, parent turn, depth, payer and budget of a call; usage of a task",
    believes="the depth, which only raises ours; the budget, which only lowers what may be spent",
    read=read,
    task=task,
    send=send,
    answer=answer,
)
