"""The chain: a column for each depth, a lane for each organisation, an edge for each call.

Law. The server places everything; a browser only draws. Calls in one cell stand below one another.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from carnet.console.runs.hops import DrawnHop, organisations

Page = dict[str, Any]

COLUMN: Final = 270
NODE: Final = 170
HIGH: Final = 46
ROW: Final = 62
LANE_GAP: Final = 18
LEFT: Final = 12
TOP: Final = 30


def chain_graph(hops: Sequence[DrawnHop]) -> Page:
    """Where each node and edge stands, in the units of the picture."""
    if not hops:
        return {"width": 0, "height": 0, "lanes": [], "nodes": [], "edges": [], "columns": []}
    first = min(hop.depth for hop in hops)
    last = max(hop.depth for hop in hops)
    lanes, height = _lanes(hops)
    nodes = _nodes(hops, {lane["name"]: lane["y"] for lane in lanes}, first)
    placed = {node["key"]: node for node in nodes}
    edges = [
        _edge(placed[hop.above], placed[hop.key], hop) for hop in hops if hop.above is not None
    ]
    return {
        "width": LEFT * 2 + (last - first) * COLUMN + NODE,
        "height": height,
        "columns": [
            {"depth": depth, "x": LEFT + (depth - first) * COLUMN}
            for depth in range(first, last + 1)
        ],
        "lanes": lanes,
        "nodes": nodes,
        "edges": edges,
    }


def _lanes(hops: Sequence[DrawnHop]) -> tuple[list[Page], int]:
    """The lanes, each as high as its fullest cell, and how high all of them are."""
    cells = Counter((hop.organisation, hop.depth) for hop in hops)
    lanes: list[Page] = []
    y = TOP
    for lane in organisations(hops):
        rows = max(count for (name, _), count in cells.items() if name == lane["name"])
        high = rows * ROW + LANE_GAP
        lanes.append({**lane, "y": y, "height": high})
        y += high
    return lanes, y


def _nodes(hops: Sequence[DrawnHop], lanes: dict[str, int], first: int) -> list[Page]:
    used: Counter[tuple[str, int]] = Counter()
    nodes: list[Page] = []
    for hop in hops:
        row = used[hop.organisation, hop.depth]
        used[hop.organisation, hop.depth] += 1
        nodes.append(
            {
                "key": hop.key,
                "turn": hop.turn,
                "agent": hop.agent,
                "organisation": hop.organisation,
                "number": hop.number,
                "depth": hop.depth,
                "x": LEFT + (hop.depth - first) * COLUMN,
                "y": lanes[hop.organisation] + row * ROW + LANE_GAP,
                "state": hop.state,
                "code": hop.code,
                "cost": hop.cost,
                "seal": hop.seal,
                "is_final": hop.is_final,
                "is_shared": hop.is_shared,
            }
        )
    return nodes


def _edge(above: Page, below: Page, hop: DrawnHop) -> Page:
    begin_x, begin_y = above["x"] + NODE, above["y"] + HIGH // 2
    end_x, end_y = below["x"], below["y"] + HIGH // 2
    if below["x"] <= above["x"]:  # within one column: from below one to the next
        begin_x, end_x = above["x"] + 14, below["x"] + 14
        begin_y = above["y"] + HIGH
        end_y = below["y"]
    middle = (begin_x + end_x) / 2
    return {
        "path": f"M{begin_x},{begin_y} C{middle},{begin_y} {middle},{end_y} {end_x},{end_y}",
        "turn": hop.turn,
        "label": hop.turn[-14:],
        "x": middle,
        "y": (begin_y + end_y) / 2 - 8 if below["x"] <= above["x"] else end_y - 8,  # at its end
        "is_refused": hop.code is not None,
    }
