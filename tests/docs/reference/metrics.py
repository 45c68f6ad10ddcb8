"""The metrics of a gateway, as a scrape sees them once each was counted."""

from msgspec import Struct

from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Account
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.traces.ends import Ends
from carnet.runtime.traces.exporter import SpanExporter
from carnet.telemetry import Metrics


class Gone(Struct):
    """Rows that retention has forgotten."""

    turns: int = 1


def counted() -> Metrics:
    """The metrics of a gateway, each counted once."""
    metrics = Metrics()
    exporter = SpanExporter(EgressClient(), "http://127.0.0.1:4318", domain="", most=1)
    ends = Ends(domain="", exporter=exporter)
    metrics.tallies.look = ends.tallies
    for agent in ("echo", "@echo@globex.example"):
        payer = Account("acme.example", "ann")
        turn = Turn(n=1, agent=agent, run="r", turn="t", created=0, ended=1, payer=payer)
        ends.ended += ((Carnet(run="r", turn="t"), turn, ()),)
    metrics.called("echo", "done", 0.1)
    metrics.refusals.labels("token_missing").inc()
    metrics.tasks.labels("echo", "done").inc()
    metrics.count_delivery_attempt("task.done", "delivered")
    metrics.count_pruned(Gone())
    metrics.held(0.1)
    return metrics


def metrics_table() -> str:
    """Every metric: its name, its labels, what it counts."""
    rows = []
    for family in counted().registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = [f"`{label}`" for label in family.samples[0].labels if label != "le"]
        rows.append(f"| `{name}` | {family.type} | {', '.join(labels)} | {family.documentation} |")
    return "\n".join(["| name | type | labels | what |", "|---|---|---|---|", *sorted(rows), ""])
