"""The Dockerfile: its install lines are run in an empty place, and what they make serves.

The folders of the image stand for folders of the test; the locks are the same without their
hashes, because the wheels are packed anew here (see `environment`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pytest

from carnet.config.settings import GatewaySettings
from carnet.testing import stage
from tests.docs.test_quickstart import ROOT
from tests.packages.environment import clean, locked, run, wheels_of
from tests.stores.support import servers
from tests.support.organisation import Launched

TEXT = (ROOT / "Dockerfile").read_text()
LINES = [line.partition(" ") for line in TEXT.splitlines() if line and not line.startswith("#")]


def of_kind(word: str) -> list[str]:
    """The arguments of every instruction of a kind."""
    return [rest for name, _, rest in LINES if name == word]


def copied_to(folder: Path) -> None:
    """What the first COPY lines put into an image."""
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    for line in of_kind("COPY"):
        if line.startswith("--"):
            continue
        *sources, target = line.split()
        for source in sources:
            assert source in allowed
            if source.endswith("/"):
                without = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, folder / target, ignore=without)
            else:
                shutil.copy(ROOT / source, folder / target)


def without_hashes(folder: Path) -> None:
    for lock in folder.glob("*.txt"):
        pins = [line.rstrip("\\ ") for line in lock.read_text().splitlines() if "==" in line]
        lock.write_text("\n".join(pins) + "\n")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the install lines make, below a folder in the place of /."""
    root = tmp_path_factory.mktemp("image")
    build, wheels = root / "build", root / "of-the-locks"
    build.mkdir()
    copied_to(build)
    without_hashes(build / "requirements")
    wheels_of([*locked("postgres"), *locked("build")], wheels)
    env = clean(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels), PIP_QUIET="1", PIP_NO_COMPILE="1")
    lines = [line for line in of_kind("RUN") if "pip " in line or "venv " in line]
    for line in lines:
        here = line.replace("/usr/local/lib/", f"{root}/usr/local/lib/")
        here = re.sub(r"^python ", f"{sys.executable} ", here.replace(" --require-hashes", ""))
        run(here, build, env)
    return root


class InImage(Launched):
    """A gateway that is begun by what the image begins."""

    def __init__(self, image: Path, folder: Path, *, store: str = "") -> None:
        self._image = image
        self.store = store
        super().__init__(folder)

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        assert of_kind("CMD") == ['["start-carnet"]']
        script = str(ROOT / "packaging" / "start.sh")
        return subprocess.Popen(  # noqa: S603  our own script
            [script, "--fd", str(self.address.fd)],
            cwd=self.folder,
            env=self.env(env),
            stdout=out,
            stderr=err,
            pass_fds=[self.address.fd],
        )

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        assert "PATH=/usr/local/lib/carnet/bin:$PATH" in of_kind("ENV")
        path = f"{self._image}/usr/local/lib/carnet/bin{os.pathsep}{env['PATH']}"
        store = {"CARNET__STORE__URL": self.store} if self.store else {}
        return clean(PATH=path, CARNET__GATEWAY__PORT=str(self.port), **store)


def carnet(gateway: InImage, *words: str) -> str:
    """Run a command in the container."""
    command = shutil.which("carnet", path=gateway.env(os.environ)["PATH"])
    assert command is not None
    return run([command, *words], gateway.folder, gateway.env(os.environ)).stdout.strip()


def check_health(gateway: InImage) -> None:
    (health,) = of_kind("HEALTHCHECK")
    words = json.loads(health.partition(" CMD ")[2])
    words[-1] = words[-1].replace("127.0.0.1:8700", f"127.0.0.1:{gateway.port}")
    run(words, gateway.folder, gateway.env(os.environ))


def test_the_install_lines_make_an_environment_whose_gateway_is_healthy(
    image: Path, tmp_path: Path
) -> None:
    gateway = InImage(image, tmp_path)
    gateway.start()
    try:
        check_health(gateway)
        assert carnet(gateway, "call", "echo", "from a container") == "from a container"
        assert gateway.stop() == 0
    finally:
        gateway.close()


def test_a_gateway_of_the_image_makes_the_layout_of_an_empty_postgres_and_serves(
    image: Path, tmp_path: Path, server: servers.Server
) -> None:
    gateway = InImage(image, tmp_path, store=server.empty())
    gateway.start()
    try:
        check_health(gateway)
        carnet(gateway, "tokens", "create", "me", "--scope", "call:*")  # as the page says
        carnet(gateway, "backup", "kept.db")
        assert gateway.stop() == 0
        assert "Restored 0 turns" in carnet(gateway, "restore", "kept.db", "--force")
    finally:
        gateway.close()
        server.drop(gateway.store)


def test_the_image_can_speak_to_postgres_and_holds_no_secret(image: Path, tmp_path: Path) -> None:
    python = str(image / "usr" / "local" / "lib" / "carnet" / "bin" / "python")
    run([python, "-I", "-c", "import asyncpg, carnet"], tmp_path, clean())
    assert not list((image / "usr" / "local" / "lib" / "carnet").rglob("secrets.key"))
    assert not re.search(
        r"(?i)password|token|secret", "\n".join([*of_kind("ENV"), *of_kind("ARG")])
    )


def test_the_image_is_run_by_a_user_who_is_not_root_on_a_volume_of_its_own() -> None:
    assert of_kind("USER") == ["10001:10001"]
    assert of_kind("VOLUME") == ["/data"]
    assert of_kind("WORKDIR")[-1] == "/data"
    last = [name for name, _, _ in LINES]
    assert last.index("USER") > max(at for at, name in enumerate(last) if name == "RUN")


def test_what_stops_a_container_waits_for_longer_than_a_gateway_may_take() -> None:
    settings = GatewaySettings()
    assert settings.drain_seconds + settings.grace_seconds < 40
    assert "docker stop --time 40" in TEXT
