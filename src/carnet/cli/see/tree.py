"""A run as a tree: what called what, how deep, who paid, and where it was refused.

Law 1. A pure function of the page that GET /runs/{id} gives.
Law 2. The refusal is marked where it happened: at the deepest turn or call out that failed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from carnet.errors import BY_CODE, Refused

Node = Mapping[str, Any]

_FAILED = {"failed", "refused", "unknown"}


def draw(page: Node) -> str:
    """The whole run, one line a turn or call out."""
    currency = page.get("currency") or ""
    head = [
        f"run {page['run']}",
        str(page["state"]),
        f"payer {page.get('payer') or '-'}",
        f"cost {_cost(page, currency)}",
        f"deepest {page.get('depth', 0)} of {page.get('limit', '-')}",
    ]
    lines = ["  ".join(head)]
    times = [f"{name} {page[name]}" for name in ("started", "ended") if page.get(name)]
    if times:
        lines.append("  ".join(times))
    roots = page.get("turns", [])
    for place, turn in enumerate(roots, 1):
        lines += _branch(turn, page, prefix="", last=place == len(roots))
    return "\n".join(lines)


def _branch(node: Node, page: Node, *, prefix: str, last: bool) -> Iterator[str]:
    is_outbound = "to" in node
    line = _outbound(node) if is_outbound else _turn(node, page)
    yield prefix + ("└─ " if last else "├─ ") + line
    inner = prefix + ("   " if last else "│  ")
    below = _below(node)
    for place, child in enumerate(below, 1):
        yield from _branch(child, page, prefix=inner, last=place == len(below))


def _below(node: Node) -> list[Node]:
    return [*node.get("legs", []), *node.get("children", [])]


def _turn(node: Node, page: Node) -> str:
    words = [
        str(node["agent"]),
        f"depth {node['depth']} of {page.get('limit', '-')}",
        str(node["state"]),
        f"cost {_cost(node, '')}",
        f"payer {node.get('payer') or '-'}",
        str(node["turn"]),
    ]
    if (node.get("attempt") or 1) > 1:
        words.append(f"attempt {node['attempt']}")
    return "  ".join(words) + _verdict(node, node["state"]) + _words_of(node)


def _outbound(node: Node) -> str:
    words = [
        f"→ {node['to']}",
        f"depth {node['depth']}",
        str(node["status"]),
        f"cost {_cost(node, '')}",
        str(node["turn"]),
    ]
    if node.get("receipt"):
        words.append("receipt")
    return "  ".join(words) + _verdict(node, node["status"])


def _verdict(node: Node, state: str) -> str:
    code = node.get("code")
    if state not in _FAILED:
        return ""
    text = f"  {code}" if code else ""
    if any(_has_failed(child) for child in _below(node)):
        return text  # it began further down
    kind = BY_CODE.get(code or "")
    refused = state == "refused" or (kind is not None and issubclass(kind, Refused))
    return f"{text}  ◀ {'refused' if refused else 'failed'} here"


def _words_of(node: Node) -> str:
    """What a model said when it refused, in its own words."""
    return f'  "{node["words"]}"' if node.get("words") else ""


def _has_failed(node: Node) -> bool:
    state = node.get("state") or node.get("status")
    return state in _FAILED or any(_has_failed(child) for child in _below(node))


def _cost(node: Node, currency: str) -> str:
    cost = node.get("cost")
    return "-" if cost is None else f"{cost} {currency}".rstrip()
