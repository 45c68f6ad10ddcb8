"""`carnet vouchers`: what is issued is shown once, listed and revoked; mistakes are told."""

import io

import pytest

from carnet.core.people.identity import Secret
from carnet.wire.travel.voucher import read_voucher
from tests.cli.conftest import Cli

ISSUE = ("vouchers", "issue", "globex.example", "0.5")


@pytest.mark.usefixtures("home")
def test_a_voucher_is_printed_alone_and_what_it_is_good_for_beside_it(cli: Cli) -> None:
    ran = cli(*ISSUE, "--account", "alice", "--for", "bob.example")
    assert ran.code == 0
    found = read_voucher(Secret(ran.out.strip()))
    assert (found.issuer, found.audience) == ("acme.example", "globex.example")
    assert (found.account, found.amount, found.holder) == ("alice", 500_000, "bob.example")
    assert found.expires - found.issued == 24 * 3600
    assert "bob.example may spend 0.5 credits with it on one call at globex.example" in ran.err
    assert f"carnet vouchers revoke {found.id}" in ran.err


@pytest.mark.usefixtures("home")
def test_what_was_issued_is_listed_without_what_could_be_shown(cli: Cli) -> None:
    assert "Issue one: carnet vouchers issue" in cli("vouchers", "list").out
    page = cli(*ISSUE, "--format", "json").page
    listed = cli("vouchers", "list")
    assert page["id"] in listed.out
    assert "whoever holds it" in listed.out
    assert page["voucher"].rpartition(".")[2] not in listed.out
    assert cli("vouchers", "show", page["id"], "--format", "json").page["state"] == "live"
    assert cli("vouchers", "revoke", page["id"]).out == f"Revoked the voucher {page['id']}.\n"
    assert page["id"] not in cli("vouchers", "list").out
    assert "revoked" in cli("vouchers", "list", "--all").out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("vouchers", "issue", "no domain", "1"), "is no domain"),
        (("vouchers", "issue", "globex.example", "much"), "AMOUNT"),
        (("vouchers", "issue", "globex.example", "0"), "pays for nothing"),
        ((*ISSUE, "--expires", "91d"), "longer than 90 days"),
        ((*ISSUE, "--expires", "never"), "no length of time"),
        ((*ISSUE, "--account", "a b"), "no name of an account"),
        ((*ISSUE, "--for", "a b"), "no name has"),
        (("vouchers", "revoke", "v-none"), "no voucher 'v-none'"),
        (("vouchers", "show", "v-none"), "no voucher 'v-none'"),
        (("vouchers", "inspect", "no-such-file"), "no voucher, and no file"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(cli: Cli, words: tuple[str, ...], why: str) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert why in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("home")
def test_a_voucher_is_read_of_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    own = cli("vouchers", "issue", "acme.example", "1", "--format", "json").page
    monkeypatch.setattr("sys.stdin", io.StringIO(own["voucher"] + "\n"))
    page = cli("vouchers", "inspect", "-", "--format", "json").page
    assert (page["holds"], page["id"]) == (True, own["id"])
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    assert "There is no voucher in standard input." in cli("vouchers", "inspect", "-").err
