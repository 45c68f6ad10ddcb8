"""The three organisations of the demo: who they are, what they ask for, how they call one another.

Law 1. Each has a gateway, a domain, keys and a store of its own; nothing is shared but the machine.
Law 2. They call one another in three dialects: Acme asks Globex in A2A and Initech in SAMVAD, and
       Globex asks Initech in Tangle. All of it is signed; no token was exchanged.
Law 3. Where no model is installed, Globex answers in words of ours, and says so.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

ASKED: Final = "an evening about agents that call one another, for forty people in Lisbon"
FRONT: Final = "planner"  # who is asked first, at Acme


class Party(Struct, frozen=True, kw_only=True):
    """One organisation."""

    name: str
    config: str  # after what `carnet init` writes; {acme}, {globex}, {initech} are their addresses
    agents: str
    color: str

    @property
    def domain(self) -> str:
        """What others call it."""
        return f"{self.name}.example"


ACME: Final = Party(
    name="acme",
    color="cyan",
    config="""
[owner]
agent = "planner"

[agents.planner]
kind = "python"
target = "agents:planner"

[agents.desk]
kind = "python"
target = "agents:desk"

[peers."globex.example"]
url = "{globex}"
dialect = "a2a"

[peers."initech.example"]
url = "{initech}"
dialect = "samvad"
""",
    agents='''\
"""Acme plans events. It asks three at once, and puts together what they say."""

import carnet


@carnet.agent("echo")
async def echo(visit):
    """Answer with what was said."""
    return visit.text


@carnet.agent("planner")
async def planner(visit):
    """A plan, of what a writer, an archive and our own desk say."""
    asked = ["@writer@globex.example", "@archive@initech.example", "desk"]
    answers = await visit.fan_out(asked, visit.text, on_failure="collect")
    names = ("Invitation", "Figures", "Hall")
    lines = [
        f"{name}: {answer.text or answer.error.safe_text}"
        for name, answer in zip(names, answers, strict=True)
    ]
    return "\\n".join(lines)


@carnet.agent("desk")
async def desk(visit):
    """Reserves a hall, if a person agrees."""
    answer = await visit.interrupt(
        approval="Reserve the hall at the river, on Tuesday?",
        arguments={"hall": "river", "seats": 40},
    )
    if not answer.accepted:
        return "none was reserved."
    seats = (answer.value or {"seats": 40}).get("seats")
    return f"the one at the river, with {seats} seats."
''',
)
GLOBEX: Final = Party(
    name="globex",
    color="magenta",
    config="""
[agents.writer]
kind = "python"
target = "agents:writer"
trust = "trusted-peers"
price = "0.003"
timeout = 120

[peers."acme.example"]
url = "{acme}"
credit = "5"

[peers."initech.example"]
url = "{initech}"
""",
    agents='''\
"""Globex writes. Its agent looks a fact up at Initech, and has a model on this machine write."""

import carnet

HAS_MODEL = {has_model}


@carnet.agent("echo")
async def echo(visit):
    """Answer with what was said."""
    return visit.text


@carnet.agent("writer")
async def writer(visit):
    """A sentence that invites people."""
    fact = await visit.peer("@facts@initech.example").ask("Lisbon")
    if not HAS_MODEL:
        return f"Come to {visit.text}. {fact} (No model is installed here: these words are fixed.)"
    words = await visit.model().ask(
        f"Write one sentence that invites people to {visit.text}.",
        system=f"You write invitations. A fact: {fact}",
        max_tokens=40,
    )
    return " ".join(words.split())
''',
)
MODEL: Final = """
[models.smollm2]
url = "{model}"
timeout = 120
"""
INITECH: Final = Party(
    name="initech",
    color="yellow",
    config="""
[agents.facts]
kind = "python"
target = "agents:facts"
trust = "trusted-peers"

[agents.archive]
kind = "python"
target = "agents:archive"
trust = "trusted-peers"
price = "0.002"

[peers."acme.example"]
url = "{acme}"
credit = "5"

[peers."globex.example"]
url = "{globex}"
credit = "5"
""",
    agents='''\
"""Initech knows things. Its facts are free; a page of its archive costs two cents."""

import carnet


@carnet.agent("echo")
async def echo(visit):
    """Answer with what was said."""
    return visit.text


@carnet.agent("facts")
async def facts(visit):
    """One fact about a place."""
    return f"{visit.text} has some 300 days of sun a year."


@carnet.agent("archive")
async def archive(visit):
    """A page of figures, for whoever pays."""
    answer = await visit.interrupt(
        payment="0.02", message="A page of figures about such evenings costs two cents."
    )
    if not answer.accepted:
        return "not bought."
    return "of forty who are invited, thirty-one come, and five of them late."
''',
)
OWN: Final = "\n# ---- of the demo ----\n"
PARTIES: Final = (ACME, GLOBEX, INITECH)


def write_party(party: Party, folder: Path, urls: dict[str, str], model: str | None) -> None:
    """Write what is its own, after `carnet init`: sections of its configuration, and its agents.

    What was written before by this is replaced.
    """
    file = folder / "carnet.toml"
    more = party.config
    if party is GLOBEX and model is not None:
        more += MODEL.replace("{model}", model)
    for name, url in urls.items():
        more = more.replace(f"{{{name}}}", url)
    starter, _, _ = file.read_text().partition(OWN)
    file.write_text(f"{starter}{OWN}{more}")
    agents = party.agents.replace("{has_model}", str(model is not None))
    (folder / "agents.py").write_text(agents)
