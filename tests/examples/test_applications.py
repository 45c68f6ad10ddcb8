"""The applications of the examples, behind the middleware, in front of a real gateway."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import carnet
from carnet.runtime.client.key import load_key
from tests.support.organisation import Organisation, shared_with_others

EXAMPLES = Path(__file__).parents[2] / "examples" / "middleware"
CHAIN = {carnet.RUN_ID: "run_of_theirs", carnet.TURN_ID: "run_of_theirs.t0.app"}


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway with an agent that knows the key of the application, which is in its folder."""
    folder = tmp_path_factory.mktemp("applications")
    with shared_with_others():
        served = Organisation(folder, "critic.example")
        (folder / ".carnet").mkdir(mode=0o700)
        key = load_key(folder / ".carnet" / "client.key")
        served.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
        served.start()
    yield served
    assert served.stop() == 0


@pytest.fixture(params=["starlette_app", "fastapi_app"])
def app(
    request: pytest.FixtureRequest, critic: Organisation, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """An example, imported as it stands."""
    monkeypatch.setenv("CRITIC", f"{critic.url}/agents/echo")
    monkeypatch.setenv("HOME", str(critic.folder))
    file = EXAMPLES / f"{request.param}.py"
    spec = importlib.util.spec_from_file_location(f"example_{request.param}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


async def ask(app: Any, depth: int) -> httpx.Response:
    headers = CHAIN | {carnet.FORWARDED_DEPTH: str(depth)}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app.example") as client:
        return await client.post("/review", headers=headers, json={"text": f"depth {depth}"})


async def test_what_an_application_calls_is_the_next_turn_of_the_run(
    app: Any, critic: Organisation
) -> None:
    reply = await ask(app, 1)
    assert reply.json() == {"run": "run_of_theirs", "text": "depth 1"}
    page = critic.json("run", "show", "run_of_theirs")
    assert {turn["depth"] for turn in page["turns"]} == {2}
    assert {turn["parent_turn"] for turn in page["turns"]} == {"run_of_theirs.t0.app"}


async def test_an_application_is_not_asked_by_a_chain_that_is_too_deep(app: Any) -> None:
    reply = await ask(app, 4)
    assert (reply.status_code, reply.json()["error"]["code"]) == (429, "bridge_depth_exceeded")
