"""Several organisations that know one another as peers."""

from pathlib import Path

from carnet.testing import stage
from tests.faults.stores import move_to
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


def organisation(folder: Path, domain: str, database: str = "") -> Organisation:
    """An organisation with the usual test agents, not yet started; on SQLite if none is given."""
    folder.mkdir(parents=True, exist_ok=True)
    gateway = Organisation(folder, domain)
    if database:
        move_to(gateway, database)
    gateway.configure(CONFIG, agents=AGENTS)
    return gateway


def introduce(
    caller: Organisation,
    callee: Organisation,
    *,
    url: str | None = None,
    credit: str = "10",
    forwarding: bool = True,
) -> None:
    """Let `caller` call `callee`: a token there, a peer here; both list the other."""
    stage.introduce(caller, callee, url=url, credit=credit, forwarding=forwarding)
