"""What the demo tells of a run while it happens: the difference between two looks at it.

Law 1. Pure: of pages that a gateway gives (`GET /runs/{id}`), to lines for people.
Law 2. Each thing is told once: that somebody is asked, and how that ended.
"""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

from carnet.cli.invocation import in_line

Node = Mapping[str, Any]
Line = tuple[str, str, str]  # when, at which organisation, and what happened there

DIALECTS: Final = {  # between whom what is spoken: see scene.py
    ("acme.example", "globex.example"): "A2A",
    ("acme.example", "initech.example"): "SAMVAD",
    ("globex.example", "initech.example"): "Tangle",
}
NOW: Final = "~"  # after every time
_ENDED: Final = frozenset({"done", "failed", "unknown"})


class Narration:
    """What was told of the turns of all organisations."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}

    def tell(self, pages: Mapping[str, Node]) -> list[Line]:
        """What is new in the pages of the organisations, by their domains, as it happened."""
        lines = [
            line
            for domain, page in pages.items()
            for turn in page["turns"]
            for line in self._turn(domain, turn)
        ]
        return sorted(lines, key=itemgetter(0))

    def _turn(self, domain: str, turn: Node) -> Iterator[Line]:
        key, state = (domain, str(turn["turn"])), str(turn["state"])
        before = self._seen.get(key)
        self._seen[key] = state
        if before is None:
            yield turn["started"], domain, _begun(domain, turn)
        for below in turn["children"]:
            yield from self._turn(domain, below)
        if before != state and (text := _reached(turn, state)):
            yield turn["ended"] or NOW, domain, text


def _begun(domain: str, turn: Node) -> str:
    agent, depth = in_line(str(turn["agent"])), turn["depth"]
    spoken = DIALECTS.get((domain, agent.rpartition("@")[2]))
    if spoken is not None:
        return f"calls {agent}, signed, in {spoken}, at depth {depth}"
    return f"{agent} is asked, at depth {depth}, for {in_line(str(turn['payer']))}"


def _reached(turn: Node, state: str) -> str:
    agent = in_line(str(turn["agent"]))
    if state == "waiting":
        return f"{agent} waits for an answer"
    if state not in _ENDED:
        return ""
    tokens = sum((turn.get("tokens") or {}).values())
    words = [f"{agent} is {state}", f"cost {turn.get('cost') or '0'}"]
    words += [f"{tokens} tokens"] if tokens else []
    words += [str(turn["code"])] if turn.get("code") else []
    return ", ".join(words)


def question_line(asked: Node) -> str:
    """What waits in an inbox, in a line."""
    amount = f"{asked['amount']} {asked['currency']}  " if asked.get("amount") else ""
    return in_line(f"{asked['kind']:<9} {amount}{asked['message']}  asked by {asked['chain']}")
