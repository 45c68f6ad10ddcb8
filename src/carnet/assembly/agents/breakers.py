"""The breakers of a gateway: one an endpoint, shared by all agents that call it."""

from carnet.ports.world.clock import Clock
from carnet.runtime.wrappers.breaker import Breaker


class Breakers:
    """Gives each endpoint its breaker."""

    def __init__(self, clock: Clock) -> None:
        """`clock` measures how long an upstream is left alone."""
        self._clock = clock
        self._known: dict[str, Breaker] = {}

    def of(self, endpoint: str | None) -> Breaker | None:
        """The breaker of an endpoint; an agent without one needs none."""
        if endpoint is None:
            return None
        breaker = self._known.get(endpoint)
        if breaker is None:
            breaker = self._known[endpoint] = Breaker(clock=self._clock)
        return breaker

    def circuits(self) -> list[dict[str, str | int]]:
        """The upstreams that are left alone at the moment: by all, or by so many callers."""
        found: list[dict[str, str | int]] = []
        for endpoint, breaker in self._known.items():
            state, callers = breaker.state, breaker.callers
            row: dict[str, str | int] = {"upstream": endpoint, "state": state}
            row["failures"] = breaker.most_failures
            if state != "closed":
                found.append(row)
            elif callers:
                found.append({**row, "state": "open", "callers": callers})
        return found

    def open_to_nobody(self) -> int:
        """How many are left alone by all callers."""
        return sum(breaker.state != "closed" for breaker in self._known.values())
