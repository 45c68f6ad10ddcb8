"""A run as a tree: what called what, how deep, who paid, and where it was refused.

Law 1. A pure function of the page that GET /runs/{id} gives.
Law 2. The refusal is marked where it happened: at the deepest turn or call out that failed. What
       somebody cancelled is marked as such, where it was cancelled.
Law 3. What a turn called stands in the order in which it asked, whichever began first.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from carnet.cli.invocation import in_line, to_json
from carnet.errors import BY_CODE, Cancelled, ProviderTimeout, Refused

Node = Mapping[str, Any]

NOBODY: Final[Node] = MappingProxyType({})
MOST_LINES: Final = 40  # of what was asked or answered, for people
_LAST: Final = 1 << 62
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
        lines += _branch(turn, page, NOBODY, prefix="", last=place == len(roots))
    if page.get("is_cut"):
        lines.append(f"There is more than fits here: carnet tail {page['run']}")
    return "\n".join(lines)


def draw_cancelled(page: Node) -> str:
    """What has come of the turns of a run that was cancelled, hop by hop."""
    count, run = page.get("cancelled", 0), page["run"]
    done = f"Told {count} turn{'' if count == 1 else 's'} of {run} to stop."
    hops = page.get("hops", [])
    lines = [done if count else f"Nothing of {run} is running here."]
    if count or any(map(_is_open, hops)):
        for place, hop in enumerate(hops, 1):
            lines += _hop_lines(hop, prefix="", last=place == len(hops))
    return "\n".join(lines)


def _is_open(hop: Node) -> bool:
    """Whether something of it is told by others, or by nobody."""
    return bool(hop.get("at")) or hop["outcome"] == "unknown" or any(map(_is_open, hop["below"]))


def _hop_lines(hop: Node, *, prefix: str, last: bool) -> Iterator[str]:
    at, outcome, code = hop.get("at"), hop["outcome"], hop.get("code")
    words = [f"{at}: {hop['agent']}" if at else str(hop["agent"])]
    words.append("outcome unknown" if outcome == "unknown" else str(outcome))
    if code and outcome in {"failed", "unknown"}:
        words.append(str(code))
    yield prefix + ("└─ " if last else "├─ ") + in_line("  ".join([*words, str(hop["turn"])]))
    inner = prefix + ("   " if last else "│  ")
    for place, below in enumerate(hop["below"], 1):
        yield from _hop_lines(below, prefix=inner, last=place == len(hop["below"]))


def _branch(node: Node, page: Node, above: Node, *, prefix: str, last: bool) -> Iterator[str]:
    line = _outbound(node, above) if _is_outbound(node) else _turn(node, page)
    yield prefix + ("└─ " if last else "├─ ") + line
    inner = prefix + ("   " if last else "│  ")
    below = _below(node)
    for name in ("asked", "answered"):
        yield from _content(name, node.get(name), inner + ("│  " if below else "   "))
    yield from _waits(node, inner + ("│  " if below else "   "))
    for place, child in enumerate(below, 1):
        yield from _branch(child, page, node, prefix=inner, last=place == len(below))


def _waits(node: Node, prefix: str) -> Iterator[str]:
    """What a turn waits for, who can answer it and with which command."""
    return (f"{prefix}{line}" for line in waits_lines(node))


def waits_lines(node: Node) -> list[str]:
    """The same, a line or two for each question; the secret that answers it is in none.

    What was answered comes first: how, by whom and when.
    """
    lines = [
        in_line(f"{each['outcome']}  {_asked(each)}  by {each['resolver']} at {each['at']}")
        for each in node.get("answers") or ()
    ]
    for asked in node.get("waits") or ():
        lines.append(in_line(f"waits     {_asked(asked)}"))
        who = f"by {asked['answered_by']} until {asked['expires']}"
        lines.append(in_line(f"answer    {asked.get('answer') or 'with the call itself'}, {who}"))
    return lines


def _asked(asked: Node) -> str:
    """What is asked for, in a line."""
    other = asked.get("other_amount") or {}
    amount, currency = asked.get("amount"), asked.get("currency")
    if other:
        amount, currency = other.get("amount"), f"{other.get('currency')} (not here)"
    words = [asked["kind"], *([f"{amount} {currency}"] if amount else []), asked["message"]]
    return f"{'  '.join(words)}  asked by {asked['chain']}"


def _content(name: str, content: Any, prefix: str) -> Iterator[str]:
    """What was asked or answered: each message by who says it, a text as it is, else JSON."""
    if content is None:
        return
    match content:
        case {"messages": [*messages]}:
            texts = [f"{_word(each, 'role')}: {_word(each, 'content')}" for each in messages]
        case {"text": str() as text, **others} if not others:
            texts = [text]
        case _:
            texts = [to_json(content)]
    lines = "\n".join(texts).splitlines() or [""]
    for place, line in enumerate(lines[:MOST_LINES]):
        yield f"{prefix}{name if not place else '':<8}  {in_line(line)}".rstrip()
    if len(lines) > MOST_LINES:
        yield f"{prefix}{'':<8}  ... {len(lines) - MOST_LINES} more lines (--format json)"


def _word(message: Any, name: str) -> str:
    found = message.get(name) if isinstance(message, Mapping) else None
    return found if isinstance(found, str) else to_json(found)


def _is_outbound(node: Node) -> bool:
    return "to" in node


def _below(node: Node) -> list[Node]:
    """What a turn called, in the order in which it asked; what it is itself comes first."""
    calls = [(_place(call, -1), call) for call in node.get("legs", [])]
    children = [(_place(child, _LAST), child) for child in node.get("children", [])]
    return [below for _, below in sorted([*calls, *children], key=itemgetter(0))]


def _place(node: Node, default: int) -> int:
    ordinal: int | None = node.get("ordinal")
    return default if ordinal is None else ordinal


def _turn(node: Node, page: Node) -> str:
    words = [
        str(node["agent"]),
        f"depth {node['depth']} of {node.get('limit') or page.get('limit', '-')}",
        str(node["state"]),
        f"cost {_cost(node, '')}",
        f"payer {node.get('payer') or '-'}",
        str(node["turn"]),
    ]
    if (node.get("attempt") or 1) > 1:
        words.append(f"attempt {node['attempt']}")
    if node.get("limit_by") not in {None, "tangle"}:  # that of the gateway itself
        words[1] += f" ({node['limit_by']})"
    if node.get("context"):
        words.append(f"called by {in_line(node['context']['caller'])}")
    return "  ".join(words) + _verdict(node, node["state"]) + _words_of(node)


def _outbound(node: Node, above: Node) -> str:
    words = [
        f"→ {node['to']}",
        f"depth {node['depth']}",
        str(node["status"]),
        f"cost {_cost(node, '')}",
        str(node["turn"]),
    ]
    if node.get("receipt"):
        words.append("receipt")
    verdict = f"  {node['code']}" if _is_cut(node, above) else _verdict(node, node["status"])
    return "  ".join(words) + _peer_answer(node) + verdict


def _peer_answer(node: Node) -> str:
    """What the other side answered, in its own word."""
    words = [str(node[name]) for name in ("peer_status", "peer_code") if node.get(name)]
    return f"  it said {in_line(' '.join(words))}" if words else ""


def _is_cut(node: Node, above: Node) -> bool:
    """Whether a call out ended because the turn that made it was cancelled."""
    return (
        _is_outbound(node)
        and above.get("code") == Cancelled.code
        and node.get("code") == ProviderTimeout.code
    )


def _verdict(node: Node, state: str) -> str:
    code = node.get("code")
    if state not in _FAILED:
        return ""
    text = f"  {code}" if code else ""
    if any(_has_failed(child) for child in _below(node) if not _is_cut(child, node)):
        return text  # it began further down
    return f"{text}  ◀ {_ending(state, code)} here"


def _ending(state: str, code: str | None) -> str:
    if code == Cancelled.code:  # by a person, or because nobody waited any more
        return "cancelled"
    kind = BY_CODE.get(code or "")
    refused = state == "refused" or (kind is not None and issubclass(kind, Refused))
    return "refused" if refused else "failed"


def _words_of(node: Node) -> str:
    """What a model said when it refused, in its own words."""
    return f'  "{node["words"]}"' if node.get("words") else ""


def _has_failed(node: Node) -> bool:
    state = node.get("state") or node.get("status")
    return state in _FAILED or any(_has_failed(child) for child in _below(node))


def _cost(node: Node, currency: str) -> str:
    cost = node.get("cost")
    return "-" if cost is None else f"{cost} {currency}".rstrip()


def draw_proof(page: Node) -> str:
    """Who has signed for which call, one line a receipt, and what is wrong with them."""
    head = f"run {page['run']}  {'proved' if page['proved'] else 'NOT PROVED'}"
    counts = [f"{page[name]} {name}" for name in ("signed", "vouched", "unproved") if page[name]]
    lines = ["  ".join([head, *counts]), *_receipts(page["receipts"], "  ")]
    lines += [f"{one['issuer']}: {one['fault']} ({one['turn']})" for one in page["faults"]]
    if not page["receipts"]:
        lines.append("  Nobody has signed for a call of it.")
    return "\n".join(map(in_line, lines))


def _receipts(nodes: Sequence[Node], margin: str) -> Iterator[str]:
    for node in nodes:
        cost = "cost unknown" if node["cost"] is None else f"{node['cost']} {node['currency']}"
        calls = f"{node['calls']} call{'s' * (node['calls'] != 1)}"
        words = [node["to"], node["verdict"], f"by {node['issuer']}", calls, cost]
        words += [f"what is below is not known: {node['unknown']}"] if node["unknown"] else []
        yield margin + "  ".join(words)
        yield from _receipts(node["below"], margin + "  ")
