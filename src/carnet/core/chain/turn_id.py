"""Deterministic turn ids.

Law 1. `<run>.t<index>.<slug>` at the first level of a run.
Law 2. Below it the key of the parent's record scopes the id. The key holds who pays, who calls,
       whom, and where in which run: two tenants who choose the same ids are two callers to whom
       they call, and so are two calls of one nested agent.
Law 3. The slug holds no dot, so an id reads from the right whatever the run is called.
Law 4. A caller that names its request with a key of its own, and knows no turns, is given the same
       id for the same key; the same key of another caller is another id.
"""

import hmac
import re
import unicodedata
from functools import lru_cache
from typing import Final

OUR_RUNS: Final = "conv_"  # how names begin that a gateway gives; what follows is in order of time

_NOT_WORD = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_DASHES = re.compile(r"--+", re.ASCII)
_TAIL = re.compile(r"\.t[0-9]+\.[a-z0-9_-]+", re.ASCII)
_ORDINAL = re.compile(r"\.t([0-9]{1,9})\.[a-z0-9_-]+\Z", re.ASCII)

ANONYMOUS = "anon"
SCOPE_BYTES = 8
KEY_DIGITS = 32

_KEYED = re.compile(rf"idem_[0-9a-f]{{{KEY_DIGITS}}}\.t0", re.ASCII)


@lru_cache(maxsize=1024)
def slug(speaker: str) -> str:
    """A name as it stands in a turn id."""  # tangle:turn:slug
    text = _NOT_WORD.sub("-", unicodedata.normalize("NFKD", speaker))
    text = _DASHES.sub("-", text)
    return text.removeprefix("-").removesuffix("-").lower() or ANONYMOUS


def turn_id(run: str, index: int, speaker: str) -> str:
    """The id of a turn at the first level."""  # tangle:turn:format
    return f"{run}.t{index}.{slug(speaker)}"


def scoped_turn_id(run: str, parent_key: bytes, index: int, speaker: str) -> str:
    """The id of a turn below another turn, whose record has this key."""  # R6
    return f"{run}.{parent_key[:SCOPE_BYTES].hex()}.t{index}.{slug(speaker)}"


def key_id(actor: str, key: str) -> str:
    """The id of what a caller names with a key: its run, if it names none."""
    return f"idem_{hmac.digest(actor.encode(), key.encode(), 'sha256').hex()[:KEY_DIGITS]}"


def is_keyed(turn: str) -> bool:
    """Whether a turn was named with a key of its caller."""
    return _KEYED.fullmatch(turn) is not None


def is_unscoped(run: str, turn: str) -> bool:
    """Whether an id has the first-level form; nested, such an id is not unique."""
    return turn.startswith(run) and _TAIL.fullmatch(turn, len(run)) is not None


def ordinal_of(turn: str) -> int | None:
    """Which call of its turn an id of ours names, counted from 0; None if it has not our form."""
    found = _ORDINAL.search(turn)
    return None if found is None else int(found[1])
