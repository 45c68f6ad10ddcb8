"""A plain function: it reads what the caller sent, and may do blocking work."""

import json

import carnet

CLOCK = "clock"


@carnet.agent("guide")
def guide(visit: carnet.Visit) -> str | carnet.ToolCall:
    """Have the caller's clock read if it offers one, and say what was asked with."""
    last = visit.messages[-1]
    if last.role == "tool":
        return f"It is {last.text}."
    if CLOCK in [tool.name for tool in visit.tools]:
        return carnet.ToolCall("call_1", CLOCK, json.dumps({"zone": "UTC"}))
    asked = visit.parameters.get("temperature", "no temperature")
    return f"{len(visit.images)} images, {asked}: {visit.text}"
