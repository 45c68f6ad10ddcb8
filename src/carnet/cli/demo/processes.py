"""The processes of the demo: three gateways, and a model where one is installed.

Law 1. What is started here ends here, whatever happened: leaving ends every process, and its files.
Law 2. Nothing leaves this machine, and nothing of the environment is about another gateway.
"""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import msgspec

from carnet.cli.demo.scene import GLOBEX, PARTIES, Party, write_party
from carnet.cli.invocation import Invocation
from carnet.errors import UsageInvalid
from carnet.testing.stage import Gateway, carnet_command, environment

MODEL_SECONDS: Final = 60  # for loading its weights, on a machine that does something else as well
OWNER_ONLY: Final = 0o700


class House(Gateway):
    """One organisation: a gateway, and a command line of its own."""

    def __init__(self, folder: Path, party: Party) -> None:
        super().__init__(folder)
        self.party = party
        self.domain = party.domain
        self.invocation = Invocation(config=folder / "carnet.toml")

    @property
    def token(self) -> str:
        """The one that its owner has."""
        return (self.folder / "var" / "starter.token").read_text().strip()


class Demo:
    """The three, for as long as it is entered."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is kept; without one there is one for the time of the demo."""
        self._stack = ExitStack()
        self._kept = folder
        self.houses: list[House] = []
        self.lacks: str | None = None  # why there is no model, and what to do
        self._model: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(_own_environment())
        self.folder = self._kept or Path(tempfile.mkdtemp(prefix="carnet-demo-"))
        if self._kept is None:
            self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        else:
            _take(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()  # each of them, also where the end of another failed

    async def write(self) -> None:
        """Begin to load the model, and make the three organisations beside it."""
        from carnet.cli.start.init import start_in

        self._begin_model()
        for party in PARTIES:
            folder = self.folder / party.name
            folder.mkdir(mode=OWNER_ONLY)
            house = House(folder, party)
            self.houses.append(house)
            self._stack.callback(house.close)
            if self._kept is not None:
                self._stack.callback(house.stop)  # so that it can be started again as any other
            await start_in(folder, domain=party.domain, port=house.port)

    def start(self) -> None:
        """Start the three; Globex when it is known where its model listens."""
        urls = {house.party.name: house.url for house in self.houses}
        late = [house for house in self.houses if house.party is GLOBEX]
        for house in [each for each in self.houses if each not in late] + late:
            model = self._model_url() if house in late else None
            write_party(house.party, house.folder, urls, model)
            house.launch()
        for house in self.houses:
            house.wait()

    def _begin_model(self) -> None:
        from carnet.cli.start.local_model import engine, find_weights

        try:
            find_weights()
            engine()
        except UsageInvalid as missing:
            self.lacks = f"{missing.safe_text} {missing.next_step}"
            return
        self._model = subprocess.Popen(  # noqa: S603  our own command
            [*carnet_command(), "model", "local", "--port", "0", "--format", "jsonl"],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(_end, self._model)

    def _model_url(self) -> str | None:
        """Where it listens, once it does; None where there is none."""
        if self._model is None or self._model.stdout is None:
            return None
        has_begun, _, _ = select.select([self._model.stdout], [], [], MODEL_SECONDS)
        line = self._model.stdout.readline() if has_begun else b""  # nothing, if it has ended
        if not line:
            self.lacks = "The model did not start. Type: carnet model local"
            return None
        return str(msgspec.json.decode(line)["url"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # it keeps nothing
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _take(folder: Path) -> None:
    try:
        folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        is_used = any(folder.iterdir())
    except OSError as error:
        raise UsageInvalid(
            reason=f"{folder} cannot be used: {error.strerror}.",
            fix="Name a folder that you may write to, or none: carnet demo",
        ) from None
    if is_used:
        raise UsageInvalid(
            reason=f"There is something in {folder} already.",
            fix="Name a folder that is new or empty, or none: carnet demo",
        )


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """For the time of a context, nothing of the environment names another gateway."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("CARNET") and name != "CARNET_DEBUG":
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
