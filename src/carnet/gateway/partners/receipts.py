"""The endpoint that proves a run: the receipts of its calls, and of what was called below them.

Law 1. Whoever holds a token is shown the receipts of what it called, judged: which of them are
       signed, which are named by another that is, and what is wrong. No words are told.
Law 2. A gateway that called us is told the receipts which ours for that call names, unjudged: it
       judges by itself.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.money.amount import format_amount
from carnet.errors import RunNotFound
from carnet.gateway.partners.askers import RunAsker, RunAskers, Walks
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.trust.receipts import CallTree, ProofAsk, Proves
from carnet.wire import travel

PERMISSION: Final = "run:read"


class ProofEndpoint:
    """Proves runs."""

    def __init__(self, proves: Proves, askers: RunAskers) -> None:
        """`askers` tell who asks."""
        self._proves = proves
        self._askers = askers
        self._walks = Walks()

    async def receipts(self, exchange: Exchange, run: str) -> None:
        """POST /runs/{id}/receipts."""
        asker = await self._askers.who(exchange, run, PERMISSION)
        with self._walks.one(asker.name):
            page = await (self._listed if asker.turns is not None else self._judged)(run, asker)
        if page is None:
            raise RunNotFound
        await reply_json(exchange, {"run": run, **page})

    async def _listed(self, run: str, asker: RunAsker) -> dict[str, Any] | None:
        nodes = await self._proves.gather(_ask(run, asker))
        return None if nodes is None else {"receipts": travel.write_receipts(nodes)}

    async def _judged(self, run: str, asker: RunAsker) -> dict[str, Any] | None:
        proof = await self._proves(_ask(run, asker))
        return None if proof is None else proof_page(proof)


def _ask(run: str, asker: RunAsker) -> ProofAsk:
    return ProofAsk(run=run, reader=asker.reader, turns=asker.turns, seconds=asker.seconds)


def proof_page(proof: CallTree) -> dict[str, Any]:
    """A proof as it is shown."""
    verdicts = list(proof.verdicts.values())
    return {
        "proved": not proof.faults,
        "signed": verdicts.count("signed"),
        "vouched": verdicts.count("vouched"),
        "unproved": proof.unproved,
        "faults": [
            {"issuer": issuer, "turn": turn, "fault": fault} for issuer, turn, fault in proof.faults
        ],
        "receipts": _shown(proof.nodes, proof),
    }


def _shown(nodes: Sequence[travel.ReceiptNode], proof: CallTree) -> list[dict[str, Any]]:
    return [
        {
            "turn": node.turn,
            "to": node.to,
            "issuer": node.receipt.issuer,
            "audience": node.receipt.audience,
            "parent": node.receipt.parent,
            "cost": None if node.receipt.cost is None else format_amount(node.receipt.cost),
            "currency": node.receipt.currency,
            "calls": node.receipt.calls,
            "max_depth": node.receipt.max_depth,
            "code": node.receipt.code,
            "verdict": proof.verdicts[travel.receipt_hash(node.text).hex()] or "broken",
            "unknown": node.code,
            "receipt": node.text,
            "below": _shown(node.below, proof),
        }
        for node in nodes
    ]


ROUTES = (
    Row(
        method="POST",
        path="/runs/{run}/receipts",
        endpoint=ProofEndpoint.receipts,
        auth="gate",
        permission=PERMISSION,
        summary="The proof of its tree of calls: what other organisations have signed for",
        answer="Page",
    ),
)
