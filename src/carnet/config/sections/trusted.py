"""The sections of those who are trusted: peers, hosts that call, and others who pay."""

from collections.abc import Mapping, Sequence
from functools import partial

from carnet.config.outbound import LATER_DIALECTS, PeerSettings
from carnet.config.readers import one_of
from carnet.config.sources import Sources
from carnet.config.trust.callers import CallerSettings
from carnet.config.trust.payers import MOST_PAYERS, PayerSettings, wrong_with
from carnet.core.people.address import check_domain
from carnet.core.people.caller_host import site_of
from carnet.errors import AddressInvalid


def read_peers(sources: Sources, dialects: Sequence[str]) -> dict[str, PeerSettings]:
    """The peers of the file."""
    peers: dict[str, PeerSettings] = {}
    for domain in sources.names("peers"):
        peer = sources.part(partial(_peer, sources, domain, dialects))
        if peer is not None:
            _refuse_shared(sources, domain, peer, peers)
            peers[domain] = peer
    return peers


def _refuse_shared(
    sources: Sources, domain: str, peer: PeerSettings, others: Mapping[str, PeerSettings]
) -> None:
    """Refuse a certificate that would be two peers'."""
    if peer.certificate is None:
        return
    for other, listed in others.items():
        if listed.certificate == peer.certificate:
            sources.refuse(("peers", domain, "certificate"), f"is that of {other} too")


def _peer(sources: Sources, domain: str, dialects: Sequence[str]) -> PeerSettings:
    try:
        check_domain(domain)
    except AddressInvalid as error:
        sources.refuse(("peers", domain), f"is no peer's domain: {error.facts['reason']}")
    readers = {"dialect": one_of(*dialects, later=LATER_DIALECTS)}
    return sources.section(PeerSettings, ("peers", domain), readers)


def read_callers(sources: Sources) -> dict[str, CallerSettings]:
    """The hosts that call with a context."""
    callers: dict[str, CallerSettings] = {}
    for url in sources.names("callers"):
        caller = sources.part(partial(_caller, sources, url))
        if caller is not None:
            callers[url] = caller
    return callers


def _caller(sources: Sources, url: str) -> CallerSettings:
    path, site = ("callers", url), site_of(url)
    if site != url:
        fix = "" if site is None else f'; write [callers."{site}"]'
        sources.refuse(path, f"is no URL of a host in its plain form{fix}")
    caller = sources.section(CallerSettings, path)
    if (caller.key is None) == (caller.certificate is None):
        sources.refuse(path, "needs a 'key' or a 'certificate', not both")
    return caller


def read_payers(sources: Sources) -> dict[str, PayerSettings]:
    """Who else may pay, by the prefix of its credentials."""
    names = sources.names("payers")
    if len(names) > MOST_PAYERS:
        sources.refuse(("payers",), f"has more than {MOST_PAYERS} sections")
    read = {name: sources.part(partial(_payer, sources, name)) for name in names}
    return {name: payer for name, payer in read.items() if payer is not None}


def _payer(sources: Sources, prefix: str) -> PayerSettings:
    payer = sources.section(PayerSettings, ("payers", prefix))
    wrong = wrong_with(prefix, payer)
    return payer if wrong is None else sources.refuse(("payers", prefix), wrong)
