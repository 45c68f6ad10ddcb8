"""What every error has, and the branches of the tree.

A leaf is one row and its sentences: `class NAME(BRANCH, code=..., status=..., retryable=...,
public=...)` with a `template` and a `hint`. A keyword that is left out is that of its branch. One
that clients see under the code of another leaf says so: `sent_as=...`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

__all__ = [
    "BY_CODE",
    "CarnetError",
    "Fact",
    "Malformed",
    "Ours",
    "Refused",
    "Upstream",
    "kinds_of",
    "leaves",
]

Fact = int | str | None


class Facts(dict[str, Fact]):
    """What a template is filled with; a fact that nobody gave must not hide the error itself."""

    def __missing__(self, name: str) -> str:
        return "unknown"


class CarnetError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = ""
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    template: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    public: ClassVar[tuple[str, ...]] = ()
    sent_as: ClassVar[str | None] = None
    words: str | None = None  # of whoever we called, for the operator alone
    fields: tuple[tuple[bytes, bytes], ...] = ()  # headers that a refusal has beside
    interrupts: tuple[Any, ...] = ()  # each a `carnet.Interrupt`: what is asked for first
    policies: tuple[Any, ...] = ()  # that whoever we called refused with, as they came
    wanted: tuple[str, ...] = ()  # the extensions that its dialect may tell it by

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        status: int | None = None,
        retryable: bool | None = None,
        public: tuple[str, ...] | None = None,
        sent_as: str | None = None,
    ) -> None:
        """Take the row of a leaf or a branch from its class keywords."""
        super().__init_subclass__()
        cls.code = cls.code if code is None else code
        cls.status = cls.status if status is None else status
        cls.retryable = cls.retryable if retryable is None else retryable
        cls.public = cls.public if public is None else public
        cls.sent_as = sent_as

    def __init__(self, detail: str = "", /, **facts: Fact) -> None:
        """Keep `detail` for the log and `facts` for the template."""
        self.detail = detail
        self.facts = facts
        self.run: str | None = None  # of the request that met it, if it named one
        self.request_id: str | int | None = None  # by which its dialect tells answers apart
        self.in_stream = False  # whoever asked reads a stream, also where it is refused
        super().__init__(detail)

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read."""
        return self.template.format_map(Facts(self.facts))

    @property
    def next_step(self) -> str:
        """What the caller can do about it."""
        return self.hint.format_map(Facts(self.facts))

    @property
    def retry_after(self) -> int | None:
        """Whole seconds until another try makes sense, if we know."""
        value = self.facts.get("retry_after")
        return value if isinstance(value, int) else None

    def public_facts(self) -> dict[str, Fact]:
        """The machine-readable facts that go beside the message."""
        return {name: self.facts[name] for name in self.public if self.facts.get(name) is not None}

    def __str__(self) -> str:
        """For our logs: code, sentence and raw detail."""
        return f"{self.code}: {self.safe_text}" + (f" ({self.detail})" if self.detail else "")


class Malformed(CarnetError, status=400):
    """The request cannot be read."""


class Refused(CarnetError, status=403):
    """The request was understood and may not run."""


class Upstream(CarnetError, status=502, retryable=True):
    """Someone we called did not answer properly."""


class Ours(CarnetError, retryable=True):
    """Our own fault."""


def leaves(root: type[CarnetError] = CarnetError) -> Iterator[type[CarnetError]]:
    """Every class of the tree that can be raised, branch by branch."""
    for child in root.__subclasses__():
        if child.code:
            yield child
        yield from leaves(child)


BY_CODE: dict[str, type[CarnetError]] = {}  # filled when the whole tree is read


def kinds_of(code: str) -> list[type[CarnetError]]:
    """All that a client may be told by a code; what has it for a name of its own is the first."""
    own = [BY_CODE[code]] if code in BY_CODE else []
    return own + [kind for kind in BY_CODE.values() if kind.sent_as == code]
