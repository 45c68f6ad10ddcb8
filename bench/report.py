"""The figures of one run, as a table for people and as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.bodies import BODY_BYTES
from bench.clients import Calls, Clients
from bench.flat import Flat
from bench.floors import FLOORS, MB
from bench.held import Held
from bench.measures import RATE, SYNC_BYTES, SYNC_COUNT, Added, Throughput, Window
from bench.results import Results
from bench.subjects import A2A_DURABLE, A2A_PACKAGE, CONNECTIONS, SUBJECTS, Subject
from bench.tasks import Beside, p50, per_cpu_second
from bench.upstream import BURST_EVENTS

NOISY = 0.05  # a share of the core taken by others that moves the figures
SATURATED = 0.8  # below it, the load or the disk was the limit and not the CPU


def ms(seconds: float) -> str:
    """Milliseconds, for people."""
    return f"{seconds * 1000:.2f} ms"


def us(seconds: float) -> str:
    """Microseconds, for people."""
    return f"{seconds * 1_000_000:.0f} us"


def mb(size: int) -> str:
    """Megabytes, for people."""
    return f"{size / MB:.1f} MB"


def show(results: Results) -> None:
    """Print everything."""
    for name, fact in results.facts.items():
        print(f"{name:<9} {fact}")
    print(f"{'cores':<9} {results.cores}")
    print(
        f"{'method':<9} {BODY_BYTES} byte bodies, {CONNECTIONS} connections, closed loop,"
        f" {results.seconds:g} s each after the warm-up"
    )
    print()
    if results.throughputs:
        _show_subjects(results)
        print()
    _show_rest(results)
    _show_floors(results)
    _show_warnings(results)


def _show_subjects(results: Results) -> None:
    rows: list[tuple[str, ...]] = [
        ("", "req/CPU-s", "x caddy", "req/s", "CPU", "p50", "p99", "does")
    ]
    rows += [_row(results, subject) for subject in SUBJECTS if subject.name in results.throughputs]
    _print_aligned(rows)


def _row(results: Results, subject: Subject) -> tuple[str, ...]:
    found = results.throughputs[subject.name]
    ratio = results.ratio(subject.name)
    window = found.window
    return (
        subject.name,
        f"{found.per_cpu_second:,.0f}",
        "-" if ratio is None else f"{ratio:.2f}",
        f"{window.answered / window.seconds:,.0f}",
        f"{window.cpu_seconds / window.seconds:.0%}",
        ms(found.p50),
        ms(found.p99),
        subject.does,
    )


def _print_aligned(rows: Sequence[tuple[str, ...]]) -> None:
    """Numbers to the right, the first and the last column to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        middle = "  ".join(
            cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)
        )
        print(f"{row[0].ljust(widths[0])}  {middle}  {row[-1]}".rstrip())


def _show_a2a(results: Results) -> None:
    """Both ratios: the floor is against the tasks in memory, those on the disk do what ours do."""
    parts = []
    for name, what in ((A2A_PACKAGE, "in memory"), (A2A_DURABLE, "on the disk as ours")):
        ratio, rounds = results.a2a_ratio(name), results.a2a_ratios(name)
        if ratio is not None and rounds:
            spread = f"{min(rounds):.1f} to {max(rounds):.1f} in {len(rounds)} rounds"
            parts.append(f"{ratio:.1f} x {name}, tasks {what} ({spread})")
    if parts:
        print(f"A2A       {'; '.join(parts)}")


def _show_rest(results: Results) -> None:
    _show_a2a(results)
    print(f"disk      {ms(results.sync)}: median of {SYNC_COUNT} fdatasync of {SYNC_BYTES} bytes")
    _show_flat("flat", "requests", results.flat)
    _show_flat("signed", "signed requests", results.signed)
    _show_flat("beside", "of them at samvad", results.signed_beside)
    if results.clients is not None:
        both = results.clients
        print(
            f"client    {both.ratio:.1f} x samvad's: {both.carnet.per_second:,.0f} against"
            f" {both.samvad.per_second:,.0f} calls/s, one after the other"
        )
    if results.added is not None:
        added = results.added
        parts = [
            f"p{share * 100:.0f} {ms(added.at(share))}"
            f" ({ms(added.direct.quantile(share))} to {ms(added.through.quantile(share))})"
            for share in (0.5, 0.99)
        ]
        print(f"added     by the hop at {RATE} requests/s, open loop: {', '.join(parts)}")
    if results.burst is not None:
        window = results.burst
        print(
            f"burst     {window.events / window.cpu_seconds:,.0f} events/CPU-s:"
            f" {CONNECTIONS} streams at a time, each of {BURST_EVENTS} events at once"
            f" ({us(window.cpu_seconds / window.events)} an event)"
        )
    if results.trickle is not None:
        window = results.trickle
        print(
            f"trickle   {us(window.cpu_seconds / window.events)} of CPU an event:"
            f" {CONNECTIONS} streams, {window.events / window.seconds:,.0f} events/s in all"
        )
    if results.held is not None:
        held = results.held
        print(
            f"held      {mb(held.above_idle)} above idle: {held.streams:,} streams, open and silent"
            f" ({mb(held.idle)} to {mb(held.open)}, {mb(held.closed)} when they are closed;"
            f" {held.above_idle / held.streams / 1000:.1f} KB each)"
        )

    _show_beside(results.beside)


def _show_beside(beside: Beside | None) -> None:
    if beside is None:
        return
    print(
        f"tasks     {beside.ratio:.2f}: {per_cpu_second(beside.laden):,.0f} against"
        f" {per_cpu_second(beside.alone):,.0f} requests/CPU-s, beside {beside.tasks:,} tasks that"
        f" wait and {beside.deliveries:,} webhook deliveries to a receiver that is down"
    )
    print(
        f"          p50 {ms(p50(beside.laden))} against {ms(p50(beside.alone))};"
        f" in turns: {' '.join(_pairs(beside))}"
    )


def _pairs(beside: Beside) -> list[str]:
    rounds = zip(beside.laden, beside.alone, strict=True)
    return [f"{one.per_cpu_second:,.0f}/{other.per_cpu_second:,.0f}" for one, other in rounds]


def _show_flat(name: str, what: str, flat: Flat | None) -> None:
    if flat is None:
        return
    print(
        f"{name:<9} {flat.ratio:.2f}: {flat.each[-1]:,.0f} against {flat.each[0]:,.0f}"
        f" requests/CPU-s, the last tenth of {flat.requests:,} {what} against the first"
    )
    print(f"          each tenth: {' '.join(f'{each:,.0f}' for each in flat.each)}")


def _show_floors(results: Results) -> None:
    """Each figure that has a bound, the bound, and whether it held."""
    floors = [each for each in FLOORS if results.is_whole or each.figure(results) is not None]
    if not floors:
        return
    rows = [
        (f"  {each.name}", each.figure_text(results), each.bound_text(), each.verdict(results))
        for each in floors
    ]
    print("\nfloors")
    _print_aligned(rows)


def _show_warnings(results: Results) -> None:
    for name, why in results.failures.items():
        print(f"\nno figure for {name}: {why}")
    if results.cores.subject is None:
        return  # the load shares the core: nobody can tell what is noise
    noise = max((each.others_seconds / each.seconds for each in results.windows()), default=0.0)
    if noise > NOISY:
        print(f"\nnoise     other processes took up to {noise:.0%} of the subject's core")
    for name, found in results.throughputs.items():
        used = (found.window.cpu_seconds + found.window.others_seconds) / found.window.seconds
        if used < SATURATED:
            print(f"\nnote      {name} was busy {used:.0%} of the time: it waited for something")


def to_json(results: Results) -> dict[str, Any]:
    """The same, for machines: seconds, counts and ratios without rounding."""
    return {
        "machine": results.facts,
        "method": {
            "seconds": results.seconds,
            "body_bytes": BODY_BYTES,
            "connections": CONNECTIONS,
            "subject_core": results.cores.subject,
            "load_core": results.cores.load,
        },
        "subjects": {name: _subject_json(results, name) for name in results.throughputs},
        "a2a": {name: results.a2a_ratio(name) for name in (A2A_PACKAGE, A2A_DURABLE)},
        "a2a_rounds": {name: results.a2a_ratios(name) for name in (A2A_PACKAGE, A2A_DURABLE)},
        "fdatasync_seconds": results.sync,
        "flat": _flat_json(results.flat),
        "signed": _flat_json(results.signed),
        "signed_beside": _flat_json(results.signed_beside),
        "clients": _clients_json(results.clients),
        "added_latency": _added_json(results.added),
        "burst": _window_json(results.burst),
        "trickle": _window_json(results.trickle),
        "held": _held_json(results.held),
        "tasks": _beside_json(results.beside),
        "floors": [
            {
                "name": floor.name,
                "figure": floor.figure(results),
                "at_most" if floor.is_most else "at_least": floor.bound,
                "verdict": floor.verdict(results),
            }
            for floor in FLOORS
        ],
        "failures": results.failures,
    }


def _subject_json(results: Results, name: str) -> dict[str, Any]:
    found = results.throughputs[name]
    return {
        "per_cpu_second": found.per_cpu_second,
        "ratio_to_caddy": results.ratio(name),
        "p50_seconds": found.p50,
        "p99_seconds": found.p99,
        **(_window_json(found.window) or {}),
    }


def _window_json(window: Window | None) -> dict[str, float] | None:
    if window is None:
        return None
    return {
        "wall_seconds": window.seconds,
        "cpu_seconds": window.cpu_seconds,
        "others_cpu_seconds": window.others_seconds,
        "answered": window.answered,
        "events": window.events,
    }


def _flat_json(flat: Flat | None) -> dict[str, Any] | None:
    if flat is None:
        return None
    return {
        "requests": flat.requests,
        "per_cpu_second": flat.each,
        "ratio": flat.ratio,
        "parts": [_window_json(part) for part in flat.parts],
    }


def _clients_json(both: Clients | None) -> dict[str, Any] | None:
    if both is None:
        return None

    def each(client: Calls) -> dict[str, float]:
        return {
            "calls": client.calls,
            "wall_seconds": client.seconds,
            "cpu_seconds": client.cpu_seconds,
            "per_second": client.per_second,
        }

    return {"carnet": each(both.carnet), "samvad": each(both.samvad), "ratio": both.ratio}


def _held_json(held: Held | None) -> dict[str, int] | None:
    if held is None:
        return None
    return {
        "streams": held.streams,
        "idle_bytes": held.idle,
        "open_bytes": held.open,
        "closed_bytes": held.closed,
        "above_idle_bytes": held.above_idle,
    }


def _beside_json(beside: Beside | None) -> dict[str, Any] | None:
    if beside is None:
        return None

    def each(rounds: Sequence[Throughput]) -> list[dict[str, float]]:
        return [{"p50_seconds": one.p50, **(_window_json(one.window) or {})} for one in rounds]

    return {
        "ratio": beside.ratio,
        "p50_ratio": beside.p50_ratio,
        "waiting_tasks": beside.tasks,
        "deliveries": beside.deliveries,
        "alone": each(beside.alone),
        "beside": each(beside.laden),
    }


def _added_json(added: Added | None) -> dict[str, float] | None:
    if added is None:
        return None
    return {
        "requests_per_second": RATE,
        "requests": len(added.through),
        "direct_p50_seconds": added.direct.quantile(0.5),
        "direct_p99_seconds": added.direct.quantile(0.99),
        "added_p50_seconds": added.at(0.5),
        "added_p99_seconds": added.at(0.99),
    }


def write_json(figures: dict[str, Any], path: Path) -> None:
    """The figures in a file."""
    path.write_text(json.dumps(figures, indent=2) + "\n")
