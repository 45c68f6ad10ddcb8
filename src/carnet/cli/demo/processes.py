"""The processes of the demo: three gateways, and a model where one is installed.

All of them start at once: each gateway is told where the others will answer, and the model, since
their ports are held from the beginning.

Law 1. What is started here ends here, whatever happened: leaving ends every process, and its files.
Law 2. Nothing leaves this machine, and nothing of the environment is about another gateway.
"""

import contextlib
import os
import select
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from carnet.cli.demo.scene import GLOBEX, PARTIES, Party, write_party
from carnet.cli.invocation import Invocation
from carnet.errors import UsageInvalid
from carnet.testing.address import HOST, REUSE
from carnet.testing.stage import Gateway, carnet_command, environment

MODEL_SECONDS: Final = 60  # for loading its weights, on a machine that does something else as well
MODEL: Final = ("model", "local")  # the command of ours that runs it
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
        self._model_url: str | None = None  # where it will answer

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

    async def launch(self) -> None:
        """Start the model, and each of the three once it is made; wait for none of them."""
        from carnet.cli.start.init import start_in

        for party in PARTIES:
            folder = self.folder / party.name
            folder.mkdir(mode=OWNER_ONLY)
            house = House(folder, party)
            self.houses.append(house)
            self._stack.callback(house.close)
            if self._kept is not None:
                self._stack.callback(house.stop)  # so that it can be started again as any other
        self._begin_model()
        for house in self.houses:
            await start_in(house.folder, domain=house.domain, port=house.port)
            self.write(house)
            house.launch()

    def wait(self) -> None:
        """Wait until all of them answer."""
        for house in self.houses:
            house.wait()
        if self._model is not None and not self._has_begun(self._model):
            self.lacks = "The model did not start. Type: carnet model local"
            self._without_model()

    def _without_model(self) -> None:
        """Have Globex answer in words of ours after all."""
        self._model_url = None
        for house in self.houses:
            if house.party is GLOBEX:
                house.stop()
                self.write(house)
                house.start()

    def write(self, house: House) -> None:
        """Write what an organisation has of its own: how it calls the others, and its agents."""
        urls = {each.party.name: each.url for each in self.houses}
        write_party(house.party, house.folder, urls, self._model_url)

    def _begin_model(self) -> None:
        from carnet.cli.start.local_model import engine, find_weights

        try:
            find_weights()
            engine()
        except UsageInvalid as missing:
            self.lacks = f"{missing.safe_text} {missing.next_step}"
            return
        port = self._stack.enter_context(held_port())
        self._model_url = f"http://{HOST}:{port}/v1"
        self._model = subprocess.Popen(  # noqa: S603  our own command
            [*carnet_command(), *MODEL, "--port", str(port), "--format", "jsonl"],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(_end, self._model)

    @staticmethod
    def _has_begun(model: "subprocess.Popen[bytes]") -> bool:
        """Wait until it has told where it listens; False if it has ended, or never does."""
        if model.stdout is None:
            return False
        is_there, _, _ = select.select([model.stdout], [], [], MODEL_SECONDS)
        return bool(is_there and model.stdout.readline())


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """A port that the system has chosen, and gives to nobody else meanwhile.

    What runs the model cannot be handed a socket. It allows reuse, and so may listen on the port of
    another that does and that listens never.
    """
    with socket.socket() as held:
        held.setsockopt(*REUSE, 1)
        held.bind((HOST, 0))
        yield int(held.getsockname()[1])


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
