"""Access tokens of OAuth and what they grant; and who pays by the word of others.

Law 1. The token is a secret; a grant holds names and permissions of ours, and no more than its
       issuer was configured to give.
Law 2. Who vouches for an account answers for it: the limit that bounds it is the voucher's.
Law 3. The users of two issuers are never the same callers, also where both are at one host.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.people.address import AGENT
from carnet.core.people.evidence import Evidence
from carnet.core.people.identity import Account, Payer, Secret


class AccessToken(Struct, frozen=True, kw_only=True):
    """An access token of a configured issuer, as it came."""

    token: Secret
    issuer: str | None = None  # that it names; None for one that names none


class Grant(Struct, frozen=True, kw_only=True):
    """What a verified access token says."""

    issuer: str
    subject: str
    scopes: frozenset[str]  # permissions of ours
    expires: int  # seconds since the epoch
    client: str | None = None  # that it was given to
    credit: int = 0  # what all subjects of its issuer may owe together, micro-units
    task: str | None = None  # the only one that it is for

    @property
    def host(self) -> str:
        """The name of its issuer in records: its host, with the path where it has one."""
        return issuer_name(self.issuer)


def issuer_name(url: str) -> str:
    """What an issuer is called in records: `login.example`, or `login.example/realms/acme`."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def payer_of(grant: Grant) -> Payer:
    """The account that the subject of an access token has here; its issuer's limit bounds it."""
    return Payer(
        account=Account(grant.host, grant.subject),
        quota=f"oauth:{grant.host}",
        limit=grant.credit,
        own_issue=False,
    )


def consented(payer: Payer, evidence: Iterable[Evidence], sender: str) -> Payer:
    """Who pays where an organisation calls for somebody (R41): itself, unless it shows consent.

    `sender` is the identity of the organisation, whose own word it must be.
    """
    if payer.own_issue:
        return payer
    for found in evidence:
        is_senders = AGENT + found.issuer.rpartition("@")[2].removeprefix(AGENT) == sender
        if is_senders and found.consents and found.principal is not None:
            return replace(payer, account=Account(payer.account.issuer, found.principal))
    return payer
