"""A run as bars on one scale of time, and as a chain of organisations by depth."""

from typing import Any

from carnet.console.runs.graph import chain_graph
from carnet.console.runs.hops import hops_of, organisations
from carnet.console.runs.waterfall import waterfall
from carnet.wire.grammar.times import when

BEGAN = 1_800_000_000_000_000
SECOND = 1_000_000


def turn(name: str, began: float, ended: float | None, *children: Any, **more: Any) -> Any:
    """A turn as the page of a run has it, with times in seconds."""
    at = {
        "started": when(BEGAN + round(began * SECOND)),
        "ended": None if ended is None else when(BEGAN + round(ended * SECOND)),
    }
    usual = {"state": "done", "code": None, "cost": None, "payer": "a@b", "actor": "token:a"}
    rest = {"turn": f"turn-{name}", "agent": name, "attempt": 1, "limit": None, "legs": []}
    return {"depth": 0, **usual, **rest, **at, "children": list(children), **more}


def leg(to: str, **more: Any) -> Any:
    usual = {"turn": f"leg-{to}", "ordinal": 0, "to": to, "depth": 1, "status": "done"}
    rest = {"cost": None, "code": None, "peer_status": None, "peer_code": None, "receipt": None}
    return usual | rest | more


def hops(*roots: Any) -> Any:
    return hops_of({"turns": list(roots)}, "acme.example")


def test_a_bar_stands_where_its_time_was_and_what_waits_is_hatched() -> None:
    asked = {"since": when(BEGAN + 2 * SECOND), "at": when(BEGAN + 3 * SECOND)}
    found = hops(turn("lead", 0, 4, turn("boss", 1, 3, answers=[asked])))
    lead, boss = waterfall(found, BEGAN + 9 * SECOND)
    assert (lead["x"], lead["width"], lead["took"]) == (0, 1000, 4 * SECOND)
    assert (boss["x"], boss["width"], boss["level"]) == (250, 500, 1)
    assert boss["waits"] == [{"x": 500, "width": 250}]


def test_what_has_not_ended_grows_to_now() -> None:
    waits = [{"since": when(BEGAN + SECOND)}]
    (row,) = waterfall(
        hops(turn("lead", 0, None, state="waiting", waits=waits)), BEGAN + 2 * SECOND
    )
    assert (row["took"], row["waits"]) == (2 * SECOND, [{"x": 500, "width": 500}])
    assert waterfall([], BEGAN) == []


def test_the_critical_path_is_what_the_end_waited_for() -> None:
    below = turn("slow", 1, 5, turn("last", 2, 5))
    rows = waterfall(hops(turn("lead", 0, 6, turn("fast", 1, 2), below)), BEGAN)
    critical = [row["agent"] for row in rows if row["is_critical"]]
    assert critical == ["lead", "slow", "last"]


def test_an_organisation_has_one_number_in_all_pictures_and_ours_is_the_first() -> None:
    abroad = turn(
        "@critic@globex.example", 1, 2, legs=[leg("@critic@globex.example", ordinal=None)]
    )
    found = hops(turn("lead", 0, 3, abroad, legs=[leg("agent://initech.example")]))
    assert organisations(found) == [
        {"name": "acme.example", "number": 0},
        {"name": "initech.example", "number": 1},
        {"name": "globex.example", "number": 2},
    ]
    assert [row["is_shared"] for row in waterfall(found, BEGAN)] == [True, False, False]


def test_the_chain_has_a_lane_for_each_organisation_and_a_column_for_each_depth() -> None:
    receipt = leg("@critic@globex.example", receipt="signed")
    refused = leg("@other@globex.example", status="refused", code="signature_expired")
    boss = turn("boss", 1, 2, depth=1, limit=2)
    graph = chain_graph(hops(turn("lead", 0, 3, boss, legs=[receipt, refused])))
    lanes = {lane["name"]: lane["y"] for lane in graph["lanes"]}
    places = {node["agent"]: (node["x"], node["y"]) for node in graph["nodes"]}
    assert list(lanes) == ["acme.example", "globex.example"]
    assert places["lead"][1] == places["boss"][1] < lanes["globex.example"]
    assert places["@critic@globex.example"][0] == places["boss"][0] > places["lead"][0]
    assert places["@critic@globex.example"][1] < places["@other@globex.example"][1]
    seals = {node["agent"]: node["seal"] for node in graph["nodes"]}
    assert seals["@critic@globex.example"] == "valid"
    assert seals["@other@globex.example"] == "expired"
    assert [node["agent"] for node in graph["nodes"] if node["is_final"]] == ["boss"]
    assert [edge["is_refused"] for edge in graph["edges"]] == [False, True, False]
    assert chain_graph([])["nodes"] == []
