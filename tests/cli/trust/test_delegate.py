"""`carnet tokens delegate`: tokens that others verify, and none that nobody would take."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from samvad.delegation import verify_token

from carnet.wire.crypto.delegation import read
from tests.cli.conftest import Cli
from tests.support.signing.delegations import ours
from tests.support.signing.signed import Sender, now

BOB, ACME = "agent://client-bob", "agent://acme.example"
GRANT = ("tokens", "delegate", BOB, "--scope", "order", "--for", ACME)


@pytest.mark.usefixtures("home")
def test_a_token_is_printed_alone_and_what_it_grants_beside_it(cli: Cli) -> None:
    ran = cli(*GRANT)
    assert ran.code == 0
    found = read(ran.out.strip())
    assert (found.issuer, found.subject, found.audience) == (ACME, BOB, ACME)
    assert (found.scope, found.hops, found.is_ours) == (("order",), 1, True)
    assert found.expires - found.issued == 900
    assert f"From {ACME}: with it {BOB} may ask for order at {ACME}, until " in ran.err
    assert "your own key" not in ran.err


@pytest.mark.usefixtures("home")
def test_everything_it_grants_is_on_the_page(cli: Cli) -> None:
    page = cli(
        *(*GRANT, "--scope", "cancel", "--depth", "3", "--expires", "2h", "--once"),
        *("--budget", "1.5", "--calls", "4", "--max-tokens", "900", "--format", "json"),
    ).page
    granted = {name: page[name] for name in ("issuer", "subject", "audience", "scope", "maxDepth")}
    assert granted == {
        "issuer": ACME,
        "subject": BOB,
        "audience": ACME,
        "scope": ["order", "cancel"],
        "maxDepth": 3,
    }
    assert (page["once"], page["links"], page["form"]) == (True, 1, "carnet")
    assert page["budget"] == {"money": "1.5", "currency": "credits", "calls": 4, "tokens": 900}
    assert page["expires"] > page["issued"]
    assert read(page["token"]).token_id == page["jti"]


@pytest.mark.usefixtures("home")
def test_the_sdk_verifies_what_is_made_for_it(cli: Cli) -> None:
    (key,) = cli("keys", "list", "--format", "json").page["keys"]
    words = ("tokens", "delegate", BOB, "--scope", "order", "--sdk", "--depth", "2")
    page = cli(*words, "--format", "json").page
    claims = verify_token(page["token"], issuer_public_key_b64=key["key"])
    assert sorted(claims) == ["exp", "iat", "iss", "maxDepth", "scope", "sub"]
    assert (page["audience"], page["jti"], page["form"]) == (None, None, "sdk")
    narrower = ("tokens", "delegate", ACME, "--scope", "order", "--key", "own.key")
    parent = cli(*narrower, "--for", ACME, "--depth", "5").out.strip()
    chained = cli(*words, "--parent", parent, "--format", "json").page
    claims = verify_token(chained["token"], issuer_public_key_b64=key["key"])
    assert claims["act"] == {"sub": ACME}
    assert claims["maxDepth"] == 2


def test_a_person_signs_with_a_key_of_its_own(cli: Cli, tmp_path: Path) -> None:
    """Without a configuration too; the key is made if there is none."""
    ran = cli(*GRANT, "--key", "own.key", "--format", "json")
    assert ran.code == 0, ran.err
    assert ran.page["issuer"] == f"agent://client-{ran.page['kid']}"
    assert (tmp_path / "own.key").exists()


def test_who_has_no_configuration_is_told_whose_key_has_signed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "house"))
    (tmp_path / "house").mkdir()
    ran = cli(*GRANT)
    assert ran.code == 0, ran.err
    assert f"From {read(ran.out.strip()).issuer}: with it {BOB}" in ran.err
    assert "There is no carnet.toml here" in ran.err
    assert "~/.carnet/client.key" in ran.err
    assert "There is no carnet.toml" not in cli(*GRANT, "--key", "own.key").err


# ---------------------------------------------------------------------------------- derived


@pytest.fixture
def parent(home: Path) -> Path:
    """What alice granted to our gateway, in a file."""
    token = ours(
        Sender("agent://client-alice"),
        ACME,
        "agent://globex.example",
        scope=["order", "cancel"],
        maxDepth=4,
        bud={"money": "2", "currency": "credits", "calls": 9},
        exp=int(now()) + 300,
    )
    file = home / "parent.token"
    file.write_text(token + "\n")
    return file


def test_what_is_derived_is_the_same_and_less(cli: Cli, parent: Path) -> None:
    page = cli("tokens", "delegate", BOB, "--parent", str(parent), "--format", "json").page
    assert page["links"] == 2
    assert (page["scope"], page["maxDepth"]) == (["order", "cancel"], 3)
    assert page["audience"] == "agent://globex.example"
    assert page["budget"]["calls"] == 9
    assert page["expires"] == _expires(parent)
    assert read(page["token"]).chain()[0].text == parent.read_text().strip()


def _expires(file: Path) -> str:
    end = read(file.read_text().strip()).expires
    return datetime.fromtimestamp(end, UTC).isoformat(timespec="milliseconds")


def test_a_parent_is_read_from_a_file_from_its_text_and_from_standard_input(
    cli: Cli, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = parent.read_text()
    for given in (str(parent), f"@{parent}", text.strip()):
        assert cli("tokens", "delegate", BOB, "--parent", given).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert cli("tokens", "delegate", BOB, "--parent", "-").code == 0
    for option in (("--show",), (BOB, "--parent")):
        for given in ("@nowhere", "nowhere"):
            ran = cli("tokens", "delegate", *option, given)
            assert (ran.code, "nowhere' " in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (["--scope", "pay"], "scope"),
        (["--depth", "4"], "maxDepth"),
        (["--expires", "2h"], "exp"),
        (["--budget", "2.1"], "bud.money"),
        (["--calls", "10"], "bud.calls"),
        (["--for", "agent://other.example"], "aud"),
    ],
)
def test_what_would_be_wider_is_not_made(
    cli: Cli, parent: Path, options: list[str], claim: str
) -> None:
    ran = cli("tokens", "delegate", BOB, "--parent", str(parent), *options, "--format", "json")
    assert (ran.code, ran.error["code"]) == (1, "delegation_widened")
    assert (ran.error["link"], ran.error["claim"]) == (2, claim)


def test_who_does_not_hold_a_token_passes_nothing_on(cli: Cli, parent: Path) -> None:
    words = ("tokens", "delegate", BOB, "--parent", str(parent), "--key", "other.key")
    ran = cli(*words, "--format", "json")
    assert (ran.code, ran.error["code"]) == (1, "delegation_invalid")


# ---------------------------------------------------------------------------------- mistakes


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--scope", "order", "--for", ACME], "SUBJECT is missing"),
        ([BOB, "--for", ACME], "--scope SKILL"),
        ([BOB, "--scope", "order"], "--for agent://DOMAIN"),
        (["bob", "--scope", "order", "--for", ACME], "'bob' is no identity"),
        ([BOB, "--scope", "order", "--for", "acme"], "'acme' is no identity"),
        ([BOB, "--scope", "order", "--for", ACME, "--sdk"], "Leave out --for"),
        ([BOB, "--scope", "order", "--for", ACME, "--expires", "2d"], "longer than a day"),
        ([BOB, "--scope", "order", "--for", ACME, "--expires", "never"], "45m"),
        ([BOB, "--scope", "order", "--for", ACME, "--budget", "much"], "0.25"),
        ([BOB, "--scope", "order", "--for", ACME, "--depth", "0"], "--depth"),
    ],
)
def test_what_cannot_be_is_refused_with_the_form_it_should_have(
    cli: Cli, words: list[str], part: str
) -> None:
    ran = cli("tokens", "delegate", *words)
    assert ran.code == 2
    assert part in ran.err


# ---------------------------------------------------------------------------------- shown


def shown(cli: Cli, token: str) -> Any:
    return json.loads(cli("tokens", "delegate", "--show", token, "--format", "json").out)


def test_a_chain_is_shown_link_by_link(cli: Cli, parent: Path) -> None:
    token = cli("tokens", "delegate", BOB, "--parent", str(parent), "--once").out.strip()
    page = shown(cli, token)
    assert [link["state"] for link in page["links"]] == ["first", "narrows"]
    assert page["holds"] is True
    ran = cli("tokens", "delegate", "--show", token)
    assert ran.code == 0
    assert "agent://client-bob (once)" in ran.out
    assert "2 credits, 9 calls" in ran.out
    assert "first: nothing was granted before it" in ran.err


def test_what_is_wrong_with_a_link_is_shown(cli: Cli) -> None:
    alice, bob = Sender("agent://client-alice"), Sender(BOB)
    first = ours(alice, BOB, ACME, maxDepth=2)
    wider = ours(bob, ACME, ACME, parent=first, maxDepth=1, scope=["*"])
    for token, state in (
        (wider, "widens scope"),
        (ours(alice, ACME, ACME, parent=first, maxDepth=1), "its issuer neither holds"),
        (ours(bob, ACME, ACME, parent=first, maxDepth=0), "no hop is left"),
    ):
        page = shown(cli, token)
        assert page["links"][1]["state"].startswith(state)
        assert page["holds"] is False
    assert cli("tokens", "delegate", "--show", "ey.ey.ey").code == 1
    expired = ours(bob, ACME, ACME, exp=int(now()) - 1, iat=int(now()) - 60)
    assert shown(cli, expired)["links"][0]["state"] == "it has expired"
    assert cli("tokens", "delegate", "--show", expired).code == 4


@pytest.mark.usefixtures("home")
def test_a_delegation_is_listed_with_whose_it_is_and_ended_with_all_below_it(cli: Cli) -> None:
    words = ("--scope", "*", "--depth", "3", "--for", ACME, "--format", "json")
    cli("people", "add", "alice")
    first = cli("tokens", "delegate", "agent://bob.example", *words, "--person", "alice").page
    below = cli(
        *("tokens", "delegate", "agent://carol.example", "--parent", first["token"]),
        *("--for", ACME, "--format", "json"),
    ).page
    listed = cli("tokens", "delegations", "--format", "json").page["delegations"]
    assert [(one["id"], one["person"], one["parent"]) for one in listed] == [
        *((below["jti"], None, first["jti"]), (first["jti"], "alice", None)),
    ]
    ended = cli("tokens", "undelegate", first["jti"], "--format", "json")
    assert ended.page == {"ended": [first["jti"], below["jti"]]}
    assert cli("tokens", "undelegate", first["jti"]).code == 2
    assert "ended" in cli("tokens", "delegations").out
    assert cli("tokens", "delegate", "agent://b.example", *words, "--person", "eve").code == 2
    with_key = ("--person", "alice", "--key", "own.key")
    assert cli("tokens", "delegate", "agent://b.example", *words, *with_key).code == 2
