"""Whom an orchestrator asks at once, and who joins the answers, as a configuration says it.

    agents = ["scheduler", "@docs@bots.example"]
    join = "editor"

Law. A name leads to another agent here, an address elsewhere; what is wrong is told with its reason
     before the gateway starts.
"""

from collections.abc import Collection
from typing import Annotated, Final, Literal

from carnet.config import readers as read
from carnet.config.dialogue.participants import leads_elsewhere
from carnet.config.readers import ValueReader, Wrong, many

MOST_FANNED_OUT: Final = 64
LIST: Final = "list"  # of all answers, each with whose it is: no agent joins them
_EXPECTS: Final = 'names of agents or addresses, such as "writer" or "@docs@bots.example"'


def fanned_out() -> ValueReader:
    """Agents by name or address, none twice."""

    def check(value: str) -> str:
        if not value.strip():
            raise ValueError
        return value

    names = many(_EXPECTS, check)

    def judged(found: tuple[str, ...]) -> tuple[str, ...]:
        if not 1 <= len(found) <= MOST_FANNED_OUT:
            raise Wrong(f"should be 1 to {MOST_FANNED_OUT} {_EXPECTS}")
        if len(set(found)) < len(found):
            raise Wrong("names one of them twice")
        return found

    return ValueReader(
        names.expects,
        lambda value: judged(names.read(value)),
        lambda value: judged(names.read_text(value)),
    )


# The settings of an agent of this kind.
FannedOut = Annotated[
    tuple[str, ...] | None,
    fanned_out(),
    "orchestrator: who is asked at once; left out, the handles that a message begins with.",
]
Join = Annotated[
    str, read.text(), "orchestrator: list, or the agent here that is given all answers."
]
First = Annotated[
    int | None, read.whole(1, MOST_FANNED_OUT), "orchestrator: how many answers are enough."
]
BranchTimeout = Annotated[
    float | None, read.seconds(), "orchestrator: seconds that each of them may take."
]
OnFailure = Annotated[
    Literal["collect", "fail"],
    read.one_of("collect", "fail"),
    "orchestrator: whether failures stand beside the answers, or the first ends all.",
]


def nowhere(
    named: Collection[str], join: str, agents: Collection[str], name: str
) -> tuple[str, str] | None:
    """The first name that leads to no other agent here, and the key that it stands under."""
    for each in named:
        if not leads_elsewhere(each) and (each not in agents or each == name):
            return "agents", each
    if join != LIST and (join not in agents or join == name):
        return "join", join
    return None
