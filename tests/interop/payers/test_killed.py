"""Killed while a voucher is issued, revoked or used: what was told holds, and nothing else."""

import pytest

from carnet.testing.wait import until
from tests.faults.stores import end_leases, number
from tests.interop.payers.conftest import Payers, tells_revoked

RECORDED = {"voucher.before_record": 0, "voucher.after_record": 1}  # how many are kept then
REVOKED = "voucher.after_end"
POINTS = frozenset({*RECORDED, REVOKED})
NAMED = [("x-tangle-runid", "conv_killed_v"), ("x-tangle-turnid", "conv_killed_v.t0.paid")]


@pytest.mark.parametrize(("point", "kept"), RECORDED.items())
def test_nobody_is_given_a_voucher_that_is_not_kept(payers: Payers, point: str, kept: int) -> None:
    sql = "SELECT COUNT(*) FROM voucher"
    before = number(payers.acme, sql)
    killed = payers.acme.try_carnet(
        "vouchers", "issue", "globex.example", "1", env={"CRASH_AT": point}
    )
    assert (killed.returncode != 0, killed.stdout) == (True, "")
    assert number(payers.acme, sql) == before + kept


def test_a_voucher_whose_revocation_was_cut_off_is_revoked_or_is_not(payers: Payers) -> None:
    made = payers.globex.json("vouchers", "issue", "globex.example", "1")
    payers.globex.try_carnet("vouchers", "revoke", made["id"], env={"CRASH_AT": REVOKED})
    assert payers.globex.json("vouchers", "show", made["id"])["state"] == "revoked"
    until(lambda: tells_revoked(payers.globex, made["id"]))
    assert payers.pay(made["voucher"]).json["error"]["reason"] == "revoked"


@pytest.mark.parametrize(
    "point", ["t1.before_commit", "t1.after_commit", "t3.before_commit", "t3.after_commit"]
)
def test_a_call_that_was_cut_off_pays_once_with_its_voucher(payers: Payers, point: str) -> None:
    named = [
        (name, value.replace("killed", f"killed_{point[:2]}{point[3]}")) for name, value in NAMED
    ]
    run = named[0][1]
    voucher = payers.forge()
    payers.globex.stop()
    payers.globex.start(env={"CRASH_AT": point})
    with pytest.raises(OSError):  # noqa: PT011  whichever: nobody answers any more
        payers.pay(voucher, headers=named)
    until(lambda: payers.globex.process is None or payers.globex.process.poll() is not None)
    end_leases(payers.globex)
    payers.globex.start()
    again = payers.pay(voucher, headers=named)
    assert again.status == 200, again
    assert [amount for *_, amount in payers.billed(run)] == [200]
    other = payers.pay(voucher)
    assert (other.status, other.json["error"]["reason"]) == (402, "used")
