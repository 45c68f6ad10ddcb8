"""Who verifies the payments of others, by what these begin with (R29).

[payers."voucher_"]
verifier = "voucher"

[payers."x402:"]
target = "payments:verify"
"""

import re
from typing import Annotated, Final, Literal

from msgspec import Struct

from carnet.config import readers as read

MOST_VERIFIER_SECONDS: Final = 60
MOST_PAYERS: Final = 16

_PREFIX: Final = re.compile(r"[!-~]{1,64}", re.ASCII)
_ISSUER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


def _issuer() -> read.ValueReader:
    def check(value: str) -> str:
        if not _ISSUER.fullmatch(value):
            raise ValueError
        return value

    return read.text_reader('a name in small letters, such as "x402"', check)


class PayerSettings(Struct, frozen=True, kw_only=True):
    """One `[payers."PREFIX"]` section."""

    verifier: Annotated[
        Literal["voucher"] | None,
        read.one_of("voucher"),
        "One of ours: voucher takes signed vouchers of peers, and our own.",
    ] = None
    target: Annotated[
        str | None,
        read.target(),
        "Or module:function, given the credential and the call: it says account and limit.",
    ] = None
    issuer: Annotated[
        str | None,
        _issuer(),
        "target: the name its accounts are kept under; by default the letters of the prefix.",
    ] = None
    seconds: Annotated[
        float,
        read.seconds(most=MOST_VERIFIER_SECONDS),
        "target: how long it may take; what it has not accepted by then is refused.",
    ] = 5.0


Authorization = Annotated[
    Literal["key", "payer"],
    read.one_of("key", "payer"),
    "openai: whose credential it is asked with: our api_key, or the payer's own "
    "(with may_forward_authorization).",
]
MayForward = Annotated[
    bool, read.truth(), "of remote kinds and openai: whether the payer's credential may go to it."
]


def wrong_with(prefix: str, payer: PayerSettings) -> str | None:
    """What is wrong with a section; None where nothing is."""
    if not _PREFIX.fullmatch(prefix):
        return "is no beginning of a credential: 1 to 64 visible characters"
    if (payer.verifier is None) == (payer.target is None):
        return "needs a 'verifier' or a 'target', not both"
    return None


def issuer_of(prefix: str, payer: PayerSettings) -> str:
    """The name that the accounts of a verifier are kept under."""
    letters = re.sub(r"[^a-z0-9]+", "-", prefix.lower()).strip("-")
    return payer.issuer or letters or "payer"


def wrong_with_key(
    kind: str, authorization: str, *, may_forward: bool, has_key: bool
) -> str | None:
    """What is wrong with whose credential an agent is asked with (R30); None where nothing is."""
    if authorization == "key":
        return None
    if kind != "openai":
        return "is for agents of kind openai"
    if not may_forward:
        return "sends the payer's credential there: allow it with may_forward_authorization = true"
    return "stands beside 'api_key'; keep one of them" if has_key else None
