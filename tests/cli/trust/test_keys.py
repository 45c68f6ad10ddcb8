"""Keys from the command line: our own, and those of others that are pinned."""

import re
from base64 import b64decode, b64encode
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from carnet.cli.times import read_span
from carnet.cli.trust.keys import KEPT_SECONDS, LEAD
from carnet.stores.secrets import secrets_file
from carnet.wire.crypto.ed25519 import public_of, write_public_key
from carnet.wire.dialects import samvad
from tests.cli.conftest import Cli

URL = "http://127.0.0.1:8702"
KEY = write_public_key(public_of(b"\x01" * 32))
OTHER = write_public_key(public_of(b"\x02" * 32))
SENDER = "agent://globex.example"


def keys_of(cli: Cli, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cli("keys", "list", *words, "--format", "json").page["keys"]
    return found


def pinned(cli: Cli) -> list[tuple[str, str | None, str, str]]:
    rows = cli("peers", "list", "--format", "json").page["keys"]
    return [(row["sender"], row["kid"], row["key"], row["state"]) for row in rows]


@pytest.mark.usefixtures("home")
def test_init_makes_the_key_that_signs(cli: Cli) -> None:
    (key,) = keys_of(cli)
    assert (key["state"], key["not_after"]) == ("active", None)
    assert re.fullmatch(r"k-[0-9a-f]{12}", key["kid"])
    assert len(b64decode(key["key"], validate=True)) == 32
    listed = cli("keys", "list").out
    assert key["kid"] in listed
    assert key["key"] in listed
    assert cli("init").code == 0
    assert keys_of(cli) == [key]


def test_a_new_key_is_signed_with_when_the_secrets_were_lost(cli: Cli, home: Path) -> None:
    (before,) = keys_of(cli)
    (home / "var" / "secrets.key").unlink()
    assert "with a new key" in cli("init").err
    (now,) = keys_of(cli)
    assert (now["state"], now["kid"] != before["kid"]) == ("active", True)


def test_doctor_says_which_key_signs_and_how_to_mend_one_that_cannot(cli: Cli, home: Path) -> None:
    (key,) = keys_of(cli)
    assert f"We sign with {key['kid']}." in cli("doctor").out
    (home / "var" / "secrets.key").unlink()
    secrets_file.create(home / "var" / "secrets.key")
    ran = cli("doctor")
    assert (ran.code, "carnet keys rotate" in ran.out) == (2, True)
    assert cli("keys", "rotate").code == 0
    assert "We sign with k-" in cli("doctor").out


@pytest.mark.usefixtures("home")
def test_a_second_key_is_refused_with_the_command_that_replaces_it(cli: Cli) -> None:
    ran = cli("keys", "new")
    assert ran.code == 2
    assert "carnet keys rotate" in ran.err


def test_a_key_is_shown_for_as_long_as_others_keep_a_card_and_a_cache_on_the_way() -> None:
    assert KEPT_SECONDS == samvad.DEFAULT_TTL
    assert (read_span(LEAD, option="--lead") or 0) >= 2 * KEPT_SECONDS


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.usefixtures("home")
def test_a_new_key_is_shown_before_it_signs_and_the_old_one_is_honoured_after(cli: Cli) -> None:
    (old,) = keys_of(cli)
    ran = cli("keys", "rotate", "--overlap", "45m", "--format", "json")
    assert (ran.code, ran.page["state"]) == (0, "next")
    new, signing = keys_of(cli)
    assert ran.page == {**new, "replaces": signing}
    assert (signing["kid"], signing["state"]) == (old["kid"], "active")
    assert moment(new["signs_from"]) - moment(new["created"]) == 600
    assert moment(signing["not_after"]) - moment(new["signs_from"]) == 45 * 60
    assert f"We sign with {old['kid']}." in cli("doctor").out
    listed = cli("keys", "list").out
    assert new["signs_from"][:19].replace("T", " ") in listed
    assert "next" in listed


@pytest.mark.usefixtures("home")
def test_what_a_rotation_tells_can_be_typed(cli: Cli) -> None:
    (old,) = keys_of(cli)
    output = cli("keys", "rotate", "--lead", "1h").out
    new, _ = keys_of(cli)
    assert new["signs_from"][:19].replace("T", " ") in output
    assert f"carnet keys revoke {old['kid']}" in output
    assert f"--key {new['key']} --kid {new['kid']}" in output
    ran = cli("keys", "rotate")
    assert (ran.code, "carnet keys rotate --at-once" in ran.err) == (2, True)
    assert len(keys_of(cli)) == 2


@pytest.mark.usefixtures("home")
def test_a_key_that_signs_at_once_comes_with_what_that_costs(cli: Cli) -> None:
    (old,) = keys_of(cli)
    ran = cli("keys", "rotate", "--at-once")
    new, retiring = keys_of(cli)
    assert f"We sign with {new['kid']} from now on" in ran.out
    assert "key_unknown" in ran.err
    assert (retiring["kid"], retiring["state"]) == (old["kid"], "retiring")
    cli("keys", "rotate")
    shown = keys_of(cli)[0]
    assert cli("keys", "rotate", "--at-once", "--format", "json").page["kid"] == shown["kid"]
    assert [key["state"] for key in keys_of(cli)] == ["active", "retiring", "retiring"]
    both = cli("keys", "rotate", "--at-once", "--lead", "1h")
    assert (both.code, "Leave out one" in both.err) == (2, True)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("option", ["--overlap", "--lead"])
@pytest.mark.parametrize("span", ["never", "soon", "0s", "-1h"])
def test_an_overlap_and_a_lead_have_an_end(cli: Cli, option: str, span: str) -> None:
    ran = cli("keys", "rotate", option, span)
    assert ran.code == 2
    assert "12h" in ran.err
    assert "or never" not in ran.err
    assert len(keys_of(cli)) == 1


@pytest.mark.usefixtures("home")
def test_a_key_whose_time_is_over_leaves_the_list(cli: Cli) -> None:
    cli("keys", "rotate", "--overlap", "1s", "--at-once")
    for _ in range(300):
        if [key["state"] for key in keys_of(cli, "--all")] == ["active", "over"]:
            break
    assert [key["state"] for key in keys_of(cli)] == ["active"]


@pytest.mark.usefixtures("home")
def test_a_key_that_is_ended_is_replaced(cli: Cli) -> None:
    (old,) = keys_of(cli)
    ran = cli("keys", "revoke", old["kid"])
    assert ran.code == 0
    new, ended = keys_of(cli)
    assert (new["state"], ended["state"]) == ("active", "revoked")
    assert new["kid"] in ran.out
    again = cli("keys", "revoke", old["kid"])
    assert again.code == 2
    assert "carnet keys list --all" in again.err


@pytest.mark.usefixtures("home")
def test_the_next_key_takes_over_when_the_one_that_signs_is_ended(cli: Cli) -> None:
    (old,) = keys_of(cli)
    shown = cli("keys", "rotate", "--format", "json").page["kid"]
    assert cli("keys", "revoke", old["kid"], "--format", "json").page["active"] == shown
    assert [(key["kid"], key["state"]) for key in keys_of(cli)] == [
        (shown, "active"),
        (old["kid"], "revoked"),
    ]


@pytest.mark.usefixtures("home")
def test_a_key_may_be_named_when_there_is_none(cli: Cli, home: Path) -> None:
    for database in home.glob("var/carnet.db*"):
        database.unlink()
    assert "carnet keys new" in cli("keys", "list").out
    assert cli("keys", "new", "--kid", "a;b").code == 2
    page = cli("keys", "new", "--kid", "spring", "--format", "json").page
    assert (page["kid"], page["state"]) == ("spring", "active")


# ------------------------------------------------------------------------------------- pinned


@pytest.mark.usefixtures("home")
def test_the_key_of_a_sender_is_pinned_listed_and_forgotten(cli: Cli) -> None:
    ran = cli("peers", "add", SENDER, "--key", KEY)
    assert (ran.code, SENDER in ran.out) == (0, True)
    page = cli("peers", "add", SENDER, "--key", OTHER, "--kid", "k2", "--format", "json").page
    assert (page["sender"], page["kid"], page["key"]) == (SENDER, "k2", OTHER)
    assert pinned(cli) == [(SENDER, None, KEY, "live"), (SENDER, "k2", OTHER, "live")]
    assert cli("peers", "list", "--format", "json").page["peers"] == []
    listed = cli("peers", "list").out
    assert KEY in listed
    assert "No peers" not in listed
    assert "Forgot the pinned keys" in cli("peers", "remove", SENDER).out
    assert pinned(cli) == []
    gone = cli("peers", "remove", SENDER)
    assert (gone.code, "carnet peers list" in gone.err) == (2, True)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("sender", ["agent://client-x", "agent://127.0.0.1"])
def test_a_sender_that_has_no_domain_can_be_admitted_by_its_key(cli: Cli, sender: str) -> None:
    assert cli("peers", "add", sender, "--key", KEY).code == 0
    assert pinned(cli) == [(sender, None, KEY, "live")]


@pytest.mark.usefixtures("home")
def test_a_gateway_and_its_key_are_admitted_together(cli: Cli) -> None:
    page = cli("peers", "add", "b.example", "--url", URL, "--key", KEY, "--format", "json").page
    assert (page["domain"], page["sender"], page["key"]) == ("b.example", "agent://b.example", KEY)
    added = cli("peers", "add", SENDER, "--key", OTHER, "--url", URL)
    assert "Known: globex.example" in added.out
    assert "Pinned the key of agent://globex.example" in added.out
    rows = cli("peers", "list", "--format", "json").page["peers"]
    assert [row["domain"] for row in rows] == ["b.example", "globex.example"]
    assert cli("peers", "remove", "b.example").code == 0  # and its key with it
    assert [sender for sender, *_ in pinned(cli)] == [SENDER]
    assert cli("peers", "remove", "globex.example").code == 0
    cli("peers", "add", SENDER, "--key", KEY)
    assert cli("peers", "remove", "globex.example").code == 0  # where there is nothing but a key
    assert pinned(cli) == []


@pytest.mark.usefixtures("home")
def test_pinned_keys_are_ended_one_by_one_or_all(cli: Cli) -> None:
    for words in (["--key", KEY], ["--key", KEY, "--kid", "a"], ["--key", OTHER, "--kid", "b"]):
        cli("peers", "add", SENDER, *words)
    assert cli("peers", "revoke-key", SENDER, "--kid", "a").code == 0
    assert [state for *_, state in pinned(cli)] == ["live", "revoked", "live"]
    assert cli("peers", "revoke-key", SENDER, "--format", "json").page["revoked"] == 2
    ran = cli("peers", "revoke-key", SENDER)
    assert (ran.code, "carnet peers list" in ran.err) == (2, True)


WEAK = [
    b64encode((1).to_bytes(32, "little")).decode(),  # small order
    b64encode(b"\x00" * 32).decode(),
    b64encode((2**255 - 19).to_bytes(32, "little")).decode(),  # not canonical
    KEY.rstrip("="),
    KEY[:-2] + "B=",  # another spelling of the same bytes
    b64encode(b"short").decode(),
    "not base64",
]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("key", WEAK)
@pytest.mark.parametrize("words", [[SENDER], ["globex.example", "--url", URL]])
def test_a_weak_key_is_refused_and_nothing_is_admitted(
    cli: Cli, words: list[str], key: str
) -> None:
    ran = cli("peers", "add", *words, "--key", key, "--format", "json")
    assert ran.code == 2
    assert ran.error["code"] == "key_invalid"
    assert "base64" in ran.error["hint"]
    assert cli("peers", "list", "--format", "json").page == {
        "peers": [],
        "keys": [],
        "strangers": [],
    }


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([SENDER], "--key BASE64"),
        ([SENDER, "--url", URL], "--key BASE64"),
        ([SENDER, "--kid", "a"], "Give both"),
        ([SENDER, "--key", KEY, "--kid", 'a"b'], "leave it out"),
        (["agent://Globex.Example", "--key", KEY], "lower-case host"),
        (["agent://", "--key", KEY], "lower-case host"),
        (["agent://client-x", "--key", KEY, "--url", URL], "DNS name"),
        (["b.example", "--key", KEY], "--url URL"),
    ],
)
def test_what_cannot_be_pinned_is_refused(cli: Cli, words: list[str], part: str) -> None:
    ran = cli("peers", "add", *words)
    assert (ran.code, part in ran.err) == (2, True), ran.err
    assert pinned(cli) == []


def test_keys_of_the_file_are_listed_and_left_to_the_file(cli: Cli, home: Path) -> None:
    config = home / "carnet.toml"
    plain = config.read_text()
    config.write_text(plain + f'[peers."globex.example"]\nurl = "{URL}"\nkeys = ["{KEY}"]\n')
    assert pinned(cli) == [(SENDER, None, KEY, "live")]
    assert "carnet.toml" in cli("peers", "list").out
    for words in (
        ["add", SENDER, "--key", OTHER],
        ["remove", SENDER],
        ["revoke-key", SENDER],
        ["remove", "globex.example"],
    ):
        ran = cli("peers", *words)
        assert (ran.code, '[peers."globex.example"]' in ran.err) == (2, True), ran.err
    config.write_text(plain + f'[peers."globex.example"]\nurl = "{URL}"\n')
    assert cli("peers", "add", SENDER, "--key", OTHER).code == 0  # where the file says nothing


def test_a_weak_key_in_the_file_is_refused(cli: Cli, home: Path) -> None:
    config = home / "carnet.toml"
    section = f'[peers."globex.example"]\nurl = "{URL}"\nkeys = ["{WEAK[0]}"]\n'
    config.write_text(config.read_text() + section)
    ran = cli("peers", "list")
    assert ran.code == 2
    assert "globex.example" in ran.err


@pytest.mark.parametrize(
    ("known", "typed"),
    [
        (("paypal.example", "--url", URL), ("paypa1.example", "--url", URL)),
        (("agent://rn.example", "--key", KEY), ("agent://m.example", "--key", KEY)),
        (("agent://client-0", "--key", KEY), ("agent://client-o", "--key", KEY)),
        (("agent://client-a_b", "--key", KEY), ("agent://client-a-b", "--key", KEY)),
        (("agent://client-x.example", "--key", KEY), ("agent://client-X.example", "--key", KEY)),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_name_that_looks_like_a_known_one_is_not_admitted_beside_it(
    cli: Cli, known: tuple[str, ...], typed: tuple[str, ...]
) -> None:
    """A57: two names that a reader takes for one another."""
    assert cli("peers", "add", *known).code == 0
    ran = cli("peers", "add", *typed)
    assert (ran.code, "looks like" in ran.err) == (2, True)
    assert cli("peers", "add", *known).code == 0
    assert cli("peers", "remove", known[0]).code == 0
    assert cli("peers", "add", *typed).code == 0
