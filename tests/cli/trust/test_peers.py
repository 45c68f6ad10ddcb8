"""`carnet peers`: by what others know us, as the other settings of a peer."""

from pathlib import Path

from tests.support.organisation import Organisation


def test_by_what_a_peer_knows_us_is_set_listed_and_kept(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    add = ("peers", "add", "globex.example")
    made = acme.json(*add, "--url", "http://127.0.0.1:9", "--dialect", "a2a", "--auth", "jwt")
    assert made["auth"] == "jwt"
    assert acme.json(*add, "--credit", "1")["auth"] == "jwt"  # what is not said stays
    (listed,) = acme.json("peers", "list")["peers"]
    assert listed["auth"] == "jwt"
    assert "AUTH" in acme.carnet("peers", "list").stdout
    wrong = acme.try_carnet(*add, "--auth", "password")
    assert wrong.returncode == 2
    assert "federation" in wrong.stderr
