"""A route as data: what is matched, who may ask, and how it is described."""

from typing import Literal

from msgspec import Struct

Auth = Literal[
    "open",  # nobody has to prove anything
    "token",  # a live token, with the permission that the route names
    "gate",  # a call: the gate judges its token or its signature
    "signature",  # it comes signed
    "polling",  # as the operator wants it: signed, or open
]


class Route(Struct, frozen=True, kw_only=True, eq=False):
    """One method of one path."""

    method: str
    path: str  # each `{name}` stands for one segment
    summary: str
    auth: Auth = "token"
    permission: str | None = None  # that a token must hold
    body: str | None = None  # the schema of what is sent
    answer: str | None = None  # the schema of what is answered
    status: int = 200  # of an answer that is no error
    query: tuple[str, ...] = ()  # the names that are read of its query
    streams: bool = False  # the answer may be, or is, a stream of events
    chain: bool = False  # the headers of the stamps are read
    failure: str = "Error"  # the schema of a refusal
    also: tuple[tuple[int, str], ...] = ()  # statuses whose schema is another one, and that
    media: str | None = None  # of an answer that is neither JSON nor a stream of events
    is_page: bool = False  # for people: no part of the API, and not described as one
