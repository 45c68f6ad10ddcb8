"""The wheel in an empty environment: what the README shows works there, and so does keeping it."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from carnet.testing import stage
from tests.docs.test_quickstart import ROOT
from tests.packages.environment import (
    build_wheel,
    clean,
    empty_environment,
    locked,
    run,
    wheels_of,
)
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `carnet` of an environment that the wheel was installed into."""
    folder = tmp_path_factory.mktemp("empty")
    wheels_of(locked("base"), folder / "wheels")
    commands = empty_environment(folder / "environment")
    words = ["install", "-q", "--no-index", "--find-links", str(folder / "wheels"), str(wheel)]
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python")]
    run([*pip, *words], folder, clean())
    return commands / "carnet"


class Installed(Organisation):
    """An organisation that is driven by an installed command alone."""

    def __init__(self, command: Path, folder: Path) -> None:
        self._command = [str(command)]
        super().__init__(folder, "acme.example")

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        assert env
        return subprocess.Popen(  # noqa: S603  the command that was installed
            [*self._command, "serve", "--fd", str(self.address.fd)],
            cwd=self.folder,
            env=clean(),
            stdout=out,
            stderr=err,
            pass_fds=[self.address.fd],
        )

    def try_carnet(
        self, *words: str, at: Path | None = Path(), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  the command that was installed
            [*self._command, *words],
            cwd=self.folder if at is None else self.folder / at,
            env=clean(**(env or {})),
            capture_output=True,
            text=True,
            timeout=stage.COMMAND_SECONDS,
            check=False,
        )


@pytest.fixture
def acme(installed: Path, tmp_path: Path) -> Iterator[Installed]:
    folder = tmp_path / "acme"
    folder.mkdir()
    acme = Installed(installed, folder)
    yield acme
    acme.close()


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    here = {
        str(path.relative_to(source))
        for path in (source / "carnet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    manual = {
        f"carnet/gateway/manual/pages/{path.relative_to(ROOT / 'docs')}"
        for path in (ROOT / "docs").rglob("*")
        if path.is_file()
    }
    assert names == here | manual
    assert {"carnet/py.typed", "carnet/stores/migrations/0001_first.sqlite.sql"} <= names


def test_an_environment_has_what_the_wheel_asks_for_and_nothing_of_this_one(
    installed: Path, tmp_path: Path
) -> None:
    ask = "import carnet, importlib.metadata as m, json; print(json.dumps([carnet.__file__, "
    ask += "sorted(d.metadata['Name'].lower().replace('_', '-') for d in m.distributions())]))"
    python = str(installed.with_name("python"))
    file, names = json.loads(run([python, "-I", "-c", ask], tmp_path, clean()).stdout)
    assert Path(file).is_relative_to(installed.parent.parent)
    assert names == sorted([*locked("base"), "carnet"])


def test_a_gateway_of_the_wheel_answers_streams_signs_is_kept_and_put_back(
    acme: Installed,
) -> None:
    acme.start()
    first = [("x-tangle-runid", "conv_first"), ("x-tangle-turnid", "conv_first.t0")]
    called = acme.chat("hello", headers=first)
    assert (called.status, called.text) == (200, "hello")
    streamed = acme.chat("one two", stream=True)
    assert streamed.body.endswith(b"data: [DONE]\n\n")
    assert acme.carnet("call", "echo", "by command").stdout.strip() == "by command"
    signed = acme.carnet("call", acme.url, "signed", "--dialect", "samvad")
    assert signed.stdout.strip() == "signed"
    acme.carnet("backup", "kept.db")
    assert acme.chat("later").status == 200
    assert acme.stop() == 0
    (acme.folder / "var" / "carnet.db").unlink()
    assert "Restored 4 turns" in acme.carnet("restore", "kept.db").stdout
    acme.start()
    assert acme.chat("hello", headers=first).body == called.body
    assert acme.json("ledger", "verify")["ok"]
    assert acme.stop() == 0
