"""What the page about interrupts shows works as it stands, and its words are the program's."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import Waiting, joined_text
from carnet.core.messages.interrupt import Answered, Interrupt, Resolution
from carnet.errors import LegalRestriction, PolicyForbidden
from carnet.runtime.agents.python import Native
from carnet.runtime.visit.dispatch import Dispatching
from carnet.wire.dialects.openai import REFUSALS
from carnet.wire.dialects.policy import INTERRUPT, MOST_BODY_BYTES, MOST_HEADER_BYTES, RESOLUTION
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.runtime.scene import collect, make_call

PAGE = ROOT / "docs" / "interrupts.md"
TEXT = PAGE.read_text()
SECTIONS = dict(part.split("\n", 1) for part in TEXT.split("\n## ")[1:])


def test_its_agent_asks_and_goes_on_with_the_answer() -> None:
    scene: dict[str, Any] = {"__name__": "interrupts_page"}
    (block, _) = [block for block in blocks_of(PAGE) if block.language == "python"]
    exec(block.text, scene)  # noqa: S102  our own page
    agent, call = Native(scene["archive"], Dispatching(), last_depth=3), make_call(text="bees")
    *_, end = asyncio.run(collect(agent, call))
    assert isinstance(end, Waiting)
    (asked,) = end.interrupts
    assert (asked.kind, asked.amount) == ("payment", 20_000)
    for outcome, text in (("accepted", "all about bees"), ("rejected", "Then without that page.")):
        resolution = Resolution(outcome=outcome)  # type: ignore[arg-type]  # one of two words
        again = replace(call, resolved=(Answered(asked, resolution),))
        assert joined_text(asyncio.run(collect(agent, again))) == text


@pytest.mark.parametrize(
    "kind", ["payment", "sign_in", "approval", "consent", "input", "rate_limited", "unavailable"]
)
def test_every_kind_stands_with_its_status_and_code(kind: str) -> None:
    error = Waiting((Interrupt(id="i", kind=kind, message="?"),)).error()
    status, code = REFUSALS[type(error)]
    rows = [line for line in SECTIONS["For who calls"].splitlines() if f"| `{kind}`" in line]
    assert [f"{status} `{code}`" in row for row in rows] == [True]


def test_what_nobody_can_answer_and_the_headers_are_named() -> None:
    for leaf in (LegalRestriction, PolicyForbidden):
        status, code = REFUSALS[leaf]
        assert f"{status} `{code}`" in SECTIONS["For who calls"]
    assert f"{RESOLUTION}: STATE;outcome=accepted" in TEXT
    assert f": {INTERRUPT} ..." in TEXT
    bounds = f"above {MOST_HEADER_BYTES // 1024} KiB, and of a body above {MOST_BODY_BYTES // 1024}"
    assert bounds in " ".join(TEXT.split())


def test_the_fields_of_an_answer_are_named() -> None:
    text = SECTIONS["For who writes an agent"]
    shown = [name for name in ("accepted", "outcome", "value", "resolver") if f"`{name}`" in text]
    assert shown == ["accepted", "outcome", "value", "resolver"]
