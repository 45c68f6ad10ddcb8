"""The house that is attacked: two real gateways and a hostile upstream."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from carnet.testing.wait import until
from tests.faults.scene import HELD
from tests.security.support.cards import CardHost, card, drips, key_of, peers, shows
from tests.security.support.hostile import Hostile, agents
from tests.security.support.scene import UPSTREAM_TOKEN, Scene, files, logged, notice, places
from tests.security.support.signing import (
    DESK,
    DESK_AGENTS,
    NEIGHBOUR,
    PUBLIC,
    PUBLISHERS,
    SignedEdge,
    edge_of,
)
from tests.support.federation import introduce, organisation
from tests.support.http import Reply
from tests.support.served import AGENTS
from tests.support.signing.signed import Sender

MODELS = """
[agents.dear]
kind = "python"
target = "agents:slow"
price = "0.001"

[agents.held]
kind = "python"
target = "agents:held"
price = "0.001"

[agents.model]
kind = "openai"
url = "{url}/bill/v1"
price_out = "1"

[agents.dearest-model]
kind = "openai"
url = "{url}/bill/v1"
price_out = "2000"

[agents.plain-model]
kind = "openai"
url = "{url}/answer/v1"
"""

ENDLESS = """
[agents.dear]
kind = "python"
target = "agents:slow"
price = "0.001"

[agents.endless]
kind = "tangle"
url = "{url}/endless/v1"

[agents.drip]
kind = "tangle"
url = "{url}/drip/v1"
timeout = 3
"""


@pytest.fixture(scope="session")
def hostile() -> Iterator[Hostile]:
    with Hostile().serving() as serving:
        yield serving


@pytest.fixture(scope="session")
def cards() -> Iterator[CardHost]:
    with CardHost().serving() as serving:
        yield serving


@pytest.fixture(scope="session")
def alice() -> Sender:
    """Whom both gateways have admitted, as clients of the dialect are: by hand, without a card."""
    return Sender("agent://client-alice")


@pytest.fixture(scope="session")
def bob() -> Sender:
    """Whom acme has admitted as well."""
    return Sender("agent://client-bob")


@pytest.fixture(scope="session")
def mallory() -> Sender:
    """Whom nobody has admitted."""
    return Sender("agent://client-mallory")


@pytest.fixture(scope="session")
def neighbour(cards: CardHost) -> Sender:
    """Another gateway, which both have listed as a peer."""
    sender = Sender(f"agent://{NEIGHBOUR}.example")
    cards.answers[NEIGHBOUR] = shows(card(sender.identity, key_of(sender)))
    return sender


@pytest.fixture(scope="session")
def scene(
    tmp_path_factory: pytest.TempPathFactory,
    hostile: Hostile,
    cards: CardHost,
    alice: Sender,
    bob: Sender,
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("attacked")
    acme = organisation(folder / "acme", "acme.example")
    globex = organisation(folder / "globex", "globex.example")
    introduce(acme, globex)
    introduce(globex, acme)
    token = acme.folder / "var" / "upstream.token"
    token.write_text(UPSTREAM_TOKEN)
    token.chmod(0o600)
    acme.configure(agents(hostile.url, "var/upstream.token") + MODELS.format(url=hostile.url))
    acme.configure(PUBLIC + DESK_AGENTS + peers(cards, PUBLISHERS), agents=AGENTS + DESK + HELD)
    for gateway, sender in ((acme, alice), (acme, bob), (globex, alice)):
        gateway.carnet("peers", "add", sender.identity, "--key", sender.public)
    globex.configure(ENDLESS.format(url=hostile.url) + peers(cards, [NEIGHBOUR]))
    scene = Scene(
        acme=acme,
        globex=globex,
        hostile=hostile,
        alice=acme.new_token("alice"),
        mallory=acme.new_token("mallory"),
        bridge=acme.new_token("bridge", "--may-forward-authorization"),
        peer=(globex.folder / "var" / "acme.example.token").read_text(),
        lowly=acme.new_token("lowly", "--scope", "call:echo"),
    )
    # Many wrong tokens are tried here from one address, and many signed calls are made by one
    # sender; how many may be is tried elsewhere.
    bounds = ("AUTH_FAILURES", "SENDER_CALLS_PER_MINUTE")
    acme.start(env={f"CARNET__LIMITS__{bound}": "100000" for bound in bounds})
    globex.start()
    notice(acme)
    yield scene
    assert (acme.stop(), globex.stop()) == (0, 0)
    # After all that was done to it: no token of anybody, in any spelling, in any file.
    assert places(scene.secrets().values(), files(acme) | files(globex)) == []


@pytest.fixture(scope="module", autouse=True)
def nothing_logged(scene: Scene) -> Iterator[None]:
    """What the tests of a module sent as credentials is not in the log when they are done."""
    yield
    assert logged(scene) == []


@pytest.fixture(scope="session")
def dripping(scene: Scene, cards: CardHost) -> Iterator[Future[Reply]]:
    """A request whose sender's card drips: it takes its time while other tests run."""
    cards.answers["slow"] = drips
    with ThreadPoolExecutor(1) as pool, edge_of(scene, scene.acme) as opened:
        asking = pool.submit(opened.send, opened.message(Sender("agent://slow.example")))
        until(lambda: cards.fetches("slow") == 1)
        yield asking


@pytest.fixture(scope="module")
def edge(scene: Scene, dripping: Future[Reply]) -> Iterator[SignedEdge]:  # noqa: ARG001  begun early
    """Acme, as signed callers see it."""
    with edge_of(scene, scene.acme) as opened:
        yield opened


@pytest.fixture(scope="module")
def second(scene: Scene) -> Iterator[SignedEdge]:
    """Globex, which knows alice as well."""
    with edge_of(scene, scene.globex) as opened:
        yield opened
