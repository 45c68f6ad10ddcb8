"""The names by which logs elsewhere find a call: written where the operator says so alone."""

from pathlib import Path

from tests.gateway.endpoint.test_new_stamp import upstream
from tests.support.house import housed

CONFIG = """
[limits]
retries = 0

[peers."b.example"]
url = "http://127.0.0.1:{port}"
log_names = ["bifrost", "kagent"]

[peers."c.example"]
url = "http://127.0.0.1:{port}"

[agents.model]
kind = "openai"
url = "http://127.0.0.1:{port}/v1"
log_names = ["litellm"]

[agents.plain]
kind = "openai"
url = "http://127.0.0.1:{port}/v1"
"""
NAMES = ("x-bf-agent-correlation-id", "x-litellm-user-id", "x-user-id")


def names_of(head: str) -> dict[str, str]:
    lines = [line.partition(": ") for line in head.splitlines()]
    return {name: value for name, _, value in lines if name in NAMES}


async def test_a_call_has_the_names_that_are_configured_and_no_other(tmp_path: Path) -> None:
    async with upstream() as there, housed(tmp_path, CONFIG.format(port=there.port)) as house:
        # What a caller says of itself in these names goes nowhere.
        fields = {"x_tangle_runid": "run-9", "x_user_id": "mallory", "x_litellm_user_id": "eve"}
        for agent in ("@echo@b.example", "@echo@c.example", "model", "plain"):
            await house.chat("hi", agent, **fields)
    heads = [names_of(head) for head in there.heads if head.startswith("post")]
    payer = "alice@acme.example"
    assert heads == [
        {"x-bf-agent-correlation-id": "run-9", "x-user-id": payer},
        {},
        {"x-litellm-user-id": payer},
        {},
    ]
