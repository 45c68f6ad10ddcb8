"""Through how many files and rooms of the package a request walks.

`make bench ARGS=walk` shows it, `--by file` with every file in its order; `python -m bench.walk
FILE` writes the same for machines.

Law 1. A file counts where one of its functions runs, once. A room is a folder or a module directly
       under `carnet`, and a switch of room is a file whose room is not that of the file before it,
       in the order in which they run first, over all threads.
Law 2. Counted is a request that is alone at a gateway which has answered others before, as in
       `bench.calls`: nothing is looked up, fetched or compiled for the first time.
"""

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import samvad_peer
from bench.bodies import CHAT_PATH, chat_request, post
from bench.calls import SIGNED_ECHO, SIGNED_HOP, WARM_UP, Called, count, counted

TOKEN_CALL = "token call"  # noqa: S105 - a name
HOME = "carnet.localhost"
TIMES = 40  # requests of a kind; the one that runs the fewest functions is shown
_PACKAGE = "/src/carnet/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The files of the package that one request runs, in their order."""

    name: str
    files: tuple[str, ...]  # below src/carnet

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms as they are entered; one that is left and entered again stands there twice."""
        return tuple(room for room, _ in itertools.groupby(self.files, room_of))

    @property
    def switches(self) -> int:
        return len(self.rooms) - 1


def room_of(file: str) -> str:
    """The folder, or the module, directly under `carnet`."""
    return file.partition("/")[0].removesuffix(".py")


def walked(found: Called) -> Walk:
    """What one request ran, as a way through the package."""
    ran = (file.rpartition(_PACKAGE) for kind, file, _ in found.functions if kind == "call")
    files = dict.fromkeys(below for _, is_ours, below in ran if is_ours)
    return Walk(name=found.name, files=tuple(files))


def walks(folder: Path) -> list[Walk]:
    """Follow each kind of request at a gateway in this folder."""
    with counted(folder) as (port, address, token):
        keys = samvad_peer.client_keys(folder / "keys")
        signed = samvad_peer.requests
        chat = post(CHAT_PATH, chat_request("echo"), {"authorization": f"Bearer {token}"})
        hop = signed(keys, to=f"agent://signed.{HOME}", skill="chat", prefix="/agents/signed")
        kinds: dict[str, Iterator[bytes]] = {
            TOKEN_CALL: itertools.repeat(chat),
            SIGNED_ECHO: signed(keys, to=f"agent://{HOME}", skill="chat"),
            # The nonces of one sender must differ over all of its requests.
            SIGNED_HOP: itertools.islice(hop, WARM_UP + TIMES, None),
        }
        return [
            walked(count(name, port, address, asked, 0, TIMES)) for name, asked in kinds.items()
        ]


def show_walks(found: list[Walk], *, by: str | None) -> None:
    """Print the counts, and the way itself where it is asked for."""
    print(f"{'':<12} {'files':>6} {'switches of room':>17}")
    for one in found:
        print(f"{one.name:<12} {len(one.files):>6} {one.switches:>17}")
    for one in found if by is not None else ():
        print(f"\n{one.name}")
        for _, files in itertools.groupby(one.files, room_of):
            print("  " + "\n    ".join(files))


def walks_json(found: list[Walk]) -> dict[str, dict[str, object]]:
    """The same for machines."""
    return {
        one.name: {"files": len(one.files), "switches": one.switches, "way": one.files}
        for one in found
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        Path(sys.argv[1]).write_text(json.dumps(walks_json(walks(Path(scratch)))))
