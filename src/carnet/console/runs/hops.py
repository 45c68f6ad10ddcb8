"""A run as a flat list of hops, each with its organisation: what all pictures are drawn from.

Law 1. A hop is a turn here, or a call to another organisation that is no turn here.
Law 2. The organisations have numbers in the order in which they appear, ours the first: a colour
       means the same in every picture of a run.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from carnet.wire.grammar.times import micros_of

Page = dict[str, Any]

COLOURS: Final = 8  # then they begin again
ENDED: Final = frozenset({"done", "failed", "unknown"})
MOST_HOPS: Final = 400  # that are drawn; `GET /runs/{id}` has all of them


class DrawnHop(Struct, frozen=True, kw_only=True):
    """One call, as pictures show it."""

    key: int  # its place in the run
    above: int | None  # the hop that made it
    turn: str
    agent: str
    organisation: str
    number: int  # of the organisation
    level: int  # how far below the first
    depth: int
    is_final: bool  # the last depth of its chain: it calls nobody else
    state: str
    code: str | None
    began: int  # microseconds since the epoch
    ended: int | None
    waits: tuple[tuple[int, int | None], ...]  # for a person: since when, until when
    cost: str | None
    payer: str | None
    actor: str | None
    attempt: int
    is_shared: bool  # we know what happened in it; not of another organisation's
    seal: str | None  # how its signature stands


def hops_of(page: Page, domain: str) -> list[DrawnHop]:
    """The hops of a run's page, each after the one that made it."""
    found: list[DrawnHop] = []
    numbers: dict[str, int] = {domain: 0}
    for root in page["turns"]:
        _walk(root, None, 0, found, numbers, domain)
    return found[:MOST_HOPS]


def mark_of(page: Page, hops: Sequence[DrawnHop]) -> str:
    """What is another one when a turn has ended, has gone on after an answer, or waits."""
    ended = sum(hop.state in ENDED for hop in hops)
    return f"{ended}/{sum(hop.attempt for hop in hops)}/{page['state']}"


def _walk(
    turn: Page,
    above: int | None,
    level: int,
    found: list[DrawnHop],
    numbers: dict[str, int],
    domain: str,
) -> None:
    own = next((leg for leg in turn["legs"] if leg["ordinal"] is None), None)
    hop = _turn(turn, len(found), above, level, own, numbers, domain)
    found.append(hop)
    for leg in turn["legs"]:
        if leg["ordinal"] is not None and all(leg["turn"] != c["turn"] for c in turn["children"]):
            found.append(_leg(leg, len(found), hop, numbers, domain))
    for child in turn["children"]:
        _walk(child, hop.key, level + 1, found, numbers, domain)


def _turn(
    turn: Page,
    key: int,
    above: int | None,
    level: int,
    own: Page | None,
    numbers: dict[str, int],
    domain: str,
) -> DrawnHop:
    organisation = organisation_of(turn["agent"], domain)
    return DrawnHop(
        key=key,
        above=above,
        turn=turn["turn"],
        agent=turn["agent"],
        organisation=organisation,
        number=numbers.setdefault(organisation, len(numbers)) % COLOURS,
        level=level,
        depth=turn["depth"],
        is_final=turn["limit"] is not None and turn["depth"] + 1 >= turn["limit"],
        state=turn["state"],
        code=turn["code"],
        began=_micros(turn["started"]) or 0,
        ended=_micros(turn["ended"]),
        waits=tuple(_waits(turn)),
        cost=turn["cost"],
        payer=turn["payer"],
        actor=turn["actor"],
        attempt=turn["attempt"],
        is_shared=organisation == domain,
        seal=None if own is None else seal_of(own),
    )


def _leg(leg: Page, key: int, above: DrawnHop, numbers: dict[str, int], domain: str) -> DrawnHop:
    organisation = organisation_of(leg["to"], domain)
    return DrawnHop(
        key=key,
        above=above.key,
        turn=leg["turn"],
        agent=leg["to"],
        organisation=organisation,
        number=numbers.setdefault(organisation, len(numbers)) % COLOURS,
        level=above.level + 1,
        depth=leg["depth"],
        is_final=False,
        state=leg["status"],
        code=leg["code"],
        began=above.began,
        ended=above.ended,
        waits=(),
        cost=leg["cost"],
        payer=above.payer,
        actor=None,
        attempt=1,
        is_shared=False,
        seal=seal_of(leg),
    )


def _waits(turn: Page) -> Iterator[tuple[int, int | None]]:
    for asked in turn.get("answers", ()):
        since, until = _micros(asked["since"]), _micros(asked["at"])
        if since and until:
            yield since, until
    for asked in turn.get("waits", ()):
        since = _micros(asked["since"])
        if since:
            yield since, None


_UNSEALED: Final = {
    "signature_invalid": "invalid",
    "signature_expired": "expired",
    "key_unknown": "unknown key",
    "key_revoked": "revoked key",
}


def seal_of(leg: Page) -> str | None:
    """How the signature of another organisation's answer stands; None where there is none."""
    for code in (leg["peer_code"], leg["code"]):
        if code in _UNSEALED:
            return _UNSEALED[code]
    return "valid" if leg["receipt"] else None


def organisation_of(agent: str, domain: str) -> str:
    """Whose agent it is: the domain in its address, or ours."""
    if agent.startswith("@"):
        return agent.rpartition("@")[2] or domain
    if "://" in agent:
        return agent.partition("://")[2].partition("/")[0] or domain
    return domain


def organisations(hops: Sequence[DrawnHop]) -> list[Page]:
    """Those of a run, each with its number, as they appear."""
    return [
        {"name": name, "number": number}
        for name, number in dict.fromkeys((hop.organisation, hop.number) for hop in hops)
    ]


def _micros(text: str | None) -> int | None:
    return None if text is None else micros_of(text)
