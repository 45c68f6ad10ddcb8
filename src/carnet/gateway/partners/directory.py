"""The agents of other organisations: whom we trust and why, what they offer, how calls went.

Law 1. Nobody is asked for it: told is what the record, the cards that we have read and the breakers
       know.
Law 2. How calls went is told to who may read the metrics. Whom we trust, and by which keys, is told
       to who may see that.
Law 3. It is bounded, however many there are: by the newest calls, and in its lists.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.core.money.amount import format_amount
from carnet.core.people.address import AGENT
from carnet.core.people.identity import Caller
from carnet.gateway.partners.trust import MANAGES, pinned_key_page
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.trust.keys import PinnedKey, PinnedKeys
from carnet.ports.trust.strangers import Stranger, Strangers
from carnet.ports.trust.trust import Peer, Peers
from carnet.ports.world.records import CallOut, Records
from carnet.wire.grammar.times import when

Page = dict[str, Any]

NEWEST: Final = 2000  # calls out that are counted
MOST_PARTNERS: Final = 200
MOST_AGENTS: Final = 100  # of one partner
_AT: Final = "/agents/"  # before the name of an agent, in the URLs of a gateway
_DONE: Final = "done"


class KnownCard(Struct, frozen=True, kw_only=True):
    """A card that we have read and that still holds."""

    url: str
    dialect: str
    name: str
    description: str
    skills: tuple[str, ...]


class SectionElsewhere(Struct, frozen=True, kw_only=True):
    """A section of the configuration that names an agent of somebody else."""

    name: str
    dialect: str
    url: str


class DirectorySources(Struct, frozen=True, kw_only=True, eq=False):
    """What is known of others, without asking them."""

    peers: Peers
    pinned: PinnedKeys
    strangers: Strangers
    records: Records
    circuits: Callable[[], Sequence[Mapping[str, Any]]]
    cards: Callable[[], Sequence[KnownCard]]
    sections: Callable[[], Sequence[SectionElsewhere]]


class PartnerPages:
    """The directory."""

    def __init__(self, sources: DirectorySources, *, currency: str) -> None:
        self._sources = sources
        self._currency = currency

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /partners."""
        sources = self._sources
        peers, strangers = await sources.peers.list(), await sources.strangers.list()
        calls, sections = await sources.records.calls_out(NEWEST), sources.sections()
        groups = [
            *(Partner(peer.domain, peer.url, peer=peer) for peer in peers),
            *(Partner(each.domain, stranger=each) for each in strangers),
        ]
        directory = Directory(groups, sections)
        for card in sources.cards():
            directory.take_card(card)
        for section in sections:
            directory.take_section(section)
        for call in calls:
            directory.take_call(call)
        circuits = sources.circuits()
        pins = await sources.pinned.list() if caller.may(MANAGES) else None
        shown = directory.groups()[:MOST_PARTNERS]
        page = {
            "partners": [partner_page(group, circuits, pins) for group in shown],
            "calls": len(calls),
            "most_calls": NEWEST,
            "currency": self._currency,
        }
        await reply_json(exchange, page)


class PartnerAgent:
    """One agent elsewhere."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.section: str | None = None
        self.cards: list[KnownCard] = []
        self.calls: list[CallOut] = []  # the newest first


class Partner:
    """One organisation, or one host that nobody has listed."""

    def __init__(
        self,
        domain: str,
        url: str = "",
        *,
        peer: Peer | None = None,
        stranger: Stranger | None = None,
    ) -> None:
        self.domain = domain
        self.url = url.rstrip("/")
        self.peer = peer
        self.stranger = stranger
        self._callees: dict[str, PartnerAgent] = {}

    def callee(self, address: str) -> PartnerAgent:
        """One of its agents."""
        return self._callees.setdefault(address, PartnerAgent(address))

    def callees(self) -> list[PartnerAgent]:
        """All of them, those that were called last first."""
        return sorted(
            self._callees.values(),
            key=lambda each: (-(each.calls[0].began if each.calls else 0), each.address),
        )

    def holds(self, url: str) -> bool:
        """Whether a URL is one of its gateway's."""
        return bool(self.url) and (url == self.url or url.startswith(f"{self.url}/"))


class Directory:
    """Sorts what is known by whose it is."""

    def __init__(self, groups: Sequence[Partner], sections: Sequence[SectionElsewhere]) -> None:
        self._groups = {group.domain: group for group in reversed(groups)}
        self._sections = {section.name: section for section in sections}

    def groups(self) -> list[Partner]:
        """Peers first, then those that calls went to."""
        return sorted(self._groups.values(), key=lambda group: (group.peer is None, group.domain))

    def take_card(self, card: KnownCard) -> None:
        """Note what an agent publishes."""
        group = self._at(card.url)
        name = card.url.partition(_AT)[2].partition("/")[0]
        callee = group.callee(f"@{name}@{group.domain}" if name else f"@{group.domain}")
        callee.cards.append(card)

    def take_section(self, section: SectionElsewhere) -> None:
        """Note an agent that a section names."""
        self._at(section.url).callee(section.name).section = section.dialect

    def take_call(self, call: CallOut) -> None:
        """Note a call; the newest are taken first."""
        group = self._of(call.to)
        if group is not None:
            group.callee(call.to).calls.append(call)

    def _of(self, to: str) -> Partner | None:
        section = self._sections.get(to)
        if section is not None:
            return self._at(section.url)
        if to.startswith(AGENT):
            host = to.removeprefix(AGENT)
            known = (name for name in self._groups if host == name or host.endswith(f".{name}"))
            return self._named(next(known, host))
        domain = to.rpartition("@")[2] if to.startswith("@") else ""
        return self._named(domain) if domain else None  # an agent that there is no more

    def _at(self, url: str) -> Partner:
        found = (group for group in self._groups.values() if group.holds(url))
        return next(found, None) or self._named(urlsplit(url).netloc or url)

    def _named(self, domain: str) -> Partner:
        return self._groups.setdefault(domain, Partner(domain))


def partner_page(
    group: Partner, circuits: Sequence[Mapping[str, Any]], pins: Sequence[PinnedKey] | None
) -> Page:
    """One organisation; `pins` are None for who may not see whom we trust."""
    callees = group.callees()
    calls = [call for callee in callees for call in callee.calls]
    peer = group.peer
    return {
        "domain": group.domain,
        "is_peer": peer is not None,
        "dialect": None if peer is None else peer.dialect,
        "max_cost": None if peer is None else format_amount(peer.most_cost),
        "circuit": _circuit(group, circuits),
        "trust": None if pins is None else _trust(group, pins),
        "last": when(max((call.began for call in calls), default=None)),
        "agents": [agent_page(callee) for callee in callees[:MOST_AGENTS]],
        "more": max(len(callees) - MOST_AGENTS, 0),
    }


def _circuit(group: Partner, circuits: Sequence[Mapping[str, Any]]) -> Page:
    """How its breaker stands: the worst of those of its addresses."""
    found = [dict(each) for each in circuits if group.holds(str(each["upstream"]))]
    return found[0] if found else {"state": "closed", "failures": 0}


def _trust(group: Partner, pins: Sequence[PinnedKey]) -> Page:
    """How it came to be trusted, by what we know one another, and which of its keys are pinned."""
    peer, stranger = group.peer, group.stranger
    sender = AGENT + group.domain
    hers = [
        pinned_key_page(pin)
        for pin in pins
        if pin.sender == sender or pin.sender.endswith(f".{group.domain}")
    ]
    known_by = []
    if peer is not None:
        known_by.append("our token" if peer.token is not None else "our signature")
        known_by += ["its certificate"] if peer.certificate is not None else []
    how = "called" if peer is None else "file" if peer.from_file else "store"
    return {
        "how": how if stranger is None or peer is not None else "stranger",
        "url": group.url or None,
        "since": None if stranger is None else when(stranger.first_seen),
        "confirmed": stranger is not None and stranger.confirmed_by is not None,
        "offers_other_keys": stranger is not None and stranger.offered is not None,
        "known_by": known_by,
        "pinned": hers,
    }


def agent_page(callee: PartnerAgent) -> Page:
    """One agent: what it publishes, and how the newest calls to it went."""
    calls, cards = callee.calls, callee.cards
    took = sorted(call.took for call in calls if call.took is not None and call.state == _DONE)
    costs = [call.cost for call in calls if call.cost is not None]
    failed = [call for call in calls if call.state in {"failed", "refused"}]
    return {
        "address": callee.address,
        "section": callee.section,
        "name": cards[0].name if cards else None,
        "description": cards[0].description if cards else None,
        "cards": [card.dialect for card in cards],
        "skills": list(cards[0].skills) if cards else [],
        "calls": len(calls),
        "failed": len(failed),
        "code": failed[0].code if failed else None,
        "last": when(calls[0].began) if calls else None,
        "p50": _quantile(took, 0.5),
        "p95": _quantile(took, 0.95),
        "cost": format_amount(costs[0]) if costs else None,
    }


def _quantile(values: Sequence[int], part: float) -> int | None:
    """The value that so many do not exceed, in microseconds."""
    return values[min(int(len(values) * part), len(values) - 1)] if values else None


ROUTES: Final = (
    Row(
        method="GET",
        path="/partners",
        endpoint=PartnerPages.list,
        permission="metrics",
        summary="The agents of other organisations, and how calls to them went",
        answer="Page",
    ),
)
