"""Two organisations with money between them, a line that breaks, and payers with limits."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from carnet.testing import toxic
from carnet.testing.toxic import Toxic, ToxicProxy
from tests.support.federation import organisation
from tests.support.organisation import Organisation

METERED = """

async def counts(visit: carnet.Visit) -> str:
    \"\"\"Use as many tokens as the text says, whatever was reserved for them.\"\"\"
    note(visit)
    visit.usage(tokens_out=int(visit.text))
    return visit.text
"""
THERE = """
[agents.counts]
kind = "python"
target = "agents:counts"
price_out = "1"
"""
# Known by a token it is told no budget: it charges what it likes, and acme owes `max_cost`.
HERE = """
[agents.dear]
kind = "tangle"
url = "{url}/agents/counts/v1"
model = "counts"
token = {{file = "var/globex.token"}}
max_cost = "0.02"

[agents.frail]
kind = "tangle"
url = "{url}/agents/spends/v1"
model = "spends"
token = {{file = "var/globex.token"}}
"""
FAR = "@{}@globex.example"
TOXICS = (toxic.reset(0), toxic.reset(1), toxic.reset(400), toxic.limit_data(b'"usage"'), Toxic())


class Called(Struct, frozen=True):
    """One call, which is made again under the same ids."""

    run: str
    model: str
    text: str
    token: str
    stream: bool

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("x-tangle-runid", self.run), ("x-tangle-turnid", f"{self.run}.t0.x")]


class World(NamedTuple):
    """Acme calls globex through the proxy."""

    acme: Organisation
    globex: Organisation
    proxy: ToxicProxy
    tokens: tuple[str, ...]

    def draw(self, dice: random.Random, number: int) -> Called:
        """Any call."""
        agent = dice.choice(("echo", *["paid"] * 3, *["counts"] * 5, "spends"))
        text = str(dice.randrange(60_000)) if agent == "counts" else "hello"
        model = FAR.format(agent)
        if dice.random() < 0.3:
            text, model = f"{model} {text}", "relay"
        elif dice.random() < 0.4:
            model = dice.choice((*["dear"] * 5, "frail"))
            text = str(dice.randrange(60_000))
        stream = dice.random() < 0.4
        return Called(f"run-{number:05}", model, text, dice.choice(self.tokens), stream)


@contextmanager
def two_ledgers(folder: Path, databases: tuple[str, str] = ("", "")) -> Iterator[World]:
    """Both running."""
    acme = organisation(folder / "acme", "acme.example", databases[0])
    globex = organisation(folder / "globex", "globex.example", databases[1])
    globex.configure(THERE, agents=(globex.folder / "agents.py").read_text() + METERED)
    bounds = "[limits]\nsender_calls_per_minute = 100000\nagent_calls_per_minute = 100000\n"
    globex.configure(bounds)
    with ToxicProxy(globex.port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        token = globex.new_token("from-acme", "--peer", "acme.example")
        (acme.folder / "var" / "globex.token").write_text(token)
        acme.configure(HERE.format(url=url))
        acme.carnet("peers", "add", "globex.example", "--url", url)
        listed = ("peers", "add", "acme.example", "--url", acme.url, "--credit", "100000")
        globex.carnet(*listed)
        limited = [acme.new_token(f"has-{most}", "--limit", most) for most in ("0.05", "1", "200")]
        acme.start()
        globex.start()
        yield World(acme, globex, proxy, (acme.token, *limited))
        assert (acme.stop(), globex.stop()) == (0, 0)
