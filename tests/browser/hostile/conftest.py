"""One hostile scene for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.browser.hostile.scene import AGENTS, CONFIG, CRITIC, ENGINE, OF_CRITIC, Hostile
from tests.support.model import Model
from tests.support.organisation import Organisation, shared_with_others


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("acme", "globex"):
        (folder / name).mkdir()
    acme = Organisation(folder / "acme", "acme.example")
    globex = Organisation(folder / "globex", "globex.example")
    globex.configure(CRITIC, agents=OF_CRITIC + (globex.folder / "agents.py").read_text())
    (acme.folder / "var" / "globex.token").write_text(
        globex.new_token("acme", "--peer", "acme.example")
    )
    globex.configure(f'[peers."acme.example"]\nurl = "{acme.url}"\ncredit = "10"\n')
    with Model().serving() as model:
        acme.configure(
            CONFIG
            + ENGINE.replace("{url}", model.url)
            + f'[peers."globex.example"]\nurl = "{globex.url}"\n'
            + 'token = {file = "var/globex.token"}\n',
            agents=AGENTS + (acme.folder / "agents.py").read_text(),
        )
        with shared_with_others():
            globex.start()
            acme.start()
        found = Hostile(acme, globex, model)
        found.fill()
        yield found
        assert (acme.stop(), globex.stop()) == (0, 0)
