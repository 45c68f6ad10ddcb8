"""The bounds of a tenant's worst, and how its figures are told."""

from collections.abc import Mapping, Sequence
from typing import Final

MIB: Final = 1 << 20
MOST_BYTES: Final = 1536 * MIB  # of the gateway's memory, whatever one caller does
MOST_TIMES: Final = 10  # the other's p99 against that of quiet times


def p99(took: Sequence[float]) -> float:
    """The time that one in a hundred takes longer than; of fewer, the longest."""
    return sorted(took)[int(len(took) * 0.99)] if took else float("inf")


def line_of(name: str, took: Sequence[float], base: float | None, memory: int | None) -> str:
    """One line of figures."""
    ordered = sorted(took) or [float("inf")]
    text = f"{name:<18} {len(took):>4} calls  p50 {ordered[len(ordered) // 2] * 1000:8.1f} ms"
    text += f"  p99 {p99(ordered) * 1000:8.1f} ms"
    if base is not None:
        text += f"  {p99(ordered) / base:6.1f} x quiet"
    if memory is not None:
        text += f"  memory {memory // MIB:5d} MiB"
    return text


def requests_of(seen: Mapping[str, int]) -> str:
    """What the attacker was answered, a line for each attack."""
    kinds: dict[str, list[str]] = {}
    for name, number in seen.items():
        kind, _, answer = name.partition(": ")
        kinds.setdefault(kind, []).append(f"{answer} x {number}")
    return "\n".join(f"    {kind:<16} {', '.join(answers)}" for kind, answers in kinds.items())
