"""What one run has found."""

from dataclasses import dataclass, field

from bench.clients import Clients
from bench.cpu import Cores
from bench.flat import Flat
from bench.held import Held
from bench.measures import Added, Throughput, Window
from bench.subjects import A2A, A2A_PACKAGE, REFERENCE, SAMVAD
from bench.tasks import Beside
from bench.turns import ratios


@dataclass(slots=True, kw_only=True)
class Results:
    """What one run has found so far; a measurement that failed left its reason."""

    seconds: float
    cores: Cores
    facts: dict[str, str]
    sync: float
    is_whole: bool  # whether everything was asked for
    throughputs: dict[str, Throughput] = field(default_factory=dict)
    turns: dict[str, list[Throughput]] = field(default_factory=dict)  # of what is compared
    flat: Flat | None = None
    signed: Flat | None = None
    signed_beside: Flat | None = None  # the package of the same dialect
    clients: Clients | None = None
    added: Added | None = None
    burst: Window | None = None
    trickle: Window | None = None
    held: Held | None = None
    beside: Beside | None = None  # what waits in the background
    failures: dict[str, str] = field(default_factory=dict)

    def ratio(self, name: str) -> float | None:
        """Requests for a CPU second, against the plain proxy in the same run."""
        reference, found = self.throughputs.get(REFERENCE), self.throughputs.get(name)
        if reference is None or found is None:
            return None
        return found.per_cpu_second / reference.per_cpu_second

    def signed_ratio(self) -> float | None:
        """Signed requests for a CPU second, all of them, against the package when it is fresh."""
        fresh = self.throughputs.get(SAMVAD)
        if fresh is None or self.signed is None:
            return None
        return self.signed.per_cpu_second / fresh.per_cpu_second

    def a2a_ratio(self, beside: str = A2A_PACKAGE) -> float | None:
        """Messages for a CPU second, against the package that answers them with tasks as well."""
        ours, package = self.throughputs.get(A2A), self.throughputs.get(beside)
        if ours is None or package is None:
            return None
        return ours.per_cpu_second / package.per_cpu_second

    def a2a_ratios(self, beside: str = A2A_PACKAGE) -> list[float]:
        """The same, round by round."""
        if A2A not in self.turns or beside not in self.turns:
            return []
        return ratios(self.turns[A2A], self.turns[beside])

    def windows(self) -> list[Window]:
        """Every stretch of time in which others could have taken the core."""
        others = [window for window in (self.burst, self.trickle) if window is not None]
        long = (self.flat, self.signed, self.signed_beside)
        parts = [part for each in long if each is not None for part in each.parts]
        beside = [] if self.beside is None else self.beside.windows
        return [each.window for each in self.throughputs.values()] + others + parts + beside
