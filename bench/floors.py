"""What a hop must reach, and whether it did in this run.

A floor that is missed is said and nothing else: a machine that others use can miss every one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.results import Results
from bench.subjects import SIGNED_HOP

MB = 1_000_000

Verdict = Literal["held", "missed", "no figure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A bound of one figure."""

    name: str
    figure: Callable[[Results], float | None]
    bound: float
    is_most: bool = False  # the figure may not be above it; otherwise not below
    unit: str
    form: str  # of the figure, for people

    def figure_text(self, results: Results) -> str:
        figure = self.figure(results)
        return "-" if figure is None else f"{figure:{self.form}} {self.unit}"

    def bound_text(self) -> str:
        return f"at {'most' if self.is_most else 'least'} {self.bound:,g} {self.unit}"

    def verdict(self, results: Results) -> Verdict:
        figure = self.figure(results)
        if figure is None:
            return "no figure"
        is_held = figure <= self.bound if self.is_most else figure >= self.bound
        return "held" if is_held else "missed"


def _flat(results: Results) -> float | None:
    return None if results.flat is None else results.flat.ratio


def _signed_flat(results: Results) -> float | None:
    return None if results.signed is None else results.signed.ratio


def _clients(results: Results) -> float | None:
    return None if results.clients is None else results.clients.ratio


def _added(results: Results) -> float | None:
    return None if results.added is None else results.added.at(0.5) * 1000


def _burst(results: Results) -> float | None:
    return None if results.burst is None else results.burst.events / results.burst.cpu_seconds


def _held(results: Results) -> float | None:
    return None if results.held is None else results.held.above_idle / MB


def _beside(results: Results) -> float | None:
    return None if results.beside is None else results.beside.ratio


def _beside_p50(results: Results) -> float | None:
    return None if results.beside is None else results.beside.p50_ratio


FLOORS = (
    Floor(
        name="hop on SQLite",
        figure=lambda results: results.ratio("carnet"),
        bound=0.5,
        unit="x caddy",
        form=".3f",
    ),
    Floor(
        name="hop on PostgreSQL",
        figure=lambda results: results.ratio("carnet-postgres"),
        bound=0.4,
        unit="x caddy",
        form=".3f",
    ),
    Floor(name="flat", figure=_flat, bound=0.9, unit="x the first", form=".2f"),
    Floor(
        name="signed endpoint",
        figure=lambda results: results.signed_ratio(),
        bound=2,
        unit="x samvad, fresh",
        form=".2f",
    ),
    Floor(name="signed, flat", figure=_signed_flat, bound=0.9, unit="x the first", form=".2f"),
    Floor(
        name="signed hop",
        figure=lambda results: results.ratio(SIGNED_HOP),
        bound=0.4,
        unit="x caddy",
        form=".3f",
    ),
    Floor(
        name="A2A echo",
        figure=lambda results: results.a2a_ratio(),
        bound=8,
        unit="x a2a-sdk-tasks",
        form=".1f",
    ),
    Floor(name="client", figure=_clients, bound=20, unit="x samvad's", form=".1f"),
    Floor(name="added p50", figure=_added, bound=3.0, is_most=True, unit="ms", form=".2f"),
    Floor(name="burst", figure=_burst, bound=40_000, unit="events/CPU-s", form=",.0f"),
    Floor(name="open streams", figure=_held, bound=60, is_most=True, unit="MB", form=".1f"),
    Floor(name="beside tasks", figure=_beside, bound=0.9, unit="x alone", form=".2f"),
    Floor(
        name="beside tasks, p50",
        figure=_beside_p50,
        bound=1.1,
        is_most=True,
        unit="x alone",
        form=".2f",
    ),
)
