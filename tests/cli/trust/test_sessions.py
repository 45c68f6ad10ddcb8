"""Links to sign in with and sessions, from the command line."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

PUBLIC = 'public_url = "https://acme.example/"'
pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def link(cli: Cli, home: Path) -> str:
    assert home.exists()
    return str(cli("people", "sign-in", "owner", "--format", "json").page["link"])


def begin(home: Path) -> None:
    """As a gateway does when somebody shows the code."""
    with closing(sqlite3.connect(home / "var" / "carnet.db")) as connection:
        connection.execute("UPDATE session SET begun = created, used = created, device = 'a phone'")
        connection.commit()


def test_a_link_is_printed_once_and_says_whom_it_signs_in(cli: Cli, home: Path, port: int) -> None:
    ran = cli("people", "sign-in", "owner")
    link = ran.out.strip()
    assert link.startswith(f"http://127.0.0.1:{port}/sign-in?code=cc_")
    assert "is owner, until" in ran.err
    assert "'starter'" in ran.err
    code = link.partition("code=")[2]
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert not any(code.encode() in data for data in files)
    assert cli("sessions", "list", "--format", "json").page == {"sessions": []}
    assert "Nobody has signed in" in cli("sessions", "list").out


def test_a_link_leads_to_where_the_gateway_listens_unless_its_operator_says_where(
    cli: Cli, home: Path, link: str
) -> None:
    """`serve --port` may have it listen elsewhere than its file says."""
    written = home / "var" / "gateway.url"
    written.write_text("http://127.0.0.1:7\n")
    written.chmod(0o600)
    moved = cli("people", "sign-in", "owner").out.strip()
    assert (moved.startswith("http://127.0.0.1:7/sign-in"), "127.0.0.1:7/" in link) == (True, False)
    config = home / "carnet.toml"
    config.write_text(config.read_text().replace("[gateway]", f"[gateway]\n{PUBLIC}", 1))
    assert cli("people", "sign-in", "owner").out.startswith("https://acme.example/sign-in")


def test_a_session_stands_for_one_token_of_hers(cli: Cli) -> None:
    assert cli("people", "add", "alice").code == 0
    none = cli("people", "sign-in", "alice")
    assert (none.code, "tokens create NAME --person alice" in none.err) == (2, True)
    for name in ("laptop", "phone"):
        assert cli("tokens", "create", name, "--person", "alice").code == 0
    several = cli("people", "sign-in", "alice")
    assert (several.code, "laptop" in several.err, "--token NAME" in several.err) == (2, True, True)
    page = cli("people", "sign-in", "alice", "--token", "phone", "--format", "json").page
    assert (page["person"], page["token"]) == ("alice", "phone")
    other = cli("people", "sign-in", "alice", "--token", "starter")
    assert (other.code, "phone, laptop" in other.err or "laptop, phone" in other.err) == (2, True)
    assert cli("people", "sign-in", "nobody").code == 2


@pytest.mark.usefixtures("link")
def test_sessions_are_listed_and_ended(cli: Cli, home: Path) -> None:
    begin(home)
    (session,) = cli("sessions", "list", "--format", "json").page["sessions"]
    assert (session["person"], session["token"], session["device"]) == (
        *("owner", "starter", "a phone"),
    )
    assert "a phone" in cli("sessions", "list", "--person", "owner").out
    shown = cli("people", "show", "owner", "--format", "json").page
    thing = {"kind": "session", "name": f"session {session['id']}", "state": "live"}
    assert thing in shown["things"]
    assert cli("sessions", "end", str(session["id"])).out == "Ended 1 session.\n"
    again = cli("sessions", "end", str(session["id"]))
    assert (again.code, "no live session" in again.err) == (2, True)
    assert cli("sessions", "end", "--person", "owner").out == "Ended 0 sessions.\n"
    assert cli("sessions", "end").code == 2
    assert cli("sessions", "end", "1", "--person", "owner").code == 2
    assert cli("sessions", "list", "--person", "nobody").code == 2


@pytest.mark.usefixtures("link")
def test_with_its_token_a_session_ends(cli: Cli, home: Path) -> None:
    begin(home)
    assert cli("tokens", "revoke", "starter").code == 0
    assert cli("sessions", "list", "--format", "json").page == {"sessions": []}
