"""The rows of the console as requests, each path with names that fit; and people of each role."""

from collections.abc import Mapping

from carnet.assembly.console.console import ROUTES
from carnet.http.exchange import Row
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation

# What stands for a name in a path where the test has nothing of it: it may not exist.
UNKNOWN = {
    "run": "conv_unknown",
    "file": "console.css",
    "conversation": "cnv_unknown",
    "ask": "int_unknown",
    "number": "999999",
    "agent": "unknown",
    "kid": "unknown",
    "kind": "schedules",
    "trigger": "unknown",
    "action": "pause",
    "person": "unknown",
}


def path_of(row: Row, names: Mapping[str, str] = UNKNOWN) -> str:
    """A path that the row answers, with these names in it, or with unknown ones."""
    path = row.path
    for name, value in {**UNKNOWN, **names}.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"say in tests/console/pages.py what stands for a name in {row.path}"
    return f"{path}?turn=x" if path.endswith(("/wire", "/replay")) else path


def a_viewer(acme: Organisation) -> Somebody:
    """Somebody who only looks."""
    return Somebody(acme, "--role", "viewer")


def an_admin(acme: Organisation) -> Somebody:
    """Somebody whose token may all that she may."""
    somebody = Somebody(acme, "--role", "admin")
    options = ("--person", somebody.name, "--scope", "*")
    somebody.token = acme.new_token(f"{somebody.name}-wide", *options)
    return somebody


PAGES = [row for row in ROUTES if row.method == "GET" and row.auth == "token"]
CHANGES = [row for row in ROUTES if row.method != "GET" and row.auth == "token"]
