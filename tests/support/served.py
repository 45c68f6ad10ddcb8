"""Configurations that test gateways share."""

from pathlib import Path

AGENTS = Path(__file__).with_name("agents_module.py").read_text()

NAMES = (
    "words",
    "slow",
    "broken",
    "half",
    "relay",
    "careful",
    "twice",
    "onward",
    "spends",
    "cautious",
)

AGAIN = ("careful", "onward")  # those that call themselves

CONFIG = (
    "\n".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n'
        + "reentry = true\n" * (name in AGAIN)
        for name in NAMES
    )
    + """
[agents.paid]
kind = "python"
target = "agents:echo"
price = "0.0002"

[agents.own_pocket]
kind = "python"
target = "agents:own_pocket"
auth_source = "per-call"

[agents.stubborn]
kind = "python"
target = "agents:slow"
on_disconnect = "finish"
"""
)


def executions(folder: Path, agent: str) -> list[str]:
    """The turns that an agent has run, in order."""
    trace = folder / "ran.txt"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [line.split()[1] for line in lines if line.split()[0] == agent]
