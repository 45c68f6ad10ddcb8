"""The house that is attacked: two real gateways and a hostile upstream."""

from collections.abc import Iterator

import pytest

from tests.security.hostile import Hostile, agents
from tests.security.scene import UPSTREAM_TOKEN, Scene, files, logged, notice, places
from tests.support.federation import introduce, organisation

MODELS = """
[agents.dear]
kind = "python"
target = "agents:slow"
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
timeout = 0.5
"""


@pytest.fixture(scope="session")
def hostile() -> Iterator[Hostile]:
    with Hostile().serving() as serving:
        yield serving


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory, hostile: Hostile) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("attacked")
    acme = organisation(folder / "acme", "acme.example")
    globex = organisation(folder / "globex", "globex.example")
    introduce(acme, globex)
    introduce(globex, acme)
    token = acme.folder / "var" / "upstream.token"
    token.write_text(UPSTREAM_TOKEN)
    token.chmod(0o600)
    acme.configure(agents(hostile.url, "var/upstream.token") + MODELS.format(url=hostile.url))
    globex.configure(ENDLESS.format(url=hostile.url))
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
    # Many wrong tokens are tried here from one address; how many may be is tried elsewhere.
    acme.start(env={"CARNET__LIMITS__AUTH_FAILURES": "100000"})
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
