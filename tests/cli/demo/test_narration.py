"""What is told of a run while it happens, of the pages that gateways give."""

from typing import Any

from carnet.cli.demo.narration import Narration, question_line


def turn(name: str, agent: str, state: str, **more: Any) -> dict[str, Any]:
    given = {"turn": name, "agent": agent, "state": state, "depth": 0, "payer": "ann@acme.example"}
    given |= {"started": "2026-11-18T10:00:01", "ended": None, "children": [], "code": None}
    return given | more


def news(narration: Narration, **pages: Any) -> list[tuple[str, str]]:
    named = {f"{name}.example": {"turns": turns} for name, turns in pages.items()}
    return [(domain, text) for _, domain, text in narration.tell(named)]


def test_each_thing_is_told_once_and_in_the_order_in_which_it_happened() -> None:
    narration = Narration()
    called = turn("t0", "@facts@initech.example", "running", depth=2, started="2026-11-18T10:00:02")
    page = [turn("t", "writer", "running", depth=1, children=[called])]
    facts = [turn("t0", "facts", "running", depth=2, started="2026-11-18T10:00:03")]
    assert news(narration, initech=facts, globex=page) == [
        ("globex.example", "writer is asked, at depth 1, for ann@acme.example"),
        ("globex.example", "calls @facts@initech.example, signed, in Tangle, at depth 2"),
        ("initech.example", "facts is asked, at depth 2, for ann@acme.example"),
    ]
    assert news(narration, initech=facts, globex=page) == []
    done = turn("t0", "facts", "done", cost="0.002", ended="2026-11-18T10:00:04")
    assert news(narration, initech=[done]) == [("initech.example", "facts is done, cost 0.002")]


def test_what_waits_and_what_failed_is_told_as_such() -> None:
    narration = Narration()
    assert news(narration, acme=[turn("t", "desk", "waiting")])[1:] == [
        ("acme.example", "desk waits for an answer")
    ]
    failed = turn("t", "desk", "failed", code="agent_failed", tokens={"in": 5, "out": 2})
    assert news(narration, acme=[failed]) == [
        ("acme.example", "desk is failed, cost 0, 7 tokens, agent_failed")
    ]


def test_what_an_agent_says_stays_in_its_line() -> None:
    asked = {"kind": "payment", "amount": "0.02", "currency": "credits", "chain": "planner"}
    line = question_line({**asked, "message": "two\ncents\x1b[2J"})
    assert line.isprintable()
    assert line.startswith("payment   0.02 credits  two")
