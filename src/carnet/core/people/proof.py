"""The proof that a request brings along: a signature, and the travel document beside it.

Law 1. Nothing here is believed: a `Proof` is what a request says about itself. The guards verify
       it with a key that they know to be the sender's.
Law 2. What a signature covers is kept as the literal bytes that were received, so that nothing is
       judged that was not signed.
Law 3. A credential (`jwt`) says who calls and nothing of what is asked: it is good once.
"""

from typing import Literal

from msgspec import Struct

from carnet.core.money.amount import MICROS
from carnet.core.people.identity import Account, Secret

Profile = Literal["samvad", "carnet", "jwt"]  # jwt: a credential beside the request (M)

SECOND_US = MICROS  # microseconds in a second


class Window(Struct, frozen=True):
    """How far the time of a request may lie before and after ours, in whole seconds."""

    past: int
    future: int


WINDOWS: dict[Profile, Window] = {  # R11
    "samvad": Window(past=300, future=60),
    "carnet": Window(past=60, future=30),
    "jwt": Window(past=660, future=60),  # as long as a credential may hold, and the clocks' skew
}


class Spending(Struct, frozen=True, kw_only=True):
    """What is left for a call and everything below it; None is unbounded."""

    money: int | None = None  # micro-units
    currency: str | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: int | None = None  # of a budget that begins here; a document says its deadline
    # Whether who pays is asked for more when it is used up; None: not said. It is told to nobody.
    asks: bool | None = None


class Document(Struct, frozen=True, kw_only=True):
    """The claims of a travel document as they were read from the `carnet` header."""

    issuer: str  # the domain that sends
    audience: str  # the domain that is meant to receive
    issued: int  # seconds since the epoch
    expires: int
    run: str
    turn: str
    parent_turn: str | None = None
    depth: int
    last_depth: int
    path: tuple[str, ...] = ()  # agent addresses crossed so far, oldest first
    budget: Spending | None = None
    deadline_ms: int | None = None  # absolute, by the wall clock
    payer: Account | None = None
    on_behalf_of: tuple[str, ...] = ()
    digest: str  # of the body, as in its Content-Digest
    keyid: str
    signed: bytes = b""  # the bytes that its signature covers
    signature: bytes = b""

    @property
    def account(self) -> Account:
        """The account that the issuer answers for: its own, or one that it vouches for in turn."""
        payer, issuer = self.payer, self.issuer
        if payer is None:
            return Account(issuer, issuer)
        return Account(issuer, payer.id if payer.issuer == issuer else str(payer))


class Proof(Struct, frozen=True, kw_only=True):
    """The signature of a request, and what it is judged by."""

    profile: Profile
    sender: str  # an identity in its stored form: "agent://globex.example"
    keyid: str
    signature: bytes
    bases: tuple[bytes, ...]  # the texts it may cover; it must hold for one of them
    nonce: str
    at: int  # microseconds since the epoch: the time the request names
    expires: int | None = None  # seconds since the epoch, if the signature names an end
    recipient: str | None = None  # the identity the body is addressed to, where it says so
    document: Document | None = None
    auth_scheme: str | None = None
    auth: Secret | None = None  # the body's own credential, lifted out of it
    subject: str | None = None  # jwt: the address that speaks, which is the sender's to name
    audiences: tuple[str, ...] = ()  # jwt: whom it is meant for; one of them must be us
    is_plain: bool = False  # its bases hold the protocol's three components, and so no credential

    @property
    def principal(self) -> str:
        """Whose what is asked is: the sender's, or that of the one who speaks there (M50)."""
        return self.sender if self.subject is None else f"{self.sender}#{self.subject}"


class Asking(Struct, frozen=True, kw_only=True):
    """The signature of a question about what exists: read, and not believed."""

    profile: Profile
    keyid: str
    signature: bytes
    bases: tuple[bytes, ...]  # the texts it may cover; it must hold for one of them
    at: int  # microseconds since the epoch
    expires: int | None = None  # seconds
