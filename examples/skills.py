"""Skills: what an agent can be asked for by name, with types for what goes in and comes out."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date

import carnet

clerk = carnet.agent("clerk")


@dataclass
class Booking:
    """What goes in. Its card shows this as JSON Schema."""

    day: date
    seats: int = 2


@dataclass
class Table:
    """What comes out."""

    number: int
    day: date


@clerk.skill("book", trust="public")
async def book(booking: Booking) -> Table:
    """Book a table."""
    return Table(number=10 + booking.seats, day=booking.day)


@clerk.skill("count", trust="public")
def count(words: str) -> int:
    """Count words. A plain function runs beside the event loop."""
    return len(words.split())


@clerk.skill("recite", output=Table, trust="public")
async def recite(lines: list[str]) -> AsyncIterator[str | Table]:
    """Recite line by line: each is a chunk, and the table at the end is the result."""
    for line in lines:
        yield line
    yield Table(number=len(lines), day=date(2026, 11, 15))


@clerk.skill("whoami", trust="authenticated")
async def whoami(visit: carnet.Visit) -> dict[str, str | None]:
    """Say who asks, and whose token came along."""
    return {"caller": visit.caller.actor.name, "principal": visit.principal}


@carnet.agent("porter")
async def porter(visit: carnet.Visit) -> str:
    """Ask the clerk for a table on the day that somebody names."""
    table = await visit.peer("clerk").skill("book", {"day": visit.text})
    return f"Table {table['number']} on {table['day']}"
