"""People from the command line: who they are, what is theirs, and its end."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.signing.signed import Sender

MAIL = "mailto:alice@acme.example"

pytestmark = pytest.mark.usefixtures("home")


def add(cli: Cli, name: str = "alice", *options: str) -> None:
    ran = cli("people", "add", name, *options)
    assert ran.code == 0, ran.err


def test_init_makes_the_owner_and_the_starter_token_is_hers(cli: Cli) -> None:
    (owner,) = cli("people", "list", "--format", "json").page["people"]
    assert (owner["name"], owner["roles"], owner["handle"]) == (
        *("owner", ["admin"], "@owner@acme.example"),
    )
    assert (owner["tokens"], owner["account"]) == (["starter"], None)
    (starter,) = cli("tokens", "list", "--format", "json").page["tokens"]
    assert (starter["person"], starter["account"]) == ("owner", "starter")
    plain = [
        "call:*",
        "call:remote",
        "memory:read",
        "memory:write",
        "pay",
        "run:cancel",
        "run:read",
    ]
    assert starter["scopes"] == [*plain, "tool:*", "triggers"]


def test_an_owner_who_ended_is_not_made_again(cli: Cli, home: Path) -> None:
    assert cli("people", "end", "owner").code == 0
    (home / "var" / "starter.token").unlink()
    assert cli("init").code == 0
    assert cli("people", "list", "--format", "json").page["people"] == []
    assert not (home / "var" / "starter.token").exists()


def test_a_person_is_added_listed_and_shown(cli: Cli) -> None:
    added = cli(
        *("people", "add", "alice", "--display", "Alice A.", "--role", "viewer", "--number", "7"),
        *("--permission", "metrics", "--address", MAIL, "--account", "sales", "--format", "json"),
    ).page
    assert added["handle"] == "@alice@acme.example"
    assert (added["display"], added["number"], added["account"]) == ("Alice A.", 7, "sales")
    assert (added["roles"], added["permissions"]) == (["viewer"], ["metrics"])
    assert added["may"] == ["metrics", "run:read"]
    assert added["addresses"] == [{"address": MAIL, "how": "claimed", "verified": None}]
    listed = cli("people", "list", "--format", "json").page["people"]
    assert [person["name"] for person in listed] == ["alice", "owner"]
    assert listed[0] == added
    shown = cli("people", "show", "alice", "--format", "json").page
    assert shown == {**added, "things": []}
    assert "Alice A." in cli("people", "list").out
    assert MAIL in cli("people", "show", "alice").out
    assert cli("people", "show", "bob").code == 2


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["Alice"], "a letter first"),
        (["peer:globex.example"], "a letter first"),
        (["globex.example"], "a letter first"),
        (["operator"], "machines"),
        (["service"], "machines"),
        (["echo"], "'echo'"),  # an agent
        (["ech0"], "'echo'"),
        (["owner"], "'owner'"),
        (["0wner"], "a letter first"),
        (["bob", "--permission", "approve-all"], "nothing here asks for"),
        (["bob", "--permission", "tools:rm"], "nothing here asks for"),
        (["bob", "--address", "@echo@acme.example"], "this organisation"),
        (["bob", "--number", "0"], "above 0"),
        (["bob", "--account", "agent:echo"], "--account"),
        (["bob", "--account", "operator"], "the commands"),
        (["bob", "--display", ""], "printable"),
        (["bob", "--role", "king"], "viewer"),
    ],
)
def test_who_cannot_be_is_refused_by_what_is_wrong(cli: Cli, words: list[str], part: str) -> None:
    ran = cli("people", "add", *words)
    assert ran.code == 2
    assert part in ran.err
    assert len(cli("people", "list", "--format", "json").page["people"]) == 1


def test_a_number_and_an_address_are_one_persons(cli: Cli) -> None:
    add(cli, "alice", "--number", "7", "--address", MAIL)
    for options in (["--number", "7"], ["--address", MAIL]):
        ran = cli("people", "add", "bob", *options)
        assert ran.code == 2
        assert "Somebody has" in ran.err


def test_a_token_of_a_person_bills_her_account_and_does_no_more_than_she_may(cli: Cli) -> None:
    add(cli, "alice", "--account", "sales")
    add(cli, "eve", "--role", "viewer")
    made = cli("tokens", "create", "laptop", "--person", "alice", "--format", "json").page
    assert (made["person"], made["account"]) == ("alice", "sales")
    narrow = cli("tokens", "create", "phone", "--person", "eve", "--format", "json").page
    assert (narrow["scopes"], narrow["account"]) == (["run:read"], "phone")
    for name, options in (
        ("alice", ["--scope", "admin:people"]),
        ("eve", ["--scope", "*"]),
        ("alice", ["--peer", "globex.example"]),
        ("nobody", []),
    ):
        assert cli("tokens", "create", "more", "--person", name, *options).code == 2
    assert "alice" in cli("tokens", "list").out
    shown = cli("tokens", "show", "laptop", "--format", "json").page
    assert shown == {name: value for name, value in made.items() if name != "token"}
    assert "sales" in cli("tokens", "show", "laptop").out
    assert cli("tokens", "show", "unknown").code == 2


def test_everything_is_granted_as_the_names_there_are(cli: Cli) -> None:
    page = cli("tokens", "create", "all", "--scope", "*", "--format", "json").page
    assert "*" not in page["scopes"]
    assert {"admin:people", "admin:runs", "call:*"} <= set(page["scopes"])
    for scope in ("approve-all", "tools:x", "admin:nothing"):
        assert cli("tokens", "create", "no", "--scope", scope).code == 2


def test_what_an_update_took_back_is_said_of_the_token(cli: Cli, home: Path) -> None:
    assert "Taken back" not in cli("tokens", "list").out
    with closing(sqlite3.connect(home / "var" / "carnet.db")) as database:
        database.execute("UPDATE token SET taken_back = 'approve tool:x'")
        database.commit()
    assert "Taken back from starter" in cli("tokens", "list").out
    shown = cli("tokens", "show", "starter", "--format", "json").page
    assert shown["taken_back"] == ["approve", "tool:x"]


def test_a_token_that_is_there_is_adopted_with_its_account(cli: Cli) -> None:
    add(cli)
    add(cli, "bob")
    made = cli("tokens", "create", "ci", "--format", "json").page
    assert (made["person"], made["service"]) == (None, "ci")
    cli("tokens", "create", "theirs", "--peer", "globex.example")
    assert cli("people", "link", "alice", "--token", "ci").code == 0
    tokens = {t["name"]: t for t in cli("tokens", "list", "--format", "json").page["tokens"]}
    assert (tokens["ci"]["person"], tokens["ci"]["service"]) == ("alice", None)
    assert tokens["ci"]["account"] == "ci"
    assert (tokens["theirs"]["service"], tokens["theirs"]["peer"]) == (None, "globex.example")
    for name in ("ci", "theirs", "starter", "unknown"):
        assert cli("people", "link", "bob", "--token", name).code == 2
    assert cli("people", "link", "nobody", "--token", "ci").code == 2
    assert cli("people", "link", "bob").code == 2


def test_the_pinned_key_of_a_sender_is_linked_and_ends_with_her(cli: Cli) -> None:
    add(cli)
    add(cli, "bob")
    sender = Sender("agent://client-alice")
    assert cli("people", "link", "alice", "--key", sender.identity).code == 2
    assert cli("peers", "add", sender.identity, "--key", sender.public).code == 0
    assert cli("people", "link", "alice", "--key", sender.identity).code == 0
    assert cli("people", "link", "bob", "--key", sender.identity).code == 2
    things = cli("people", "show", "alice", "--format", "json").page["things"]
    assert things == [{"kind": "key", "name": sender.identity, "state": "live"}]
    cli("people", "end", "alice")
    (key,) = cli("peers", "list", "--format", "json").page["keys"]
    assert key["state"] == "revoked"


def test_an_address_is_linked_and_verified(cli: Cli) -> None:
    add(cli)
    add(cli, "bob")
    assert cli("people", "link", "alice", "--address", MAIL).code == 0
    linked = cli("people", "link", "alice", "--address", MAIL, "--verified", "--format", "json")
    assert linked.page == {"person": "alice", "address": MAIL, "how": "verified"}
    assert cli("people", "link", "bob", "--address", MAIL).code == 2
    assert cli("people", "link", "bob", "--address", "nowhere").code == 2


def test_the_end_of_a_person_says_what_ended(cli: Cli) -> None:
    add(cli, "alice", "--address", MAIL)
    cli("tokens", "create", "laptop", "--person", "alice")
    cli("tokens", "create", "phone", "--person", "alice")
    ended = cli("people", "end", "alice", "--format", "json").page
    assert [(thing["kind"], thing["name"]) for thing in ended["things"]] == [
        *(("address", MAIL), ("token", "laptop"), ("token", "phone")),
    ]
    names = [t["name"] for t in cli("tokens", "list", "--format", "json").page["tokens"]]
    assert names == ["starter"]
    assert cli("people", "end", "alice").code == 2
    assert cli("people", "show", "alice").code == 2
    everybody = cli("people", "list", "--all", "--format", "json").page["people"]
    assert [(one["name"], one["state"]) for one in everybody] == [
        *(("alice", "ended"), ("owner", "live")),
    ]
    add(cli, "alice", "--address", MAIL)  # the name and the address are free again
    assert "laptop" not in cli("people", "show", "alice").out


def test_the_end_of_a_person_is_told_in_words(cli: Cli) -> None:
    add(cli)
    cli("tokens", "create", "laptop", "--person", "alice")
    out = cli("people", "end", "alice").out
    assert "Ended @alice@acme.example, and with her 1 thing." in out
    assert "laptop" in out


def test_the_roles_of_a_person_are_changed(cli: Cli) -> None:
    add(cli, "alice", "--role", "viewer", "--permission", "metrics")
    changed = cli("people", "roles", "alice", "operator", "--format", "json").page
    assert (changed["roles"], changed["permissions"]) == (["operator"], ["metrics"])
    other = cli("people", "roles", "alice", "viewer", "--permission", "approve", "--format", "json")
    assert other.page["may"] == ["approve", "run:read"]
    bare = cli("people", "roles", "alice", "viewer", "--no-permissions")
    assert (bare.code, "alice may run:read." in bare.out) == (0, True)
    assert cli("people", "roles", "alice").code == 2
    assert cli("people", "roles", "alice", "king").code == 2
    wrong = cli("people", "roles", "alice", "viewer", "--permission", "fly")
    assert (wrong.code, "--permission" in wrong.err) == (2, True)
    assert cli("people", "roles", "nobody", "viewer").code == 2


def test_a_name_that_is_taken_is_refused_as_one(cli: Cli) -> None:
    add(cli, "alice")
    again = cli("people", "add", "alice")
    assert (again.code, "'alice' is known here" in again.err) == (2, True)
    assert "carnet people roles" in again.err
