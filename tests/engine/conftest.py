"""An engine that the tests of a module share, and the model that it asks."""

from collections.abc import Iterator

import pytest

from tests.engine.process import CONFIG, KEY, TOOLS, EngineProcess, Scene
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Model().serving() as model, shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("engine") / "acme", "acme.example")
        home.configure(CONFIG.format(url=model.url))
        (home.folder / "tools.py").write_text(TOOLS)
        engine = EngineProcess(home)
        engine.start(env={"MODEL_KEY": KEY})
        yield Scene(engine, model, home)
        assert engine.stop() == 0
        engine.close()
        home.close()


@pytest.fixture
def scene(made: Scene) -> Scene:
    made.replies(streamed("Hello ", "world!"))
    return made
