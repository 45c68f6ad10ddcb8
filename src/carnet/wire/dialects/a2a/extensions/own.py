"""Our own extensions that tell the chain, the use and the receipt of a call, and its terms.

    urn:carnet:a2a:chain:v1     {run, turn, parentTurn, speaker, depth, limit,
                                 budget {money, currency, calls, tokens, seconds}}
    urn:carnet:a2a:usage:v1     {tokensIn, tokensOut, cost, currency, runCost}
    urn:carnet:a2a:receipt:v1   {receipt}
    urn:carnet:a2a:terms:v1     the params of a card (R31)

Law 1. The chain says what the `x-tangle-*` headers say, for those who cannot set headers, and is
       believed as little. `limit` is the first depth that is refused; it only lowers ours. So does
       `budget`, which is the most that the call and all below it may spend.
Law 2. `read(write(x)) == x` for each of them.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.chain.carnet import Carnet, Mark
from carnet.core.messages.events import Usage
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.proof import Spending
from carnet.errors import ChainMismatch, InvalidRequest
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    OutboundFacts,
    PayloadBroken,
    TaskFacts,
    count,
    members,
    needed,
    payload,
    shown,
    word,
)

CHAIN_URI: Final = "urn:carnet:a2a:chain:v1"
USAGE_URI: Final = "urn:carnet:a2a:usage:v1"
RECEIPT_URI: Final = "urn:carnet:a2a:receipt:v1"
TERMS_URI: Final = "urn:carnet:a2a:terms:v1"

MOST_RUN: Final = 128
MOST_TURN: Final = 256
MOST_SPEAKER: Final = 128
MOST_RECEIPT: Final = 4096

_SPENT: Final = {"money", "currency", "calls", "tokens", "seconds"}

# ------------------------------------------------------------------ chain


def read_chain(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The chain that a message tells."""
    try:
        value = payload(found, CHAIN_URI)
    except PayloadBroken:
        raise ChainMismatch("two different chains in the metadata") from None
    if value is None:
        return None
    given = members(value)
    limit = count(given, "limit")
    mark = Mark(
        stamp="chain",
        depth=count(given, "depth"),
        last_depth=_last_depth(limit, last_depth),
        is_usual=limit is None or limit - 1 > last_depth,
        own_depth=None if limit is None or limit - 1 <= last_depth else limit - 1,
        run=word(given, "run", MOST_RUN),
        turn=word(given, "turn", MOST_TURN),
        parent_turn=word(given, "parentTurn", MOST_TURN),
        speaker=word(given, "speaker", MOST_SPEAKER),
    )
    return ExtensionClaim(mark=mark, budget=read_budget(given.get("budget")), shown=shown(given))


def read_budget(value: object) -> Spending | None:
    """What may be spent; None where nobody says."""
    if value is None:
        return None
    given = members(value)
    unknown = given.keys() - _SPENT
    if unknown:
        raise PayloadBroken("has a budget with a part that is none")  # it would not be held
    found = Spending(
        money=_amount(given, "money"),
        currency=word(given, "currency", 32),
        calls=count(given, "calls"),
        tokens=count(given, "tokens"),
        seconds=count(given, "seconds"),
    )
    if found.currency is not None and found.money is None:
        raise PayloadBroken("has a budget in a currency, and of no money")
    return None if found == Spending() else found


def write_budget(budget: Spending | None) -> dict[str, Any] | None:
    """What a callee may spend; None where nothing bounds it."""
    if budget is None or budget == Spending():
        return None
    money = budget.money
    given = {
        "money": None if money is None else format_amount(money),
        "currency": None if money is None else budget.currency,
        "calls": budget.calls,
        "tokens": budget.tokens,
        "seconds": budget.seconds,
    }
    return {name: value for name, value in given.items() if value is not None}


def _last_depth(limit: int | None, ours: int) -> int:
    if limit is None:
        return ours
    if limit == 0:
        raise PayloadBroken("has a limit of 0, at which nobody could be called")
    return min(limit - 1, ours)


def write_chain(carnet: Carnet) -> dict[str, Any]:
    """The chain as a callee is told it."""
    last_depth = carnet.last_depth
    given = {
        "run": carnet.run,
        "turn": carnet.turn,
        "parentTurn": carnet.parent_turn,
        "speaker": _label(carnet.speaker),
        "depth": carnet.depth,
        "limit": None if last_depth is None else last_depth + 1,
        "budget": write_budget(carnet.budget),
    }
    return {name: value for name, value in given.items() if value is not None}


def _label(speaker: str | None) -> str | None:
    """A name that a header can hold as well; others are left out, since it is for people."""
    if speaker is None or not (speaker.isascii() and speaker.isprintable()):
        return None
    return speaker[:MOST_SPEAKER].strip(" ") or None


def _send_chain(sending: OutboundFacts) -> dict[str, Any]:
    return {CHAIN_URI: write_chain(sending.carnet)}


def _tell_chain(facts: TaskFacts) -> dict[str, Any]:
    return {CHAIN_URI: {"run": facts.run, "turn": facts.turn}}


def _read_chain_of_task(metadata: Metadata, currency: str) -> AnswerClaims | None:
    del currency
    value = metadata.get(CHAIN_URI)
    return None if value is None else AnswerClaims(claimed={"chain": shown(members(value))})


CHAIN: Final = ExtensionRow(
    name="chain",
    uris=(CHAIN_URI,),
    keys=(CHAIN_URI,),
    is_own=True,
    is_declared=True,
    description="Run, turn, depth and limit of a chain of calls, as the x-tangle headers tell it.",
    reads="run, turn, parent turn, speaker, depth, limit and budget of a call",
    writes="the same toward agents whose card has it; run and turn of every task",
    believes="as the headers that say the same: depth only raises ours, limit and budget only "
    "lower what holds here",
    read=read_chain,
    task=_tell_chain,
    send=_send_chain,
    answer=_read_chain_of_task,
)


# ------------------------------------------------------------------ usage


def write_usage(usage: Usage) -> dict[str, Any]:
    """What a call used."""
    given: dict[str, Any] = {}
    if usage.tokens_in is not None:
        given["tokensIn"] = usage.tokens_in
    if usage.tokens_out is not None:
        given["tokensOut"] = usage.tokens_out
    if usage.cost is not None:
        given["cost"] = format_amount(usage.cost)
    if usage.currency is not None:
        given["currency"] = usage.currency
    if usage.run_cost is not None:
        given["runCost"] = format_amount(usage.run_cost)
    return given


def read_usage(value: object, currency: str) -> Usage:
    """What whoever we called says it used; a cost in another currency is unknown."""
    given = members(value)
    stated, cost, run_cost = word(given, "currency", 32), _amount(given, "cost"), None
    if stated == currency:
        run_cost = _amount(given, "runCost")
    return Usage(
        tokens_in=count(given, "tokensIn"),
        tokens_out=count(given, "tokensOut"),
        cost=cost if stated == currency else None,
        run_cost=run_cost,
        currency=stated if stated == currency else None,
    )


def _amount(given: Metadata, name: str) -> int | None:
    """A decimal text as micro-units, if it is there."""
    text = word(given, name, 32)
    try:
        return None if text is None else parse_amount(text)
    except InvalidRequest:
        raise PayloadBroken(f"has a {name} that is no amount with at most six decimals") from None


def _tell_usage(facts: TaskFacts) -> dict[str, Any]:
    return {} if facts.usage is None else {USAGE_URI: write_usage(facts.usage)}


def _read_usage_of_task(metadata: Metadata, currency: str) -> AnswerClaims | None:
    value = metadata.get(USAGE_URI)
    if value is None:
        return None
    return AnswerClaims(usage=read_usage(value, currency), claimed={"usage": shown(value)})


USAGE: Final = ExtensionRow(
    name="usage",
    uris=(USAGE_URI,),
    keys=(USAGE_URI,),
    is_own=True,
    is_declared=True,
    description="Tokens and cost of a call, and what its run has cost so far.",
    reads="what an agent that we called used and charged",
    writes="tokens, cost, currency and cost of the run, with every task that has ended",
    believes="as every report of a callee: never debited above what the call may cost (R57)",
    task=_tell_usage,
    answer=_read_usage_of_task,
)


# ------------------------------------------------------------------ receipt


def _tell_receipt(facts: TaskFacts) -> dict[str, Any]:
    return {} if facts.receipt is None else {RECEIPT_URI: {"receipt": facts.receipt}}


def _read_receipt_of_task(metadata: Metadata, currency: str) -> AnswerClaims | None:
    del currency
    value = metadata.get(RECEIPT_URI)
    if value is None:
        return None
    receipt = needed(members(value), "receipt", MOST_RECEIPT)
    return AnswerClaims(claimed={"receipt": shown(receipt)}, receipt=receipt)


RECEIPT: Final = ExtensionRow(
    name="receipt",
    uris=(RECEIPT_URI,),
    keys=(RECEIPT_URI,),
    is_own=True,
    is_declared=True,
    description="What the answering gateway signs about its answer, as the carnet-receipt header.",
    reads="the receipt of an agent that we called",
    writes="our receipt, with every task whose caller is owed one",
    believes="nothing before its signature holds under the key of whoever was called",
    task=_tell_receipt,
    answer=_read_receipt_of_task,
)

TERMS: Final = ExtensionRow(
    name="terms",
    uris=(TERMS_URI,),
    keys=(),
    is_own=True,
    is_declared=True,
    description="What a call costs and what bounds it: see the params.",
    reads="nothing of a message: it is told on cards",
    writes="price, most cost, depth, rate, size and forms of signature, in the params of cards",
    believes="a price is what the card says; what is charged above it is disputed (R57)",
)
