"""The agents-api stamp: five headers that name the calling agent, its host and its chain.

Everything here is a CLAIM of the caller. Believing it takes proof of who sent it, which is the
guards' business; this module only makes sure that what is claimed has one meaning.

Law 1. Fail closed: a header that is there and is not in its form is refused, never repaired.
Law 2. At the top of a chain (depth 0) nobody is named; below it agent, host and root must be.
Law 3. A depth over the limit is well formed. The chain guard refuses it, with its own status.
Law 4. `CallerContext.from_headers(context.to_headers()) == context`, its metadata aside, which
       never travels.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from carnet.core.chain.carnet import Carnet, Mark
from carnet.core.people.identity import SELF_HOST, Secret, StatedContext
from carnet.errors import MalformedCallerContext
from carnet.wire.grammar.headers import Headers, write_headers
from carnet.wire.grammar.json import MAX_INTEGER
from carnet.wire.stamps.stamp import Leaving, Metadata, Reading, Stamp, Written

CALLER_AGENT: Final = "X-Agents-Api-Caller-Agent"
CALLER_USER: Final = "X-Agents-Api-Caller-User"
CALLER_HOST: Final = "X-Agents-Api-Caller-Host"
CHAIN_DEPTH: Final = "X-Agents-Api-Chain-Depth"
CHAIN_ROOT: Final = "X-Agents-Api-Chain-Root"

# Not one of the five: how a host shows that it is the one it names. It is read beside them.
CALLER_KEY: Final = "X-Agents-Api-Caller-Key"
DEFAULT_MAX_CHAIN_DEPTH: Final = 16  # agents-api:depth:default (inclusive: 17 is refused)

MAX_AGENT_BYTES: Final = 128
MAX_HOST_BYTES: Final = 2048
MAX_ROOT_BYTES: Final = 128
MAX_KEY_BYTES: Final = 256

_HEADER_OF: Final = {
    "caller_agent_id": CALLER_AGENT,
    "caller_user_id": CALLER_USER,
    "caller_host": CALLER_HOST,
    "chain_depth": CHAIN_DEPTH,
    "chain_root_request_id": CHAIN_ROOT,
}
_FIELD_OF: Final = {header.lower(): field for field, header in _HEADER_OF.items()}

# Scheme in lower case, a host, perhaps a port and a path. No user info: it would be logged.
_ABSOLUTE_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][\x21-\x7e]*)?",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_MOST_DIGITS: Final = 16  # as many as MAX_INTEGER has


class _Invalid(ValueError):
    """What is wrong with which field; the reader turns it into an error of the wire."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"invalid_agent_caller_context: {field} {reason}")


class CallerContext(Struct, frozen=True):
    """Who claims to call, from where, how deep, and under which originating request.

    Raises ValueError for a combination that no honest caller can mean.
    """

    caller_agent_id: str  # empty at the top of a chain
    caller_user_id: int  # 0: no user on the caller's host
    caller_host: str  # "self", or the absolute URL of the host that calls
    chain_depth: int  # 0 is the top
    chain_root_request_id: str
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Refuse in this order; the first fault is the one that is named."""
        _check_alone(self)
        _check_together(self)
        if not isinstance(self.metadata, dict):
            raise _Invalid("metadata", "is not an object")
        try:
            json.dumps(self.metadata, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise _Invalid("metadata", "cannot be written as JSON") from None

    @classmethod
    def top(cls, root: str) -> "CallerContext":
        """The context of a call that no agent made."""
        return cls("", 0, SELF_HOST, 0, root)

    @classmethod
    def from_headers(
        cls,
        headers: Mapping[str, str] | Headers,
        max_chain_depth: int = DEFAULT_MAX_CHAIN_DEPTH,
        *,
        new_root: Callable[[], str],
    ) -> "CallerContext":
        """Read the five headers, whatever the case of their names.

        Args:
            headers: The fields as they arrived.
            max_chain_depth: The last depth that is taken.
            new_root: Makes a root id where the chain begins here.

        Raises:
            ValueError: Naming the field, for anything that is not well formed or too deep.
        """
        if max_chain_depth < 0:
            raise _Invalid("max_chain_depth", "is below zero")
        found = _read_context_headers(
            headers if isinstance(headers, Headers) else _as_headers(headers)
        )
        if found.depth is not None and found.depth > max_chain_depth:
            raise _Invalid("chain_depth", "is beyond the deepest that is taken")
        return cls.top(found.root or new_root()) if found.is_top() else found.context()

    def to_headers(self) -> dict[str, str]:
        """Write the headers; at the top only the root, for nobody may be named there."""
        fields = {CHAIN_ROOT: self.chain_root_request_id}
        if self.chain_depth:
            if not self.caller_agent_id:  # no conforming receiver would take it
                raise _Invalid("caller_agent_id", "is missing below the top of a chain")
            fields = {
                CALLER_AGENT: self.caller_agent_id,
                CALLER_USER: str(self.caller_user_id),
                CALLER_HOST: self.caller_host,
                CHAIN_DEPTH: str(self.chain_depth),
                **fields,
            }
        write_headers({name.lower(): value for name, value in fields.items()})
        return fields

    def to_dict(self) -> dict[str, Any]:
        """The six fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "CallerContext":
        """Read `to_dict`'s form. Absent fields are those of the top of a chain; types must fit."""
        if not fields.keys() <= set(cls.__struct_fields__):
            raise _Invalid("metadata", "is the place for other fields than the six")
        return cls(**{**_TOP, **fields})

    def is_cross_site(self) -> bool:
        """Whether the caller claims to live on another host."""
        return self.caller_host != SELF_HOST


_TOP: Final[dict[str, Any]] = {
    "caller_agent_id": "",
    "caller_user_id": 0,
    "caller_host": SELF_HOST,
    "chain_depth": 0,
    "chain_root_request_id": "",
}


def _check_alone(context: CallerContext) -> None:
    """Each field by itself."""
    if not _is_count(context.caller_user_id):
        raise _Invalid("caller_user_id", "is not a whole number from zero up")
    if not context.caller_host:
        raise _Invalid("caller_host", "is empty")
    if context.caller_host != SELF_HOST and not _is_absolute_url(context.caller_host):
        raise _Invalid("caller_host", "is neither 'self' nor an absolute http or https URL")
    if not _is_count(context.chain_depth):
        raise _Invalid("chain_depth", "is not a whole number from zero up")
    if not _is_text(context.chain_root_request_id):
        raise _Invalid("chain_root_request_id", "is empty")
    if not isinstance(context.caller_agent_id, str):
        raise _Invalid("caller_agent_id", "is not text")


def _check_together(context: CallerContext) -> None:
    """What the depth says about the caller."""
    named = (context.caller_agent_id, context.caller_user_id, context.caller_host)
    if context.chain_depth == 0 and named != ("", 0, SELF_HOST):
        raise _Invalid("chain_depth", "is zero although a remote caller is named")
    if context.chain_depth and context.caller_host == SELF_HOST:
        raise _Invalid("caller_host", "is 'self' although the call came through a chain")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_absolute_url(value: object) -> bool:
    return isinstance(value, str) and _ABSOLUTE_URL.fullmatch(value) is not None


class _ContextHeaders(Struct, frozen=True):
    """The five headers as they were read; None is absent or blank."""

    agent: str | None
    user: int | None
    host: str | None
    depth: int | None
    root: str | None

    def is_top(self) -> bool:
        """Whether the chain begins here; then nobody may be named, not even 'self'."""
        if self.depth:
            return False
        if self.agent or self.user or self.host:
            raise _Invalid("chain_depth", "is zero although a remote caller is named")
        return True

    def context(self) -> CallerContext:
        """The context of a call below the top."""
        if self.agent is None:
            raise _Invalid("caller_agent_id", "is missing below the top of a chain")
        if self.host is None:
            raise _Invalid("caller_host", "is missing below the top of a chain")
        if self.root is None:
            raise _Invalid("chain_root_request_id", "is missing below the top of a chain")
        return CallerContext(self.agent, self.user or 0, self.host, self.depth or 0, self.root)


def _read_context_headers(headers: Headers) -> _ContextHeaders:
    try:
        return _ContextHeaders(
            agent=headers.visible(CALLER_AGENT, max_bytes=MAX_AGENT_BYTES),
            user=_read_user(headers),
            host=headers.visible(CALLER_HOST, max_bytes=MAX_HOST_BYTES),
            depth=headers.read_count(CHAIN_DEPTH),
            root=headers.visible(CHAIN_ROOT, max_bytes=MAX_ROOT_BYTES),
        )
    except MalformedCallerContext as error:
        field = _FIELD_OF[str(error.facts["header"]).lower()]
        raise _Invalid(field, str(error.facts["reason"])) from None


def _read_user(headers: Headers) -> int | None:
    # Not `read_count`: a saturated number would name another user.
    value = headers.get(CALLER_USER)
    if value is None:
        return None
    if _DIGITS.fullmatch(value) is None or len(value) > _MOST_DIGITS or int(value) > MAX_INTEGER:
        raise MalformedCallerContext(CALLER_USER, "is not a whole number from zero up")
    return int(value)


def _as_headers(headers: Mapping[str, str]) -> Headers:
    return Headers(
        [
            (name.lower().encode(), value.encode(errors="surrogatepass"))
            for name, value in headers.items()
            if name.lower() in _FIELD_OF
        ]
    )


def read(headers: Headers, *, last_depth: int) -> tuple[CallerContext | None, Mark | None]:
    """Read the stamp of a request: who claims to call, and what that says about the chain.

    Both are None where none of the five headers says anything. The context alone is None where
    the chain begins here and no root was given: the run is ours to name.

    Args:
        headers: The fields as they arrived.
        last_depth: The last depth answered here (inclusive).
    """
    if b"\nx-agents-api-" not in headers.joined():
        return None, None
    try:
        found = _read_context_headers(headers)
        if found.is_top():
            context = CallerContext.top(found.root) if found.root else None
        else:
            context = found.context()
    except _Invalid as invalid:
        # agents-api:headers:fail-closed
        raise MalformedCallerContext(_HEADER_OF[invalid.field], invalid.reason) from None
    if found.root is None and found.depth is None:
        return None, None
    mark = Mark(
        stamp="caller_context",
        depth=found.depth,
        last_depth=last_depth,  # agents-api:depth:limit
        run=found.root,
    )
    return context, mark


def write(carnet: Carnet, *, agent: str, host: str, user: int = 0) -> dict[str, str]:
    """Write the headers of a call out, names in lower case; none for a call at the top.

    Args:
        carnet: The document the callee receives: its depth is already the callee's.
        agent: The name of the agent that calls.
        host: The absolute URL of this gateway.
        user: The caller's user on this host; 0 where there is none.
    """
    if carnet.depth == 0:
        return {}
    context = CallerContext(agent, user, host, carnet.depth, carnet.run)
    return {name.lower(): value for name, value in context.to_headers().items()}


def _read(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
    del metadata
    claimed, mark = read(headers, last_depth=last_depth)
    if mark is None:
        return None
    if claimed is None:
        return Reading(mark=mark)
    key = headers.visible(CALLER_KEY, max_bytes=MAX_KEY_BYTES)
    return Reading(mark=mark, context=_context(claimed, None if key is None else Secret(key)))


def _context(claimed: CallerContext, key: Secret | None) -> StatedContext:
    return StatedContext(
        agent=claimed.caller_agent_id,
        user=claimed.caller_user_id,
        host=claimed.caller_host,
        root=claimed.chain_root_request_id,
        depth=claimed.chain_depth,
        key=key,
    )


def _write(carnet: Carnet, leaving: Leaving, /) -> Written:
    """The headers, where somebody acts: never at the top, never for nobody."""
    if not leaving.agent or not leaving.host:
        return Written()
    return Written(headers=write(carnet, agent=leaving.agent, host=leaving.host, user=leaving.user))


STAMP: Final = Stamp(
    name="caller_context",
    prefixes=("x-agents-api-",),
    last_depth=DEFAULT_MAX_CHAIN_DEPTH,
    read=_read,
    write=_write,
    toward="agents_api",  # nobody else asks for it
)
